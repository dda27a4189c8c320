"""What a probe is, and what probes share: factories, neighbours made of raw events, verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from unittest import mock

import numpy as np

from evertally.audit import attacks
from evertally.audit.exact import ExactLoss, JointLoss
from evertally.audit.game import Factory, IntArray
from evertally.audit.gaussian import closed_form
from evertally.audit.report import Report
from evertally.counting import sqrt, sqrt_factor
from evertally.noise import simulation
from evertally.privacy import delta_of_rho
from evertally.ranking import choosing_once
from evertally.statistics import Counter, Histogram

Family = Literal["exact law", "closed form", "game", "attack", "conformance"]
Verdict = tuple[bool, str]

ROUNDING = 1e-9  # relative; what floats may add to a loss that reaches its claim
KEY = simulation(0)


@dataclass(frozen=True)
class Detection:
    """Whether a probe found a broken promise, which one, and what it saw."""

    caught: bool
    by: str
    evidence: str


@dataclass(frozen=True)
class Probe:
    """One small audit. Calling it gives a Detection."""

    family: Family
    name: str
    run: Callable[[], Verdict]

    def __call__(self) -> Detection:
        with choosing_once():  # as every part of an audit (audit/steps.py)
            caught, evidence = self.run()
        return Detection(caught, f"{self.family}: {self.name}", evidence)


PROBES: dict[str, Probe] = {}


def probe(family: Family, name: str) -> Callable[[Callable[[], Verdict]], Probe]:
    """Registers a function as a probe."""

    def register(run: Callable[[], Verdict]) -> Probe:
        PROBES[name] = Probe(family, name, run)
        return PROBES[name]

    return register


# -- what the probes share -------------------------------------------------------------------------------------------


def counter(guarantee: Any, horizon: int | None, mechanism: str = "tree", **options: Any) -> Factory:
    """A factory of counters."""
    return lambda key: Counter(guarantee=guarantee, horizon=horizon, mechanism=mechanism, key=key, **options)


def shift(make: Factory, left: Any, right: Any, users: tuple[Any, Any] = (None, None)) -> IntArray:
    """How far two batches of events are apart after the door: under one key, the noise of two first ticks cancels."""
    sums = []
    for events, owners in zip((left, right), users, strict=True):
        mechanism = make(KEY)
        mechanism.step_events(events, users=owners) if owners is not None else mechanism.step_events(events)
        sums.append(mechanism._kept.played.recent[-1])
    return np.asarray(sums[0] - sums[1])


def pure_verdict(loss: ExactLoss | JointLoss, epsilon: float) -> Verdict:
    text = f"the exact law loses epsilon {loss.epsilon:.6g}, claimed {epsilon:.6g}"
    return loss.epsilon > epsilon * (1 + ROUNDING), text


def concentrated_verdict(loss: ExactLoss, rho: float) -> Verdict:
    """zCDP bounds every Renyi divergence, and through it every delta."""
    for order in (1.5, 2, 4, 8):
        if loss.renyi(order) > order * rho * (1 + ROUNDING):
            return True, f"Renyi divergence of order {order} is {loss.renyi(order):.6g}, claimed {order * rho:.6g}"
    for epsilon in (math.sqrt(rho), 4 * math.sqrt(rho)):
        allowed = float(delta_of_rho(rho, epsilon))
        if loss.delta(epsilon) > allowed * (1 + ROUNDING):
            return True, f"delta at epsilon {epsilon:.3g} is {loss.delta(epsilon):.3g}, claimed {allowed:.3g}"
    return False, f"Renyi divergence of order 2 is {loss.renyi(2):.6g}, claimed {2 * rho:.6g}"


def separation(make: Factory, rho: float, moved: float = 1.0, ticks: int | None = None) -> Verdict:
    """The most powerful test against a change of Euclidean length `moved` in the worst tick."""
    claimed = math.sqrt(2 * rho)
    try:
        mu = float(closed_form(make(KEY), ticks).mu.max()) * moved
    except np.linalg.LinAlgError:
        return True, "the noise of the ticks is linearly dependent: some combination of releases carries none"
    return mu > claimed * (1 + ROUNDING), f"the most powerful test separates by mu {mu:.6g}, claimed {claimed:.6g}"


def verdict(report: Report) -> Verdict:
    text = f"at least {report.unit} {report.audited:.4g} is lost against {report.adversary!r}"
    return not report.passed, f"{text} (error 1e-6, {report.trials} games), claimed {report.claimed:.4g}"


def first_leak(*findings: attacks.Finding) -> Verdict:
    worst = next((finding for finding in findings if finding.leaked), findings[0])
    return worst.leaked, f"{worst.name}: {worst.evidence}"


@contextmanager
def coarse_grid(bits: int) -> Iterator[None]:
    """The square-root counter with 2^bits instead of 2^16 as its unit: small enough to enumerate."""
    sqrt_factor.sqrt_factor.cache_clear()
    with mock.patch.object(sqrt, "GRID_BITS", bits), mock.patch.object(sqrt_factor, "GRID_BITS", bits):
        try:
            yield
        finally:
            sqrt_factor.sqrt_factor.cache_clear()


def histogram(guarantee: Any, horizon: int = 1, **options: Any) -> Factory:
    """A factory of histograms over a, b, c."""
    return lambda key: Histogram(categories=["a", "b", "c"], guarantee=guarantee, horizon=horizon, key=key, **options)


def length(row: IntArray) -> float:
    return math.sqrt(float(np.sum(row.astype(np.float64) ** 2)))
