"""Options of statistics that are exact sums plus noise, and their blueprint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeGuard

from evertally.contract.doors import RowDoor
from evertally.contract.options import check_neighbours, option, statistic
from evertally.contract.parts import Blueprint, Door, Engine, Form, Options
from evertally.contract.windows import Windowed
from evertally.counting.banded import best_band
from evertally.counting.choose import build, choose, rank
from evertally.counting.linear import LinearEngine
from evertally.counting.plan import LinearPlan
from evertally.counting.process import Coefficients, NoiseProcess
from evertally.counting.processes import OURS, SEPARATED, Gram, Setting
from evertally.counting.tree import ABOUT_RADIX, Radix
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import Change, Contribution, Participation
from evertally.ranking import Ranking
from evertally.statistics.own_engines import ENGINES


@statistic
class Linear(Windowed):
    """Exact sums plus a noise process. Not used directly; see `Counter`, `VectorCounter`, `RunningMean`."""

    radix: Radix = option(ABOUT_RADIX, default="formula")
    memory_limit: int = option("The bytes that noise may take at most.", default=2**30)

    def ways(self) -> Ranking:
        """The ranked table that "auto" takes its process from, with bounds that hold with probability 95 %."""
        return rank(self.guarantee, self._setting)

    @property
    def noise(self) -> NoiseProcess:
        """The noise process; only of what is exact sums plus noise (`is_linear`)."""
        assert isinstance(self._engine, LinearEngine)
        return self._engine.noise

    def plan(self) -> LinearPlan:
        """What this mechanism has settled, as public numbers: `LinearSlice` plays some of its columns by it.

        Only of running totals with noise of ours; what a workload weighs, a partition releases or an engine of your own
        does is not cut by columns.
        """
        if not sums_rows(self) or self.mechanism not in (*OURS, *SEPARATED):
            raise ConfigurationError(
                'only running totals with noise of ours have such a plan; leave out workload, and take mechanism="auto"'
            )
        *names, digest = self._path
        noise = self.noise
        settled = noise.settled() if isinstance(noise, Coefficients) else b""
        path = *map(str, names), digest.hex()
        # Where a rule or a sketch makes the rows, it is they who clip them, on both sides.
        low, limit = self._door.bounds if isinstance(self._door, RowDoor) else (-self._tick_limit, self._tick_limit)
        return LinearPlan(path, self.noise_fingerprint, self._choice, self._setting, low, limit, settled)

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
        check_neighbours(self.neighbours, self.guarantee)
        if not isinstance(self.radix, int | str):
            raise ConfigurationError('radix is a number, "formula" or "exact"')
        memory_limit = whole("memory_limit", self.memory_limit, 1, 2**62)
        band = getattr(self, "band", None)
        setting = Setting(change, self.horizon, columns, memory_limit, self.radix, split, loose, rule, band)
        self._setting = setting
        own = ENGINES.get(self.mechanism)
        if own is not None:
            mechanism, charge = self.mechanism, self.guarantee
            # Nothing is known of its noise: entries of one column may add up whatever their ticks and signs (S2).
            setting = self._setting = setting.proved(Gram.UNKNOWN)
            change = setting.change
            engine: Callable[[ItemSource], Engine] = partial(own.build, self.guarantee, setting)
        else:
            choice = self._choice = choose(self.guarantee, setting, self.mechanism)
            mechanism, charge = choice.mechanism, choice.charge
            change = setting.for_process(mechanism).change
            if band is not None and mechanism != "banded":
                raise ConfigurationError('band belongs to mechanism="banded"')
            if mechanism == "banded":
                assert rule is not None
                assert self.horizon is not None
                # Found by floats, and decides a law: kept, and not found again.
                band = best_band(self.horizon, rule) if band is None else whole("band", band, 1, self.horizon)
                setting = self._setting = replace(setting, band=band)
                settled = (settled or {}) | {"band": band}
                address = address | {"band": band}

            def engine(source: ItemSource) -> Engine:
                return LinearEngine(lambda: build(choice, setting, source))

        common: dict[str, Any] = {"radix": self.radix, "memory_limit": memory_limit, "max_window": self.max_window}
        return Blueprint(
            word=word,
            address=address | common,
            mechanism=mechanism,
            charge=charge,
            contribution=contribution,
            sensitivity=change if rule is None else rule.in_one_tick(),
            door=door,
            engine=engine,
            form=form,
            settled=settled,
        )


def sums_rows(mechanism: Any) -> TypeGuard[Linear]:
    """Whether what is released is exact sums of rows plus a noise process, also where a rule of users, or the hashes of
    a sketch, make the rows."""
    engine = getattr(mechanism, "_engine", None)
    return isinstance(mechanism, Linear) and type(getattr(engine, "inner", engine)) in ROW_ENGINES


ROW_ENGINES: set[type[LinearEngine]] = {LinearEngine}  # what plays rows as `LinearEngine` does, under another name too


def is_linear(mechanism: Any) -> TypeGuard[Linear]:
    """Whether it is exact sums plus a noise process, and nothing else."""
    return isinstance(mechanism, Linear) and type(mechanism._engine) is LinearEngine
