"""Sampling, on contenders whose times are invented: what counts, when it stops, and that nothing is hidden."""

import random

import pytest

from harness.measured.sampling import Rules, State, collect, interval, quartiles


class Bench:
    """Contenders with known times, and a clock that only they move."""

    def __init__(self, ours=2e-4, limit=1e-4, spread=0.01, cost=1e-3):
        self.draw, self.now, self.order, self.slept = random.Random(7), 0.0, [], []
        self.times = {"ours": ours, "limit": limit}
        self.spread, self.cost = spread, cost
        self.states = iter(())

    def contenders(self):
        return {name: lambda name=name: self.take(name) for name in self.times}

    def take(self, name):
        self.order.append(name)
        self.now += self.cost
        return self.times[name] * self.draw.gauss(1, self.spread)

    def run(self, states=(), **rules):
        self.states = iter(states)
        return collect(
            self.contenders(),
            Rules(**rules),
            lambda: next(self.states, State(1980)),
            lambda: self.now,
            self.slept.append,
        )


def test_the_share_is_the_limit_over_ours():
    found = Bench().run()

    assert found.low < found.share < found.high
    assert found.share == pytest.approx(0.5, rel=0.01)
    assert found.trusted and not found.discarded


def test_it_stops_when_it_is_sure():
    found = Bench(spread=0.001).run()

    assert found.stopped == "the interval is narrower than 0.8%"
    assert len(found.seconds["ours"]) == 30


def test_it_stops_after_the_most_rounds_or_when_time_is_up():
    assert Bench(spread=0.3).run(most=50).stopped == "50 rounds"
    found = Bench(spread=0.3, cost=0.1).run(seconds=1.95)
    assert found.stopped == "1.95 s were over"
    assert len(found.seconds["ours"]) == 10


def test_contenders_take_turns_in_alternating_order():
    bench = Bench()
    bench.run()

    assert bench.order[:6] == ["limit", "ours", "ours", "limit", "limit", "ours"]
    assert len(set(map(len, [bench.order[::2], bench.order[1::2]]))) == 1


def test_bursts_rest_in_between():
    bench = Bench(spread=0.3)
    bench.run(most=35, burst=10, pause=0.25)

    assert bench.slept == [0.25] * 3


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (State(1200, ("power limit",), 0), "throttled: power limit"),
        (State(1200, ("power limit", "temperature (software)"), 0), "throttled: power limit, temperature (software)"),
        (State(1980, (), 2), "outside load: 2 other processes on the GPU"),
    ],
)
def test_disturbed_rounds_are_kept_raw_and_left_out(state, why):
    """Every third round is disturbed, and ours then takes ten times as long."""
    bench = Bench()
    states = [state if i % 3 == 0 else State(1980) for i in range(400)]
    take = bench.take
    bench.take = lambda name: take(name) * (10 if name == "ours" and (len(bench.order) - 1) // 2 % 3 == 0 else 1)

    found = bench.run(states)

    assert found.share == pytest.approx(0.5, rel=0.01)
    assert set(found.discarded.values()) == {why}
    assert all(i % 3 == 0 for i in found.discarded)
    assert len(found.counted("ours")) == len(found.seconds["ours"]) - len(found.discarded)
    assert max(found.seconds["ours"]) > 10 * max(found.counted("ours")) / 1.2
    assert found.to_json()["discarded"][0] == {"round": 0, "why": why}


def test_when_hardly_anything_is_undisturbed_all_of_it_counts_and_is_not_trusted():
    states = [State(1980) if i % 20 == 0 else State(1200, ("power limit",)) for i in range(400)]
    found = Bench().run(states, most=60)

    assert not found.trusted
    assert len(found.discarded) == 57
    assert len(found.counted("ours")) == 60


def test_an_unknown_state_disturbs_nothing():
    assert State().disturbance() == ""


def test_the_interval_covers_as_often_as_it_says():
    hits = 0
    for seed in range(50):
        draw = random.Random(seed)
        ours = [2 * draw.gauss(1, 0.02) for _ in range(60)]
        limit = [draw.gauss(1, 0.02) for _ in range(60)]
        low, high = interval(ours, limit)
        hits += low <= 0.5 <= high

    assert hits >= 42


def test_quartiles():
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (2.0, 3.0, 4.0)
    assert quartiles([1.0]) == (1.0, 1.0, 1.0)
