"""What may stand in the columns of a record, from the words of a query: declared labels and others, bounds and what
lies beyond them, lists that are cut, events whose parts are merged, nothing at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evertally.audit.spec_down.small import Small

_BEYOND = 1e300
_HEAVY = 10**6
_NOT_DECLARED = (
    "evertally-undeclared",
    "evertally-unheard-of",
    "evertally-unknown",
    "evertally-unseen",
    "evertally-new",
)
_NAMES = ("one", "two", "three")  # of items
EACH = object()  # another name for each copy of a record
STRANGE = 0.5  # no label, and no record that compiled code reads: beside it others are looked at one by one
TARGET, OTHERS = "ann", ("bob", "cy", "dan")
# Blanks that make another label, or another user, of a text (encode/labels.py), where a reader may think otherwise.
_BLANKS = (" {}", "{} ", "\t{}", "\u00a0{}", "{}\u3000\t")
_NO_CONTENT = ("name", "kind", "share", "mechanism", "column", "static", "process", "partition", "identity", "protects")
_FEW = 4  # labels
_MOST = 13  # values of a column


@dataclass(frozen=True)
class Columns:
    """The columns of a record with the values that are tried, and which of them say whose a record is.

    The first value of an owner's column is the target's, and nobody else has it.
    """

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    owners: tuple[int, ...]

    def record(self, cells: tuple[int, ...], copy: int = 0) -> dict[str, Any]:
        """The record of some values, by their numbers; its copies may have names of their own."""
        found = {name: pool[i] for name, pool, i in zip(self.names, self.values, cells, strict=True)}
        return {name: f"item {copy}" if value is EACH else value for name, value in found.items()}


def columns_of(small: Small, table: Mapping[str, Any]) -> Columns:
    """The columns that the query reads, and that of users."""
    owners = owner_columns(small, table)
    names = list(dict.fromkeys([*small.spec.wanted(small.spec.user_column), *owners]))
    pools: list[tuple[Any, ...]] = []
    for name in names:
        pool = _pool(name, small, table, name in owners)
        # Two ends of an edge that have the same values begin with different ones.
        turned = 1 if name not in owners and len(pool) > 2 and pool in pools else 0
        pools.append((*pool[turned:-1], *pool[:turned], pool[-1]))
    return Columns(tuple(names), tuple(pools), tuple(names.index(owner) for owner in owners))


def blanked(cell: Any) -> list[str]:
    """A text or a number with blanks in front of it, or behind.

    >>> blanked("ann")[:3], blanked(None)
    ([' ann', 'ann ', '\\tann'], [])
    """
    return [form.format(cell) for form in _BLANKS] if type(cell) in (str, int, float) else []


def owner_columns(small: Small, table: Mapping[str, Any]) -> list[str]:
    """The columns by which records belong to what is protected; none where single events are."""
    spec, items = small.spec, small.query.items
    if items is not None:
        if items.one == "node":
            return [str(name) for name in table["columns"]]
        return [str(table["id"])] if "id" in table else []
    return [] if spec.unit == "event" or spec.user_column is None else [spec.user_column]


def _pool(name: str, small: Small, table: Mapping[str, Any], owner: bool) -> tuple[Any, ...]:
    if name == small.spec.user_column:
        return TARGET, *OTHERS, EACH, None
    read = [column for column in small.query.columns if column.name == name]
    uses, options = {column.reads.use for column in read}, {column.option for column in read}
    found: list[Any] = []
    if options & {"id"}:
        found += [*_NAMES, EACH] if owner else [EACH, *_NAMES]
    if "action" in options:
        found += [table.get("insert", "insert"), table.get("delete", "delete")]
    elif owner and table.get("vertices"):
        vertices = table["vertices"]
        found += list(range(vertices) if isinstance(vertices, int) else vertices)[:_FEW]
    elif "amounts" in uses:
        found += _amounts(table)
    elif uses:
        written = {option: value for option, value in table.items() if not _names_columns(value, small.spec.columns())}
        if isinstance(letters := written.get("alphabet"), str):
            written["alphabet"] = list(letters)
        if (cells := _cells_of(name, table)) is not None:
            written[name] = cells
        found += _labels(name, written, several=any("list of text" in column.reads.declared for column in read))
    return *_distinct(found)[: _MOST - 1], None  # nothing is the last, however many there are


def _names_columns(value: Any, columns: list[str]) -> bool:
    """Whether an option says which columns are read."""
    return (
        value in columns if isinstance(value, str) else isinstance(value, list) and all(one in columns for one in value)
    )


def _amounts(table: Mapping[str, Any]) -> list[float]:
    numbers = sorted({float(value) for value in _walk(table) if isinstance(value, int | float)}, key=abs)
    ends = [numbers[-1], numbers[0]] if numbers else []
    middle = [sum(ends) / 2] if ends else []
    signs = [-ends[0]] if ends and table.get("signed") else []
    return [*ends, *signs, 1.0, *middle, _BEYOND, -_BEYOND, 0.0, *numbers]


def _labels(name: str, table: Mapping[str, Any], several: bool) -> list[Any]:
    own = next(_under(name, table), None)
    if isinstance(own, int):
        own = list(range(min(own, _FEW)))
    if isinstance(own, list):
        declared = own[:_FEW]
    else:
        words = [value for value in _walk(table) if isinstance(value, str)]
        sizes = [table[option] for option in ("columns", "size") if isinstance(table.get(option), int)]
        counted = list(range(min(sizes[0], _FEW))) if sizes else []
        numbers = [value for value in _walk(table) if isinstance(value, int | float) and not isinstance(value, bool)]
        declared = [*counted, *words[:_FEW], *numbers[:_FEW]]
    single = [*declared, *(_NOT_DECLARED[:2] if declared else _NOT_DECLARED)]
    if not several:
        return [*single, STRANGE]
    labels = [str(label) for label in single[: _FEW + 1]]
    lists = [labels[:2], labels[2:4], labels, [labels[0]] * 3]
    weights = [{labels[0]: _HEAVY}, dict.fromkeys(labels, _HEAVY), dict.fromkeys(labels[:2], -_HEAVY)]
    return [*single[:3], *lists, *weights, STRANGE, *single[3:]]


def _cells_of(name: str, table: Mapping[str, Any]) -> int | None:
    """How many cells a column has in the family that the query asks about."""
    names, family = table.get("columns"), table.get("family")
    shape = family.get("shape") if isinstance(family, Mapping) else None
    if not isinstance(names, list) or not isinstance(shape, list) or name not in names[: len(shape)]:
        return None
    cells = shape[names.index(name)]
    return cells if isinstance(cells, int) else None


def _under(name: str, table: Any) -> Iterator[Any]:
    """What is written under the name of a column, wherever it is."""
    if isinstance(table, Mapping):
        for key, value in table.items():
            if key == name and isinstance(value, list | int):
                yield value
            else:
                yield from _under(name, value)


def _walk(value: Any, top: bool = True) -> Iterator[Any]:
    """All that is written in the options; words that stand in lists come first."""
    if isinstance(value, Mapping):
        kept = [part for option, part in value.items() if not (top and option in _NO_CONTENT)]
        for part in sorted(kept, key=lambda part: not isinstance(part, list)):
            yield from _walk(part, False)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _walk(part, False)
    elif not isinstance(value, bool):
        yield value


def _distinct(values: Iterable[Any]) -> list[Any]:
    found: dict[str, Any] = {}
    for value in values:
        found.setdefault(repr(value), value)
    return list(found.values())
