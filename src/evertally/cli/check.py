"""`evertally check`: a spec, and a sample of test data, tried without a key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evertally.cli.show import printable
from evertally.runtime import StreamSpec, load_spec
from evertally.runtime.input.sources import InputFile
from evertally.runtime.plan import advice_of
from evertally.runtime.sample import Cells, Tried, try_sample, try_spec

_WARNING = """\
These figures are exact. They are about the sample, for you alone: use test data. Never choose a label, a bound or any
other parameter by looking at private data: the choice would reveal it, and no promise covers it."""


def command(spec_file: Path, sample: Path | None) -> bool:
    """Whether the sample, if there is one, would count."""
    spec = load_spec(spec_file)
    if sample is None:
        try_spec(spec)
    tried = None if sample is None else try_sample(spec, InputFile(sample))
    queries = f"{len(spec.queries)} quer{'y' if len(spec.queries) == 1 else 'ies'}"
    print(f"{spec_file} is in order: {spec.name}, {queries}, {spec.guarantee}")
    for line in advice_of(spec):
        print(f"NOTE     {line}")
    if tried is None:
        return True
    print("\n".join(_lines(spec, tried, str(sample))))
    print(_WARNING)
    return tried.fits


def _lines(spec: StreamSpec, tried: Tried, name: str) -> Iterator[str]:
    for missing, alike in tried.missing.items():
        meant = f" Did you mean {printable(alike)!r}?" if alike else ""
        yield f"MISSING  the spec names a column {missing!r}, and {name} has none.{meant}"
    if tried.missing:
        yield f"It has: {', '.join(map(printable, tried.columns)) or 'no columns at all'}"
        return
    used = {spec.clock.column, *spec.columns()}
    ignored = [printable(column) for column in tried.columns if column not in used]
    yield "Columns  all that are needed are there" + (f"; not used: {', '.join(ignored)}" if ignored else "")
    broken = f"; {_number(tried.broken, 'line')} cannot be read as one" if tried.broken else ""
    yield f"Rows     {tried.rows:,}{broken}"
    if tried.unreadable is not None:
        yield f"Times    {_times(spec, tried)}"
    elif spec.clock.column is not None and not spec.clock.floating:
        yield f"Times    no column {spec.clock.column!r}: the sample can be sent to a service, but not run as a file"
    if tried.without_user is not None:
        yield f"Users    {_number(tried.without_user, 'row')} without one, left out"
    for cells in tried.cells:
        yield f"Query    {cells.query}: {_of_cells(cells)}"
        for label, declared in cells.near_misses():
            yield f"         {printable(label)!r} is not declared. Did you mean {declared!r}?"
    dry = f"one tick with {_number(tried.dry, 'row')} and simulated noise went through"
    yield f"Dry run  {dry}; no key, state or output was read or made"
    if not tried.fits:
        yield "NOTHING of the sample would be counted"


def _times(spec: StreamSpec, tried: Tried) -> str:
    clock = spec.clock
    parts = [f"{tried.inside:,} inside the clock"]
    if tried.before:
        parts.append(f"{tried.before:,} before its start, {clock.end_of(0)}")
    if tried.after and spec.last_tick is not None:
        parts.append(f"{tried.after:,} at or after its end, {clock.end_of(spec.last_tick)}")
    if tried.unreadable:
        parts.append(f"{tried.unreadable:,} that cannot be read (write them like {clock.end_of(0)})")
    return "; ".join(parts)


def _of_cells(cells: Cells) -> str:
    what = f"column {cells.column!r}"
    if cells.use == "amounts":
        cut = (
            "" if cells.bounds is None else f", {cells.outside:,} beyond {cells.bounds[0]:g}..{cells.bounds[1]:g}: cut"
        )
        return f"{what}, {_number(cells.missing, 'cell')} without a number{cut}"
    if cells.declared is None:
        return f"{what}, {_number(cells.missing, 'cell')} empty"
    where = "for nothing" if cells.other is None else f"as {cells.other!r}"
    undeclared = f"{cells.outside:,} with labels that are not declared, counted {where}"
    return f"{what}, {_number(cells.missing, 'cell')} empty, {undeclared}"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
