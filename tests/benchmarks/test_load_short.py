"""The load benchmark measures what it says: a short run of each format on a real service."""

from __future__ import annotations

import pytest

from benchmarks import load


@pytest.mark.parametrize("media", ["arrow", "ndjson"])
def test_a_short_run(media: str) -> None:
    found = load.measure(media, seconds=2.0, senders=1, rate=20_000.0)
    assert found["events"] % load.EVENTS_A_BATCH[media] == 0
    assert 1_000 < found["events per second"] < 60_000
    assert found["ticks seen"] >= 1
    assert found["p99 seconds from the end of a tick to its arrival"] >= load.PUBLISH_AFTER
    assert found["MB of memory at the end"] > 50
