"""Writes the streams that `test_upgrade.py` goes on with, by the version that is being left behind. Not a test.

    git archive COMMIT | tar x -C OLD
    PYTHONPATH=OLD/src:OLD/tests:OLD/tests/crash python tests/crash/write_previous.py COMMIT

Each stream is left in the middle: a snapshot, ticks since, events that wait, outputs. Beside it lies what that version
released when it went on with the batches that lie there too. Everything that the next version needs is in the folder:
what later versions of the tests' helpers say changes nothing in it.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import tempfile
from pathlib import Path

from crash_stream import events, everything, of_users

from evertally.runtime import load_spec
from evertally.runtime.input.batches import parse
from evertally.runtime.live import Live

HERE = Path(__file__).parent
LISTS = """
[[query]]
name = "marks"
kind = "histogram"
share = 0.005
column = "marks"
categories = ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"]
max_per_event = 2
"""
LEFT_AT, END = 7, 14  # snapshots are taken every five ticks
PARTS = "visits.parquet"


def batch(tick: int, number: int) -> tuple[str, str]:
    """Id and body."""
    records = events(1, 5 * tick + number, tick)[:40]
    for place, record in enumerate(records):
        record["marks"] = [f"m{(place * step + tick) % 9}" for step in range(place % 6)]  # more than an event may have
    return f"ingest/{tick}.{number}", "".join(json.dumps(record) + "\n" for record in records)


def write(name: str, text: str, commit: str) -> None:
    target = HERE / "previous" / f"{commit}-{name}"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "visits.toml").write_text(text)
        spec = load_spec(folder / "visits.toml")
        live = Live(spec)
        feed(live, range(1, LEFT_AT + 1))
        live.accept([(given, parse(body.encode(), "application/x-ndjson", live.spec)) for given, body in waiting()])
        live.abandon()
        for file in ("visits.toml", "visits.jsonl", "visits.csv"):
            shutil.copy(folder / file, target / file)
        shutil.copytree(folder / PARTS, target / PARTS)
        (target / "visits.state.gz").write_bytes(gzip.compress((folder / "visits.state").read_bytes(), mtime=0))
        for end in ("", ".bound"):
            shutil.copy(folder / f"visits.key{end}", target / f"only-for-tests.key{end}")
        with Live(spec) as live:
            feed(live, range(LEFT_AT + 1, END + 1))
        for file in ("visits.jsonl", "visits.csv"):
            (target / f"then-{file}.gz").write_bytes(gzip.compress((folder / file).read_bytes(), mtime=0))
    batches = {str(tick): [batch(tick, number) for number in (0, 1)] for tick in range(1, END + 1)}
    about = {"commit": commit, "left_at": LEFT_AT, "end": END, "batches": batches, "waiting": waiting()}
    (target / "about.json").write_text(json.dumps(about, indent=1) + "\n")


def waiting() -> list[tuple[str, str]]:
    """What came before the stream was left, for the tick that was open then."""
    return [batch(LEFT_AT + 1, 0)]


def feed(live: Live, ticks: range) -> None:
    for tick in ticks:
        for number in (0, 1):
            name, body = batch(tick, number)
            live.accept([(name, parse(body.encode(), "application/x-ndjson", live.spec))])
        live.publish(live.release_through(tick))


if __name__ == "__main__":
    small = {"horizon = 90000": "horizon = 60", "horizon = 9000": "horizon = 60"}  # and so are the files
    for stream, spec_text in (("everything", everything() + LISTS), ("users", of_users())):
        for long, short in small.items():
            spec_text = spec_text.replace(long, short)
        write(stream, spec_text, sys.argv[1])
