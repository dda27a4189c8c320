"""What survives a crash: one SQLite file, kept in step with the sidecar beside the key.

A tick is released once. The order of a commit:

    1. one transaction: the releases of the ticks, how far the stream is, the hash chain over all ticks, and what the
       state is made of (snapshots, or the journal of events since the last snapshot);
    2. the sidecar moves to the same tick;
    3. the releases are published.

Whatever is interrupted, the next start finds the releases in the store and publishes the same bytes. A store that is
behind its sidecar is a backup or a copy. It may go on only by replay: it is fed the same input again, publishes
nothing, and must arrive at the sidecar's tick with the sidecar's hash.

Snapshots and journal are sealed with the key: who has the file alone has nothing but what was released.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from evertally.errors import ConfigurationError, StateError
from evertally.noise import Key
from evertally.runtime.releases import TickRelease, compressed, decompressed
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state import database
from evertally.runtime.state.retention import drop_statements, thinned_through
from evertally.runtime.state.sidecar import NO_CHAIN, AnotherSpec, Mark, Sidecar
from evertally.secret import Secret

LedgerRow = tuple[str, str, str, str]  # query, share, charge, fingerprint of its noise


@dataclass(frozen=True)
class RunInProgress:
    """The input that is being read: its (keyed) hash, the first tick it may enter, the last tick it is released to."""

    input: str
    first: int
    last: int


@dataclass(frozen=True)
class Head:
    """Where the stream is."""

    spec: str
    generation: int = 0
    tick: int = 0
    chain: str = NO_CHAIN
    before_tick: int = 0  # of the commit before the last one: the sidecar may be that old
    before_chain: str = NO_CHAIN
    snapshot: int = 0  # the tick of the snapshots; the journal has the events since
    origin: int | None = None  # of a clock that starts at the first serve
    run: RunInProgress | None = None
    rows: bool = False  # whether payloads keep rows; those of earlier versions do not


@dataclass(frozen=True)
class Cursor:
    """How far a sink is."""

    tick: int = 0
    offset: int = 0


@dataclass(frozen=True, repr=False)
class Entry(Secret):
    """One accepted batch: its id and the events of it by tick."""

    id: str
    digest: bytes
    tick: int  # that was open when it came
    parts: Sequence[tuple[int, bytes]]


class Store(Secret):
    """The durable side of one stream. Use it only inside `sidecar.fence`, from one thread."""

    def __init__(self, key: Key, spec: StreamSpec) -> None:
        self._key, self._spec = key, spec
        self._path = spec.state_file
        self._sidecar = Sidecar(key, spec.key_file, spec.digest, spec.name)
        self._target: Mark | None = None
        self._swept = 0  # through which tick the log was thinned since this start
        self.head = Head(spec.digest)

    def open(self, replay: bool = False, check: Callable[[], object] = lambda: None) -> bool:
        """Opens what is there; False for a stream that has released nothing (then `begin` starts it).

        `check` is asked before anything is written: what it refuses leaves the file as it was.
        """
        mark = self._sidecar.read()
        if not self._path.exists() or (mark is not None and mark.generation == 0):
            if mark is not None and mark.tick > 0:
                if not replay:
                    raise StateError(
                        f"the state file {self._path} is missing, but {self._sidecar.path} says that the stream has "
                        f"released {mark.tick} ticks. Bring the state back; starting over would release them twice. "
                        "A new stream needs new key, state and output files. To rebuild the state from byte-identical "
                        "input, use --replay"
                    )
                self._target = mark
            # New streams keep rows; a state that is rebuilt has the payloads that were released.
            self.head = replace(self.head, rows=True if self._target is None else self._target.rows)
            return False
        self._connection = database.connect(self._path)
        try:
            with database.translated(self._path), database.up_to_date(self._connection, self._path):
                self.head = self._read_head()
                if mark is None:
                    raise StateError(
                        f"{self._sidecar.path} is missing beside the key; bring it back, it proves that the state is "
                        "current"
                    )
                self._check_current(mark, replay)
                check()
                generation = (self._target or mark).generation + 1
                head = replace(self.head, generation=generation)
                self._put_head(head)
            self.head = head
            if self._target is None:
                self._sidecar.write(self._mark(self.head))
        except BaseException:
            self._connection.close()
            raise
        return True

    def begin(self, ledger: Sequence[LedgerRow], origin: int | None = None) -> None:
        """Binds the key to this spec (from here on it serves no other) and makes an empty store."""
        mark = self._sidecar.read()
        if mark is None:
            self._sidecar.write(Mark())
        database.create(self._path)
        self._connection = database.connect(self._path)
        generation = (mark.generation if mark is not None else 0) + 1
        head = replace(self.head, generation=generation, origin=origin)
        with database.translated(self._path), database.up_to_date(self._connection, self._path):
            self._connection.execute("DELETE FROM ledger")
            self._connection.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?)", ledger)
            self._put_head(head)
        self.head = head
        if self._target is None:
            self._sidecar.write(self._mark(head))

    def check_ledger(self, ledger: Sequence[LedgerRow]) -> None:
        """Refuses mechanisms that would pay otherwise, or draw other noise, than those that began the stream."""
        found = self._select("SELECT query, share, charge, noise FROM ledger")
        if sorted(found) != sorted(ledger):
            raise StateError(
                f"{self._path}: this version would draw the noise of the stream from other addresses, or pay "
                "otherwise, than the one that began it; the past would be drawn anew and reveal data. The stream "
                "stops: bring the version back that began it, or start a new stream with its own budget"
            )

    def close(self) -> None:
        """Closes the file, with its write-ahead log folded into it: from here on the file alone is the stream."""
        if hasattr(self, "_connection"):
            with contextlib.suppress(sqlite3.Error):  # what cannot be folded now is folded at the next start
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.close()

    def _check_current(self, mark: Mark, replay: bool) -> None:
        head = self.head
        if head.tick > mark.tick and (head.before_tick, head.before_chain) == (mark.tick, mark.chain):
            # Interrupted between store and sidecar: the store is one commit ahead and continues what the sidecar knows.
            self._sidecar.write(replace(self._mark(head), generation=mark.generation))
            return
        if head.tick >= mark.tick and (head.tick, head.chain) != (mark.tick, mark.chain):
            raise StateError(
                f"{self._path} (tick {head.tick}) is not a state of this stream: {self._sidecar.path} knows another "
                f"history of tick {mark.tick}. It is a copy that went its own way; bring the last state back"
            )
        if head.tick < mark.tick or not mark.generation <= head.generation <= mark.generation + 1:
            if not replay:
                raise StateError(
                    f"{self._path} (tick {head.tick}) is not the last state of this stream: {self._sidecar.path} "
                    f"knows of tick {mark.tick}. It was restored from a backup or copied; bring the last state back, "
                    "or feed the same input again, byte for byte, with --replay"
                )
            if (head.tick, head.chain) != (mark.tick, mark.chain):
                self._target = mark  # otherwise there is nothing to replay

    @property
    def replay_target(self) -> int | None:
        """The tick that a replay must reach before anything is published; None for a stream that is current."""
        return None if self._target is None or self.head.tick >= self._target.tick else self._target.tick

    def snapshots(self) -> dict[str, bytes]:
        """The mechanisms at tick `head.snapshot`, by query."""
        found = self._select("SELECT query, tick, sealed FROM snapshot ORDER BY rowid")
        if any(tick != self.head.snapshot for _, tick, _ in found):
            raise StateError(f"{self._path} holds snapshots of different ticks; the stream stops")
        return {query: self._unsealed(f"snapshot {query} {tick}", sealed) for query, tick, sealed in found}

    def journal(self, after: int) -> Iterator[tuple[int, bytes]]:
        """Events of ticks after `after`, in the order of their arrival within each tick: (tick, payload)."""
        with database.translated(self._path):
            rows = self._connection.execute(
                "SELECT number, tick, sealed FROM journal WHERE tick > ? ORDER BY tick, number", (after,)
            )
            for number, tick, sealed in rows:
                yield tick, self._unsealed(f"journal {number} {tick}", sealed)

    def journal_of(self, tick: int) -> Iterator[bytes]:
        """Events of one tick, in the order of their arrival."""
        with database.translated(self._path):
            rows = self._connection.execute(
                "SELECT number, sealed FROM journal WHERE tick = ? ORDER BY number", (tick,)
            )
            for number, sealed in rows:
                yield self._unsealed(f"journal {number} {tick}", sealed)

    def batch(self, batch_id: str) -> tuple[bytes, int] | None:
        """Digest and tick of a batch that was accepted under an id, None if the id is new."""
        batch_mac = self._key.mac("batch id", batch_id.encode())
        return next(iter(self._select("SELECT digest, tick FROM batch WHERE id = ?", batch_mac)), None)

    def digest(self, payload: bytes) -> bytes:
        """A keyed hash of a batch: the store can compare, a reader of the store cannot guess."""
        return self._key.mac("batch", payload)

    def consumed(self, sha256: str) -> bool:
        """Whether an input file has been counted."""
        return bool(self._select("SELECT 1 FROM input WHERE name = ?", self.input_name(sha256)))

    def input_name(self, sha256: str) -> str:
        """The keyed hash under which an input file is remembered."""
        return self._key.mac("input", sha256.encode()).hex()

    def mark(self, name: str) -> int | None:
        """The position in a source up to which everything was accepted."""
        rows = self._select("SELECT name, value, mac FROM mark WHERE name = ?", name)
        return next((value for _, value in self._genuine("mark", rows)), None)

    def cursors(self) -> dict[str, Cursor]:
        """How far each sink is, as of the last commit."""
        rows = self._select("SELECT name, tick, offset, mac FROM sink")
        return {name: Cursor(tick, offset) for name, tick, offset in self._genuine("sink", rows)}

    def releases(self, first: int, last: int) -> list[TickRelease]:
        """The log from `first` to `last`, as far as it is kept."""
        rows = self._select(
            "SELECT tick, query, payload FROM release WHERE tick BETWEEN ? AND ? ORDER BY tick", first, last
        )
        return collected(self._spec, self.head.origin, rows)

    def add(self, entries: Sequence[Entry], marks: Mapping[str, int]) -> None:
        """Makes accepted batches durable, and how far the sources were read for them."""
        with database.translated(self._path), database.transaction(self._connection):
            for entry in entries:
                self._connection.execute(
                    "INSERT INTO batch (id, digest, tick) VALUES (?, ?, ?)",
                    (self._key.mac("batch id", entry.id.encode()), entry.digest, entry.tick),
                )
                for tick, payload in entry.parts:
                    (number,) = self._connection.execute("SELECT coalesce(max(number), 0) + 1 FROM journal").fetchone()
                    sealed = self._key.seal(f"journal {number} {tick}", payload)
                    self._connection.execute("INSERT INTO journal VALUES (?, ?, ?)", (number, tick, sealed))
            self._connection.executemany(
                "INSERT OR REPLACE INTO mark VALUES (?, ?, ?)", (self._signed("mark", *mark) for mark in marks.items())
            )

    def commit(
        self,
        ticks: Sequence[TickRelease],
        inputs: Sequence[bytes],
        *,
        snapshots: Mapping[str, bytes] | None = None,
        run: RunInProgress | None = None,
        consumed: str | None = None,
        cursors: Mapping[str, Cursor] | None = None,
    ) -> None:
        """Makes ticks durable, with the (secret) digests of what they were computed from, and moves the sidecar.

        Without snapshots the journal must hold the events of these ticks.
        """
        head = self.head
        chain = head.chain
        for release, digest in zip(ticks, inputs, strict=True):
            chain = self._linked(chain, release, digest)
        last = ticks[-1].tick if ticks else head.tick
        new = replace(
            head,
            tick=last,
            chain=chain,
            before_tick=head.tick if ticks else head.before_tick,
            before_chain=head.chain if ticks else head.before_chain,
            snapshot=last if snapshots is not None else head.snapshot,
            run=run,
        )
        self._check_replay(new)
        swept = self._swept
        with database.translated(self._path), database.transaction(self._connection):
            self._put_head(new)
            self._connection.executemany(
                "INSERT INTO release VALUES (?, ?, ?)",
                ((t.tick, query, compressed(payload)) for t in ticks for query, payload in t.payloads.items()),
            )
            if consumed is not None:
                self._connection.execute("INSERT OR IGNORE INTO input VALUES (?)", (self.input_name(consumed),))
            self._put_cursors(cursors or {})
            if snapshots is not None:
                self._put_snapshots(snapshots, last)
                swept = self._forget(last, cursors or {})
            self._clear_journal(new.snapshot, len(ticks))
        self.head, self._swept = new, swept
        if self.replay_target is None:
            # Either the stream was current, or the replay has just arrived: then the store is the stream again.
            self._target = None
            self._sidecar.write(self._mark(new))

    def rewrite(self, snapshots: Mapping[str, bytes], waiting: Sequence[tuple[int, bytes]]) -> None:
        """Puts snapshots of the last tick, and the events of later ones, in the place of all that the store has of the
        past. Nothing is released: tick and chain stay."""
        new = replace(self.head, snapshot=self.head.tick)
        with database.translated(self._path), database.transaction(self._connection):
            self._put_head(new)
            self._put_snapshots(snapshots, new.tick)
            self._connection.execute("DELETE FROM journal")
            for number, (tick, payload) in enumerate(waiting, 1):
                sealed = self._key.seal(f"journal {number} {tick}", payload)
                self._connection.execute("INSERT INTO journal VALUES (?, ?, ?)", (number, tick, sealed))
        self.head = new

    def _select(self, statement: str, *values: object) -> list[Any]:
        with database.translated(self._path):
            return self._connection.execute(statement, values).fetchall()

    def keep_cursors(self, cursors: Mapping[str, Cursor]) -> None:
        """Remembers how far sinks are, between two commits."""
        with database.translated(self._path), database.transaction(self._connection):
            self._put_cursors(cursors)

    @staticmethod
    def _mark(head: Head) -> Mark:
        return Mark(head.generation, head.tick, head.chain, head.rows)

    def _check_replay(self, new: Head) -> None:
        target = self._target
        if target is None or new.tick < target.tick:
            return
        if (new.tick, new.chain) != (target.tick, target.chain):
            raise StateError(
                f"the replay does not lead to what was released: at tick {target.tick} {self._sidecar.path} knows "
                "another hash. The input differs from the first time; nothing was published, the stream stops"
            )

    def _linked(self, chain: str, release: TickRelease, digest: bytes) -> str:
        link = hashlib.sha256(bytes.fromhex(chain) + release.tick.to_bytes(8, "big"))
        link.update(self._key.mac("tick input", digest))
        for query, payload in release.payloads.items():
            link.update(json.dumps([query, len(payload)]).encode() + payload)
        return link.hexdigest()

    def _put_snapshots(self, snapshots: Mapping[str, bytes], tick: int) -> None:
        self._connection.execute("DELETE FROM snapshot")
        self._connection.executemany(
            "INSERT INTO snapshot VALUES (?, ?, ?)",
            ((query, tick, self._key.seal(f"snapshot {query} {tick}", blob)) for query, blob in snapshots.items()),
        )

    def _clear_journal(self, through: int, ticks: int) -> None:
        """Takes out what the snapshots hold: at every commit a little more than comes in, for overwriting gigabytes at
        once would hold up the ticks; everything when the stream is closed (no ticks)."""
        most = "?" if not ticks else "min(?, (SELECT min(tick) FROM journal) + ?)"
        values = (through,) if not ticks else (through, 2 * ticks - 1)
        self._connection.execute(f"DELETE FROM journal WHERE tick <= {most}", values)  # noqa: S608 (only marks)

    def _put_cursors(self, cursors: Mapping[str, Cursor]) -> None:
        self._connection.executemany(
            "INSERT OR REPLACE INTO sink VALUES (?, ?, ?, ?)",
            (self._signed("sink", name, cursor.tick, cursor.offset) for name, cursor in cursors.items()),
        )

    def _forget(self, released: int, cursors: Mapping[str, Cursor]) -> int:
        """Old releases as the retention says, but never one that a sink still waits for; old batch ids."""
        delivered = min((cursor.tick for cursor in cursors.values()), default=released)
        delivered = max(0, delivered - self._spec.longest_window)  # what the next windows begin with
        for statement, values in drop_statements(released, self._spec.retention, delivered, self._swept):
            self._connection.execute(statement, values)
        self._connection.execute(
            "DELETE FROM batch WHERE number <= (SELECT max(number) FROM batch) - ?", (self._spec.batch_ids,)
        )
        return thinned_through(released, self._spec.retention, delivered)

    def _put_head(self, head: Head) -> None:
        text = json.dumps(asdict(head), sort_keys=True)
        mac = self._key.mac("store head", text.encode())
        self._connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?)", (text, mac))

    def _read_head(self) -> Head:
        row = next(iter(self._select("SELECT state, mac FROM head")), None)
        if row is None or not hmac.compare_digest(self._key.mac("store head", row[0].encode()), row[1]):
            raise StateError(
                f"{self._path} is damaged or was not written with the key {self._spec.key_file}; the stream stops"
            )
        fields: dict[str, Any] = json.loads(row[0])
        if fields["spec"] != self._spec.digest:
            raise AnotherSpec(f"{self._path} belongs to another spec; a running stream's spec cannot be changed")
        run = fields.pop("run")
        return Head(**fields, run=None if run is None else RunInProgress(**run))

    def _signed(self, table: str, *row: str | int) -> tuple[Any, ...]:
        """A row with its mac: a position that is off by a bit would make the stream leave out, or count twice."""
        return (*row, self._key.mac(f"store {table}", json.dumps(row).encode()))

    def _genuine(self, table: str, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        if any(not hmac.compare_digest(self._signed(table, *row)[-1], mac) for *row, mac in rows):
            raise self._damaged(table)
        return [tuple(row) for *row, _ in rows]

    def _unsealed(self, purpose: str, sealed: bytes) -> bytes:
        try:
            return self._key.unseal(purpose, sealed)
        except StateError:
            raise self._damaged(purpose.split(" ")[0]) from None

    def _damaged(self, table: str) -> StateError:
        return StateError(
            f"{self._path} is damaged ({table}); the stream stops. Bring back the last good copy and resume with "
            "--replay"
        )


def collected(spec: StreamSpec, origin: int | None, rows: Sequence[tuple[int, str, bytes]]) -> list[TickRelease]:
    """Rows of the release log, in the order of ticks, as releases with queries in the order of the spec."""
    if origin is None and spec.clock.floating:
        raise ConfigurationError("the clock of this stream starts at its first serve, which has not been yet")
    clock = spec.clock if origin is None else spec.clock.anchored(origin)
    by_tick: dict[int, dict[str, bytes]] = {}
    for tick, query, kept in rows:
        by_tick.setdefault(tick, {})[query] = decompressed(kept)
    names = [query.name for query in spec.queries]
    return [
        TickRelease(tick, clock.end_of(tick), {name: found[name] for name in names if name in found})
        for tick, found in by_tick.items()
    ]
