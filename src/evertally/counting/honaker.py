"""The binary tree with Honaker's refinement, causal form: every noisy node of the past helps the estimate.

factorization-counting 8.3. The estimate of a node of height h mixes its own noisy sum with its children's estimates by
inverse variance, N_h = (2^h y_h + (2^h - 1)(N_left + N_right)) / (2^(h+1) - 1), variance sigma^2 2^h/(2^(h+1) - 1);
a prefix adds the estimates of its nodes. All of it is post-processing of the noisy nodes y, which are as private as
those of the binary tree: L = bit_length(T) nodes contain an event. Only nodes complete by tick t are used at t.

As everywhere, what leaves is the correctly rounded estimate, (exact sum) + floor(e_t + 1/2), where e_t has the same
form with noise in place of sums. Its denominator is odd, so ties cannot happen; floats that carry a bound on their own
error decide nearly all ticks, exact integers the rest.

Error: variance sigma^2 * sum over the set bits h of t of 2^h/(2^(h+1) - 1), about half of the tree's.
Time O(d), two draws per tick and column, memory O(d log T). Snapshots keep the estimates of the present nodes, as
secret as the exact sums; going to a tick without them costs O(t d).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evertally.bounds.joint import refined_maximum
from evertally.bounds.tails import Spread
from evertally.counting.column_memory import ColumnMemory, grouped
from evertally.counting.process import (
    Budget,
    FloatArray,
    IntArray,
    check_horizon,
    kind_and_scale,
    round_half_up,
    spread_of,
)
from evertally.counting.together import refined_nodes
from evertally.counting.tree import blocks_law
from evertally.errors import StateError
from evertally.noise import Law, Source
from evertally.noise.jit import jit_once
from evertally.privacy import Change, Participation
from evertally.secret import Secret

_COMPILE_FROM = 64
UNIT = 2.0**-50  # covers the roundings of one mix, see `combine`
_PIECE = 1 << 16  # ticks handled at once; when going to a tick, ticks times columns


def weight(h: int) -> float:
    """Variance of the estimate of a node of height h, in units of a node's own, and the weight of its own value."""
    return 2.0**h / (2.0 ** (h + 1) - 1.0)


