"""A live service that is killed again and again under load, and the comparison with one that never was. Not a test.

The service is the real command on a real socket. In the end the accepted batches, in the order in which the store says
that they came, are fed to a stream under the same key that nobody kills. Both must hold the same bytes everywhere: the
release log, the hash chain over what was released and from what, the snapshots, the files of every sink, and all that
any client ever saw, also before a kill.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import struct
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from clients import Closer, Listener, Reader, Receiver, Sender, Worker, World, close
from nursery import Nursery
from one_service import Service, written

from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.runtime.input.batches import parse
from evertally.runtime.live import Live
from evertally.runtime.releases import TickRelease, as_json
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.history import History
from evertally.runtime.state.sidecar import sidecar_path
from evertally.service.live_events import frame
from made_keys import save_bound
from waiting import PATIENCE

AIMS = ("random", "start", "log", "sidecar", "output", "parts", "stop")


@dataclass
class Report:
    """What a campaign measured."""

    kills: int = 0
    starts: int = 0
    batches: int = 0
    events: int = 0
    ticks: int = 0
    retries: int = 0
    live_events: int = 0
    answers: int = 0
    deliveries: int = 0
    seconds: float = 0.0
    aims: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """What another campaign measured, too."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class Campaign:
    """One stream in one folder. `kill` it as often as you like, then `finish`."""

    def __init__(self, nursery: Nursery, folder: Path, spec_text: Callable[[str], str], seed: int) -> None:
        self.folder = folder
        self.report = Report()
        self._random = random.Random(seed)
        self._began = time.monotonic()
        self._receiver = Receiver(lambda tick, content: self.world.delivered[tick].add(content))
        self.service = Service(nursery, folder, spec_text(f'\n[[sink]]\nwebhook = "{self._receiver.url}"\n'))
        self.spec, self.world = self.service.spec, self.service.world
        self._lines_at_kills: list[tuple[str, bytes]] = []
        self._rows_at_kills: list[tuple[str, Any]] = []
        self._on_request = self.spec.clock.close == "request"
        makers: list[type[Worker]] = [Listener, Listener, Reader, *([Closer] if self._on_request else [])]
        self._senders = [Sender(self.world, seed + 100 + i, i) for i in range(3)]
        self._readers = [make(self.world, seed + i) for i, make in enumerate(makers)]

    def begin(self) -> None:
        """The first start, and all clients."""
        self.service.start()
        for worker in (*self._senders, *self._readers):
            worker.start()

    # -- kills -------------------------------------------------------------------------------------------------------

    def kill(self, aim: str) -> None:
        """Kills the service at a moment of some kind, looks at what is left, starts it again."""
        child, chance = self.service.child, self._random
        assert child is not None
        state = self.spec.state_file
        files = {
            "log": Path(f"{state}-wal"),
            "sidecar": sidecar_path(self.spec.key_file),
            "output": self.folder / "visits.jsonl",
            "parts": self.folder / "visits.parquet" / "part-000000000001.parquet",
        }
        limit = 1.2 if self._on_request else 2.5
        if aim != "start":
            self._wait_for_work()
        if aim == "start":
            self.service.kill()
            child = self.service.fork()
            child.kill_at(state, 10**9, 0.0, chance.uniform(0.0, 0.5))
            self.report.kills += 1  # beside the one below
        elif aim == "stop":
            child.signal(signal.SIGTERM)
            child.kill_at(state, 10**9, 0.0, chance.uniform(0.0, 0.25))
        elif aim == "random":
            child.kill_at(state, 10**9, 0.0, chance.uniform(0.0, limit))
        else:
            changes = chance.randint(1, 60 if aim == "log" else 8)
            child.kill_at(files[aim], changes, chance.choice((0.0, 0.0, 0.0002, 0.001)), limit)
        self.world.serves(None)
        if child.status not in (-signal.SIGKILL, 0):
            self.report.differences.append(
                f"the service ended by itself with {child.status}: {self.service.stderr()[-500:]}"
            )
        self.report.kills += child.status == -signal.SIGKILL  # one that was told to stop may have been quicker
        self.report.aims[aim] += 1
        self.report.phases[self._phase()] += 1
        self._keep_outputs()
        self.service.start()

    def _wait_for_work(self, seconds: float = 10.0) -> None:
        """However slow the machine is, each process takes a few batches, or there would be little to lose."""
        known, end = len(self.world.acknowledged), time.monotonic() + seconds
        while len(self.world.acknowledged) < known + 2 and time.monotonic() < end:
            time.sleep(0.003)

    def _phase(self) -> str:
        """In the middle of what the kill came, by the files that it left."""
        mark = json.loads(sidecar_path(self.spec.key_file).read_bytes())
        with tempfile.TemporaryDirectory() as place:
            for end in ("", "-wal"):
                if (file := Path(f"{self.spec.state_file}{end}")).exists():
                    shutil.copyfile(file, Path(place) / f"state{end}")
            torn = _uncommitted_frames(Path(place) / "state-wal")
            connection = sqlite3.connect(Path(place) / "state")
            head = json.loads(connection.execute("SELECT state FROM head").fetchone()[0])
            (waiting,) = connection.execute("SELECT count(*) FROM journal WHERE tick > ?", (head["tick"],)).fetchone()
            connection.close()
        shown = _last_tick(self.folder / "visits.jsonl")
        if torn:
            return "in a transaction"
        if head["tick"] > mark["tick"]:
            return "between store and sidecar"
        if shown < head["tick"]:
            return "between sidecar and outputs"
        return "events wait for their tick" if waiting else "all ticks out, nothing waits"

    def _keep_outputs(self) -> None:
        """What somebody who reads the files saw at this moment."""
        for name in ("visits.jsonl", "visits.csv"):
            if (file := self.folder / name).exists():
                self._lines_at_kills.append((name, file.read_bytes()))
        for part in (self.folder / "visits.parquet").glob("part-*.parquet"):
            self._rows_at_kills.append((part.name, pq.read_table(part).replace_schema_metadata()))

    # -- the end -----------------------------------------------------------------------------------------------------

    def finish(self) -> Report:
        """Lets the clients finish, stops the service in good order, compares."""
        world, report = self.world, self.report
        world.stopping.set()
        for worker in (*self._senders, *(reader for reader in self._readers if isinstance(reader, Closer))):
            worker.join(PATIENCE)
        last = max([world.tick, *world.acknowledged.values()]) + 2
        if self._on_request:
            close(world, last)
        self._until(lambda: world.frames.get(last) is not None and world.delivered.get(last) is not None)
        world.closing.set()
        self.service.stop()
        report.starts = self.service.starts
        for reader in self._readers:
            reader.join(PATIENCE)
        self._receiver.close()
        if len(world.acknowledged) != len(world.sent):
            report.differences.append(f"{len(world.sent) - len(world.acknowledged)} batches were never acknowledged")
        self._compare()
        report.batches, report.retries = len(world.sent), world.retries
        report.events = world.events
        report.live_events, report.answers, report.deliveries = (
            sum(map(len, seen.values())) for seen in (world.frames, world.answers, world.delivered)
        )
        report.differences += world.problems
        report.seconds = time.monotonic() - self._began
        return report

    def abandon(self) -> None:
        """Ends all of it without a comparison."""
        self.world.stopping.set()
        self.world.closing.set()
        self.service.kill()
        self._receiver.close()

    def _until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not condition() and time.monotonic() < end and not self.world.problems:
            time.sleep(0.01)
        if not condition():
            self.report.differences.append("the last tick did not reach every client")

    def _compare(self) -> None:
        with Live(self.spec):
            pass  # brings the outputs up to the last committed tick
        calm = self.folder / "calm"
        differences = self.report.differences
        order = accepted(self.spec, self.world, differences)
        releases = uninterrupted(self.spec, written(calm, self.service.text), order, self.world)
        self.report.ticks = len(releases)
        differences += compared(self.folder, calm, self.spec)
        for name, kept in self._lines_at_kills:
            if not (calm / name).read_bytes().startswith(kept):
                differences.append(f"{name} once held what it does not hold now")
        for name, rows in self._rows_at_kills:
            now = pq.read_table(calm / "visits.parquet" / name).replace_schema_metadata()
            if now.slice(0, len(rows)) != rows:
                differences.append(f"{name} once held what it does not hold now")
        differences += seen_otherwise(load_spec(calm / "visits.toml"), releases, self.world)


