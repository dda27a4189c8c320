"""Workloads: factors, norms, releases as functions of y, tails, refusals (additions 11)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import arb_series
from workload_mutants import (
    MUTANTS,
    Probe,
    bank_probe,
    coarse_weights_probe,
    endless_probe,
    first_event_probe,
    function_of_y_probe,
    losses,
    matrix,
    play,
    user_probe,
)

import evertally as et
from evertally.balls import at_precision, with_terms
from evertally.counting import bank, toeplitz_factor
from evertally.counting.bank_schedule import build_bank
from evertally.counting.fourier import convolve
from evertally.counting.sqrt_factor import GRID_BITS
from evertally.counting.toeplitz import ToeplitzProcess, law_of
from evertally.counting.toeplitz_factor import input_factor, root_factor
from evertally.counting.weighing import AverageEngine, WeightedEngine
from evertally.counting.workloads import ByAge, Decay, Toeplitz, Weights, Window, read
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteLaplace, simulation
from evertally.privacy import ZCDP, Change, PureDP

CONCENTRATED = ZCDP(0.5)
UNIT = 2.0**GRID_BITS


def counter(workload: Any, **options: Any) -> et.Counter:
    return et.Counter(
        **({"workload": workload, "guarantee": CONCENTRATED, "horizon": 64, "key": simulation(1)} | options)
    )


# -- factors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "workload",
    [Decay("0.9"), Decay("1/3"), Window(1), Window(2), Window(24), Toeplitz([2, 1, "1/2"]), Toeplitz([1, 0, 0, -1])],
)
def test_root_squared_is_the_workload_and_l_times_r_exactly(workload: ByAge) -> None:
    T = 200
    factor, series = root_factor(workload, T), workload.series()
    real = factor.r / UNIT
    square, _ = convolve(real, real, 0, T)
    wanted = np.zeros(T)
    wanted[: len(series.weights)] = np.array(series.weights[:T]) / series.weights[0]
    assert np.max(np.abs(square - wanted)) < 1e-3  # r is rounded to 2^-16, and squares add up what is lost
    product, slack = convolve(factor.inverse, real, 0, T)
    wanted *= series.weights[0] / series.unit
    assert np.max(np.abs(product - wanted)) < 1e-9 + slack + factor.inverse_error * np.linalg.norm(real)


@pytest.mark.parametrize(("lam", "norm"), [("0.9", 1.451843), ("0.99", 2.136878), ("0.999", 2.861986)])
def test_norm_of_a_decay_is_the_elliptic_integral(lam: str, norm: float) -> None:
    m, a, b = float(Fraction(lam)) ** 2, 1.0, 0.0
    b = math.sqrt(1 - m)
    for _ in range(40):
        a, b = (a + b) / 2, math.sqrt(a * b)
    assert 1 / a == pytest.approx(norm, abs=5e-7)  # (2/pi) K(m) by the arithmetic-geometric mean
    factor = root_factor(Decay(lam), 4096 if lam != "0.999" else 16384)
    assert factor.column_norm_squared / UNIT**2 == pytest.approx(norm, rel=2e-5)
    assert factor.falls
    spent = factor.column_norm_squared * float(np.sum(factor.inverse**2)) / UNIT**2
    assert math.sqrt(spent) == pytest.approx(norm, rel=2e-5)


def dirichlet(W: int) -> float:
    """(1/2 pi) int |sin(W th/2)/sin(th/2)| dth, by the antiderivative between its zeros."""
    ends = np.append(2 * np.pi * np.arange(0, W // 2 + 1) / W, np.pi)
    total = np.zeros(ends.size)
    for j in range(W):
        frequency = (W - 1 - 2 * j) / 2
        total += ends if frequency == 0 else np.sin(frequency * ends) / frequency
    return float(np.sum(np.abs(np.diff(total)))) / np.pi


@pytest.mark.parametrize(("W", "norm"), [(64, 2.674967), (365, 3.380570), (1024, 3.798651)])
def test_norm_of_a_window_is_the_dirichlet_integral(W: int, norm: float) -> None:
    assert norm - 1e-6 <= dirichlet(W) <= norm
    factor = root_factor(Window(W), 32 * W)
    spent = factor.column_norm_squared / UNIT**2
    assert norm * (1 - 4e-5) < spent < norm  # a beginning has less than S_inf
    assert not factor.falls


def test_factors_certify_their_inverse() -> None:
    """Against many digits; the bound is about the Euclidean norm of the difference."""
    for workload, T in ((Decay("0.97"), 300), (Window(7), 300), (Toeplitz([3, -1, 1]), 100)):
        factor, series = root_factor(workload, T), workload.series()

        def exactly(factor: Any = factor, series: Any = series, T: int = T) -> list[float]:
            quotient = arb_series(list(series.weights[:T]), prec=T) / arb_series(factor.r.tolist(), prec=T)
            return [float(c.mid()) * UNIT / series.unit for c in quotient.coeffs()]

        exact = at_precision(400, lambda e=exactly, T=T: with_terms(T, e))
        assert np.linalg.norm(factor.inverse[: len(exact)] - np.array(exact)) <= factor.inverse_error + 1e-15


def test_the_tail_of_an_endless_decay_is_below_its_bound() -> None:
    factor = root_factor(Decay("0.8"), None)
    n, series = factor.inverse.size, Decay("0.8").series()
    r = [*factor.r.tolist(), *[0] * n]

    def exactly() -> list[float]:
        quotient = arb_series(list(series.weights), prec=2 * n) / arb_series(r[: 2 * n], prec=2 * n)
        return [abs(float(c.mid())) * UNIT / series.unit for c in quotient.coeffs()[n:]]

    beyond = sum(at_precision(600, lambda: with_terms(2 * n, exactly)))
    assert 0 < beyond < factor.tail
    assert factor.tail * 2.0**63 / UNIT <= 2.0**-36


@pytest.mark.parametrize("lam", ["0.5", "0.8", "0.97"])
def test_the_bound_of_a_tail_is_the_proved_one(lam: str) -> None:
    """Additions 11: beyond n terms there is at most 4 ||A/D|| p^-n, in the norm of a p = lam^(-i/8)."""
    factor, series = root_factor(Decay(lam), None), Decay(lam).series()
    n = factor.inverse.size

    def proved(p: float) -> float:
        size = math.fsum(weight / series.unit * p**k for k, weight in enumerate(series.weights))
        return 4 * size * p**-n * UNIT / 2.0**factor.bits

    assert any(proved(float(lam) ** (-i / 8)) <= factor.tail for i in (1, 2, 3, 4))


def test_what_was_forgotten_may_decide_a_tie() -> None:
    """Exactly one half, up to what the draws before the last ones add: undecided with a cut, up without one."""
    factor = root_factor(Decay("1/4"), None)
    nothing = np.zeros(5, dtype=np.int64)
    assert factor.tail > 0
    assert factor.rounded(nothing, factor.unit // 2) == 1
    assert factor.rounded(nothing, factor.unit // 2, cut=True) is None
    assert factor.rounded(nothing, factor.unit // 4, cut=True) == 0


def test_a_window_is_refused_where_its_root_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toeplitz_factor, "_MOST_WORK", 8 * 8 // 2)
    assert toeplitz_factor._window_root(2, 8).size == 8
    with pytest.raises(ConfigurationError, match="too long"):
        toeplitz_factor._window_root(2, 9)


def test_the_longest_windows_and_the_slowest_decays() -> None:
    assert Window(2**22).ticks == 2**22
    with pytest.raises(ConfigurationError, match="window"):
        Window(2**22 + 1)
    slowest = 1 - Fraction(20, 2**22)
    assert Decay(slowest).factor == slowest
    with pytest.raises(ConfigurationError, match="slower than any stream"):
        Decay(1 - Fraction(19, 2**22))


# -- privacy -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", [Decay("2/3"), Window(2), Window(4), Toeplitz([1, -1, "1/2"])])
def test_users_and_single_events_by_enumeration(workload: ByAge) -> None:
    """All changes of three events in five ticks, with the integers used: at most rho, and for one event all of it."""
    assert user_probe(workload) is None
    factor = root_factor(workload, 5)
    lost = losses(factor, law_of(CONCENTRATED, Change(1, 1, 1), factor), np.eye(5, dtype=np.int64))
    assert Fraction(1, 2) * (1 - Fraction(1, 2**38)) <= lost <= Fraction(1, 2)


def test_laplace_noise_on_inputs_is_the_laplace_mechanism() -> None:
    law = law_of(PureDP(2), Change(3, 9, 3), input_factor(Window(5), None))
    assert law == DiscreteLaplace(Fraction(3, 2))


def test_signed_weights_would_break_the_sign_split() -> None:
    """factorization-counting 6.10: D = (+1, -1) with beta = (1, -1) has squared norm 3.66 S_T at T = 2^12, not 2."""
    f = np.cumprod(np.concatenate([[1.0], (2 * np.arange(1, 4096) - 1) / (2 * np.arange(1, 4096))]))
    moved = f + np.concatenate([[0.0], f[:-1]])
    assert float(np.sum(moved**2) / np.sum(f**2)) == pytest.approx(3.66, abs=0.005)
    with pytest.raises(ConfigurationError, match="Negative weights"):
        Weights([1, -1])


def test_weights_are_charged_by_the_heaviest() -> None:
    made = counter(Weights([1, 5, 0, 100]), horizon=3, guarantee=PureDP(1), max_weight=2)
    assert made.sensitivity == Change(10, 100, 10)  # 100 is beyond the horizon
    users = counter(Weights([2, 3]), horizon=2, unit="user", max_events_per_user=4)
    assert users.sensitivity == Change(12, 144, 12)


# -- releases ----------------------------------------------------------------------------------------------------------


def test_releases_are_functions_of_y_alone() -> None:
    assert function_of_y_probe() is None


def test_ties_are_decided_with_the_sum() -> None:
    """Draws that make e_1 + rest/unit exactly one half: up, whoever brings the half; a part less goes down."""
    half = Toeplitz(["1/2"])
    for z, x, released in (
        (0, 1, 1),
        (2**GRID_BITS, 0, 1),
        (2**GRID_BITS - 1, 0, 0),
        (-1, 1, 0),
        (-(2**GRID_BITS), 1, 0),
    ):
        assert play(half, [x], [z]) == [released]
    third = Toeplitz([1, "1/3"], resolution="1/2")
    assert play(third, [1, 1], [0, 0]) == [2, 3]  # 2 and 8/3 in steps of one half
    assert play(third, [1, 1], [0, -(2**14) * 4 // 6]) == [2, 2]


def test_forcing_the_slow_way_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for workload, horizon in ((Decay("0.6"), None), (Decay("0.6"), 40), (Window(3), 40), (Toeplitz([1, "1/3"]), 40)):
        inputs = [(7 * t * t) % 5 for t in range(40)]
        expected = counter(workload, horizon=horizon, mechanism="root").run(inputs)
        with monkeypatch.context() as patch:
            patch.setattr(
                "evertally.counting.sqrt.round_half_up",
                lambda centre, radius: (np.zeros(centre.shape, dtype=np.int64), np.ones(centre.shape, dtype=bool)),
            )
            assert np.array_equal(counter(workload, horizon=horizon, mechanism="root").run(inputs), expected)


def test_an_endless_path_is_that_of_a_long_horizon_beyond_its_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that forget their first draws, and the slow way from the last draws alone."""
    factor = root_factor(Decay("1/4"), None)
    T = 3 * factor.inverse.size

    def process(horizon: int | None) -> ToeplitzProcess:
        source = simulation(3).source("path")
        return ToeplitzProcess(CONCENTRATED, Change(1, 1, 1), factor, horizon=horizon, columns=2, source=source)

    rests = np.arange(2 * T).reshape(T, 2) * 7919 % factor.unit
    whole = process(None).advance(T, rests)
    assert root_factor(Decay("1/4"), T) is factor  # a horizon so long changes nothing
    assert np.array_equal(process(T).advance(T, rests), whole)
    single = process(None)
    single.seek(T - 9)
    assert np.array_equal(single.advance(9, rests[-9:]), whole[-9:])
    z = simulation(3).source("path").draws("toeplitz", process(None).law, range(1, T + 1), 2)
    reach = factor.inverse.size
    for t in (reach - 1, reach + 5, T):
        for j in range(2):
            assert factor.rounded(z[:t, j], int(rests[t - 1, j])) == whole[t - 1, j]
            last = factor.rounded(z[max(0, t - reach) : t, j], int(rests[t - 1, j]), cut=t > reach)
            assert last == whole[t - 1, j]
    monkeypatch.setattr(
        "evertally.counting.sqrt.round_half_up",
        lambda centre, radius: (np.zeros(centre.shape, dtype=np.int64), np.ones(centre.shape, dtype=bool)),
    )
    for decided in (True, False):  # by the last draws, or by all since tick 1
        if not decided:
            monkeypatch.setattr("evertally.counting.toeplitz_factor.rounded_within", lambda *given: None)
        slow = process(None)
        slow.seek(T - 2)
        assert np.array_equal(slow.advance(2, rests[-2:]), whole[-2:])


