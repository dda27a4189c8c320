"""The exact law of three ticks of unknown labels under `max_labels`, for two streams at once (streaming-selection 7.5).

Radix 2, horizon 3: a label's noise is A at tick 1, B at tick 2 and B + C at tick 3. A transcript is what is released
and how the level stands at each tick. Written by the definition, label by label; what is decided at a look is asked of
the program. Laws of noise are given as value -> probability, so that the program can be played under the same ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.noise import ZeroNoise, item_addresses
from evertally.selection.label_limit import FollowedLabels

Floats = NDArray[np.float64]
Pmf = tuple[tuple[int, float], ...]
Path = tuple[Any, ...]  # what the look before each later tick decided: (level, labels that stay), or (level, None)
World = Callable[[int, Path], Mapping[str, int]]  # running counts at a tick, after what was decided
Pairs = tuple[Floats, Floats]  # of each transcript the probability in either world

WIDEST = 14  # so many values above the threshold are told apart


def gaussian(variance: float) -> Pmf:
    """A discrete Gaussian without its tails beyond 12 standard deviations: divergences of high order need that many."""
    reach = range(-int(12 * variance**0.5), int(12 * variance**0.5) + 1)
    weights = [np.exp(-(k**2) / (2 * variance)) for k in reach]
    return tuple((k, float(w / sum(weights))) for k, w in zip(reach, weights, strict=True))


def told_apart(first: Floats, second: Floats) -> Pairs:
    """Transcripts of the same loss taken together: no divergence changes by that."""
    seen = (first > 0) | (second > 0)
    first, second = first.ravel()[seen.ravel()], second.ravel()[seen.ravel()]
    with np.errstate(divide="ignore"):
        loss = np.round(np.log(first) - np.log(second), 9)
    _, same = np.unique(loss, return_inverse=True)
    return np.bincount(same, first), np.bincount(same, second)


@dataclass(frozen=True, eq=False)
class Law:
    """What is public: the thresholds of the three ticks, the noise, the limit; and the labels, in their order."""

    labels: tuple[str, ...]
    at: tuple[int, int, int]
    cell: Pmf
    look: Pmf
    limit: Any

    def passes(self, label: str, level: int) -> bool:
        followed = FollowedLabels(self.limit, ZeroNoise().source())
        followed.level = level
        return bool(followed.passes(item_addresses(ZeroNoise().source(), [label]))[0])

    @lru_cache  # noqa: B019
    def decided(self, level: int, noisy: int, released: int) -> tuple[int, int | None]:
        """The level after a look, and how many of the released labels stay; None: nothing is dropped."""
        followed = FollowedLabels(self.limit, ZeroNoise().source())
        followed.level = level
        found = followed.look(1, noisy)
        kept = None if found is None else followed.rise(found, released)
        return followed.level, kept

    @lru_cache  # noqa: B019
    def decisions(self, level: int, labels: int, released: int) -> Mapping[tuple[int, int | None], float]:
        chances: dict[tuple[int, int | None], float] = defaultdict(float)
        for noise, chance in self.look:
            chances[self.decided(level, labels + noise, released)] += chance
        return chances

    def shown(self, tick: int, noisy: int) -> int:
        return min(max(0, noisy - self.at[tick - 1]), WIDEST)

    @lru_cache  # noqa: B019
    def first(self, count: int | None) -> Floats:
        """P[r1]: 0 for not released, otherwise by how much above the threshold."""
        chances = np.zeros(WIDEST + 1)
        for noise, chance in self.cell:
            chances[0 if count is None else self.shown(1, count + noise)] += chance
        return chances

    @lru_cache  # noqa: B019
    def later(self, second: int | None, third: int | None) -> Floats:
        """P[r2, r3]; None where the label is not there, or not followed."""
        chances = np.zeros((WIDEST + 1, WIDEST + 1))
        for (b, chance), (c, other) in product(self.cell, self.cell):
            at_2 = 0 if second is None else self.shown(2, second + b)
            chances[at_2, 0 if third is None else self.shown(3, third + b + c)] += chance * other
        return chances

    @lru_cache  # noqa: B019
    def by_release(self) -> list[tuple[tuple[str, ...], NDArray[np.int64]]]:
        """Everything that a tick can release, by the order of what it names."""
        found: dict[tuple[str, ...], list[tuple[int, ...]]] = defaultdict(list)
        for shown in product(range(WIDEST + 1), repeat=len(self.labels)):
            best = sorted((-value, label) for value, label in zip(shown, self.labels, strict=True) if value)
            found[tuple(label for _, label in best)].append(shown)
        return [(order, np.array(rows)) for order, rows in found.items()]

    def transcripts(self, worlds: tuple[World, World], *, padded: bool = False) -> Pairs:
        """`padded`: the two processes of the proof, in which a label of either world is there in both."""
        states: dict[Any, list[Pairs]] = defaultdict(list)
        counts = [world(1, ()) for world in worlds]
        laws = [[self.first(count) for count in self._seen(counts, b, padded, None)] for b in (0, 1)]
        for order, rows in self.by_release():
            chances = [np.prod([law[rows[:, i]] for i, law in enumerate(laws[b])], axis=0) for b in (0, 1)]
            if not (chances[0].any() or chances[1].any()):
                continue
            for state, weights in self._looks(0, None, counts, order).items():
                states[state].append(told_apart(chances[0] * weights[0], chances[1] * weights[1]))
        ends = [self._rest(state, worlds, padded, states[state]) for state in states]
        return told_apart(*(np.concatenate([end[b] for end in ends]) for b in (0, 1)))

    def _rest(self, state: Any, worlds: tuple[World, World], padded: bool, before: list[Pairs]) -> Pairs:
        """Ticks 2 and 3, after what the first look decided."""
        level, open_now = state[0], self._open(None, state)
        counts = [world(2, (state,)) for world in worlds]
        second = [self._seen(counts, b, padded, open_now) for b in (0, 1)]
        parts = []
        for order, rows in self.by_release():
            if not set(order) <= open_now:
                continue
            for after, weights in self._looks(level, open_now, counts, order).items():
                still = self._open(open_now, after)
                last = [world(3, (state, after)) for world in worlds]
                third = [self._seen(last, b, padded, still) for b in (0, 1)]
                chances = []
                for b in (0, 1):
                    joint = np.full((len(rows), 1), weights[b])
                    for i in range(len(self.labels)):
                        here = self.later(second[b][i], third[b][i])[rows[:, i]]
                        if second[0][i] == second[1][i] and third[0][i] == third[1][i]:
                            here = here.sum(axis=1, keepdims=True)  # the same in both worlds, and decides nothing more
                        joint = (joint[:, :, None] * here[:, None, :]).reshape(len(rows), -1)
                    chances.append(joint)
                if chances[0].any() or chances[1].any():
                    parts.append(told_apart(*chances))
        end = told_apart(*(np.concatenate([part[b] for part in parts]) for b in (0, 1)))
        start = told_apart(*(np.concatenate([part[b] for part in before]) for b in (0, 1)))
        return told_apart(np.multiply.outer(start[0], end[0]), np.multiply.outer(start[1], end[1]))

    def _seen(self, counts: list[Mapping[str, int]], b: int, padded: bool, still: set[str] | None) -> list[int | None]:
        there = set(counts[b]) | set(counts[1 - b]) if padded else set(counts[b])
        there = there if still is None else there & still
        return [counts[b].get(label, 0) if label in there else None for label in self.labels]

    def _looks(self, level: int, still: set[str] | None, counts: Any, order: Any) -> dict[Any, list[float]]:
        found: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for b in (0, 1):
            labels = [label for label in counts[b] if still is None or label in still]
            for (to, kept), chance in self.decisions(level, len(labels), len(order)).items():
                stay = order[:kept] if kept is not None else None
                found[to, stay][b] += chance
        return found

    def _open(self, before: set[str] | None, state: Any) -> set[str]:
        level, stay = state
        now = set(self.labels) if before is None else before
        return now if stay is None else {u for u in now if self.passes(u, level) or u in stay}
