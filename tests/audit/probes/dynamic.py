"""Probes of insertions and deletions: every short neighbouring stream through the door, exact inputs of releases."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from audit.probes.probing import Verdict, first_leak, probe
from evertally.audit import attacks
from evertally.audit.dynamic import all_pairs, inputs_report, lifetimes, linear_report
from evertally.audit.report import Report
from evertally.dynamic.families import Queries
from evertally.dynamic.parts import Place
from evertally.dynamic.static import make_static
from evertally.errors import ConfigurationError
from evertally.noise import simulation
from evertally.noise.source import RecordingSource, ZeroSource
from evertally.privacy import ZCDP, PureDP
from evertally.statistics import DynamicCount, DynamicHistogram, DynamicRange

PURE, CONCENTRATED = PureDP(1.0), ZCDP(0.5)
LABELS = ["a", "b", "c"]
_TICKS, _LONG = 3, 24


def histogram(guarantee: Any = PURE, horizon: int | None = None, **options: Any) -> DynamicHistogram:
    """Without a horizon and pure, the noise is an epoch tree: what is charged can be shown entirely."""
    if horizon is None and guarantee == PURE and options.get("mechanism", "linear") == "linear":
        options.setdefault("process", "epoch-tree")
    return DynamicHistogram(categories=LABELS, guarantee=guarantee, horizon=horizon, key=simulation(0), **options)


def worst(*reports: Report) -> Verdict:
    report = next((report for report in reports if not report.passed), reports[0])
    if report.unit == "leak":
        return not report.passed, f"{report.adversary}: {report.stopped or report.method}"
    text = f"{report.adversary} loses {report.unit} {report.audited:.5g}, claimed {report.claimed:.5g}"
    return not report.passed, text


def short(model: Any, ticks: int = _TICKS) -> Report:
    return linear_report(model, all_pairs(model, ticks), "all short streams")


def long(model: Any) -> Report:
    return linear_report(model, lifetimes(model, _LONG), "lifetimes")


@probe("closed form", "items with names, all short streams")
def names() -> Verdict:
    return worst(short(histogram(), 4), short(histogram(lifetimes=2), 4))


@probe("closed form", "items with tokens, all short streams")
def tokens() -> Verdict:
    return worst(short(histogram(identity="token"), 4), short(histogram(identity="token", protects="event"), 4))


@probe("closed form", "lifetimes under Gaussian noise")
def gaussian_lifetimes() -> Verdict:
    return worst(long(DynamicCount(guarantee=CONCENTRATED, horizon=_LONG, key=simulation(0))))


@probe("closed form", "lifetimes under the noise of a tree")
def lifetimes_in_a_tree() -> Verdict:
    """A binary tree of many levels: what comes and goes is in as many nodes as two updates, but for one."""
    tree: dict[str, Any] = {"process": "tree", "radix": 2}
    return worst(long(DynamicCount(guarantee=CONCENTRATED, horizon=_LONG, key=simulation(0), **tree)))


@probe("closed form", "records of names from outside, one by one")
def records_of_names() -> Verdict:
    model = histogram(CONCENTRATED, 8, protects="event")
    return worst(linear_report(model, all_pairs(model, 4), "all short streams"))


@probe("closed form", "items in each other's place")
def replaced_items() -> Verdict:
    return worst(short(histogram(CONCENTRATED, 8, identity="token", neighbours="replace"), 4))


@probe("closed form", "updates without names")
def unnamed() -> Verdict:
    events = [histogram(identity=identity, protects="event") for identity in ("value", "raw")]
    items = [histogram(identity=identity, unique_deletions=True) for identity in ("value", "raw")]
    return worst(*map(short, [*events, *items]))


@probe("closed form", "items without names whose deletions may come twice")
def repeated_deletions() -> Verdict:
    try:
        model = histogram(identity="raw")
    except ConfigurationError:
        return False, "they are refused"
    return worst(short(model))


@probe("closed form", "items that expire")
def expiring() -> Verdict:
    path = DynamicCount(guarantee=CONCENTRATED, horizon=None, max_lifetime=3, process="path", key=simulation(0))
    return worst(short(path, 4), long(path), short(histogram(max_lifetime=2), 4))


@probe("closed form", "several records of one user")
def users() -> Verdict:
    return worst(short(histogram(identity="raw", protects="event", unit="user", max_events_per_user=2)))


@probe("closed form", "items in several rows of a hierarchy")
def hierarchy() -> Verdict:
    binary: dict[str, Any] = {"static": "hierarchy", "static_options": {"fanout": 2}}
    model = DynamicRange(size=8, guarantee=PURE, horizon=None, key=simulation(0), **binary)
    return worst(short(model))


@probe("exact law", "inputs of releases anew")
def anew() -> Verdict:
    options: dict[str, Any] = {"mechanism": "anew", "every": 2, "max_lifetime": 3}
    return worst(*(inputs_report(histogram(protects=unit, **options), 4) for unit in ("item", "event")))


@probe("exact law", "inputs of two trees, for users")
def two_trees() -> Verdict:
    user: dict[str, Any] = {"unit": "user", "max_events_per_user": 2, "protects": "event", "identity": "raw"}
    return worst(inputs_report(histogram(horizon=3, mechanism="subtract", **user), 3))


@probe("exact law", "inputs of an interval tree")
def interval_tree() -> Verdict:
    """Boundaries, restarts and halts given by noise; all streams of two ticks, and lifetimes over twelve."""
    return worst(inputs_report(histogram(horizon=12, mechanism="interval-tree"), 3))


@probe("exact law", "boundaries together with the releases at them")
def boundaries() -> Verdict:
    options: dict[str, Any] = {"mechanism": "doubling", "partition": "finite", "construction": {"svt": "cumulative"}}
    return worst(inputs_report(histogram(horizon=6, identity="token", **options), 4))


@probe("exact law", "rounds of multiplicative weights, for data of which the same size was told")
def rounds() -> Verdict:
    """What is drawn may follow from the noisy size, and from nothing else."""
    static: Any = make_static(
        "multiplicative-weights", Queries({"x": [1, 0], "y": [0, 1]}, ["p", "q"]), pure=True, options={}
    )
    drawn = []
    for copies in (1, 4000):
        log: list[Any] = []
        place = Place(RecordingSource(ZeroSource(), log), "probe", 1)
        static.fit(np.array([copies, 0]), PureDP(Fraction(8)), place, 500)
        drawn.append([(entry.lane, entry.law, entry.nodes, entry.coordinates) for entry in log])
    return drawn[0] != drawn[1], f"{len(drawn[0])} and {len(drawn[1])} draws for data that were told to have one size"


@probe("attack", "a dead name comes back after a restore")
def dead_names() -> Verdict:
    def make(key: Any) -> DynamicCount:
        return DynamicCount(guarantee=PURE, horizon=4, key=key)

    comes, goes = [("insert", None, "one")], [("delete", None, "one")]
    return first_leak(attacks.restore_attack(make, [comes, goes, comes, []], copies=2))


@probe("attack", "insertions and deletions: asked again, restored, after the end, garbage")
def contract() -> Verdict:
    def make(key: Any) -> DynamicHistogram:
        return DynamicHistogram(categories=LABELS, guarantee=PURE, horizon=8, mechanism="anew", every=2, key=key)

    ticks: list[Any] = [[("insert", "a", 1), ("insert", "b", 2)], [], [("delete", None, 1)], [("insert", "c", 3)]]
    return first_leak(
        attacks.replay_attack(make, ticks[0], ticks[1]),
        attacks.restore_attack(make, ticks, copies=2),
        attacks.horizon_attack(make, ticks[1]),
        attacks.bad_record_attack(make),
    )
