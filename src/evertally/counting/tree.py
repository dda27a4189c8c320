"""The tree of any radix: prefix sums from noisy sums over nested blocks of ticks.

streaming-selection 3.1-3.3 (BaseMech, cells and radix) and price-of-continual-release 3.2 (M1, the low-memory form).

Write t in base r. The prefix 1..t is tiled by s_i(t) blocks of length r^i for each digit s_i, and every tick completes
exactly one block that is ever used. So block and tick share one number, the address of the block's noise, and

    noise(t) = Z_t + noise(t - r^v),   v = number of trailing zero digits of t,   noise(0) = 0.

Privacy [R]: an event lies in at most L = (number of digits of T) used blocks, each released once, when it is complete:
D1 L/eps or D2^2 L/(2 rho) per block, pure eps-DP or rho-zCDP, also against adaptive streams.
Error: variance digitsum(t) * var(Z), at most (r - 1) L var(Z). Time O(d), memory O(d L), one draw per tick and column;
with `keep=False` memory O(d) and up to (r - 1) L draws, because every noise can be drawn again from its address.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from evertally.bounds.joint import GridMaximum, grid_step, tree_maximum
from evertally.bounds.selection import L, digit_sum, digit_sums, digits
from evertally.bounds.tails import Spread
from evertally.counting.participation import tree_reach
from evertally.counting.process import Budget, FloatArray, IntArray, check_horizon, kind_and_scale, node_law, spread_of
from evertally.counting.together import shared_blocks
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, Law, Source, round_up
from evertally.noise.jit import jit_once
from evertally.privacy import Change, Participation, PureDP
from evertally.secret import Secret

Radix = int | Literal["formula", "exact"]
ABOUT_RADIX = 'How many children a node of a tree has: a number, "formula", or "exact" (the least worst digit sum).'

_FARTHEST = 1e-9  # no smaller failure probability is looked up in the law of the maximum
_COMPILE_FROM = 64  # ticks in one call; fewer are interpreted, row by row
_AT_ONCE = 1 << 12  # columns that go to a tick together: their draws stay in the processor's cache


def level(t: int, radix: int) -> int:
    """v, the number of trailing zero digits of t >= 1: the block that ends at t has length r^v.

    >>> level(18, 3), level(7, 2)
    (2, 0)
    """
    return next(v for v, digit in enumerate(digits(t, radix)) if digit)


def blocks(t: int, radix: int) -> list[int]:
    """The blocks that tile 1..t, each by the tick that completes it, shortest first.

    >>> blocks(7, 2), blocks(11, 3)
    ([7, 6, 4], [11, 10, 9])
    """
    found = []
    while t > 0:
        found.append(t)
        t -= radix ** level(t, radix)
    return found


def differing(t: int, before: int, radix: int) -> int:
    """How many blocks tile one of 1..t and 1..before, and not both. They share those of their common leading digits,
    and of the first digit in which they differ as many as the smaller one has.

    >>> differing(7, 6, 2), differing(11, 7, 3), len({11, 10, 9} ^ {7, 6, 3})
    (1, 6, 6)
    """
    found = 0
    while t != before:
        (t, now), (before, then) = divmod(t, radix), divmod(before, radix)
        found += now - then if t == before else now + then
    return found


def largest_digit_sum(horizon: int, radix: int) -> int:
    """max digitsum(t) over t <= T: T itself, or T with one digit lowered and all later ones raised to r - 1."""
    ds = digits(horizon, radix)
    best = sum(ds)
    for i, digit in enumerate(ds):
        if digit > 0:
            best = max(best, sum(ds[i + 1 :]) + digit - 1 + i * (radix - 1))
    return best


def choose_radix(horizon: int, radix: Radix, pure: bool) -> int:
    """`"formula"`: least (r-1) L^2 (streaming-selection 3.3), with L^3 for Laplace noise, whose variance grows with
    the square of its scale. `"exact"`: the true worst digit sum in place of (r-1) L.

    >>> choose_radix(1000, "formula", pure=False), choose_radix(1024, "formula", pure=False)
    (4, 6)
    """
    if isinstance(radix, int):
        if not 2 <= radix <= max(2, horizon):
            raise ConfigurationError(f"radix {radix} is not between 2 and the horizon {horizon}")
        return radix
    if radix not in ("formula", "exact"):
        raise ConfigurationError(f'radix is a number, "formula" or "exact", not {radix!r}')
    power = 2 if pure else 1

    def cost(r: int) -> int:
        depth = L(horizon, r)
        cells = (r - 1) * depth if radix == "formula" else largest_digit_sum(horizon, r)
        return cells * int(depth**power)

    return min(range(2, max(2, min(horizon, 256)) + 1), key=cost)


def blocks_law(
    charge: Budget, change: Change, radix: int, levels: int, horizon: int, rule: Participation | None
) -> Law:
    """The law of each block: by how many of them one event meets, or by how often a user whose ticks are apart meets
    each (users-and-domains 1.3). Under a pure budget that saves nothing: l1 norms add up."""
    if rule is None or isinstance(charge, PureDP):
        return node_law(charge, change, levels)
    return DiscreteGaussian(round_up(tree_reach(radix, levels, horizon, rule) / (2 * charge.exact_rho)))


class TreeProcess(Secret):
    """Noise of the r-ary tree.

    >>> from evertally.noise import simulation
    >>> tree = TreeProcess(PureDP(1.0), Change(1, 1, 1), horizon=100, columns=1, source=simulation(0).source("demo"))
    >>> tree.radix, tree.levels, tree.advance(3).shape
    (11, 2, (3, 1))
    """

    def __init__(
        self,
        charge: Budget,
        change: Change,
        *,
        horizon: int,
        columns: int,
        source: Source,
        radix: Radix = "formula",
        keep: bool = True,
        rule: Participation | None = None,
        lane: str = "tree",
    ) -> None:
        self.horizon: int | None = horizon
        self.columns = columns
        self.radix = choose_radix(horizon, radix, isinstance(charge, PureDP))
        self.levels = L(horizon, self.radix)
        self.law: Law = blocks_law(charge, change, self.radix, self.levels, horizon, rule)
        self.tick = 0
        self._source = source
        self._lane = lane
        self._largest_digit_sum = largest_digit_sum(horizon, self.radix)
        # noise of the latest tick with v trailing zero digits, for each v
        self._latest = np.zeros((self.levels if keep else 0, columns), dtype=np.int64)

    def advance(self, count: int = 1) -> IntArray:
        check_horizon(self, self.tick + count)
        if not len(self._latest):
            out = np.stack([self._noise(t) for t in range(self.tick + 1, self.tick + count + 1)])
            self.tick += count
            return out
        z = self._source.draws(self._lane, self.law, range(self.tick + 1, self.tick + count + 1), self.columns)
        walk = climb if count < _COMPILE_FROM else jit_once(climb)
        walk(z, self.tick, self.radix, self._latest)
        self.tick += count
        return z

    def seek(self, tick: int) -> None:
        self._latest[:] = 0
        self.tick = tick
        if not len(self._latest):
            return
        ends = self._blocks(tick)[::-1]  # longest first: the noise at an end is the sum of the draws up to it
        levels = [level(t, self.radix) for t in ends]
        for start in range(0, self.columns, _AT_ONCE):
            latest = self._latest[:, start : start + _AT_ONCE]
            noise = np.zeros(latest.shape[1], dtype=np.int64)
            z = self._source.draws(self._lane, self.law, ends, noise.size, start)
            for v, draw in zip(levels, z, strict=True):
                noise += draw
                latest[v] = noise  # of several at one level the latest stays

    def spread(self, tick: int) -> Spread:
        return spread_of(self.law, digit_sum(tick, self.radix), 1.0)

    def worst(self) -> Spread:
        return spread_of(self.law, self._largest_digit_sum, 1.0)

    def widest(self, tick: int) -> Spread:
        return spread_of(self.law, largest_digit_sum(tick, self.radix), 1.0)

    def mean_variance(self, tick: int) -> float:
        cells = sum(cells * ticks for cells, ticks in digit_sums(tick, self.radix).items())
        return self.law.stddev() ** 2 * cells / tick

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        return self.maximum().radius(beta / 2)

    def maximum(self, reach: float = 0.0) -> GridMaximum:
        """The law of the largest noise over all ticks, one-sided, rounded up; its grid goes to `reach` at least."""
        assert self.horizon is not None
        kind, scale = kind_and_scale(self.law)
        reach = max(reach, self.worst().radius(_FARTHEST / self.horizon))
        return tree_maximum(kind, scale, self.radix, self.horizon, reach, grid_step(kind, scale))

    exact_windows = True

    def window_spread(self, tick: int, window: int) -> Spread:
        return spread_of(self.law, differing(tick, tick - window, self.radix), 1.0)

    def covariances(self, ticks: Sequence[int]) -> FloatArray:
        """Of the noise of one coordinate at increasing ticks."""
        return self.law.stddev() ** 2 * shared_blocks(ticks, self.radix)

    def combined_spread(self, weights: Mapping[int, float]) -> Spread:
        """Of a weighted sum of the noise at several ticks. Exact, as windows are."""
        nodes: dict[int, float] = defaultdict(float)
        for tick, weight in weights.items():
            for node in self._blocks(tick):
                nodes[node] += weight
        # A hair above the largest: the tail of one single draw is about integers, and weights need be none.
        largest = max(map(abs, nodes.values()), default=0.0) * (1 + 1e-9)
        return spread_of(self.law, sum(part * part for part in nodes.values()), largest)

    def at(self, tick: int) -> IntArray:
        """The noise of one tick, wherever the process stands."""
        return self._noise(tick)

    def _noise(self, tick: int) -> IntArray:
        noise: IntArray = self._source.draws(self._lane, self.law, self._blocks(tick), self.columns).sum(axis=0)
        return noise

    def _blocks(self, tick: int) -> list[int]:
        return blocks(tick, self.radix)


def climb(z: IntArray, tick: int, radix: int, latest: IntArray) -> None:
    """Turns draws into noise in place: row i is tick + 1 + i. Runs interpreted and compiled alike."""
    for i in range(z.shape[0]):
        t = tick + 1 + i
        v = 0
        rest = t
        while rest % radix == 0:
            rest //= radix
            v += 1
        rest -= 1  # the parent, t - r^v, without its v trailing zeros
        if rest > 0:
            u = v
            while rest % radix == 0:
                rest //= radix
                u += 1
            z[i, :] += latest[u, :]
        latest[v, :] = z[i, :]