@pytest.mark.parametrize("workload", [Decay("0.9"), Window(6), Toeplitz([1, -1, "1/2"])])
def test_noise_has_the_variance_it_is_quoted_with(workload: ByAge) -> None:
    """3000 independent columns: the mean of squares is within six deviations, 6 sqrt(2/3000) = 0.155."""
    T, d = 20, 3000
    made = et.VectorCounter(
        d, workload=workload, guarantee=CONCENTRATED, horizon=T, mechanism="root", key=simulation(5)
    )
    last = made.run(np.zeros((T, d), dtype=np.int64))[-1]
    assert float(np.mean(last.astype(float) ** 2)) / made.stddev(T) ** 2 == pytest.approx(1, abs=0.155)
    r = matrix(root_factor(workload, T), 1)
    assert int(r[0, 0]) == 2**GRID_BITS


def test_windows_are_differences_of_running_totals() -> None:
    inputs = [(5 * t) % 7 for t in range(40)]
    made = counter(Window(6), mechanism="tree", horizon=40, guarantee=PureDP(1))
    # the same noise, by its address: the difference of what the process gives
    noise = made._engine._make()._now.advance(40)[:, 0]
    sums = np.cumsum(inputs) + noise
    lagged = np.concatenate([np.zeros(6, dtype=np.int64), sums[:-6]])
    assert np.array_equal(made.run(inputs), sums - lagged)
    assert [way.name for way in made.ways() if not way.refused] == ["input", "pure-blocks", "tree", "honaker"]


