"""Power cuts at the moments at which most can be lost. `python tests/power_loss` tries all moments (`make audit`)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cuts import KEY, Recording, wrong_after


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """In memory, where there is one: no test of the power waits for a disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        yield Path(place)


@pytest.fixture(scope="module")
def recording(folder: Path) -> Recording:
    return Recording(folder)


def test_the_log_has_everything(recording: Recording) -> None:
    """What the calls of the log add up to is what is in the folder: none went past it."""
    *_, last = recording.cuts([len(recording.calls)], 0)
    assert len(recording.before_syncs) > 40
    assert recording.adds_up_to() == recording.left
    assert (last.accepted, last.released) == (3, 3)


def test_every_power_cut_is_survived(folder: Path, recording: Recording) -> None:
    tried = 0
    # All of those in which the key comes into being, and some of the others.
    for cut in recording.cuts(sorted({*recording.before_syncs[:12], *recording.before_syncs[::3]}), 1):
        tried += 1
        assert wrong_after(cut, recording, folder / "after") == [], cut.name
    assert tried > 40


@pytest.mark.parametrize(
    "what",
    [
        str(KEY.parents[1]),  # that there is a folder with the key in it
        str(KEY.parent),
        f"{KEY}.new",
        f"{KEY}.bound.new",
        "visits.state-wal",
        "visits.jsonl",
        "visits.parquet/.part-000000000001.parquet.new",
    ],
)
def test_a_sync_that_is_not_there_is_missed(folder: Path, recording: Recording, what: str) -> None:
    """Were one kind of sync left out, some power cut would show it: so the test above sees them all."""
    forgetful = recording.without_syncs_of(what)
    cuts = forgetful.cuts(recording.before_syncs[25::5], 1)  # a few will do
    assert any(wrong_after(cut, recording, folder / "after") for cut in cuts), what
