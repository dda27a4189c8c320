"""An engine behind a secret rule that changes in place: which items live, which edges were seen, what a word is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from evertally.contract.parts import Accuracy, Engine, Played, Widening
from evertally.secret import Secret


class Admission(Protocol):
    """What comes in, as the engine takes it, by a rule with a memory. What a call changes can be taken back.

    One that knows users by name has `recognise` and `erase`, too (`Erasing`, erasure.py); otherwise requests to erase a
    user are refused.
    """

    def begin(self, tick: int) -> None:
        """A call begins after `tick` ticks: where `undo` goes back to."""

    def undo(self, tick: int) -> None:
        """Back to the beginning of the call. Can itself be interrupted, and done again."""

    def admit(self, arrivals: Any) -> Any:
        """The next tick, as the engine takes it."""

    def save(self) -> bytes:
        """All of it as secret bytes, the same for the same state."""

    def load(self, tick: int, data: bytes) -> None:
        """The way back."""


class AdmissionEngine(Secret):
    """Rule and engine move together: both go back together, and both are in a snapshot."""

    def __init__(self, rule: Admission, inner: Engine) -> None:
        self.rule, self.inner = rule, inner
        self.width = inner.width

    def start(self) -> Any:
        return self.inner.start()

    def begin(self, tick: int) -> None:
        self.rule.begin(tick)
        self.inner.begin(tick)

    def play(self, batch: Sequence[Any], state: Any) -> Played:
        return self.inner.play([self.rule.admit(arrivals) for arrivals in batch], state)

    def go_back(self, tick: int, state: Any) -> None:
        self.rule.undo(tick)
        self.inner.go_back(tick, state)

    def accuracy(self, tick: int) -> Accuracy:
        return self.inner.accuracy(tick)

    def widest(self, tick: int) -> Accuracy | None:
        return self.inner.widest(tick) if isinstance(self.inner, Widening) else None

    def window(self, tick: int, window: int) -> Accuracy:
        return self.inner.window(tick, window)

    @property
    def differences(self) -> bool:
        return bool(getattr(self.inner, "differences", True))

    def combined(self, weights: Mapping[int, float]) -> Accuracy | None:
        known = getattr(self.inner, "combined", None)
        return None if known is None else known(weights)

    @property
    def exact_windows(self) -> bool:
        return bool(getattr(self.inner, "exact_windows", False))

    def error_bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        return self.inner.error_bound(beta, tick, trust_largest)

    def save(self, state: Any) -> list[bytes]:
        return [self.rule.save(), *self.inner.save(state)]

    def load(self, tick: int, parts: list[bytes]) -> Any:
        self.rule.load(tick, parts[0])
        return self.inner.load(tick, parts[1:])
