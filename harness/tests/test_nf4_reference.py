"""05_nf4's reference is bitsandbytes to the bit: stored vectors, golden numbers, real layers where it is installed."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
SOLUTION = ROOT / "solutions" / "05_nf4" / "kernel.py"
VECTORS = json.loads((Path(__file__).parent / "data" / "nf4_vectors.json").read_text(encoding="utf-8"))["vectors"]
# the packed codes of linspace(-1, 1, 64), as bitsandbytes 0.50.2 has them
LINSPACE = "00000111111112222233344445556667788899aaabbbccccddddeeeeeeefffff"
no_bitsandbytes = pytest.mark.skipif(
    importlib.util.find_spec("bitsandbytes") is None, reason="bitsandbytes is not installed (it is in the extra `dev`)"
)


@pytest.fixture(scope="module")
def nf4() -> ModuleType:
    """The kata's reference.py, loaded by its path as the harness does it."""
    spec = importlib.util.spec_from_file_location("nf4_reference", ROOT / "exercises" / "05_nf4" / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tensor(text: str, dtype: torch.dtype) -> torch.Tensor:
    """Return the tensor whose bytes ``text`` holds in base64."""
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=dtype)


def raw(values: torch.Tensor) -> bytes:
    """Return a tensor's bytes in row-major order."""
    return values.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def state_of(nf4: ModuleType, vector: dict):
    """Return the quant_state of a stored vector."""
    nested = vector.get("nested")
    state = nf4.QuantState(
        absmax=tensor(vector["absmax"], torch.uint8 if nested else torch.float32),
        code=torch.tensor(nf4.NF4),
        blocksize=vector["blocksize"],
        shape=torch.Size(vector["shape"]),
        dtype=getattr(torch, vector["stored"]),
    )
    if nested:
        state.offset = tensor(nested["offset"], torch.float32).reshape(())
        absmax2 = tensor(nested["absmax"], torch.float32)
        state.state2 = nf4.QuantState(absmax=absmax2, code=nf4.dynamic_map(), blocksize=nested["blocksize"])
    return state


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("vector", VECTORS, ids=[v["id"] for v in VECTORS])
def test_reference_gives_the_bits_of_bitsandbytes(nf4, vector, dtype):
    packed = tensor(vector["packed"], torch.uint8).view(-1, 1)
    out = nf4.reference(packed, state_of(nf4, vector), getattr(torch, dtype))

    expected = vector["out"][dtype]
    assert list(out.shape) == vector["shape"]
    if expected.startswith("sha256 "):
        assert hashlib.sha256(raw(out)).hexdigest() == expected.removeprefix("sha256 ")
    else:
        assert raw(out).hex() == base64.b64decode(expected).hex()


def test_vectors_have_odd_sizes_partial_blocks_several_blocksizes_and_groups():
    sizes = [math.prod(v["shape"]) for v in VECTORS]

    assert any(n % 2 for n in sizes)
    assert any(n % v["blocksize"] for n, v in zip(sizes, VECTORS, strict=True))
    assert {64, 256, 1024, 4096} <= {v["blocksize"] for v in VECTORS}
    assert any(v.get("nested") and len(base64.b64decode(v["nested"]["absmax"])) > 4 for v in VECTORS)


def test_tables_are_those_of_bitsandbytes(nf4):
    # digests of the tables of bitsandbytes 0.50.2, little-endian float32
    nf4_digest = "8501941daa1b8a90ad1bbfeb632e5101b5dddbc4bb52d6e55abcfd777e60c06a"
    map_digest = "e732639a65f497b4ad684bb166a4467708255edd5207757de8b8f0c7e1fda89c"

    assert hashlib.sha256(raw(torch.tensor(nf4.NF4))).hexdigest() == nf4_digest
    assert hashlib.sha256(raw(nf4.dynamic_map())).hexdigest() == map_digest


def test_golden_codes_of_a_ramp_decode_to_its_nearest_codes(nf4):
    packed = torch.tensor(list(bytes.fromhex(LINSPACE)), dtype=torch.uint8).view(-1, 1)
    state = nf4.QuantState(torch.ones(1), torch.tensor(nf4.NF4), 64, torch.Size((64,)), torch.float32)
    ramp, codes = torch.linspace(-1, 1, 64), torch.tensor(nf4.NF4)
    nearest = codes[(ramp[:, None] - codes).abs().argmin(1)]

    assert torch.equal(nf4.reference(packed, state, torch.float32), nearest)


def test_golden_nested_absmax_is_rebuilt(nf4):
    # 512 blocks whose absmax is 1/512, 2/512, ..., 1, as bitsandbytes 0.50.2 stores them
    stored = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1] + [253, 253, 253, 253, 254, 254, 254, 255], dtype=torch.uint8)
    true = torch.cat((torch.arange(1, 9), torch.arange(505, 513))) / 512
    state = nf4.QuantState(stored, torch.tensor(nf4.NF4), 64, torch.Size((1024,)), torch.float32)
    state.offset = torch.tensor(0.5009765625)
    state.state2 = nf4.QuantState(torch.tensor([0.4990234375]), nf4.dynamic_map(), 256)
    code_8_of_each_byte = torch.full((512, 1), 0xFF, dtype=torch.uint8)  # 15 stands for 1.0: the weights are absmax

    absmax = nf4.reference(code_8_of_each_byte, state, torch.float32).view(16, 64)

    assert torch.equal(absmax, absmax[:, :1].expand(16, 64))
    gap = 0.0140625 * 0.4990234375  # between neighbouring codes of the map, at its ends
    assert ((absmax[:, 0] - true).abs() <= gap / 2 * 1.001).all()
    assert absmax[-1, 0] == 1.0


