"""What a fault showed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evertally.audit.faults.plays import Seen
from evertally.audit.report import Report


@dataclass(frozen=True)
class Found:
    """Whether the transcript was that of one stream; `told` is the evidence, in terms of releases. `played` is False
    where nothing could be seen: then `told` is the reason."""

    leaked: bool
    told: str
    played: bool = True

    def report(self, model: Any, name: str) -> Report:
        """As a row of the audit."""
        method = "attack" if self.played or self.leaked else "not here"
        return Report.attack(model, name, self.leaked, self.told, method)


def leak(told: str) -> Found:
    return Found(True, told)


def held(told: str) -> Found:
    return Found(False, told)


def not_here(reason: str) -> Found:
    return Found(False, reason, played=False)


def first_difference(some: Sequence[Seen], others: Sequence[Seen]) -> str | None:
    """Where two transcripts of the same ticks part, in words; None if they do not."""
    for one, other in zip(some, others, strict=False):
        if one != other:
            return f"tick {one[0]} shows {_cut(one[1])}, undisturbed {_cut(other[1])}"
    return None if len(some) == len(others) else f"{len(some)} releases instead of {len(others)}"


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
