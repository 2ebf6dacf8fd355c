"""The kernels that only run on a GPU compile for the GPUs that the course names; what they do is seen on a GPU alone."""

import os
import subprocess
import sys

from harness.course import ROOT

CODE = """
import sys, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from harness.measured import cuda_device, gpu_probes
kernels = [
    (gpu_probes.empty_kernel, {"out_ptr": "*i32"}, {}),
    (gpu_probes.read_kernel, {"x_ptr": "*i32", "out_ptr": "*i32", "blocks": "i32", "repeats": "i32"}, {"BLOCK": 4096}),
    (gpu_probes.chase_kernel, {"next_ptr": "*i32", "out_ptr": "*i32", "hops": "i32"}, {}),
    (gpu_probes.atomic_kernel, {"out_ptr": "*fp32"}, {"STEP": 0, "BLOCK": 1024}),
    (gpu_probes.atomic_kernel, {"out_ptr": "*fp32"}, {"STEP": 1, "BLOCK": 1024}),
    (cuda_device.spin_kernel, {"out_ptr": "*i64", "nanoseconds": "i64"}, {}),
]
for fn, signature, constants in kernels:
    signature = signature | {k: "constexpr" for k in constants}
    for sm in (75, 90):
        ptx = triton.compile(ASTSource(fn, signature, constexprs=constants), target=GPUTarget("cuda", sm, 32)).asm["ptx"]
        words = {"read_kernel": "ld.global.cg", "chase_kernel": "ld.global", "spin_kernel": "globaltimer"}
        words["atomic_kernel"] = "red" if "red." in ptx else "atom"
        assert words.get(fn.__name__, "") in ptx, ptx
        if fn.__name__ in ("chase_kernel", "spin_kernel", "read_kernel"):
            assert "bra" in ptx  # the loop is still there
print("ok")
"""


def test_probes_compile(tmp_path):
    file = tmp_path / "compile_probes.py"
    file.write_text(CODE, encoding="utf-8")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    env.pop("TRITON_INTERPRET", None)
    done = subprocess.run([sys.executable, str(file)], env=env, capture_output=True, text=True, check=False)

    assert done.stdout == "ok\n", done.stderr[-3000:]