def _last_tick(lines: Path) -> int:
    content = lines.read_bytes() if lines.exists() else b""
    whole = content[: content.rfind(b"\n") + 1].splitlines()
    return json.loads(whole[-1])["tick"] if whole else 0


def _uncommitted_frames(log: Path) -> int:
    """Frames at the end of a write-ahead log that no commit has closed."""
    data = log.read_bytes() if log.exists() else b""
    if len(data) < 32:
        return 0
    page, salts = struct.unpack(">I", data[8:12])[0], data[16:24]
    open_frames, position = 0, 32
    while position + 24 + page <= len(data) and data[position + 8 : position + 16] == salts:
        open_frames = 0 if data[position + 4 : position + 8] != bytes(4) else open_frames + 1
        position += 24 + page
    # What is left of a frame that was cut off, too, unless it is from before the last checkpoint.
    return open_frames


def differences_from_calm(service: Service) -> list[str]:
    """Feeds what a service has accepted to a calm twin; what differs. The service must have been stopped."""
    differences: list[str] = []
    with Live(service.spec):
        pass
    calm = service.folder / "calm"
    order = accepted(service.spec, service.world, differences)
    uninterrupted(service.spec, written(calm, service.text), order, service.world)
    differences += compared(service.folder, calm, service.spec)
    shutil.rmtree(calm)
    return differences


# -- the comparison -----------------------------------------------------------------------------------------------


