"""``nox -s model``: the model against the recorded zoo: a table, a picture, the error of each family.

python -m harness.zoo.modelcheck [FAMILY …] [--gpu H200] [--sets D,H1] [--svg FILE] [--brief] [--write]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.device import Device, find_device
from harness.errors import KataError
from harness.model import estimate as model
from harness.zoo import data as zoodata
from harness.zoo import kept
from harness.zoo.picture import log_log
from harness.zoo.scores import Row, Scores, score, shares


class Broken(Exception):
    """A variant could not be compiled, read or traced here; the message is one sentence."""


def main(argv: list[str] | None = None) -> int:
    """Print the tables. Returns 1 when a variant could not be compiled, read or traced."""
    parser = argparse.ArgumentParser(prog="nox -s model --", description="The model against the recorded zoo.")
    parser.add_argument("families", nargs="*", help="families, or family/variant (default: all)")
    parser.add_argument("--gpu", default="H200", help="whose recorded times (default: H200)")
    parser.add_argument("--sets", default="", help="only these sets, as in the table of times: D,H1")
    parser.add_argument("--svg", type=Path, help="also write the log-log picture there")
    parser.add_argument("--brief", action="store_true", help="the scores only, not every variant")
    parser.add_argument("--write", action="store_true", help="keep the times and the picture, and README.md's table")
    args = parser.parse_args(argv)
    try:
        if args.write and (args.families or args.sets):
            raise KataError("--write keeps the whole zoo; leave out the families and the sets.")
        chosen = [v for v in zoodata.variants() if _wanted(v, args)]
        if not chosen:
            raise KataError(f"no recorded variant is called {' or '.join(args.families) or args.sets}.")
        rows, failed = evaluate(chosen, find_device(args.gpu))
    except KataError as error:
        print(error, file=sys.stderr)
        return 1
    if not args.brief and rows:
        print("\n".join([*variant_lines(rows), ""]))
    silent = [*(f"{r.family}/{r.variant}: {r.why}" for r in rows if not r.known), *failed]
    print("\n".join([*(score_lines(rows) if rows else []), *(f"not modelled: {f}" for f in silent)]))
    if args.svg and rows:
        args.svg.write_text(log_log(rows), encoding="utf-8")
    if args.write and rows and not failed:
        _keep(rows, find_device(args.gpu))
    return 1 if failed else 0


def _keep(rows: Sequence[Row], device: Device) -> None:
    version = zoodata.triton_version()
    path = kept.write(rows, version)
    path.with_suffix(".svg").write_text(log_log(rows, f"Triton {version} on {device.name}"), encoding="utf-8")
    kept.write_readme(kept.read(), device)
    print(f"written: {path.relative_to(kept.ROOT)}, its picture, and the table in README.md")


def _wanted(variant: zoodata.Variant, args: argparse.Namespace) -> bool:
    names = {variant.family, f"{variant.family}/{variant.name}"}
    return (not args.families or bool(names & set(args.families))) and (
        not args.sets or variant.set in args.sets.split(",")
    )


def evaluate(chosen: Sequence[zoodata.Variant], device: Device) -> tuple[list[Row], list[str]]:
    """Return a row for each variant, and a sentence for each about which there are no facts or no trace."""
    rows, failed = [], []
    with zoodata.Source(device) as source:
        for variant, compiled, traced in zoodata.all_of(source, list(chosen)):
            try:
                rows.append(_row(variant, compiled, traced, device))
            except Broken as error:
                failed.append(f"{variant.family}/{variant.name}: {error}")
    return rows, failed


def _row(variant: zoodata.Variant, compiled: dict[str, Any], traced: dict[str, Any], device: Device) -> Row:
    for answer in (compiled, traced):
        if "failed" in answer:
            raise Broken(answer["failed"])
    try:
        found = model.estimate(compiled, traced["runs"], device)
    except model.NoModel as error:
        return Row(variant.family, variant.name, variant.seconds, math.nan, set=variant.set, why=str(error))
    return Row(
        variant.family, variant.name, variant.seconds, found.seconds, found.binds, variant.set,
        {k: v * 1e6 for k, v in found.bars().items()},
    )  # fmt: skip


def variant_lines(rows: Sequence[Row]) -> list[str]:
    """Return the table: each variant, measured and modelled, with its shares and what binds it."""
    lines = ["family     variant                 measured    modelled  ratio  share  model  binds"]
    for row, measured, modelled in shares(rows):
        if not row.known:
            lines.append(f"{row.family:10} {row.variant:22} {row.measured * 1e6:9.1f}us not modelled")
            continue
        mark = "*" if (measured >= 0.7) != (modelled >= 0.7) else " "
        lines.append(
            f"{row.family:10} {row.variant:22} {row.measured * 1e6:9.1f}us {row.modelled * 1e6:9.1f}us  "
            f"{row.ratio:5.2f}  {measured:5.2f}  {modelled:5.2f}{mark} {row.binds}"
        )
    return lines


def score_lines(rows: Sequence[Row]) -> list[str]:
    """Return the scores of all rows, of each set and of each family."""
    lines = [
        "                 n  error   bias  ordered  agree  decided  false pass  false fail",
        _line("all", score(rows)),
    ]
    for name in sorted({r.set for r in rows}):
        lines.append(_line(f"set {name}", score([r for r in rows if r.set == name])))
    for name in dict.fromkeys(r.family for r in rows):
        lines.append(_line(name, score([r for r in rows if r.family == name])))
    whole = score(rows)
    for what, names in (("false passes", whole.false_pass), ("false fails", whole.false_fail)):
        if names:
            lines.append(f"{what} among the decided: {', '.join(names)}")
    lines.append(f"the slowest kernel that passes has {whole.worst_pass:.2f} of the best one's speed")
    return lines


def _line(name: str, s: Scores) -> str:
    return (
        f"{name:14} {s.count:3} {s.error:6.3f} {s.bias:6.3f}  {s.ordered:6.1%}  {s.agree:6.1%} {s.decided:6.1%}  "
        f"{len(s.false_pass):10} {len(s.false_fail):11}"
    )


if __name__ == "__main__":
    sys.exit(main())
