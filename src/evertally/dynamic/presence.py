"""Which items live, by the rule of an identity (dynamic-data 6.3, 13.1)."""

from __future__ import annotations

from typing import Any

from evertally.dynamic.lifetimes import Minted, Named
from evertally.dynamic.living import Everything, Multiplicities, Presence
from evertally.dynamic.parts import Identity
from evertally.dynamic.tokens import Tokens
from evertally.noise import ItemSource

__all__ = ["Everything", "Minted", "Multiplicities", "Named", "Presence", "presence_of"]


def presence_of(
    identity: Identity, source: ItemSource, *, protects: str, lifetimes: int = 1, longest: int | None = None
) -> Presence[Any]:
    """Which items live, by the rule of an identity."""
    counts_all = protects == "event"
    if identity == "id":
        return Named(lifetimes=lifetimes, counts_all=counts_all, longest=longest)
    if identity == "token":
        return Minted(Tokens(source), counts_all=counts_all, longest=longest)
    assert longest is None, "what expires must have a name (13.2)"
    return (Multiplicities if identity == "value" else Everything)(counts_all=counts_all)
