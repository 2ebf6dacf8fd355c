"""Compares the repaired interpreter with a GPU, operation by operation, bit by bit.

    python harness/tests/gpu/numerics_on_gpu.py RESULT.json [--second 64] [--only PART]
    TRITON_INTERPRET=1 python harness/tests/gpu/numerics_on_gpu.py RESULT.json --dry     # tries the script: no GPU

Each operation runs compiled on the GPU and, in a child process on the same machine, interpreted with
`harness.interpreted.numerics`, on all 65536 bfloat16 and float16 patterns against a spread of second operands (or on samples, for
wider types). A NaN matches a NaN. Needs torch, triton and ml_dtypes, and no pytest. The exit status is 1 if an
operation that should be exact is not, 0 otherwise.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from harness.tests.gpu.patterns import (  # noqa: E402 - found through the line above when run as a script
    DOTS,
    OPS,
    dot_operands,
    operands,
    same,
    ulp_distance,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", type=pathlib.Path, help="where to write the JSON")
    parser.add_argument("--second", type=int, default=64, help="how many second operands each pattern meets")
    parser.add_argument("--only", default="", help="run only the operations with this in their names")
    parser.add_argument("--dry", action="store_true", help="no GPU: interpret on both sides, to try this script")
    args = parser.parse_args()
    keys = [k for k in [*OPS, *DOTS] if args.only in k]
    with tempfile.TemporaryDirectory() as folder:
        children = _interpret(folder, args.second, keys)
        rows = [_row(key, args, folder, child) for key, child in zip(keys, _rotate(children, keys), strict=True)]
    report = {"device": _device(args.dry), "versions": _versions(), "second": args.second, "rows": rows}
    args.result.write_text(json.dumps(report, indent=1) + "\n")
    _print(rows)
    return int(any(r.get("error") or (r["exact"] and r["mismatches"]) for r in rows))


def _interpret(folder: str, second: int, keys: list[str], jobs: int = 4) -> list[subprocess.Popen]:
    """Starts child processes that interpret the operations, every jobs-th each, and save the results."""
    env = {**os.environ, "TRITON_INTERPRET": "1"}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT), env.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    command = [sys.executable, "-m", "harness.tests.gpu.one_op", folder, str(second)]
    return [subprocess.Popen([*command, *keys[i::jobs]], env=env, cwd=ROOT) for i in range(jobs)]


def _rotate(children: list[subprocess.Popen], keys: list[str]) -> list[subprocess.Popen]:
    return [children[i % len(children)] for i in range(len(keys))]


def _row(key: str, args: argparse.Namespace, folder: str, child: subprocess.Popen) -> dict:
    """Runs one operation on the GPU, waits for the interpreter's result and compares the two."""
    spec = OPS.get(key) or DOTS[key]
    row = {"key": key, "exact": spec.exact, "patterns": 0, "mismatches": 0}
    try:
        gpu = _on_gpu(key, args)
        interpreted = _wait(pathlib.Path(folder) / f"{key}.npy", child)
    except Exception as error:  # one operation that does not compile must not hide the others
        return {**row, "error": f"{type(error).__name__}: {error}"[:300]}
    mine = interpreted.view(gpu.dtype)
    differ = ~same(gpu, mine)
    row |= {"patterns": gpu.size, "mismatches": int(differ.sum())}
    if gpu.dtype.kind not in "iub":
        distance = ulp_distance(gpu, mine)
        row["max_ulp"] = int(distance.max())
        order = np.argsort(-distance, axis=None, kind="stable")[:3] if not spec.exact else np.flatnonzero(differ)[:3]
        if key in DOTS:
            row["error_in_eps"] = _relative_error(DOTS[key], gpu, mine)
    else:
        order = np.flatnonzero(differ)[:3]
    row["examples"] = [_example(key, args.second, int(i), gpu, mine) for i in order if differ.reshape(-1)[i]]
    return row


def _on_gpu(key: str, args: argparse.Namespace) -> np.ndarray:
    from harness.tests.gpu import one_op

    if args.dry:
        one_op.interpret_with_numerics()
    return one_op.result(key, args.second, "cpu" if args.dry else "cuda")


def _wait(path: pathlib.Path, child: subprocess.Popen) -> np.ndarray:
    """The result that the child saves, or will save."""
    while not path.exists():
        if child.poll() is not None and not path.exists():
            raise RuntimeError(f"the interpreter ended with status {child.returncode} before this operation")
        time.sleep(0.02)
    return np.load(path)


def _relative_error(dot, gpu: np.ndarray, mine: np.ndarray) -> float:
    """The largest difference, in units of 2**-24 of the sum of the products' magnitudes."""
    a, b = (np.abs(v.astype(np.float64)) for v in dot_operands(dot))
    difference = np.abs(gpu.astype(np.float64) - mine.astype(np.float64))
    return float((difference / np.maximum(a @ b, 1e-300)).max() * 2**24)


def _example(key: str, second: int, i: int, gpu: np.ndarray, mine: np.ndarray) -> str:
    def shown(array: np.ndarray) -> str:
        value = array.reshape(-1)[i : i + 1]
        number = int(value[0]) if value.dtype.kind in "iub" else float(value[0])
        return f"{number!r} (0x{int(value.view(f'u{value.itemsize}')[0]):0{2 * value.itemsize}x})"

    ins = [f"element {i}"] if key in DOTS or "reduce" in key else [shown(a) for a in operands(OPS[key], second)]
    return f"{', '.join(ins)} -> GPU {shown(gpu)}, interpreter {shown(mine)}"


def _device(dry: bool) -> str:
    import torch

    return "none: both sides interpreted" if dry else torch.cuda.get_device_name()


def _versions() -> dict[str, str]:
    import ml_dtypes
    import torch
    import triton

    names = {"torch": torch, "triton": triton, "numpy": np, "ml_dtypes": ml_dtypes}
    return {"python": sys.version.split()[0], **{name: m.__version__ for name, m in names.items()}}


def _print(rows: list[dict]) -> None:
    print(f"{'operation':44} {'patterns':>9} {'differ':>8} {'max ulp':>8}  verdict")
    for row in rows:
        if "error" in row:
            print(f"{row['key']:44} {'':27}  ERROR {row['error'].splitlines()[0][:120]}")
            continue
        word = "ok" if not row["mismatches"] else "DIFFERS" if row["exact"] else "approximate"
        note = f"  {row['error_in_eps']:.2f} eps" if row.get("error_in_eps") else ""
        print(f"{row['key']:44} {row['patterns']:9} {row['mismatches']:8} {row.get('max_ulp', ''):>8}  {word}{note}")
        for example in row["examples"]:
            print(f"    {example}")
    exact = [r for r in rows if r["exact"] and "error" not in r]
    wrong = [r["key"] for r in exact if r["mismatches"]]
    failed = [r["key"] for r in rows if "error" in r]
    print(f"{len(exact) - len(wrong)} of {len(exact)} exact operations agree bit for bit; {len(failed)} could not run")
    print(f"differ: {', '.join(wrong) or 'none'}")


if __name__ == "__main__":
    sys.exit(main())
