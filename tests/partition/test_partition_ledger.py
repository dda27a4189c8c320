"""E3 and E8: what every algorithm draws, no more and no less, and that accuracy options never change it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from ledger_table import APPROXIMATE, DNRR, PURE, TABLE, D, Expected, Line, Promise, Shares, expected, rho_of, same
from partition_reference import LARGEST, columns, law_of
from scipy.optimize import minimize_scalar

from evertally.noise import DiscreteLaplace, Law, Recording, ZeroNoise, simulation
from evertally.partition import (
    Configuration,
    PartitionedRelease,
    Split,
    Terms,
    TwoLevelPlan,
    TwoLevelRelease,
    bounded,
    doubling,
    noisy_ladders,
    tuned,
)
from evertally.partition.budget import noise_of
from evertally.partition.histograms import make_histogram
from evertally.partition.rebased import intervals, rebased
from evertally.partition.typical import TypicalStream
from evertally.privacy import ApproxDP, Change, PureDP

Address = tuple[int, int]
Ledger = dict[str, tuple[Law, set[Address]]]  # lane -> its law, and the (node, coordinate) pairs that were drawn

T = 90


def ledger_of(recording: Recording) -> Ledger:
    found: Ledger = {}
    for call in recording.draws:
        law, addresses = found.setdefault(call.lane, (call.law, set()))
        assert law == call.law, "one lane, one law"
        addresses |= {(node, i) for node in call.nodes for i in range(call.first, call.first + call.coordinates)}
    return {lane: (law, addresses) for lane, (law, addresses) in found.items() if addresses}


def rows_for(plan: Configuration | TwoLevelPlan, d: int) -> np.ndarray:
    """Heights at which intervals close every few ticks, quietly at first, then all the time."""
    step = (plan.inner(1) if isinstance(plan, TwoLevelPlan) else plan).rise(1, 1)
    rng = np.random.default_rng(3)
    rows = rng.integers(0, step, (T, d))
    rows[: T // 3] //= 8
    return rows


class Run:
    """One engine played tick by tick, with notes on which ticks had a test, and how many intervals closed."""

    def __init__(self, line: Line, change: Change, d: int = D) -> None:
        self.plan, self.d = line.make(line.promise, change), d
        recording = Recording(simulation(11))
        engine: Any
        if isinstance(self.plan, TwoLevelPlan):
            engine = TwoLevelRelease(self.plan, recording.source("ledger"))
        else:
            engine = self.plan.engine(recording.source("ledger"))
        self.tested: dict[str, set[int]] = defaultdict(set)
        self.closes: dict[str, int] = defaultdict(int)
        for t, row in enumerate(rows_for(self.plan, d), start=1):
            parts = dict(self.parts(engine))
            open_ = {prefix for prefix, part in parts.items() if not part.exhausted}
            before = engine.closes
            engine.play(row[None, :], t)
            if isinstance(engine, TwoLevelRelease) and engine.closes > before:
                open_ -= {prefix for prefix in open_ if prefix != "outer/"}  # the closing row goes to no inner instance
            for prefix in open_:
                self.tested[prefix].add(t)
            for prefix, part in [*parts.items(), *self.parts(engine)]:
                self.closes[prefix] = part.closes
        self.ledger = ledger_of(recording)

    @staticmethod
    def parts(engine: Any) -> Iterator[tuple[str, PartitionedRelease]]:
        if isinstance(engine, TwoLevelRelease):
            yield "outer/", engine._outer
            yield f"segment-{engine.closes + 1}/", engine._inner
        else:
            yield "", engine


def check_engine(run: Run, prefix: str, plan: Configuration, laws: Expected, histogram: str) -> None:
    """Takes the lanes of one engine out of the ledger, each of them as expected."""
    closes, ledger, k = run.closes[prefix], run.ledger, plan.terms.queries.count

    def take(lane: str, law: Law, nodes: set[int], coordinates: int) -> None:
        if not nodes:
            assert prefix + lane not in ledger
            return
        found, addresses = ledger.pop(prefix + lane)
        assert same(found, law), (lane, found, law)
        assert addresses == {(node, i) for node in nodes for i in range(coordinates)}, lane

    take("tau", laws.tau, set(range(1, closes + 2)), 1)
    take("mu", laws.mu, run.tested[prefix], 1)
    inserts = set(range(1, closes + 1))
    if laws.update is not None:
        take("update", laws.update, inserts, k)
    n = plan.intervals
    if histogram == "running-sum":
        take("pile", laws.node(Fraction(1)), inserts, run.d)
    elif histogram == "epochs":
        assert n is None
        for e in range(closes.bit_length() + 1):  # epoch e takes the inserts 2^e .. 2^(e+1) - 1
            nodes = {j + 1 - 2**e for j in inserts if j.bit_length() == e + 1}
            take(f"epoch-{e}", laws.node(Fraction(e + 1)), nodes, run.d)
    elif histogram == "tree":
        assert n is not None
        take("tree", laws.node(Fraction(n.bit_length())), inserts, run.d)
    else:
        assert n is not None
        assert same(law_of(plan.noise.histogram, plan.terms.change, 1), laws.node(Fraction(1)))
        best = make_histogram("best", plan.noise.histogram, plan.terms.change, n, run.d, ZeroNoise().source(), width=1)
        check_process(prefix, best, plan.noise.histogram, plan.terms.change, inserts, ledger, run.d)


def check_process(
    prefix: str, process: Any, charge: Any, change: Change, inserts: set[int], ledger: Ledger, d: int = D
) -> None:
    """Takes the lanes of one of H0-H3 for n inserts out of the ledger."""
    n = process.horizon

    def take(lane: str, moved: int, nodes: set[int]) -> None:
        """`moved`: the squared norm of what one event moves by one unit."""
        found, addresses = ledger.pop(prefix + lane)
        assert same(found, law_of(charge, change, moved)), lane
        assert addresses == {(node, i) for node in nodes for i in range(d)}

    kind = type(process).__name__
    if kind == "AccumulatingProcess":
        take("pile", 1, inserts)
    elif kind == "TreeProcess":
        take("tree", next(h for h in range(1, 64) if process.radix**h > n), inserts)
    elif kind == "HonakerProcess":
        for h in range(max(inserts).bit_length()):
            take(f"honaker-{h}", n.bit_length(), {j >> h for j in inserts if j % 2**h == 0})
    else:
        assert kind == "SqrtProcess"
        # integers r_k = round(2^16 f(k)); one event moves the noisy sums by their squared norm (3.4); noise is made
        # ahead, 64 inserts at once and then as many as there are
        norm = sum(((2**17 * math.comb(2 * k, k) + 4**k) // (2 * 4**k)) ** 2 for k in range(n))
        ahead = 64
        while ahead < len(inserts):
            ahead *= 2
        take("sqrt", norm, set(range(1, min(n, ahead) + 1)))


def check(run: Run, line: Line, change: Change) -> None:
    plan = run.plan
    if isinstance(plan, TwoLevelPlan):
        assert line.inner is not None
        half: Promise
        if isinstance(line.promise, ApproxDP):
            half = ApproxDP(line.promise.exact_epsilon / 2, line.promise.exact_delta / 2)
        else:
            half = PureDP(line.promise.exact_epsilon / 2)
        k = plan.terms.queries.count
        check_engine(run, "outer/", plan.outer, expected(line.shares, half, change, k), line.histogram)
        segments = run.closes["outer/"] + 1
        assert segments >= 3
        for j in range(1, segments + 1):
            laws = expected(line.inner, half, change, k)
            check_engine(run, f"segment-{j}/", plan.inner(j), laws, "tree")
    else:
        laws = expected(line.shares, line.promise, change, plan.terms.queries.count)
        check_engine(run, "", plan, laws, line.histogram)
    assert run.ledger == {}, "noise that nobody expects"


CHANGES = {
    "all columns": Change(D, D, 1),
    "one label": Change(2, 2, 1),  # at most one 1 in a row, replaced: min(d, 2m) = 2 cells (1.7)
    "weights up to 3": Change(3 * D, 9 * D, 3),
    "one label of weight up to 3": Change(6, 18, 3),
}


@pytest.mark.parametrize("line", TABLE, ids=str)
@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_ledger(line: Line, change: Change) -> None:
    run = Run(line, change)
    total = sum(run.closes.values())
    assert total >= 3, "without closes the ledger would be short"
    check(run, line, change)


def test_ledger_of_one_column() -> None:
    for change in (Change(1, 1, 1), Change(5, 25, 5)):
        run = Run(DNRR, change, d=1)
        assert run.closes[""] >= 3
        check(run, DNRR, change)


@pytest.mark.parametrize("promise", [PURE, APPROXIMATE], ids=repr)
@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_ledger_of_tuned_variants(promise: Promise, change: Change) -> None:
    """V1 to V4 with tuned numbers: any split, but of the same promise; H in blocks, each with the whole of H's part."""
    line = Line("tuned", promise, tuned_plan, "halves", "blocks")
    run = Run(line, change)
    plan: Any = run.plan
    noise, eps, B = plan.noise, promise.exact_epsilon, change.linf
    e_tau, e_mu = B / noise.tau.scale, 2 * B / noise.mu.scale
    if isinstance(promise, PureDP):
        e_H = noise.histogram.exact_epsilon
    else:
        e_H = plan.terms.split.histogram * eps
        assert noise.histogram.exact_rho <= rho_of(e_H, promise.exact_delta, e_tau + e_mu) * (1 + Fraction(1, 10**9))
    assert eps * (1 - Fraction(1, 2**30)) <= e_tau + e_mu + e_H <= eps
    assert noise.update is None
    ledger, closes = run.ledger, run.closes[""]
    assert ledger.pop("tau") == (noise.tau, {(j, 0) for j in range(1, closes + 2)})
    assert ledger.pop("mu") == (noise.mu, {(t, 0) for t in range(1, T + 1)})
    n, k, done = plan.intervals, 0, 0
    assert closes > n, "more than one block"
    blocks: Any = make_histogram("blocks", noise.histogram, change, n, D, ZeroNoise().source())
    while done < closes:
        length = n * 2 ** max(0, k - 1)
        inserts = set(range(1, min(length, closes - done) + 1))
        check_process(f"block-{k}/", blocks._process_of(k, length, 1), noise.histogram, change, inserts, ledger)
        k, done = k + 1, done + length
    assert ledger == {}, "noise that nobody expects"


