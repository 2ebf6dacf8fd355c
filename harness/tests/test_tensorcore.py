"""The tensor core of a scheduler: its warps take turns, and a group is ready when its last product is."""

from __future__ import annotations

from harness.model.tensorcore import Groups, TensorCore


def served(core, ends=8):
    """Run everything: (warp, when it ends) of each product, in order."""
    at, order = 0.0, []
    while (cycles := core.begin()) is not None and len(order) < ends:
        at += cycles
        warp, _ = core.finish(at)
        order.append((warp, at))
    return order


def test_warps_take_turns_however_many_products_one_has():
    core, groups = TensorCore(3), Groups()
    for warp in (0, 0, 0, 2):
        core.add(warp, 10.0, groups, False)

    assert [warp for warp, _ in served(core)] == [2, 0, 0, 0]


def test_two_warps_that_share_it_take_twice_as_long_each():
    core, mine, other = TensorCore(2), Groups(), Groups()
    for _ in range(4):
        core.add(0, 10.0, mine, True)
        core.add(1, 10.0, other, True)
    served(core)

    assert abs(mine.ready[-1] - other.ready[-1]) == 10.0
    assert max(mine.ready[-1], other.ready[-1]) == 80.0


def test_only_one_product_runs_at_a_time():
    core, groups = TensorCore(1), Groups()
    core.add(0, 10.0, groups, False)
    core.add(0, 10.0, groups, True)

    assert core.begin() == 10.0
    assert core.begin() is None
    core.finish(10.0)
    assert core.begin() == 10.0
    core.finish(25.0)
    assert (groups.closed, groups.ready) == (1, [25.0])


def test_with_nothing_to_do_nothing_begins():
    assert TensorCore(2).begin() is None
