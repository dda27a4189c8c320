"""The option `workload=`: sums that weigh ticks by public numbers, in place of the running total."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from evertally.contract.forms import RowForm
from evertally.contract.options import check_neighbours, option, statistic
from evertally.contract.parts import Accuracy, Blueprint, Door, Engine, Form, IntArray, Options
from evertally.contract.ticks import last_tick
from evertally.counting import age_ways
from evertally.counting.choose import build, choose, rank
from evertally.counting.processes import Setting
from evertally.counting.weighing import AgeEngine, AverageEngine, WeightedEngine
from evertally.counting.workloads import Average, ByAge, Series, Weights, Workload, read
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import Change, Contribution, Participation
from evertally.ranking import Ranking
from evertally.statistics.own_engines import ENGINES
from evertally.statistics.separated_options import Separated


@statistic
class Weighing(Separated):
    """Linear statistics with a workload. Not used directly; see `Counter`, `VectorCounter`, `Histogram`."""

    workload: Workload | None = option(
        "What is released: None for the running total, or one of et.workloads (Decay, Window, Toeplitz, Weights, "
        "Average).",
        default=None,
    )

    def ways(self) -> Ranking:
        """The ranked table that "auto" takes its process from, with bounds that hold with probability 95 %."""
        if isinstance(self.workload, ByAge):
            return age_ways.rank(self.guarantee, self._setting, self.workload)
        ranked = rank(self.guarantee, self._setting)
        if isinstance(self.workload, Average):
            return ranked  # errors of the total, which are divided by the tick
        if self.workload is None or self.workload.alpha is None:
            return ranked
        largest = max(self.workload.alpha[: self.horizon])
        return Ranking(way.shown_as(lambda error: error * largest) for way in ranked)

    def _linear(
        self,
        word: str,
        columns: int,
        change: Change,
        contribution: Contribution,
        address: Options,
        door: Callable[[ItemSource, int], Door],
        form: Form,
        settled: Options | None = None,
        split: Change | None = None,
        loose: Change | None = None,
        rule: Participation | None = None,
    ) -> Blueprint:
        workload = self.workload = read(self.workload)
        if workload is None:
            return super()._linear(
                word, columns, change, contribution, address, door, form, settled, split, loose, rule
            )
        check_neighbours(self.neighbours, self.guarantee)
        if rule is not None:
            raise ConfigurationError(
                "max_ticks_per_user and min_separation are for running totals; with a workload use max_events_per_user"
            )
        if self.max_window:
            raise ConfigurationError(
                "max_window is for running totals, whose differences are sums over windows; leave it out here "
                "(et.workloads.Window releases such sums itself)"
            )
        if self.mechanism in ENGINES:
            raise ConfigurationError("engines of your own keep running totals; leave out the workload")
        memory_limit = whole("memory_limit", self.memory_limit, 1, 2**62)
        setting = Setting(change, self.horizon, columns, memory_limit, self.radix, loose=loose)
        if isinstance(workload, Weights):
            moved, limit, mechanism, charge, engine, shown = _by_tick(self, workload, setting, form)
        elif isinstance(workload, Average):
            moved, limit, mechanism, charge, engine, shown = _averaged(self, workload, setting, form)
        else:
            moved, limit, mechanism, charge, engine, shown = _by_age(self, workload, setting, form)
        if contribution.max_weight > limit:
            raise ConfigurationError(
                f"with this workload totals of a tick are kept below {limit} to fit 64 bits, and one event may weigh "
                f"{contribution.max_weight}; choose smaller weights or a coarser unit"
            )
        common: dict[str, Any] = {"radix": self.radix, "memory_limit": memory_limit, "max_window": 0}
        return Blueprint(
            word=word,
            address=address | common | {"workload": workload.table()},
            mechanism=mechanism,
            charge=charge,
            contribution=contribution,
            sensitivity=moved,
            # clipping harder is 1-Lipschitz too
            door=lambda source, most: door(source, min(most, limit)),
            engine=engine,
            form=shown,
            settled=(settled or {}) | {"workload": workload.table()},
        )


def _by_age(me: Weighing, workload: ByAge, setting: Setting, form: Form) -> tuple[Any, ...]:
    me._setting = setting
    choice = me._choice = age_ways.choose(me.guarantee, setting, workload, me.mechanism)
    series = workload.series()

    def engine(source: ItemSource) -> Engine:
        return AgeEngine(lambda: age_ways.build(choice, setting, workload, source), series, setting.horizon)

    shown = form if series.unit == 1 and series.step == 1 else OnGrid(form, series)
    moved = age_ways.setting_for(choice.mechanism, setting, workload).change
    return moved, series.limit, choice.mechanism, choice.charge, engine, shown


def _averaged(me: Weighing, workload: Average, setting: Setting, form: Form) -> tuple[Any, ...]:
    me._setting = setting
    choice = me._choice = choose(me.guarantee, setting, me.mechanism)
    parts = workload.resolution.denominator

    def engine(source: ItemSource) -> Engine:
        return AverageEngine(lambda: build(choice, setting, source), parts)

    limit = 2**61 // (last_tick(setting.horizon) * 2 * parts)
    grid = Series((1,), 1, workload.resolution)
    moved = setting.for_process(choice.mechanism).change
    return moved, limit, choice.mechanism, choice.charge, engine, OnGrid(form, grid)


def _by_tick(me: Weighing, workload: Weights, setting: Setting, form: Form) -> tuple[Any, ...]:
    if setting.horizon is None or setting.horizon > len(workload.beta):
        raise ConfigurationError(
            f"there are weights for {len(workload.beta)} ticks: give a horizon of at most that, or more weights"
        )
    beta = workload.beta[: setting.horizon]
    heaviest = max(1, *beta)
    # factorization-counting 6.10: no beta is negative, so all norms grow by max(beta) at most, over several ticks too.
    moved = _times(setting.change, heaviest)
    loose = None if setting.loose is None else _times(setting.loose, heaviest)
    weighted = me._setting = replace(setting, change=moved, loose=loose)
    choice = me._choice = choose(me.guarantee, weighted, me.mechanism)

    def engine(source: ItemSource) -> Engine:
        return WeightedEngine(lambda: build(choice, weighted, source), workload.beta, workload.alpha)

    limit = 2**61 // (setting.horizon * heaviest * max(workload.alpha or (1,)))
    moved = weighted.for_process(choice.mechanism).change
    return moved, limit, choice.mechanism, choice.charge, engine, form


def _times(one: Change, weight: int) -> Change:
    return Change(one.l1 * weight, one.l2_squared * weight**2, one.linf * weight)


class OnGrid(RowForm):
    """Rows in steps of a public grid, around truths that need not lie on it. Whole numbers stay integers."""

    def __init__(self, form: Any, series: Series) -> None:
        super().__init__(form.width, form.labels)
        self._form, self._step = form, series.step

    def _number(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {label: self._number(each) for label, each in value.items()}
        if self._step == 1:
            return value
        parts = self._step.denominator
        return value / parts

    def show(self, row: IntArray) -> Any:
        return self._number(self._form.show(row))

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        shown: NDArray[Any] = self._number(self._form.show_many(rows))
        return shown

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[Any, Any]:
        radius = math.ceil(accuracy.radius(beta) / float(self._step))  # in steps, for the truth lies between them
        return self.show(row - radius), self.show(row + radius)
