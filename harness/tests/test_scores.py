"""Scores of modelled against measured times, and the picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from harness.zoo.picture import log_log
from harness.zoo.scores import Row, score, shares


def rows(*times, family="f"):
    return [Row(family, f"v{i}", measured, modelled) for i, (measured, modelled) in enumerate(times)]


def test_an_exact_model_is_right_about_everything():
    found = score(rows((1e-4, 1e-4), (2e-4, 2e-4), (1e-3, 1e-3)))

    assert (found.error, found.bias, found.ordered, found.agree, found.decided) == (1, 1, 1, 1, 1)
    assert found.false_pass == found.false_fail == ()
    assert found.worst_pass == 1


def test_the_error_counts_both_directions_and_the_bias_does_not():
    found = score(rows((1e-4, 2e-4), (1e-4, 0.5e-4)))

    assert found.error == pytest.approx(2)
    assert found.bias == pytest.approx(1)


@pytest.mark.parametrize(("modelled", "passes", "fails", "decided"), [
    (1.1e-4, ("f/v1",), (), 1.0), (1.45e-4, (), (), 0.5), (5e-4, (), (), 1.0),
])  # fmt: skip
def test_a_slow_kernel_that_the_model_takes_for_fast_is_a_false_pass(modelled, passes, fails, decided):
    found = score(rows((1e-4, 1e-4), (3e-4, modelled)))

    assert (found.false_pass, found.false_fail, found.decided) == (passes, fails, decided)
    assert found.worst_pass == pytest.approx(1 / 3 if passes else 1)


def test_a_fast_kernel_that_the_model_takes_for_slow_is_a_false_fail():
    assert score(rows((1e-4, 1e-4), (1.1e-4, 4e-4))).false_fail == ("f/v1",)


def test_pairs_that_measured_alike_have_no_order():
    assert score(rows((1e-4, 2e-4), (1.05e-4, 1e-4))).ordered == 1
    assert score(rows((1e-4, 2e-4), (1.2e-4, 1e-4))).ordered == 0


def test_families_are_not_compared_with_each_other():
    both = rows((1e-4, 1e-4)) + rows((9e-4, 1e-5), family="g")

    assert [(a, b) for _, a, b in shares(both)] == [(1, 1), (1, 1)]


def test_no_rows_have_no_score():
    with pytest.raises(ValueError, match="no rows"):
        score([])


def test_the_picture_has_a_dot_for_each_variant_inside_its_frame():
    svg = ET.fromstring(log_log(rows((1e-4, 2e-4), (3e-2, 1e-6))))
    dots = [e for e in svg.iter() if e.tag.endswith("circle")]
    side = float(svg.get("viewBox").split()[2])

    assert len(dots) == 2
    assert all(0 < float(d.get(k)) < side for d in dots for k in ("cx", "cy"))
    assert "f/v0: 100.0 us measured, 200.0 us modelled" in "".join(svg.itertext())
