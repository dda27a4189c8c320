"""Sums by column of amounts with fractions: the options and the parts that count them in whole steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from evertally.contract.doors import AmountsInColumns, EachColumn
from evertally.contract.forms import LabelledForm, RowForm
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint, Door, Form, Options
from evertally.contract.rounding import Rounder
from evertally.contract.units import LabelledInUnits, RowInUnits, check_room, own_numbers
from evertally.encode.amounts import AmountsByCategory, AmountsByNumber, rows_by_label
from evertally.encode.frames import loaded, table
from evertally.encode.values import AmountGrid
from evertally.errors import ConfigurationError
from evertally.noise import ItemSource
from evertally.ranking import Ranking
from evertally.statistics.by_column import ByColumn
from evertally.statistics.workload_options import Weighing

_OpenDoor = Callable[[ItemSource, int], Door]


@statistic
class InSteps(ByColumn, Weighing):
    """Counts by column that may be sums of amounts. Not used directly; see `VectorCounter` and `Histogram`."""

    max_per_event: int | None = option("How many columns an event touches at most; None: all of them.", default=1)
    signed: bool = option("Whether amounts may be negative.", default=False)
    protects: Literal["event", "item"] = option("What is protected: all of an event, or one item.", default="event")
    resolution: float | None = option(
        "What amounts are rounded to, e.g. 0.01, without a bias, by coins of each event; then `max_weight` need not be "
        "whole, and `step` takes the tick's events. None: amounts are whole numbers, and fractions of them are cut.",
        default=None,
    )

    _grid: AmountGrid | None = None

    def error_bound(self, *arguments: Any, **options: Any) -> float:
        """As for every counter; with a resolution in the unit of amounts."""
        return self._in_units(super().error_bound(*arguments, **options))

    def ways(self) -> Ranking:
        """As for every counter; with a resolution in the unit of amounts."""
        ways = super().ways()
        return ways if self._grid is None else Ranking(way.shown_as(self._in_units) for way in ways)

    def _in_units(self, steps: float) -> float:
        return steps if self._grid is None else steps * float(self._grid.step)

    def _about(self) -> str:
        about = super()._about()
        if self._grid is None or self._users is not None:
            return about
        return f"{about}, rounded to multiples of {self.resolution}"

    def _own_events(self, events: Any) -> Any:
        """As for every mechanism; of amounts also the rows of a table, by the names of its columns."""
        if self._grid is not None and type(events) is not list:
            events = loaded(events)
            found = table(events)
            if found is not None:
                return rows_by_label(found, self._door.named.names)
        return super()._own_events(events)

    def _columns_of(self, word: str, names: Sequence[Any], called: str, *, by_label: bool) -> Blueprint:
        """The blueprint of linear counts by column."""
        per_event = self._per_event(names, self.max_per_event)
        if self.resolution is None:
            most = self.max_weight
            whole, kept = self._read_events(names, per_event, self.signed, rank_by_label=self.protects == "item")
            labels, in_steps = whole.names, Options()
            form: Form = LabelledForm(labels) if by_label else RowForm(len(labels), labels)
            door: _OpenDoor = lambda source, limit: EachColumn(whole, limit, self.signed)  # noqa: E731
        else:
            grid = self._settle_grid()
            most = grid.most
            amounts = self._amounts(grid, names, per_event)
            labels, in_steps = amounts.names, self._given("max_weight", "resolution")
            kept = len(names) if isinstance(names, range) else list(labels[: len(names)])
            form = LabelledInUnits(grid, labels) if by_label else RowInUnits(grid, labels)
            door = partial(_door_of_amounts, amounts)
        contribution = self._contributing(
            max_per_event=per_event, max_weight=most, signed=self.signed, protects=self.protects, truncated=True
        )
        vars(self)["columns"] = labels  # a field of one class, and not of the other
        given = self._given("other", "max_per_event", "max_weight", "signed", "protects")
        return self._counted(
            word,
            len(labels),
            contribution,
            {"columns": kept} | given | in_steps | self._user_address(),
            door,
            form,
            settled={called: kept} | in_steps,
        )

    def _settle_grid(self) -> AmountGrid:
        """The grid of the declared amounts."""
        if self.workload is not None:
            raise ConfigurationError("resolution is for running totals: leave out the workload, or count in steps")
        for name, number in own_numbers(self._given("max_weight", "resolution")).items():
            setattr(self, name, number)
        assert self.resolution is not None
        grid = self._grid = AmountGrid(-self.max_weight if self.signed else 0, self.max_weight, self.resolution)
        return grid

    def _amounts(self, grid: AmountGrid, names: Sequence[Any], max_per_event: int) -> AmountsByCategory:
        reader = (AmountsByNumber if isinstance(names, range) else AmountsByCategory)(
            names,
            grid,
            self.other,
            max_per_event,
            order=lambda message: self._source.order(message),  # there is no key yet
            rank_by_label=self.protects == "item",
            cutting=self.cutting,
        )
        self._read_by(reader)
        return reader


def _door_of_amounts(amounts: AmountsByCategory, source: ItemSource, limit: int) -> AmountsInColumns:
    grid = amounts.grid
    check_room(limit, grid.most)
    return AmountsInColumns(amounts, Rounder(source, grid.low, grid.high, "random"), limit, grid.signed)
