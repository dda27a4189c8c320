"""The battery: small, quick audits of the product, of every kind that the auditor knows.

A probe plays one instance and says whether it found a broken promise. On the product none may find one; each planted
bug (`audit.mutants`) must be found by at least one. Pairs of neighbours are made from raw events by the product's own
door, not from its own idea of sensitivity: what one event, one item or one user can change is what the adversary does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal
from unittest import mock

import numpy as np

from evertally import checks
from evertally.audit import attacks
from evertally.audit.adversaries import Differencing, Feedback, FirstTick
from evertally.audit.exact import ExactLoss, JointLoss, exact_columns, exact_loss
from evertally.audit.game import Factory, IntArray
from evertally.audit.gaussian import closed_form
from evertally.audit.report import Report, measure_mu, play
from evertally.counting import Counter, RunningMean, VectorCounter, sqrt, sqrt_factor
from evertally.errors import BudgetExceeded
from evertally.histogram import Histogram
from evertally.noise import NoiseKey, simulation
from evertally.privacy import ZCDP, ApproxDP, PureDP, delta_of_rho
from evertally.stream import Stream

Family = Literal["exact law", "closed form", "game", "attack", "conformance"]
Verdict = tuple[bool, str]

_ROUNDING = 1e-9  # relative; what floats may add to a loss that reaches its claim
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
        sums.append(mechanism._history[-1])
    return np.asarray(sums[0] - sums[1])


def pure_verdict(loss: ExactLoss | JointLoss, epsilon: float) -> Verdict:
    text = f"the exact law loses epsilon {loss.epsilon:.6g}, claimed {epsilon:.6g}"
    return loss.epsilon > epsilon * (1 + _ROUNDING), text


def concentrated_verdict(loss: ExactLoss, rho: float) -> Verdict:
    """zCDP bounds every Renyi divergence, and through it every delta."""
    for order in (1.5, 2, 4, 8):
        if loss.renyi(order) > order * rho * (1 + _ROUNDING):
            return True, f"Renyi divergence of order {order} is {loss.renyi(order):.6g}, claimed {order * rho:.6g}"
    for epsilon in (math.sqrt(rho), 4 * math.sqrt(rho)):
        allowed = float(delta_of_rho(rho, epsilon))
        if loss.delta(epsilon) > allowed * (1 + _ROUNDING):
            return True, f"delta at epsilon {epsilon:.3g} is {loss.delta(epsilon):.3g}, claimed {allowed:.3g}"
    return False, f"Renyi divergence of order 2 is {loss.renyi(2):.6g}, claimed {2 * rho:.6g}"


def separation(make: Factory, rho: float, moved: float = 1.0, ticks: int | None = None) -> Verdict:
    """The most powerful test against a change of Euclidean length `moved` in the worst tick."""
    claimed = math.sqrt(2 * rho)
    try:
        mu = float(closed_form(make(KEY), ticks).mu.max()) * moved
    except np.linalg.LinAlgError:
        return True, "the noise of the ticks is linearly dependent: some combination of releases carries none"
    return mu > claimed * (1 + _ROUNDING), f"the most powerful test separates by mu {mu:.6g}, claimed {claimed:.6g}"


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


# -- exact laws ------------------------------------------------------------------------------------------------------


@probe("exact law", "binary tree, each tick of three")
def _() -> Verdict:
    mechanism = counter(PureDP(3), 3, radix=2)(KEY)
    streams = np.eye(3, dtype=int).tolist()
    losses = [exact_loss(mechanism, stream, [0, 0, 0], tail=1e-7) for stream in streams]
    return pure_verdict(max(losses, key=lambda loss: loss.epsilon), 3)


@probe("exact law", "binary tree that keeps no noise, three ticks")
def _() -> Verdict:
    mechanism = counter(PureDP(3), 3, radix=2, memory_limit=8)(KEY)
    return pure_verdict(exact_loss(mechanism, [1, 0, 0], [0, 0, 0], tail=1e-7), 3)


@probe("exact law", "epochs without a horizon, three ticks")
def _() -> Verdict:
    mechanism = counter(PureDP(3), None, "epoch-tree")(KEY)
    return pure_verdict(exact_loss(mechanism, [0, 1, 0], [0, 0, 0], tail=1e-7), 3)


@probe("exact law", "square-root counter on a coarse grid, three ticks")
def _() -> Verdict:
    with coarse_grid(1):
        mechanism = counter(ZCDP(1), 3, "sqrt")(KEY)
        return concentrated_verdict(exact_loss(mechanism, [1, 0, 0], [0, 0, 0], tail=1e-5), 1)


@probe("exact law", "square-root counter on a coarse grid, one tick, little budget")
def _() -> Verdict:
    with coarse_grid(2):
        mechanism = counter(ZCDP(0.01), 1, "sqrt")(KEY)
        return concentrated_verdict(exact_loss(mechanism, [1], [0]), 0.01)


@probe("exact law", "one tick of an (epsilon, delta) stream")
def _() -> Verdict:
    promise = ApproxDP(1, 1e-6)
    stream = Stream("s", guarantee=promise, horizon=1, key=KEY)
    loss = exact_loss(stream.add(Counter, share=1, mechanism="tree"), [1], [0], tail=1e-13)
    found = loss.delta(promise.epsilon)
    return found > promise.delta, f"delta at epsilon 1 is {found:.6g}, claimed {promise.delta:.6g}"


@probe("exact law", "what a zCDP counter says of (epsilon, delta)")
def _() -> Verdict:
    promise = ZCDP(0.5).to_approx(1e-6)
    loss = exact_loss(counter(ZCDP(0.5), 1)(KEY), [1], [0], tail=1e-13)
    found = loss.delta(promise.epsilon)
    return found > promise.delta, f"delta at epsilon {promise.epsilon:.4g} is {found:.3g}, claimed {promise.delta:.3g}"


@probe("exact law", "a noise scale that is no short fraction")
def _() -> Verdict:
    # The loss of one tick is 1/scale, to 16 digits: a scale rounded down in the 40th bit shows.
    loss = exact_loss(counter(PureDP(3), 1)(KEY), [1], [0], tail=1e-40)
    return loss.epsilon > 3 * (1 + 1e-14), f"the exact law loses epsilon 3{loss.epsilon - 3:+.2e}, claimed 3"


@probe("exact law", "one event of any weight")
def _() -> Verdict:
    make = counter(PureDP(1), 1, max_weight=3)
    moved = max(int(abs(shift(make, [event], [])[0])) for event in (3, 250, -7, 10**20))
    return pure_verdict(exact_loss(make(KEY), [moved], [0]), 1)


@probe("exact law", "one user with many events")
def _() -> Verdict:
    make = counter(PureDP(1), 1, unit="user", max_events_per_user=2)
    moved = int(shift(make, [1] * 5, [], (["ann"] * 5, []))[0])
    return pure_verdict(exact_loss(make(KEY), [moved], [0]), 1)


@probe("exact law", "one of two users, by category")
def _() -> Verdict:
    make = histogram(PureDP(1), unit="user", max_events_per_user=2)
    moved = shift(make, ["a", "a", "b", "b"], ["b", "b"], (["ann", "ann", "bob", "bob"], ["bob", "bob"]))
    return _row_verdict(make, moved, 1)


@probe("exact law", "one event with repeated labels")
def _() -> Verdict:
    verdicts = []
    for most in (1, 2):
        make = histogram(PureDP(1), max_per_event=most)
        verdicts += [_row_verdict(make, shift(make, [e], []), 1) for e in (["a", "a", "a"], {"a": 5}, ["a", "b", "b"])]
    return max(verdicts)


@probe("exact law", "two mechanisms of one stream")
def _() -> Verdict:
    stream = Stream("s", guarantee=PureDP(1), horizon=1, key=KEY)
    added = [stream.add(Counter, share=Fraction(2, 3), name="first")]
    with suppress(BudgetExceeded):
        added.append(stream.add(Counter, share=Fraction(2, 3), name="second"))
    # Their noise is independent: the losses of one event that both see add up.
    return pure_verdict(JointLoss(tuple(exact_loss(mechanism, [1], [0]) for mechanism in added)), 1)


def histogram(guarantee: Any, horizon: int = 1, **options: Any) -> Factory:
    """A factory of histograms over a, b, c."""
    return lambda key: Histogram(categories=["a", "b", "c"], guarantee=guarantee, horizon=horizon, key=key, **options)


def _row_verdict(make: Factory, moved: IntArray, epsilon: float) -> Verdict:
    left, right = np.maximum(moved, 0), np.maximum(-moved, 0)
    return pure_verdict(exact_columns(make(KEY), [left.tolist()], [right.tolist()]), epsilon)


# -- closed forms ----------------------------------------------------------------------------------------------------


@probe("closed form", "binary tree, 16 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.5), 16, radix=2), 0.5)


@probe("closed form", "tree of radix 3, 243 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.5), 243, radix=3), 0.5)


@probe("closed form", "binary tree that keeps no noise, 8 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.5), 8, radix=2, memory_limit=8), 0.5)


@probe("closed form", "refined tree, 16 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.005), 16, "honaker"), 0.005)


@probe("closed form", "square-root counter, 32 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.005), 32, "sqrt"), 0.005)


@probe("closed form", "square-root counter on a coarse grid, 8 ticks")
def _() -> Verdict:
    with coarse_grid(1):
        return separation(counter(ZCDP(0.005), 8, "sqrt"), 0.005)


@probe("closed form", "epoch hybrid, 63 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.005), None, "epoch-hybrid"), 0.005, ticks=63)


@probe("closed form", "epoch tree, 31 ticks")
def _() -> Verdict:
    return separation(counter(ZCDP(0.5), None, "epoch-tree"), 0.5, ticks=31)


@probe("closed form", "one event replaced")
def _() -> Verdict:
    make = histogram(ZCDP(0.5), 8, neighbours="replace", mechanism="tree", radix=2)
    return separation(make, 0.5, _length(shift(make, ["a"], ["b"])))


@probe("closed form", "one item taken out of an event that was cut")
def _() -> Verdict:
    make = histogram(ZCDP(0.5), 8, protects="item", mechanism="tree", radix=2)
    events = [["a", "b", "c"], ["a", "b"], ["a", "c"], ["b", "c"]]
    moved = max(_length(shift(make, [long], [short])) for long in events[:1] for short in events[1:])
    return separation(make, 0.5, moved)


@probe("closed form", "one event taken out of a batch of long ones")
def _() -> Verdict:
    make = histogram(ZCDP(0.5), 8, mechanism="tree", radix=2)
    batch: list[Any] = [["a", "b", "c"], ["c", "b"], ["a", "b"], ["c", "a"], ["b", "a"], ["c", "b", "a"]] * 3
    moved = max(_length(shift(make, batch, batch[:i] + batch[i + 1 :])) for i in range(6))
    return separation(make, 0.5, moved)


@probe("closed form", "one user with four events")
def _() -> Verdict:
    make = counter(ZCDP(0.5), 8, radix=2, unit="user", max_events_per_user=4)
    return separation(make, 0.5, _length(shift(make, [1] * 4, [], (["ann"] * 4, []))))


@probe("closed form", "one user's event moved to another tick")
def _() -> Verdict:
    make = counter(ZCDP(0.5), 3, radix=2, unit="user", max_events_per_user=1, neighbours="replace")
    directions = closed_form(make(KEY)).directions
    moved = np.array([1.0, 0.0, -1.0])
    mu = math.sqrt(np.cumsum(moved) @ directions @ moved)
    return mu > 1 + _ROUNDING, f"the most powerful test separates by mu {mu:.6g}, claimed 1"


@probe("closed form", "every column changed by independent events")
def _() -> Verdict:
    promise = ZCDP(0.5, adversary="oblivious")
    make = histogram(promise, 8, neighbours="independent", max_per_event=3, mechanism="tree", radix=2)
    return separation(make, 0.5, _length(shift(make, [["a", "b", "c"]], [])))


@probe("closed form", "one value of a mean")
def _() -> Verdict:
    def make(key: NoiseKey) -> RunningMean:
        return RunningMean(lower=0, upper=1, resolution=0.1, guarantee=ZCDP(0.5), horizon=8, mechanism="tree", key=key)

    return separation(make, 0.5, max(_length(shift(make, [x], [])) for x in (0.0, 1.0, 1e9, float("inf"))))


def _length(row: IntArray) -> float:
    return math.sqrt(float(np.sum(row.astype(np.float64) ** 2)))


# -- games -----------------------------------------------------------------------------------------------------------


@probe("game", "one tick, pure")
def _() -> Verdict:
    make = counter(PureDP(1), 1)
    return verdict(play(make, FirstTick(make(KEY)), 20_000))


@probe("game", "one tick, pure, by the release itself")
def _() -> Verdict:
    # The most powerful score is flat in the tails of the law that ought to be; this one sees every outcome.
    return verdict(play(counter(PureDP(1), 1), Differencing(), 20_000))


@probe("game", "binary tree of seven ticks, averaging")
def _() -> Verdict:
    return verdict(play(counter(PureDP(1), 7, radix=2), Differencing(), 10_000))


@probe("game", "binary tree of eight ticks, best test")
def _() -> Verdict:
    make = counter(ZCDP(0.5), 8, radix=2)
    return verdict(measure_mu(make, FirstTick(make(KEY)), 20_000))


@probe("game", "square-root counter of eight ticks, feedback")
def _() -> Verdict:
    make = counter(ZCDP(0.5), 8, "sqrt")
    return verdict(measure_mu(make, Feedback(make(KEY)), 5_000))


# -- attacks ---------------------------------------------------------------------------------------------------------


@probe("attack", "replay, restore, horizon")
def _() -> Verdict:
    findings = []
    for make in (counter(PureDP(1), 6, radix=2), counter(ZCDP(0.5), 6, "sqrt"), counter(PureDP(1), None, "epoch-tree")):
        findings += [attacks.replay_attack(make), attacks.restore_attack(make), attacks.horizon_attack(make)]
    return first_leak(*findings)


@probe("attack", "horizon of a tree that keeps no noise")
def _() -> Verdict:
    return first_leak(attacks.horizon_attack(counter(PureDP(1), 5, radix=2, memory_limit=8)))


@probe("attack", "a second stream under the same key")
def _() -> Verdict:
    one = counter(PureDP(1), 4, stream="visits")
    return first_leak(
        attacks.second_stream_attack(one, counter(PureDP(1), 4, stream="orders")),
        attacks.second_stream_attack(
            lambda key: one(_derived(key, "visits")), lambda key: one(_derived(key, "orders"))
        ),
    )


@probe("attack", "a second mechanism on the same stream")
def _() -> Verdict:
    return first_leak(
        attacks.second_stream_attack(counter(PureDP(1), 4, name="one"), counter(PureDP(1), 4, name="two")),
        attacks.second_stream_attack(
            counter(PureDP(1), 4, name="one"),
            lambda key: VectorCounter(1, guarantee=PureDP(1), horizon=4, mechanism="tree", name="one", key=key),
        ),
    )


@probe("attack", "the same names with other parameters")
def _() -> Verdict:
    one = counter(PureDP(1), 4)
    others = [
        counter(PureDP(0.25), 4),
        counter(PureDP(1), 400),
        counter(PureDP(1), 4, max_weight=9),
        counter(ZCDP(0.5), 4),
        counter(ApproxDP(1, 1e-6), 4, "tree"),
    ]
    return first_leak(*(attacks.second_stream_attack(one, other) for other in others))


@probe("attack", "columns")
def _() -> Verdict:
    def make(key: NoiseKey) -> VectorCounter:
        return VectorCounter(4, guarantee=PureDP(1), horizon=4, key=key)

    return first_leak(attacks.column_attack(make))


@probe("attack", "draws at all addresses")
def _() -> Verdict:
    return first_leak(attacks.repeat_attack(counter(PureDP(0.01), 512, radix=2)))


@probe("attack", "form of releases")
def _() -> Verdict:
    make = histogram(PureDP(1), 9, other="rest")
    plain = histogram(PureDP(1), 9)
    batches: Sequence[Any] = ([], ["c"], ["a"], ["b", "b"], [])
    return first_leak(
        attacks.metadata_attack(make, batches, [["b"], *batches[1:]]),
        attacks.metadata_attack(make, batches, [[] for _ in batches]),
        attacks.metadata_attack(counter(ZCDP(0.5), 9), [[1], [1, 1]], [[], [1]]),
        attacks.unknown_item_attack(plain),
        attacks.unknown_item_attack(make),
    )


@probe("attack", "records that nobody can count")
def _() -> Verdict:
    return first_leak(
        attacks.bad_record_attack(counter(PureDP(1), 9, max_weight=4)),
        attacks.bad_record_attack(histogram(PureDP(1), 9, max_per_event=2)),
    )


@probe("attack", "bits of releases")
def _() -> Verdict:
    return first_leak(attacks.float_support_attack(counter(PureDP(1), 1), trials=2000))


# -- conformance -----------------------------------------------------------------------------------------------------


def _conforms(name: str) -> Verdict:
    subject = next(subject for subject in checks.MECHANISMS if subject.name.startswith(name))
    for check in checks.CHECKS:
        try:
            check(subject)
        except Exception as error:  # a check fails by assertion, or by whatever the mechanism raised in it
            return True, f"{check.__name__}: {error or type(error).__name__}"
    return False, f"{len(checks.CHECKS)} checks passed"


@probe("conformance", "pure counter")
def _() -> Verdict:
    return _conforms("Counter(tree, PureDP(epsilon=1.0), T=20")


@probe("conformance", "square-root counter")
def _() -> Verdict:
    return _conforms("Counter(sqrt, ZCDP(rho=0.5), T=20")


@probe("conformance", "histogram")
def _() -> Verdict:
    return _conforms("Histogram(zCDP, other)")


def _derived(key: NoiseKey, name: str) -> NoiseKey:
    return key.derive(name)  # type: ignore[attr-defined, no-any-return]
