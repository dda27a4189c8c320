"""Random bits that are planted: noise that lies at a half, or in a tail, by the bits of one address."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from planted_ties import ONE, unrolled

from evertally.balls import at_precision
from evertally.counting.bank import BankProcess
from evertally.counting.bank_schedule import Bank, build_bank
from evertally.noise import simulation
from evertally.noise.reals import KnownReals, Reals
from evertally.privacy import ZCDP

Words = tuple[int, int]
_BITS = 700


class PlantedWords:
    """A source of the product, whose first two words at some nodes are planted; all further bits are its own."""

    def __init__(self, seed: int, planted: Mapping[int, Words]) -> None:
        self._source, self._planted = simulation(seed).source("planted"), planted

    def reals(self, lane: str, law: Any, nodes: range, coordinates: int = 1, first: int = 0) -> Reals:
        drawn: Any = self._source.reals(lane, law, nodes, coordinates, first)
        words = np.array(drawn._words)
        for i, node in enumerate(nodes):
            if node in self._planted:
                words[i, :] = self._planted[node]
        return Reals(law.kind, words, drawn._more)


def process(source: Any, bank: Bank, rho: float = 0.5) -> BankProcess:
    return BankProcess(ZCDP(rho), ONE, horizon=bank.horizon, columns=1, source=source, bank=bank)


def words_of(z: arb) -> Words:
    """The first bits of the address of a normal number: its sign, and 127 bits of V, erfc(|z|/sqrt 2) = V."""
    v = (abs(z) / arb(2).sqrt()).erfc() * arb(2) ** 127
    whole = int(v.floor().unique_fmpz())
    return (whole >> 64) << 1 | int(bool(z < 0)), whole & (2**64 - 1)


def at_a_half(seed: int, at: int, off: Fraction, bank: Bank) -> dict[int, Words]:
    """Words of one tick for which the noise there is 5/2 + off, as far as 127 bits say; all other bits are those of the
    source. Written down from the definition of a bank, in balls."""
    model = process(PlantedWords(seed, {}), bank)
    drawn = model._source.reals(model._lane, model._path._law, range(1, at + 1), 1)
    a, K, r = unrolled(bank)

    def exact(value: Fraction) -> arb:
        return arb(value.numerator) / value.denominator

    def wanted() -> Words:
        e = [arb(0)] * bank.states
        for t in range(at - 1):
            nu = exact(r[t]) * drawn.refine(t, 0, _BITS)
            e = [exact(x) * y + exact(k) * nu for x, y, k in zip(a[t], e, K[t], strict=True)]
        carried = sum((exact(x) * y for x, y in zip(a[at - 1], e, strict=True)), arb(0))
        return words_of(((exact(Fraction(5, 2) + off)) / arb(model.sigma) - carried) / exact(r[at - 1]))

    return {at: at_precision(_BITS, wanted)}


def near_half(depth: int, side: int) -> tuple[int, int]:
    """The noise of a tick whose bits put it 2^-depth beside 5/2; and what it must be."""
    bank, at = build_bank(12, 3), 7
    words = at_a_half(1, at, side * Fraction(1, 2**depth), bank)
    return int(process(PlantedWords(1, words), bank).advance(12)[at - 1, 0]), 3 if side > 0 else 2


def on_a_half(seed: int) -> list[int]:
    """The noise of a tick that 127 bits leave open, in three runs."""
    bank, at = build_bank(12, 3), 7
    words = at_a_half(seed, at, Fraction(0), bank)
    return [int(process(PlantedWords(seed, words), bank).advance(12)[at - 1, 0]) for _ in range(3)]


class Coarse:
    """A source of numbers that are known to 2^-40 up to some tick, and exactly from there on: true values are above
    what floats say."""

    def __init__(self, z: list[float], exact: dict[int, Fraction], until: int) -> None:
        self._z, self._exact, self._until = z, exact, until

    def true(self, node: int) -> Fraction:
        if node in self._exact:
            return self._exact[node]
        return Fraction(self._z[node - 1]) + (Fraction(1, 2**41) if node <= self._until else 0)

    def reals(self, lane: str, law: Any, nodes: range, coordinates: int = 1, first: int = 0) -> KnownReals:
        values = KnownReals(np.array([[self._z[node - 1]] for node in nodes]))
        values.radius[:] = [2.0**-40 if node <= self._until else 2.0**-50 for node in nodes]

        def refine(i: int, j: int, bits: int) -> arb:
            value = self.true(nodes[i])
            return at_precision(bits + 64, lambda: arb(value.numerator) / value.denominator)

        values.refine = refine  # type: ignore[method-assign]
        return values


def tie_after_a_restart() -> tuple[int, int]:
    """The noise of the first tick after a restart, 2^-46 above 5/2 although its float states say below; and what it
    must be."""
    bank, at = build_bank(24, 3), 13
    z = np.random.default_rng(3).standard_normal(24).tolist()
    begun = Coarse(z, {}, at - 1)
    model = process(begun, bank)
    a, K, r = unrolled(bank)
    e = [Fraction(0)] * bank.states
    for t in range(at - 1):
        nu = r[t] * begun.true(t + 1)
        e = [x * y + k * nu for x, y, k in zip(a[t], e, K[t], strict=True)]
    carried = sum((x * y for x, y in zip(a[at - 1], e, strict=True)), Fraction(0))
    exact = ((Fraction(5, 2) + Fraction(1, 2**46)) / Fraction(model.sigma) - carried) / r[at - 1]
    z[at - 1] = float(exact)
    source = Coarse(z, {at: exact}, at - 1)
    kept, again = process(source, bank), process(source, bank)
    kept.advance(at - 1)
    again.recall(at - 1, kept.memory())
    return int(again.advance(1)[0, 0]), 3
