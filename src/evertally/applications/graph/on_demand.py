"""Coordinates on demand: statistics of a graph whose vertices nobody listed (factorization-counting 6.0, 6.5).

Labels are then keys of a secret table. Single coordinates can be asked for, whether or not they ever occurred; the
noise of each has the address of its label.
"""

from __future__ import annotations

import weakref
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from evertally.applications.graph.linear import LinearGraphStatistic
from evertally.applications.lazy import LazyEngine, Sums
from evertally.applications.records import RecordDoor
from evertally.bounds.tails import Spread
from evertally.contract.forms import LabelledForm
from evertally.contract.guarded import exclusive
from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint, IntArray, Options
from evertally.contract.ticks import last_tick
from evertally.counting.process import NoiseProcess
from evertally.dynamic.answers import Answer
from evertally.encode.labels import as_list, require_column
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.statistics.own_engines import ENGINES

MOST_WATCHED = 2**16


class WatchedForm(LabelledForm):
    """A mapping from what is watched to numbers; of nothing, where nothing is."""

    def load(self, data: bytes, engine: Any, tick: int) -> IntArray:
        return super().load(data, engine, tick) if self.width else self.first()

    def table(self, ticks: Sequence[int], rows: IntArray, accuracy: Callable[[int], Accuracy]) -> Any:
        if self.width:
            return super().table(ticks, rows, accuracy)
        import pyarrow as pa

        names = ("tick", "column", "value", "lower", "upper")
        return pa.table({name: pa.array([], pa.string() if name == "column" else pa.int64()) for name in names})


@statistic
class AskableGraphStatistic(LinearGraphStatistic):
    """Graph statistics with many coordinates. Not used directly; see `DegreeVector` and `CutGraph`."""

    watch: Sequence[Any] | None = option(
        "What every release shows where no vertices are declared; anything else can be asked for.", default=None
    )
    askable: int = option(
        "How many coordinates may be asked for where no vertices are declared. Error bounds rest on it, privacy does "
        "not.",
        default=2**20,
    )

    @abstractmethod
    def _name_of(self, query: Any) -> str | None:
        """The coordinate that a question is about, by its text; None for what is no question."""

    def _check_whole(self) -> None:
        if self.watch is not None:
            raise ConfigurationError("watch belongs to graphs whose vertices are not declared: all of this is shown")

    def _on_demand(self, word: str, more: Options | None = None) -> Blueprint:
        """The blueprint where no vertices are declared. `more`: options of one statistic that say what is counted."""
        if self.mechanism in ENGINES:
            raise ConfigurationError("an engine of your own needs declared vertices")
        if self.max_window:
            raise ConfigurationError("max_window needs declared vertices")
        if self.updates == "delete":
            raise ConfigurationError(
                'updates="delete" needs declared vertices: whose degrees begin with the public graph'
            )
        askable = self.askable = whole("askable", self.askable, 1, 2**62)
        shown = self._read_watch()
        form = WatchedForm(shown)
        contribution = self._contributing()
        certified = self.certified()
        plain = self._linear(
            word,
            1,
            certified.of_unit(self._relation(), contribution),
            contribution,
            self._graph_address(None)
            | self._given("unit", "max_events_per_user")
            | {"coordinates": "by label"}
            | (more or {}),
            lambda source, limit: RecordDoor(
                self._read_record(), max(1, len(shown)), sort=self._ingestion() != "presence"
            ),
            form,
            settled={"watch": None if self.watch is None else as_list(self.watch)},
        )

        def engine(source: ItemSource) -> LazyEngine:
            sums = Sums(self.encoder(), 2**61 // last_tick(self.horizon))
            return LazyEngine(sums, self._choice, self._setting, source, shown, limit=None, askable=askable)

        return replace(plain, engine=engine)

    def _read_watch(self) -> list[str]:
        if self.watch is None:
            return []
        try:
            require_column(self.watch, "")
        except TypeError:
            raise ConfigurationError("watch is a list") from None
        names = [name for name in map(self._name_of, as_list(self.watch)) if name is not None]
        if len(names) != len(self.watch) or len(set(names)) != len(names) or len(names) > MOST_WATCHED:
            raise ConfigurationError(f"watch is a list of at most {MOST_WATCHED} different coordinates")
        return names

    @property
    def noise(self) -> NoiseProcess:
        engine: Any = self._engine
        if isinstance(engine, LazyEngine):
            return engine.noise
        found: NoiseProcess = engine.inner.noise
        return found

    def _asking(self) -> Callable[[Any], Answer]:
        """What a release of the last tick is asked by. It does not keep this object alive: noise is held by one."""
        myself, tick = weakref.ref(self), self.tick

        def asked(query: Any) -> Answer:
            alive = myself()
            if alive is None:
                raise ConfigurationError(
                    "the statistic is gone, and with it what could be asked for; keep or restore it"
                )
            return alive._answer(query, tick)

        return asked

    @exclusive
    def _answer(self, query: Any, tick: int) -> Answer:
        name = self._name_of(query)
        if name is None:
            raise ConfigurationError("what is asked for is no coordinate of this statistic")
        if tick != self.tick:
            raise ConfigurationError(
                f"tick {tick} is over: without declared vertices only the release of the last tick can be asked, "
                "before the next step"
            )
        engine: Any = self._engine
        accuracy: Spread = engine.accuracy(tick)
        return Answer(int(engine.answers([name], tick)[0]), accuracy.stddev, accuracy.radius)
