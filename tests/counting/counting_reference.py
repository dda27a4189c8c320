"""What the specifications say, written down literally and slowly: noisy sums, factors, estimates; and planted noise.

Nothing here imports a process or a factor of the product: two derivations must agree.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

GRID = 2**16

Address = tuple[str, int]
Statistic = dict[Address, list[int]]  # noisy sum -> its coefficient on each tick (index 0 is tick 1)


class Planted:
    """A key whose noise is chosen by the test: one row of integers for each (lane, node), zero elsewhere."""

    private = False

    def __init__(self, rows: dict[Address, Any] | None = None) -> None:
        self.rows = rows or {}
        self.asked: set[Address] = set()

    def source(self, *path: str | bytes) -> Planted:
        return self

    def mac(self, purpose: str, data: bytes) -> bytes:
        return bytes(32)

    def fingerprint(self) -> str:
        return "planted"

    def order(self, message: bytes) -> bytes:
        return message

    def draws(self, lane: str, law: Any, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> Any:
        index = [int(node) for node in nodes]
        self.asked |= {(lane, node) for node in index}
        out = np.zeros((len(index), coordinates), dtype=np.int64)
        for i, node in enumerate(index):
            if (lane, node) in self.rows:
                out[i] = np.atleast_1d(self.rows[lane, node])[first : first + coordinates]
        return out


# -- the tree, streaming-selection 3.1 ---------------------------------------------------------------------------------


def base_digits(t: int, r: int) -> list[int]:
    found = []
    while t:
        t, digit = divmod(t, r)
        found.append(digit)
    return found


def cells(t: int, r: int) -> list[tuple[int, int]]:
    """I_t: cells (level i, index l), covering the ticks (l-1) r^i + 1 .. l r^i."""
    found = []
    rest = t
    for i, digit in enumerate(base_digits(t, r)):
        q, remainder = divmod(rest, r**i)
        assert remainder == 0
        found += [(i, index) for index in range(q - digit + 1, q + 1)]
        rest -= digit * r**i
    return found


def ticks_of(cell: tuple[int, int], r: int) -> range:
    i, index = cell
    return range((index - 1) * r**i + 1, index * r**i + 1)


# -- the square root, factorization-counting 2.1 and 11 ----------------------------------------------------------------


@cache
def integer_factor(T: int) -> tuple[int, ...]:
    """r_k = round(2^16 f(k)), half up, f(k) = binom(2k, k)/4^k, in integers."""
    found, binomial = [], 1
    for k in range(T):
        found.append((2 * GRID * binomial + 4**k) // (2 * 4**k))
        binomial = binomial * 2 * (2 * k + 1) // (k + 1)
    return tuple(found)


@cache
def inverse_factor(T: int) -> tuple[Fraction, ...]:
    """l_0..l_{T-1}, the series of 1/((1 - z) r(z))."""
    r = integer_factor(T)
    c = [r[0]] + [r[k] - r[k - 1] for k in range(1, T)]
    series: list[Fraction] = []
    for k in range(T):
        rest = sum((c[j] * series[k - j] for j in range(1, k + 1)), Fraction(0))
        series.append((int(k == 0) - rest) / c[0])
    return tuple(series)


def sqrt_noise(z: list[int]) -> int:
    """floor(e_t + 1/2) at t = len(z), in fractions."""
    t = len(z)
    inverse = inverse_factor(max(64, t))  # a longer series begins with a shorter one
    e = sum((inverse[t - 1 - i] * int(value) for i, value in enumerate(z)), Fraction(0))
    return (e + Fraction(1, 2)).__floor__()


# -- Honaker's refinement, factorization-counting 8.3 ------------------------------------------------------------------


def honaker_estimate(h: int, number: int, value: Any) -> Fraction:
    """The estimate of a node from `value(height, number)` of it and of all nodes below."""
    if h == 0:
        return Fraction(value(0, number))
    v = Fraction(2 ** (h - 1), 2**h - 1)  # variance of a child's estimate
    own = 2 * v / (1 + 2 * v)
    children = honaker_estimate(h - 1, 2 * number - 1, value) + honaker_estimate(h - 1, 2 * number, value)
    return own * value(h, number) + (1 - own) * children


def honaker_prefix(t: int, value: Any) -> Fraction:
    return sum(
        (honaker_estimate(h, t >> h, value) for h in range(t.bit_length()) if t >> h & 1),
        Fraction(0),
    )


# -- the noisy sums that each process releases -------------------------------------------------------------------------


def indicator(first: int, last: int, T: int) -> list[int]:
    return [int(first <= t <= last) for t in range(1, T + 1)]


def tree_sums(T: int, r: int, lane: str = "tree") -> Statistic:
    found = {}
    for t in range(1, T + 1):
        for cell in cells(t, r):
            ticks = ticks_of(cell, r)
            found[lane, ticks[-1]] = indicator(ticks[0], ticks[-1], T)
    return found


def honaker_sums(T: int) -> Statistic:
    return {
        (f"honaker-{h}", i): indicator((i - 1) * 2**h + 1, i * 2**h, T)
        for h in range(T.bit_length())
        for i in range(1, T // 2**h + 1)
    }


def sqrt_sums(T: int, lane: str = "sqrt") -> Statistic:
    r = integer_factor(T)
    return {(lane, t): [r[t - j] if j <= t else 0 for j in range(1, T + 1)] for t in range(1, T + 1)}


def epoch_sums(T: int, inner: dict[int, Statistic]) -> Statistic:
    """Epoch k covers the ticks 2^k .. 2^(k+1) - 1."""
    found: Statistic = {}
    last = T.bit_length()
    assert 2**last == T + 1, "T must end an epoch"
    for k in range(last):
        for address, coefficients in inner[k].items():
            before = 2**k - 1
            found[address] = [0] * before + coefficients + [0] * (T - before - len(coefficients))
    return found


def epoch_tree_sums(T: int) -> Statistic:
    return epoch_sums(T, {k: tree_sums(2**k, 2, f"epoch-{k}") for k in range(T.bit_length())})


def bank_columns(a: Any, K: Any, r: Any) -> list[list[Fraction]]:
    """R of a bank in rational numbers: column j is the innovation sequence of a unit step (optimal-counting 2.1)."""
    columns = []
    for j in range(len(a)):
        xi, column = [Fraction(0)] * len(a[0]), [Fraction(0)] * j
        for t in range(j, len(a)):
            nu = 1 - sum((x * y for x, y in zip(a[t], xi, strict=True)), Fraction(0))
            column.append(nu / r[t])
            xi = [x * y + z * nu for x, y, z in zip(a[t], xi, K[t], strict=True)]
        columns.append(column)
    return columns
