"""Probes of what is said about errors: bounds are compared with what happens, many times, on streams that are bad for
them. A bound that is too small misleads whoever relies on it, however private the numbers are.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from audit.probes.probing import Verdict, probe
from evertally.counting.choose import build
from evertally.histogram.tasks import AllColumns
from evertally.noise import simulation
from evertally.partition import Configuration, Split, Terms
from evertally.partition.rebased import intervals
from evertally.privacy import ZCDP, Change, PureDP
from evertally.statistics import Counter, VectorCounter

_BETA = 0.2
_RUNS, _GAMES = 600, 150


def judged(failures: int, runs: int, what: str) -> Verdict:
    """Binomial(runs, beta) is above its mean by six deviations with probability below 1e-6."""
    allowed = _BETA * runs + 6 * math.sqrt(runs * _BETA * (1 - _BETA))
    text = f"{what}: the bound of {1 - _BETA:.0%} failed in {failures} of {runs} runs"
    return failures > allowed, f"{text}, {allowed:.0f} may be"


def paths(counter: Any, ticks: int, runs: int) -> tuple[int, str]:
    """How often the path of a linear mechanism is beyond its bounds, tick by tick or as a whole."""
    columns = counter._setting.columns
    process = build(counter._choice, replace(counter._setting, columns=columns * runs), simulation(9).source("bound"))
    noise = np.abs(process.advance(ticks)).reshape(ticks, runs, columns).max(axis=2)
    bound = np.array([counter.error_bound(_BETA, t=t) for t in range(1, ticks + 1)])
    if counter.horizon is not None:
        bound = np.minimum(bound, counter.error_bound(_BETA))
    return int(np.sum(np.any(noise > bound[:, None], axis=0))), f"{type(counter).__name__}, {counter.mechanism}"


@probe("conformance", "error bounds of counters")
def _() -> Verdict:
    common: dict[str, Any] = {"horizon": 200, "key": simulation(0)}
    last: Verdict = (False, "")
    for counter in (
        Counter(guarantee=PureDP(0.1), mechanism="tree", **common),
        Counter(guarantee=PureDP(0.1), mechanism="honaker", **common),
        Counter(guarantee=ZCDP(0.0005), mechanism="sqrt", **common),
        VectorCounter(6, guarantee=ZCDP(0.0005), mechanism="tree", **common),
        Counter(guarantee=PureDP(0.1), mechanism="epoch-tree", horizon=None, key=simulation(0)),
    ):
        last = judged(*_swapped(paths(counter, 200, _RUNS)))
        if last[0]:
            return last
    return last


def _swapped(found: tuple[int, str]) -> tuple[int, int, str]:
    return found[0], _RUNS, found[1]


@probe("conformance", "error bounds of partitions")
def _() -> Verdict:
    last: Verdict = (False, "")
    # As fast as was declared; and where nobody declared anything, by just more than the bound at once, again and again.
    for most, growth in ((1, "one event"), (None, "a jump")):
        failures = _behind(replace(intervals(_terms(most)), rise=lambda j, t: _KAPPA, intervals=_CLOSES))
        last = judged(failures, _GAMES, f"a partition that grows by {growth} a tick")
        if last[0]:
            return last
    return last


_KAPPA, _CLOSES, _TICKS = 60, 6, 500


def _terms(most: int | None) -> Terms:
    split = Split.of("1/4", "1/4", "1/2")
    return Terms(PureDP(1.0), Change(1, 1, 1), _TICKS, 1, AllColumns(1), largest=200, most=most, split=split)


def _behind(plan: Configuration) -> int:
    """How often the error is beyond the bound, until the last interval that can close.

    Whoever feeds the stream knows its noise. Where jumps are allowed he makes each just so large that the answer is
    beyond the bound unless the interval closes at once.
    """
    bound, failures = int(plan.error(_BETA)), 0
    for seed in range(_GAMES):
        engine = plan.engine(simulation(seed).source("bound of a partition"))
        engine._rule.rise = lambda j, ticks: _KAPPA
        truth, value, failed = 0, 0, False
        for tick in range(1, _TICKS + 1):
            row = plan.terms.most or max(0, bound + 1 + value - truth)
            truth += row
            for _, released in engine.play(np.array([[row]]), tick):
                value = int(released[0])
            if engine.exhausted:
                break
            failed |= abs(truth - value) > bound
        failures += failed
    return failures
