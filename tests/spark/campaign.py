"""A live stream whose driver, or its Python workers, are killed, and one process beside it that nobody kills.

What is killed is frozen first, at a moment that is seen in the root: then it is known what was there when it died. A
batch is what `closes/N` says, so one process is fed with the very same batches; that they hold every file once is
looked at as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from apart import Driver, kill

from evertally.runtime import load_spec
from evertally.runtime.live import Live
from evertally.runtime.releases import TickRelease, unpack
from evertally.spark.public import batches, payloads, shown
from spec_text import spec_text
from waiting import until

SCHEMA = "time long, user string, page long, item string"
LIVE = Path(__file__).with_name("drivers") / "live_driver.py"
# At which moment of a batch: begun and nothing written; some parts written; all of it written, and Spark does not know.
AIMS = ("begun", "midway", "written")

Start = Callable[..., Driver]


@dataclass(frozen=True)
class Size:
    """How much work a batch is: the more, the longer it can be met in the middle."""

    columns: int
    width: int
    events: int
    users: int

    @property
    def parts(self) -> int:
        """Of a batch: slices of `pages`, all of `people`, and two shards of `items`."""
        return -(-self.columns // self.width) + 3


WIDE = Size(columns=300_000, width=65_536, events=200_000, users=60_000)
SMALL = Size(columns=20_000, width=4_096, events=20_000, users=6_000)
LARGE = Size(columns=1_000_000, width=65_536, events=1_000_000, users=400_000)  # 20 kills: 20 million events
SIZES = {"small": SMALL, "wide": WIDE, "large": LARGE}


def write_spec(folder: Path, size: Size, horizon: int = 1000) -> Path:
    """Slices, shards and a whole query, all of them behind buckets of users."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "visits.toml"
    stream = {"name": "visits", "horizon": horizon, "unit": "user", "user_column": "user", "order": "content"}
    path.write_text(
        spec_text(
            {"name": "pages", "kind": "vector_counter", "column": "page", "columns": size.columns, "share": 0.4},
            {"name": "people", "kind": "distinct_users", "share": 0.3},
            {"name": "items", "kind": "unknown_histogram", "column": "item", "share": 0.3},
            stream=stream | {"max_events_per_user": 3, "max_events_per_tick": 1_000_000},
            guarantee={"epsilon": 40.0, "delta": 1e-5},
            clock={"column": "time", "start": 0, "tick": 1, "close": "request"},
            output=None,
            engine={"slice_width": size.width, "user_buckets": 3, "label_shards": 2},
        )
    )
    return path


def made_events(size: Size, tick: int, seed: int) -> pa.Table:
    """Events of this tick and around it; some are early or late, some have no user, no time, or a page that is none."""
    chance = np.random.default_rng(seed)
    count = size.events

    def rarely(values: Any) -> pa.Array:
        return pa.array(values, mask=chance.random(count) < 0.01)

    return pa.table(
        {
            "time": rarely(tick - 1 + chance.integers(-2, 3, count)),
            "user": rarely(np.char.add("person ", chance.integers(0, size.users, count).astype(str))),
            "page": rarely(chance.integers(-5, size.columns + 5, count)),
            "item": rarely(np.char.add("item ", np.minimum(chance.zipf(1.3, count), 10**6).astype(str))),
        }
    )


@dataclass
class Report:
    """What happened to a stream, and what of it was wrong."""

    kills: dict[str, int] = field(default_factory=dict)
    starts: int = 0
    batches: int = 0
    ticks: int = 0
    numbers: int = 0
    files_seen: int = 0
    differences: list[str] = field(default_factory=list)

    def killed(self, what: str) -> None:
        self.kills[what] = self.kills.get(what, 0) + 1


