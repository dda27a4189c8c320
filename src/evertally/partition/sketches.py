"""Noise of H in floats, for typical errors: what the optimal counters would make, without their exact arithmetic.

Accuracy only. Nothing here is ever released, so no bit of it has to be right; in exchange nothing has to be compiled,
and a planner that looks at forty sizes of H takes milliseconds.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from evertally.bounds.extremes import Floats
from evertally.counting.bank_certificate import certified
from evertally.counting.bank_schedule import build_bank
from evertally.counting.block_table import block_table, sizes_for
from evertally.counting.pure_blocks import shares_of
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Source

_FINE = 2**20


def bank_sketch(n: int, count: int, columns: int, source: Source, lane: str) -> Floats:
    """The first `count` of n ticks of a bank, where an event of size 1 is hidden at rho = 1/2."""
    bank = build_bank(n)
    z = source.draws(lane, DiscreteGaussian(_FINE**2), range(1, count + 1), columns) / _FINE
    held = np.repeat(np.arange(len(bank.lengths)), bank.lengths)[:count]
    e = np.zeros((bank.states, columns))
    out = np.empty((count, columns))
    for t, segment in enumerate(held.tolist()):
        nu = bank.r[segment] * z[t]
        e *= bank.a[segment][:, None]
        out[t] = e.sum(axis=0) + nu
        e += bank.K[segment][:, None] * nu
    return out * math.sqrt(certified(bank))


def block_sketch(n: int, count: int, columns: int, source: Source, lane: str) -> Floats:
    """The first `count` of n ticks of blocks of pure noise, where an event of size 1 is hidden at epsilon = 1."""
    sizes = sizes_for(n)
    out, place = np.zeros((count, columns)), np.arange(1, count + 1)
    for i, (size, share) in enumerate(zip(sizes, shares_of(Fraction(1), sizes), strict=True)):
        table, top = block_table(size), i == len(sizes) - 1
        block, row = (np.zeros_like(place), place) if top else divmod(place, size)
        for b in range(int(block[-1]) + 1):
            here = block == b
            rows, back = np.unique(row[here], return_inverse=True)
            nodes = range(1 + b * table.rows, 1 + (b + 1) * table.rows)
            z = source.draws(f"{lane}-{i}", DiscreteLaplace(_FINE), nodes, columns) / (_FINE * float(share))
            out[here] += (table.weights[rows] @ z)[back]
        place = block
    return out
