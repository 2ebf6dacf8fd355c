"""Make nf4_vectors.json: weights that the bitsandbytes package quantised and dequantised on a CPU.

    python harness/tests/data/make_nf4_vectors.py

bitsandbytes has two CPU paths: native code, and plain torch where that does not apply. Both must give the same bits
here. They do not always: with AVX-512 the native one of 0.50.2 takes a wrong absmax where a block is longer than a row
(blocksize 1024, rows of 256). The shapes below avoid that.
"""

import base64
import hashlib
import json
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
# id, shape, blocksize, nested, dtype of the weights, standard deviation of the weights
VECTORS = (
    ("one-element", (1, 1), 64, False, "float32", 0.02),
    ("odd", (7, 13), 64, False, "bfloat16", 0.02),
    ("odd-nested", (33, 65), 64, True, "float32", 0.02),
    ("blocksize-256", (3, 300), 256, False, "float32", 0.02),
    ("blocksize-1024-nested", (1, 1100), 1024, True, "bfloat16", 0.02),
    ("blocksize-4096", (1, 4099), 4096, False, "float32", 0.02),
    ("zero-block", (2, 128), 64, True, "float32", 0.02),
    ("large", (5, 77), 64, False, "float32", 2000.0),
    ("tiny", (5, 77), 64, True, "float32", 1e-6),
    ("two-groups", (130, 130), 64, True, "float16", 0.02),
)


def text(tensor: torch.Tensor) -> str:
    """Return a tensor's bytes in base64."""
    return base64.b64encode(raw(tensor)).decode()


def raw(tensor: torch.Tensor) -> bytes:
    """Return a tensor's bytes in row-major order."""
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def dequantized(packed, state, dtype):
    """Return the weights in ``dtype`` as both CPU paths of bitsandbytes give them."""
    from bitsandbytes import functional
    from bitsandbytes.backends.default.ops import _dequantize_4bit_compute as portable

    state.dtype = dtype
    native = functional.dequantize_4bit(packed, state).reshape(state.shape)
    absmax = state.absmax
    if state.nested:
        absmax = functional.dequantize_blockwise(absmax, state.state2) + state.offset
    plain = getattr(portable, "__wrapped__", portable)(
        packed.reshape(-1), absmax, state.code, state.blocksize, state.shape, dtype
    ).reshape(state.shape)
    assert raw(native) == raw(plain), "bitsandbytes' two CPU paths differ"
    return native


def vector(name, shape, blocksize, nested, stored, deviation) -> dict:
    """Return one vector as plain values; outputs of more than 2500 elements as a digest."""
    from bitsandbytes import functional

    weights = torch.randn(shape, generator=torch.Generator().manual_seed(len(name))) * deviation
    if name == "zero-block":
        weights[0, :64] = 0
    packed, state = functional.quantize_4bit(
        weights.to(getattr(torch, stored)), blocksize=blocksize, compress_statistics=nested, quant_type="nf4"
    )
    made = {"id": name, "shape": list(shape), "blocksize": blocksize, "stored": stored, "packed": text(packed)}
    made |= {"absmax": text(state.absmax), "out": {}}
    if nested:
        made["nested"] = {"absmax": text(state.state2.absmax), "blocksize": state.state2.blocksize}
        made["nested"]["offset"] = text(state.offset)
    for dtype in ("float16", "bfloat16"):
        out = dequantized(packed, state, getattr(torch, dtype))
        small = out.numel() <= 2500
        made["out"][dtype] = text(out) if small else f"sha256 {hashlib.sha256(raw(out)).hexdigest()}"
    return made


def main() -> None:
    """Write the file."""
    import bitsandbytes

    torch.compiler.set_stance("force_eager")  # bitsandbytes compiles its plain path, once for each shape
    made = {"bitsandbytes": bitsandbytes.__version__, "vectors": [vector(*v) for v in VECTORS]}
    (HERE / "nf4_vectors.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
