"""What survives a crash: one SQLite file, kept in step with the sidecar beside the key.

A tick is released once. The order of a commit:

    1. one transaction: the releases of the ticks, how far the stream is, the hash chain over all ticks, and what the
       state is made of (snapshots, or the journal of events since the last snapshot);
    2. the sidecar moves to the same tick;
    3. the releases are published.

Whatever is interrupted, the next start finds the releases in the store and publishes the same bytes. A store that is
behind its sidecar is a backup or a copy. It may go on only by replay: it is fed the same input again, publishes
nothing, and must arrive at the sidecar's tick with the sidecar's hash.

Snapshots and journal are sealed with the key: who has the file alone has nothing but what was released. What is not
sealed has macs, and the head says, under a mac of its own, what is in every table (see inventory): a change of anything
is noticed at the next start, and of a release whenever it is read.

Every transaction first looks whether the head is the one that this process wrote last. If another process has taken the
stream up, whatever became of the locks, this one stops and writes nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import count
from typing import Any

from evertally.errors import StateError
from evertally.noise import Key
from evertally.runtime.releases import TickRelease
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state import database
from evertally.runtime.state.log import PROVED_ROWS, LinkRow, Proof, collected
from evertally.runtime.state.records import Cursor, Entry, Head, LedgerRow, RunInProgress
from evertally.runtime.state.retention import dropped_where, thinned_through
from evertally.runtime.state.sidecar import AnotherSpec, Mark, Sidecar
from evertally.runtime.state.tables import Tables


class TakenOver(StateError):
    """Another process has written the state: this one must not."""


class Store(Tables):
    """The durable side of one stream. Use it only inside `sidecar.fence`, from one thread."""

    def __init__(self, key: Key, spec: StreamSpec) -> None:
        super().__init__(key, spec)
        self._sidecar = Sidecar(key, spec.key_file, spec.digest, spec.name, spec.parts)
        self._target: Mark | None = None
        self._swept = 0  # through which tick the log was thinned since this start
        self._last = b""  # the mac of the head that this process wrote last
        self._schema: int | None = None  # SQLite's count of changes of tables, when they were looked at
        self.proof = Proof(key, spec)
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
                if mark.ended:
                    raise self._has_ended()
                self._target = mark
            # New streams keep rows; a state that is rebuilt has the payloads that were released.
            target = self._target or Mark(rows=True)
            self.head = replace(self.head, rows=target.rows, since=target.since or 0)
            self.proof.since = self.head.since
            return False
        self._connect()
        try:
            with (
                database.translated(self._path),
                database.up_to_date(self._connection, self._path, self._check_schema) as version,
            ):
                self.head = self._read_head()
                if mark is None:
                    raise StateError(
                        f"{self._sidecar.path} is missing beside the key; bring it back, it proves that the state is "
                        "current"
                    )
                self._check_current(mark, replay)
                if version < database.PROVED:
                    if self.head.inventory:  # whoever set the version back wants proofs for what he wrote
                        raise self._damaged("version")
                    self._adopt(mark)
                self.proof.since = self.head.since
                self._take_inventory()
                check()
                self._take_up(self._target or mark)
            if self._target is None:
                self._sidecar.write(self.head.mark())
        except BaseException:
            self._connection.close()
            raise
        return True

    def _take_up(self, mark: Mark) -> None:
        self.head = self._put_head(replace(self.head, generation=mark.generation + 1))

    def begin(self, ledger: Sequence[LedgerRow], origin: int | None = None) -> None:
        """Binds the key to this spec and makes an empty store."""
        mark = self.bind()
        database.create(self._path)
        self._connect()
        head = replace(self.head, generation=mark.generation + 1, origin=origin)
        with database.translated(self._path), database.up_to_date(self._connection, self._path, self._check_schema):
            self._connection.execute("DELETE FROM ledger")
            self._connection.executemany("INSERT INTO ledger VALUES (?, ?, ?, ?)", ledger)
            self._inventory.take(self._connection)
            head = self._put_head(head)
        self.head = head
        if self._target is None:
            self._sidecar.write(head.mark())

    def bind(self) -> Mark:
        """Binds the key to this spec, if it is not yet: from here on it serves no other."""
        mark = self._sidecar.read()
        if mark is None:
            mark = Mark()
            self._sidecar.write(mark)
        return mark

    def check_ledger(self, ledger: Sequence[LedgerRow]) -> None:
        """Refuses mechanisms that would pay otherwise, or draw other noise, than those that began the stream."""
        found = self._select("SELECT query, share, charge, noise FROM ledger")
        if sorted(found) != sorted(ledger) and not self.head.ended:  # one that has ended draws nothing any more
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

    def _connect(self) -> None:
        self._connection = database.connect(self._path)
        self._file = os.stat(self._path)

    def _adopt(self, mark: Mark) -> None:
        """Gives proofs to what an earlier version has left: from here on a change of it is noticed."""
        head = self.head
        since = max(head.tick, mark.since or 0)
        self.head = replace(head, since=since)
        for (tick,) in self._select("SELECT DISTINCT tick FROM release"):
            for query, kept in self._select("SELECT query, payload FROM release WHERE tick = ?", tick):
                row = (self.proof.mac(tick, query, kept), tick, query)
                self._connection.execute("UPDATE release SET mac = ? WHERE tick = ? AND query = ?", row)
        self._inventory.take(self._connection)
        self.head = replace(self.head, inventory=self._inventory.said())

    def _take_inventory(self) -> None:
        """Goes through all that is there, and refuses what was not written so."""
        self._inventory.take(self._connection)
        differs = self._inventory.differs(self.head.inventory)
        for table, statement in PROVED_ROWS.items():
            if table not in differs and not all(map(self.proof.is_genuine, self._connection.execute(statement))):
                differs.append(table)
        if differs:
            self._refuse(differs)

    def _refuse(self, tables: Sequence[str]) -> None:
        raise self._damaged(", ".join(tables))

    @contextmanager
    def _writing(self, new: Head) -> Iterator[None]:
        """One transaction that ends with a new head, if the stream is still this process's."""
        kept, last = self._inventory.kept(), self._last
        try:
            with database.translated(self._path), database.transaction(self._connection):
                self._check_mine()
                yield
                new = self._put_head(new)
        except BaseException:
            self._inventory.back(kept)
            self._last = last
            raise
        self.head = new

    def check_mine(self) -> None:
        """Refuses to go on if another process has taken the stream up."""
        with database.translated(self._path):
            self._check_mine()

    def _check_mine(self) -> None:
        try:
            replaced = not os.path.samestat(self._file, os.stat(self._path))
        except OSError:
            replaced = True
        if replaced or self._connection.execute("SELECT mac FROM head").fetchone() != (self._last,):
            raise TakenOver(
                f"another process has written {self._path}, or the file was replaced: generation and tick are not what "
                "this process wrote last. It stops and writes nothing: one process runs a stream, the last one started"
            )
        (schema,) = self._connection.execute("PRAGMA schema_version").fetchone()
        if schema != self._schema:  # somebody has put a trigger there, or packed the file
            self._check_schema()
            self._schema = schema

    def _check_schema(self, version: int = len(database.STEPS)) -> None:
        database.check_schema(self._connection, self._path, version)

    def _check_current(self, mark: Mark, replay: bool) -> None:
        head = self.head
        if mark.ended and not head.ended:
            raise self._has_ended()
        if head.tick > mark.tick and (head.before_tick, head.before_chain) == (mark.tick, mark.chain):
            # Interrupted between store and sidecar: the store is one commit ahead and continues what the sidecar knows.
            self._sidecar.write(replace(head.mark(), generation=mark.generation))
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

    def _has_ended(self) -> StateError:
        return StateError(
            f"{self._path} is not the last state of this stream: {self._sidecar.path} says that it was ended by "
            "its operator. An ended stream releases nothing any more; bring the last state back to read it"
        )

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
            "SELECT tick, query, payload, mac FROM release WHERE tick BETWEEN ? AND ? ORDER BY tick", first, last
        )
        return collected(self._spec, self.head.origin, self.proof.genuine(rows))

    def add(self, entries: Sequence[Entry], marks: Mapping[str, int]) -> None:
        """Makes accepted batches durable, and how far the sources were read for them."""
        with self._writing(self.head):
            numbers, places = (count(self._last_number(table) + 1) for table in ("batch", "journal"))
            batches = [
                (number, self._key.mac("batch id", entry.id.encode()), entry.digest, entry.tick)
                for entry, number in zip(entries, numbers, strict=False)
            ]
            self._connection.executemany("INSERT INTO batch VALUES (?, ?, ?, ?)", batches)
            self._inventory.add("batch", batches)
            for tick, payload in (part for entry in entries for part in entry.parts):
                self._put_journal(next(places), tick, payload)
            self._put("mark", "name, value", marks.items())

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
        if ticks and head.ended:
            raise StateError(f"{self._path}: the stream was ended by its operator; it releases nothing any more")
        chain, log = head.chain, head.log
        links: list[LinkRow] = []
        for release, digest in zip(ticks, inputs, strict=True):
            chain = self._linked(chain, release, digest)
            log = self.proof.linked(log, release)
            links.append(self.proof.link(release.tick, log))
        last = ticks[-1].tick if ticks else head.tick
        new = replace(
            head,
            tick=last,
            chain=chain,
            before_tick=head.tick if ticks else head.before_tick,
            before_chain=head.chain if ticks else head.before_chain,
            snapshot=last if snapshots is not None else head.snapshot,
            snapshot_log=log if snapshots is not None else head.snapshot_log,
            log=log,
            run=run,
        )
        self._check_replay(new)
        swept = self._swept
        with self._writing(new):
            rows = [self.proof.row(t.tick, query, payload) for t in ticks for query, payload in t.payloads.items()]
            self._put_releases(rows, links)
            if consumed is not None:
                self._consume(self.input_name(consumed))
            self._put_cursors(cursors or {})
            if snapshots is not None:
                self._put_snapshots(snapshots, last)
                swept = self._forget(last, cursors or {})
            self._clear_journal(new.snapshot, len(ticks))
        self._swept = swept
        if self.replay_target is None:
            # Either the stream was current, or the replay has just arrived: then the store is the stream again.
            self._target = None
            self._sidecar.write(self.head.mark())

    def rewrite(self, snapshots: Mapping[str, bytes], waiting: Sequence[tuple[int, bytes]]) -> None:
        """Puts snapshots of the last tick, and the events of later ones, in the place of all that the store has of the
        past. Nothing is released: tick and chain stay."""
        with self._writing(replace(self.head, snapshot=self.head.tick, snapshot_log=self.head.log)):
            self._put_snapshots(snapshots, self.head.tick)
            self._empty("journal")
            for number, (tick, payload) in enumerate(waiting, 1):
                self._put_journal(number, tick, payload)

    def keep_cursors(self, cursors: Mapping[str, Cursor]) -> None:
        """Remembers how far sinks are, between two commits."""
        with self._writing(self.head):
            self._put_cursors(cursors)

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

    def _clear_journal(self, through: int, ticks: int) -> None:
        """Takes out what the snapshots hold: at every commit a little more than comes in, for overwriting gigabytes at
        once would hold up the ticks; everything when the stream is closed (no ticks)."""
        most = "?" if not ticks else "min(?, (SELECT min(tick) FROM journal) + ?)"
        values = (through,) if not ticks else (through, 2 * ticks - 1)
        self._drop("journal", f"tick <= {most}", values)

    def _put_cursors(self, cursors: Mapping[str, Cursor]) -> None:
        self._put("sink", "name, tick, offset", ((name, c.tick, c.offset) for name, c in cursors.items()))

    def _forget(self, released: int, cursors: Mapping[str, Cursor]) -> int:
        """Old releases as the retention says, but never one that a sink still waits for; old batch ids."""
        delivered = min((cursor.tick for cursor in cursors.values()), default=released)
        delivered = max(0, delivered - self._spec.longest_window)  # what the next windows begin with
        for condition, values in dropped_where(released, self._spec.retention, delivered, self._swept):
            self._drop("release", condition, values)
            self._drop("link", condition, values)
        self._drop("batch", "number <= (SELECT max(number) FROM batch) - ?", (self._spec.batch_ids,))
        return thinned_through(released, self._spec.retention, delivered)

    def _put_head(self, head: Head) -> Head:
        head = replace(head, inventory=self._inventory.said())
        run = None if head.run is None else asdict(head.run)
        text = json.dumps({**vars(head), "run": run}, sort_keys=True)  # not `asdict`, which copies for some 30 us
        self._last = self._key.mac("store head", text.encode())
        self._connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?)", (text, self._last))
        return head

    def _read_head(self) -> Head:
        rows = self._select("SELECT state, mac FROM head")
        if not rows:
            raise database.Unreadable(f"the state file {self._path} holds no stream; {database.WITHOUT_LOG}")
        try:
            genuine = [hmac.compare_digest(self._key.mac("store head", text.encode()), mac) for text, mac in rows]
        except (TypeError, ValueError, AttributeError):  # SQLite keeps anything in any column
            genuine = []
        if genuine != [True]:
            raise database.Unreadable(
                f"{self._path} is damaged or was not written with the key {self._spec.key_file}; the stream "
                "stops. Bring back the last good copy and resume with --replay, or see `evertally rescue --end`"
            )
        fields: dict[str, Any] = json.loads(rows[0][0])
        if fields["spec"] != self._spec.digest:
            raise AnotherSpec(f"{self._path} belongs to another spec; a running stream's spec cannot be changed")
        run = fields.pop("run")
        return Head(**fields, run=None if run is None else RunInProgress(**run))
