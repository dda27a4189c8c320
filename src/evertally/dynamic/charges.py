"""How far one step of the neighbouring relation moves the rows of a signed linear counter (dynamic-data 13.1).

Each number stands for entries +1 and -1 of one item at different ticks, and rests on the Gram matrix G of the noise
process having no negative entry, in places also on its order (G[s,u] <= min(G[s,t], G[t,u]), s < t < u): square root,
trees of any radix, Honaker and epoch tree have both. Of banks the order is not proved: entries of one sign add up there
(S3) where more than two entries meet. Of anybody else's process neither is known: all entries may add up (S2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evertally.counting.processes import Gram
from evertally.dynamic.parts import Identity
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.privacy import Change, Neighbours

Unit = Literal["event", "item"]


@dataclass(frozen=True)
class Encoder:
    """What the encoder does with one item: the largest l1, squared l2 and largest entry of a column of the strategy,
    and whether no entry is negative.

    >>> Encoder()
    Encoder(l1=1, l2_squared=1, linf=1, positive=True)
    """

    l1: int = 1
    l2_squared: int = 1
    linf: int = 1
    positive: bool = True


@dataclass(frozen=True)
class Relation:
    """What must not be told apart: the declared facts that a charge follows from.

    >>> Relation("token", "item").change(Encoder())
    Change(l1=2, l2_squared=2, linf=1)
    """

    identity: Identity
    protects: Unit
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    deletions: bool = True
    lifetimes: int = 1  # of a name from outside
    unique_deletions: bool = False  # declared: no item is deleted twice
    max_events_per_user: int | None = None
    max_lifetime: int | None = None

    def __post_init__(self) -> None:
        """Refuses what has no bounded, or no proved, charge (12, 13.1)."""
        if self.identity not in ("id", "token", "value", "raw"):
            raise ConfigurationError(f'identity is "id", "token", "value" or "raw", not {self.identity!r}')
        if self.protects not in ("event", "item"):
            raise ConfigurationError(f'protects is "event" or "item", not {self.protects!r}')
        if self.neighbours is Neighbours.INDEPENDENT:
            raise ConfigurationError('dynamic data are protected under "add_remove" or "replace" neighbours only')
        by_name = self.identity in ("id", "token")
        if self.identity != "id" and self.lifetimes != 1:
            raise ConfigurationError('lifetimes belongs to identity="id": how often a name from outside may live')
        if self.unique_deletions and by_name:
            raise ConfigurationError(
                'unique_deletions belongs to identity="raw" and "value"; where items have names, repeats are dropped'
            )
        if self.max_lifetime is not None and not by_name:
            raise ConfigurationError(
                "max_lifetime needs items with names: by value nobody can say which copy expires. "
                'Use identity="id" or "token"'
            )
        if self.protects == "item" and not by_name and self.deletions and not self.unique_deletions:
            raise ConfigurationError(
                f'identity="{self.identity}" cannot protect items: a deletion that comes twice takes away something '
                'else. Use identity="id" or "token", or protects="event", or declare unique_deletions=True if no item '
                "can be deleted twice, by construction of the source"
            )
        if self.identity == "value" and self.deletions and self.neighbours is Neighbours.REPLACE:
            raise ConfigurationError(
                'identity="value" has no proved charge for "replace" neighbours; use "add_remove", or names or tokens'
            )
        if self.max_events_per_user is not None and self.protects == "item":
            raise ConfigurationError("unit='user' protects whole events; use protects='event'")

    def change(self, encoder: Encoder, gram: Gram = Gram.ORDERED) -> Change:
        """What the linear engine has to hide, by what is proved of its noise."""
        rows = self._rows(encoder.positive, gram)
        if self.max_events_per_user is not None:
            rows = rows.group(self.max_events_per_user)
        return Change(rows.l1 * encoder.l1, rows.l2_squared * encoder.l2_squared, rows.linf * encoder.linf)

    def runs(self, encoder: Encoder) -> int:
        """Squared distance of the presence paths, as a multiple of one run of at most `max_lifetime` ticks in one cell
        times the encoder's l2 (13.2, users-and-domains 1.4): what the path process has to hide."""
        assert self.max_lifetime is not None
        # Runs of one name do not overlap. Where no entry of the encoder is negative, cross terms are not positive.
        item = self.lifetimes if encoder.positive else self.lifetimes**2
        if self.identity == "id" and self.protects == "event":
            item *= 4  # from one path of the name to another one: a group of 2
        if self.neighbours is Neighbours.REPLACE:
            item *= 4
        users = self.max_events_per_user or 1
        return item * users * users

    @property
    def steps(self) -> int:
        """How many lifetimes (by value and raw: updates of the event unit, or items) one step of the relation changes,
        for constructions that know what one costs."""
        one = self.lifetimes * (2 if self.protects == "event" else 1) if self.identity == "id" else 1
        both = 2 if self.neighbours is Neighbours.REPLACE else 1
        return one * both * (self.max_events_per_user or 1)

    def _rows(self, positive: bool, gram: Gram) -> Change:
        replaced = self.neighbours is Neighbours.REPLACE
        if not self.deletions and self.max_lifetime is None:
            return self._insertions(positive and gram >= Gram.NONNEGATIVE, replaced)
        rows = {"raw": self._raw, "token": self._token, "value": self._value, "id": self._id}[self.identity]
        return rows(positive, gram, replaced)

    def _insertions(self, no_signs: bool, replaced: bool) -> Change:
        """Nothing is ever deleted: factorization-counting 6.3. A name from outside may move its one insertion to
        another tick and cell."""
        one = Change(1, 1, 1)
        moved = Change(2, 2, 1) if no_signs else one.group(2)
        if self.identity == "id":
            if self.lifetimes > 1:
                raise ConfigurationError("without deletions a name lives once: leave out lifetimes")
            first = moved if self.protects == "event" else one
            return first.group(2) if replaced else first
        return moved if replaced else one

    def _raw(self, positive: bool, gram: Gram, replaced: bool) -> Change:
        if self.protects == "event":
            # 14.11: a replaced update may have the other sign, two in one cell
            return Change(2, 4, 2) if replaced else Change(1, 1, 1)
        if replaced:
            # order and equal values are nobody's to declare here: (2, -2) in one tick
            return Change(4, 8, 2) if positive and gram >= Gram.NONNEGATIVE else Change(4, 16, 4)
        # a deletion may name another value than the insertion
        return Change(2, 2, 1) if positive and gram >= Gram.NONNEGATIVE else Change(2, 4, 2)

    def _token(self, positive: bool, gram: Gram, replaced: bool) -> Change:
        one = (
            Change(2, 2, 1) if gram >= Gram.NONNEGATIVE else Change(2, 4, 2)
        )  # both units: +g at one tick, -g at another
        if not replaced:
            return one
        if self.protects == "item" and gram is Gram.ORDERED and positive:
            return Change(4, 6, 2)  # signs (+,-,-,+) or alternating
        return one.group(2)  # two events (14.11); signed encoders: 8

    def _value(self, positive: bool, gram: Gram, replaced: bool) -> Change:
        assert not replaced
        one = Change(2, 2, 1) if gram >= Gram.NONNEGATIVE else Change(2, 4, 2)
        if self.protects == "event":
            return one  # one more from the update until both are 0 (6.3)
        return Change(4, 6, 2) if gram is Gram.ORDERED and positive else one.group(2)

    def _id(self, positive: bool, gram: Gram, replaced: bool) -> Change:
        k = whole("lifetimes", self.lifetimes, 1, 2**20)
        if gram is Gram.UNKNOWN:
            item = Change(2 * k, 4 * k * k, 2 * k)
        elif k == 1 or (positive and gram is Gram.ORDERED):
            item = Change(2 * k, 2 * k, 1)  # one after another, never two at once
        else:
            item = Change(2 * k, 2 * k * k, k)
        # 6.3: without its first insertion a name may begin another life, in another cell. From one path of the name to
        # another one is twice the way from one to none.
        unit = item.group(2) if self.protects == "event" else item
        return unit.group(2) if replaced else unit
