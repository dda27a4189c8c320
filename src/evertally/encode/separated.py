"""Separated participation: a user's events count in ticks that are far enough apart (users-and-domains 1.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from evertally.encode.caps import Cap, IntArray, Kept
from evertally.encode.labels import Codes
from evertally.encode.owners import rank_within_code
from evertally.errors import ConfigurationError
from evertally.integers import whole

_MOST = 2**31 - 1


class SeparatedCap(Cap):
    """Keeps the events of a user in at most `ticks` ticks (None: in any number), `separation` ticks apart.

    An event is kept iff fewer than `ticks` ticks of its user were kept so far, and the last kept one is at least
    `separation` ticks ago. With `calendar=True` instead: iff no tick of its user was kept yet in the same public block
    of `separation` ticks. Block 1 is ticks 1 to `first_block`, by default a whole one; a stream that begins inside a
    block (on a Saturday, with weeks from Monday) has fewer. The two are different rules with different charges: two
    kept ticks of neighbouring blocks may be neighbours. In a kept tick the first `events` events of the user are kept.

    Counted from the last *kept* tick: counted from the last event, busy users would never be heard again. As `UserCap`
    it looks at the user's own events and the clock only, never at their content; what has no user, or several, is not
    kept.

    >>> cap = SeparatedCap(ticks=2, separation=3)
    >>> [cap.keep(["ann", "ann"], tick).tolist() for tick in range(1, 5)]
    [[True, False], [False, False], [False, False], [True, False]]
    >>> cap.keep(["ann", "bob"], tick=9).tolist()
    [False, True]
    >>> week = SeparatedCap(ticks=None, separation=7, calendar=True, first_block=2, events=2)
    >>> [week.keep(["ann"] * 3, tick).sum().item() for tick in range(1, 11)]
    [2, 0, 2, 0, 0, 0, 0, 0, 0, 2]
    """

    format = b"evertally-separated-1\n"
    fields = 2  # in how many ticks the user was kept, and the last of them

    def __init__(
        self,
        ticks: int | None,
        separation: int,
        *,
        calendar: bool = False,
        first_block: int | None = None,
        events: int = 1,
    ) -> None:
        self.ticks = None if ticks is None else whole("ticks", ticks, 1, _MOST)
        self.separation = whole("separation", separation, 1, _MOST)
        if not isinstance(calendar, bool):
            raise ConfigurationError("calendar is True (blocks of ticks) or False (ticks since the last one kept)")
        self.calendar = calendar
        if first_block is not None and not calendar:
            raise ConfigurationError("first_block goes with calendar=True: without blocks there is no first one")
        self.first_block = (
            self.separation if first_block is None else whole("first_block", first_block, 1, self.separation)
        )
        self.events = whole("events", events, 1, _MOST)
        super().__init__()

    def _decide(self, codes: Codes, before: IntArray, tick: int) -> tuple[Kept, IntArray]:
        times, last = before[:, 0], before[:, 1]
        ago = self._block(np.array(tick)) - self._block(last) if self.calendar else tick - last
        free = ago >= (1 if self.calendar else self.separation)
        free |= times == 0
        if self.ticks is not None:
            free &= times < self.ticks
        kept: Kept = free[codes] & (rank_within_code(codes, len(before)) < self.events)
        after = np.stack([times + free, np.where(free, tick, last)], axis=1)
        return kept, after

    def _block(self, ticks: IntArray) -> IntArray:
        """The number of a tick's block, from 1 on."""
        found: IntArray = 1 + (ticks - self.first_block + self.separation - 1) // self.separation
        return found

    def _options(self) -> list[int]:
        return [self.ticks or 0, self.separation, int(self.calendar), self.first_block, self.events]

    @classmethod
    def _of_options(cls, options: Sequence[int]) -> Self:
        ticks, separation, calendar, first, events = options
        first_block = first if calendar else None
        return cls(ticks or None, separation, calendar=bool(calendar), first_block=first_block, events=events)
