"""The coefficients of a bank: public numbers that depend on the horizon alone (optimal-counting 1 and 4).

A bank is Q one-pole filters fed by one normal number a tick. Poles come from Zolotarev's approximation of x^(-1/2); the
weights p, q of ticks are balanced until variance and sensitivity of the bank itself are the same at all ticks; then
gains by Riccati's recursion, held on segments. All of this is design: whatever the numbers are, privacy rests on their
certificate (bank_certificate.py), so nothing here needs a proof.

Made of + - * / and square roots in a fixed order and of logarithms and poles rounded from balls, so that two machines
build the same numbers; a stream keeps its own all the same.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from flint import acb, arb
from numpy.typing import NDArray

from evertally.balls import certain, sharp
from evertally.counting import bank_kernels as kernels
from evertally.counting.process import FloatArray
from evertally.errors import StateError

HOLD = 32  # a segment is at most 1/32 of the distance to the nearer end
_ITERATIONS = 60
_PRECISION = 256
_SHARP = 80

Lengths = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Bank:
    """a, K (segments x states) and r (segments), held for `lengths` ticks each: exact dyadic numbers that define L.

    >>> bank = build_bank(64)
    >>> bank.a.shape[1], bank.horizon, bank.digest == build_bank(64).digest
    (4, 64, True)
    """

    a: FloatArray
    K: FloatArray
    r: FloatArray
    lengths: Lengths

    @cached_property
    def horizon(self) -> int:
        return int(self.lengths.sum())

    @property
    def states(self) -> int:
        return int(self.a.shape[1])

    @cached_property  # one bank serves all processes of its horizon
    def digest(self) -> str:
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        head = np.array(self.a.shape, dtype="<i8").tobytes()
        parts = (self.a.astype("<f8"), self.K.astype("<f8"), self.r.astype("<f8"), self.lengths.astype("<i8"))
        return head + b"".join(part.tobytes() for part in parts)

    @classmethod
    def from_bytes(cls, data: bytes) -> Bank:
        head = np.frombuffer(data[:16], dtype="<i8") if len(data) >= 16 else np.zeros(2, dtype=np.int64)
        n, Q = int(head[0]), int(head[1])
        if n < 1 or Q < 1 or len(data) != 16 + 8 * n * (2 * Q + 2):
            raise StateError("these bytes are not the coefficients of a bank; restore from an intact snapshot")
        numbers = np.frombuffer(data[16 : 16 + 8 * n * (2 * Q + 1)], dtype="<f8").astype(np.float64)
        lengths = np.frombuffer(data[-8 * n :], dtype="<i8").astype(np.int64)
        a, K, r = numbers[: n * Q], numbers[n * Q : 2 * n * Q], numbers[2 * n * Q :]
        return cls(a.reshape(n, Q).copy(), K.reshape(n, Q).copy(), r.copy(), lengths)


def states_for(horizon: int) -> int:
    """Q: four numbers of state up to 2^12 ticks, six to 2^20, eight to 2^24, ten beyond."""
    return next((Q for Q, longest in ((4, 2**12), (6, 2**20), (8, 2**24)) if horizon <= longest), 10)


@lru_cache(maxsize=24)
def build_bank(horizon: int, states: int | None = None) -> Bank:
    """The bank of a horizon, at most 0.3 % above the least error there is."""
    Q = min(states or states_for(horizon), horizon)
    lengths = segments(horizon)
    t = np.cumsum(lengths) - lengths + lengths // 2
    early, late = logarithms(t + 1), logarithms(horizon - t)
    q = np.sqrt((late + 1.4) / (early + 1.4))
    p, q, s, w = balance(1 / q, q, lengths, np.ones(len(lengths)), 1.9, Q)
    return _held(p, q, s, w, lengths)


def _held(p: FloatArray, q: FloatArray, s: FloatArray, w: FloatArray, lengths: Lengths) -> Bank:
    diagonal, gains = kernels.compiled("diagonal"), kernels.compiled("gains")
    columns = [diagonal(p, q, lengths, pole, 1.0, np.zeros(len(lengths)), False) * p * q for pole in s]
    a = np.array([1 / (1 + column) for column in columns]).T.copy()
    K, r = gains(a, q, w, lengths)
    return Bank(a, K, r, lengths)


def segments(horizon: int, hold: int = HOLD) -> Lengths:
    """Lengths that add up to the horizon, short where the ends are near.

    >>> segments(200)[:3].tolist(), int(segments(200).max()), int(segments(200).sum())
    ([1, 1, 1], 3, 200)
    """
    lengths: list[int] = []
    t = 0
    while t < horizon:
        lengths.append(max(1, min(t, horizon - 1 - t) // hold))
        t += lengths[-1]
    return np.array(lengths, dtype=np.int64)


def balance(
    p: FloatArray, q: FloatArray, lengths: Lengths, wanted: FloatArray, low: float, Q: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Weights for which variance/wanted and sensitivity of the Q-pole bank itself are constant; and its poles."""
    ones = np.ones(len(lengths))
    p, q = reweighed(p, ones, lengths), reweighed(q, ones, lengths)
    s, w = poles(low, float(4 / (p * q).min()), Q)
    at_infinity, at_zero, t, rho = inverse_fractions(s, w)
    diagonal = kernels.compiled("diagonal")
    for _ in range(_ITERATIONS):
        rows, columns = np.zeros(len(lengths)), np.zeros(len(lengths))
        for k in range(Q):
            diagonal(p, q, lengths, s[k], w[k], rows, False)
        for k in range(Q - 1):
            diagonal(p, q, lengths, t[k], rho[k], columns, True)
        after = np.cumsum((p * lengths)[::-1])[::-1] - p * (lengths - 1 - lengths // 2)
        variance, sensitivity = rows / p / wanted, (columns + at_infinity + at_zero * q * after) / q
        p, q = reweighed(p, variance, lengths), reweighed(q, sensitivity, lengths)
    return p, q, s, w


def reweighed(x: FloatArray, f: FloatArray, lengths: Lengths) -> FloatArray:
    """x f^1.75, f relative to its mean, so that the sum over all ticks is 1. `cumsum` adds in a fixed order."""
    g = f / np.cumsum(f * x * lengths)[-1]
    y = x * g * np.sqrt(g) * np.sqrt(np.sqrt(g))
    return np.asarray(y / np.cumsum(y * lengths)[-1])


def logarithms(numbers: Lengths) -> FloatArray:
    """Natural logarithms, rounded from balls."""
    return np.array([_logarithm(n) for n in numbers.tolist()])


def _logarithm(n: int) -> float:
    return 0.0 if n == 1 else certain(lambda: sharp(arb(n).log(), _SHARP), _PRECISION)


def poles(low: float, high: float, Q: int) -> tuple[FloatArray, FloatArray]:
    """Zolotarev: sum_k w_k/(x + s_k) close to x^(-1/2) on [low, high], up to a factor, which does not matter.

    s = low sc(u)^2 and w ~ dn(u)/cn(u)^2 at u = (2k-1) K/(2Q), modulus 1 - low/high, by theta functions.

    >>> s, w = poles(2.0, 2000.0, 4)
    >>> x = np.array([2.0, 30.0, 2000.0])
    >>> fit = (w / (x[:, None] + s)).sum(axis=1) * np.sqrt(x)
    >>> bool(fit.max() / fit.min() < 1.01)
    True
    """
    both = [_rounded_pair(partial(_pole, low, high, Q, k)) for k in range(1, Q + 1)]
    return np.array([s for s, _ in both]), np.array([w for _, w in both])


def _pole(low: float, high: float, Q: int, k: int) -> tuple[arb, arb]:
    squared = arb(low) / arb(high)  # of the complementary modulus
    # tau = i K'/K, and K = pi/(2 agm(1, k'))
    tau = acb(0, arb(1).agm(squared.sqrt()) / arb(1).agm((1 - squared).sqrt()))
    at = acb(arb(2 * k - 1) / (4 * Q))
    zero, moved = acb(0).modular_theta(tau), at.modular_theta(tau)
    _, two, three, four = (theta.real for theta in zero)
    one_at, two_at, three_at, four_at = (theta.real for theta in moved)
    s = arb(low) * (three * one_at / (four * two_at)) ** 2
    w = three_at * four_at * two**2 / (three * four * two_at**2) / Q
    return s, w


def inverse_fractions(s: FloatArray, w: FloatArray) -> tuple[float, float, FloatArray, FloatArray]:
    """1/(x r(x)) = r_inf + r_0/x + sum_k rho_k/(x + t_k) for r(x) = sum_k w_k/(x + s_k), all of them positive.

    -t_k is the root of r between two poles, found by bisection in balls.
    """
    order = np.argsort(s)
    s, w = s[order], w[order]

    def fractions() -> tuple[list[float], list[float], float, float] | None:
        ts, rhos = [], []
        for k in range(len(s) - 1):
            t = _root(s, w, k)
            rho = 1 / (t * sum((arb(b) / (arb(a) - t) ** 2 for a, b in zip(s, w, strict=True)), arb(0)))
            ts.append(sharp(t, 60))
            rhos.append(sharp(rho, 60))
        infinity = sharp(1 / sum((arb(b) for b in w), arb(0)), _SHARP)
        zero = sharp(1 / sum((arb(b) / arb(a) for a, b in zip(s, w, strict=True)), arb(0)), _SHARP)
        if infinity is None or zero is None:
            return None
        known = [t for t in ts if t is not None], [rho for rho in rhos if rho is not None]
        return (*known, infinity, zero) if len(known[0]) == len(known[1]) == len(s) - 1 else None

    t, rho, infinity, zero = certain(fractions, _PRECISION)
    return infinity, zero, np.array(t), np.array(rho)


def _root(s: FloatArray, w: FloatArray, k: int) -> arb:
    low, high = arb(s[k]), arb(s[k + 1])
    for _ in range(200):
        middle = arb(((low * high).sqrt()).mid())
        # Between two poles r(-x) rises from minus infinity (just above s_k) to plus infinity.
        if sum((arb(b) / (arb(a) - middle) for a, b in zip(s, w, strict=True)), arb(0)) > 0:
            high = middle
        else:
            low = middle
    return low.union(high)


def _rounded_pair(formula: Any) -> tuple[float, float]:
    def both() -> tuple[float, float] | None:
        one, other = (sharp(part, _SHARP) for part in formula())
        return None if one is None or other is None else (one, other)

    return certain(both, _PRECISION)


def fits_lemma(bank: Bank, lam: float = 1.0) -> bool:
    """0 <= a <= lam, K >= 0 and the exact sum of K at most 1 at every tick: then R >= 0 (optimal-counting 2.3). `lam`
    is 1 for counting."""
    bounded = bool((bank.a >= 0).all() and (bank.a <= lam).all() and (bank.K >= 0).all())
    return bounded and all(sum(map(Fraction, row)) <= 1 for row in bank.K.tolist())
