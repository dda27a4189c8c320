"""A way to answer a question about column sums: a row of the ranked table, and the engine behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evertally.contract.parts import Engine
from evertally.contract.snapshot import guarantee_to_json
from evertally.noise import ItemSource
from evertally.partition import Calibration
from evertally.privacy import Guarantee
from evertally.ranking import Way

NOBODY_SAID = "nothing that was declared bounds how much an answer grows in a tick: declare max_events_per_tick"


@dataclass(frozen=True, kw_only=True)
class ColumnWay(Way):
    """A way that can be built. Its bound holds at all ticks (without a horizon: at tick 2^16) with probability 1 - beta
    of the task; what it would be without a horizon if `largest` were true is that of a stream that reaches it evenly.

    `width`: numbers in a released row. `answers`: these are the answers themselves, not the column sums that they are
    taken from. `calibration`: the numbers that were settled for it.
    """

    charge: Guarantee
    build: Callable[[ItemSource], Engine] = field(repr=False, compare=False)
    width: int
    answers: bool = False
    calibration: Calibration = field(default_factory=Calibration, repr=False, compare=False)

    @property
    def numbers(self) -> dict[str, Any]:
        """What a task needs to be given (`settled`) to come to this way again, as JSON."""
        return self.calibration.numbers | {"charge": guarantee_to_json(self.charge)}
