"""Who is linked to whom: sets of neighbours that can be taken back to where a call began."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from evertally.applications.tables import Table

_NOBODY: frozenset[str] = frozenset()


class Links(Table):
    """A set of neighbours for each vertex. Links go both ways.

    >>> links = Links()
    >>> links.link("a", "b")
    >>> links.begin()
    >>> links.link("b", "c"); links.unlink("b", "a")
    >>> sorted(links.of("b"))
    ['c']
    >>> links.undo()
    >>> sorted(links.of("b")), links.written()
    (['a'], [['a', 'b']])
    """

    def of(self, vertex: str) -> AbstractSet[str]:
        """The neighbours themselves, not a copy: to be looked at."""
        neighbours: AbstractSet[str] = self._entries.get(vertex, _NOBODY)
        return neighbours

    def link(self, one: str, other: str) -> None:
        self._note(one, other)
        self._set(one, other, True)

    def unlink(self, one: str, other: str) -> None:
        self._note(one, other)
        self._set(one, other, False)

    def _note(self, one: str, other: str) -> None:
        pair = (one, other) if one < other else (other, one)
        if pair not in self._log:
            self._log[pair] = other in self.of(one)

    def _set(self, one: str, other: str, linked: bool) -> None:
        for here, there in ((one, other), (other, one)):
            if linked:
                self._entries.setdefault(here, set()).add(there)
            else:
                self._entries.get(here, set()).discard(there)

    def undo(self) -> None:
        pairs: dict[Any, bool] = self._log
        for (one, other), linked in pairs.items():
            self._set(one, other, linked)

    def written(self) -> list[Any]:
        """Each pair once, sorted."""
        sets: dict[Any, set[str]] = self._entries
        return sorted([here, there] for here, linked in sets.items() for there in linked if here < there)

    def read(self, written: list[Any]) -> None:
        self._entries, self._log = {}, {}
        for one, other in written:
            self._set(one, other, True)
