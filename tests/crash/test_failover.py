"""Another machine takes over, as docs/operating.md says (Standby). Two folders are the two machines.

Whatever is done in whatever order: of no tick are there two releases, and what was acknowledged on disks that are still
there is counted.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from clients import World
from crash_stream import hour, plain
from driver import differences_from_calm
from nursery import Nursery
from one_service import Service

TEXT = plain().replace('"visits.key"', '"secret/visits.key"')
OUTPUTS = ("visits.jsonl", "visits.csv", "visits.parquet")


class Pair:
    """Two machines, one stream. It begins on the first: tick 3 is released, events wait for tick 4."""

    def __init__(self, nursery: Nursery, folder: Path) -> None:
        self.first, self.second = (Service(nursery, folder / name, TEXT) for name in ("first", "second"))
        self.first.start()
        for tick in (1, 2, 3):
            self.first.sent(tick, tick)
            self.first.close(tick)
        self.first.sent(4, 4)

    def move_key(self) -> None:
        """To another disk: what the first one holds open is not what the second one gets."""
        shutil.copytree(self.first.folder / "secret", self.second.folder / "secret")
        shutil.rmtree(self.first.folder / "secret")

    def bring_state(self) -> None:
        """State, its log and outputs, from a disk that can be read."""
        for name in ("visits.state", "visits.state-wal"):
            if (source := self.first.folder / name).exists():
                shutil.copy2(source, self.second.folder / name)
        self._bring_outputs()

    def replicate(self) -> None:
        """As an operator copies the state of a running stream, and its outputs."""
        target = self.second.folder / "visits.state"
        with closing(sqlite3.connect(self.first.spec.state_file)) as connection:
            connection.execute("VACUUM INTO ?", (str(target),))
        target.chmod(0o600)
        self._bring_outputs()

    def _bring_outputs(self) -> None:
        for name in OUTPUTS[:2]:
            shutil.copy2(self.first.folder / name, self.second.folder / name)
        shutil.copytree(self.first.folder / OUTPUTS[2], self.second.folder / OUTPUTS[2])

    def goes_on(self, *, known: bool = True) -> None:
        """The second one, to the end: as one stream that nobody moved."""
        assert self.second.sent(4, 4)["duplicate"] == known
        self.second.sent(5, 5)
        self.second.close(7)
        self.second.stop()
        self.second.world.sent |= self.first.world.sent
        if known:
            self.second.world.acknowledged |= self.first.world.acknowledged
        self.no_tick_twice()
        (self.second.folder / "calm" / "secret").mkdir(parents=True, mode=0o700)
        assert differences_from_calm(self.second) == []

    def no_tick_twice(self) -> None:
        """Of each tick there is one release, in all that either machine ever gave away."""
        told = defaultdict[tuple[int, str], set[str]](set)
        for machine in (self.first, self.second):
            for line in (machine.folder / "visits.jsonl").read_text().splitlines():
                told[json.loads(line)["tick"], line.partition('"value"')[0]].add(line)
        assert len(told) > 10
        assert all(len(lines) == 1 for lines in told.values()), "two releases of one tick"


@pytest.fixture
def pair(nursery: Nursery, quick_path: Path) -> Iterator[Pair]:
    made = Pair(nursery, quick_path)
    yield made
    for machine in (made.first, made.second):
        if machine.child is not None and machine.child.running:
            machine.kill()


@pytest.mark.parametrize("how", ["stopped", "dead"])
def test_a_machine_that_is_stopped_or_dead(pair: Pair, how: str) -> None:
    pair.first.stop() if how == "stopped" else pair.first.kill()
    pair.move_key()
    pair.bring_state()
    pair.second.start()
    assert "the key file" in pair.first.refused(), "its supervisor starts it again"
    pair.goes_on()


def test_a_replica_that_is_behind_waits_for_the_input(pair: Pair) -> None:
    pair.replicate()
    pair.first.close(4)
    pair.first.sent(6, 5)
    pair.first.close(5)
    pair.first.kill()
    pair.move_key()
    assert "is not the last state of this stream" in pair.second.refused()
    pair.second.start("--replay")
    replays_to(pair.second.world, 4)
    pair.second.sent(6, 5)
    replays_to(pair.second.world, 5)
    pair.goes_on()


def test_a_replica_that_is_behind_and_other_input(pair: Pair) -> None:
    pair.replicate()
    pair.first.close(4)
    pair.first.kill()
    pair.move_key()
    pair.second.start("--replay")
    pair.second.sent(12, 4)
    refuses_to_close(pair.second.world, 4)
    assert "the replay does not lead to what was released" in pair.second.failed()
    pair.no_tick_twice()


def test_a_key_that_is_taken_from_a_running_machine(pair: Pair) -> None:
    """The first step was left out. The first machine cannot release any more, and says so by ending."""
    pair.bring_state()
    pair.move_key()
    refuses_to_close(pair.first.world, 4)
    assert "the stream stops" in pair.first.failed()
    pair.second.start()
    pair.goes_on()


def replays_to(world: World, tick: int) -> None:
    """Closes a tick that was released before."""
    world.insist("POST", "/v1/ticks", "admin", json.dumps({"until": hour(tick)}).encode())


def refuses_to_close(world: World, tick: int) -> None:
    answer = world.ask("POST", "/v1/ticks", "admin", json.dumps({"until": hour(tick)}).encode())
    assert answer is None or answer[0] == 503