def tuned_plan(promise: Promise, change: Change) -> Configuration:
    terms = Terms(promise, change, 300, D, columns(D), largest=400, beta=0.1, split=Split.of("1/5", "2/5", "2/5"))
    return tuned(terms, "intervals", TypicalStream(300, 400, 5, D, wide=True), 400 * D)


def test_the_table_is_complete_and_some_engines_fill_up() -> None:
    numbers = {line.number.split()[0] for line in TABLE}
    assert {"2", "3", "5", "6", "7", "8", "10", "11", "12", "13", "15", "16", "17", "V1", "V2", "V3", "V4"} <= numbers
    full = [line for line in TABLE if len(next(iter(Run(line, CHANGES["all columns"]).tested.values()))) < T]
    assert len(full) >= 3, "the rule 'mu only while j <= n' should be met"


def test_a_short_ledger_is_noticed() -> None:
    """The check itself: one draw taken away, and one law a little too small."""
    line, change = TABLE[0], CHANGES["all columns"]
    run = Run(line, change)
    run.ledger["mu"][1].pop()
    with pytest.raises(AssertionError):
        check(run, line, change)
    run = Run(line, change)
    law, addresses = run.ledger["tau"]
    run.ledger["tau"] = (replace_scale(law), addresses)
    with pytest.raises(AssertionError):
        check(run, line, change)


