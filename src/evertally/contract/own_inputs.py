"""What a call was given, of whatever library, as doors take it."""

from __future__ import annotations

from typing import Any

from evertally.contract.labelled import handed_over
from evertally.contract.parts import Blueprint
from evertally.encode.frames import Table, check_same_index, column, loaded, struct_table, table
from evertally.encode.labels import as_list, is_arrow


class OwnInputs:
    """The inputs of a mechanism."""

    _door: Any
    _plan: Blueprint

    @property
    def _takes_totals(self) -> bool:
        """Whether `step` and `run` take totals; otherwise they take events."""
        return bool(getattr(self._door, "takes_totals", False))

    def _loaded(self, x: Any) -> Any:
        """What an object of a library that is not known by name says of itself. With labels of its own they decide."""
        named = self._takes_totals and getattr(self._door, "named", None) is not None
        return handed_over(x) if named else loaded(x)

    def _own_events(self, events: Any) -> Any:
        """The events of a tick, of whatever library, as doors take them."""
        if type(events) is list:
            return events
        events = loaded(events)
        found = table(events)
        if found is None and type(self)._of_table is not OwnInputs._of_table:
            found = struct_table(events)
        return column(events) if found is None else self._of_table(found)

    def _of_table(self, found: Table) -> Any:
        """Events that are the rows of a table, by the names of its columns; refused where rows have no meaning."""
        raise TypeError("an event is one entry here: choose the column that holds the events, e.g. frame[name]")

    def _own_ticks(self, x: Any) -> Any:
        """The ticks of a run, of whatever library, as doors take them."""
        if self._takes_totals:
            return x
        if table(x) is not None:
            raise TypeError(
                "run takes the events of each tick here, a list of columns, and not a table; the events of one tick "
                "go to step_events"
            )
        found = column(x)
        ticks = as_list(found) if found is not x or is_arrow(x) else x
        if not isinstance(ticks, list | tuple) or all(kind is list for kind in set(map(type, ticks))):
            return ticks
        if not self._plan.owned:
            return [self._own_events(events) for events in ticks]
        # A pair is (events, users), where events are read.
        for pair in ticks:
            if type(pair) is tuple and len(pair) == 2:
                check_same_index(*pair)
        return [tuple(map(column, tick)) if type(tick) is tuple else column(tick) for tick in ticks]
