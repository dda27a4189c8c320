"""Small mechanisms as a user would write them: honest ones, and ones with a bug each.

Noise comes from a generator that the key seeds, in integers: sums of floats betray what was added (`FloatNoise`).
"""

from __future__ import annotations

import math

import numpy as np

import evertally as et


class Totals:
    """A noisy total in each tick. An event is in up to `horizon` of them."""

    guarantee = et.PureDP(1.0)
    horizon = 4
    too_small = 1.0  # what the scale is divided by

    def __init__(self, key):
        self.rng = np.random.default_rng(int.from_bytes(key.mac("totals", b""), "little"))
        self.tick, self.total = 0, 0
        self.scale = self.horizon / self.too_small  # all of them claim an epsilon of 1

    def noise(self, scale=None):
        """Discrete Laplace: the difference of two geometric variates."""
        p = -math.expm1(-1 / (scale or self.scale))
        return int(self.rng.geometric(p) - self.rng.geometric(p))

    def step(self, x):
        self.tick += 1
        self.total += x
        return self.answer(x)

    def answer(self, x):
        return self.total + self.noise()


class Once(Totals):
    """One total: all that is lost shows in one number."""

    horizon = 1


# -- honest ----------------------------------------------------------------------------------------------------------


class Clamped(Totals):
    def answer(self, x):
        return max(0, self.total + self.noise())


class Rounded(Totals):
    def answer(self, x):
        return round((self.total + self.noise()) / 10) / 10


class Words(Totals):
    """Labels, lists of changing length and failures, all made of a noisy number."""

    def answer(self, x):
        noisy = self.total + self.noise()
        if noisy < -8:
            raise ValueError(f"{noisy} is too small")
        return ["many"] * min(noisy, 5) if noisy > 0 else {"few": noisy, "sign": "-"}


class Columns(Totals):
    """Three totals; an event is in one of them."""

    columns = 3

    def answer(self, x):
        return self.total + np.array([self.noise() for _ in range(3)])


class Named(Columns):
    def answer(self, x):
        return dict(zip("abc", super().answer(x).tolist(), strict=True))


class Gaussian(Totals):
    """Discrete enough: sigma is 30 cells."""

    guarantee = et.ZCDP(0.5)
    horizon = 1
    cells = 30

    sigma = 1.0  # sqrt(1/(2 rho))

    def noise(self, scale=None):
        return round(self.rng.normal(0, self.cells * self.sigma / self.too_small))

    def answer(self, x):
        return self.cells * self.total + self.noise()


class Approximate(Totals):
    """Tells all in one game of a million, as it may."""

    guarantee = et.ApproxDP(1.0, 1e-6)

    def answer(self, x):
        return (self.total, "!") if self.rng.random() < 1e-6 else (self.total + self.noise(), "")


HONEST = [Totals, Once, Clamped, Rounded, Words, Columns, Named, Gaussian, Approximate]


# -- with a bug ------------------------------------------------------------------------------------------------------


class TenPercentTooSmall(Once):
    too_small = 1 / 0.9


class TooMuchEpsilon(Once):
    too_small = 1.3


class TooMuchEpsilonOverTicks(Totals):
    horizon = 2
    too_small = 1.3


class SigmaTooSmall(Gaussian):
    too_small = 1 / 0.9


class NoiseTwice(Totals):
    """The same draw in the first two ticks."""

    def noise(self, scale=None):
        if self.tick != 2:
            self.drawn = super().noise()
        return self.drawn


class NoNoiseAtTheEnd(Totals):
    def answer(self, x):
        return self.total if self.tick == self.horizon else super().answer(x)


class Half(Totals):
    """A branch of probability 1 % that shows in one world only."""

    def answer(self, x):
        noisy = super().answer(x)
        return noisy + 0.5 if self.total % 2 and self.tick == 2 and self.rng.random() < 0.01 else noisy


class EvenNoise(Totals):
    def answer(self, x):
        return self.total + 2 * self.noise()


class Present(Totals):
    """A label that is there if somebody is."""

    def answer(self, x):
        named = {"all": super().answer(x)}
        return named | {"ward 7": self.noise()} if self.total else named


class Fails(Totals):
    def answer(self, x):
        if self.total == 5:
            raise ValueError("five")
        return super().answer(x)


