"""Every mechanism of the conformance list, end to end, under a fixed key: what it released when its noise was last
meant to change. `python tests/frozen_releases.py` writes the file anew.

A difference means that living streams would draw the past anew when they are upgraded. If that is meant, say so in the
changelog, and raise FORMAT_VERSION if it is the derivation of the bits that changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from evertally import checks
from evertally.checks.subject import Subject
from evertally.noise import simulation

FILE = Path(__file__).parent / "frozen_releases.json"
TICKS = 5


def plain(value: Any) -> Any:
    """A released value as JSON; floats as the bits that they are."""
    if isinstance(value, dict):
        return {label: plain(number) for label, number in value.items()}
    if isinstance(value, np.ndarray | list):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return value.hex()
    return value if isinstance(value, str) else int(value)


def released(subject: Subject) -> dict[str, Any]:
    """The fingerprint of its noise, and its first releases."""
    mechanism = subject.make(simulation(2026))
    inputs = subject.feed(min(TICKS, subject.length(mechanism)))
    return {
        "noise": mechanism.noise_fingerprint,
        "releases": [plain(subject.step(mechanism, x).value) for x in inputs],
    }


if __name__ == "__main__":
    lines = [f"{json.dumps(s.name)}: {json.dumps(released(s), sort_keys=True)}" for s in checks.MECHANISMS]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
