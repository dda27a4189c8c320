"""A spec tried on test data: which columns match, which rows would count, what would be cut or left out.

Everything said here is exact, so that it is for whoever holds the sample and for nobody else. No key, state or output
is read or made: the dry run draws simulated noise.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evertally.encode.cells import read_edges
from evertally.encode.labels import as_list, canonical
from evertally.encode.numbers import floats
from evertally.encode.plain import pairs
from evertally.encode.range_door import NumberedLabels
from evertally.kinds.reads import Column
from evertally.noise import simulation
from evertally.runtime.input.envelope import BatchRefused, check_type, known, needed
from evertally.runtime.input.sources import ROWS, Batch, InputFile
from evertally.runtime.input.tick_events import TickEvents, length, own_ticks
from evertally.runtime.input.tokens import is_tokens
from evertally.runtime.machine import Machine
from evertally.runtime.mechanisms import build
from evertally.runtime.spec import QuerySpec, StreamSpec

_NEAR_MISSES = 5  # shown of each query
_ROWS = 2**20  # that the dry run takes


@dataclass
class Cells:
    """What the cells of one column are to a query."""

    query: str
    column: str
    use: str
    missing: int = 0
    outside: int = 0  # labels that are not declared, numbers beyond a bound
    bounds: tuple[float, float] | None = None
    declared: frozenset[str] | NumberedLabels | None = None
    other: str | None = None
    undeclared: Counter[str] = field(default_factory=Counter)

    def near_misses(self) -> list[tuple[str, str]]:
        """Undeclared labels that look like declared ones, the most frequent first. A number is like every other."""
        declared = () if isinstance(self.declared, NumberedLabels) else sorted(self.declared or ())
        found = [(label, _alike(label, declared)) for label, _ in self.undeclared.most_common(100)]
        return [(label, declared) for label, declared in found if declared][:_NEAR_MISSES]


@dataclass
class Tried:
    """What a sample is to a spec."""

    columns: list[str]
    missing: dict[str, str]  # by the name of a needed column: the one that looks like it, or nothing
    rows: int = 0
    broken: int = 0
    unreadable: int | None = None  # times; None: they are not looked at
    before: int = 0
    after: int = 0
    inside: int = 0
    without_user: int | None = None  # None: users are not looked at
    cells: list[Cells] = field(default_factory=list)
    dry: int = 0  # rows that went through the dry run

    @property
    def fits(self) -> bool:
        """Whether anything of it would be counted."""
        return not self.missing and (self.inside if self.unreadable is not None else self.rows) > 0


def try_spec(spec: StreamSpec) -> None:
    """Builds all mechanisms under a simulated key: what they refuse is refused here."""
    build(spec, simulation(0))


def try_sample(spec: StreamSpec, source: InputFile) -> Tried:
    """Goes through a sample, and through one tick with all of it."""
    present = source.column_names()
    wanted = _wanted(spec, present)
    tried = Tried(present, {name: _alike(name, present) for name in wanted if name not in present})
    if tried.missing:
        return tried
    for query in spec.queries:
        tried.cells += [_cells(query, column) for column in query.columns]
    taken: list[Batch] = []
    for batch in source.batches(wanted, known(spec)):
        _look(tried, batch, spec)
        if sum(map(length, taken)) < _ROWS:
            taken.append(batch)
    tried.broken = source.broken
    events = TickEvents(spec, taken)
    key = simulation(0)
    Machine(spec, build(spec, key), key).step(events, 1)
    tried.dry = len(events)
    return tried


def _wanted(spec: StreamSpec, present: Sequence[str]) -> list[str]:
    """The columns that must be there. A service on the wall clock does without time stamps, but one that is misspelt is
    not left out on purpose."""
    column = spec.clock.column
    without = column is not None and column not in present and not _alike(column, present)
    return needed(spec) if without else spec.columns()


def _alike(name: str, present: Sequence[str]) -> str:
    spelt = {one.casefold().strip(): one for one in present}
    return next((spelt[one] for one in difflib.get_close_matches(name.casefold(), spelt, 1)), "")


def _cells(query: QuerySpec, column: Column) -> Cells:
    cells, options = Cells(query.name, column.name, column.reads.use), query.parameters
    if column.option == "weight" and "resolution" in options:
        most = float(options["max_weight"])
        cells.bounds = -most if options.get("signed") else 0.0, most
    if column.option != "column":
        return cells
    if column.reads.use == "amounts":
        cells.bounds = _bounds(query)
    elif query.record.labelled_by in options:
        labels = options[query.record.labelled_by]
        numbered = isinstance(labels, int)
        cells.declared = NumberedLabels(labels) if numbered else frozenset(filter(None, map(canonical, labels)))
        cells.other = options.get("other")
    return cells


def _bounds(query: QuerySpec) -> tuple[float, float] | None:
    options = query.parameters
    edges = options.get("edges")
    if isinstance(edges, list | dict):
        ends = read_edges(edges)
        return ends[0], ends[-1]
    if "upper" in options:
        return float(options.get("lower") or 0), float(options["upper"])
    return (0.0, float(options.get("max_weight") or 1)) if "max_weight" in query.record.options.model_fields else None


def _look(tried: Tried, batch: Batch, spec: StreamSpec) -> None:
    tried.rows += length(batch)
    for name, column in batch.items():
        typed = not (isinstance(column, np.ndarray) or is_tokens(column) or _is_bytes(column))
        if name != ROWS and typed:
            _check_type(spec, name, column)
    if spec.clock.column in batch and not spec.clock.floating:
        own, readable = own_ticks(batch, spec)
        before, after = readable & (own < 1), readable & (own > (spec.last_tick or np.iinfo(np.int64).max))
        tried.unreadable = (tried.unreadable or 0) + int((~readable).sum())
        tried.before += int(before.sum())
        tried.after += int(after.sum())
        tried.inside += int((readable & ~before & ~after).sum())
    if spec.user_column is not None:
        nobody = sum(canonical(user) is None for user in as_list(batch[spec.user_column]))
        tried.without_user = (tried.without_user or 0) + nobody
    for cells in tried.cells:
        _count(cells, batch[cells.column])


def _is_bytes(column: Any) -> bool:
    return str(column.type) == "binary"  # a cell of CSV, which may be anything


def _check_type(spec: StreamSpec, name: str, column: Any) -> None:
    try:
        check_type(spec, name, column.type)
    except BatchRefused as problem:
        raise BatchRefused(f"the sample does not fit: {problem}") from None


def _count(cells: Cells, column: Any) -> None:
    if cells.use == "amounts":
        numbers = floats(column)
        cells.missing += int(np.isnan(numbers).sum())
        if cells.bounds is not None:
            lower, upper = cells.bounds
            cells.outside += int(((numbers < lower) | (numbers > upper)).sum())
        return
    for labels in _labels(column):
        if not labels:
            cells.missing += 1
        elif cells.declared is not None:
            strange = [label for label in labels if label not in cells.declared]
            cells.outside += bool(strange)
            cells.undeclared.update(strange)


def _labels(column: Any) -> Iterator[list[str]]:
    for cell in as_list(column):
        found = (canonical(label) for label, _weight in pairs(cell))
        yield [label for label in found if label is not None]
