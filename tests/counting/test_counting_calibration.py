"""Calibration in exact fractions: what one event can lose, summed over every noisy sum that it moves.

The laws and addresses are those that the running process really asked its source for (a recording). An event of l1-size
D1 and squared l2-size D2^2 that moves a sum by the coefficient a loses a D1/b there under Laplace noise, (a D2)^2/(2
sigma^2) under Gaussian noise. The total must not exceed the charge at any tick, and at the worst tick it must come near
it: the only slack allowed is the rounding of scales to 40 bits, 2^-39 of the charge. (Ticks other than the worst have
slack by nature: late ticks lie in fewer sums.)
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from counting_reference import (
    Statistic,
    bank_columns,
    epoch_tree_sums,
    honaker_sums,
    integer_factor,
    sqrt_sums,
    tree_sums,
)
from flint import arb, fmpq
from planted_ties import unrolled

import evertally as et
from evertally.counting.choose import build, choose
from evertally.counting.process import node_law
from evertally.counting.processes import Setting
from evertally.counting.tree import choose_radix
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Recording, ZeroNoise
from evertally.privacy import Change

BUDGETS = [et.PureDP(Fraction(7, 10)), et.PureDP(0.1), et.ZCDP(Fraction(1, 3)), et.ZCDP(0.01)]
CHANGE = Change(l1=6, l2_squared=14, linf=3)


def amount(budget: et.PureDP | et.ZCDP) -> Fraction:
    return budget.exact_epsilon if isinstance(budget, et.PureDP) else budget.exact_rho


def recorded(budget: Any, setting: Setting, mechanism: str, ticks: int, portions: int = 1) -> Recording:
    recording = Recording(ZeroNoise())
    process = build(choose(budget, setting, mechanism), setting, recording.source("test"))
    for _ in range(portions):
        process.advance(ticks // portions)
    return recording


def losses(recording: Recording, sums: Statistic, change: Change) -> list[Fraction]:
    """For each tick, what an event there loses in all sums that noise was drawn for."""
    drawn: dict[str, tuple[Any, set[int]]] = {}
    for entry in recording.draws:
        law, nodes = drawn.setdefault(entry.lane, (entry.law, set()))
        assert law == entry.law
        nodes.update(entry.nodes)
    total: list[Fraction] = []
    for lane, (law, nodes) in drawn.items():
        rows = np.array([sums[lane, node] for node in nodes])  # a KeyError: noise for a sum that nobody knows of
        if isinstance(law, DiscreteLaplace):
            moved, unit = np.abs(rows).sum(axis=0), change.l1 / law.scale
        else:
            assert isinstance(law, DiscreteGaussian)
            moved, unit = (rows**2).sum(axis=0), change.l2_squared / (2 * law.sigma_squared)
        part = [int(m) * unit for m in moved]
        total = [a + b for a, b in zip(total, part, strict=True)] if total else part
    return total


def check(total: list[Fraction], charge: Fraction) -> None:
    assert max(total) <= charge, "an event can lose more than is charged"
    assert max(total) >= charge * (1 - Fraction(1, 2**38)), "noise is wasted"


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize("radix", [2, 3, "formula", "exact"])
def test_tree(budget: Any, radix: Any) -> None:
    for T in range(1, 101):
        r = choose_radix(T, radix if T > 2 or isinstance(radix, str) else 2, isinstance(budget, et.PureDP))
        setting = Setting(CHANGE, T, 1, 2**20, r)
        total = losses(recorded(budget, setting, "tree", T), tree_sums(T, r), CHANGE)
        check(total, amount(budget))
        assert total[0] == max(total), "the first tick is the worst"


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_tree_with_regenerated_noise(budget: Any) -> None:
    T, r = 27, 3
    setting = Setting(CHANGE, T, 1, 8, r)
    check(losses(recorded(budget, setting, "tree", T), tree_sums(T, r), CHANGE), amount(budget))


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_honaker(budget: Any) -> None:
    for T in range(1, 101):
        setting = Setting(CHANGE, T, 1, 2**20)
        total = losses(recorded(budget, setting, "honaker", T), honaker_sums(T), CHANGE)
        check(total, amount(budget))
        assert total[0] == max(total)


@pytest.mark.parametrize("budget", BUDGETS[2:], ids=repr)
def test_sqrt(budget: Any) -> None:
    for T in range(1, 101):
        setting = Setting(CHANGE, T, 1, 2**20)
        total = losses(recorded(budget, setting, "sqrt", T), sqrt_sums(T), CHANGE)
        check(total, amount(budget))
        assert total == sorted(total, reverse=True)


@pytest.mark.parametrize("T", [1000, 4096])
def test_sqrt_of_long_horizons_pays_for_the_integers_it_uses(T: int) -> None:
    recording = recorded(et.ZCDP(0.5), Setting(CHANGE, T, 1, 2**20), "sqrt", T, portions=T // 8)
    law = recording.draws[0].law
    assert isinstance(law, DiscreteGaussian)
    loss = CHANGE.l2_squared * sum(r * r for r in integer_factor(T)) / (2 * law.sigma_squared)
    check([loss], Fraction(1, 2))


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_epoch_tree(budget: Any) -> None:
    T = 511
    setting = Setting(CHANGE, None, 1, 2**20)
    total = losses(recorded(budget, setting, "epoch-tree", T), epoch_tree_sums(T), CHANGE)
    assert len(total) > 300
    for k in range(9):  # every epoch spends the whole budget on its first tick
        epoch = total[2**k - 1 : 2 ** (k + 1) - 1]
        check(epoch, amount(budget))
        assert epoch[0] == max(epoch)


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_scales_are_rounded_up(budget: Any) -> None:
    for nodes in range(1, 200):
        law = node_law(budget, CHANGE, nodes)
        if isinstance(law, DiscreteLaplace):
            assert law.scale >= CHANGE.l1 * nodes / budget.exact_epsilon
        else:
            assert isinstance(law, DiscreteGaussian)
            assert law.sigma_squared >= CHANGE.l2_squared * nodes / (2 * budget.exact_rho)


# -- the same from outside, with sensitivities written down by hand ----------------------------------------------------

G, P = et.ZCDP(0.3), et.PureDP(0.9)
T20 = 20


def counter(**options: Any) -> Any:
    return lambda key, g, m: et.Counter(guarantee=g, horizon=T20, mechanism=m, key=key, **options)


def vector(columns: int, **options: Any) -> Any:
    return lambda key, g, m: et.VectorCounter(columns, guarantee=g, horizon=T20, mechanism=m, key=key, **options)


def mean(**options: Any) -> Any:
    return lambda key, g, m: et.RunningMean(
        lower=0, upper=10, resolution=1, guarantee=g, horizon=T20, mechanism=m, key=key, **options
    )


MECHANISMS = [
    # make, l1, l2^2 of the largest change of one event (or of all events of one user; replaced: users-and-domains 1.2)
    ("counter", counter(), 1, 1),
    ("counter, weights", counter(max_weight=7), 7, 49),
    ("counter, replace", counter(max_weight=7, neighbours="replace"), 7, 49),
    ("counter, signed", counter(max_weight=7, signed=True), 7, 49),
    ("counter, signed replace", counter(max_weight=7, signed=True, neighbours="replace"), 14, 196),
    ("counter, user", counter(max_weight=2, unit="user", max_events_per_user=5), 10, 100),
    (
        "counter, user replaced",
        counter(max_weight=2, unit="user", max_events_per_user=5, neighbours="replace"),
        20,
        200,
    ),
    (
        "counter, user replaced, as streams of earlier versions go on",
        counter(max_weight=2, unit="user", max_events_per_user=5, neighbours="replace", charging="events"),
        20,
        400,
    ),
    ("vector", vector(9, max_per_event=4), 4, 4),
    ("vector, weights", vector(9, max_per_event=4, max_weight=3), 12, 36),
    ("vector, replace", vector(9, max_per_event=4, neighbours="replace"), 8, 8),
    ("vector, replace, few columns", vector(5, max_per_event=4, neighbours="replace"), 5, 5),
    ("vector, signed replace", vector(9, max_per_event=4, signed=True, neighbours="replace"), 8, 16),
    ("vector, item", vector(9, max_per_event=4, protects="item"), 2, 2),
    ("vector, signed item", vector(9, max_per_event=4, protects="item", signed=True), 2, 4),
    ("vector, user", vector(9, max_per_event=4, unit="user", max_events_per_user=3), 12, 36),
    ("vector, other counts as a column", vector(4, max_per_event=9, other="rest", neighbours="replace"), 5, 5),
    ("mean", mean(), 10, 50),
    ("mean, replace", mean(neighbours="replace"), 10, 100),
    ("mean, user", mean(unit="user", max_events_per_user=3), 30, 450),
    ("mean, user replaced", mean(unit="user", max_events_per_user=3, neighbours="replace"), 60, 900),
]


@pytest.mark.parametrize(("name", "make", "l1", "l2_squared"), MECHANISMS, ids=[m[0] for m in MECHANISMS])
def test_mechanisms_pay_for_the_change_of_one_event(name: str, make: Any, l1: int, l2_squared: int) -> None:
    change = Change(l1, l2_squared, 1)
    for guarantee, mechanism in [(G, "tree"), (P, "tree"), (G, "honaker"), (P, "honaker"), (G, "sqrt")]:
        recording = Recording(ZeroNoise())
        made = make(recording, guarantee, mechanism)
        rows = (
            [[]] * T20 if isinstance(made, et.RunningMean) else np.zeros((T20, made._kept.played.state.size), dtype=int)
        )
        if made._users is None:
            made.run(rows[:, 0] if isinstance(made, et.Counter) else rows)
        else:
            for _ in range(T20):
                made.step_events([], users=[])
        sums = {
            "tree": lambda guarantee=guarantee: tree_sums(
                T20, choose_radix(T20, "formula", isinstance(guarantee, et.PureDP))
            ),
            "honaker": lambda: honaker_sums(T20),
            "sqrt": lambda: sqrt_sums(T20),
        }[mechanism]()
        assert made.charge == guarantee
        check(losses(recording, sums, change), amount(guarantee))


def test_independent_neighbours_pay_for_every_column() -> None:
    recording = Recording(ZeroNoise())
    guarantee = et.ZCDP(0.3, adversary="oblivious")
    made = et.VectorCounter(
        4, guarantee=guarantee, horizon=T20, mechanism="sqrt", neighbours="independent", max_per_event=4, key=recording
    )
    made.run(np.zeros((T20, 4), dtype=int))
    check(losses(recording, sqrt_sums(T20), Change(4, 4, 1)), guarantee.exact_rho)


@pytest.mark.parametrize(
    "guarantee", [et.ApproxDP(1.0, 1e-6), et.ApproxDP(0.1, 1e-2, force=True), et.ApproxZCDP(0.2, 1e-9)]
)
def test_converted_guarantees_are_covered_by_what_is_paid(guarantee: Any) -> None:
    for mechanism in ("tree", "honaker", "sqrt"):
        made = et.Counter(guarantee=guarantee, horizon=100, mechanism=mechanism, key=et.simulation(0))
        assert guarantee.covers(made.charge)
        recording = Recording(ZeroNoise())
        made = et.Counter(guarantee=guarantee, horizon=100, mechanism=mechanism, key=recording)
        made.run(np.zeros(100, dtype=int))
        pure = isinstance(made.charge, et.PureDP)
        sums = {
            "tree": lambda pure=pure: tree_sums(100, choose_radix(100, "formula", pure)),
            "honaker": lambda: honaker_sums(100),
            "sqrt": lambda: sqrt_sums(100),
        }[made.mechanism]()
        check(losses(recording, sums, Change(1, 1, 1)), amount(made.charge))


@pytest.mark.parametrize("guarantee", [et.ApproxDP(1.0, 1e-6), et.ApproxDP(0.1, 1e-2, force=True)])
def test_a_bank_alone_fills_its_promise(guarantee: Any) -> None:
    """optimal-counting 2.2: by the exact curve of mu = D2 sqrt(S)/sigma, in balls, and not by much less."""
    made = et.Counter(guarantee=guarantee, horizon=10, mechanism="bank", key=et.simulation(0), max_weight=3)
    assert made.charge == guarantee
    assert guarantee.covers(made.charge)
    noise: Any = made.noise
    sharpest = max(sum((x * x for x in column), Fraction(0)) for column in bank_columns(*unrolled(noise.bank)))
    mu_squared = 9 * sharpest / Fraction(noise.sigma) ** 2
    with flint.ctx.workprec(200):
        mu, epsilon = arb(fmpq(mu_squared.numerator, mu_squared.denominator)).sqrt(), arb(guarantee.epsilon)

        def normal(x: arb) -> arb:
            return (-x / arb(2).sqrt()).erfc() / 2

        lost = normal(mu / 2 - epsilon / mu) - epsilon.exp() * normal(-mu / 2 - epsilon / mu)
        assert lost <= arb(guarantee.delta)
        assert lost >= arb(guarantee.delta) * (1 - arb(2) ** -25)


def test_auto_takes_the_least_deviation_of_both_noises_and_pays_for_it() -> None:
    gauss, laplace = et.ApproxDP(0.1, 1e-2, force=True), et.ApproxDP(1.0, 1e-6)
    assert [
        (made.mechanism, made.charge)
        for made in (et.Counter(guarantee=g, horizon=100, key=et.simulation(0)) for g in (gauss, laplace))
    ] == [("bank", gauss), ("pure-blocks", et.PureDP(1))]
    counter = et.Counter(guarantee=et.ApproxZCDP(0.2, 1e-9), horizon=100, key=et.simulation(0))
    assert (counter.mechanism, counter.charge) == ("bank", et.ZCDP(0.2))
