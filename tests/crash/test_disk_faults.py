"""Disks that are full, read-only or damaged: a clear word, nothing lost, nothing different afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import plays
import pytest
from crash_stream import CANARY, body, events, hour, plain
from driver import compared, differences_from_calm
from nursery import Nursery
from one_service import Service

from evertally.errors import EvertallyError
from evertally.runtime import load_spec
from evertally.runtime.input.batches import BatchRefused, parse
from evertally.runtime.live import Live
from evertally.runtime.releases import unpack
from evertally.runtime.state.history import History


@contextmanager
def mounted(place: Path, *arguments: str) -> Iterator[None]:
    done = subprocess.run(["mount", *arguments, str(place)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"this machine lets nobody mount: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


# -- a full disk --------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of four megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    with mounted(place, "-t", "tmpfs", "-o", "size=4m", "tmpfs"):
        yield place


def fill(disk: Path) -> None:
    with open(disk / "ballast", "wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(bytes(4096))


def make_room(disk: Path) -> None:
    (disk / "ballast").unlink()


def close_until_it_fails(service: Service, tick: int) -> None:
    """There may be room for some ticks in the last block of a file."""
    for last in range(tick, tick + 50):
        content = json.dumps({"until": hour(last)}).encode()
        answer = service.world.ask("POST", "/v1/ticks", "admin", content)
        if answer is None or answer[0] != 200:
            assert answer is None or answer[0] == 503
            return
    raise AssertionError("the disk does not get full")


FULL = {
    "state": ('file = "visits.state"', "the disk is full; make room, then start again: nothing that was acknowledged"),
    "sidecar": ('file = "visits.key"', "visits.key.bound: No space left on device; the stream stops"),
    "lines": ('file = "visits.jsonl"', "visits.jsonl: No space left on device; run again to continue"),
    "parts": ('file = "visits.parquet"', "visits.parquet: No space left on device; run again to continue"),
}


@pytest.mark.parametrize("what", FULL)
def test_a_full_disk(nursery: Nursery, tmp_path: Path, small_disk: Path, what: str) -> None:
    line, words = FULL[what]
    text = plain().replace(line, line.replace("visits", "small/visits"))
    service = Service(nursery, tmp_path, text)
    service.start()
    service.sent(1)
    service.close(2)
    fill(small_disk)
    if what == "state":
        answers = [service.send(number, 3) for number in range(2, 30)]
        kept = [answer for answer in answers if answer is not None and answer[0] == 202]
        refused = [answer for answer in answers if answer is not None and answer[0] == 503]
        assert len(kept) + len(refused) == len(answers)
        assert "send it again later" in refused[0][1]["error"]
    close_until_it_fails(service, 3)
    assert words in service.failed()
    service.keeps_secrets()
    assert words in service.refused()
    make_room(small_disk)
    service.start()
    for number in range(1, 30):
        service.sent(number, 3)
    service.close(60)
    service.stop()
    service.keeps_secrets()
    assert (small_disk / "ballast").exists() is False
    (tmp_path / "calm" / "small").mkdir(parents=True)
    assert differences_from_calm(service) == []


def test_files_that_cannot_grow(nursery: Nursery, tmp_path: Path) -> None:
    """A quota, a limit of the file system: an error of the disk, which is none of fullness."""
    service = Service(nursery, tmp_path, plain())
    service.start(call="plays:command_within", given=(300_000,))
    answers = [service.send(number) for number in (7, 20, 33, 46, 59, 72, 85)]  # the large ones
    refused = [answer for answer in answers if answer is not None and answer[0] == 503]
    assert refused
    assert "send it again later" in refused[0][1]["error"]
    close_until_it_fails(service, 1)
    assert "check the disk, then start again" in service.failed()
    service.keeps_secrets()
    service.start()
    for number in (7, 20, 33, 46, 59, 72, 85):
        service.sent(number)
    service.close(60)
    service.stop()
    service.keeps_secrets()
    assert differences_from_calm(service) == []


# -- a disk that cannot be written ----------------------------------------------------------------------------------


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """By its mode; who may write all the same, as root may, finds it mounted so that nobody can."""
    mode = path.stat().st_mode
    path.chmod(0o500 if path.is_dir() else 0o400)
    try:
        if not os.access(path, os.W_OK):
            yield
            return
    finally:
        path.chmod(mode)
    with mounted(path, "--bind", str(path)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(path)], check=True)
        yield


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("visits.state", "it cannot be written; give this user the right to write it and its folder"),
        ("", "give this user the right to write it and its folder|check the folder and its permissions|cannot lock"),
        ("visits.jsonl", "cannot write the output"),
    ],
)
def test_a_place_that_cannot_be_written(nursery: Nursery, tmp_path: Path, what: str, words: str) -> None:
    folder = tmp_path / "stream"
    service = Service(nursery, folder, plain())
    service.start()
    service.sent(1)
    service.close(2)
    service.stop()
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with read_only(folder / what):
        out, err = tmp_path / "out", tmp_path / "err"
        child = nursery.start("nursery:command", "serve", str(folder / "visits.toml"), stdout=out, stderr=err)
        assert child.wait() == 2
        told = err.read_text()
    assert any(word in told for word in words.split("|")), told
    assert "Traceback" not in told
    assert "internal error" not in told
    for name in ("visits.jsonl", "visits.csv", "visits.key"):
        assert (folder / name).read_bytes() == before[name]
    service.start()
    service.close(4)
    service.stop()
    service.keeps_secrets()
    assert differences_from_calm(service) == []


# -- damage ---------------------------------------------------------------------------------------------------------


def says(error: EvertallyError, *words: str) -> None:
    """One of these, and nothing private."""
    assert any(one in str(error) for one in words), error
    assert CANARY not in str(error)


class Wreck:
    """A stream that was killed at tick 5, to be damaged and taken up again as often as you like."""

    def __init__(self, folder: Path) -> None:
        self._whole, self._folder = folder / "whole", folder / "damaged"
        self._whole.mkdir()
        (self._whole / "visits.toml").write_text(plain(snapshot_every=4))
        live = Live(load_spec(self._whole / "visits.toml"))
        self._feed(live, 1, 5)
        live.accept([("late", parse(*body(events(2, 8, 9), 0), live.spec))])
        live._stack.close()  # as a kill leaves it: events in the journal, snapshots of an earlier tick
        self.state = (self._whole / "visits.state").read_bytes()
        self.before = self.taken_up(self.state)

    def taken_up(self, state: bytes, log: bytes | None = None) -> Any:
        """What somebody sees who goes on from a state: receipts, the log, the outputs."""
        shutil.rmtree(self._folder, ignore_errors=True)
        shutil.copytree(self._whole, self._folder)
        (self._folder / "visits.state").write_bytes(state)
        if log is not None:
            (self._folder / "visits.state-wal").write_bytes(log)
        spec = load_spec(self._folder / "visits.toml")
        with Live(spec) as live:
            receipts = self._feed(live, 1, 7)
            history = History(live.spec, lambda: 7, live.proof)
            releases = [
                (release.tick, [unpack(query, release.payloads[query.name]) for query in spec.queries])
                for release in history.read(range(1, 8))
            ]
            history._connection().close()
        return receipts, releases, [(self._folder / name).read_bytes() for name in ("visits.jsonl", "visits.csv")]

    def _feed(self, live: Live, first: int, last: int) -> list[Any]:
        receipts: list[Any] = []
        for tick in range(first, last + 1):
            receipts += live.accept(
                [(f"canary-{n}", parse(*body(events(1, n, tick), n), live.spec)) for n in (3 * tick, 3 * tick + 1)]
            )
            live.publish(live.release_through(tick))
        return receipts


def test_one_wrong_bit_anywhere_in_the_state(quick_path: Path) -> None:
    wreck = Wreck(quick_path)
    chance, outcomes = random.Random(2), Counter[str]()
    with sqlite3.connect(quick_path / "whole" / "visits.state") as connection:
        (page,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    for start in range(0, len(wreck.state), page):
        used = [start + i for i in range(page) if wreck.state[start + i]]
        for position in {start, *chance.sample(used, min(len(used), 8))}:
            state = bytearray(wreck.state)
            state[position] ^= 1 << chance.randrange(8)
            try:
                receipts, *rest = wreck.taken_up(bytes(state))
            except EvertallyError as error:
                says(error, "damaged", "Bring it back")
                outcomes["refused"] += 1
                continue
            assert rest == list(wreck.before[1:]), position
            # A batch whose fingerprint is damaged is refused when it is sent again, or its tick is misremembered.
            if repr(receipts) != repr(wreck.before[0]):
                assert (
                    sum(isinstance(a, BatchRefused) or a != b for a, b in zip(receipts, wreck.before[0], strict=True))
                    == 1
                )
                outcomes["misremembered"] += 1
            outcomes["same"] += 1
    assert outcomes["refused"] > 50, outcomes
    assert outcomes["same"] > 2, outcomes


def test_a_write_ahead_log_that_was_cut(nursery: Nursery, quick_path: Path) -> None:
    """Frames that were synced are missing: the file system lost them. Either all is as before, or it is refused."""
    folder = quick_path / "stream"
    service = Service(nursery, folder, plain())
    service.start()
    for tick in range(1, 8):
        service.sent(tick, tick)
        service.close(tick)
    service.kill()
    saved = quick_path / "saved"
    shutil.copytree(folder, saved)
    log = (saved / "visits.state-wal").read_bytes()
    assert len(log) > 50_000
    refused = 0
    for size in [*range(0, len(log), len(log) // 12), len(log) - 1]:
        shutil.rmtree(folder)
        shutil.copytree(saved, folder)
        (folder / "visits.state-wal").write_bytes(log[:size])
        (folder / "visits.state-shm").unlink(missing_ok=True)
        try:
            with Live(service.spec) as live:
                assert live.released == 7
        except EvertallyError as error:
            says(error, "not the last state", "damaged", "another history")
            refused += 1
    assert refused >= 12
    shutil.rmtree(folder)
    shutil.copytree(saved, folder)
    service.start()
    service.close(9)
    service.stop()
    assert differences_from_calm(service) == []


def test_a_page_of_zeros_and_a_page_of_noise(quick_path: Path) -> None:
    wreck = Wreck(quick_path)
    chance = random.Random(4)
    for start in range(0, len(wreck.state), 4096):
        for wrong in (bytes(4096), chance.randbytes(4096)):
            state = wreck.state[:start] + wrong + wreck.state[start + 4096 :]
            try:
                assert repr(wreck.taken_up(state)) == repr(wreck.before)
            except EvertallyError as error:
                says(error, "damaged")


def test_plays_are_compared(tmp_path: Path) -> None:
    """The comparison itself sees a difference of one byte."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "visits.toml").write_text(plain())
    plays.play(tmp_path / "one" / "visits.toml")
    spec = load_spec(tmp_path / "one" / "visits.toml")
    shutil.copytree(tmp_path / "one", tmp_path / "two", dirs_exist_ok=True)
    assert compared(tmp_path / "one", tmp_path / "two", spec) == []
    lines = tmp_path / "two" / "visits.csv"
    lines.write_bytes(lines.read_bytes().replace(b"north", b"South", 1))
    assert compared(tmp_path / "one", tmp_path / "two", spec) == ["visits.csv differs"]
    connection = sqlite3.connect(tmp_path / "two" / "visits.state")
    connection.execute("DELETE FROM batch WHERE number = 1")
    connection.commit()
    connection.close()
    assert "the stores differ in batches" in compared(tmp_path / "one", tmp_path / "two", spec)
