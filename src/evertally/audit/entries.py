"""What an entry of the list of audited mechanisms is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evertally.audit.game import Factory
from evertally.privacy import Guarantee


@dataclass(frozen=True)
class Audited:
    """A mechanism to audit, and where its claim is proved. `lacks`: what no audit of it looks at, so that none of them
    can say that it holds, however tight they are."""

    name: str
    make: Factory
    section: str
    tight: bool = True
    why: str = ""
    ticks: int | None = None
    lacks: str = ""

    @property
    def without_power(self) -> str:
        """Why the audit of it may be without power, or nothing."""
        return self.lacks or self.why


def made(kind: Any, guarantee: Guarantee, horizon: int | None, section: str, why: str = "", **options: Any) -> Audited:
    """An entry for a statistic by its options; `why` it cannot show all that is charged for, if it cannot."""
    shown = (f"{name}={len(value) if isinstance(value, list) else value}" for name, value in options.items())
    return Audited(
        f"{kind.__name__}({', '.join([repr(guarantee), f'T={horizon}', *shown])})",
        lambda key: kind(guarantee=guarantee, horizon=horizon, key=key, **options),
        section,
        tight=not why,
        why=why,
    )
