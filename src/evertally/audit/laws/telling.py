"""Ticks that tell most about a change, at horizons that nobody walks through.

A change of tick j is in every block of ticks around it, of whatever length. The releases at both ends of such a block
differ by what the block holds, and by no noise but that of blocks in it or at its ends: so the ends of the blocks of
every length tell nearly all, and there are few of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

OPEN_ENDED = 2**20  # ticks that are looked at where there is no horizon
_FIRST_TICKS = 8


def block_ends(tick: int, radix: int, horizon: int) -> list[int]:
    """Both ends of every block of radix^i ticks around a tick.

    >>> block_ends(5, 2, 16)
    [4, 5, 6, 8, 16]
    """
    found, length = set(), 1
    while length <= horizon:
        block = -(-tick // length)
        found |= {block * length, (block - 1) * length}
        length *= radix
    return sorted(t for t in found if 1 <= t <= horizon)


def telling_for(process: Any, tick: int, horizon: int) -> list[int]:
    """The ticks at which a change of this tick is looked at: ends of blocks, by the radix of the process (2 where it
    has none), and the last two ticks."""
    radix = int(getattr(process, "radix", 2))
    found = {*block_ends(tick, radix, horizon), tick, max(1, tick - 1), max(1, horizon - 1), horizon}
    found |= {*range(tick, min(horizon, tick + _FIRST_TICKS) + 1)}
    if getattr(process, "horizon", None) is None:
        # Epochs double: what is in one begins behind the last power of two.
        found |= {power + step for power in _powers(2, horizon) for step in (-1, 1)}
    return sorted(t for t in found if 1 <= t <= horizon)


def nested(horizon: int) -> list[int]:
    """Powers of two, and what is half, a quarter, .. of one further: where the refined tree shows the noise that it
    mixes into its estimates.

    >>> nested(8)
    [1, 2, 3, 4, 6, 7, 8]
    """
    found = set()
    for power in _powers(2, horizon):
        tick, step = power, power
        while tick <= horizon and step:
            found.add(tick)
            step //= 2
            tick += step
    return sorted(t for t in found if t <= horizon)


def spread_over(horizon: int) -> list[int]:
    """Ticks whose change is tried: both ends, the middle, and some between."""
    tried: Iterable[int] = (1, 2, horizon // 3, horizon // 2, horizon // 2 + 1, horizon - horizon // 5, horizon - 1)
    return sorted({t for t in (*tried, horizon) if 1 <= t <= horizon})


def _powers(base: int, most: int) -> list[int]:
    found = [1]
    while found[-1] * base <= most:
        found.append(found[-1] * base)
    return found
