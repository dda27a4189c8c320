"""et.accuracy: one answer for every statistic, that agrees with the mechanism; et.sweep."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import evertally as et
from conformance.mechanisms import MECHANISMS
from evertally.noise import ZeroNoise
from evertally.pictures import plot_falling


def one_of_each() -> list[Any]:
    found: dict[str, Any] = {}
    for subject in MECHANISMS:
        kind = re.split("[(:,]", subject.name)[0]
        found.setdefault(kind, subject)
    return list(found.values())


@pytest.mark.parametrize("subject", one_of_each(), ids=lambda subject: subject.name.split("(")[0])
def test_every_statistic_has_an_answer(subject: Any) -> None:
    made = subject.make(ZeroNoise())
    tick = made.horizon or 64
    asked = et.accuracy(made, windows=[1, min(4, tick)], tick=None if made.horizon else tick)
    assert asked.stddev == made.stddev(tick)
    assert asked.worst_stddev == made.worst_stddev(tick)
    assert asked.bound == made.error_bound(0.05, None if made.horizon else tick)
    assert asked.meaning
    # whatever is not known has a sentence
    assert asked.stddev is not None or "no standard deviation" in asked.notes[0]
    assert math.isfinite(asked.bound) or any("no bound" in note or "depends on data" in note for note in asked.notes)
    if asked.stddev is not None:
        assert asked.radius is not None
        assert len(asked.windows) == 2 or any("windows" in note for note in asked.notes)
    assert asked.statistic in str(asked)


def test_windows_are_those_of_the_mechanism() -> None:
    counter = et.Counter(guarantee=et.PureDP(1.0), horizon=60, key=et.simulation(1))
    (week,) = et.accuracy(counter, windows=[7]).windows
    deviations = [counter.stddev(t, since=t - 7) for t in range(7, 61)]
    assert week.stddev == max(deviations)
    assert week.rms_stddev == pytest.approx(float(np.sqrt(np.mean(np.square(deviations)))))
    money = et.RunningSum(upper=10, resolution=0.01, guarantee=et.ZCDP(0.5), horizon=60, key=et.simulation(1))
    asked = et.accuracy(money)
    assert asked.stddev == money.stddev(60)
    assert asked.radius == pytest.approx(money.combined({60: 1}).radius(0.05) * 0.01)


def test_what_may_be_assumed_and_what_may_not() -> None:
    options: dict[str, Any] = {"lower": 0, "upper": 10, "guarantee": et.ZCDP(0.5), "horizon": 50}
    few, many = (et.accuracy(et.RunningMean, **options, count=count) for count in (10, 1000))
    assert many.bound < few.bound / 50
    assert "count=" in et.accuracy(et.RunningMean, **options).notes[-1]
    with pytest.raises(et.ConfigurationError, match="does not depend"):
        et.accuracy(et.Counter, guarantee=et.ZCDP(0.5), horizon=50, count=3)
    counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=50, key=et.simulation(1))
    with pytest.raises(et.ConfigurationError, match="give a class"):
        et.accuracy(counter, horizon=3)


def test_a_sweep_falls_and_is_a_table() -> None:
    amounts = [0.1, 0.5, 2.0]
    swept = et.sweep(et.Counter, guarantee=et.ApproxDP(1.0, 1e-9), amounts=amounts, horizon=100, windows=[7])
    columns = swept.columns()
    assert columns["amount"] == amounts
    assert list(columns) == ["amount", "stddev", "worst_stddev", "radius", "bound", "radius_of_7"]
    for name, cells in columns.items():
        assert name == "amount" or sorted(cells, reverse=True) == cells
    for one, amount in zip(swept, amounts, strict=True):
        made = et.Counter(guarantee=et.ApproxDP(amount, 1e-9), horizon=100, key=et.simulation(1))
        assert one.bound == made.error_bound(0.05)
    assert len(repr(swept).splitlines()) == 4
    page = swept._repr_html_()
    assert all(f">{amount:g}<" in page for amount in amounts)
    assert "Counter by" in page
    assert "95%" in page


def test_the_worst_window_is_found() -> None:
    """It lies where blocks begin; an even choice of ticks misses it."""
    made = et.Counter(guarantee=et.PureDP(1.0), horizon=2920, key=et.simulation(1))
    stated = et.accuracy(made, windows=[1]).windows[0].stddev
    assert stated >= max(made.stddev(t, since=t - 1) for t in range(2, 600))


def test_a_sweep_is_a_picture_and_a_table() -> None:
    swept = et.sweep(et.Counter, guarantee=et.ZCDP(0.5), amounts=[0.1, 1.0], horizon=50, windows=[1, 7])
    axes = Figure().subplots()
    assert swept.plot(axes) is axes
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert list(drawn) == ["one total, 95%", "1 tick, 95%", "7 ticks, 95%", "all totals at once, 95%"]
    assert drawn["7 ticks, 95%"] == swept.columns()["radius_of_7"]
    assert axes.get_xlabel() == "rho"
    assert "radius of 7" in swept._repr_html_()


def test_what_nobody_knows_is_not_drawn() -> None:
    with pytest.raises(et.ConfigurationError, match="nothing to draw"):
        plot_falling([1.0], {"mean": [None], "top": [math.inf]}, across="epsilon", ax=Figure().subplots())


def test_names_of_specs_are_no_classes() -> None:
    for ask in (et.accuracy, et.plan, lambda *given, **options: et.sweep(*given, amounts=[1.0], **options)):
        with pytest.raises(et.ConfigurationError, match=r"class, such as et\.Counter, and not 'counter'"):
            ask("counter", guarantee=et.ZCDP(0.5), horizon=9)
