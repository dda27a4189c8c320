"""Noise laws as drawn: what is honest is tight, and planted bugs are seen by the rows of a short audit.

Three of the bugs are samples of others (one-shot noise that is 10 % too small, levels of a tree capped at 4, a
threshold that falls with the table); the others are ours. No row of these plays games."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import evertally as et
from audit.bugs.planting import Bug, replaced
from evertally.audit.laws.full_horizon import full_horizon_report
from evertally.audit.laws.one_shot import release_report, selection_of
from evertally.audit.laws.own_arithmetic import Unit, log_laplace_difference, tick_counts
from evertally.audit.laws.solved import solved
from evertally.audit.laws.tap import Tap
from evertally.audit.laws.thresholds import release_threshold_report
from evertally.audit.report import Report
from evertally.audit.suite import plan, run
from evertally.bounds import selection as bounds
from evertally.bounds.selection import Threshold
from evertally.counting import bank, honaker, tree
from evertally.dynamic import node
from evertally.dynamic.static.additive import Additive
from evertally.noise import DiscreteGaussian, DiscreteLaplace
from evertally.privacy import ApproxDP, ApproxZCDP
from evertally.selection import histograms, noisy_max
from evertally.selection.histograms import (
    FixedThresholdGauss,
    KnownGauss,
    KnownGumbel,
    LimitedDomainLaplace,
    UnknownGauss,
    UnknownGumbel,
)
from evertally.selection.item_engine import ItemEngine
from evertally.selection.reach import Reach
from evertally.selection.sparse_gumbel_budget import SparseGumbelBudget
from evertally.statistics import StreamingTopK, streaming, unknown

ROWS = ("full horizon", "one-shot law", "threshold", "exact law")
A, Z, P = et.ApproxDP(1.0, 1e-6), et.ZCDP(0.5), et.PureDP(1.0)

Make = Callable[[Any], Any]


def counter(guarantee: Any, horizon: int | None, mechanism: str, **options: Any) -> Make:
    return lambda key: et.Counter(guarantee=guarantee, horizon=horizon, mechanism=mechanism, key=key, **options)


def words(guarantee: Any = A, horizon: int = 100, **options: Any) -> Make:
    return lambda key: et.UnknownHistogram(guarantee=guarantee, horizon=horizon, key=key, **options)


def labels(k: int = 2, **options: Any) -> Make:
    return lambda key: et.UnknownTopK(k, guarantee=A, horizon=100, key=key, **options)


def top(guarantee: Any = Z, **options: Any) -> Make:
    return lambda key: StreamingTopK(2, columns=list("abcde"), guarantee=guarantee, horizon=60, key=key, **options)


def largest(guarantee: Any, horizon: int | None, **options: Any) -> Make:
    return lambda key: et.MaxSum(
        columns=5, guarantee=guarantee, horizon=horizon, mechanism="bounded", key=key, **options
    )


def present(guarantee: Any, mechanism: str) -> Make:
    return lambda key: et.DynamicCount(guarantee=guarantee, horizon=30, mechanism=mechanism, key=key)


def rows(make: Make, *names: str) -> dict[str, Report]:
    """The rows about laws of a short audit; where a name comes twice, the one that found more."""
    found: dict[str, Report] = {}
    for step in plan(make, "short"):
        if step.name in (names or ROWS):
            report = run(step)
            if step.name not in found or report.fraction > found[step.name].fraction:
                found[step.name] = report
    return found


# -- honest ones -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guarantee", "horizon", "mechanism", "least"),
    [
        (Z, 2**16, "tree", 0.999),
        (P, 2**16, "tree", 0.999),
        (Z, 10**4, "tree", 0.999),
        (P, 2**30, "tree", 0.999),
        (Z, 2**8, "honaker", 0.85),
        (Z, 2**12, "sqrt", 0.9),
        (Z, 2**16, "bank", 0.98),
        (A, 2**14, "bank", 0.98),
        (Z, None, "bank-open", 0.85),
        (Z, None, "epoch-tree", 0.999),
        (P, None, "epoch-tree", 0.999),
        (P, 2**16, "pure-blocks", 0.999),
        (P, None, "epoch-blocks", 0.999),
    ],
)
def test_linear_noise_is_tight_at_the_full_horizon(guarantee, horizon, mechanism, least):
    report = full_horizon_report(counter(guarantee, horizon, mechanism)(et.simulation(0)))
    assert report.aspect == "noise"
    assert report.verdict == "holds (tight)"
    assert least <= report.fraction <= 1 + 1e-9


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda **o: words(max_per_event=2, **o), {"threshold", "exact law"}),
        (lambda **o: words(threshold="per_tick", sticky=True, **o), {"threshold", "exact law"}),
        (lambda **o: words(unit="user", max_events_per_user=3, max_weight=2, **o), {"threshold"}),
        (lambda **o: words(mechanism="meta", max_per_event=2, **o), {"threshold", "one-shot law"}),
        (lambda **o: words(mechanism="meta", kbar=5, unit="user", max_events_per_user=3, **o), {"threshold"}),
        (lambda **o: labels(mechanism="meta", **o), {"threshold", "one-shot law"}),
        (lambda **o: top(mechanism="meta", **o), {"one-shot law"}),
        (lambda **o: top(mechanism="meta-gauss", max_per_event=2, max_weight=3, **o), {"one-shot law"}),
        (lambda **o: top(et.ApproxDP(2.0, 1e-6), switches=2, **o), {"exact law"}),
    ],
)
def test_labels_and_selections_are_tight(make, names, relation):
    found = rows(make(neighbours=relation))
    assert names <= found.keys()
    assert {name: report.verdict for name, report in found.items()} == dict.fromkeys(found, "holds (tight)")
    assert all(report.fraction <= 1 + 1e-9 for report in found.values())


def test_histograms_of_partitions_are_tight_for_all_their_intervals():
    report = rows(largest(P, None, largest=50))["full horizon"]
    assert report.unit == "epsilon of H"
    assert report.verdict == "holds (tight)"


@pytest.mark.parametrize("guarantee", [P, Z])
@pytest.mark.parametrize("mechanism", ["subtract", "interval-tree", "anew"])
def test_static_mechanisms_use_all_of_their_budgets(guarantee, mechanism):
    report = rows(present(guarantee, mechanism))["one-shot law"]
    assert report.verdict == "holds (tight)"


def test_nothing_is_audited_elsewhere():
    for make in (words(), labels(), top(mechanism="meta")):
        assert "not here" not in {step.name for step in plan(make, "short")}


@pytest.mark.parametrize("unit", [Unit(2, 3, 2, False), Unit(2, 3, 2, True), Unit(1, 1, 1, False)])
def test_single_releases_are_tight(unit):
    reach = Reach(unit.weight, "replace" if unit.replaced else "add_remove", unit.events)
    rho, delta = et.ZCDP(0.5), ApproxZCDP(0.5, 1e-6)
    for one_shot, charge in (
        (KnownGauss.within(rho, unit.labels, reach), rho),
        (KnownGumbel.within(rho, 2, reach=reach), rho),
        (UnknownGauss.within(delta, 20, unit.labels, reach), delta),
        (FixedThresholdGauss.within(delta, unit.labels, reach), delta),
        (UnknownGumbel.within(delta, 2, 20, reach=reach), delta),
        (LimitedDomainLaplace.within(ApproxDP(1.0, 1e-6), 20, unit.labels, reach), ApproxDP(1.0, 1e-6)),
    ):
        if unit.events == 1 or not unit.labels > 1:  # several labels of several events cannot all move that far
            report = release_report(one_shot, charge, unit)
            assert report.passed
            assert report.verdict == "holds (tight)", type(one_shot).__name__
        if hasattr(one_shot, "margin"):
            model = SimpleNamespace(charge=charge, guarantee=charge, mechanism="one release", horizon=1)
            height = release_threshold_report(one_shot, charge, unit, model)
            assert height.passed, type(one_shot).__name__
            assert height.fraction > 0.9, type(one_shot).__name__


# -- parts -------------------------------------------------------------------------------------------------------------


def test_a_lane_with_two_laws_is_noticed():
    tap = Tap()
    tap.draws("lane", DiscreteGaussian(1), [1, 2])
    assert tap.twice() == []
    tap.draws("lane", DiscreteGaussian(2), [3])
    assert [drawn.node for drawn in tap.twice()] == [3]


def test_digit_sums_and_tails_are_those_of_the_definition():
    for T, r in ((10, 3), (365, 6), (1000, 2)):
        sums = [sum(int(d, 36) for d in np.base_repr(t, r)) for t in range(1, T + 1)]
        assert tick_counts(T, r) == {s: sums.count(s) for s in sorted(set(sums))}
    for scale in (0.7, 3.0):
        k = np.arange(-200, 201)
        law = np.exp(-np.abs(k) / scale) * np.tanh(0.5 / scale)
        difference = np.convolve(law, law)  # from -400 on
        for n in (1, 2, 9):
            assert log_laplace_difference(n, scale) == pytest.approx(np.log(difference[400 + n :].sum()), abs=1e-9)


def test_a_guess_that_the_program_does_not_confirm_is_no_finding():
    model = counter(Z, 64, "bank")(et.simulation(0))
    coefficients = model.noise.bank
    model._engine.noise.bank = replace(coefficients, K=coefficients.K * 1.01)
    assert solved(model, 64, [1]) is None


def test_the_scale_of_a_selection_is_that_of_the_program():
    assert selection_of(KnownGumbel(3, Fraction(5, 4))).scale == pytest.approx(1.25)
    assert selection_of(KnownGauss(3, 1)) is None


# -- bugs --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Planted:
    """A bug, what it is planted in, and the row that must call it broken."""

    name: str
    bug: Callable[[], Bug]
    make: Make
    row: str


def smaller_variance(part: Fraction) -> Bug:
    return replaced(histograms._Gauss, law=property(lambda self: DiscreteGaussian(self.variance * part)))


def capped_levels(most: int, *modules: Any) -> Bug:
    original = tree.blocks_law

    def law(charge: Any, change: Any, radix: int, levels: int, *rest: Any) -> Any:
        return original(charge, change, radix, min(levels, most), *rest)

    stack = ExitStack()
    for module in modules:
        stack.enter_context(replaced(module, blocks_law=law))
    return stack


def few_levels(most: int) -> Bug:
    original = tree.L
    return replaced(tree, L=lambda horizon, radix: min(most, original(horizon, radix)))


def falling_threshold() -> Bug:
    original = ItemEngine.released

    def released(self: Any, tick: int) -> Any:
        public = self.threshold
        self.threshold = SimpleNamespace(at=lambda t: public.at(t) - len(self.table) // 100)
        found = original(self, tick)
        self.threshold = public
        return found

    return replaced(ItemEngine, released=released)


def draws_again(period: int) -> Bug:
    original = tree.blocks

    def blocks(t: int, radix: int) -> list[int]:
        return [block % period or period for block in original(t, radix)]

    def noise(self: Any, count: int = 1) -> Any:
        out = np.stack([self._noise(t) for t in range(self.tick + 1, self.tick + count + 1)])
        self.tick += count
        return out

    stack = ExitStack()
    stack.enter_context(replaced(tree, blocks=blocks))
    stack.enter_context(replaced(tree.TreeProcess, advance=noise, seek=lambda self, t: setattr(self, "tick", t)))
    return stack


def other_threshold(**changed: Any) -> Bug:
    def made(*arguments: Any, **options: Any) -> Threshold:
        return replace(Threshold(*arguments, **options), **changed)

    return replaced(unknown, Threshold=made)


def delta_of_one_label() -> Bug:
    original = unknown.ItemFinder._by_tree
    return replaced(
        unknown.ItemFinder,
        _by_tree=lambda self, charge, moved, at_risk, most=None: original(self, charge, moved, 1, most),
    )


def smaller_share(module: Any) -> Bug:
    original = module.block_share
    stack = ExitStack()
    stack.enter_context(
        replaced(module, block_share=lambda charge, depth, *rest: original(charge, max(1, depth - 1), *rest))
    )
    stack.enter_context(replaced(module, paid_by=lambda charge, one_shot, *rest: one_shot))
    return stack


def scaled_property(name: str, part: Fraction) -> Bug:
    original = vars(SparseGumbelBudget)[name].fget

    def changed(self: Any) -> Any:
        found = original(self)
        return DiscreteLaplace(found.scale * part) if isinstance(found, DiscreteLaplace) else found * part

    return replaced(SparseGumbelBudget, **{name: property(changed)})


def cheap_counters() -> Bug:
    original = vars(SparseGumbelBudget)["instance"].fget

    def instance(self: Any) -> Any:
        charge, change = original(self)
        return et.ZCDP(charge.exact_rho * (self.switches + 1) / self.switches), change

    return replaced(SparseGumbelBudget, instance=property(instance))


def quiet_bank(part: float) -> Bug:
    original = bank.root_above
    return replaced(bank, root_above=lambda square: original(square) * part)


def half_additive() -> Bug:
    original = Additive.law

    def law(self: Any, budget: Any) -> Any:
        found = original(self, budget)
        if isinstance(found, DiscreteLaplace):
            return DiscreteLaplace(found.scale * Fraction(9, 10))
        return DiscreteGaussian(found.sigma_squared * Fraction(81, 100))

    return replaced(Additive, law=law)


def quiet_sizes() -> Bug:
    original = node.size_law
    return replaced(node, size_law=lambda budget: DiscreteLaplace(original(budget).scale / 2))


def selected_at_half_the_scale() -> Bug:
    original = noisy_max.noisy_argmax
    return replaced(histograms, noisy_argmax=lambda scores, scale, *rest: original(scores, scale / 2, *rest))


def margin_of_one_draw() -> Bug:
    original = bounds.gaussian_margin
    return replaced(histograms, gaussian_margin=lambda variance, delta: original(variance / 2, delta))


def low_gumbel_margin() -> Bug:
    original = bounds.gumbel_margin
    stack = ExitStack()
    stack.enter_context(replaced(histograms, gumbel_margin=lambda scale, delta: original(scale, delta) - 1))
    stack.enter_context(replaced(unknown, paid_by=lambda charge, one_shot, *rest: one_shot))
    return stack


def one_way_replacement() -> Bug:
    return replaced(Reach, l2_squared=lambda self, max_items: max_items * self.move**2)


def events_of_users_forgotten() -> Bug:
    return replaced(Reach, move=property(lambda self: self.max_weight))


USERS = {"unit": "user", "max_events_per_user": 3}

SAMPLES = [
    Planted("6, blocks", lambda: smaller_variance(Fraction(81, 100)), top(mechanism="meta-gauss"), "one-shot law"),
    Planted("6, labels", lambda: smaller_variance(Fraction(81, 100)), words(mechanism="meta"), "one-shot law"),
    Planted("6, static", half_additive, present(Z, "subtract"), "one-shot law"),
    Planted("6, static and pure", half_additive, present(P, "interval-tree"), "one-shot law"),
    Planted("7, Gaussian", lambda: capped_levels(4, tree), counter(Z, 2**16, "tree"), "full horizon"),
    Planted("7, binary", lambda: capped_levels(4, tree), counter(P, 2**16, "tree", radix=2), "full horizon"),
    Planted("7, refined", lambda: capped_levels(4, honaker), counter(P, 2**16, "honaker"), "full horizon"),
    Planted("7, Laplace, longer", lambda: capped_levels(4, tree), counter(P, 2**24, "tree"), "full horizon"),
    Planted("8", falling_threshold, words(), "threshold"),
]

OURS = [
    Planted("one level forgotten", lambda: capped_levels(8, tree), counter(Z, 10**6, "tree", radix=4), "full horizon"),
    Planted("draws that come again", lambda: draws_again(2**12), counter(Z, 2**16, "tree"), "full horizon"),
    Planted("a quiet bank", lambda: quiet_bank(0.95), counter(Z, 2**14, "bank"), "full horizon"),
    Planted("a quiet bank without end", lambda: quiet_bank(0.85), counter(Z, None, "bank-open"), "full horizon"),
    Planted("epochs of few levels", lambda: capped_levels(4, tree), counter(P, None, "epoch-tree"), "full horizon"),
    Planted("inserts of few levels", lambda: capped_levels(4, tree), largest(P, None, largest=50), "full horizon"),
    Planted("a threshold one too low", lambda: other_height(-1), words(), "threshold"),
    Planted("labels of an event", delta_of_one_label, words(max_per_event=3), "threshold"),
    Planted("one tick", lambda: other_threshold(T=1), words(), "threshold"),
    Planted("weights", lambda: other_threshold(move=1), words(max_weight=4), "threshold"),
    Planted("events of a user", lambda: other_threshold(move=1), words(**USERS), "threshold"),
    Planted("noise of one level", lambda: few_levels_of_items(), words(), "exact law"),
    Planted("a margin for one draw", margin_of_one_draw, words(mechanism="meta"), "threshold"),
    Planted("a low Gumbel threshold", low_gumbel_margin, labels(mechanism="meta"), "threshold"),
    Planted("delta of each level", lambda: smaller_share(unknown), words(mechanism="meta"), "threshold"),
    Planted("rho of each level", lambda: smaller_share(streaming), top(mechanism="meta"), "one-shot law"),
    Planted("selected at half the scale", selected_at_half_the_scale, top(mechanism="meta"), "one-shot law"),
    Planted(
        "one way",
        one_way_replacement,
        top(mechanism="meta-gauss", max_per_event=2, neighbours="replace"),
        "one-shot law",
    ),
    Planted("a user's events", events_of_users_forgotten, words(mechanism="meta", **USERS), "one-shot law"),
    Planted("sizes of nodes", quiet_sizes, present(P, "interval-tree"), "one-shot law"),
    Planted(
        "quiet questions",
        lambda: scaled_property("query", Fraction(1, 2)),
        top(et.ApproxDP(2.0, 1e-6), switches=2),
        "exact law",
    ),
    Planted(
        "quiet bars",
        lambda: scaled_property("threshold", Fraction(1, 2)),
        top(et.ApproxDP(2.0, 1e-6), switches=2),
        "exact law",
    ),
    Planted(
        "loud selections",
        lambda: scaled_property("gumbel_scale", Fraction(2, 3)),
        top(et.ApproxDP(2.0, 1e-6), switches=2),
        "exact law",
    ),
    Planted("one selection forgotten", cheap_counters, top(et.ApproxDP(2.0, 1e-6), switches=2), "exact law"),
]


def other_height(by: int) -> Bug:
    original = Threshold.at
    return replaced(Threshold, at=lambda self, t: original(self, t) + by)


def few_levels_of_items() -> Bug:
    original = unknown.node_law
    return replaced(unknown, node_law=lambda charge, change, levels: original(charge, change, max(1, levels - 1)))


@pytest.mark.parametrize("guarantee", [P, Z])
def test_a_tree_that_has_too_few_levels_everywhere_is_broken(guarantee):
    # Not through the whole plan: compiled code that leaves its arrays ends the process.
    with few_levels(4):
        report = full_horizon_report(counter(guarantee, 2**16, "tree")(et.simulation(0)))
    assert report.verdict == "broken"


@pytest.mark.parametrize("planted", SAMPLES + OURS, ids=lambda planted: planted.name)
def test_planted_bugs_are_seen(planted):
    assert rows(planted.make, planted.row)[planted.row].passed
    with planted.bug():
        report = rows(planted.make, planted.row)[planted.row]
    assert report.verdict == "broken"
    assert report.audited > report.claimed
