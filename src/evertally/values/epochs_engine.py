"""The engine of sums whose bound changes from epoch to epoch.

Counts of sizes have one linear counter for the whole stream. Every epoch has a counter of its own for the sum, whose
noise is made for the bound of that epoch: inside one counter an event moves all later ticks, so noise must not follow a
bound that falls (users-and-domains 1.7). The bound is in the lane of the noise: another bound is other noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evertally.bounds.tails import Spread
from evertally.contract.inputs import IntArray
from evertally.contract.parts import Accuracy, Played
from evertally.contract.rows import dense, from_bytes, to_bytes
from evertally.counting.choose import Choice, build, model_of
from evertally.counting.linear import LinearEngine
from evertally.counting.process import path_bound
from evertally.counting.processes import Setting
from evertally.errors import ConfigurationError, StateError
from evertally.noise import ItemSource, Law, Source
from evertally.noise.reals import KnownReals, RealLaw, Reals
from evertally.secret import Secret
from evertally.values.epochs_bounds import Bounds, Epochs

SHOWN = 2  # numbers of a released row before the counts of sizes: total, bound


class InLane:
    """A source whose lanes have a name before them."""

    def __init__(self, source: Source, name: str) -> None:
        self._source, self._name = source, name
        self.order = source.order

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        return self._source.draws(f"{self._name}/{lane}", law, nodes, coordinates, first)

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> Reals | KnownReals:
        return self._source.reals(f"{self._name}/{lane}", law, nodes, coordinates, first)


@dataclass(frozen=True)
class EpochPlan:
    """Everything public about it: epochs, bounds, the process and budget of the counts and of the sums."""

    epochs: Epochs
    bounds: Bounds
    sizes: Choice
    sizes_setting: Setting
    sums: Choice
    sum_setting: Callable[[int, int], Setting]  # of the length of an epoch and its bound in steps

    def setting(self, epoch: int, place: int) -> Setting:
        return self.sum_setting(self.epochs.lengths[epoch], self.bounds.steps[place])


@dataclass(frozen=True, repr=False)
class EpochState(Secret):
    """Exact sums, and what of the released numbers is needed later: the last counts, and closed epochs' totals."""

    tick: int
    sizes: IntArray
    sums: IntArray
    shown: IntArray  # the last released row: total, bound, counts
    closed: int  # what closed epochs were released to sum up to
    places: tuple[int, ...]  # of the bounds, epoch by epoch


