"""The short audit of every mechanism (in `make test` of some for every path through the program), and audits of
mechanisms that somebody else wrote."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import evertally as et
import long
from conformance import MECHANISMS
from evertally.audit import suite
from evertally.audit.adversaries import worst_pair
from evertally.audit.audited import AUDITED
from evertally.audit.columns import close_pair, column_audits
from evertally.audit.faults import FAULTS
from evertally.audit.suite import Sizes, audit_mechanism, best, plan
from evertally.audit.together import Together, together_plan
from evertally.audit.verdicts import missing, overall
from evertally.audit.whitebox import closed_form_report, door_report, exact_report, nearly_normal, smaller, tiny
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteLaplace
from evertally.privacy import PureDP
from evertally.statistics.linear_options import is_linear

KEY = et.simulation(0)
PROMISE = et.PureDP(2.0)
QUICK = Sizes(horizon=16, numbers=80_000, trials=5_000, combinations=100_000, objects=400, least=500)
# What is computed as above, games that see a gross leak: `evertally audit all` plays them at length.
FEW_GAMES = replace(QUICK, numbers=40_000, trials=2_000, objects=200, least=200)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setitem(suite.SIZES, "short", QUICK)


@pytest.fixture
def few_games(monkeypatch):
    monkeypatch.setitem(suite.SIZES, "short", FEW_GAMES)
    # Every kind has its faults in test_faults.py, and every line of this list in `make audit`.
    monkeypatch.setattr(suite, "fault_audits", lambda *_: [])


@cache
def models():
    """Each audited mechanism, made once."""
    return {subject.name: subject.make(KEY) for subject in AUDITED}


def paths_of(model):
    """What of the program an entry goes through. A kind calibrates for a law, and counts what a neighbour changes; a
    mechanism makes noise for what is left of both. Which kind the noise is for, it does not know."""
    kind, mechanism = type(model).__name__, model.mechanism
    law = type(model.guarantee).__name__, type(model.charge).__name__
    relation = getattr(model, "neighbours", None), getattr(model, "protected_unit", None)
    return {(kind, *law), (kind, *relation), (mechanism, *law, *relation)}


@cache
def telling():
    """The names of entries that go through every path of the list. `evertally audit all` plays all entries."""
    return long.telling({name: paths_of(model) for name, model in models().items()})


COMPUTED = ("closed form", "exact law", "transcript", "exact inputs")
ROUNDED = {"margins", "undecided", "restored noise"}
STATE = {"replay", "restore", "bad record", "all that is shown", "draws", *ROUNDED, "horizon"}
NOTHING_LOST = "it does not look at data, and loses nothing"

# -- every mechanism -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", AUDITED, ids=lambda subject: subject.name)
def test_every_mechanism_keeps_its_promise_and_adds_no_more_noise_than_it_must(subject, few_games):
    """All games together raise a false alarm with probability below 1e-5; seeds are fixed."""
    if subject.name not in telling():
        pytest.skip("others go through the same paths; `evertally audit all` plays it")
    reports = audit_mechanism(subject.make, ticks=subject.ticks)
    for report in reports:
        assert report.passed, report
    found = [report for report in reports if report.method in COMPUTED]
    losses = [report for report in found if report.is_loss]
    if subject.tight:
        assert max(report.fraction for report in losses) >= 0.95
        for report in found:
            assert report.fraction >= 0.9
    else:
        assert subject.why
    played = [report for report in reports if report.is_loss and report.trials]
    if is_linear(subject.make(KEY)):
        assert len(played) >= 5
        assert losses, "no audit without sampling applies to it"
    elif subject.why != NOTHING_LOST:
        assert played
        # Where no exact audit applies, a report says which audit does.
        assert losses or any(report.method == "not here" for report in reports if report.adversary not in FAULTS)
    else:
        assert [report.adversary for report in reports if report.aspect == "loss"] == ["constant"]
    # Each attack has a row: it is played, or says why not.
    names = {report.adversary for report in reports if report.aspect == "state"}
    assert names >= ({"second message"} if subject.name.startswith("local") else STATE)
    assert all(report.stopped for report in reports if report.method == "not here")
    assert all(report.power <= report.claimed for report in reports if report.trials)
    assert overall(reports) == "holds (tight)" or subject.without_power, missing(reports)


def test_what_is_audited_in_short_goes_through_every_path():
    chosen = [models()[name] for name in telling()]
    for trait in (
        lambda model: type(model).__name__,
        lambda model: model.mechanism,
        lambda model: (type(model).__name__, type(model.guarantee).__name__),
        lambda model: (type(model).__name__, getattr(model, "neighbours", None)),
        lambda model: (model.mechanism, type(model.charge).__name__, getattr(model, "protected_unit", None)),
    ):
        assert {trait(model) for model in chosen} == {trait(model) for model in models().values()}
    assert len(AUDITED) / 3 <= len(chosen) < len(AUDITED)


def test_everything_that_is_built_is_on_the_list():
    def traits(mechanism):
        return type(mechanism).__name__, mechanism.mechanism, type(mechanism.charge).__name__

    audited = {traits(model) for model in models().values()}
    built = {traits(subject.make(KEY)) for subject in MECHANISMS}
    assert built <= audited


def test_the_claimed_class_is_played():
    oblivious = next(s for s in AUDITED if "oblivious" in s.name)
    names = [step.name for step in plan(oblivious.make)]
    assert "change of tick 1" in names
    assert not {"late trigger", "feedback", "edge stream"} & set(names)
    signed = next(s for s in AUDITED if "signed=True" in s.name)
    assert "delete and re-insert" in [step.name for step in plan(signed.make)]


def test_long_horizons_are_audited_on_a_copy_and_on_their_first_ticks(quick):
    make = lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=10**5, mechanism="tree", key=key)  # noqa: E731
    reports = audit_mechanism(make)
    assert {report.mechanism for report in reports if report.method == "closed form"} == {
        "Counter(mechanism=tree, horizon=16)",
        "Counter(mechanism=tree, horizon=100000)",
    }
    full = [report for report in reports if "full horizon" in report.adversary]
    assert [report.method for report in full] == ["closed form", "separation"]
    assert all("horizon=100000" in report.mechanism for report in full)
    assert full[0].fraction > 0.99, "noise at telling ticks of the full horizon, all of what is charged"


def test_reproducible(quick):
    make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=key)  # noqa: E731
    first, again, other = ([r.audited for r in audit_mechanism(make, seed=seed)] for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_efforts():
    with pytest.raises(ConfigurationError, match="effort"):
        plan(lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=key), "endless")


# -- the parts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, max_weight=5, key=key), 5),
        (lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, unit="user", max_events_per_user=3, key=key), 3),
        (lambda key: et.VectorCounter(4, guarantee=et.ZCDP(0.5), horizon=4, max_per_event=3, key=key), math.sqrt(3)),
        (
            lambda key: et.VectorCounter(4, guarantee=et.ZCDP(0.5), horizon=4, neighbours="replace", key=key),
            math.sqrt(2),
        ),
        (
            lambda key: et.VectorCounter(4, guarantee=et.ZCDP(0.5), horizon=4, protects="item", key=key),
            math.sqrt(2),
        ),
        (
            lambda key: et.RunningMean(lower=0, upper=1, resolution=0.1, guarantee=et.PureDP(1.0), horizon=4, key=key),
            10,
        ),
    ],
)
def test_the_door_reaches_the_declared_change(make, expected):
    report = door_report(make(KEY))
    assert report.audited == pytest.approx(expected)
    assert report.fraction == pytest.approx(1.0)


def test_the_door_shows_a_wrong_sensitivity(monkeypatch):
    """The declared change is what everything else is judged by, so it is judged by events."""
    model = et.VectorCounter(4, guarantee=et.ZCDP(0.5), horizon=4, neighbours="replace", key=KEY)
    monkeypatch.setattr(model, "sensitivity", et.privacy.Change(1, 1, 1))
    assert not door_report(model).passed


def test_exact_and_closed_form_reports():
    model = et.Counter(guarantee=et.ZCDP(0.5), horizon=100, mechanism="tree", key=KEY)
    small, ticks = tiny(model, 30_000)
    assert ticks == 3
    exact = exact_report(small, ticks)
    assert (exact.unit, exact.method, exact.trials) == ("rho", "exact law", 0)
    assert 0.99 < exact.fraction <= 1 + 1e-9
    assert closed_form_report(model, 100).fraction == pytest.approx(1.0)
    pure = et.Counter(guarantee=et.PureDP(1.0), horizon=100, mechanism="tree", key=KEY)
    with pytest.raises(ConfigurationError):
        closed_form_report(pure, 100)
    blocks = et.Counter(guarantee=et.PureDP(1.0), horizon=20, mechanism="pure-blocks", key=KEY)
    assert closed_form_report(blocks, 20).fraction == pytest.approx(1.0, abs=1e-3)


def test_what_cannot_be_enumerated_is_not():
    assert tiny(et.Counter(guarantee=et.ZCDP(0.5), horizon=9, mechanism="sqrt", key=KEY), 10**6) is None


def test_a_combination_without_noise_is_a_broken_promise(monkeypatch):
    model = et.Counter(guarantee=et.ZCDP(0.5), horizon=4, mechanism="tree", key=KEY)
    monkeypatch.setattr(type(model.noise), "advance", lambda self, count=1: np.zeros((count, self.columns), dtype=int))
    report = closed_form_report(model, 4)
    assert (report.passed, report.audited) == (False, math.inf)


def test_narrow_noise_is_not_judged_as_normal():
    """rho = 20: integers show more than sqrt(2 rho), although the promise of rho holds; the audit must not cry wolf."""
    make = lambda key: et.Counter(guarantee=et.ZCDP(20), horizon=1, mechanism="tree", key=key)  # noqa: E731
    assert not nearly_normal(make(KEY))
    assert all(report.passed for report in audit_mechanism(make))
    assert nearly_normal(et.Counter(guarantee=et.ZCDP(0.5), horizon=1, mechanism="tree", key=KEY))


def test_a_smaller_copy_keeps_everything_else():
    model = et.Histogram(
        categories=["a", "b"],
        guarantee=et.ApproxDP(1.0, 1e-6),
        horizon=500,
        max_weight=3,
        neighbours="replace",
        key=KEY,
    )
    copy = smaller(model, 7)
    assert (copy.horizon, copy.mechanism, copy.sensitivity) == (7, model.mechanism, model.sensitivity)
    assert type(copy.charge) is type(model.charge)
    assert copy.neighbours is model.neighbours


# -- queries on column sums ------------------------------------------------------------------------------------------


def wide(mechanism="rebased", guarantee=PROMISE, **options):
    options = {"columns": 4, "max_per_event": 1, "neighbours": "replace", "largest": 1000} | options
    return lambda key: et.MaxSum(guarantee=guarantee, horizon=40, mechanism=mechanism, key=key, **options)


@pytest.mark.parametrize(
    ("options", "touched"),
    [
        ({"neighbours": "add_remove"}, [1, 0, 0, 0]),
        ({"neighbours": "add_remove", "max_per_event": 3}, [1, 1, 1, 0]),
        ({"max_per_event": 1}, [1, -1, 0, 0]),
        ({"max_per_event": 2, "max_weight": 3}, [3, 3, -3, -3]),
    ],
)
def test_the_worst_pair_is_an_event_of_the_mechanism(options, touched):
    left, right = worst_pair(wide(**options)(KEY))
    assert (left - right).tolist() == touched


def test_a_row_of_the_pair_waits_for_the_threshold():
    """While the interval waits the answer of the first stream is lower, when it closes it is higher."""
    model = wide()(KEY)
    configuration = model._engine.worker._formula
    one, other = close_pair(model, configuration, 5).streams(5)
    answers = [np.cumsum(rows, axis=0).max(axis=1) for rows in (one, other)]
    assert (answers[1] - answers[0]).tolist() == [0, 1, 1, 1, 1, 1, 1, -1]
    assert answers[0][1] >= configuration.rise(1, 2)


def reports_of(make, method):
    model = make(KEY)
    return [report for name, report in column_audits(model, 20) if name == method for report in [report()]]


def test_a_partition_with_half_of_its_test_noise_is_caught(monkeypatch):
    from evertally.partition import engine

    original = engine.PartitionedRelease.__init__

    def halved(self, tau, mu, *rest, **options):
        original(self, DiscreteLaplace(tau.scale / 2), DiscreteLaplace(mu.scale / 2), *rest, **options)

    (honest,) = reports_of(wide(), "transcript")
    assert honest.passed
    assert honest.fraction > 0.97
    monkeypatch.setattr(engine.PartitionedRelease, "__init__", halved)
    (leaky,) = reports_of(wide(), "transcript")
    assert not leaky.passed


def test_a_partition_that_tests_rows_it_has_released_is_caught(monkeypatch):
    """E4: the counts of a closed interval must be gone."""
    from evertally.partition import engine

    def close(self, tick):
        kept = self._c.copy()
        original(self, tick)
        self._c = kept

    original = engine.PartitionedRelease._close
    monkeypatch.setattr(engine.PartitionedRelease, "_close", close)
    (report,) = reports_of(wide(), "after a release")
    assert not report.passed


@pytest.mark.parametrize("guarantee", [et.PureDP(2.0), et.ZCDP(0.5)])
def test_recomputation_that_repeats_its_noise_is_caught(guarantee, monkeypatch):
    from evertally.histogram.ways import recomputation

    original = recomputation.noisy_answers

    def repeated(queries, law, source):
        answer = original(queries, law, source)
        return lambda sums, number: answer(sums, 1)

    assert reports_of(wide("recompute", guarantee), "exact law")[0].fraction == pytest.approx(1.0)
    monkeypatch.setattr(recomputation, "noisy_answers", repeated)
    assert not reports_of(wide("recompute", guarantee), "exact law")[0].passed


def test_a_selection_with_half_of_its_noise_is_caught(monkeypatch):
    from evertally.selection.one_shot import _OneShot

    make = lambda key: et.SumSelect(  # noqa: E731
        3, guarantee=et.PureDP(2.0), horizon=40, mechanism="recompute", max_per_event=1, neighbours="replace", key=key
    )
    (honest,) = reports_of(make, "exact law")
    assert honest.passed
    assert honest.fraction > 0.99
    monkeypatch.setattr(_OneShot, "scale", property(lambda self: self.sensitivity / self.epsilon))
    assert not reports_of(make, "exact law")[0].passed


def test_a_constant_that_looks_at_data_is_caught(monkeypatch):
    from evertally.histogram.in_place import Constant

    original = Constant.advance

    def peeking(self, rows):
        values, lasts = original(self, rows)
        return values + (rows.sum() > 0), lasts

    assert reports_of(wide("trivial"), "constant")[0].passed
    monkeypatch.setattr(Constant, "advance", peeking)
    assert not reports_of(wide("trivial"), "constant")[0].passed


def test_counters_with_other_noise_than_those_that_are_audited_are_noticed(monkeypatch):
    from evertally.histogram.ways import counters

    assert reports_of(wide("tree"), "same counters")[0].passed
    original = counters.build
    monkeypatch.setattr(
        counters,
        "build",
        lambda choice, setting, source: original(choice, replace(setting, change=et.privacy.Change(1, 1, 1)), source),
    )
    assert not reports_of(wide("tree"), "same counters")[0].passed


# -- mechanisms that somebody else wrote -----------------------------------------------------------------------------


class NoisyTotals:
    """Fresh noise for each of four totals: an event is in up to four of them, so each gets a quarter of epsilon."""

    guarantee = et.PureDP(1.0)
    horizon = 4
    scale = 4

    def __init__(self, key):
        self.noise, self.total, self.tick = key.source("noisy-totals"), 0, 0

    def step(self, x):
        self.tick += 1
        self.total += x
        return self.total + int(self.noise.draws("total", DiscreteLaplace(self.scale), [self.tick])[0, 0])


class LeakyTotals(NoisyTotals):
    """Forgets that an event stays in every later total: loses 4, claims 1."""

    scale = 1


class Parrot(NoisyTotals):
    """Adds noise only when something happened."""

    def step(self, x):
        released = super().step(x)
        return released if x else self.total


def test_a_private_mechanism_of_ten_lines_passes(monkeypatch):
    monkeypatch.setitem(suite.SIZES, "short", replace(QUICK, objects=1000))
    reports = audit_mechanism(NoisyTotals)
    assert all(report.passed for report in reports)
    assert best(reports).fraction > 0.5
    # All games are in the last line; the most telling adversary has played most of them.
    *alone, together = (report for report in reports if report.trials)
    assert 10 * 1000 <= together.trials == sum(report.trials for report in alone) <= 20 * 1000
    assert max(report.trials for report in reports[:-1]) > reports[-1].trials / 3


@pytest.mark.parametrize("leaky", [LeakyTotals, Parrot])
def test_a_leaky_mechanism_of_ten_lines_is_caught(leaky, quick):
    worst = best(audit_mechanism(leaky))
    assert not worst.passed
    assert worst.audited > 1.2


def test_an_oblivious_promise_of_others_is_not_played_adaptively(quick):
    class Oblivious(NoisyTotals):
        guarantee = PureDP(1.0, adversary="oblivious")

    names = {step.name for step in plan(Oblivious)}
    assert "late trigger" not in names
    assert "random stream 1" in names


def test_what_is_missing_is_said():
    class NoPromise:
        horizon = 4

        def __init__(self, key):
            pass

    class NoHorizon(NoPromise):
        horizon = None
        guarantee = et.PureDP(1.0)

    with pytest.raises(ConfigurationError, match="promise"):
        plan(NoPromise)
    with pytest.raises(ConfigurationError, match="ticks"):
        plan(NoHorizon)


# -- a whole stream --------------------------------------------------------------------------------------------------


def stream(key):
    made = et.Stream("visits", guarantee=et.PureDP(2.0), horizon=4, key=key)
    queries = {
        "all": made.add(et.Counter, share=0.5, name="all"),
        "wards": made.add(et.Histogram, share=0.5, name="wards", categories=["a", "b"]),
    }
    return Together(queries, made.guarantee, made.horizon)


def test_all_queries_of_a_stream_together(quick):
    step, apart = together_plan(stream)
    report = step.run()
    assert report.passed
    assert apart.run().passed
    assert report.claimed == 2.0


def test_noise_that_two_queries_share_is_caught(monkeypatch):
    """The same noise in two queries that see an event differently: their difference shows it without noise."""

    def shared(key):
        made = stream(key)
        counter, histogram = made._mechanisms
        counter._engine.noise, histogram._engine.noise = _Echo(key), _Echo(key, 2)
        return made

    monkeypatch.setitem(suite.SIZES, "short", QUICK)
    step, apart = together_plan(shared)
    assert not step.run().passed
    assert not apart.run().passed


class _Echo:
    """The noise of the first column of everything that has the same key."""

    def __init__(self, key, columns=1):
        self._source, self._columns, self.tick = key.source("echo"), columns, 0
        self.spread = lambda tick: et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=KEY).noise.spread(tick)

    def advance(self, count=1):
        self.tick += count
        noise = self._source.draws("echo", DiscreteLaplace(4), [self.tick])
        return np.repeat(noise, self._columns, axis=1)


@pytest.mark.parametrize("guarantee", [et.PureDP(1.0), et.ZCDP(0.5)])
def test_a_counter_without_noise_is_caught_in_every_way(guarantee, quick, monkeypatch):
    from evertally.counting.tree import TreeProcess

    def silent(self, count=1):
        self.tick += count
        return np.zeros((count, self.columns), dtype=np.int64)

    monkeypatch.setattr(TreeProcess, "advance", silent)
    make = lambda key: et.Counter(guarantee=guarantee, horizon=4, mechanism="tree", key=key)  # noqa: E731
    reports = audit_mechanism(make)
    broken = {report.method for report in reports if not report.passed}
    assert broken & {"event", "separation"}
    assert broken & {"exact law", "closed form"}


def test_queries_that_bound_users_by_themselves_are_audited_together(monkeypatch):
    def users(key):
        made = et.Stream("shop", guarantee=et.ZCDP(0.5), horizon=4, unit="user", key=key)
        queries = {
            "all": made.add(et.DistinctUsers, share="1/2", name="all"),
            "wards": made.add(et.DistinctUsers, share="1/4", name="wards", by=["a", "b"]),
            "active": made.add(et.ActiveUsers, share="1/4", name="active", windows=[1, 3]),
        }
        return Together(queries, made.guarantee, made.horizon)

    monkeypatch.setitem(suite.SIZES, "short", FEW_GAMES)
    step, apart = together_plan(users)
    assert step.run().passed
    assert apart.run().passed


def test_blocks_of_users_are_protected_by_all_statistics_of_a_stream():
    made = et.Stream("shop", guarantee=et.ZCDP(0.5), horizon=8, unit="user-period", period=2, key=KEY)
    made.add(et.DistinctUsers, share="1/2", name="all")
    assert made.add(et.ActiveUsers, share="1/2", name="active", windows=[3]).protected_unit == "user-period"


def test_games_of_many_columns_are_few_but_for_the_strongest() -> None:
    """A query of hundreds of columns took minutes, for games that could not show anything."""
    short = suite.SIZES["short"]
    assert short.games(64, 1, main=False) == short.games(64, 3, main=False) == 2000
    assert short.games(64, 500, main=True) == 2000
    assert short.games(64, 500, main=False) == 250
