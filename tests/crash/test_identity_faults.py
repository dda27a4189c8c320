"""Files that are gone, old, or of another stream, and clocks that go astray: the stream goes on only as itself."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from crash_stream import body, events, on_the_wall, plain
from driver import compared, differences_from_calm
from nursery import Nursery
from one_service import Service

from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.runtime.input.batches import parse
from evertally.runtime.live import Live
from evertally.runtime.state.sidecar import sidecar_path
from made_keys import save_bound


class Past:
    """A stream that was stopped at tick 3, went on, and was stopped at tick 8; copies of both moments."""

    def __init__(self, nursery: Nursery, folder: Path) -> None:
        self.folder = folder / "stream"
        self.old, self.now = folder / "old", folder / "now"
        self.service = Service(nursery, self.folder, plain())
        self._spend(1, 3, self.old)
        self._spend(4, 8, self.now)

    def _spend(self, first: int, last: int, copy: Path) -> None:
        self.service.start()
        for tick in range(first, last + 1):
            self.service.sent(tick, tick)
            self.service.close(tick)
        self.service.stop()
        shutil.copytree(self.folder, copy)

    def bring_back(self, file: str, moment: Path) -> None:
        shutil.copy2(moment / file, self.folder / file)

    def bring_all_back(self) -> None:
        for path in self.folder.glob("visits.*"):
            if path.is_file():
                path.unlink()
        for path in self.now.glob("visits.*"):
            if path.is_file():
                shutil.copy2(path, self.folder / path.name)

    def goes_on(self) -> None:
        """As if nothing had been."""
        self.service.start()
        assert self.service.sent(3)["duplicate"]
        self.service.sent(9, 9)
        self.service.close(10)
        self.service.stop()
        self.service.keeps_secrets()
        assert differences_from_calm(self.service) == []


@pytest.fixture(scope="module")
def past(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Past:
    return Past(nursery, tmp_path_factory.mktemp("past"))


def key_of_another(past: Past) -> None:
    (past.folder / "visits.key").unlink()
    Key.generate().save(past.folder / "visits.key")


def state_of_another(past: Past) -> None:
    other = past.folder.parent / "other"
    other.mkdir(exist_ok=True)
    (other / "visits.toml").write_text(plain())
    with Live(load_spec(other / "visits.toml")) as live:
        live.publish(live.release_through(8))
    shutil.copy2(other / "visits.state", past.folder / "visits.state")


FAULTS: dict[str, tuple[Callable[[Past], object], str]] = {
    "no key": (lambda past: (past.folder / "visits.key").unlink(), "Bring the key back"),
    "another key": (key_of_another, "belongs to another key; bring the right one back"),
    "a key for all to read": (lambda past: (past.folder / "visits.key").chmod(0o644), "chmod 600 it"),
    "half a key": (lambda past: (past.folder / "visits.key").write_bytes(bytes(16)), "does not hold exactly 32 bytes"),
    "no sidecar": (lambda past: (past.folder / "visits.key.bound").unlink(), "missing beside the key; bring it back"),
    "an old sidecar": (lambda past: past.bring_back("visits.key.bound", past.old), "bring the last state back"),
    "a broken sidecar": (lambda past: (past.folder / "visits.key.bound").write_text("{}"), "bring the right one back"),
    "no state": (lambda past: (past.folder / "visits.state").unlink(), "Bring the state back"),
    "an empty state": (lambda past: (past.folder / "visits.state").write_bytes(b""), "damaged"),
    "an old state": (lambda past: past.bring_back("visits.state", past.old), "byte for byte, with --replay"),
    "another state": (state_of_another, "was not written with the key"),
    "a state for all to read": (lambda past: (past.folder / "visits.state").chmod(0o640), "chmod 600 it"),
    "an old output": (
        lambda past: past.bring_back("visits.jsonl", past.old),
        "Bring it back; releases are written once",
    ),
    "no output": (lambda past: (past.folder / "visits.csv").unlink(), "Bring it back; releases are written once"),
    "a later spec": (
        lambda past: (past.folder / "visits.toml").write_text(plain(horizon=9001)),
        "Undo the change of the spec, or start a new stream",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_only_the_last_state_with_its_own_key_goes_on(past: Past, fault: str) -> None:
    past.bring_all_back()
    spoil, words = FAULTS[fault]
    spoil(past)
    said = past.service.refused()
    assert words in said, said
    past.service.keeps_secrets()


def test_after_all_these_refusals_it_goes_on(nursery: Nursery, tmp_path: Path) -> None:
    past = Past(nursery, tmp_path)
    for spoil, _ in FAULTS.values():
        spoil(past)
        past.service.refused()
        past.bring_all_back()
    past.goes_on()


def test_a_backup_goes_on_with_the_same_input_only(nursery: Nursery, tmp_path: Path) -> None:
    past = Past(nursery, tmp_path)
    service = past.service
    for wrong in (True, False):
        past.bring_all_back()
        past.bring_back("visits.state", past.old)
        service.start("--replay")
        for tick in range(4, 9):
            if not (wrong and tick == 6):
                service.sent(tick, tick)
            if wrong and tick == 8:
                content = b'{"until": "2013-01-01T08:00"}'
                answer = service.world.ask("POST", "/v1/ticks", "admin", content)
                assert answer is None or answer[0] == 503
                assert "The input differs from the first time; nothing was published" in service.failed()
            else:
                service.close(tick)
        for name in ("visits.jsonl", "visits.csv"):
            assert (past.folder / name).read_bytes() == (past.now / name).read_bytes()
    service.stop()
    past.goes_on()


def test_two_at_once(nursery: Nursery, tmp_path: Path) -> None:
    first = Service(nursery, tmp_path, plain())
    first.start()
    first.sent(1)
    running, said = first.child, first.said()
    words = first.refused()
    assert "another process is running this stream" in words
    assert "wait for it" in words
    first.child = running
    (tmp_path / "stdout").write_text(said)
    first.close(3)
    first.kill()
    first.start()
    first.close(4)
    first.stop()
    first.keeps_secrets()
    assert differences_from_calm(first) == []


def test_a_copy_in_another_folder_cannot_be_brought_back(nursery: Nursery, tmp_path: Path) -> None:
    """A fork under the same key: both went on with other events. The sidecar knows which is the stream."""
    past = Past(nursery, tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(past.folder, copy)
    spec = load_spec(copy / "visits.toml")
    with Live(spec) as live:
        live.accept([("other", parse(*body(events(5, 20, 9), 0), spec))])
        live.publish(live.release_through(9))
    service = past.service
    service.start()
    service.sent(9, 9)
    service.close(9)
    service.stop()
    own = (past.folder / "visits.state").read_bytes()
    shutil.copy2(copy / "visits.state", past.folder / "visits.state")
    for arguments in ((), ("--replay",)):
        assert "a copy that went its own way; bring the last state back" in service.refused(*arguments)
    (past.folder / "visits.state").write_bytes(own)
    past.goes_on()


@pytest.mark.parametrize("seed", range(4))
def test_a_wall_clock_that_wanders(tmp_path: Path, seed: int) -> None:
    """Back, forth, and a kill now and then: no event enters a tick that is out, or one before its predecessor's."""
    chance, now = random.Random(seed), [1_000_000.0]
    astray, calm = tmp_path / "astray", tmp_path / "calm"
    for folder in (astray, calm):
        folder.mkdir()
        (folder / "visits.toml").write_text(on_the_wall())
    spec = load_spec(astray / "visits.toml")
    live = Live(spec, wall=lambda: now[0])
    order: list[tuple[int, int]] = []  # batch, tick
    for number in range(120):
        now[0] += chance.choice((0.1, 0.4, 0.9, 3.0, 20.0, -0.5, -2.0, -30.0))
        batch = parse(*body(events(0, number, 1), number), live.spec)
        (receipt,) = live.accept([(str(number), batch)])
        assert not receipt.duplicate
        assert receipt.tick > live.released
        assert receipt.tick >= (order[-1][1] if order else 0)
        order.append((number, receipt.tick))
        passed = live.spec.clock.open_tick(live.now()) - 1
        if chance.random() < 0.5 and passed > live.released:
            live.publish(live.release_through(passed))
        if chance.random() < 0.2:
            live._stack.close()
            now[0] += chance.choice((0.0, 5.0, -5.0, -100.0))
            live = Live(spec, wall=lambda: now[0])
            (again,) = live.accept([(str(number), batch)])
            assert again.duplicate
            assert again.tick == receipt.tick
    last = order[-1][1] + 1
    live.publish(live.release_through(last))
    live.__exit__(None)
    save_bound(Key.load(spec.key_file), calm / "visits.toml")
    steady = [1_000_000.0]
    with Live(load_spec(calm / "visits.toml"), wall=lambda: steady[0]) as live:
        for number, tick in order:
            steady[0] = max(steady[0], 1_000_000.0 + tick - 0.5)
            (receipt,) = live.accept([(str(number), parse(*body(events(0, number, 1), number), live.spec))])
            assert receipt.tick == tick
        live.publish(live.release_through(last))
    assert compared(astray, calm, spec) == []
    assert sidecar_path(spec.key_file).exists()
