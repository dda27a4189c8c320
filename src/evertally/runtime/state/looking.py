"""The state of a stream for whoever only looks: nothing is written or locked, and another process may be running it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Self

from evertally.errors import StateError
from evertally.noise import Key
from evertally.runtime.releases import TickRelease
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state import database
from evertally.runtime.state.log import collected
from evertally.runtime.state.sidecar import AnotherSpec, Mark, sidecar_path
from evertally.runtime.state.store import Store

_LOOKS = 50  # at a stream that goes on meanwhile, until state and sidecar are of one moment


class StoreToRead(Store):
    """What was committed last. It may be older than the stream: mechanisms stay the same for its whole life."""

    _proved = True  # False: an earlier version wrote it, which gave no proofs to releases
    _marks: tuple[Mark | None, ...] = ()  # what the sidecar said before and after the look at the head

    def shown_through(self) -> int:
        """The last tick that may be shown; refuses a state that is not the last one.

        A replay that has not arrived has the noise of ticks that are out, perhaps over other events. And a tick that is
        merely committed may come out otherwise, from a state that is brought back: the sidecar has to know it.
        """
        tick = self._vouched()
        if tick is None:
            known = "is missing" if self._marks[-1] is None else "knows of another one"
            raise StateError(
                f"{self._path} (tick {self.head.tick}) is not the last state of this stream, or nothing proves it: "
                f"{self._sidecar.path} {known}. Nothing of it is shown; bring the last files back, or finish the replay"
            )
        return tick

    def _vouched(self) -> int | None:
        """The tick of this state that the sidecar knows: its last one, or that of the commit before."""
        marks = {(mark.tick, mark.chain) for mark in self._marks if mark is not None}
        head = self.head
        commits = ((head.tick, head.chain), (head.before_tick, head.before_chain))
        return next((tick for tick, chain in commits if (tick, chain) in marks), None)

    def _look(self) -> None:
        """At one moment of the stream, whatever is committed meanwhile."""
        for look in range(_LOOKS):
            before = self._sidecar.read()
            with database.translated(self._path):
                if look:
                    self._connection.execute("ROLLBACK")
                self._connection.execute("BEGIN")
                (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version == 0:  # no version has left it so
                raise database.Unreadable(f"the state file {self._path} is empty; {database.WITHOUT_LOG}")
            if not database.LOOKED_AT <= version <= len(database.STEPS):
                raise StateError(
                    f"the state file {self._path} was written by another version (format {version}): what it says "
                    "can be read once the stream was started with this one"
                )
            self.head = self._read_head()
            self._proved = version >= database.PROVED
            self._marks = before, self._sidecar.read()
            if self._vouched() is not None:
                break
        self.proof.since = self.head.since

    def releases(self, first: int, last: int) -> list[TickRelease]:
        if self._proved:
            return super().releases(first, last)
        rows = self._select("SELECT tick, query, payload, NULL FROM release WHERE tick BETWEEN ? AND ?", first, last)
        return collected(self._spec, self.head.origin, sorted(rows))

    @classmethod
    @contextmanager
    def found(cls, key: Key, spec: StreamSpec) -> Iterator[Self | None]:
        """The store, None for a stream that has released nothing, as in `Store.open`."""
        store = cls(key, spec)
        if not store._begun():
            yield None
            return
        store._connection = database.connect_to_read(spec.state_file, alone=True)
        try:
            store._look()
            yield store
        finally:
            store._connection.close()

    @classmethod
    @contextmanager
    def of(cls, spec: StreamSpec) -> Iterator[tuple[Key, Self]]:
        """Key and store of a stream that has released something."""
        key = key_to_look(spec)
        if key is None:
            raise StateError(f"{spec.state_file} is not there: this stream has released nothing yet")
        with cls.found(key, spec) as store:
            if store is None:
                raise StateError(f"the stream of {spec.path} has released nothing yet")
            yield key, store

    def _begun(self) -> bool:
        mark = self._sidecar.read()
        if mark is not None and mark.generation == 0:
            return False
        if not self._path.exists():
            if mark is not None and mark.tick > 0:
                raise StateError(
                    f"the state file {self._path} is missing, but {self._sidecar.path} says that the stream has "
                    f"released {mark.tick} ticks. Which mechanisms it runs on is in that file: bring it back"
                )
            return False
        return True


def key_to_look(spec: StreamSpec) -> Key | None:
    """The key of a stream that has run, None for one that has not."""
    left = [path for path in (spec.state_file, sidecar_path(spec.key_file)) if path.exists()]
    if not left:
        return None
    if not spec.key_file.exists():
        if _digest_without_key(spec) not in (None, spec.digest):
            raise AnotherSpec(f"{spec.state_file} belongs to another spec")
        raise StateError(
            f"{left[0]} is there: this stream has run, and which mechanisms it runs on is sealed with its key. Without "
            f"the key file {spec.key_file} nothing true can be said about them: ask where the key is, or copy the spec "
            "to another folder to see what a new stream would do"
        )
    return Key.load(spec.key_file)


def _digest_without_key(spec: StreamSpec) -> str | None:
    """Of which spec a state says that it is; nothing vouches for it."""
    if not spec.state_file.exists():
        return None
    with (
        database.translated(spec.state_file),
        closing(database.connect_to_read(spec.state_file, alone=True)) as connection,
    ):
        row = connection.execute("SELECT state FROM head").fetchone()
    try:
        return None if row is None else str(json.loads(row[0])["spec"])
    except (ValueError, KeyError, TypeError):
        return None


__all__ = ["AnotherSpec", "StoreToRead", "key_to_look"]
