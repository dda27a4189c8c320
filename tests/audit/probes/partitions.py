"""Probes of partitions: the pairs of parameterized-histograms 9.3, judged by exact probabilities.

Thresholds and the number of intervals decide nothing about privacy (2.2 there), so probes put thresholds where a pair
is worst; budgets, laws, engines and rules are the product's. The claims are the shares of section 2.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from audit.probes.probing import KEY, ROUNDING, Verdict, probe
from evertally import partition as partitions
from evertally.audit.columns import column_audits, drawn_singly
from evertally.audit.exact import ExactLoss, _box
from evertally.audit.laws.enumerated import whole_law
from evertally.audit.partition import close_loss, histogram_loss, levels_after, transcript_loss
from evertally.audit.scripts import ALWAYS, Address, Make, Run, Script, part
from evertally.histogram.expressions import Columns
from evertally.histogram.tasks import AllColumns, Expressions, Largest
from evertally.noise import DiscreteLaplace, Recording, ZeroNoise, simulation
from evertally.partition import Configuration, PartitionEngine, Queries, Split, Terms, TwoLevelPlan, TwoLevelRelease
from evertally.partition.rules import Ladder, NoisyLadders, Rebased, Rule
from evertally.privacy import ZCDP, ApproxDP, Change, PureDP
from evertally.statistics import MaxSum, SumSelect

Stream = list[tuple[int, ...]]
WAIT: tuple[int, ...] = (0, 0)


# -- what the probes share -------------------------------------------------------------------------------------------


def terms(
    promise: PureDP | ApproxDP, columns: int, queries: Queries, *, linf: int = 1, largest: int | None = 100
) -> Terms:
    """Rows of up to `linf` in every column, all of which one event may change."""
    change = Change(columns * linf, columns * linf * linf, linf)
    return Terms(promise, change, 1000, columns, queries, largest=largest)


def near(
    configuration: Configuration, rise: int, n: int | None = 1, rule: Callable[[], Rule] | None = None
) -> Configuration:
    """The configuration with thresholds `rise` above their floors, for n intervals."""
    queries = configuration.terms.queries
    return replace(configuration, make_rule=rule or (lambda: Ladder(queries, lambda j, ticks: rise)), intervals=n)


def ladder(promise: PureDP | ApproxDP, columns: int = 2, rise: int = 3, n: int = 1, linf: int = 1) -> Configuration:
    """The largest column, on a ladder of small steps."""
    return near(partitions.bounded(terms(promise, columns, Largest(1), linf=linf)), rise, n)


def ladders(epsilon: int, queries: Queries, columns: int, *, rise: int, margin: int) -> Configuration:
    """A noisy ladder for each query, one interval."""
    made = partitions.noisy_ladders(terms(PureDP(epsilon), columns, queries))
    law = made.noise.update
    assert law is not None
    return near(made, rise, 1, lambda: NoisyLadders(queries, rise, margin, law))


def swapped(threshold: int, wait: int, linf: int = 1) -> tuple[Stream, Stream]:
    """Pair A1: (v - 1, v) at the threshold v, then e_1 or e_2, a long wait, and two steps of e_1."""
    before: Stream = [(threshold - linf, threshold)]
    after: Stream = [*[WAIT] * wait, (linf, 0), (linf, 0)]
    return [*before, (linf, 0), *after], [*before, (0, linf), *after]


def loses(loss: float, claimed: float, what: str = "the transcript") -> Verdict:
    return loss > claimed * (1 + ROUNDING), f"{what} loses epsilon {loss:.6g}, claimed {claimed:.6g}"


def worst(losses: Iterable[tuple[float, float, str]]) -> Verdict:
    """The verdict on the largest part of what was claimed."""
    return loses(*max(losses, key=lambda case: case[0] / case[1]))


def swap_loss(make: Make, threshold: int, wait: int, linf: int = 1, tail: float = 1e-15) -> float:
    left, right = swapped(threshold, wait, linf)
    return transcript_loss(make, left, right, [len(left)], tail=tail).epsilon


# -- A1: the swap pair -----------------------------------------------------------------------------------------------


@probe("exact law", "partition, swap pair and a wait of 500")
def _() -> Verdict:
    # Rows of 9.3 as they stand there; the whole engine is at 0.997 of its budget.
    make = ladder(PureDP(1)).engine
    before: Stream = [(0, 1), (1, 1), (1, 1)]
    after: Stream = [*[WAIT] * 500, (1, 0), (1, 0)]
    left, right = [*before, (1, 0), *after], [*before, (0, 1), *after]
    return loses(transcript_loss(make, left, right, [len(left)], tail=1e-15).epsilon, 1)


@probe("exact law", "partition, swap pair of rows up to 3")
def _() -> Verdict:
    return loses(swap_loss(ladder(PureDP(1), linf=3).engine, 3, 60, linf=3, tail=1e-10), 1)


@probe("exact law", "partition, swap pair with an update")
def _() -> Verdict:
    # The margin is such that the noise of the update decides: all three thirds of the budget are lost.
    return loses(swap_loss(ladders(1, Largest(1), 2, rise=3, margin=-1).engine, 3, 100), 1)


@probe("exact law", "partition, swap pair at calibrated thresholds")
def _() -> Verdict:
    plans = [
        make(terms(PureDP(4), 2, Largest(1)))
        for make in (partitions.rebased.rebased, partitions.bounded, partitions.doubling)
    ]
    plans += [
        make(terms(PureDP(4), 2, AllColumns(2))) for make in (partitions.rebased.rebased, partitions.rebased.intervals)
    ]
    return worst((swap_loss(drawn_singly(plan).engine, plan.rise(1, 1), 30), 4, plan.name) for plan in plans)


@probe("exact law", "partition that starts from a negative histogram")
def _() -> Verdict:
    # The query is certified for counts only; below zero it moves three times as fast.
    make = near(partitions.bounded(terms(PureDP(1), 2, _CountsOnly())), 3)
    loss = close_loss(lambda source: make.engine(source, base=np.array([-40, -40])), *swapped(1, 30))
    return loses(loss.epsilon, 1 / 2, "the time of the close")


class _CountsOnly:
    count = 1

    def values(self, v: Any) -> Any:
        return np.where(v < 0, 3 * v, v).max(keepdims=True)


@probe("exact law", "partition far below its threshold")
def _() -> Verdict:
    make = ladder(PureDP(8), columns=1, rise=40).engine
    return worst(
        (transcript_loss(make, [[at + 1]], [[at]], [1], tail=1e-40).epsilon, 8, f"{at + 1} against {at}")
        for at in range(40)
    )


@probe("exact law", "partition whose threshold an observer learns")
def _() -> Verdict:
    # Every close against the odds says that tau is low, the wait says that it is high: together they tell what it is,
    # unless each interval has its own.
    queries, lessons = Largest(1), 4
    plan = near(
        partitions.rebased.rebased(terms(PureDP(4), 2, queries)),
        3,
        lessons + 1,
        lambda: Rebased(queries, lambda j, ticks: 3),
    )
    left, right = swapped(3, 60)
    before: Stream = [WAIT] * lessons
    closes = [*range(1, lessons + 1), lessons + len(left)]
    singly = drawn_singly(plan)
    return loses(transcript_loss(singly.engine, before + left, before + right, closes, tail=1e-30).epsilon, 4)


@probe("exact law", "partition of two ticks, all draws")
def _() -> Verdict:
    plan = ladder(PureDP(12), rise=1)
    loss = whole_law(
        lambda source: plan.engine(source, base=np.array([9, 10])),
        [(1, 0), (2, 0)],
        [(0, 1), (2, 0)],
        fixed={"histogram": 0},
        see=lambda run: tuple(tick for tick, _ in run.releases),
    )
    return loses(loss.epsilon, 6, "the time of the close")


# -- neighbours that move one way, and both ways (additions 7) ------------------------------------------------------


_USERS: dict[str, Any] = {"unit": "user", "max_events_per_user": 2}
_PARTITIONS = ((PureDP(4), MaxSum, "rebased"), (PureDP(4), MaxSum, "doubling"), (PureDP(4), MaxSum, "noisy-ladders"))
_SELECTIONS = ((PureDP(1), SumSelect, "recompute"), (ZCDP(0.5), SumSelect, "recompute"))


@probe("exact law", "partitions, one event more or less")
def _() -> Verdict:
    return _made("add_remove", _PARTITIONS, {}, _USERS, {"max_weight": 3})


@probe("exact law", "partitions, one event replaced")
def _() -> Verdict:
    return _made("replace", _PARTITIONS, {})


@probe("exact law", "selections, one event more or less")
def _() -> Verdict:
    return _made("add_remove", _SELECTIONS, {}, _USERS, {"max_weight": 3})


@probe("exact law", "selections, one event replaced")
def _() -> Verdict:
    return _made("replace", _SELECTIONS, {})


def _made(neighbours: str, kinds: Iterable[tuple[Any, Any, str]], *units: dict[str, Any]) -> Verdict:
    """Whole mechanisms, made as a caller makes them: the relation decides the scale of the test and of a selection."""
    cases: list[tuple[float, float, str]] = []
    for unit in units:
        for guarantee, kind, mechanism in kinds:
            options = {"columns": 3, "max_per_event": 1, "neighbours": neighbours, "largest": 50, "key": KEY} | unit
            model = kind(guarantee=guarantee, horizon=40, mechanism=mechanism, **options)
            for name, audit in column_audits(model, 16):
                if name in ("transcript", "exact law"):
                    report = audit()
                    cases.append((report.audited, report.claimed, f"{mechanism}, {unit or 'one event'}:"))
    return worst(cases)


# -- A2, A3, A7: the histogram ---------------------------------------------------------------------------------------


@probe("exact law", "partition, a row of ones before a close")
def _() -> Verdict:
    cases: list[tuple[float, float, str]] = []
    for plan in (ladder(PureDP(1), 3), near(partitions.doubling(terms(PureDP(1), 3, Largest(1))), 3, 1)):
        left, right = [(1, 1, 1), (0, 0, 0)], [(0, 0, 0), (0, 0, 0)]
        loss = transcript_loss(plan.engine, left, right, [2])
        cases += [(loss.histograms, 0.5, f"{plan.name}: the histogram"), (loss.epsilon, 1, plan.name)]
    return worst(cases)


@probe("exact law", "partition, the crossing row itself")
def _() -> Verdict:
    left: Stream = [(2, 2), (2, 2)]
    pairs = [((3, 3), (2, 2)), ((2, 2), (3, 3)), ((3, 2), (2, 3))]
    plan = ladder(PureDP(1))
    return worst(
        (transcript_loss(plan.engine, [*left, x], [*left, y], [3]).epsilon, 1, f"{x} against {y}") for x, y in pairs
    )


@probe("exact law", "partition, the first row in many histograms")
def _() -> Verdict:
    # Each H to its full depth, and beyond for those that have none. The average of what is released must not sharpen.
    asked = terms(PureDP(1), 2, Largest(1))
    plans = {
        "binary tree": (replace(partitions.bounded(asked), intervals=4), 4),
        "tree of three": (replace(partitions.bounded(asked), intervals=3), 4),
        "blocks of 2, 2, 4": (replace(partitions.bounded(asked), histogram="blocks", intervals=2), 8),
        "pile": (partitions.doubling(asked, start=1), 9),
        "epoch tree": (partitions.rebased.rebased(replace(asked, largest=None)), 7),
    }
    cases: list[tuple[float, float, str]] = []
    for name, (plan, closes) in plans.items():
        rest: Stream = [(1, 0)] * (closes - 1)
        ticks = range(1, closes + 1)
        for t in ticks:
            left = [*rest[: t - 1], (1, 1), *rest[t - 1 :]]
            right = [*rest[: t - 1], (0, 0), *rest[t - 1 :]]
            cases.append((histogram_loss(plan.engine, left, right, ticks), 0.5, f"{name}, insert {t},"))
    return worst(cases)


@probe("exact law", "histogram of an (epsilon, delta) partition")
def _() -> Verdict:
    # eps/2 and delta e^(-eps/2). At a large epsilon the classic variance is too small, at epsilon 1 the printed one is.
    cases = []
    for make, epsilon in ((partitions.bounded, 24.0), (partitions.bounded, 1.0), (partitions.doubling, 1.0)):
        plan = near(make(terms(ApproxDP(epsilon, 1e-6), 1, Largest(1))), 1, 1)
        loss = whole_law(plan.engine, [[1]], [[0]], tail=1e-24, fixed={"tau": 0, "mu": 9})
        cases.append((loss.delta(epsilon / 2), 1e-6 * math.exp(-epsilon / 2), epsilon / 2))
    return exceeds(cases)


@probe("exact law", "update of an (epsilon, delta) partition")
def _() -> Verdict:
    # eps/3 and delta e^(-eps/3)/2, for the noisy look itself, of which the product shows less.
    cases = []
    for epsilon in (1.0, 6.0):
        script = Script({"mu": {1: ALWAYS}})
        partitions.noisy_ladders(terms(ApproxDP(epsilon, 1e-6), 1, Largest(1))).engine(script).play(np.array([[1]]), 1)
        (law,) = {asked.law for asked in script.asked if asked.lane == "update"}
        values, masses = _box(law, 1e-24)
        sides: list[dict[tuple[int, ...], float]] = [
            {(int(v) + shift,): float(m) for v, m in zip(values, masses, strict=True)} for shift in (1, 0)
        ]
        found = ExactLoss(1e-24, *sides).delta(epsilon / 3)
        cases.append((found, 1e-6 * math.exp(-epsilon / 3) / 2, epsilon / 3))
    return exceeds(cases)


def exceeds(cases: Iterable[tuple[float, float, float]]) -> Verdict:
    """The verdict on the largest part of a claimed delta; cases are (delta, claimed delta, epsilon)."""
    found, claimed, epsilon = max(cases, key=lambda case: case[0] / case[1])
    text = f"delta at epsilon {epsilon:.4g} is {found:.4g}, claimed {claimed:.4g}"
    return found > claimed * (1 + ROUNDING), text


# -- A5, A6: several queries -----------------------------------------------------------------------------------------


@probe("exact law", "partition, all of 5 and of 20 queries at their thresholds")
def _() -> Verdict:
    return worst((all_at_once(k), 1 / 3, f"the time of the close, {k} queries,") for k in (5, 20))


def all_at_once(k: int) -> float:
    """Pair A5: k columns at the threshold, then a row of ones or of zeros, and a short wait."""
    plan = ladders(1, AllColumns(k), k, rise=0, margin=0)
    wait: Stream = [(0,) * k] * 11
    return close_loss(plan.engine, [(1,) * k, *wait], [(0,) * k, *wait], tail=1e-30).epsilon


@probe("exact law", "partition, an update of 5 queries at their margins")
def _() -> Verdict:
    # One column above what an update needs, or not: the noise of the update decides for every query.
    plan = ladders(1, AllColumns(5), 5, rise=3, margin=3)
    loss = transcript_loss(plan.engine, [(1,) * 5], [(0,) * 5], [1])
    return worst([(loss.updates, 1 / 3, "the update"), (loss.epsilon, 1, "the transcript")])


@probe("exact law", "partition, update of a query with fractions")
def _() -> Verdict:
    # Thresholds are public, so the fraction of a mean must not show in them.
    h = Columns(2)
    plan = ladders(3, Expressions([(h[0] + h[1]) / 2]), 2, rise=1, margin=1)

    def floors(run: Run) -> tuple[Any, ...]:
        return tuple(run.partition._rule.floors.tolist())  # type: ignore[union-attr]

    loss = whole_law(plan.engine, [(1, 0)], [(0, 0)], tail=1e-9, fixed={"tau": 0, "mu": 99, "histogram": 0}, see=floors)
    return loses(loss.epsilon, 1, "the thresholds after an update")


# -- A4: two levels --------------------------------------------------------------------------------------------------


def two_levels(promise: PureDP, columns: int = 2) -> tuple[TwoLevelPlan, int]:
    """A plan whose outer level and first inner partition have the same threshold, and that threshold. The horizon is
    so short that each H is for one interval: then one release shows all that H may lose."""
    asked, start = replace(terms(promise, columns, Largest(1), largest=None), horizon=9), 1
    while (plan := TwoLevelPlan(asked, start)).inner(1).rise(1, 1) != start:
        start = plan.inner(1).rise(1, 1)
    return plan, start


def _both(plan: TwoLevelPlan) -> Make:
    return lambda source: TwoLevelRelease(plan, source)


@probe("exact law", "two levels, swap pair")
def _() -> Verdict:
    # The outer level loses all it may, and the inner one what waiting costs.
    plan, start = two_levels(PureDP(8))
    left, right = swapped(start, 60)
    loss = transcript_loss(_both(plan), left, right, [("outer/mu", len(left))], tail=1e-12)
    return loses(loss.epsilon, 8)


@probe("exact law", "two levels, the row that closes a segment")
def _() -> Verdict:
    # It may be in the segment that it closes, and in no inner partition. In the old and the new one it would pay three
    # times: by a close in the tail of mu on both levels (the first column is the largest, and higher on the left), and
    # by the swap pair in the new partition (the second column comes up to the threshold, in the end the first passes).
    plan, start = two_levels(PureDP(8))
    top = start - 14  # of the histogram that the segment releases
    threshold = top + plan.inner(2).rise(1, 2)
    wait: Stream = [(0, threshold - 2), *[WAIT] * 60, (threshold + 1 - top, 0)]
    left: Stream = [(top - 1, 0), (1, 1), *wait]
    right: Stream = [(top - 1, 0), (0, 2), *wait]
    closes: list[Address] = [("segment-1/mu", 2), ("outer/mu", 2), ("segment-2/mu", len(left))]
    return loses(transcript_loss(_both(plan), left, right, closes, tail=1e-25).epsilon, 8)


# -- what follows a release ------------------------------------------------------------------------------------------


@probe("attack", "partition after the same releases")
def _() -> Verdict:
    # E4: given the same releases, nothing that comes after the interval of a row may depend on it.
    asked = terms(PureDP(8), 2, Largest(1))
    plans: dict[str, tuple[Make, list[int | Address]]] = {
        "bounded": (near(partitions.bounded(asked), 3, 3).engine, [2]),
        "rebased": (partitions.rebased.rebased(replace(asked, largest=None)).engine, [2]),
        "doubling": (partitions.doubling(asked).engine, [2]),
        "noisy ladders": (ladders(8, Largest(1), 2, rise=3, margin=0).engine, [2]),
        "two levels": (_both(TwoLevelPlan(replace(asked, largest=None))), [("outer/mu", 2)]),
    }
    for name, (make, closes) in plans.items():
        for before in (0, 3, 7, 15, 31, 63):
            left, right = [(before, 0), (1, 0), (0, 1), (1, 1)], [(before, 0), (0, 1), (0, 1), (1, 1)]
            first, second = levels_after(make, left, right, closes)
            if first != second:
                apart = next(place for place in first if first[place] != second.get(place))
                return True, f"{name}: after the same releases, the test at {apart} is another one"
            if not first:
                return True, f"{name}: nothing is tested after the release"
    return False, "after the same releases, the same tests"


@probe("attack", "outputs between closes")
def _() -> Verdict:
    # A8, A9: nothing changes while an interval is open, whatever the rows, and asking again gives the same answer.
    plan = ladder(PureDP(1), n=4)
    levels = TwoLevelPlan(terms(PureDP(1), 2, Largest(1), largest=None))
    rows = np.array([(3, 1), (0, 0), (5, 2), (1, 0), (0, 9), (2, 2)])
    for formula, make, lane in ((plan, plan.engine, "mu"), (levels, _both(levels), "segment-1/mu")):
        worker = PartitionEngine(make(Script({lane: {3: ALWAYS}})), formula)
        shown = []
        for row in rows:
            values, counts = worker.advance(row[None])
            shown.append(values[np.repeat(np.arange(len(values)), counts)][0].tolist())
            reads = [worker.partition.released.tolist() for _ in range(3)]
            if any(read != shown[-1] for read in reads):
                return True, f"a histogram that was shown as {shown[-1]} reads {reads} afterwards"
        if shown[:2] != [shown[0]] * 2 or shown[2:] != [shown[2]] * 4 or any(shown[0]):
            return True, f"the only close is at tick 3, and the histograms shown are {shown}"
    return False, "one histogram until an interval closes, and then one until the next"


@probe("attack", "restored partitions")
def _() -> Verdict:
    # E9: a copy that is restored at any tick goes on with the releases of the original.
    asked = terms(PureDP(8), 2, Largest(1))
    several = terms(PureDP(8), 2, AllColumns(2))
    plans: dict[str, Make] = {
        "bounded": near(partitions.bounded(terms(PureDP(1), 2, Largest(1))), 4, 9).engine,
        "blocks": replace(near(partitions.bounded(terms(PureDP(1), 2, Largest(1))), 4, 2), histogram="blocks").engine,
        "rebased": partitions.rebased.rebased(replace(asked, largest=None)).engine,
        "noisy ladders": partitions.noisy_ladders(several).engine,
        "two levels": _both(TwoLevelPlan(replace(asked, largest=None), start=4)),
    }
    rows = np.array([(1, 1), (0, 0), (2, 0), (0, 0), (40, 2), (1, 0), (60, 9), (80, 80), (0, 0), (200, 3), (0, 0)])
    for (name, make), number in product(plans.items(), range(4)):  # of one key a wrong threshold may go unnoticed
        source = simulation(number).source("restored")
        original = make(source)
        whole = _played(original, rows, 1)
        for tick in range(1, len(rows)):
            first = make(source)
            _played(first, rows[:tick], 1)
            copy = make(source)
            copy.load(first.state())
            again = _played(copy, rows[tick:], tick + 1)
            if again != [release for release in whole if release[0] > tick]:
                return True, f"{name}: a copy restored after tick {tick} releases later ticks in another version"
        if not whole:
            return True, f"{name}: nothing was released"
    return False, "restored copies release what the original does"


def _played(partition: Any, rows: Any, first: int) -> list[tuple[int, list[int]]]:
    return [(tick, released.tolist()) for tick, released in partition.play(rows, first)]


# -- the noise ledger ------------------------------------------------------------------------------------------------


@probe("conformance", "noise ledger of partitions")
def _() -> Verdict:
    # E3: the multiset of draws, with scales worked out here from 2.4, 3.1, 3.2 and 5.4.
    d, B, rows = 3, 2, np.array([(2, 1, 0), (0, 0, 0), (900, 1, 0), (0, 1, 1), (7000, 0, 0), (0, 2, 0)])
    one, all_, e = Largest(1), AllColumns(d), Fraction(1)
    halves = {"tau": 4 * B / e, "mu": 8 * B / e}
    thirds = {"tau": 6 * B / e, "mu": 12 * B / e, "update": 3 * d * B / e}
    trees: dict[str, Callable[[int], Fraction]] = {
        "halves": lambda n: d * B * n.bit_length() / (e / 2),
        "thirds": lambda n: d * B * n.bit_length() / (e / 3),
    }
    asked = terms(PureDP(1), d, one, linf=B, largest=3000)
    plan = partitions.bounded(asked)
    other = partitions.bounded(replace(asked, split=Split.of("1/5", "3/10", "1/2")))
    ladders_ = partitions.noisy_ladders(replace(asked, queries=all_))
    assert plan.intervals is not None and ladders_.intervals is not None  # noqa: PT018 (both have a limit)
    half = {"outer/tau": 8 * B / e, "outer/mu": 16 * B / e, "outer/pile": 4 * d * B / e}
    levels = TwoLevelPlan(replace(asked, largest=None), start=50)
    inner: dict[str, Fraction] = {}
    for segment in range(1, 8):
        n = levels.inner(segment).intervals or 0
        scales = {"tau": 8 * B / e, "mu": 16 * B / e, "tree": d * B * n.bit_length() / (e / 4)}
        inner |= {f"segment-{segment}/{lane}": scale for lane, scale in scales.items()}
    subjects: list[tuple[str, Make, dict[str, Fraction]]] = [
        ("bounded", plan.engine, halves | {"tree": trees["halves"](plan.intervals)}),
        ("another split", near(other, 9, 1).engine, {"tau": 5 * B / e, "mu": 20 * B / (3 * e), "tree": 2 * d * B / e}),
        ("doubling", partitions.doubling(asked, start=9).engine, halves | {"pile": 2 * d * B / e}),
        ("rebased", partitions.rebased.rebased(replace(asked, largest=None)).engine, halves | _epochs(d * B / (e / 2))),
        (
            "intervals",
            partitions.rebased.intervals(replace(asked, largest=None, queries=all_)).engine,
            halves | _epochs(d * B / (e / 2)),
        ),
        ("noisy ladders", ladders_.engine, thirds | {"tree": trees["thirds"](ladders_.intervals)}),
        ("two levels", _both(levels), half | inner),
    ]
    for name, make, scales in subjects:
        wrong = _ledger(make, rows, scales, d)
        if wrong:
            return True, f"{name}: {wrong}"
    return False, "every draw once, and each with the scale that its share buys"


def _epochs(scale: Fraction) -> dict[str, Fraction]:
    return {f"epoch-{k}": (k + 1) * scale for k in range(8)}


def _ledger(make: Make, rows: Any, scales: dict[str, Fraction], columns: int) -> str:
    """What is wrong with the draws of a run without noise, or nothing."""
    recording = Recording(ZeroNoise())
    partition = make(recording.source())
    releases = partition.play(rows, 1)
    if not releases:
        return "nothing was released"
    drawn: dict[Address, int] = {}
    for draw in recording.draws:
        for node in draw.nodes:
            if (draw.lane, node) in drawn:
                return f"the draw {draw.lane} {node} is used twice"
            drawn[draw.lane, node] = draw.coordinates
    for draw in recording.draws:
        law, scale = draw.law, scales.get(draw.lane, Fraction(0))
        # Scales are rounded up, by less than this.
        if not isinstance(law, DiscreteLaplace) or not scale <= law.scale <= scale * (1 + Fraction(1, 2**30)):
            return f"{draw.lane} is drawn from {law}, its share buys a scale of {scale}"
    count = {kind: sum(part(lane) == kind for lane, _ in drawn) for kind in ("tau", "mu", "update", "histogram")}
    tests = len({lane for lane, _ in drawn if part(lane) == "tau"})
    closes, ticks = len(releases), len(rows)
    if count["tau"] != tests + closes or count["histogram"] != closes:
        return f"{closes} closes and {tests} tests, but {count['tau']} tau and {count['histogram']} draws of H"
    if "update" in scales and count["update"] != closes:
        return f"{closes} closes, but {count['update']} updates"
    if not ticks <= count["mu"] <= ticks * min(tests, 2):
        return f"{ticks} ticks, but {count['mu']} mu"
    widths = {part(lane): width for (lane, _), width in drawn.items()}
    if widths["tau"] != 1 or widths["mu"] != 1 or widths["histogram"] != columns:
        return f"draws of {widths} coordinates"
    return ""
