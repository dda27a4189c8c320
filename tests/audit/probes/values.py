"""Probes of sums and variances of values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from audit.probes.applications import verdict
from audit.probes.probing import Verdict, probe
from evertally.audit.amounts import coins_report
from evertally.audit.values import allowance_report, boundary_attack
from evertally.audit.whitebox import door_report
from evertally.noise import ZeroNoise, simulation
from evertally.privacy import ZCDP
from evertally.statistics import Histogram
from evertally.values.epochs import AdaptiveSum
from evertally.values.sums import RunningSum
from evertally.values.variance import RunningVariance


def allowance(**options: Any) -> RunningSum:
    """A small sum with an allowance of each user."""
    common: dict[str, Any] = {"upper": 3, "unit": "user", "max_total_per_user": 3, "guarantee": ZCDP(0.5), "horizon": 8}
    return RunningSum(**(common | {"mechanism": "tree"} | options), key=simulation(0))


@probe("closed form", "a user with an allowance")
def signed() -> Verdict:
    return verdict(allowance_report(allowance(lower=-3)))


@probe("closed form", "a user with an allowance in the place of another")
def replaced() -> Verdict:
    return verdict(allowance_report(allowance(neighbours="replace")))


@probe("closed form", "values and their squares")
def squares() -> Verdict:
    made = RunningVariance(lower=0, upper=10, guarantee=ZCDP(0.5), horizon=8, key=simulation(0))
    report = door_report(made)
    assert report is not None
    return verdict(report)


@probe("attack", "one amount taken out of a batch")
def coins() -> Verdict:
    """Amounts of one and of three quarters in turn: the coins of all others must stay."""
    amounts = [0.25, 0.75] * 200
    worst = 0.0
    for seed in range(8):
        sums = []
        for batch in (amounts, amounts[1:]):
            made = RunningSum(upper=1, guarantee=ZCDP(0.5), horizon=2, key=simulation(seed))
            sums.append(made.step(batch).value)
        worst = max(worst, abs(sums[0] - sums[1]))
    return worst > 1, f"one amount of at most 1 moved the sum by {worst:g}"


def by_label(**options: Any) -> Histogram:
    """Amounts by category, up to 4.75 in halves: the largest one is between two steps."""
    common: dict[str, Any] = {"categories": ["a", "b"], "max_weight": 4.75, "resolution": 0.5, "horizon": 4}
    return Histogram(**(common | options), guarantee=ZCDP(0.5), key=simulation(1))


@probe("closed form", "one amount of many taken away, by column")
def coins_by_column() -> Verdict:
    return verdict(coins_report(by_label()))


@probe("closed form", "the largest amount of a column")
def largest_of_a_column() -> Verdict:
    report = door_report(by_label(max_weight=5))
    assert report is not None
    return verdict(report)


@probe("conformance", "amounts that are rounded by a coin")
def without_a_bias() -> Verdict:
    """10,000 amounts of 0.3 steps: 6 standard deviations (less than one run in 10^8)."""
    n = 10_000
    row = by_label()._door.events([{"a": 0.15}] * n, 1)
    return abs(int(row[0]) - 0.3 * n) > 6 * math.sqrt(n * 0.21), f"{n} amounts of 0.3 steps became {row[0]} steps"


@probe("attack", "a boundary of epochs")
def boundary() -> Verdict:
    made = AdaptiveSum(upper=4096, epochs=[2], guarantee=ZCDP(0.5), horizon=4, key=simulation(0))
    finding = boundary_attack(made)
    return finding.leaked, finding.evidence


@probe("conformance", "sums of users with an allowance")
def model() -> Verdict:
    """Against a plain model: each user's amounts, cut to what is left of the allowance."""
    made = RunningSum(
        lower=-3, upper=3, unit="user", max_total_per_user=7, guarantee=ZCDP(0.5), horizon=9, key=ZeroNoise()
    )
    left: dict[str, int] = {}
    total, random = 0, np.random.default_rng(5)
    for _ in range(9):
        users = [f"u{i}" for i in random.integers(4, size=6)]
        amounts = random.integers(-4, 5, size=6).tolist()
        for user, amount in zip(users, amounts, strict=True):
            amount = max(-3, min(3, amount))
            taken = min(abs(amount), left.setdefault(user, 7))
            left[user] -= taken
            total += taken if amount > 0 else -taken
        if made.step_events(amounts, users=users).value != total:
            return True, "without noise it is not the sum of what users may add"
    return False, "without noise it is the sum of what users may add"