def replace_scale(law: Any) -> Any:
    return type(law)(law.scale * (1 - Fraction(1, 2**30)))


def test_scales_of_the_specification() -> None:
    """2.4 and 5.4, digit by digit, at eps = 1 in total, d = 10 columns, k = 7 queries."""
    change, sevens = Change(10, 10, 1), columns(7)

    def scales(noise: Any) -> list[Any]:
        return [noise.tau.scale, noise.mu.scale, noise.update and noise.update.scale, noise.histogram.exact_epsilon]

    half, third, sixth = Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)
    assert scales(noise_of(PURE, Split.halves())) == [4, 8, None, half]
    assert scales(noise_of(PURE, Split.thirds(), queries=7)) == [6, 12, 21, third]
    plan = TwoLevelPlan(Terms(PURE, change, 1000, 10, sevens))
    assert scales(plan.outer.noise) == [8, 16, None, Fraction(1, 4)]
    pile: Any = make_histogram("running-sum", plan.outer.noise.histogram, change, None, 10, ZeroNoise().source())
    assert pile.law.scale == 40  # 4d/eps
    assert scales(plan.inner(5).noise) == [12, 24, 42, sixth]
    assert scales(TwoLevelPlan(Terms(PURE, change, 1000, 10, LARGEST)).inner(5).noise) == [8, 16, None, Fraction(1, 4)]