class HonakerProcess(Secret):
    """Noise of the refined binary tree.

    >>> from evertally.noise import simulation
    >>> from evertally.privacy import ZCDP, Change
    >>> source = simulation(0).source("demo")
    >>> refined = HonakerProcess(ZCDP(0.5), Change(1, 1, 1), horizon=4096, columns=1, source=source)
    >>> round(refined.worst().stddev, 2)  # the plain tree has 12.49
    9.41
    """

    def __init__(
        self,
        charge: Budget,
        change: Change,
        *,
        horizon: int,
        columns: int,
        source: Source,
        rule: Participation | None = None,
        lane: str = "honaker",
    ) -> None:
        self.horizon: int | None = horizon
        self.columns = columns
        self.levels = horizon.bit_length()
        self.law: Law = blocks_law(charge, change, 2, self.levels, horizon, rule)
        self._source = source
        self._lane = lane
        self._own = np.array([weight(h) for h in range(self.levels)])
        self._children = np.array([(2.0**h - 1.0) / (2.0 ** (h + 1) - 1.0) for h in range(self.levels)])
        self.seek(0)

    def advance(self, count: int = 1) -> IntArray:
        parts = []
        stop = self.tick + count
        check_horizon(self, stop)
        while self.tick < stop:
            parts.append(self._piece(min(stop - self.tick, _PIECE)))
        return np.concatenate(parts) if parts else np.empty((0, self.columns), dtype=np.int64)

    def seek(self, tick: int) -> None:
        # [0] value, [1] bound on its error: estimate of the latest node of each height, and of the latest prefix
        # that ends with such a node
        self._node = np.zeros((2, self.levels, self.columns))
        self._prefix = np.zeros((2, self.levels, self.columns))
        self.tick = 0
        piece = max(1, _PIECE // self.columns)
        while self.tick < tick:
            self._piece(min(tick - self.tick, piece), settle=False)

    def memory(self) -> bytes:
        # Every later tick builds on the nodes of the present prefix only, whose heights are the set bits of the tick.
        heights = _set_bits(self.tick)
        return np.stack([self._node[:, heights], self._prefix[:, heights]]).astype("<f8").tobytes()

    def recall(self, tick: int, memory: bytes) -> None:
        # Any floats with true bounds on their error lead to the same rounded noise.
        heights = _set_bits(tick)
        self.seek(0)
        self._node[:, heights], self._prefix[:, heights] = np.frombuffer(memory, dtype="<f8").reshape(
            2, 2, len(heights), self.columns
        )
        self.tick = tick

    def kept(self) -> ColumnMemory:
        """Of the nodes of the present prefix; prefixes are their sums. Columns of a group share the widest bound."""
        node = self._node[:, _set_bits(self.tick)]
        return ColumnMemory.of(node[0], grouped(node[1]))

    def take(self, tick: int, kept: ColumnMemory) -> None:
        heights = _set_bits(tick)
        if kept.shape != (len(heights), len(heights)) or kept.columns != self.columns:
            raise StateError("these numbers are not nodes of this process; restore from an intact state")
        self.seek(0)
        self._node[0, heights], self._node[1, heights] = kept.floats(), kept.bound_of_each()
        self.tick = tick
        above = np.zeros((2, self.columns))
        for h in reversed(heights):
            value, error = self._node[:, h]
            error = error + above[1] + UNIT * (np.abs(value) + np.abs(above[0]))
            self._prefix[:, h] = above = np.stack([value + above[0], error])

    def spread(self, tick: int) -> Spread:
        # The own values of the prefix's nodes count weight(h) >= 1/2, which falls with h; all others less than 1/2.
        lowest = max(0, (tick & -tick).bit_length() - 1)
        return spread_of(self.law, self._weights(tick), weight(lowest), roundings=int(tick > 1))

    def widest(self, tick: int) -> Spread:
        return max((self.spread(t) for t in _heaviest(tick)), key=lambda spread: spread.stddev)

    def mean_variance(self, tick: int) -> float:
        # How many of the ticks 0 .. tick have bit h.
        counts = (
            ((tick + 1) >> (h + 1) << h) + max(0, (tick + 1) % (2 << h) - (1 << h)) for h in range(tick.bit_length())
        )
        weights = math.fsum(weight(h) * count for h, count in enumerate(counts))
        return (self.law.stddev() ** 2 * weights + (tick - 1) / 12) / tick

    def worst(self) -> Spread:
        assert self.horizon is not None
        T = self.horizon
        ticks = _heaviest(T)
        if T == 1:
            return self.spread(1)
        # An envelope of all ticks: the widest sum with the largest weight of any. A hair above one draw, so that the
        # sharper tail of a single draw (tick 1 alone) is not taken for all.
        widest = spread_of(self.law, max(self._weights(t) for t in ticks), weight(0), roundings=1)
        return replace(widest, proxy=widest.proxy * (1 + 1e-9))

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        assert self.horizon is not None
        kind, scale = kind_and_scale(self.law)
        reach = self.worst().radius(1e-9 / self.horizon)
        # Tick by tick where floats cannot tell so many nodes from certain failure: a grid then has no answer.
        plain = self.worst().radius(beta / self.horizon)
        joint = refined_maximum(kind, scale, self.horizon, reach).radius(beta / 2, -0.5)
        # An integer error above r is an estimate of at least r + 1/2.
        return float(math.ceil(joint)) if joint < plain else plain

    exact_windows = True

    def window_spread(self, tick: int, window: int) -> Spread:
        """Exact. With H the highest bit in which the two ticks differ, the later prefix goes on with a node of height H
        and the nodes of its lower bits, the earlier one with nodes inside of that node; what comes before falls out.

        The mix counts a node of height g inside of it (2^(g+1) - 1)/(2^(H+1) - 1) times (the factors of all heights
        between telescope), so their covariance is 2^g/(2^(H+1) - 1): with r = earlier mod 2^H, r/(2^(H+1) - 1) in all.
        """
        before = tick - window
        if before <= 0:
            return self.spread(tick)
        H = (tick ^ before).bit_length() - 1
        inside, scale = before % 2**H, 2.0 ** (H + 1) - 1.0
        squares = weight(H) + self._weights(tick % 2**H) + self._weights(inside) - 2 * inside / scale
        alone = [weight(h) for h in _set_bits(tick % 2**H)]
        largest = max(weight(H), *alone, *(weight(g) - 2.0**g / scale for g in _set_bits(inside)), 0.0)
        return spread_of(self.law, squares, largest, roundings=int(tick > 1) + int(before > 1))

    def covariances(self, ticks: Sequence[int]) -> FloatArray:
        """Of the noise of one coordinate at increasing ticks, before rounding; 0 in the diagonal."""
        return self.law.stddev() ** 2 * refined_nodes(ticks, weight)

    def _weights(self, tick: int) -> float:
        return sum(weight(h) for h in range(tick.bit_length()) if tick >> h & 1)

    def _piece(self, count: int, settle: bool = True) -> IntArray:
        start = self.tick
        out = np.zeros((2, count, self.columns))
        draws = [self._draws(h, start >> h, (start + count) >> h) for h in range(self.levels)]
        offsets = np.cumsum([0] + [len(z) for z in draws])
        refine = combine if count < _COMPILE_FROM else jit_once(combine)
        z = np.concatenate(draws).astype(np.float64)
        refine(z, offsets, start, self._own, self._children, self._node, self._prefix, out)
        self.tick += count
        rounded, undecided = round_half_up(out[0], out[1])
        if settle:
            for i, column in zip(*np.nonzero(undecided), strict=True):
                rounded[i, column] = self._exact(start + int(i) + 1, int(column))
        return rounded

    def _draws(self, h: int, first: int, last: int) -> IntArray:
        """Noise of the nodes of height h with (1-based) numbers first+1 .. last."""
        if first == last:
            return np.empty((0, self.columns), dtype=np.int64)
        return self._source.draws(f"{self._lane}-{h}", self.law, range(first + 1, last + 1), self.columns)

    def _exact(self, tick: int, column: int) -> int:
        """floor(e + 1/2) in integers: estimates of height h over the common denominator prod_{j<=h} (2^(j+1) - 1)."""
        denominators = [1]
        for h in range(1, self.levels):
            denominators.append(denominators[-1] * (2 ** (h + 1) - 1))
        estimates: list[int] = []
        total = 0
        for h in range(tick.bit_length()):
            nodes = range(1, (tick >> h) + 1)
            z = self._source.draws(f"{self._lane}-{h}", self.law, nodes, 1, column)[:, 0]
            if h == 0:
                estimates = [int(value) for value in z]
            else:
                estimates = [
                    2**h * int(value) * denominators[h - 1] + (2**h - 1) * (estimates[2 * i] + estimates[2 * i + 1])
                    for i, value in enumerate(z)
                ]
            if tick >> h & 1:
                total += estimates[-1] * (denominators[-1] // denominators[h])
        return (2 * total + denominators[-1]) // (2 * denominators[-1])


def _set_bits(tick: int) -> list[int]:
    return [h for h in range(tick.bit_length()) if tick >> h & 1]


def combine(
    z: FloatArray,
    offsets: IntArray,
    start: int,
    own: FloatArray,
    children: FloatArray,
    node: FloatArray,
    prefix: FloatArray,
    out: FloatArray,
) -> None:
    """Runs the estimates over the ticks start+1 ..., with a bound on the error of every float.

    A sum or product of values a, b with error bounds carries its own rounding, at most 2^-53 of the result; 2^-50 of
    the absolute values covers the four roundings of one mix and those of the bound itself.
    """
    unit = UNIT
    for i in range(out.shape[1]):
        t = start + 1 + i
        value = z[offsets[0] + i, :].copy()
        error = np.zeros(value.size)
        h = 0
        while (t >> h) % 2 == 0:
            left, left_error = node[0, h, :], node[1, h, :]
            h += 1
            mine = own[h] * z[offsets[h] + (t >> h) - (start >> h) - 1, :]
            theirs = left + value
            error = children[h] * (left_error + error) + unit * (
                np.abs(mine) + children[h] * (np.abs(left) + np.abs(value))
            )
            value = mine + children[h] * theirs
        node[0, h, :] = value
        node[1, h, :] = error
        parent = t - (1 << h)
        if parent > 0:
            g = 0
            while (parent >> g) % 2 == 0:
                g += 1
            error = error + prefix[1, g, :] + unit * (np.abs(value) + np.abs(prefix[0, g, :]))
            value = value + prefix[0, g, :]
        prefix[0, h, :] = value
        prefix[1, h, :] = error
        out[0, i, :] = value
        out[1, i, :] = error


def _heaviest(T: int) -> list[int]:
    """One of them has the widest noise of 1 .. T: T itself, or T with one bit cleared and all lower bits set."""
    lower = (((T >> h) - 1 << h) | ((1 << h) - 1) for h in range(T.bit_length()) if T >> h & 1)
    return [T, *(t for t in lower if t > 0)]
