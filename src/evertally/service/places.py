"""Who may hold a connection: so many places for strangers, so many for holders of tokens, a few to ask for health.

A connection is a stranger's until a request on it shows a valid token. When a place is needed, the connection that has
waited longest without a request under way is closed, and of those one of whoever has most of them: who holds
connections open without asking anything loses them to whoever comes next. Strangers and tokens never take from each
other. Whoever finds no place may still ask for health, on a few places of their own.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable


def owner_of(address: str) -> str:
    """Who is behind an address: of IPv6 a whole network of 64 bits, which is what one subscriber gets.

    >>> owner_of("203.0.113.7"), owner_of("2001:db8::1") == owner_of("2001:db8::ffff"), owner_of("::ffff:203.0.113.7")
    ('203.0.113.7', True, '203.0.113.7')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    mapped = found.ipv4_mapped
    return str(mapped or ipaddress.ip_network((int(found) >> 64 << 64, 64)))


class Place:
    """The place of one connection. One that belongs to no pool is never asked to leave."""

    def __init__(self, close: Callable[[], object] = lambda: None) -> None:
        self.close = close
        self.owner = ""
        self.only_health = False
        self.stays = False  # a listener: its answer has no end
        self._pool: _Pool | None = None
        self._places: Places | None = None

    @property
    def stranger(self) -> bool:
        """Whether no request on this connection has shown a token yet."""
        return self._places is None or self._pool is not self._places.known

    def works(self) -> None:
        """A request is under way."""
        if self._pool is not None:
            self._pool.works(self)

    def waits(self) -> None:
        """The next request is waited for."""
        if self._pool is not None:
            self._pool.waits(self)

    def vouch(self, name: str) -> bool:
        """A request has shown the token of this name. False if there is no place for it."""
        if self._places is None or (not self.stranger and self.owner == name):
            return True
        if not self._places.known.enter(self, name):
            return False
        self.works()
        return True

    def leave(self) -> None:
        """The connection is gone. A request that is still under way gets no other place for it."""
        self._places = None
        if self._pool is not None:
            self._pool.leave(self)


class Places:
    """All places of a service.

    >>> places = Places(strangers=2, known=2, health=1)
    >>> first, second, third = (Place(close=lambda n=n: print("closed", n)) for n in (1, 2, 3))
    >>> places.enter(first, "192.0.2.1"), places.enter(second, "192.0.2.1"), first.vouch("till")
    (True, True, True)
    >>> places.enter(third, "192.0.2.2"), places.enter(Place(), "192.0.2.3")  # the token keeps its place
    closed 2
    (True, True)
    """

    def __init__(self, strangers: int, known: int, health: int, *, each: int | None = None) -> None:
        self.strangers = _Pool(strangers, strangers if each is None else each)
        self.known = _Pool(known, max(1, known // 2))  # one token must not shut out the others
        self.health = _Pool(health, health)

    def enter(self, place: Place, address: str) -> bool:
        """A new connection, from an address. False: there is no place for it, not even to ask for health."""
        place._places, owner = self, owner_of(address)
        if self.strangers.enter(place, owner):
            return True
        place.only_health = self.health.enter(place, owner)
        return place.only_health


class _Pool:
    """At most `most` places, and at most `each` for one owner."""

    def __init__(self, most: int, each: int) -> None:
        self._most, self._each = most, each
        self._count: dict[str, int] = {}
        self._waiting: dict[str, dict[Place, None]] = {}  # by owner, those without a request, the oldest first
        self.size = 0

    def enter(self, place: Place, owner: str) -> bool:
        """Takes a place from wherever it was, and closes another if that is needed. False: all of them are at work."""
        if self._count.get(owner, 0) >= self._each:
            if owner not in self._waiting:
                return False
            self._close_one(owner)
        elif self.size >= self._most:
            if not self._waiting:
                return False
            self._close_one(max(self._waiting, key=lambda one: len(self._waiting[one])))
        if place._pool is not None:
            place._pool.leave(place)
        place.owner, place._pool = owner, self
        self.size += 1
        self._count[owner] = self._count.get(owner, 0) + 1
        self.waits(place)
        return True

    def _close_one(self, owner: str) -> None:
        place = next(iter(self._waiting[owner]))
        place.leave()
        place.close()

    def works(self, place: Place) -> None:
        waiting = self._waiting.get(place.owner, {})
        waiting.pop(place, None)
        if not waiting:
            self._waiting.pop(place.owner, None)

    def waits(self, place: Place) -> None:
        self._waiting.setdefault(place.owner, {}).setdefault(place)

    def leave(self, place: Place) -> None:
        self.works(place)
        self.size -= 1
        self._count[place.owner] -= 1
        if not self._count[place.owner]:
            del self._count[place.owner]
        place._pool = None