def test_delta_adds_up() -> None:
    """e^(eps_tau+eps_mu) delta_U + e^(eps_tau+eps_mu+eps_U) delta_H <= delta, and epsilons add up to epsilon (2.3)."""
    for epsilon in (0.1, 1.0, 3.0):
        promise = ApproxDP(epsilon, 1e-6)
        for split in (Split.halves(), Split.thirds(), Split(*(Fraction(i, 10) for i in (1, 2, 3, 4)))):
            noise, eps = noise_of(promise, split, queries=7), promise.exact_epsilon
            assert 1 / noise.tau.scale <= eps * split.tau
            assert 2 / noise.mu.scale <= eps * split.mu
            before = float(eps * (split.tau + split.mu))
            rho: Any = noise.histogram
            delta = math.exp(before + float(eps * split.update)) * delta_of(rho.exact_rho, eps * split.histogram)
            if split.update:
                law: Any = noise.update
                delta += math.exp(before) * delta_of(Fraction(7) / (2 * law.sigma_squared), eps * split.update)
            assert delta <= 1e-6 * (1 + 1e-9)
            assert delta >= 1e-6 * 0.98, "nearly all of delta is used"


def delta_of(rho: Fraction, epsilon: Fraction) -> float:
    """The delta of rho-zCDP at epsilon: the minimum over orders (price-of-continual-release 2.1 row 3)."""
    r, e = float(rho), float(epsilon)

    def log_delta(u: float) -> float:
        a = 1 + math.exp(u)
        return (a - 1) * (a * r - e) - u + a * math.log1p(-1 / a)

    best = minimize_scalar(log_delta, bounds=(-7, 14), method="bounded", options={"xatol": 1e-10})
    return math.exp(best.fun)


# -- E8 ----------------------------------------------------------------------------------------------------------------

BASE = Terms(PURE, Change(D, D, 1), 1000, D, columns(D), largest=500, beta=0.1)
OTHERS: list[dict[str, Any]] = [
    {"largest": 3},
    {"largest": 10**6},
    {"largest": None},
    {"beta": 1e-9},
    {"beta": 0.9},
    {"horizon": 10},
    {"horizon": 10**9},
    {"growth": 1000},
    {"base_error": 10**6},
]


@pytest.mark.parametrize("promise", [PURE, APPROXIMATE], ids=repr)
@pytest.mark.parametrize("make", [bounded, noisy_ladders, doubling, rebased, intervals])
def test_accuracy_options_change_no_scale(make: Any, promise: PureDP | ApproxDP) -> None:
    """E8: thresholds, n and the depth of the tree may follow them, the noise of the test and H's budget never."""
    base = replace(BASE, promise=promise)
    if make is bounded:
        base = replace(base, queries=LARGEST)
    reference = make(base)
    depths = set()
    for change in OTHERS:
        if make is noisy_ladders and change.get("largest", 1) is None:
            continue
        plan = make(replace(base, **change))
        assert plan.noise == reference.noise
        if plan.histogram == "binary-tree":
            engine = plan.engine(ZeroNoise().source())
            process = engine._process
            assert same(process.law, expected_node(make, promise, process.levels))
            depths.add(process.levels)
    assert make not in (bounded, noisy_ladders) or len(depths) > 2


def expected_node(make: Any, promise: PureDP | ApproxDP, levels: int) -> Law:
    shares: Shares = "thirds" if make is noisy_ladders else "halves"
    return expected(shares, promise, BASE.change, BASE.queries.count).node(Fraction(levels))


def test_the_start_of_doubling_changes_no_scale() -> None:
    for start in (None, 1, 17, 10**6):
        assert doubling(BASE, start).noise == doubling(BASE).noise
        plan = TwoLevelPlan(replace(BASE, queries=LARGEST), start)
        assert plan.outer.noise == TwoLevelPlan(BASE).outer.noise
        assert plan.inner(2).noise == plan.inner(1).noise == plan.outer.noise


def test_a_split_of_ones_own() -> None:
    split = Split.of("1/8", "3/8", "1/2")
    noise = rebased(replace(BASE, split=split)).noise
    assert noise.tau.scale == 8
    assert same(noise.mu, DiscreteLaplace(Fraction(16, 3)))
    assert noise.histogram == PureDP(Fraction(1, 2))