def test_error_bound_covers_a_fused_multiply_add(nf4):
    """In float64 the nested absmax is made without inner roundings; float32's answer lies within the bound of it."""
    vector = next(v for v in VECTORS if v["id"] == "two-groups")
    packed, state = tensor(vector["packed"], torch.uint8).view(-1, 1), state_of(nf4, vector)
    exact = state_of(nf4, vector)
    exact.code, exact.offset = exact.code.double(), exact.offset.double()
    exact.state2.code, exact.state2.absmax = exact.state2.code.double(), exact.state2.absmax.double()

    rounded = nf4.reference(packed, state, torch.float32).double()
    error = (rounded - nf4.reference(packed, exact, torch.float64)).abs()
    bound = nf4.error_bound(rounded, packed, state, torch.float32)

    assert (error <= bound).all()
    assert (bound <= 1e-6 * 0.1).all()


LAYERS = """
import json, sys, torch, bitsandbytes
from pathlib import Path

root, kernel = Path(sys.argv[1]), Path(sys.argv[2])
torch.compiler.set_stance("force_eager")
jobs = []
shapes = (192, 576, True, "bfloat16"), (192, 576, False, "float16"), (33, 128, True, "float16")
for outs, ins, nested, dtype in shapes:
    torch.manual_seed(outs)
    layer = bitsandbytes.nn.Linear4bit(ins, outs, bias=False, compress_statistics=nested, quant_type="nf4").to("cpu")
    weight, dtype = layer.weight, getattr(torch, dtype)
    assert weight.data.dtype == torch.uint8 and weight.quant_state.nested == nested
    weight.quant_state.dtype = dtype
    expected = bitsandbytes.functional.dequantize_4bit(weight.data, weight.quant_state)
    weight.quant_state.dtype = torch.float32  # what was quantised: the argument wins
    jobs.append((weight.data, weight.quant_state, dtype, expected))

quantize = bitsandbytes.functional.quantize_4bit
ramp = torch.linspace(-1, 1, 64)
packed, state = quantize(ramp, blocksize=64, quant_type="nf4")
rows = (ramp.repeat(512, 1) * ((torch.arange(512) + 1) / 512)[:, None]).contiguous()
_, nested = quantize(rows, blocksize=64, quant_type="nf4", compress_statistics=True)
golden = [bytes(packed.flatten().tolist()).hex(), state.absmax.tolist(), nested.offset.item()]
golden += [nested.state2.absmax.tolist(), nested.absmax[:8].tolist(), nested.absmax[-8:].tolist()]

sys.path.insert(0, str(root))
import importlib.util
spec = importlib.util.spec_from_file_location("nf4_reference", root / "exercises/05_nf4/reference.py")
nf4 = importlib.util.module_from_spec(spec)
spec.loader.exec_module(nf4)
same = lambda a, b: a.dtype == b.dtype and torch.equal(a.view(torch.int16), b.reshape(a.shape).view(torch.int16))
found = {"golden": golden, "kernel": []}
found["reference"] = [same(nf4.reference(p, s, d), e) for p, s, d, e in jobs]
if kernel.exists():
    from harness.interpreted import interpreter
    from harness.runner import standin, wire
    from harness.runner.child import Blobs, Plan, run_calls
    from harness.device import find_device
    from harness.spec import load_spec

    interpreter.prepare()
    standin.install(find_device("H200"))
    for p, s, d, e in jobs:
        blobs = Blobs()
        seen = run_calls(load_spec(root / "exercises/05_nf4"), kernel, [(p, s, d)], [Plan(order=1)], blobs)
        call = seen["calls"][0]
        assert not call.get("raised") and not call["violation"] and not call.get("mutated"), call
        out = torch.from_numpy(wire.array(call["output"]["values"], blobs.parts).copy()).view(d).reshape(s.shape)
        found["kernel"].append(same(out, e) and len(call["launches"]) == 1)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def layers() -> dict:
    """What became of real layers, made in a process of its own: this one must not import triton for good."""
    env = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LAYERS, str(ROOT), str(SOLUTION)], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@no_bitsandbytes
def test_real_layers_go_through_the_reference(layers):
    assert layers["reference"] == [True] * 3


@no_bitsandbytes
@pytest.mark.skipif(not SOLUTION.exists(), reason="this branch has no solutions")
def test_real_layers_go_through_the_solution(layers):
    assert layers["kernel"] == [True] * 3


@no_bitsandbytes
def test_golden_codes_are_those_that_bitsandbytes_makes_today(layers):
    first, last = [0, 0, 0, 0, 1, 1, 1, 1], [253, 253, 253, 253, 254, 254, 254, 255]

    assert layers["golden"] == [LINSPACE, [1.0], 0.5009765625, [0.4990234375] * 2, first, last]
