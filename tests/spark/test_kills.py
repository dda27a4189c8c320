"""kill -9 in real applications: what is released afterwards is what one process releases, to the byte."""

from __future__ import annotations

from pathlib import Path

from campaign import WIDE, Campaign, Start


def test_a_live_stream_that_is_killed_at_every_stage(tmp_path: Path, apart: Start) -> None:
    stream = Campaign(tmp_path, apart, WIDE)
    stream.start()
    stream.feed()
    stream.settle()
    for aim in ("midway", "written", "midway"):
        stream.feed()
        stream.kill(aim)
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
        "midway, driver and all": 2,
        "written, driver and all": 1,
        "midway, Python workers": 1,
    }
    assert report.ticks == 5
    assert report.numbers > 5 * WIDE.columns
    assert report.files_seen > 50
