"""The load benchmarks measure what they say: short runs on a real service."""

from __future__ import annotations

import pytest

from benchmarks import load, load_greedy


@pytest.mark.parametrize(("media", "users"), [("ndjson", 0), ("arrow", 5000)])
def test_a_short_run(media: str, users: int) -> None:
    work = load.Work(media, seconds=2.0, events=0, rate=20_000.0, users=users)
    found = load.measure(work, senders=1)
    assert found["events"] % load.EVENTS_A_BATCH[media] == 0
    assert 1_000 < found["events per second"] < 60_000
    assert found["ticks seen"] >= 1
    assert found["p99 seconds from the end of a tick to its arrival"] >= load.PUBLISH_AFTER
    assert found["MB of memory at the end"] > 50
    assert found["seconds that the slowest tick took"] > 0
    assert found["MB of all snapshots"] > 0
    if users:
        assert found["MB of the snapshot of different"] * 1e6 > 5 * users  # every user has a name there


def test_a_short_attack() -> None:
    sent = load_greedy.bodies()
    assert {len(body) <= load_greedy.LARGEST for _, body in sent.values()} == {True}
    found = load_greedy.measure("ndjson", b"{}\n" * 1000, seconds=2.0, tick=1.0)
    assert found["greedy batches taken"] > 0
    assert found["answers to the small client"] > 0
    assert 0 < found["ticks that it waited at the median"] <= found["ticks that it waited at most"]
