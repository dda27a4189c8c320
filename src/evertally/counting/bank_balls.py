"""Ticks that floats leave open: the path of one coordinate in ball arithmetic, from more bits at the same addresses.

optimal-counting 3.3, tier 3: about 20 us a tick. A path goes on from where it was left, so that even where sums are of
amounts so large that floats decide little, every tick is gone through once; only where 128 bits are too few does it
start again, with twice as many.
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from evertally.balls import decided
from evertally.counting.bank_schedule import Bank
from evertally.noise.reals import KnownReals, Reals
from evertally.secret import Secret

_FIRST_BITS = 128
_LAST_RESORT = 2**15
_GUARD = 64  # bits above those of the variates
_PIECE = 1 << 12  # ticks whose variates are asked for at once

Drawn = Callable[[range], Reals | KnownReals]


class BallPath(Secret):
    """floor(sigma x_t + 1/2) of one coordinate. `drawn(nodes)` gives its variates."""

    def __init__(self, bank: Bank, sigma: float, drawn: Drawn) -> None:
        self._bank, self._sigma, self._drawn = bank, sigma, drawn
        self._again(_FIRST_BITS)

    def _again(self, bits: int) -> None:
        self._bits, self._tick, self._segment, self._inside = bits, 0, 0, 0
        self._e = [arb(0)] * self._bank.states

    def rounded(self, ticks: list[int]) -> list[int]:
        """The rounded noise of some ticks, in order: as many bits as it takes, never fresh ones."""
        if ticks[0] <= self._tick:
            self._again(_FIRST_BITS)
        found: list[int] = []
        while len(found) < len(ticks):
            value = self._value(ticks[len(found)])
            if value is not None:
                found.append(value)
            elif 2 * self._bits <= _LAST_RESORT:
                self._again(2 * self._bits)
            else:
                raise ArithmeticError("2^15 bits of every address leave a tick open: the source of noise is broken")
        if self._bits > _FIRST_BITS:
            self._again(_FIRST_BITS)  # a tick that takes more is rare; the next one need not
        return found

    def _value(self, tick: int) -> int | None:
        """A decision, or None; the path stands at the tick afterwards."""
        while self._tick < tick - 1:
            self._through(min(tick - 1, self._tick + _PIECE))
        x = self._through(tick)

        def rounded() -> int | None:
            whole = (arb(self._sigma) * x + arb(1) / 2).floor().unique_fmpz()
            return None if whole is None else int(whole)

        return decided(rounded, self._bits + _GUARD)

    def _through(self, tick: int) -> arb:
        """Goes on to a tick, and gives x there."""
        z = self._drawn(range(self._tick + 1, tick + 1))
        state = self._tick, self._segment, self._inside, self._e

        def walk() -> tuple[arb, tuple[int, int, int, list[arb]]]:
            t, i, inside, e = state
            first, x = t, arb(0)
            a, K, r = self._coefficients(i)
            while t < tick:
                if inside == self._bank.lengths[i]:
                    i, inside = i + 1, 0
                    a, K, r = self._coefficients(i)
                nu = r * z.refine(t - first, 0, self._bits)
                faded = [p * q for p, q in zip(a, e, strict=True)]
                x = sum(faded, nu)
                e = [p + q * nu for p, q in zip(faded, K, strict=True)]
                t, inside = t + 1, inside + 1
            return x, (t, i, inside, e)

        walked = decided(walk, self._bits + _GUARD)
        assert walked is not None
        x, (self._tick, self._segment, self._inside, self._e) = walked
        return x

    def _coefficients(self, i: int) -> tuple[list[arb], list[arb], arb]:
        bank = self._bank
        return [arb(v) for v in bank.a[i].tolist()], [arb(v) for v in bank.K[i].tolist()], arb(float(bank.r[i]))
