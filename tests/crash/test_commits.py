"""A process that dies at every single step of a start, an acceptance, a tick, a publication and a stop."""

from __future__ import annotations

import random
import shutil
import signal
from pathlib import Path

import plays
import pytest
from crash_stream import plain
from driver import compared
from nursery import Nursery

from evertally.noise import Key
from evertally.runtime import load_spec
from made_keys import save_bound

FILES = {"visits.csv", "visits.jsonl", "visits.key", "visits.key.bound", "visits.key.lock", "visits.parquet"}
FILES |= {"visits.state", "visits.toml"}


class Stage:
    """Folders with one spec, and a calm play to compare with."""

    def __init__(self, nursery: Nursery, folder: Path) -> None:
        self._nursery = nursery
        self._folder = folder
        self._key = Key.generate()
        self.calm = self.fresh("calm")
        plays.play(self.calm)

    def fresh(self, name: str, key: bool = True) -> Path:
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "visits.toml").write_text(plain(snapshot_every=2))
        if key:
            save_bound(self._key, folder / "visits.toml")
        return folder / "visits.toml"

    def dies(self, play: str, spec: Path, *arguments: str | int, by: int = signal.SIGKILL) -> bool:
        """Whether it died before the play was over."""
        out = self._folder / "out"
        status = self._nursery.start(f"plays:{play}", str(spec), *arguments, stdout=out, stderr=out).wait()
        assert status in (0, -by), out.read_text()
        return status != 0

    def ends_as_the_calm_one(self, spec: Path) -> None:
        plays.play(spec)
        loaded = load_spec(spec)
        if loaded.key_file.read_bytes() != (self.calm.parent / "visits.key").read_bytes():
            # The play made its own key: so there is another calm one.
            self._key = Key.load(loaded.key_file)
            self.calm = self.fresh("calm")
            plays.play(self.calm)
        assert compared(spec.parent, self.calm.parent, loaded) == []
        assert {path.name for path in spec.parent.iterdir()} == FILES


@pytest.fixture
def stage(nursery: Nursery, quick_path: Path) -> Stage:
    return Stage(nursery, quick_path)


@pytest.mark.parametrize("part", plays.PARTS)
def test_death_at_every_step(stage: Stage, part: str) -> None:
    for number in range(1, 500):
        spec = stage.fresh("killed", key=part != "start")
        died = stage.dies("play_until", spec, part, number)
        stage.ends_as_the_calm_one(spec)
        if not died:
            break
    assert 5 < number < 499, number


def test_death_in_the_middle_of_a_write(stage: Stage) -> None:
    died = 0
    sizes = [*range(0, 60_000, 2_900), *range(60_000, 600_000, 19_990)]
    for size in sizes:
        spec = stage.fresh("killed")
        if not stage.dies("play_within", spec, size, by=signal.SIGXFSZ):
            break
        died += 1
        stage.ends_as_the_calm_one(spec)
    assert died > 10


def test_death_again_and_again(stage: Stage) -> None:
    """In the next start, too, and in the one after it."""
    chance, died = random.Random(3), 0
    for _ in range(5):
        spec = stage.fresh("killed")
        for _ in range(5):
            died += stage.dies("play_until", spec, chance.choice(plays.PARTS), chance.randint(1, 10))
        stage.ends_as_the_calm_one(spec)
    assert died > 10
