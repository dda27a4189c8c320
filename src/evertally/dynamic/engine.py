"""Arrivals in, released rows out: presence before any engine that takes updates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evertally.contract.in_place import InPlace
from evertally.contract.parts import Accuracy, Engine, Played
from evertally.dynamic.presence import Presence
from evertally.encode.updates import Arrivals
from evertally.noise import ItemSource
from evertally.secret import Secret


class PresenceEngine(Secret):
    """An engine that takes `Updates`, behind the rule that says which of them are valid. What lives moves with the
    engine: both go back together, and both are in a snapshot."""

    def __init__(self, presence: Presence[Any], inner: Engine) -> None:
        self.presence, self.inner = presence, inner
        self.width = inner.width

    def start(self) -> Any:
        return self.inner.start()

    def begin(self, tick: int) -> None:
        self.presence.begin(tick)
        self.inner.begin(tick)

    def play(self, batch: Sequence[Arrivals], state: Any) -> Played:
        return self.inner.play([self.presence.admit(arrivals) for arrivals in batch], state)

    def go_back(self, tick: int, state: Any) -> None:
        self.presence.undo(tick)
        self.inner.go_back(tick, state)

    def accuracy(self, tick: int) -> Accuracy:
        return self.inner.accuracy(tick)

    def window(self, tick: int, window: int) -> Accuracy:
        return self.inner.window(tick, window)

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        return self.inner.error_bound(beta, tick, trust_largest)

    def save(self, state: Any) -> list[bytes]:
        return [self.presence.save(), *self.inner.save(state)]

    def load(self, tick: int, parts: list[bytes]) -> Any:
        self.presence.load(tick, parts[0])
        return self.inner.load(tick, parts[1:])


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
