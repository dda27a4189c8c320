"""The log of a distributed stream: which batches there were, what each closed, which files it made, and that it counts.

    genesis      what the stream is: root id, digest of spec and cut           home and root, once
    closes/N     what batch N closes, from which input                         root, before anything is computed
    taken/N.T    turn T of it was taken back; what comes then is closes/N.T+1   root, before the manifest
    state/N, users/N, releases/N   by tasks; names carry a hash of the content root
    manifest/N   names of those that count, digests of what they release       root, after all tasks
    mark/N       N, tick and chain, under the key                              home: from here on N is released
    public/N     copies of what manifest/N names                               public

Every name is put where there is none, or not at all (docs/theory/distributed.md 3). The root is private as a whole;
`home` lies apart from it and its backups: an older root beside newer marks is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from evertally.errors import StateError
from evertally.noise import Key
from evertally.runtime.state.shelf import Shelf

NO_CHAIN = "0" * 64
_SAME = ("batch", "opened", "through", "parts", "values", "before")  # what two drivers must agree about

Record = dict[str, Any]


def content_name(name: str, data: bytes) -> str:
    """A name that says what is under it: an attempt that writes something else writes it elsewhere.

    >>> content_name("state/0/q", b"") == content_name("state/0/q", b"x")
    False
    """
    return f"{name}-{hashlib.sha256(data).hexdigest()[:32]}"


def is_content(name: str, data: bytes) -> bool:
    """Whether these bytes are what the name says."""
    return content_name(name.rpartition("-")[0], data) == name


def written(record: Mapping[str, Any]) -> bytes:
    """A record as it is put: the same text for the same record."""
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def chained(before: str, record: Mapping[str, Any]) -> str:
    """The hash chain one batch on, over what was released."""
    said = {name: record[name] for name in _SAME}
    return hashlib.sha256(bytes.fromhex(before) + written(said)).hexdigest()


class Log:
    """The driver's side of the log. It decides what counts; it computes nothing."""

    def __init__(self, root: Shelf, home: Shelf, key: Key) -> None:
        self.root, self.home, self._key = root, home, key

    def begin(self, genesis: Record) -> None:
        """Puts the beginning, home first: marks must not be younger than what they vouch for."""
        said = self._sealed("genesis", genesis)
        for place, shelf in (("home of the marks", self.home), ("root", self.root)):
            if shelf.put_new("genesis", said) != said:
                raise StateError(f"the {place} belongs to another stream, or to another beginning of this one; stopped")

    def genesis(self) -> Record | None:
        """What the stream began as; None before it has begun. Refuses a root and a home that are not of each other."""
        home, root = (self._opened("genesis", shelf.read("genesis"), "genesis") for shelf in (self.home, self.root))
        if home is None and root is None:
            return None
        if home is None:
            raise StateError(
                "the home of the marks has no genesis, and the root has one: the marks are missing, and nothing says "
                "how far this stream has come. Bring them back"
            )
        if root is None:
            if self.marks():
                raise StateError(
                    "the marks say that this stream has released something, and the root is not there: bring it back. "
                    "A new root under the same key would put the same noise on other events"
                )
            self.root.put_new("genesis", self._sealed("genesis", home))  # a driver died between the two
            return home
        if home != root:
            raise StateError(
                "root and marks are of two streams, or of two beginnings of one: the same key, the same noise"
            )
        return home

    def closes(self, batch: int) -> Record | None:
        """What a batch closes, from which input; None if it was not begun, or was taken back."""
        record = self.manifest(batch)
        return self._closes(batch, self._turn(batch) if record is None else int(record["turn"]))

    def close(self, batch: int, record: Record) -> Record:
        """Fixes what a batch closes, before anything of it is computed; gives what was fixed, whoever did."""
        turn = self._turn(batch)
        name = f"closes/{_turned(batch, turn)}"
        data = self.root.put_new(name, self._sealed(name, record | {"turn": turn}))
        found = self._opened(name, data, f"{name} under the root")
        assert found is not None
        return found

    def take_back(self, batch: int) -> None:
        """Forgets from which input a batch was begun. Nothing of it was shown, and a driver that is still at it may
        win: its manifest names its turn, and that counts."""
        if self.manifest(batch) is not None:
            raise StateError(f"batch {batch} is released; it cannot be taken back")
        self.root.put_new(f"taken/{batch:08d}.{self._turn(batch)}", b"")

    def _closes(self, batch: int, turn: int) -> Record | None:
        name = f"closes/{_turned(batch, turn)}"
        return self._opened(name, self.root.read(name), f"{name} under the root")

    def _turn(self, batch: int) -> int:
        """How often a batch was taken back."""
        turn = 0
        while self.root.read(f"taken/{batch:08d}.{turn}") is not None:
            turn += 1
        return turn

    def manifest(self, batch: int) -> Record | None:
        return _read(self.root, f"manifest/{batch:08d}")

    def last(self) -> int:
        """The last batch with a manifest, -1 if there is none."""
        return max(_numbers(self.root, "manifest"), default=-1)

    def marks(self) -> list[int]:
        return _numbers(self.home, "mark")

    def marked_through(self) -> int:
        """The last tick that a mark vouches for."""
        last = max(self.marks(), default=None)
        if last is None:
            return 0
        said = self._opened(f"mark/{last}", self.home.read(f"mark/{last:08d}"), f"mark of batch {last}")
        return 0 if said is None else int(said["through"])

    def commit(self, record: Record) -> Record:
        """Puts a manifest; if another driver was quicker, both must have released the same."""
        found: Record = json.loads(self.root.put_new(f"manifest/{record['batch']:08d}", written(record)))
        if any(found[name] != record[name] for name in (*_SAME, "chain")):
            raise StateError(
                f"another driver has released batch {record['batch']} from other events: the input did not come again "
                "as it was. Nothing of this attempt was shown; stopped"
            )
        theirs, ours = (self._closes(record["batch"], int(one["turn"])) for one in (found, record))
        if theirs is None or ours is None or theirs["envelope"] != ours["envelope"]:
            raise StateError(
                f"batch {record['batch']} was taken back, and its first driver was quicker: it is released from that "
                "input, and from nothing of this one. Give these events to the next batch"
            )
        return found

    def mark(self, record: Record) -> None:
        """From here on the batch is released, whatever becomes of the root."""
        batch = record["batch"]
        said = self._sealed(f"mark/{batch}", _vouched(record))
        if self.home.put_new(f"mark/{batch:08d}", said) != said:
            raise StateError(f"the mark of batch {batch} is of another release: the root is not the one it vouches for")

    def check(self) -> int:
        """The last batch with a manifest. Refuses a root that is older than the marks, and marks that are missing."""
        last, marks = self.last(), self.marks()
        ahead = max(marks, default=-1)
        if ahead > last:
            raise StateError(
                f"the marks say that {ahead + 1} batches were released, and the root has {last + 1}: it is an older "
                "one. Bring the newest back; going on would release the same ticks from other events"
            )
        if marks != list(range(ahead + 1)) or ahead < last - 1:
            raise StateError(
                f"of the marks of {last + 1} batches some are missing: nothing says how far this stream has come. "
                "Bring the home of the marks back"
            )
        for batch in (ahead, ahead - 1):
            if batch >= 0:
                self.check_mark(batch)
        if last > ahead:
            self._check_unmarked(last)
        return last

    def check_mark(self, batch: int) -> None:
        """Refuses a manifest that is not the one that was marked, to the last name in it."""
        said = self._opened(f"mark/{batch}", self.home.read(f"mark/{batch:08d}"), f"mark of batch {batch}")
        record = self.manifest(batch)
        if said is None or record is None or said != _vouched(record) or not self.is_chained(record):
            raise StateError(f"the mark of batch {batch} does not vouch for the manifest that is there; stopped")

    def _check_unmarked(self, batch: int) -> None:
        """A manifest whose mark will be made now: nobody vouches for it yet but itself and the one before."""
        record, before = self.manifest(batch), self.manifest(batch - 1) if batch else None
        chain = NO_CHAIN if before is None else before["chain"]
        if record is None or record["before"] != chain or not self.is_chained(record):
            raise StateError(f"the manifest of batch {batch} under the root is damaged; bring the root back")

    @staticmethod
    def is_chained(record: Record) -> bool:
        return bool(chained(record["before"], record) == record["chain"])

    def _sealed(self, purpose: str, record: Record) -> bytes:
        mac = self._key.mac(f"spark {purpose}", written(record)).hex()
        return written({"said": record, "mac": mac})

    def _opened(self, purpose: str, data: bytes | None, what: str) -> Record | None:
        if data is None:
            return None
        try:
            found = json.loads(data)
            said: Record = found["said"]
            genuine = hmac.compare_digest(self._key.mac(f"spark {purpose}", written(said)).hex(), found["mac"])
        except (ValueError, KeyError, TypeError):
            genuine = False
        if not genuine:
            raise StateError(f"the {what} is damaged, or was written under another key; bring the right one back")
        return said


def _turned(batch: int, turn: int) -> str:
    return f"{batch:08d}.{turn}" if turn else f"{batch:08d}"


def _vouched(record: Record) -> Record:
    """What a mark says. The chain is over what was released; which files that was made into, and which states go on
    from there, only the manifest says: dead attempts left others, of other events under the same noise, and where
    nothing is shown the chain knows of no event at all."""
    found = {name: record[name] for name in ("batch", "through", "chain")}
    return found | {"manifest": hashlib.sha256(written(record)).hexdigest()}


def _numbers(shelf: Shelf, folder: str) -> list[int]:
    names = shelf.names(folder)
    if not all(len(name) == 8 and name.isdecimal() for name in names):
        raise StateError(f"{folder} has a file in it that is none of this stream; take it away")
    return [int(name) for name in names]


def _read(shelf: Shelf, name: str) -> Record | None:
    data = shelf.read(name)
    if data is None:
        return None
    try:
        found = json.loads(data)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found:
        raise StateError(f"{name} under the root is damaged; bring the root back")
    return found
