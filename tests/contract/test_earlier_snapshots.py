"""Streams that an earlier version began go on with the noise that they began with.

The file holds snapshots of statistics with `mechanism="auto"` as they were taken before "auto" took the optimal
counters, with what that version released after them. A version that chose again would publish the same data under
fresh noise.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import evertally as et

SNAPSHOTS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "earlier_snapshots.json").read_text())


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_stream_goes_on_with_the_noise_that_it_began_with(name: str) -> None:
    kept = SNAPSHOTS[name]
    mechanism = et.restore(base64.b64decode(kept["snapshot"]), key=et.simulation(2026))
    assert mechanism.mechanism == kept["mechanism"]
    released = [mechanism.step(x).value for x in kept["inputs"]]
    assert json.loads(json.dumps(released)) == kept["released"]
