"""Schedule: one scheduler of an SM, issuing the instructions of its warps in order. No torch.

See ``harness.model.warpsim`` for what is modelled; here is the loop that does it, plain and quick.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.model import patience
from harness.model.made import (
    ASYNC,
    BARRIER,
    COMMIT,
    DEPBAR,
    EXPECT,
    FENCE,
    FLUSH,
    HMMA,
    LOAD,
    TMA_LOAD,
    TMA_STORE,
    TMA_WAIT,
    WGMMA,
    WGWAIT,
    Made,
)
from harness.model.tensorcore import Groups, TensorCore

FREE, PRODUCT = -1, -2  # what a turn is about that is no warp's
ASK = 1024  # turns between two looks at the clock
READ_EARLY = 12.0  # cycles until a memory instruction has read its registers
RETRY = 40.0  # cycles until a warp looks again for a TMA load that nobody has started yet


class Warp:
    """Where one warp is: its next instruction, its scoreboards, its asynchronous groups."""

    __slots__ = ("at", "board", "owner", "copies", "groups", "asleep", "hmma", "slot", "number", "tma")

    def __init__(self, slot: int, number: int) -> None:
        self.slot, self.number = slot, number
        self.start()

    def start(self) -> None:
        """Begin a new CTA."""
        self.at, self.tma = 0, 0
        self.board: list[list[float]] = [[], [], [], [], [], []]
        self.owner = [0] * 6
        self.copies = 0.0
        self.groups = Groups()
        self.asleep: tuple[int, float, int] | None = None  # for which group, since when, of which line
        self.hmma: dict[int, float] = {}


@dataclass
class Outcome:
    """Cycles of the ``first`` round and of each following one (``steady``); ``stalls``: waits by line, of one CTA."""

    first: float
    steady: float
    stalls: dict[int, float]


class Scheduler:
    """One of four schedulers, with its share of the warps of ``residents`` CTAs."""

    def __init__(self, made: Sequence[Made], way: Sequence[int], warps: int, residents: int, costs: Any) -> None:
        self.way = [made[i] for i in way]
        self.issuing = costs.beside_products if any(m.kind == WGMMA for m in self.way) else 1.0
        self.costs, self.all_warps = costs, warps
        self.mine = max(1, round(warps / 4))  # warps of each CTA on this scheduler
        self.slots = residents if warps >= 4 else max(1, round(residents * warps / 4))
        # how many warps of the SM each simulated one stands for, where they share a queue
        self.stands = max(1.0, warps * residents / (self.mine * self.slots))
        self.warps = [Warp(s, n) for s in range(self.slots) for n in range(self.mine)]

    def run(self, generations: int) -> Outcome:
        """Run so many CTAs, at least 3, one after the other in every slot."""
        if not self.way:
            return Outcome(self.costs.program, self.costs.program, {})
        self.pipe: dict[str, float] = {}
        self.tensor = TensorCore(len(self.warps))
        self.issue = self.memory = self.shared = 0.0
        self.stalls: dict[int, float] = {}
        self.arrived: list[list[tuple[Warp, int, float]]] = [[] for _ in range(self.slots)]
        self.loads: list[list[float]] = [[] for _ in range(self.slots)]  # of each slot's TMA groups, when they land
        self.left = [generations] * self.slots
        self.ended = [0] * self.slots
        self.latest = [0.0] * self.slots
        self.ends: list[list[float]] = [[] for _ in range(self.slots)]
        # (when it may issue, what, since when it is ready, which warp): of several that may issue, the one that waits
        # longest goes; below 0 is what no warp does: a pipe that others wait for is free, a product has ended
        self.heap: list[tuple[float, int, float, Any]] = [(0.0, 0, 0.0, i) for i in range(len(self.warps))]
        self.queues: dict[str, list[tuple[float, int]]] = {}
        heapq.heapify(self.heap)
        turns = 0
        while self.heap or self._open_barriers():
            turns += 1
            if not turns % ASK:
                patience.check()
            when, kind, since, index = heapq.heappop(self.heap)
            if kind == PRODUCT:
                self._product_ended(when)
            elif kind == FREE:
                self._pipe_free(when, index)
            else:
                self._turn(when, since, self.warps[index], index)
        first = max(e[0] for e in self.ends)
        # between the end of the first round and the last but one: neither filling up nor running dry
        ends = sorted(end for slot in self.ends for end in slot)
        steady = (ends[(generations - 1) * self.slots - 1] - ends[self.slots - 1]) / (generations - 2)
        scale = 1.0 / (generations * self.mine * self.slots)
        return Outcome(first, steady, {k: v * scale for k, v in self.stalls.items()})

    def _turn(self, ready: float, since: float, warp: Warp, index: int) -> None:
        """Issue the warp's next instruction, or let the warp queue for the pipe that it needs."""
        if warp.at >= len(self.way):
            self._end(ready, warp)
            return
        here = self.way[warp.at]
        if here.share < 1.0 and warp.number and (warp.number + 0.5) / self.mine > here.share:
            warp.at += 1
            heapq.heappush(self.heap, (ready, 0, since, index))
            return
        free = self.pipe.get(here.pipe, 0.0)
        start = max(ready, self.issue)
        if free > start:
            queue = self.queues.setdefault(here.pipe, [])
            heapq.heappush(queue, (since, index))
            if len(queue) == 1:
                heapq.heappush(self.heap, (free, FREE, 0.0, here.pipe))
            return
        self._issue(start, here, warp, index)

    def _pipe_free(self, when: float, pipe: str) -> None:
        """Issue what waits longest for this pipe."""
        queue = self.queues[pipe]
        _, index = heapq.heappop(queue)
        warp = self.warps[index]
        here = self.way[warp.at]
        self._issue(max(when, self.pipe.get(pipe, 0.0), self.issue), here, warp, index)
        if queue:
            heapq.heappush(self.heap, (max(self.pipe.get(pipe, 0.0), when), FREE, 0.0, pipe))

    def _issue(self, start: float, here: Made, warp: Warp, index: int) -> None:
        self.issue = start + self.issuing
        if here.interval and here.kind != WGMMA:  # products run by themselves: they hold no warp
            self.pipe[here.pipe] = max(start, self.pipe.get(here.pipe, 0.0)) + here.interval
        warp.at += 1
        after = self._effect(start, here, warp, index)
        if after is not None:
            self._push(self._ready(after, warp), index)

    def _push(self, ready: float, index: int) -> None:
        heapq.heappush(self.heap, (ready, 0, ready, index))

    def _ready(self, after: float, warp: Warp) -> float:
        """Return when the next instruction's scoreboards are clear, and note who was waited for."""
        if warp.at >= len(self.way):
            return after
        following = self.way[warp.at]
        ready = after
        for b in following.waits:
            for done in warp.board[b]:
                if done > ready:
                    self._waited(warp.owner[b], done - ready)
                    ready = done
            warp.board[b].clear()
        if following.kind == HMMA:
            ready = max(ready, warp.hmma.get(following.target, 0.0))
        return ready

    def _waited(self, line: int, cycles: float) -> None:
        self.stalls[line] = self.stalls.get(line, 0.0) + cycles

    def _effect(self, t: float, here: Made, warp: Warp, index: int) -> float | None:
        """Do what the instruction does; return when the next one may issue, None when the warp sleeps."""
        after, kind = t + here.stall, here.kind
        done = t + here.latency
        if here.shared:
            self.shared = max(self.shared, t) + here.shared * self.stands
            done += max(0.0, self.shared - t - here.shared)
        if kind in (LOAD, ASYNC, TMA_LOAD):
            done = self._fetch(t, here, warp)
        elif kind == FENCE:
            done = max(t, self.shared) + here.latency  # what was stored before must be there
        elif kind == COMMIT:
            done = max(warp.copies, t)
        elif kind == DEPBAR:
            return self._outstanding(after, here, warp)
        elif kind == BARRIER:
            return self._barrier(after, here, warp, index)
        elif kind == WGMMA:
            self.tensor.add(index, here.interval, warp.groups, here.last)
            self._product(t)
        elif kind == WGWAIT:
            return self._products(after, here, warp)
        elif kind == HMMA:
            warp.hmma[here.target] = t + max(self.costs.hmma, here.interval)
        elif kind == EXPECT and not warp.number:
            self.loads[warp.slot].append(0.0)
        elif kind == TMA_WAIT:
            return self._landed(t, after, here, warp, index)
        elif kind == TMA_STORE:
            warp.copies = max(warp.copies, t + self.costs.tma_store)
        elif kind == FLUSH:
            warp.board[0].append(max(warp.copies, t))
        if here.write >= 0:
            warp.board[here.write].append(done)
            warp.owner[here.write] = here.line
        if here.read >= 0:
            read = done if kind == FENCE else self.shared if here.shared else 0.0
            warp.board[here.read].append(max(t + READ_EARLY, read))
        return after

    def _fetch(self, t: float, here: Made, warp: Warp) -> float:
        """Return when the data of a global load is there."""
        if here.kind == TMA_LOAD and warp.number:
            return t
        times = here.share * (self.all_warps if here.kind == TMA_LOAD else self.stands)
        self.memory = max(self.memory, t) + here.occupy * times
        done = max(self.memory, t) + here.latency
        if here.kind == ASYNC:
            warp.copies = max(warp.copies, done)
            return t + READ_EARLY
        if here.kind == TMA_LOAD:
            groups = self.loads[warp.slot]
            if groups:
                groups[-1] = max(groups[-1], done)
            else:
                groups.append(done)
            return t + READ_EARLY
        return done

    def _outstanding(self, after: float, here: Made, warp: Warp) -> float:
        """DEPBAR: wait until at most ``target`` of what holds scoreboard 0 is left."""
        pending = sorted(warp.board[0])
        gone = len(pending) - here.target
        if gone > 0:
            self._waited(here.line, max(0.0, pending[gone - 1] - after))
            after = max(after, pending[gone - 1])
            warp.board[0] = pending[gone:]
        return self._ready(after, warp)

    def _open_barriers(self) -> bool:
        """When every warp waits, let them go: those that would come are of a partition that is not followed."""
        stuck = [entry for waiting in self.arrived for entry in waiting]
        self.arrived = [[] for _ in range(self.slots)]
        for warp, index, arrived in stuck:
            self._push(self._ready(arrived + self.costs.barrier, warp), index)
        return bool(stuck)

    def _product(self, t: float) -> None:
        """Let the tensor core begin its next product, when it is free and has one."""
        cycles = self.tensor.begin()
        if cycles is not None:
            heapq.heappush(self.heap, (t + cycles, PRODUCT, 0.0, 0))

    def _product_ended(self, t: float) -> None:
        index, groups = self.tensor.finish(t + self.costs.wgmma)
        warp = self.warps[index]
        if warp.asleep and warp.groups is groups and warp.asleep[0] <= len(groups.ready):
            number, since, line = warp.asleep
            warp.asleep = None
            ready = max(since, groups.ready[number - 1])
            self._waited(line, ready - since)
            self._push(self._ready(ready, warp), index)
        self._product(t)

    def _products(self, after: float, here: Made, warp: Warp) -> float | None:
        """Wait until at most ``target`` groups of products are left; None when the warp sleeps until then."""
        number = warp.groups.closed - here.target
        if number <= 0:
            return after
        if number > len(warp.groups.ready):
            warp.asleep = (number, after, here.line)
            return None
        ready = max(after, warp.groups.ready[number - 1])
        self._waited(here.line, ready - after)
        return ready

    def _barrier(self, after: float, here: Made, warp: Warp, index: int) -> float | None:
        waiting = self.arrived[warp.slot]
        waiting.append((warp, index, after))
        if len(waiting) < self.mine:
            return None
        release = max(max(a for _, _, a in waiting), self.shared if self.mine > 1 else 0.0) + self.costs.barrier
        self.arrived[warp.slot] = []
        for other, number, arrived in waiting:
            self._waited(here.line, release - arrived)
            if other is not warp:
                self._push(self._ready(release, other), number)
        return release

    def _landed(self, t: float, after: float, here: Made, warp: Warp, index: int) -> float | None:
        """A wait for a barrier in shared memory: the next TMA group of this CTA."""
        groups = self.loads[warp.slot]
        if warp.tma >= len(groups) and warp.number and len(self.warps) > 1 and warp.tma < 10_000:
            other = self.warps[warp.slot * self.mine]
            if other.at < warp.at:
                warp.at -= 1
                self._push(t + RETRY, index)
                return None
        if warp.tma < len(groups):
            self._waited(here.line, max(0.0, groups[warp.tma] - after))
            after = max(after, groups[warp.tma])
        warp.tma += 1
        if here.write >= 0:
            warp.board[here.write].append(after)
        return after

    def _end(self, t: float, warp: Warp) -> None:
        """A warp is done; when all of its CTA are, the next CTA takes the slot."""
        slot = warp.slot
        self.ended[slot] += 1
        self.latest[slot] = max(self.latest[slot], t)
        if self.ended[slot] < self.mine:
            return
        end = self.latest[slot]
        self.ends[slot].append(end)
        self.ended[slot], self.loads[slot], self.arrived[slot] = 0, [], []
        self.left[slot] -= 1
        if self.left[slot]:
            for index, other in enumerate(self.warps):
                if other.slot == slot:
                    other.start()
                    self._push(end + self.costs.program, index)
