"""What was set aside: files and messages that could not be taken, because taking them failed where nothing should.

A folder beside the state with one small file for each of them. It says which one it is, where it failed, and what the
operator wants: never what is in it. The stream goes on without it. A running stream looks here before it reads on, so
that whatever a command writes takes effect at once; whole files are put in place, so that both may write.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from evertally.errors import ConfigurationError, StateError
from evertally.runtime.state.sidecar import write_atomically

Wish = Literal["hold", "retry", "drop"]


@dataclass(frozen=True)
class Held:
    """One thing that was set aside, and what is to become of it."""

    item: str  # file:NAME, kafka:TOPIC:PARTITION:OFFSET or gap:kafka:TOPIC:PARTITION:OFFSET
    why: str
    since: int  # seconds since 1970
    wish: Wish = "hold"

    @property
    def id(self) -> str:
        """A short name, for commands."""
        return hashlib.sha256(self.item.encode()).hexdigest()[:8]


class Quarantine:
    """All that was set aside of one stream.

    >>> import tempfile
    >>> aside = Quarantine(Path(tempfile.mkdtemp()) / "visits.state.quarantine")
    >>> aside.hold("file:monday.arrow", "ArrowInvalid at error.pxi:92")
    >>> aside.held, aside.wish("file:monday.arrow"), aside.wish("file:tuesday.arrow")
    (1, 'hold', None)
    >>> [one.id for one in aside.all()]
    ['d5307004']
    >>> aside.decide("d5307004", "drop").item, aside.held
    ('file:monday.arrow', 0)
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def beside(cls, state_file: Path) -> Quarantine:
        return cls(Path(f"{state_file}.quarantine"))

    @property
    def held(self) -> int:
        """How many wait for the operator."""
        return sum(one.wish == "hold" for one in self.all())

    def all(self) -> Iterator[Held]:
        """Everything, in the order of ids."""
        found = sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []
        for path in found:
            one = _read(path)
            if one is not None:
                yield one

    def wish(self, item: str) -> Wish | None:
        """What is to become of an item; None for one that was never set aside."""
        one = _read(self._path(Held(item, "", 0)))
        return None if one is None else one.wish

    def hold(self, item: str, why: str) -> None:
        """Sets an item aside."""
        self._write(Held(item, why, int(time.time())))

    def forget(self, item: str) -> None:
        """It was taken after all."""
        self._path(Held(item, "", 0)).unlink(missing_ok=True)

    def decide(self, id: str, wish: Wish) -> Held:
        """What the operator wants."""
        for one in self.all():
            if one.id == id:
                self._write(replace(one, wish=wish))
                return one
        raise ConfigurationError(f"nothing with the id {id!r} was set aside; see `evertally quarantine list`")

    def _path(self, one: Held) -> Path:
        return self._folder / f"{one.id}.json"

    def _write(self, one: Held) -> None:
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StateError(f"cannot write {self._folder}: {error.strerror}; the stream stops") from None
        write_atomically(self._path(one), json.dumps(asdict(one)).encode())


def _read(path: Path) -> Held | None:
    """One that vanished meanwhile was taken; one that cannot be read is as good as not there, and comes again."""
    try:
        return Held(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