def accepted(spec: StreamSpec, world: World, differences: list[str]) -> list[tuple[str, int]]:
    """All batches in the order in which the store took them, with the tick that was open then."""
    key = Key.load(spec.key_file)
    names = {key.mac("batch id", f"ingest/{name}".encode()): name for name in world.sent}
    connection = sqlite3.connect(spec.state_file)
    rows = connection.execute("SELECT id, tick FROM batch ORDER BY number").fetchall()
    connection.close()
    order = [(names[mac], tick) for mac, tick in rows if mac in names]
    if len(order) != len(rows):
        differences.append(f"{len(rows) - len(order)} batches in the store were never sent")
    kept = dict(order)
    for name, tick in world.acknowledged.items():
        if kept.get(name) != tick:
            differences.append(f"{name} was acknowledged for tick {tick}; the store says {kept.get(name)}")
    return order


def uninterrupted(
    spec: StreamSpec, calm: StreamSpec, order: list[tuple[str, int]], world: World
) -> dict[int, TickRelease]:
    """The same batches in the same order under the same key, without a kill. The releases by tick."""
    save_bound(Key.load(spec.key_file), calm.path)
    last, origin, length = _head(spec)["tick"], _head(spec)["origin"], spec.clock.length
    now = [0.0 if origin is None else origin / 1e6]
    with Live(calm, wall=lambda: now[0]) as live:
        for name, tick in order:
            if live.released < tick - 1:
                live.publish(live.release_through(tick - 1))
            if origin is not None:
                now[0] = (origin + (tick - 0.5) * length) / 1e6
            live.accept([(f"ingest/{name}", parse(*world.sent[name], live.spec))])
        while live.released < last:
            live.publish(live.release_through(min(last, live.released + 64)))
        history = History(live.spec, lambda: last, live.proof)
        return {release.tick: release for release in history.read(range(1, last + 1))}


def _head(spec: StreamSpec) -> dict[str, Any]:
    connection = sqlite3.connect(spec.state_file)
    (text,) = connection.execute("SELECT state FROM head").fetchone()
    connection.close()
    return json.loads(text)


def compared(killed: Path, calm: Path, spec: StreamSpec) -> list[str]:
    """What differs between two folders that should hold the same stream. `spec` is the one of the first."""
    differences = []
    state = spec.state_file.relative_to(killed)
    one, two = (_content(folder / state, Key.load(spec.key_file)) for folder in (killed, calm))
    differences += [f"the stores differ in {name}" for name in one if one[name] != two[name]]
    for sink in spec.sinks:
        if sink.file is not None:
            place = sink.file.relative_to(killed)
            one, two = (_files(folder / place, folder) for folder in (killed, calm))
            differences += [f"{name} differs" for name in one.keys() | two if one.get(name) != two.get(name)]
    return differences


def _files(place: Path, folder: Path) -> dict[str, bytes]:
    found = place.iterdir() if place.is_dir() else [place] if place.exists() else []
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _content(state: Path, key: Key) -> dict[str, Any]:
    connection = sqlite3.connect(state)
    head = json.loads(connection.execute("SELECT state FROM head").fetchone()[0])
    select: Callable[[str], list[Any]] = lambda statement: connection.execute(statement).fetchall()  # noqa: E731
    content = {
        "tick": head["tick"],
        "hash chain": head["chain"],
        "origin": head["origin"],
        "release log": select("SELECT tick, query, payload FROM release ORDER BY tick, query"),
        "ledger": select("SELECT * FROM ledger ORDER BY query"),
        "batches": select("SELECT id, digest, tick FROM batch ORDER BY number"),
        "cursors": select("SELECT * FROM sink WHERE name NOT LIKE 'webhook%' ORDER BY name"),
        "snapshots": {
            query: key.unseal(f"snapshot {query} {tick}", sealed)
            for query, tick, sealed in select("SELECT query, tick, sealed FROM snapshot")
        },
        # In the order of arrival within a tick; what was counted is gone after a clean stop.
        "journal": [
            (tick, key.unseal(f"journal {number} {tick}", sealed))
            for number, tick, sealed in select("SELECT number, tick, sealed FROM journal ORDER BY tick, number")
        ],
    }
    connection.close()
    return content


def seen_otherwise(spec: StreamSpec, releases: dict[int, TickRelease], world: World) -> list[str]:
    """Ticks that some client, at some time, saw otherwise than they are."""
    told = {tick: as_json(spec, release) for tick, release in releases.items()}
    kinds: list[tuple[str, dict[int, Any], Callable[[int], Any]]] = [
        ("a live event", world.frames, lambda tick: frame(spec, releases[tick])),
        ("an answer", world.answers, lambda tick: json.dumps(told[tick], sort_keys=True)),
        ("a delivery", world.delivered, lambda tick: json.dumps(told[tick]).encode()),
    ]
    return [
        f"{what} of tick {tick} was another than the release"
        for what, seen, right in kinds
        for tick, ones in seen.items()
        if tick not in releases or ones != {right(tick)}
    ]
