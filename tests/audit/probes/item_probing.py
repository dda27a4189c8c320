"""What probes of streaming selection share: pairs of streaming-selection 11.4, and traps of 4, 6, 7 and 10 there.

Budgets, laws, thresholds and engines are the product's. Noise is narrow and delta large, and each delta is just what a
threshold needs: then one step of a threshold more or less is a matter of a factor, and exact laws see it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from audit.probes.probing import ROUNDING, Verdict
from evertally.audit.exact import ExactLoss
from evertally.audit.game import Factory
from evertally.audit.label_noise import item_table, separation
from evertally.audit.laws.enumerated import Run, one_shot_law
from evertally.privacy import ApproxZCDP, Neighbours, delta_of_rho
from evertally.selection.items import Items
from evertally.statistics import UnknownHistogram

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE
Histogram = Mapping[str, int]
Case = tuple[float, float, str]  # what was found, what is claimed, and where


def unknown(rho: Any, delta: Any, horizon: int = 2, **options: Any) -> Factory:
    """A factory of histograms over an unknown domain, on a binary tree unless told otherwise."""
    settings: dict[str, Any] = {"radix": 2} | options
    return lambda key: UnknownHistogram(
        guarantee=ApproxZCDP(rho, delta, force=True), horizon=horizon, key=key, **settings
    )


def needed(variance: float, steps: int, times: float = 1) -> Fraction:
    """The smallest delta that keeps a threshold `steps` away: Chernoff's bound, so many times (10.4)."""
    return Fraction(times * math.exp(-steps * steps / (2 * variance)) * (1 + 1e-9))


def exceeds(cases: Iterable[Case], what: str = "probability") -> Verdict:
    """The verdict on the largest part of what was claimed."""
    found, claimed, where = max(cases, key=lambda case: case[0] / case[1])
    return found > claimed * (1 + ROUNDING), f"{where}: {what} {found:.6g}, claimed {claimed:.6g}"


def dominated(loss: ExactLoss, charge: ApproxZCDP, where: str) -> Case:
    """The largest part of what (rho, delta_bad) allows at any epsilon (2.3)."""
    bad = float(charge.exact_delta)
    highest = math.log(0.01 * bad / loss.tail)  # beyond, what was left out of the law could feign a loss
    cases = []
    for epsilon in np.linspace(0.02 * highest, highest, 12).tolist():
        allowed = float(delta_of_rho(charge.exact_rho, epsilon)) + bad
        cases.append((loss.delta(epsilon), allowed, f"{where}, beyond e^{epsilon:.1f}"))
    return max(cases, key=lambda case: case[0] / case[1])


def pair_loss(
    make: Callable[[Histogram], Run], left: Histogram, right: Histogram, tail: float = 1e-12, **options: Any
) -> ExactLoss:
    """The exact loss of one release between two histograms."""
    (first, lost), (second, missing) = (one_shot_law(make(h), tail=tail, **options) for h in (left, right))
    return ExactLoss(max(lost, missing, 1e-15), first, second)


def released_by(mechanism: Any) -> Callable[[Histogram], Run]:
    """What a one-shot mechanism releases of a histogram, whose labels arrive in the order of the mapping."""
    return lambda histogram: lambda source: tuple(mechanism.release(Items.of(histogram, source), source, 0))


def separates(cases: Iterable[tuple[float, float]]) -> Verdict:
    """The verdict on the most powerful test; cases are (mu, rho)."""
    return exceeds(((mu, math.sqrt(2 * rho), "the most powerful test") for mu, rho in cases), "separates by mu")


def worst_mu(make: Factory, ticks: int, changed: Iterable[int]) -> float:
    """The separation for an event in the worst of the `changed` ticks."""
    responses, laws = item_table(make, [1] + [0] * (ticks - 1))
    return max(separation(responses, laws, (np.arange(1, ticks + 1) >= t).astype(np.float64)) for t in changed)
