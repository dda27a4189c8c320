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
from evertally.runtime.state.sidecar import AnotherSpec, sidecar_path
from evertally.runtime.state.store import Store


class StoreToRead(Store):
    """What was committed last. It may be older than the stream: mechanisms stay the same for its whole life."""

    _proved = True  # False: an earlier version wrote it, which gave no proofs to releases

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
            with database.translated(spec.state_file):
                store._connection.execute("BEGIN")  # one moment of the stream, whatever is committed meanwhile
                (version,) = store._connection.execute("PRAGMA user_version").fetchone()
            if version == 0:  # no version has left it so
                raise database.Unreadable(f"the state file {spec.state_file} is damaged: nothing is in it")
            if not database.LOOKED_AT <= version <= len(database.STEPS):
                raise StateError(
                    f"the state file {spec.state_file} was written by another version (format {version}): what it says "
                    "can be read once the stream was started with this one"
                )
            store.head = store._read_head()
            store.proof.since = store.head.since
            store._proved = version >= database.PROVED
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
