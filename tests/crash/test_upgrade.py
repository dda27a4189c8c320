"""A stream of the version before: it is opened, goes on, and releases to the byte what that version went on to release.

`write_previous.py` says how `previous/` was written. A new format of the state is a new step; this is what takes it.
"""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from evertally.runtime import certificate, load_spec
from evertally.runtime.input.batches import parse
from evertally.runtime.live import Live, Receipt
from evertally.runtime.spec import StreamSpec

PREVIOUS = Path(__file__).parent / "previous"
STREAMS = sorted(folder.name for folder in PREVIOUS.iterdir())


def taken_over(name: str, folder: Path) -> tuple[StreamSpec, dict[str, Any]]:
    """The stream in a folder of its own, as the version before has left it."""
    source = PREVIOUS / name
    for file in ("visits.toml", "visits.jsonl", "visits.csv"):
        shutil.copy(source / file, folder / file)
    shutil.copytree(source / "visits.parquet", folder / "visits.parquet")
    secrets = {f"visits.key{end}": (source / f"only-for-tests.key{end}").read_bytes() for end in ("", ".bound")}
    secrets["visits.state"] = gzip.decompress((source / "visits.state.gz").read_bytes())
    for file, content in secrets.items():
        (folder / file).write_bytes(content)
        (folder / file).chmod(0o600)
    return load_spec(folder / "visits.toml"), json.loads((source / "about.json").read_text())


def accept(live: Live, batches: list[tuple[str, str]]) -> list[bool]:
    """Whether each was known already."""
    answers = live.accept([(name, parse(body.encode(), "application/x-ndjson", live.spec)) for name, body in batches])
    assert all(isinstance(answer, Receipt) for answer in answers)
    return [answer.duplicate for answer in answers if isinstance(answer, Receipt)]


def ends_as_before(name: str, folder: Path) -> None:
    for file in ("visits.jsonl", "visits.csv"):
        then = gzip.decompress((PREVIOUS / name / f"then-{file}.gz").read_bytes())
        assert (folder / file).read_bytes() == then, file


@pytest.mark.parametrize("name", STREAMS)
def test_it_goes_on_to_the_byte(name: str, tmp_path: Path) -> None:
    spec, about = taken_over(name, tmp_path)
    with Live(spec) as live:
        assert live.released == about["left_at"]
        sent = [batch for tick in range(1, about["left_at"] + 1) for batch in about["batches"][str(tick)]]
        assert all(accept(live, sent + about["waiting"])), "what was acknowledged before is known"
        for tick in range(about["left_at"] + 1, about["end"] + 1):
            accept(live, about["batches"][str(tick)])
            live.publish(live.release_through(tick))
    ends_as_before(name, tmp_path)
    assert certificate(spec)["stream"] == "visits"


@pytest.mark.parametrize("name", STREAMS)
def test_it_may_be_stopped_and_killed_after_every_tick(name: str, tmp_path: Path) -> None:
    """What the new version writes after the first commits is what it goes on from itself."""
    spec, about = taken_over(name, tmp_path)
    for tick in range(about["left_at"] + 1, about["end"] + 1):
        live = Live(spec)
        accept(live, about["batches"][str(tick)])
        live.publish(live.release_through(tick))
        if tick % 2:
            live.__exit__(None)
        else:
            live.abandon()
    with Live(spec):
        pass
    ends_as_before(name, tmp_path)
