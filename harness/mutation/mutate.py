"""Mutants: every small mistake that a fixed list of operators can make in a Triton kernel. No torch here.

``mutants(source)`` is pure: a file's text in, changed texts out. The operators that a kernel invites stand in
``mutate_kernel``, those that any program invites in ``mutate_plain``. Two libraries were looked at first, and neither
fits: mutmut has no operators of one's own (a mask or a stride means nothing to it) and hides every mutant of a function
behind one dispatching function, whose source Triton would then compile; cosmic-ray takes operators but writes each
mutant over the file in the tree, one at a time, and starts the tests anew for each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.mutation import mutate_kernel as kernel
from harness.mutation import mutate_plain as plain
from harness.mutation.edits import Code, Edit

Operator = Callable[[Code], Iterator[list[Edit]]]


@dataclass(frozen=True)
class Mutant:
    """One changed file.

    Attributes:
        operator: the name of the operator, one of ``OPERATORS``.
        line: number of the first changed line, from 1.
        before: that line as it was, stripped.
        after: the line as it is in the mutant, stripped.
        nth: how often ``before`` has stood in the file up to this line: 1 for the first.
        source: the whole changed file.
    """

    operator: str
    line: int
    before: str
    after: str
    nth: int
    source: str

    @property
    def digest(self) -> str:
        """Eight digits that name this mutant wherever its line stands in the file."""
        text = "\0".join((self.operator, self.before, self.after, str(self.nth)))
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def mutants(source: str, huge: bool = False) -> list[Mutant]:
    """Return the mutants of a file, by operator and line; no two have the same text.

    Args:
        huge: whether a case of the kata passes 2**31 elements, which is where ``drop-int64`` could be seen at all.
    """
    code, seen, out = Code(source), {source}, []
    for name, operator in OPERATORS.items():
        if name == "drop-int64" and not huge:
            continue
        for edits in operator(code):
            changed = code.apply(edits)
            if changed is not None and changed not in seen:
                seen.add(changed)
                out.append(_mutant(name, code, changed))
    return out


def _mutant(operator: str, code: Code, changed: str) -> Mutant:
    old, new = code.source.splitlines(), changed.splitlines()
    at = next(i for i in range(len(old)) if i >= len(new) or old[i] != new[i])
    before = old[at].strip()
    nth = sum(line.strip() == before for line in old[: at + 1])
    return Mutant(operator, at + 1, before, new[at].strip() if at < len(new) else "", nth, changed)


OPERATORS: dict[str, Operator] = {
    "drop-mask": kernel.drop_mask,
    "widen-mask": kernel.widen_mask,
    "swap-strides": kernel.swap_strides,
    "off-by-one-bound": plain.off_by_one_bound,
    "comparison": plain.comparison,
    "drop-max": kernel.drop_max,
    "lower-dtype": kernel.lower_dtype,
    "accumulate-fp16": kernel.accumulate_fp16,
    "skip-tail": kernel.skip_tail,
    "wrong-axis": kernel.wrong_axis,
    "wrong-program-id": kernel.wrong_program_id,
    "other-value": plain.other_value,
    "constant": plain.constant,
    "swap-operands": plain.swap_operands,
    "arithmetic": plain.arithmetic,
    "min-max": plain.min_max,
    "negate-branch": plain.negate_branch,
    "drop-statement": plain.drop_statement,
    "drop-contiguous": plain.drop_contiguous,
    "drop-int64": plain.drop_int64,
}
