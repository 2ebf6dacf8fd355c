"""survivors: explanations are read, matched, and refused when they explain nothing."""

from __future__ import annotations

import pytest

from harness.errors import SpecError
from harness.mutation.mutate import mutants
from harness.mutation.survivors import FILE, load_explanations, stale, template
from harness.tests.toys import SOLUTION

ENTRY = """
[[mutant]]
operator = "comparison"
line = "mask = offs < n"
becomes = "mask = offs <= n"
why = "For the sake of this test."
"""


@pytest.fixture
def explained(tmp_path):
    """Return a function: the text of an equivalent.toml -> what it explains."""

    def load(text):
        folder = tmp_path / "01_double"
        folder.mkdir(exist_ok=True)
        (folder / FILE).write_text(text, encoding="utf-8")
        return load_explanations(folder)

    return load


def one(operator, after):
    return next(m for m in mutants(SOLUTION) if m.operator == operator and m.after == after)


def test_no_file_explains_nothing(tmp_path):
    assert load_explanations(tmp_path) == []


def test_an_explanation_covers_its_mutant_and_no_other(explained):
    (found,) = explained(ENTRY)

    assert found.kind == "equivalent"
    assert [m.after for m in mutants(SOLUTION) if found.covers(m)] == ["mask = offs <= n"]


def test_one_explanation_may_stand_for_several_mutants_of_a_line(explained):
    text = ENTRY.replace('"comparison"', '"constant"').replace(
        '"mask = offs < n"', '"double_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)"'
    )
    both = "double_kernel[(triton.cdiv(x.numel(), {},)](x, out, x.numel(), BLOCK={})"
    becomes = [both.format("65)", 64), both.format("64)", 65)]
    (found,) = explained(text.replace('"mask = offs <= n"', str(becomes).replace("'", '"')))

    assert sorted(m.after for m in mutants(SOLUTION) if found.covers(m)) == sorted(becomes)


def test_nth_chooses_among_equal_lines(explained):
    source = SOLUTION.replace("mask = offs < n\n", "mask = offs < n\n    mask = offs < n\n")
    both, second = explained(ENTRY), explained(ENTRY + "nth = 2\n")

    def covered(e):
        return [m.nth for m in mutants(source) if e.covers(m)]

    assert (covered(both[0]), covered(second[0])) == ([1, 2], [2])


@pytest.mark.parametrize(("text", "says"), [
    ("a = ", "solutions/01_double/equivalent.toml is no valid TOML: "),
    ("a = 1", "solutions/01_double/equivalent.toml: expected nothing but tables [[mutant]]; found a."),
    ("mutant = 3", "solutions/01_double/equivalent.toml: expected nothing but tables [[mutant]]; found mutant."),
    (ENTRY.replace("why", "because"), "solutions/01_double/equivalent.toml, mutant 1: key 'because' is unknown; expected operator, line, "),
    (ENTRY.replace('"For the sake of this test."', '""'), "solutions/01_double/equivalent.toml, mutant 1: why is missing; expected operator, line, becomes and why."),
    (ENTRY.replace('"For the sake of this test."', "3"), "solutions/01_double/equivalent.toml, mutant 1: why = 3 has the wrong type; see the other entries."),
    (ENTRY.replace('"comparison"', '"comparsion"'), "solutions/01_double/equivalent.toml, mutant 1: operator 'comparsion' is unknown; expected one of drop-mask, "),
    (ENTRY + 'kind = "slow"\n', "solutions/01_double/equivalent.toml, mutant 1: kind 'slow' is unknown; expected equivalent or out of reach."),
])  # fmt: skip
def test_a_bad_file_is_one_sentence(explained, text, says):
    with pytest.raises(SpecError) as caught:
        explained(text)

    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value).removeprefix(says)


def test_an_explanation_without_a_mutant_is_stale(explained):
    found = explained(ENTRY + ENTRY.replace("<= n", "<= m"))

    assert stale(found, mutants(SOLUTION), []) == [
        "explains a mutant that does not exist (comparison: 'mask = offs < n' -> 'mask = offs <= m'); "
        "take it out, or mend its text."
    ]


def test_an_explanation_of_a_mutant_that_dies_is_false(explained):
    found, dead = explained(ENTRY), one("comparison", "mask = offs <= n")

    assert stale(found, mutants(SOLUTION), [dead]) == [
        "explains a mutant that dies, in line 9 (comparison: 'mask = offs < n' -> 'mask = offs <= n'); "
        "take it out, or set nth."
    ]


@pytest.mark.parametrize("index", range(0, 30, 3))
def test_the_entry_that_is_offered_explains_the_mutant_once_it_has_a_reason(explained, index):
    mutant = mutants(SOLUTION.replace("other=0", 'other=float("-inf")'))[index]
    (found,) = explained(template(mutant, repeated=True).replace('why = ""', 'why = "It is so."'))

    assert found.covers(mutant)
