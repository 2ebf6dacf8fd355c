"""What to do about an error that Triton or Python words for somebody else: one sentence in a learner's words."""

from __future__ import annotations

import difflib
import re
import traceback
from typing import Any

# (pattern in "ErrorType: message", what to do)
_HINTS = (
    (r"make_block_ptr|tl\.advance|[Bb]lock pointers? (have|has) been removed|'advance'",
     "Block pointers are gone from Triton; the tutorial is old. Use plain pointers with a mask, or "
     "tl.make_tensor_descriptor."),
    (r"arange's range must be a power of 2|power of (2|two)",
     "A block's size must be a power of two: pass triton.next_power_of_2(n) and mask the rest."),
    (r"arange's arguments must be of type tl\.constexpr|must (be|have type) (a )?`?constexpr",
     "Sizes of blocks are known when the kernel is compiled: declare the parameter as `NAME: tl.constexpr`."),
    (r"Boolean value of Tensor with more than one value|needs one value, but this is a block",
     "A block has many values; choose per element with tl.where(condition, a, b)."),
    (r"Unsupported function referenced|unsupported function",
     "Inside a kernel only tl.* and @triton.jit functions exist: a GPU cannot call back into Python."),
    (r"Cannot access global variable|global variable .* without",
     "A kernel sees module globals only if they are tl.constexpr: NAME = tl.constexpr(value), or pass it on."),
    (r"(M >= \d+.*K >= \d+|Input shapes should have)",
     "Tensor cores take tiles of at least 16 along K: make the block sizes of tl.dot 16 or more."),
    (r"is assigned from|type stays consistent|Loop-carried variable|initial value for",
     "A name that a loop changes keeps one type and shape: start it as tl.zeros((…), tl.float32)."),
    (r"must be 16-byte aligned|Last dimension must be contiguous|[Dd]escriptor last dim must be 1",
     "A tensor descriptor wants a base and rows that begin on multiples of 16 bytes, and 1 as its last stride: copy "
     "what is not so into rows of a padded width, or use plain pointers."),
    (r"assert isinstance\(idx, \(slice",
     "An index into a tuple is known when the kernel is compiled: a tl.constexpr, or an expression of such, written "
     "into the brackets, shape[DIMS - 1 - d]."),
    (r"out of resource: shared memory|needs .* of shared memory",
     "Use smaller blocks or fewer stages (num_stages)."),
    (r"no allocator was set",
     "Descriptors that a kernel makes live in memory of the launcher: before the launch, triton.set_allocator(f), "
     "where f(size, alignment, stream) returns torch.empty(size, dtype=torch.int8, device=x.device)."),
    (r"multiple (targets|assignment)|several targets", "Write one assignment a line."),
    (r"accumulator shape is incompatible",
     "tl.dot(a, b, acc): acc has as many rows as a and as many columns as b. Are a and b in this order?"),
    (r"'range' object", "range() is for loops; a block of numbers is tl.arange(0, BLOCK)."),
    (r"unsupported operand type\(s\) for @", "The product of two tiles is tl.dot(a, b, acc)."),
    (r"Cannot make_shape_compatible",
     "Blocks that meet have one shape, or 1 where they differ: check which sides say [:, None] and which [None, :]."),
    (r"Mask argument cannot be block type if pointer",
     "A block of values has a block of addresses: pointer + offsets, one for each lane."),
    (r"Unsupported ptr type",
     "tl.load and tl.store take the address first: a pointer, or a pointer plus offsets."),
    (r"cannot cast pointer<", "An address stands where values belong: tl.load(address) gives them."),
    (r"constexpr.* is not string", 'In a kernel the first argument of print is a text: print("offs", offs).'),
    (r"PassManager::run failed",
     "The compiler gave up without naming a line. Mend what the other tests say first; and a kernel returns nothing, "
     "its results go out by tl.store."),
    (r"Did you forget to add @triton\.jit|outside of the scope of a kernel",
     "tl.* works only inside a function with @triton.jit, started as kernel[grid](…)."),
    (r"'(int|constexpr)' object has no attribute 'to'",
     "An argument that is 1 becomes a constant, which has no .to(): convert what it is multiplied with, "
     "offs.to(tl.int64) * stride."),
    (r"multiple comparison",
     "Write (low <= x) & (x < high): a chain of comparisons needs Triton 3.9 or later."),
    (r"failed to specialize argument of type",
     "Pass plain Python numbers to a kernel: int(n), float(x)."),
    (r"'NoneType' object is not subscriptable.*|'function' object is not subscriptable",
     "kernel[grid](…) needs @triton.jit above the kernel."),
    (r"0 active drivers", "That question needs a GPU; ask inside the entry, not while the file is imported."),
    (r"[Dd]ata-dependent|dynamic_func|Only .* can be used in .* jit",
     "That is Python, but not Triton: a kernel may use if, for, while, tl.* and arithmetic."),
    (r"can't convert cuda|Torch not compiled with CUDA|No CUDA GPUs|Found no NVIDIA driver",
     "There is no GPU on this machine; allocate with device=x.device, which works everywhere."),
    (r"unrecognised|unexpected keyword",
     "A launch takes the kernel's own parameters, num_warps, num_stages and num_ctas."),
)  # fmt: skip


# what CUDA's math library has and tl has not
_LIBDEVICE = "tan tanh sinh cosh asin acos atan pow log1p expm1 log10 cbrt isnan isinf round rint trunc fmod".split()


def hint(error: BaseException, code: str = "") -> str:
    """Return what to do next about ``error``, raised at the learner's line ``code``; empty when nothing is known."""
    text = f"{type(error).__name__}: {said(error)}"
    if isinstance(error, AssertionError) and not said(error) and error.__traceback__ is not None:
        text += (traceback.extract_tb(error.__traceback__)[-1].line or "").strip()
    asks = isinstance(error, AssertionError) and re.search(r"is_cuda|\.device\b", code)
    if asks or re.search(r"(?i)\b(cuda|gpu) tensor|\bon (cuda|(a|the) gpu)\b", text):
        return (
            "Without a GPU the tensors are on the CPU, so this check cannot hold here. Remove it, or compare devices "
            "with each other: assert x.device == out.device."
        )
    if "Did you forget to add @triton.jit" in text and re.search(r"\w\[(?![:N])", code):
        return "A kernel has no x[i]: tl.load(x_ptr + i) reads, tl.store(x_ptr + i, value) writes."
    for pattern, advice in _HINTS:
        if re.search(pattern, text):
            return advice
    missing = re.search(r"module 'triton\.language[\w.]*' has no attribute '(\w+)'", text)
    return _nearest(missing[1], getattr(error, "obj", None)) if missing else ""


def _nearest(name: str, module: Any) -> str:
    if name in _LIBDEVICE:
        return f"{name} is in CUDA's math library: from triton.language.extra import libdevice; libdevice.{name}(x)."
    close = difflib.get_close_matches(name, dir(module), n=1, cutoff=0.7)
    return f"Did you mean tl.{close[0]}?" if close else ""


def said(error: BaseException) -> str:
    """Return ``str(error)``, also for an exception that raises when it is asked for it."""
    try:
        return str(error).strip()
    except BaseException:
        return "(an exception whose message cannot be shown)"
