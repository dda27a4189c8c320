"""Constructions as engines of the contract."""

from __future__ import annotations

import math
from typing import Any

from evertally.contract.in_place import InPlace
from evertally.noise import ItemSource


class AtWork(InPlace):
    """A construction as an engine. What it says about one tick holds for that tick; the contract asks for all ticks
    together, so each gets its share of the failure probability."""

    def __init__(self, make: Any, source: ItemSource, horizon: int | None, *, returns: bool) -> None:
        super().__init__(make, source, returns=returns)
        self._horizon = horizon

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        if tick is not None:
            beta = beta / self._horizon if self._horizon is not None else 6 * beta / (math.pi * tick) ** 2
        return super().error_bound(beta, tick, trust_largest)