class EpochSums(Secret):
    """Rows of `SizesAndSums` in, rows (total, bound, counts of sizes) out."""

    def __init__(self, plan: EpochPlan, source: ItemSource) -> None:
        self._plan, self._source = plan, source
        self._count = len(plan.bounds.steps)
        self.width = SHOWN + self._count
        self._sizes = LinearEngine(lambda: build(plan.sizes, plan.sizes_setting, InLane(source, "sizes")))
        self._sums: dict[tuple[int, int], LinearEngine] = {}
        self._spreads: dict[tuple[int, int, int], Spread] = {}
        self._places: tuple[int, ...] = ()  # those of the state, for questions about accuracy

    def start(self) -> EpochState:
        none = np.zeros(1, dtype=np.int64)
        return EpochState(0, self._sizes.start(), none, np.zeros(self.width, dtype=np.int64), 0, ())

    def begin(self, tick: int) -> None:
        self._sizes.begin(tick)

    def play(self, batch: Any, state: EpochState) -> Played:
        rows, left = [], dense(batch)
        while len(left):
            epoch = self._plan.epochs.of(state.tick + 1)
            if epoch == len(state.places):
                state = self._next_epoch(state)
            first = self._plan.epochs.before(epoch)
            count = min(len(left), first + self._plan.epochs.lengths[epoch] - state.tick)
            released, state = self._within(left[:count], state, epoch, state.tick - first)
            rows.append(released)
            left = left[count:]
        self._places = state.places
        return Played(np.concatenate(rows), None, state)

    def _next_epoch(self, state: EpochState) -> EpochState:
        """Decides the bound, by released numbers, and closes the epoch before it, by what was released of it."""
        before = state.places[-1] if state.places else self._plan.bounds.first
        place = self._plan.bounds.decide(state.shown[SHOWN:] if state.places else None, before)
        none = np.zeros(1, dtype=np.int64)
        return replace(state, sums=none, closed=int(state.shown[0]), places=(*state.places, place))

    def _within(self, rows: IntArray, state: EpochState, epoch: int, tick: int) -> tuple[IntArray, EpochState]:
        place = state.places[epoch]
        counter = self._counter(epoch, place)
        counter.begin(tick)
        sizes = self._sizes.play(rows[:, : self._count], state.sizes)
        column = self._count + place
        sums = counter.play(rows[:, column : column + 1], state.sums)
        bound = np.full((len(rows), 1), self._plan.bounds.steps[place], dtype=np.int64)
        released = np.concatenate([sums.rows + state.closed, bound, sizes.rows], axis=1)
        after = replace(
            state, tick=state.tick + len(rows), sizes=sizes.state, sums=sums.state, shown=released[-1].copy()
        )
        return released, after

    def _counter(self, epoch: int, place: int) -> LinearEngine:
        known = self._sums.get((epoch, place))
        if known is None:
            setting = self._plan.setting(epoch, place)
            source = InLane(self._source, f"epoch-{epoch}-{self._plan.bounds.steps[place]}")
            known = LinearEngine(lambda: build(self._plan.sums, setting, source))
            # The epoch before stays: an interrupted call may go back to it.
            self._sums = {key: one for key, one in self._sums.items() if key[0] >= epoch - 1} | {(epoch, place): known}
        return known

    def go_back(self, tick: int, state: EpochState) -> None:
        self._sizes.go_back(tick, state.sizes)
        if state.places:
            epoch = len(state.places) - 1
            self._counter(epoch, state.places[-1]).go_back(tick - self._plan.epochs.before(epoch), state.sums)
        self._places = state.places

    def accuracy(self, tick: int) -> Spread:
        """Of the total: the noise that each closed epoch ended with, and that of the epoch of the tick. Of epochs to
        come, with the largest bound."""
        epochs = self._plan.epochs
        now = epochs.of(tick)
        spread = self._spread(now, tick - epochs.before(now))
        for epoch in range(now):
            spread = spread + self._spread(epoch, epochs.lengths[epoch])
        return spread

    def _spread(self, epoch: int, tick: int) -> Spread:
        place = self._places[epoch] if epoch < len(self._places) else self._count - 1
        key = (epoch, place, tick)
        if key not in self._spreads:
            if len(self._spreads) > 10_000:
                self._spreads.clear()
            self._spreads[key] = self._model(epoch, place).spread(tick)
        return self._spreads[key]

    def _model(self, epoch: int, place: int) -> Any:
        return model_of(self._plan.sums, self._plan.setting(epoch, place))

    differences = False

    def window(self, tick: int, window: int) -> Accuracy:
        raise ConfigurationError("sums with bounds of their epochs do not look back")

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        """The errors of all epochs up to the tick, each as if its bound were the largest."""
        epochs = self._plan.epochs
        last = len(epochs.lengths) - 1 if tick is None else epochs.of(tick)
        each = beta / len(epochs.lengths)
        return sum(path_bound(self._model(epoch, self._count - 1), each) for epoch in range(last + 1))

    def save(self, state: EpochState) -> list[bytes]:
        sizes = self._sizes.save(state.sizes)
        numbers = [state.tick, state.closed, len(sizes), *state.places]
        parts = [to_bytes(np.array(numbers, dtype=np.int64)), to_bytes(state.shown), *sizes]
        if state.places:
            parts += self._counter(len(state.places) - 1, state.places[-1]).save(state.sums)
        return parts

    def load(self, tick: int, parts: list[bytes]) -> EpochState:
        numbers = from_bytes(parts[0]).tolist()
        if len(numbers) < 3 or numbers[0] != tick:
            raise StateError("these bytes are not the state of a sum with epochs; restore from an intact snapshot")
        _, closed, count, *places = numbers
        state = replace(self.start(), tick=tick, closed=closed, places=tuple(places), shown=from_bytes(parts[1]))
        state = replace(state, sizes=self._sizes.load(tick, parts[2 : 2 + count]))
        self._places = state.places
        if not places:
            return state
        epoch = len(places) - 1
        counter = self._counter(epoch, places[-1])
        return replace(state, sums=counter.load(tick - self._plan.epochs.before(epoch), parts[2 + count :]))
