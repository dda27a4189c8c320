"""The pseudo-code of parameterized-histograms, written down literally: Python integers, one tick at a time.

The noise is read at the addresses of the product (the n-th tau, the mu of a tick, ...), with laws worked out here from
sections 2 to 5. Nothing is imported from the product but laws and the noise of H3 and of trees of other radix, which
have tests of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from evertally.counting.process import NoiseProcess
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law, round_up
from evertally.privacy import ZCDP, Change, PureDP

Vector = list[int]
Releases = list[tuple[int, Vector]]


# -- queries -----------------------------------------------------------------------------------------------------------


class Queries:
    """Queries by a function of a list of whole numbers; `values` is what the engine asks, `of` what the tests do."""

    def __init__(self, name: str, count: int, of: Callable[[Vector], Vector]) -> None:
        self.name, self.count, self.of = name, count, of

    def values(self, v: np.ndarray) -> np.ndarray:
        return np.array(self.of(v.tolist()), dtype=np.int64)

    def __repr__(self) -> str:
        return self.name


LARGEST = Queries("largest", 1, lambda v: [max(v)])
SMALLEST = Queries("smallest", 1, lambda v: [min(v)])
MEAN = Queries("mean", 1, lambda v: [-(-sum(v) // len(v))])  # fractional, hence its ceiling
RANKS = Queries("two largest", 2, lambda v: sorted([*v, 0], reverse=True)[:2])
MIXED = Queries("mean and largest", 2, lambda v: [-(-sum(v) // len(v)), max(v)])


def columns(d: int) -> Queries:
    return Queries("columns", d, lambda v: list(v))


# -- building blocks H, section 3 --------------------------------------------------------------------------------------


def law_of(charge: PureDP | ZCDP, change: Change, nodes: int) -> Law:
    """3.2 and 8.4: Lap(D1 h/eps_H), or a discrete Gaussian of variance D2^2 h/(2 rho)."""
    if isinstance(charge, PureDP):
        return DiscreteLaplace(round_up(Fraction(change.l1 * nodes) / charge.exact_epsilon))
    return DiscreteGaussian(round_up(Fraction(change.l2_squared * nodes) / (2 * charge.exact_rho)))


class H(Protocol):
    def insert(self, v: Vector) -> None: ...

    def output(self) -> Vector: ...


class Pile:
    """3.1: s_i <- s_i + noise, on top of the earlier noise."""

    def __init__(self, charge: PureDP | ZCDP, change: Change, d: int, source: Any) -> None:
        self.law, self.d, self.source = law_of(charge, change, 1), d, source
        self.j, self.z = 0, [0] * d

    def insert(self, v: Vector) -> None:
        self.j += 1
        noise = self.source.draws("pile", self.law, [self.j], self.d)[0].tolist()
        self.z = [a + b + c for a, b, c in zip(self.z, v, noise, strict=True)]

    def output(self) -> Vector:
        return self.z


class Tree:
    """3.2, the streaming form: exact and noisy sums of the levels in use."""

    def __init__(self, charge: PureDP | ZCDP, change: Change, d: int, source: Any, n: int, lane: str = "tree") -> None:
        self.law, self.d, self.source, self.lane = law_of(charge, change, n.bit_length()), d, source, lane
        self.t = 0
        self.exact: dict[int, Vector] = {}
        self.noisy: dict[int, Vector] = {}

    def insert(self, v: Vector) -> None:
        self.t += 1
        i = (self.t & -self.t).bit_length() - 1
        node = list(v)
        for level in range(i):
            node = [a + b for a, b in zip(node, self.exact.pop(level), strict=True)]
            del self.noisy[level]
        noise = self.source.draws(self.lane, self.law, [self.t], self.d)[0].tolist()
        self.exact[i], self.noisy[i] = node, [a + b for a, b in zip(node, noise, strict=True)]

    def output(self) -> Vector:
        return [sum(column) for column in zip(*self.noisy.values(), strict=True)] or [0] * self.d


class Epochs:
    """3.5: epoch e takes the next 2^e inserts into a tree of its own; the noisy root of a full one stays."""

    def __init__(self, charge: PureDP | ZCDP, change: Change, d: int, source: Any) -> None:
        self.make = lambda e: Tree(charge, change, d, source, 2**e, f"epoch-{e}")
        self.e, self.base, self.tree = 0, [0] * d, self.make(0)

    def insert(self, v: Vector) -> None:
        if self.tree.t == 2**self.e:
            self.base = self.output()
            self.e += 1
            self.tree = self.make(self.e)
        self.tree.insert(v)

    def output(self) -> Vector:
        now = self.tree.output() if self.tree.t else [0] * len(self.base)
        return [a + b for a, b in zip(self.base, now, strict=True)]


class Process:
    """Exact sums plus the noise of a process of the product: for H3 and trees of other radix."""

    def __init__(self, process: NoiseProcess) -> None:
        self.process, self.sums = process, [0] * process.columns
        self.noise = [0] * process.columns

    def insert(self, v: Vector) -> None:
        self.sums = [a + b for a, b in zip(self.sums, v, strict=True)]
        self.noise = self.process.advance(1)[0].tolist()

    def output(self) -> Vector:
        return [a + b for a, b in zip(self.sums, self.noise, strict=True)]


class Blocks:
    """Blocks of n, n, 2n, 4n, ... inserts; the last noise of a full one stays. `make(k, length)`: noise of block k."""

    def __init__(self, make: Callable[[int, int], NoiseProcess], n: int, d: int) -> None:
        self.make, self.n, self.sums, self.held = make, n, [0] * d, [0] * d
        self.k, self.left, self.noise = 0, n, [0] * d
        self.process = make(0, n)

    def insert(self, v: Vector) -> None:
        if self.left == 0:
            self.held = [a + b for a, b in zip(self.held, self.noise, strict=True)]
            self.k += 1
            length = self.n * 2 ** (self.k - 1)
            self.process, self.left = self.make(self.k, length), length
        self.sums = [a + b for a, b in zip(self.sums, v, strict=True)]
        self.noise = self.process.advance(1)[0].tolist()
        self.left -= 1

    def output(self) -> Vector:
        return [a + b + c for a, b, c in zip(self.sums, self.held, self.noise, strict=True)]


# -- thresholds, sections 4, 5 and 7.2 ---------------------------------------------------------------------------------


class Thresholds(Protocol):
    def start(self, s: Vector) -> None: ...

    def crossed(self, s: Vector, c: Vector, j: int, t: int, mu: int, tau: int) -> bool: ...

    def update(self, s: Vector, j: int) -> None: ...

    def closed(self, s: Vector, j: int, t: int) -> None: ...


@dataclass
class LadderOfMax:
    """Algorithms 2, 3, 5, 7, 10, 15: max_i g_i against K_j, and K_j = K_(j-1) + step(j, t)."""

    g: Queries
    step: Callable[[int, int], int]

    def start(self, s: Vector) -> None:
        self.K = max(self.g.of(s))

    def crossed(self, s: Vector, c: Vector, j: int, t: int, mu: int, tau: int) -> bool:
        return max(self.g.of(s)) + mu > self.K + self.step(j, t) + tau

    def update(self, s: Vector, j: int) -> None:
        pass

    def closed(self, s: Vector, j: int, t: int) -> None:
        self.K += self.step(j, t)


@dataclass
class NoisyUpdates:
    """Algorithms 8, 12, 13, 17."""

    g: Queries
    K: int
    C: int
    law: Law
    source: Any

    def start(self, s: Vector) -> None:
        self.Ks = [value + self.K for value in self.g.of(s)]

    def crossed(self, s: Vector, c: Vector, j: int, t: int, mu: int, tau: int) -> bool:
        return any(value + mu > K + tau for value, K in zip(self.g.of(s), self.Ks, strict=True))

    def update(self, s: Vector, j: int) -> None:
        noise = self.source.draws("update", self.law, [j], self.g.count)[0].tolist()
        for i, value in enumerate(self.g.of(s)):
            if value + noise[i] > self.Ks[i] - self.C:
                self.Ks[i] += self.K

    def closed(self, s: Vector, j: int, t: int) -> None:
        pass


@dataclass
class Released:
    """V1, V3, V4: K_(i) = g_i(s^(j)) + kappa(j, t)."""

    g: Queries
    kappa: Callable[[int, int], int]

    def start(self, s: Vector) -> None:
        self.out = self.g.of(s)

    def crossed(self, s: Vector, c: Vector, j: int, t: int, mu: int, tau: int) -> bool:
        return any(value + mu > out + self.kappa(j, t) + tau for value, out in zip(self.g.of(s), self.out, strict=True))

    def update(self, s: Vector, j: int) -> None:
        pass

    def closed(self, s: Vector, j: int, t: int) -> None:
        self.out = self.g.of(s)


@dataclass
class OpenInterval:
    """V2 and 4.5: the counts of the interval alone."""

    g: Queries
    kappa: Callable[[int, int], int]

    def start(self, s: Vector) -> None:
        pass

    def crossed(self, s: Vector, c: Vector, j: int, t: int, mu: int, tau: int) -> bool:
        return any(value + mu > self.kappa(j, t) + tau for value in self.g.of(c))

    def update(self, s: Vector, j: int) -> None:
        pass

    def closed(self, s: Vector, j: int, t: int) -> None:
        pass


# -- the engine, 2.1, and two of them, 5.4 -----------------------------------------------------------------------------


class Literal:
    """The engine of 2.1; one call of `tick` for each row."""

    def __init__(
        self,
        source: Any,
        tau: DiscreteLaplace,
        mu: DiscreteLaplace,
        n: int | None,
        histogram: H,
        thresholds: Thresholds,
        base: Vector,
        forced: int | None = None,
    ) -> None:
        self.source, self.tau_law, self.mu_law, self.n = source, tau, mu, n
        self.H, self.thresholds, self.base, self.forced = histogram, thresholds, base, forced
        self.s, self.c, self.j = [max(0, b) for b in base], [0] * len(base), 1
        self.tau = self.draw("tau", tau, 1)
        thresholds.start(self.s)

    def draw(self, lane: str, law: Law, node: int) -> int:
        return int(self.source.draws(lane, law, [node])[0, 0])

    def tick(self, x: Vector, t: int) -> Vector | None:
        """The histogram that is released at this tick, or None."""
        self.s = [a + b for a, b in zip(self.s, x, strict=True)]
        self.c = [a + b for a, b in zip(self.c, x, strict=True)]
        if self.n is not None and self.j > self.n:
            return None
        mu = self.draw("mu", self.mu_law, t)
        forced = self.forced is not None and t % self.forced == 0
        if not (forced or self.thresholds.crossed(self.s, self.c, self.j, t, mu, self.tau)):
            return None
        self.thresholds.update(self.s, self.j)
        self.H.insert(self.c)
        self.c = [0] * len(self.c)
        self.s = [max(0, a + b) for a, b in zip(self.base, self.H.output(), strict=True)]
        self.thresholds.closed(self.s, self.j, t)
        self.j += 1
        self.tau = self.draw("tau", self.tau_law, self.j)
        return list(self.s)

    def play(self, rows: Iterable[Iterable[int]]) -> Releases:
        found = ((t, self.tick(list(x), t)) for t, x in enumerate(rows, start=1))
        return [(t, s) for t, s in found if s is not None]


def literal_two_levels(
    outer: Literal, inner: Callable[[int, Vector], Literal], rows: Iterable[Iterable[int]]
) -> Releases:
    """5.4: `inner(j, s)` starts the partition of segment j from the released s."""
    found: Releases = []
    level_2 = inner(1, outer.s)
    for t, x in enumerate(rows, start=1):
        s = outer.tick(list(x), t)
        if s is not None:
            level_2 = inner(outer.j, s)  # x^t is not fed to level 2
        else:
            s = level_2.tick(list(x), t)
        if s is not None:
            found.append((t, s))
    return found


def four_bits_up(t: int) -> int:
    """t rounded up to four significant bits."""
    unit = 1
    while unit * 16 <= t:
        unit *= 2
    return -(-t // unit) * unit


# -- planted noise -----------------------------------------------------------------------------------------------------


class Planted:
    """A source whose draws are chosen by the test: {(lane, node): number or numbers}, zero elsewhere."""

    def __init__(self, draws: dict[tuple[str, int], Any] | None = None) -> None:
        self.planted = draws if draws is not None else {}

    def draws(self, lane: str, law: Any, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> np.ndarray:
        index = [int(node) for node in nodes]
        out = np.zeros((len(index), coordinates), dtype=np.int64)
        for i, node in enumerate(index):
            out[i] = self.planted.get((lane, node), 0)
        return out

    def order(self, message: bytes) -> bytes:
        return message
