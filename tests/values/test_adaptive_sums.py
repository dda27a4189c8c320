"""Sums whose bound changes from epoch to epoch: which bound is found, when, by what; the exact game of two epochs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import Recording, ZeroNoise
from evertally.values.epochs_bounds import Bounds
from evertally.values.epochs_engine import SHOWN


def adaptive(**options: Any) -> et.AdaptiveSum:
    common: dict[str, Any] = {"upper": 1000, "epochs": [2, 3], "guarantee": et.ZCDP(0.5), "horizon": 9}
    return et.AdaptiveSum(**({"key": ZeroNoise()} | common | options))


def test_without_noise_bounds_follow_sizes() -> None:
    made = adaptive(guarantee=et.ZCDP(10**4))
    values = [made.step([3.0] * 10_000 + [900.0] * 10).value for _ in range(2)]
    values += [made.step([5.0] * 100_000).value for _ in range(3)]
    values += [made.step([7.0, 100.0]).value for _ in range(4)]
    assert [value["bound"] for value in values] == [1000] * 2 + [4] * 3 + [8] * 4
    pilot = 2 * (30_000 + 9000)
    assert values[1]["total"] == pilot
    assert values[4]["total"] == pilot + 3 * 400_000, "cut to 4"
    assert values[-1]["total"] == pilot + 3 * 400_000 + 4 * (7 + 8)
    assert made.sizes()[4] == 20_000


def test_the_rule() -> None:
    rule = Bounds(most=64, quantile=Fraction(99, 100), first=6, slack=2)
    counts = np.array([0, 0, 985, 10, 5, 0, 0])
    assert rule.decide(None, 3) == 6, "the first epoch has the first bound"
    assert rule.decide(counts, 6) == 3, "five of a thousand may be cut"
    assert rule.decide(np.array([0, 0, 900, 60, 40, 0, 0]), 6) == 4
    assert rule.decide(np.array([-3, 2, 1, 0, 4, -2, 0]), 5) == 5, "hardly anything is known: the bound stays"
    assert rule.steps == [1, 2, 4, 8, 16, 32, 64]


def test_bounds_are_found_again() -> None:
    """Trap 16: restored at any tick, also at a boundary, the same bounds and the same noise."""
    key, ticks = et.simulation(5), [[3.0] * 300] * 9
    whole = adaptive(key=key).run(ticks)
    made = adaptive(key=key)
    for tick, amounts in enumerate(ticks):
        made = et.restore(made.snapshot(), key=key)
        release = made.step(amounts)
        assert [release.value["total"], release.value["bound"]] == whole[tick].tolist()
        assert made.step(amounts, tick=tick + 1).value == release.value
    assert len({bound for _, bound in whole.tolist()}) > 1


def test_another_bound_is_other_noise() -> None:
    """Lanes name epoch and bound; no lane is drawn with two laws, and none in two epochs."""
    lanes = []
    for size in (3.0, 30.0):
        recording = Recording(et.simulation(1))
        made = adaptive(key=recording, epochs=[2])
        made.run([[size] * 3000] * 9)
        drawn = {entry.lane for entry in recording.draws if entry.lane.startswith("epoch-1")}
        assert drawn
        lanes.append(drawn)
    assert not lanes[0] & lanes[1]
    assert {lane.split("/")[0] for lane in lanes[0] | lanes[1]} == {"epoch-1-4", "epoch-1-32"}


def test_the_noise_of_closed_epochs_stays() -> None:
    made = adaptive(key=et.simulation(2), epochs=[4], horizon=8)
    release = made.run([[1.0] * 1000] * 5)
    later = made.step([1.0] * 1000)
    # bound 1 after a bound of 1000: hardly any noise is added, and nothing of the old one goes away
    assert abs(later.value["total"] - release[-1][0] - 1000) < 40
    assert later.stddev == pytest.approx(made.stddev(4), rel=0.01)
    assert later.stddev > 300


def test_goldens_of_epochs() -> None:
    """users-and-domains 3: 12 epochs of 30 have factor 7.43, one counter of 360 ticks 2.94; 10: 59 times the claim if
    the noise followed a bound from 10 to 1 (T = 64)."""

    def squares(T: int) -> Any:
        return np.cumprod([1.0] + [(2 * k - 1) / (2 * k) for k in range(1, T)]) ** 2

    assert math.sqrt(12) * squares(30).sum() == pytest.approx(7.43, abs=0.005)
    assert squares(360).sum() == pytest.approx(2.94, abs=0.005)
    f = squares(64)
    assert (f[0] + 100 * f[1:].sum()) / f.sum() == pytest.approx(59, abs=0.5)
    made = adaptive(epochs=[30] * 11, horizon=360, mechanism="sqrt", sizes_share=0.5, guarantee=et.ZCDP(1), upper=1000)
    # all bounds 1000, rho_s = 1/2: factor times 1000
    assert made.stddev(360) == pytest.approx(7430, rel=0.01)


REACH = np.arange(-40, 41)


def gaussian(variance: float, shift: int) -> Any:
    """Logarithms of a discrete Gaussian law around `shift`."""
    scale = np.log(np.sum(np.exp(-(REACH**2) / (2 * variance))))
    return -((REACH - shift) ** 2) / (2 * variance) - scale


def divergence(P: Any, Q: Any, order: float) -> float:
    """Of laws that are given by logarithms, over the order."""
    return float(np.log(np.sum(np.exp(order * P + (1 - order) * Q))) / (order - 1) / order)


@pytest.mark.parametrize("order", [1.5, 2.0, 4.0])
def test_the_exact_game_of_two_epochs(order: float) -> None:
    """Two epochs of one tick, two sizes. Laws of whole transcripts (count of large amounts, sum of the first epoch, sum
    of the second), the second bound decided by the real rule from the released count: at most 1.000 of
    rho_h + rho_s, wherever the event is, and whichever it is. (Counts of the two ticks have independent noise here; the
    second is released after the decision, so its loss is a term of its own.)"""
    rho_h, rho_s = 0.4, 0.3
    rule = Bounds(most=2, quantile=Fraction(1, 2), first=1, slack=0)

    def law(count: int, sums: tuple[int, int]) -> Any:
        """Of (count, first sum, second sum); amounts are cut to the bound that the transcript decides."""
        counts, first = gaussian(1 / (2 * rho_h), count), gaussian(4 / (2 * rho_s), min(2, sums[0]))
        tables = []
        for i, released in enumerate(REACH.tolist()):
            bound = rule.steps[rule.decide(np.array([1, released]), 1)]
            second = gaussian(bound**2 / (2 * rho_s), min(bound, sums[1]))
            tables.append(counts[i] + first[:, None] + second[None, :])
        return np.array(tables)

    assert {rule.decide(np.array([1, released]), 1) for released in REACH.tolist()} == {0, 1}
    nobody, found = law(0, (0, 0)), []
    for amount in (1, 2):
        large = gaussian(1 / (2 * rho_h), int(amount == 2))
        found.append(divergence(law(int(amount == 2), (amount, 0)), nobody, order))
        later = divergence(large, gaussian(1 / (2 * rho_h), 0), order)
        found.append(divergence(law(0, (0, amount)), nobody, order) + later)
    assert max(found) <= (rho_h + rho_s) * (1 + 1e-9)
    assert max(found) >= (rho_h + rho_s) * 0.999, "attained"


def test_users() -> None:
    made = adaptive(unit="user", max_events_per_user=3)
    assert made.step_events([5, 6, 7, 8], users=["a"] * 4).value["total"] == 18
    assert made.sensitivity.l2_squared == 3000**2
    assert adaptive(unit="user", max_events_per_user=3, neighbours="replace").sensitivity.l2_squared == 2 * 3000**2


def test_options() -> None:
    made = adaptive(epochs=None, pilot=None, horizon=160)
    assert made.epochs == [10, 150]
    assert adaptive(epochs=None, pilot=3).epochs == [3, 6]
    assert adaptive(first_bound=5, resolution=0.5, upper=100).step([2, 50]).value == {"total": 10.0, "bound": 8.0}
    assert made.error_bound() > made.stddev(160) > 0
    assert "cut off" in made.step([]).about
    assert made.charge == et.ZCDP(0.5)
    for guarantee in (et.PureDP(1.0), et.ApproxDP(1.0, 1e-6)):
        assert adaptive(guarantee=guarantee).guarantee.covers(adaptive(guarantee=guarantee).charge)
    odd = adaptive().step([None, float("nan"), "seven", object(), -5, float("inf"), "7", True])
    assert odd.value["total"] == 0 + 1000 + 7 + 1
    assert odd.bounds(0.5)[0]["bound"] == 1000
    assert len(made._kept.played.recent[-1]) == SHOWN + 11


@pytest.mark.parametrize(
    "options",
    [
        {"horizon": None},
        {"epochs": [5, 5]},
        {"epochs": []},
        {"epochs": [1] * 65, "horizon": 100},
        {"pilot": 2},
        {"quantile": 1},
        {"sizes_share": 0},
        {"first_bound": 2000},
        {"first_bound": 0},
        {"upper": 0},
        {"mechanism": "sparse"},
        {"neighbours": "independent"},
        {"unit": "user"},
        {"rounding": "down"},
    ],
)
def test_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        adaptive(**options)