class FollowsData(Totals):
    """The scale follows the data."""

    def noise(self, scale=None):
        return super().noise(4 / (1 + min(self.total, 3)))


class SeededByData(Totals):
    """The same data has the same noise."""

    def __init__(self, key):
        super().__init__(key)
        self.seed = int.from_bytes(key.mac("totals", b""), "little")

    def answer(self, x):
        self.rng = np.random.default_rng([self.seed % 2**32, self.total])
        return super().answer(x)


class RoundedNoise(Totals):
    """Data in halves, noise in integers."""

    def answer(self, x):
        return self.total * 0.5 + self.noise()


class PerTick(Totals):
    """All of epsilon for each tick."""

    too_small = 4.0


class Threshold(Totals):
    """Shows whether the exact total has reached 3."""

    def answer(self, x):
        return max(3, super().answer(x)) if self.total >= 3 else min(2, super().answer(x))


class Lengths(Totals):
    def answer(self, x):
        return (self.noise(),) * (1 + (self.total > 0))


class NegativeZero(Totals):
    def answer(self, x):
        return float(super().answer(x)) or (0.0 if self.total else -0.0)


class NotANumber(Totals):
    """Zero over zero, in games of little noise."""

    def answer(self, x):
        noisy = super().answer(x)
        return noisy * (self.total / self.total if self.total else math.nan) if abs(noisy) < 2 else float(noisy)


class FloatNoise(Totals):
    """Noise in floats: of 0 + noise all bits are there, of 1 + noise the finest are lost."""

    def answer(self, x):
        return self.total + self.rng.laplace(0, self.scale)


class Types(Totals):
    def answer(self, x):
        noisy = super().answer(x)
        return float(noisy) if x else noisy


class SameNoiseForAll(Totals):
    """A generator that the key does not seed."""

    def __init__(self, key):
        super().__init__(key)
        self.rng = np.random.default_rng(1)


class OneDrawForAllColumns(Columns):
    def answer(self, x):
        return self.total + self.noise()


class Sorted(Named):
    """Keys in the order of the exact counts."""

    def answer(self, x):
        named = super().answer(x)
        order = sorted(range(3), key=lambda i: -np.broadcast_to(self.total, 3)[i])
        return {"abc"[i]: named["abc"[i]] for i in order}


class Repeats(Totals):
    """Nothing happened: the last release once more. Something happened: another one."""

    def answer(self, x):
        if x or self.tick == 1:
            self.last = super().answer(x)
        return self.last


class Quiet(Totals):
    """No noise where nothing happened."""

    def answer(self, x):
        return super().answer(x) if self.total else 0


class TellsSometimes(Totals):
    """(epsilon, delta) with a delta of 2 % in place of 1e-6."""

    guarantee = et.ApproxDP(1.0, 1e-6)

    def answer(self, x):
        return (self.total, "!") if self.rng.random() < 0.02 else (self.total + self.noise(), "")


BROKEN = [
    TenPercentTooSmall, TooMuchEpsilon, TooMuchEpsilonOverTicks, SigmaTooSmall, NoiseTwice, NoNoiseAtTheEnd, Half,
    EvenNoise, Present, Fails, FollowsData, SeededByData, RoundedNoise, PerTick, Threshold, Lengths, NegativeZero,
    NotANumber, FloatNoise, Types, SameNoiseForAll, OneDrawForAllColumns, Sorted, Repeats, Quiet, TellsSometimes,
]  # fmt: skip


class TooMuchEpsilonOverManyTicks(Totals):
    """What 16 numbers lose together shows in games of probability 2^-16: no number of games sees 30 % of it."""

    horizon = 16
    too_small = 1.3


class TenPercentOverManyTicks(Gaussian):
    """All that is lost shows in one score; but 10 % of epsilon are too little for so few games."""

    guarantee = et.ApproxDP(1.0, 1e-6)
    sigma = 4.22 * 0.9  # 4.22 is what (1, 1e-6) needs


UNSEEN = [TooMuchEpsilonOverManyTicks, TenPercentOverManyTicks]


class OncePerMillion(Totals):
    """A branch that so few games never meet."""

    def answer(self, x):
        return self.total + 0.5 if self.rng.random() < 1e-6 else super().answer(x)