def test_a_window_keeps_the_coefficients_that_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both of its ends: restored by another version, and after an interrupted call."""
    begun, calm = (counter(Window(6), mechanism="bank", horizon=40, guarantee=et.ZCDP(0.5)) for _ in range(2))
    for ticks in (3, 12):  # with and without a tick to look back on
        assert (begun.run([1] * ticks) == calm.run([1] * ticks)).all()
        with monkeypatch.context() as other_version:
            other_version.setattr(bank, "build_bank", lambda horizon: build_bank(horizon, 2))
            begun = et.restore(begun.snapshot(), key=begun.key)
            assert begun.step(2).value == calm.step(2).value
            begun._engine.go_back(begun.tick, begun._kept.played.state)
            assert begun.step(3).value == calm.step(3).value
    with pytest.raises(et.StateError):
        begun._engine.noise.recall(5, b"no coefficients at all")


def test_an_average_is_the_running_total_divided() -> None:
    common: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 300, "mechanism": "sqrt"}
    average = et.Counter(workload=et.workloads.Average("1/1000"), **common, key=et.simulation(1))
    values = average.run([5] * 300)
    # post-processing: the same guarantee, and noise that a running total of this address would have, divided by t
    exact = np.cumsum([5] * 300)
    noise = values * np.arange(1, 301) - exact
    assert np.abs(noise - np.rint(noise)).max() <= 0.5 * 300 / 1000 + 1e-6
    assert average.stddev(300) == pytest.approx(et.Counter(**common, key=et.simulation(2)).stddev(300) / 300, rel=0.01)
    assert np.abs(values - 5).max() <= average.error_bound(beta=1e-6)
    assert average.error_bound(0.05, tick=300) < average.error_bound(0.05) / 20
    again = et.Counter(workload={"average": "1/1000"}, **common, key=et.simulation(1))
    low, high = again.step(5).interval(beta=1e-6)
    assert low <= 5 <= high


class Unsurveyed:
    """A process that knows the spread of a tick, and not where it is widest."""

    horizon, columns, tick = 10**6, 1, 0

    def spread(self, tick: int) -> Any:
        raise AssertionError("too many to ask one by one")

    def worst(self) -> Any:  # over the whole horizon: that it fits 64 bits is asked before the stream begins
        return SimpleNamespace(radius=lambda beta: 1.0)


def test_where_nobody_knows_the_widest_spread_nobody_says_one() -> None:
    for engine in (
        WeightedEngine(Unsurveyed, (1, 2), (1, 3)),  # type: ignore[arg-type]
        AverageEngine(Unsurveyed, 10),  # type: ignore[arg-type]
    ):
        assert engine.widest(10**5) is None


def test_ways_show_a_window_by_itself_and_by_differences() -> None:
    ranked = et.plan(et.Counter, workload=Window(24), guarantee=CONCENTRATED, horizon=4096)
    names = [way.name for way in ranked.fitting]
    assert names[:2] == ["root", "sqrt"]
    assert {"input", "tree", "honaker"} <= set(names)


def test_histograms_on_a_grid_show_parts_and_keep_their_truth_inside() -> None:
    decay = Decay("0.5", resolution="1/16")
    bars = et.Histogram(
        categories=["a", "b"],
        workload=decay,
        guarantee=CONCENTRATED,
        horizon=20,
        key=simulation(2),
        neighbours="replace",
    )
    release = bars.step({"a": 5, "b": 0})
    assert all(value * 16 == int(value * 16) for value in release.value.values())
    lower, upper = release.interval(beta=1e-9)
    assert lower["a"] < 5 < upper["a"]
    again = et.restore(bars.snapshot(), key=simulation(2))
    assert again.step({"a": 1, "b": 2}).value == bars.step({"a": 1, "b": 2}).value


# -- refusals ----------------------------------------------------------------------------------------------------------


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: Decay(0.99), "exact number"),  # type: ignore[arg-type]
    (lambda: Decay("nan"), "exact number"),
    (lambda: Decay(1), "between 0 and 1"),
    (lambda: Decay("0.99999999"), "slower"),
    (lambda: Decay("0.9", resolution="2/3"), "resolution"),
    (lambda: Window(0), "window"),
    (lambda: Toeplitz([]), "not empty"),
    (lambda: Toeplitz([0, 1]), "above 0"),
    (lambda: Toeplitz([-1, 1]), "above 0"),
    (lambda: Toeplitz([1, 0.5]), "exact number"),  # type: ignore[list-item]
    (lambda: Toeplitz([1, "1/99999999999"]), "coarser grid"),
    (lambda: Weights([0, 0]), "not all 0"),
    (lambda: Weights([1, 2], [1]), "differ in length"),
    (lambda: read({"decay": "0.9", "alpha": [1]}), "workload is None"),
    (lambda: read(7), "workload is None"),
    (lambda: counter(Decay("0.9"), guarantee=PureDP(1), mechanism="root"), "never pure"),
    (lambda: counter(Window(3), horizon=None, mechanism="root"), "needs a horizon"),
    (lambda: counter(Decay("0.9999"), horizon=None, mechanism="root"), "needs a horizon"),
    (lambda: counter(Toeplitz([1, 2, 3]), mechanism="root"), "grows for ever"),
    (lambda: counter(Decay("0.9"), mechanism="tree"), "not for this workload"),
    (lambda: counter(Decay("0.9"), max_window=3), "max_window"),
    (lambda: counter(Decay("0.9"), mechanism="sparse"), "linear noise"),
    (lambda: counter(Decay("0.9"), max_weight=2**40), "64 bits"),
    (lambda: counter(Weights([1, 2]), horizon=None), "weights for 2 ticks"),
    (lambda: counter(Weights([1, 2]), horizon=3), "weights for 2 ticks"),
    (lambda: counter(Window(3), memory_limit=10), "memory_limit"),
]


@pytest.mark.parametrize(("make", "said"), REFUSED)
def test_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        make()


def test_no_workload_means_what_it_always_meant() -> None:
    plain = et.Counter(guarantee=CONCENTRATED, horizon=64, key=simulation(1))
    assert counter(None).noise_fingerprint == plain.noise_fingerprint
    assert counter(Window(64)).noise_fingerprint != plain.noise_fingerprint
    assert counter({"window": 3}).workload == Window(3)


# -- planted mistakes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("plant", "probe"), MUTANTS, ids=lambda part: getattr(part, "__name__", ""))
def test_every_planted_mistake_is_noticed(plant: Callable[[], Any], probe: Probe) -> None:
    with plant():
        assert probe() is not None


def test_probes_find_nothing_without_a_mistake() -> None:
    for probe in (endless_probe, first_event_probe, bank_probe, coarse_weights_probe):
        assert probe() is None


@pytest.mark.parametrize(
    ("workload", "guarantee"),
    [
        (Weights([1, 1, 1, 1], [1, 2**16, 1, 1]), PureDP(Fraction(1, 2**40))),  # noise times alpha
        (Weights([1, 1, 1, 1], [1, 2**16, 1, 1]), ZCDP(Fraction(1, 2**88))),
        (et.workloads.Average("1/65536"), PureDP(Fraction(1, 2**40))),  # noise in parts of the resolution
        (et.workloads.Average("1/65536"), ZCDP(Fraction(1, 2**88))),
        (Toeplitz([1, 2**32]), PureDP(Fraction(1, 2**37))),  # noise of inputs times their weights
        (Toeplitz([1, 2**32]), ZCDP(Fraction(1, 2**75))),
    ],
)
def test_noise_that_would_leave_64_bits_is_refused_before_the_stream_begins(
    workload: Any, guarantee: PureDP | ZCDP
) -> None:
    # The first two would wrap around, the third would end the stream at a tick that noise decides.
    with pytest.raises(ConfigurationError, match="range of 64 bits"):
        counter(workload, guarantee=guarantee, horizon=4)
    et.Counter(guarantee=guarantee, horizon=4, key=simulation(0))  # without the weights it fits
