"""Patience: the model of a launch ends in time, and gives back the time that it was given."""

from __future__ import annotations

import pytest

from harness.model import patience


def test_without_a_limit_nobody_is_impatient():
    patience.check()


def test_after_its_time_it_raises_and_then_no_more():
    with pytest.raises(patience.Impatient), patience.within(0.0):
        sum(range(100_000))
        patience.check()
    patience.check()


def test_an_inner_limit_ends_with_its_block():
    with patience.within(60.0):
        with patience.within(-1.0), pytest.raises(patience.Impatient):
            patience.check()
        patience.check()
