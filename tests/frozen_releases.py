"""Every mechanism of the conformance list, and every public class with every noise process and way that it takes, end
to end under a fixed key: what was released when noise was last meant to change. `python tests/frozen_releases.py`
writes the file anew.

A difference means that living streams would draw the past anew when they are upgraded. If that is meant, say so in the
changelog, and raise FORMAT_VERSION if it is the derivation of the bits that changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import evertally as et
from conformance import MECHANISMS
from evertally.checks.subject import Subject
from evertally.histogram.ways import ColumnWay, rank

FILE = Path(__file__).parent / "frozen_releases.json"
TICKS = 5
PURE, CONCENTRATED, APPROXIMATE = et.PureDP(20.0), et.ZCDP(20.0), et.ApproxDP(20.0, 1e-6)


def plain(value: Any) -> Any:
    """A released value as JSON; floats as the bits that they are."""
    if isinstance(value, dict):
        return {str(label): plain(number) for label, number in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float):
        return value.hex()
    return value if isinstance(value, str) or value is None else int(value)


def digest(value: Any) -> str:
    """A short name for a value that is too long to keep."""
    return hashlib.sha256(json.dumps(plain(value)).encode()).hexdigest()[:16]


def released(subject: Subject) -> dict[str, Any]:
    """Fingerprint of its noise, and its first releases: stepped, run, repeated, restored, shown with their errors."""
    key = et.simulation(2026)
    mechanism = subject.make(key)
    inputs = subject.feed(min(TICKS, subject.length(mechanism)))
    releases = [subject.step(mechanism, x) for x in inputs]
    again = subject.step(mechanism, inputs[-1], tick=mechanism.tick)
    frozen = {
        "noise": mechanism.noise_fingerprint,
        "releases": [plain(release.value) for release in releases],
        "intervals": digest([release.interval() for release in releases]),
        "repeated": digest(again.value),
        "run": digest(subject.run(subject.make(key), inputs)),
        "bound": plain(float(mechanism.error_bound(0.05, len(inputs)))),
    }
    half = subject.make(key)
    for x in inputs[: len(inputs) // 2]:
        subject.step(half, x)
    restored = et.restore(half.snapshot(), key=key)
    frozen["restored"] = digest([subject.step(restored, x).value for x in inputs[len(inputs) // 2 :]])
    if not subject.users:
        try:
            table = subject.make(key).run(inputs, full=True)
        except et.ConfigurationError:  # words that are found have none
            frozen["table"] = "refused"
        else:
            frozen["table"] = digest([[plain(v) for v in table[name].to_pylist()] for name in table.column_names])
    return frozen


def grid() -> Iterator[Subject]:
    """Public classes with every process or way by name, every kind of guarantee, with and without a horizon; some of it
    is refused."""
    four = [[(t * t + 2 * j * t + j) % 5 for j in range(4)] for t in range(TICKS)]
    labels = ["a", "b", "c", "d"]
    column_classes: dict[str, tuple[Callable[..., Any], list[Any]]] = {
        "Counter": (et.Counter, [3, 0, 2, 5, 1]),
        "Counter(signed)": (lambda **o: et.Counter(signed=True, max_weight=9, **o), [3, -2, 0, 5, -9]),
        "VectorCounter": (lambda **o: et.VectorCounter(4, **o), four),
        "Histogram": (lambda **o: et.Histogram(categories=labels, max_per_event=2, **o), four),
        "RunningMean": (
            lambda **o: et.RunningMean(lower=0, upper=10, **o),
            [[float((t + i) % 11) for i in range(9)] for t in range(TICKS)],
        ),
        "MaxSum": (lambda **o: et.MaxSum(labels, **o), four),
        "MinSum": (lambda **o: et.MinSum(4, max_per_event=1, **o), four),
        "Quantile": (lambda **o: et.SumQuantile(Fraction(1, 2), 4, **o), four),
        "TopK": (lambda **o: et.TopK(2, 4, **o), four),
        "SumSelect": (lambda **o: et.SumSelect(labels, **o), four),
        "TopKSelect": (lambda **o: et.TopKSelect(2, labels, **o), four),
        "MonotoneQuery": (lambda **o: et.MonotoneQuery({"top": et.expressions.maximum}, 4, **o), four),
    }
    optimal = ["bank", "bank-open", "pure-blocks", "epoch-blocks"]
    linear = ["auto", *optimal, "tree", "honaker", "sqrt", "epoch-tree", "sparse"]
    ways = ["rebased", "bounded", "noisy-ladders", "doubling", "two-level", "intervals", "recompute", "trivial"]
    for name, (make, inputs) in column_classes.items():
        for mechanism in linear + ways:
            for guarantee in (PURE, CONCENTRATED, APPROXIMATE):
                for horizon in (16, None):

                    def build(
                        key: Any, make: Any = make, g: Any = guarantee, h: Any = horizon, m: str = mechanism
                    ) -> Any:
                        return make(guarantee=g, horizon=h, mechanism=m, key=key)

                    label = f"grid: {name}, {mechanism}, {guarantee}, T={horizon}"
                    yield Subject(label, build, lambda n, x=inputs: x[:n], lambda inputs: inputs, ticks=TICKS)


def is_made(subject: Subject) -> bool:
    """Whether it is not refused."""
    try:
        subject.make(et.simulation(2026))
    except (et.ConfigurationError, TypeError):
        return False
    return True


def begun_before(subject: Subject) -> Subject:
    """The same as a stream that an earlier version began: where a new one settles how H is made ("H", partitions), it
    has the numbers that were found for the one way there was, and no name of a way."""

    def make(key: Any) -> Any:
        new = subject.make(key)
        numbers = getattr(new, "_options", {}).get("calibration") or {}
        if "H" not in numbers:
            return new
        # What was settled then: the best charge for that one way, and its numbers.
        before = rank(replace(new._task, settled={"H": "blocks"}), new._plan.named).best
        assert isinstance(before, ColumnWay)
        settled = {name: value for name, value in before.numbers.items() if name != "H"}
        options = {name: new._decoded(name, new._encoded(name, value)) for name, value in new._options.items()}
        return type(new)(**(options | {"calibration": settled}), key=key)

    return replace(subject, make=make)


def candidates() -> list[Subject]:
    """All that is frozen, and what is refused."""
    return [begun_before(subject) for subject in (*MECHANISMS, *grid())]


if __name__ == "__main__":
    lines = [f"{json.dumps(s.name)}: {json.dumps(released(s), sort_keys=True)}" for s in candidates() if is_made(s)]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
