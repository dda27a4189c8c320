"""Probes by what careless or hostile hands do: records and queries that lie, labels that look alike, printing."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from flint import ctx

from audit.probes.probing import Verdict, counter, histogram, probe, shift
from conformance import MECHANISMS
from conformance.hostile import liars
from evertally import balls
from evertally.audit.game import Factory
from evertally.checks.secrets import check_secrets_stay
from evertally.contract import restore
from evertally.errors import ConfigurationError
from evertally.histogram.expressions import RankMean
from evertally.noise import DiscreteLaplace, simulation
from evertally.noise.sampler import PolynomialSampler
from evertally.privacy import ApproxDP, PureDP
from evertally.statistics import MonotoneQuery, RunningMean, UnknownHistogram, UnknownTopK


def mean(lower: float, upper: float) -> Factory:
    """A factory of means."""
    return lambda key: RunningMean(lower=lower, upper=upper, guarantee=PureDP(1), horizon=4, key=key)


@probe("attack", "records that lie")
def _() -> Verdict:
    """One event more moves a row by what one event may, whatever it says about itself, and nobody hears of it."""
    makers: list[tuple[Factory, int]] = [
        (counter(PureDP(1), 4), 1),
        (counter(PureDP(1), 4, max_weight=3, signed=True), 3),
        (histogram(PureDP(1), 4), 1),
        (mean(0, 10), 1000),
    ]
    for make, most in makers:
        for record in liars():
            found = _of_one_event(make, record, most)
            if found is not None:
                return True, found
    return False, f"{len(liars())} records that lie move a row by what one event may"


@probe("attack", "ranges that floats cannot cut")
def _() -> Verdict:
    for lower, upper in ((0.0, 5e-324), (0.0, 1e-310), (-1e-320, 1e-320), (0.0, 1e-300)):
        try:
            steps = mean(lower, upper)(simulation(0))._values.steps
        except ConfigurationError:
            continue
        for value in (0.0, upper, 7.0):
            found = _of_one_event(mean(lower, upper), value, steps)
            if found is not None:
                return True, found
    return False, "ranges that floats cannot cut into steps are refused"


def _of_one_event(make: Factory, record: Any, most: int) -> str | None:
    """What is wrong with a batch that holds one record, and nothing else."""
    name = type(record).__name__
    try:
        # Noted, not raised: numpy crashes if a warning of a conversion is turned into an error.
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            moved = int(np.abs(shift(make, [record], [])).max())
            if issubclass(type(record), np.floating):  # as a column of its own kind, too
                moved = max(moved, int(np.abs(shift(make, np.array([record]), np.array([record])[:0])).max()))
    except Exception as error:
        return f"a record of type {name} raised {type(error).__name__}"
    if heard:
        return f"a record of type {name} gave a warning"
    return f"one event of type {name} moved a row by {moved}, and {most} is allowed" if moved > most else None


@probe("attack", "owners that lie")
def _() -> Verdict:
    """With a cap of 1 an owner adds 1 for ever, however it is called; an event of several owners adds nothing."""
    make = counter(PureDP(1), 99, unit="user", max_events_per_user=1)
    owners = [*liars(), ["bob"], ("ann", "bob"), {"ann": 1}]
    for owner in owners:
        busy, idle = make(simulation(0)), make(simulation(0))
        for tick in range(1, 6):
            try:
                one = busy.step_events([1, 1, 1], users=[owner] * 3).value
            except Exception as error:
                return True, f"an owner of type {type(owner).__name__} raised {type(error).__name__}"
            moved = one - idle.step_events([], users=[]).value
            if moved > 1:
                return True, f"an owner of type {type(owner).__name__} with a cap of 1 moved tick {tick} by {moved}"
    return False, f"{len(owners)} odd owners count once or not at all"


class Louder(RankMean):
    """The maximum, as far as it says; a hundred times the maximum when it is asked."""

    def ceiling(self, v: Any) -> int:
        return 100 * int(np.max(v))

    def _ratio(self, v: Any) -> tuple[int, int]:
        return 100 * int(np.max(v)), 1


@probe("attack", "queries that lie")
def _() -> Verdict:
    """What a certified query answers moves by 1 when every column moves by 1."""
    inside: list[Any] = [RankMean(low=1, high=1), RankMean(low=-1, high=-1)]
    changed = RankMean(inside, 2, 2)  # type: ignore[arg-type]
    asked = {"an overridden evaluation": Louder(low=-1, high=-1), "a list that changed": changed}
    made = {
        name: MonotoneQuery(
            query, columns=2, guarantee=PureDP(1), horizon=4, largest=10, mechanism="rebased", key=simulation(0)
        )
        for name, query in asked.items()
    }
    inside[:] = [100 * RankMean(low=-1, high=-1)] * 2
    for name, mechanism in made.items():
        one, other = (mechanism._queries.values(np.array(v, dtype=np.int64))[0] for v in ([5, 5], [6, 6]))
        if abs(int(one) - int(other)) > 1:
            return True, f"{name}: the answer moved by {abs(int(one) - int(other))} when every column moved by 1"
    return False, "certified queries are what they write down"


_USER: dict[str, Any] = {"unit": "user", "max_events_per_user": 1}
_PROMISE = ApproxDP(20.0, 1e-6)


@probe("attack", "items that belong to nobody")
def _() -> Verdict:
    """Where users are protected, events without users must not come in: one label may be one person's."""
    kinds: tuple[Callable[..., Any], ...] = (UnknownHistogram, lambda **options: UnknownTopK(3, **options))
    for kind in kinds:
        for engine in ("tree", "meta"):
            for call in ("step", "run"):
                mechanism = kind(guarantee=_PROMISE, horizon=4, mechanism=engine, key=simulation(0), **_USER)
                events = ["one person's"] * 4999
                try:
                    value = mechanism.step(events).value if call == "step" else mechanism.run([events])[0]
                except TypeError:
                    continue
                return True, f"{type(mechanism).__name__} with a cap of 1 took 4999 events of one person: {value}"
    return False, "events without owners are refused where users are protected"


