"""Items with names: each lives in one cell, from its insertion until it is deleted or its time is over.

dynamic-data 6.3 (T), 13.1, 13.2, 14.2. A name from outside lives a declared number of times; a name that is minted here
lives once.
"""

from __future__ import annotations

from abc import abstractmethod

from evertally.dynamic.living import Life, Name, Presence
from evertally.dynamic.tokens import Tokens
from evertally.encode.updates import Arrivals


class Lifetimes(Presence[Name]):
    """Items with names, each living in one cell, for at most `longest` ticks if there is such a limit (13.2). Not used
    directly."""

    def __init__(self, *, counts_all: bool, longest: int | None) -> None:
        super().__init__(counts_all=counts_all)
        self._longest = longest
        # Who was inserted when. A tick that is played again writes its list anew; lists that are done go in `begin`.
        self._inserted: dict[int, list[Name]] = {}
        self._oldest = 1

    def begin(self, tick: int) -> None:
        super().begin(tick)
        while self._longest is not None and self._oldest + self._longest <= tick:
            self._inserted.pop(self._oldest, None)
            self._oldest += 1

    def load(self, tick: int, data: bytes) -> None:
        super().load(tick, data)
        self._inserted = {}
        self._oldest = max(1, tick - (self._longest or 0))
        if self._longest is not None:
            living = [(life[1], life[2], name) for name, life in self._lives.items() if life[0] >= 0]
            for _, inserted, name in sorted(living):
                self._inserted.setdefault(inserted, []).append(name)

    def _changes(self, arrivals: Arrivals, tick: int) -> list[tuple[int, int, int]]:
        changes: list[tuple[int, int, int]] = []
        newcomers: list[Name] = []
        if self._longest is not None:
            self._inserted[tick] = newcomers
            # Before the tick's own updates: an item is in at most `longest` releases.
            for old in self._inserted.get(tick - self._longest, ()):
                life = self._lives.get(old)
                if life is not None and life[0] >= 0 and life[2] == tick - self._longest:
                    changes.append((life[0], -1, life[1]))
                    self._end(old, life)
        for cell, sign, name in zip(arrivals.cells.tolist(), arrivals.signs.tolist(), arrivals.names, strict=True):
            if sign > 0:
                begun = self._begin_life(name, cell, tick)
                if begun is not None:
                    newcomers.append(begun)
                    changes.append((cell, 1, self._lives[begun][1]))
                continue
            found = self._found(name)
            life = None if found is None else self._lives.get(found)
            if found is not None and life is not None and life[0] >= 0:
                changes.append((life[0], -1, life[1]))
                self._end(found, life)
        return changes

    @abstractmethod
    def _begin_life(self, name: str | None, cell: int, tick: int) -> Name | None:
        """Lets an item live, if it may; gives its name."""

    @abstractmethod
    def _found(self, name: str | None) -> Name | None:
        """The item that a deletion names."""

    @abstractmethod
    def _end(self, name: Name, life: Life) -> None:
        """An item lives no more."""

    def _number(self) -> int:
        self._next += 1
        return self._next - 1


class Named(Lifetimes[str]):
    """Names come from outside. A name that lives is not inserted again, one that does not live is not deleted, and
    each lives `lifetimes` times at most: dead names are remembered.

    >>> import numpy as np
    >>> named = Named(lifetimes=1, counts_all=False, longest=None)
    >>> def play(signs, names):
    ...     return named.admit(Arrivals(np.zeros(len(signs), int), np.array(signs), names)).signs.tolist()
    >>> play([1, 1, -1], ["ann", "ann", "bob"]), play([-1, -1, 1], ["ann", "ann", "ann"])
    ([1], [-1])
    """

    kind = b"id"

    def __init__(self, *, lifetimes: int, counts_all: bool, longest: int | None) -> None:
        super().__init__(counts_all=counts_all, longest=longest)
        self._lifetimes = lifetimes

    def _begin_life(self, name: str | None, cell: int, tick: int) -> str | None:
        assert name is not None
        before, _, _, used = self._lives.get(name, (-1, 0, 0, 0))
        if before >= 0 or used >= self._lifetimes:
            return None
        self._set(name, (cell, self._number(), tick, used + 1))
        return name

    def _found(self, name: str | None) -> str | None:
        return name

    def _end(self, name: str, life: Life) -> None:
        self._set(name, (-1, 0, 0, life[3]))


class Minted(Lifetimes[int]):
    """Names are minted here, one for every insertion, never the same twice; dead ones are forgotten.

    A token is a handle that the ingest side gets for an item. What must not be told apart are streams of lifetimes
    (1.3): whoever inserts and deletes the other items does so in both of two neighbours, by whatever token they have.

    >>> import numpy as np
    >>> from evertally.noise import simulation
    >>> minted = Minted(Tokens(simulation(1).source("demo")), counts_all=False, longest=None)
    >>> minted.admit(Arrivals(np.array([0]), np.array([1]), [None])).items.tolist()
    [1]
    >>> token = minted.tokens()[0]
    >>> minted.admit(Arrivals(np.array([-1, -1]), np.array([-1, -1]), [token, token])).signs.tolist()
    [-1]
    """

    kind = b"token"

    def __init__(self, tokens: Tokens, *, counts_all: bool, longest: int | None) -> None:
        super().__init__(counts_all=counts_all, longest=longest)
        self._tokens = tokens

    def tokens(self) -> list[str]:
        """Those of the last tick's insertions, in order. Secret: who knows one can delete."""
        return self._tokens.of(range(*self._fresh))

    def _begin_life(self, name: str | None, cell: int, tick: int) -> int | None:
        number = self._number()
        if cell < 0:  # nothing that is counted; its token names nothing
            return None
        self._set(number, (cell, number, tick, 1))
        return number

    def _found(self, name: str | None) -> int | None:
        return self._tokens.number(name)

    def _end(self, name: int, life: Life) -> None:
        self._set(name, None)