class Campaign:
    """One stream from its beginning to its end."""

    def __init__(self, folder: Path, start: Start, size: Size, master: str = "local[2,4]", seed: int = 1) -> None:
        self.size, self.seed, self.report = size, seed, Report()
        self.spec = write_spec(folder / "stream", size)
        self.settled = load_spec(self.spec)
        self.root, self.home = Path(self.settled.engine.root), Path(self.settled.engine.home)
        self.public = Path(self.settled.engine.public)
        self.input = folder / "input"
        self.input.mkdir()
        self._start, self._master = start, master
        self.driver: Driver | None = None
        self.fed = self.asked = 0
        self._left: tuple[int, int] | None = None
        self._seen: dict[Path, str] = {}
        self._beside = OneProcess(self.spec, folder / "one")

    # What an operator does

    def start(self) -> Driver:
        """A driver; it is asked once more for what its predecessor was asked for."""
        self.report.starts += 1
        self._left = self._touched(self.latest())
        name = f"driver{self.report.starts}"
        self.driver = self._start(LIVE, self.spec, self.input, self._master, name=name)
        self.driver.until_said("running\n")
        if self.asked:
            self.driver.say(str(self.asked))
        return self.driver

    def feed(self) -> None:
        """A file of events of the next tick, there all at once; and the word that this tick is over."""
        self.fed += 1
        table = made_events(self.size, self.fed, self.seed * 10_000 + self.fed)
        hidden = self.input / f".{self.fed:04d}.parquet"
        pq.write_table(table, hidden)
        hidden.rename(self.input / f"{self.fed:04d}.parquet")
        self.asked = self.fed
        if self.driver is not None:
            self.driver.say(str(self.asked))

    def settle(self) -> None:
        """Waits until all that was asked for is released."""
        assert self.driver is not None
        self.driver.until_said(f"closed {self.asked}\n")

    def stop(self) -> None:
        assert self.driver is not None
        self.driver.say("")
        self.driver.finished()
        self.driver = None

    # What befalls it

    def kill(self, aim: str) -> None:
        """kill -9 of the whole session at such a moment of a batch that has events, or closes a tick."""
        driver = self._frozen(lambda batch: self.moment(batch) == aim and self._matters(batch))
        self.report.killed(f"{aim}, driver and all")
        self._die(driver)

    def kill_after(self, seconds: float) -> None:
        """kill -9 of the whole session so long after the next batch has begun."""
        before = self.latest()
        driver = self._frozen(lambda batch: batch > before)
        os.kill(driver.process.pid, signal.SIGCONT)
        time.sleep(seconds)  # any moment will do
        self._freeze(driver)
        self.report.killed(f"{self.moment(self.latest())}, driver and all")
        self._die(driver)

    def kill_workers(self) -> None:
        """kill -9 of the Python workers in mid-batch, and of nothing else: Spark tries their tasks again."""
        driver, workers = self._frozen_workers()
        batch = self.latest()
        self._look()
        assert workers, "nobody was at work"
        kill(workers)
        self.report.killed("midway, Python workers")
        assert self.moment(batch) == "midway"
        os.kill(driver.process.pid, signal.SIGCONT)
        self._over(driver, batch)

    def _frozen_workers(self) -> tuple[Driver, list[int]]:
        """Stops the driver and its Python workers while some parts are not written: so that somebody is at work."""
        while True:
            driver = self._frozen(lambda batch: self.moment(batch) == "midway" and self._matters(batch))
            batch, workers = self.latest(), driver.python_workers()
            _signal(workers, signal.SIGSTOP)
            if len(_names(self.root / f"state/{batch}")) < self.size.parts:
                return driver, workers
            _signal([*workers, driver.process.pid], signal.SIGCONT)  # too late
            self._over(driver, batch)

    def _over(self, driver: Driver, batch: int) -> None:
        until(lambda: self.moment(batch) == "over" or driver.process.poll() is not None)
        assert driver.process.poll() is None, driver.said()

    def _frozen(self, seen: Callable[[int], bool]) -> Driver:
        """Stops the driver's own process as soon as a batch is seen as it should be: no manifest comes without it. Who
        looks too late feeds it once more."""
        driver = self.driver
        assert driver is not None
        while True:
            until(lambda: seen(self.latest()) or self._missed() or driver.process.poll() is not None, pause=0.002)
            assert driver.process.poll() is None, driver.said()
            if self._missed():
                self.feed()
                continue
            os.kill(driver.process.pid, signal.SIGSTOP)
            if seen(self.latest()):
                return driver
            os.kill(driver.process.pid, signal.SIGCONT)  # too late

    def _missed(self) -> bool:
        """Whether nothing more will be seen: all that was asked for is released, and Spark knows it."""
        assert self.driver is not None
        return self.moment(self.latest()) == "over" and f"closed {self.asked}\n" in self.driver.said()

    def _freeze(self, driver: Driver) -> None:
        for _ in range(2):  # some are born while others are stopped
            _signal(driver.processes(), signal.SIGSTOP)

    def _die(self, driver: Driver) -> None:
        self._freeze(driver)
        self._look()
        driver.kill()
        self.driver = None

    # What is there

    def latest(self) -> int:
        """The last batch that has begun."""
        return max((int(name) for name in _names(self.root / "closes")), default=-1)

    def moment(self, batch: int) -> str:
        """How far a batch is."""
        if batch < 0:
            return "none"
        if (self.root / f"checkpoint/commits/{batch}").exists():
            return "over"
        if (self.root / f"manifest/{batch:08d}").exists():
            return "written"
        at_work = _names(self.root / f"state/{batch}") and self._touched(batch) != self._left
        return "midway" if at_work else "begun"

    def _touched(self, batch: int) -> tuple[int, int] | None:
        """When somebody last wrote into the states of a batch. Who comes after a kill writes under the same names."""
        try:
            return batch, (self.root / f"state/{batch}").stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def closes(self, batch: int) -> dict[str, Any]:
        """What was settled of a batch before it was computed."""
        found: dict[str, Any] = json.loads((self.root / f"closes/{batch:08d}").read_bytes())["said"]
        return found

    def _matters(self, batch: int) -> bool:
        record = self.closes(batch)
        return bool(record["envelope"]["files"]) or record["through"] >= record["opened"]

    def _files(self) -> dict[Path, str]:
        """Everything that the log of the stream and its tasks have put, by a hash of its content."""
        places = [self.root / name for name in ("closes", "state", "users", "releases", "manifest")]
        found = [
            Path(at, name)
            for place in (*places, self.home, self.public)
            for at, _, names in os.walk(place)
            for name in names
        ]
        found += [path for path in self.root.iterdir() if path.is_file()]
        contents = {}
        for path in found:
            with suppress(FileNotFoundError):  # a driver that goes on clears what it needs no more
                if not path.name.startswith("."):
                    contents[path] = hashlib.sha256(path.read_bytes()).hexdigest()
        return contents

    def _look(self) -> None:
        """Notes what is there while nothing moves, and that nothing of it is public without its mark."""
        now = self._files()
        self._changed(now)
        self._seen |= now
        self.report.files_seen = len(self._seen)
        marks = {int(name) for name in _names(self.home / "mark")}
        early = {int(name) for name in _names(self.public)} - marks
        if early:
            self.report.differences.append(f"public without a mark: batches {sorted(early)}")

    def _changed(self, now: dict[Path, str]) -> None:
        changed = [path for path, content in now.items() if self._seen.get(path, content) != content]
        self.report.differences += [f"other bytes than at a kill: {path.name}" for path in changed]
        kept = {"closes", "manifest", "mark", self.public.name}
        lost = [path for path in self._seen if path not in now and kept & set(path.parts)]
        self.report.differences += [f"gone since a kill: {path.name}" for path in lost]

    # What it is held against

    def compare(self) -> Report:
        """All that is released and was not compared yet, with one process; and the log as a whole."""
        report, said = self.report, batches(self.settled)
        report.differences += _broken(said)
        for about in said[report.batches :]:
            record = self.closes(about["batch"])
            files = [path for path, _size, _time in record["envelope"]["files"]]
            for one in self._beside.play(files, record["through"]):
                report.ticks += 1
                report.numbers += self._same(one)
        report.batches = len(said)
        self._changed(self._files())
        return report

    def finish(self) -> Report:
        """Compares everything; that no file was left out, and none was read twice."""
        self.compare()
        given = sorted(str(path) for path in self.input.glob("*.parquet"))
        if sorted(self._beside.files) != given:
            self.report.differences.append("some files were left out, or read twice")
        if self.report.ticks != self.asked:
            self.report.differences.append(f"{self.asked} ticks were asked for, and {self.report.ticks} are released")
        self._beside.close()
        return self.report

    def _same(self, one: TickRelease) -> int:
        compared = 0
        for query in self.settled.queries:
            wanted = unpack(query, one.payloads[query.name])
            if wanted["category"] is not None:
                wanted["category"] = list(wanted["category"])
            found = [values for _tick, values in shown(self.settled, query.name, one.tick, one.tick)]
            raw = [data for tick, data in payloads(self.settled, query.name) if tick == one.tick]
            if found != [wanted] or raw not in ([], [one.payloads[query.name]]):
                self.report.differences.append(f"tick {one.tick} of {query.name}")
            compared += len(wanted["value"]) if isinstance(wanted["value"], list) else 1
        return compared


