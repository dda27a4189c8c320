"""Probes of what is said about errors: bounds, intervals and the choice of a way, where streams keep what was declared.

No privacy is at stake. But a bound that rests on a guess, or on what nobody declared, is a false statement.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from audit.probes.probing import Verdict, probe
from evertally.noise import simulation
from evertally.privacy import PureDP
from evertally.statistics import MaxSum

_RUNS = 12
_BETA = 0.01
_FAILURES = 4  # of 12 runs: more of them have a probability below 1e-7
_TICKS = 40


def broken(options: dict[str, Any], burst: int, at: int) -> tuple[int, int]:
    """In how many runs the error bound, or some interval, misses the truth, if `burst` events meet in one tick, and
    again later, when a partition may have nothing left to answer with."""
    rows = np.zeros((_TICKS, 3), dtype=np.int64)
    rows[at - 1 :: 6, 1] = burst
    truth = rows.cumsum(axis=0).max(axis=1)
    bounds = intervals = 0
    for seed in range(_RUNS):
        made = MaxSum(3, guarantee=PureDP(8.0), horizon=_TICKS, key=simulation(seed), **options)
        releases = [made.step(row) for row in rows]
        errors = [abs(release.value - exact) for release, exact in zip(releases, truth, strict=True)]
        ends = [release.interval(_BETA) for release in releases]
        bounds += max(errors) > made.error_bound(_BETA)
        intervals += any(not low <= exact <= high for (low, high), exact in zip(ends, truth, strict=True))
    return bounds, intervals


@probe("conformance", "error statements of column queries")
def _() -> Verdict:
    for mechanism in ("recompute", "trivial", "bounded", "noisy-ladders", "doubling", "two-level", "rebased", "tree"):
        for declared, burst in (({}, 5000), ({"max_events_per_tick": 500}, 500)):
            options = {"mechanism": mechanism, "largest": 20} | declared
            for at in (2, _TICKS // 2):
                bounds, intervals = broken(options, burst, at)
                if max(bounds, intervals) > _FAILURES:
                    said = f"{mechanism}, {declared or 'nothing declared'}, {burst} events at tick {at}"
                    return True, f"{said}: the bound failed in {bounds} of {_RUNS} runs, intervals in {intervals}"
    return False, "every bound and every interval holds on streams that keep what was declared"


@probe("conformance", "what is chosen on a guess")
def _() -> Verdict:
    for declared in ({}, {"max_events_per_tick": 1}):
        made = MaxSum(20, guarantee=PureDP(1.0), horizon=2000, largest=20, key=simulation(0), **declared)
        if made.mechanism == "trivial" or not math.isfinite(made.error_bound()):
            return True, f"because of a guess, 'auto' takes {made.mechanism!r} with bound {made.error_bound()}"
    return False, "'auto' takes a way that looks at data and has a bound"
