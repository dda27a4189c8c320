"""kill -9 in real applications: what is released afterwards is what one process releases, to the byte."""

from __future__ import annotations

from pathlib import Path

from campaign import SMALL, WIDE, Campaign, Start

from long import LONG

SIZE = WIDE if LONG else SMALL


def test_a_live_stream_that_is_killed_at_every_stage(tmp_path: Path, apart: Start) -> None:
    """Each start is compared with what was there when its predecessor was killed, and takes up the batch of that."""
    stream = Campaign(tmp_path, apart, SIZE)
    stream.feed()
    stream.start()
    stream.kill("midway")
    stream.start()
    stream.kill("written")
    stream.compare()
    stream.start()
    stream.settle()
    stream.compare()
    stream.feed()
    stream.kill_workers()
    stream.settle()
    stream.stop()
    report = stream.finish()
    assert report.differences == []
    assert report.kills == {
        "midway, driver and all": 1,
        "written, driver and all": 1,
        "midway, Python workers": 1,
    }
    assert report.ticks == stream.fed >= 2  # more, if somebody looked too late
    assert report.numbers > report.ticks * SIZE.columns
    assert report.files_seen > 20