class OneProcess:
    """The same stream under the same key, fed with the same batches, tick by tick."""

    def __init__(self, spec: Path, folder: Path) -> None:
        self._spec, self._folder = spec, folder
        self._live: Live | None = None
        self.files: list[str] = []

    def play(self, files: list[str], through: int) -> list[TickRelease]:
        """What it releases after the events of a batch."""
        live = self._open() if self._live is None else self._live
        self.files += files
        if files:
            table = pa.concat_tables([pq.read_table(path) for path in files]).combine_chunks()
            columns = {name: pa.concat_arrays(table[name].chunks) for name in live.spec.columns()}
            live.accept([(str(len(self.files)), columns)])
        return live.release_through(through)

    def _open(self) -> Live:
        self._folder.mkdir()
        copy = self._folder / self._spec.name
        shutil.copy(self._spec, copy)
        settled = load_spec(copy)
        shutil.copy(load_spec(self._spec).key_file, settled.key_file)
        settled.key_file.chmod(0o600)
        self._live = Live(settled, nothing_was_released=True).__enter__()
        return self._live

    def close(self) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)


def _broken(said: list[dict[str, Any]]) -> list[str]:
    """What is wrong with the order of what was shown: signatures and chain were looked at by who read it."""
    wrong = [f"batch {about['batch']} at place {place}" for place, about in enumerate(said) if about["batch"] != place]
    wrong += [
        f"batch {after['batch']} opens {after['opened']} after {before['through']}"
        for before, after in pairwise(said)
        if after["opened"] != before["through"] + 1
    ]
    return wrong


def _signal(processes: list[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def _names(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]
    except FileNotFoundError:
        return []


def run_long(folder: Path, start: Start, size: Size, kills: int, chance: random.Random) -> Report:
    """Kills of every kind, at moments that follow from `chance`; compared after each."""
    campaign = Campaign(folder, start, size, seed=chance.randrange(1000))
    campaign.start()
    kinds = ("random", "midway", "workers", "random", "written", "begun")
    done = 0
    while done < kills and not campaign.report.differences:
        campaign.feed()
        kind = kinds[done % len(kinds)]
        if kind == "workers":
            campaign.kill_workers()
        else:
            if kind == "random":
                campaign.kill_after(chance.expovariate(1.0))
            else:
                campaign.kill(kind)
            campaign.start()
        done += 1
        if chance.random() < 0.7:
            campaign.settle()
        campaign.compare()
    campaign.settle()
    campaign.stop()
    return campaign.finish()
