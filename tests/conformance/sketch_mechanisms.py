"""Sketches and heavy prefixes, for the conformance checks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from conformance.hostile import GARBAGE
from evertally.checks.subject import Subject
from evertally.privacy import ZCDP, ApproxDP, PureDP
from evertally.sketches.count_sketch import CountSketch
from evertally.sketches.heavy_prefixes import HeavyPrefixes

_TICKS = 6
_WRONG = ["abc", 7, None, {"a": 1}, 1.5]
_WATCHED = ["fig", "pear", "lime"]
_THRESHOLD = 6


def _fruit(n: int) -> list[list[Any]]:
    """Labels of each tick; some ticks are empty, some labels are watched by nobody."""
    return [["fig"] * (t % 3) + ["pear", "plum"] * (t % 4 == 1) + [["lime"]] * (t % 5 == 2) for t in range(1, n + 1)]


def _numbers(n: int) -> list[list[str]]:
    return [["6"] * 3 + ["5"] * (t % 3) + [str(t % 16)] for t in range(1, n + 1)]


def _counted(ticks: list[list[Any]]) -> list[Counter[str]]:
    found: list[Counter[str]] = []
    for tick in ticks:
        labels = [event[0] if isinstance(event, list) else event for event in tick]
        found.append((found[-1] if found else Counter()) + Counter(map(str, labels)))
    return found


def sketch(runs: int = 40, users: bool = False, **options: Any) -> Subject:
    """A sketch so wide that the few labels here hardly ever meet."""
    return Subject(
        name=f"CountSketch({', '.join(f'{k}={v}' for k, v in options.items())})",
        make=lambda key: CountSketch(key=key, rows=3, watch=_WATCHED, **({"width": 256} | options)),
        feed=_fruit,
        truth=lambda ticks: [{label: counts[label] for label in _WATCHED} for counts in _counted(ticks)],
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        growth=1024,  # buckets of users
        users=users,
        runs=runs,
    )


def _off(value: dict[str, int], exact: Counter[str]) -> Any:
    """By how much noise at least must have moved each label, for it to be shown so, or not at all."""
    missing = {label: min(0, _THRESHOLD - 1 - count) for label, count in exact.items()}
    shown = [value[label] - exact[label] if label in value else missing.get(label, 0) for label in map(str, range(16))]
    return np.array(shown, dtype=float)


def prefixes(name: str, **options: Any) -> Subject:
    """Numbers below 16: few enough that any of them may be found by its noise."""
    return Subject(
        name=f"HeavyPrefixes({name})",
        make=lambda key: HeavyPrefixes(key=key, labels="number", threshold=_THRESHOLD, rows=3, **options),
        feed=_numbers,
        truth=_counted,
        garbage=GARBAGE,
        wrong_calls=_WRONG,
        ticks=_TICKS,
        growth=1024,
        error=_off,
        independent_numbers=False,
        labels=lambda mechanism, inputs: set(map(str, range(16))),
        runs=40,
    )


SKETCH_MECHANISMS: tuple[Subject, ...] = (
    sketch(guarantee=ZCDP(0.5), horizon=_TICKS, runs=100),
    sketch(guarantee=PureDP(1.0), horizon=_TICKS, neighbours="replace", max_per_event=2, signs=False),
    sketch(
        users=True,
        width=64,
        guarantee=ApproxDP(1.0, 1e-6),
        horizon=None,
        unit="user",
        max_events_per_user=2,
        neighbours="replace",
    ),
    sketch(users=True, guarantee=ZCDP(0.5), horizon=_TICKS, unit="user", max_labels_per_user=2),
    prefixes("exact levels", symbols=2, fanout=4, width=16, guarantee=ZCDP(2), horizon=_TICKS),
    prefixes("sketched below", symbols=4, fanout=2, width=8, guarantee=PureDP(20), horizon=_TICKS),
)
