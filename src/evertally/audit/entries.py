"""What an entry of the list of audited mechanisms is."""

from __future__ import annotations

from dataclasses import dataclass

from evertally.audit.game import Factory


@dataclass(frozen=True)
class Audited:
    """A mechanism to audit, and where its claim is proved."""

    name: str
    make: Factory
    section: str
    tight: bool = True
    why: str = ""
    ticks: int | None = None
