"""Noise that misses a half by very little at one tick: floats must leave it open, and more bits must decide it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from evertally.balls import at_precision
from evertally.counting.bank import BankProcess
from evertally.counting.bank_schedule import Bank, build_bank
from evertally.noise import ZeroNoise
from evertally.noise.reals import KnownReals
from evertally.privacy import ZCDP, Change

ONE = Change(1, 1, 1)
Rational = list[list[Fraction]]


def unrolled(bank: Bank) -> tuple[Rational, Rational, list[Fraction]]:
    a, K, r = (np.repeat(part, bank.lengths, axis=0).tolist() for part in (bank.a, bank.K, bank.r))
    return (
        [[Fraction(v) for v in row] for row in a],
        [[Fraction(v) for v in row] for row in K],
        [Fraction(v) for v in r],
    )


class Planted:
    """A source of known numbers, some of which have more bits than a float."""

    def __init__(self, z: np.ndarray, exact: dict[int, Fraction]) -> None:
        self._z, self._exact = z, exact

    def reals(self, lane: str, law: Any, nodes: range, coordinates: int = 1, first: int = 0) -> KnownReals:
        values = KnownReals(np.array([[self._z[node - 1]] for node in nodes]))
        values.radius[:] = 2.0**-50
        exact = self._exact
        values.refine = lambda i, j, bits: (  # type: ignore[method-assign]
            at_precision(bits + 64, lambda: arb(exact[nodes[i]].numerator) / arb(exact[nodes[i]].denominator))
            if nodes[i] in exact
            else arb(float(self._z[nodes[i] - 1]))
        )
        return values


def planted_tie(depth: int, side: int) -> tuple[int, int]:
    """The rounded noise of a tick whose true noise is 5/2 + side/2^depth; and what it must be."""
    T, at = 12, 7
    bank = build_bank(T, 3)
    z = np.random.default_rng(1).standard_normal(T)
    model = BankProcess(ZCDP(0.5), ONE, horizon=T, columns=1, source=ZeroNoise().source(), bank=bank)
    a, K, r = unrolled(bank)
    e = [Fraction(0)] * bank.states
    for t in range(at - 1):
        nu = r[t] * Fraction(float(z[t]))
        e = [x * y + k * nu for x, y, k in zip(a[t], e, K[t], strict=True)]
    carried = sum((x * y for x, y in zip(a[at - 1], e, strict=True)), Fraction(0))
    wanted = Fraction(5, 2) + side * Fraction(1, 2**depth)
    exact = (wanted / Fraction(model.sigma) - carried) / r[at - 1]
    z[at - 1] = float(exact)
    source: Any = Planted(z, {at: exact})
    planted = BankProcess(ZCDP(0.5), ONE, horizon=T, columns=1, source=source, bank=bank)
    return int(planted.advance(T)[at - 1, 0]), 3 if side > 0 else 2