@probe("attack", "labels that JSON takes for one")
def _() -> Verdict:
    """Two halves of a surrogate pair and the character that they would make, before and after a restart."""
    halves, character = "\ud83d\ude00", "\U0001f600"
    key = simulation(3)
    streams = []
    for restart in (False, True):
        words = UnknownHistogram(mechanism="meta", guarantee=ApproxDP(40.0, 1e-6), horizon=4, radix=4, key=key)
        words.step([halves] * 5000 + [character] * 100)
        if restart:
            words = restore(words.snapshot(), key=key, allow_copy=True)
        streams.append([words.step([character] * 100).value for _ in range(3)])
    if streams[0] != streams[1]:
        return (
            True,
            f"after a restart the last tick released {len(streams[1][-1])} labels, without {len(streams[0][-1])}",
        )
    return False, "a restart changes no release"


@probe("conformance", "what objects show")
def _() -> Verdict:
    for start in ("Counter(sqrt, ZCDP(rho=0.5), T=20", "UnknownHistogram: ApproxDP(epsilon=20.0", "MaxSum: rebased"):
        try:
            check_secrets_stay(next(subject for subject in MECHANISMS if subject.name.startswith(start)))
        except AssertionError as error:
            return True, str(error)
    return False, "nothing behind a mechanism shows or pickles what depends on data or key"


@probe("exact law", "a neighbour that changes the precision")
def _() -> Verdict:
    """Other code of the process lowers the precision of balls while a sampler is made: at one moment, then no more."""
    law = DiscreteLaplace(1000)
    quiet = PolynomialSampler(law)._numbers[1]
    original, calls = DiscreteLaplace.shift, iter([12])

    def shift(self: DiscreteLaplace) -> Any:
        ctx.prec = next(calls, ctx.prec)
        return original(self)

    before = ctx.prec
    try:
        with mock.patch.object(DiscreteLaplace, "shift", shift):
            disturbed = PolynomialSampler(law)._numbers[1]
    finally:
        ctx.prec = before
    text = f"the quantile of the noise is shifted by {abs(disturbed - quiet):.3g}"
    return disturbed != quiet, text


@probe("attack", "two threads that set the precision")
def _() -> Verdict:
    inside = threading.Event()

    def other() -> None:
        with balls.precision(20):
            inside.set()

    with balls.precision(200):
        thread = threading.Thread(target=other)
        thread.start()
        met = inside.wait(0.5)
        bits = ctx.prec
    thread.join()
    return met or bits != 200, "a second thread changed the precision inside the first one's" if met else "they wait"
