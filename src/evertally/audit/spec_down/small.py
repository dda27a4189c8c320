"""A small copy of one query of a spec, made by the runtime as the stream itself is made: few ticks, few labels.

The copy is a spec of its own, with the same guarantee, relation, unit, caps and share, and goes through the same
reading, `build` and `Stream`. What the noise of many ticks needs is asked elsewhere, at the full horizon; here the way
of an event is the same, and everything that can happen is small enough to be tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evertally.errors import ConfigurationError
from evertally.runtime.mechanisms import build
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.runtime.table.given import spec_from

TICKS = (3, 4, 6, 8, 12, 16, 24, 32, 48)  # tried in this order: some statistics need a longer stream
_ENDLESS = 3  # ticks that are played of a stream without an end
_LABELS = 3
_FEW = {"bits": 64, "width": 8, "columns": 3, "size": 4, "max_users": 3}  # sizes of tables
# For readers, or of the runtime: they decide nothing that is counted.
_WORDS = ("title", "noun", "unit", "description", "window", "per")
_IN_TICKS = ("period", "every", "min_separation", "windows", "max_lifetime", "ages", "first_block")
_KEPT = ("stream", "guarantee", "clock", "events", "query")


@dataclass(frozen=True)
class Small:
    """A spec with one query, its mechanism before the first tick, and how many ticks of it are played."""

    spec: StreamSpec
    made: Any
    ticks: int

    @property
    def query(self) -> QuerySpec:
        """The only one."""
        return self.spec.queries[0]


def small_copy(
    content: Mapping[str, Any],
    spec: StreamSpec,
    name: str,
    made: Any,
    least: int = 1,
    full: bool = False,
    exactly: int | None = None,
) -> Small:
    """The shortest copy of `least` ticks that can be built, with as few labels as it can be built with. `full`: at its
    own horizon; `exactly`: of so many ticks.

    >>> from evertally.runtime.table.given import spec_from
    >>> by_ward = {"name": "w", "kind": "histogram", "column": "ward", "categories": ["a", "b", "c", "d"]}
    >>> content = {"stream": {"name": "s", "horizon": 1000}, "guarantee": {"rho": 0.5}, "query": [by_ward]}
    >>> content["clock"] = {"start": 0, "tick": 1}
    >>> spec = spec_from(content)
    >>> small = small_copy(content, spec, "w", build(spec, None)["w"])
    >>> small.ticks, small.made.horizon, small.made.labels, small.made.mechanism
    (3, 3, ('a', 'b', 'c'), 'bank')
    """
    number = next(i for i, query in enumerate(spec.queries) if query.name == name)
    problem = ConfigurationError(f"{name}: no small copy")
    lengths = (exactly,) if exactly else TICKS if not full or spec.horizon is None else (spec.horizon,)
    for stream in _streams(content["stream"], spec.horizon, [ticks for ticks in lengths if ticks >= least]):
        for table in _tables(content["query"][number], str(spec.queries[number].share), made):
            kept = {section: content[section] for section in _KEPT if section in content}
            clock = {option: value for option, value in content["clock"].items() if option != "end"}
            try:
                small = spec_from(kept | {"stream": stream, "clock": clock, "query": [table]}, spec.guarantee)
                small = replace(small, shared=spec.shared)
                mechanism = build(small, None)[name]
            except ConfigurationError as refusal:
                problem = refusal
                continue
            return Small(small, mechanism, stream.get("horizon", max(least, _ENDLESS)))
    raise problem


def ragged(content: Mapping[str, Any], spec: StreamSpec, name: str, longest: int) -> int | None:
    """A number of ticks, of at most so many, in which nothing that is declared in ticks (periods, blocks, windows,
    ages) fits without a rest, though each fits once; None where nothing is, or where there is no such number.

    >>> from evertally.runtime.table.given import spec_from
    >>> content = {"stream": {"name": "s", "horizon": 99, "unit": "user", "user_column": "who"}}
    >>> content |= {"guarantee": {"rho": 0.5}, "clock": {"start": 0, "tick": 1}}
    >>> content["query"] = [{"name": "w", "kind": "period_users", "period": 4, "so_far": True}]
    >>> ragged(content, spec_from(content), "w", 12)
    6
    """
    table = next(query for query in content["query"] if query["name"] == name)
    declared = {length for option in _IN_TICKS for length in _whole(table.get(option))}
    declared = {length for length in declared | {spec.period or 0} if 1 < length < longest}
    if spec.horizon is None or not declared:
        return None
    lengths = range(max(declared) + 1, min(longest, spec.horizon) + 1)
    rests = {ticks: min(min(ticks % one, one - ticks % one) for one in declared) for ticks in lengths}
    # The first of those that are farthest from a multiple.
    best = max(rests, key=lambda ticks: rests[ticks], default=0)
    return best if rests.get(best) else None


def _whole(written: Any) -> Iterator[int]:
    """Numbers of ticks in an option."""
    for one in written if isinstance(written, list) else [written]:
        if isinstance(one, int) and not isinstance(one, bool):
            yield one


def _streams(written: Mapping[str, Any], horizon: int | None, lengths: Iterable[int]) -> Iterator[dict[str, Any]]:
    """The stream with so many ticks; without what the spec would refuse where this is the only query."""
    for ticks in lengths:
        if horizon is not None and ticks > horizon:
            ticks = horizon
        shorter = dict(written) if horizon is None else {**written, "horizon": ticks}
        yield shorter
        for needless in (("max_events_per_user",), ("user_column",)):
            if any(option in shorter for option in needless):
                yield {option: value for option, value in shorter.items() if option not in needless}
        if horizon is None or ticks == horizon:
            return


def _tables(written: Mapping[str, Any], share: str, made: Any) -> Iterator[dict[str, Any]]:
    """The query with the mechanism that runs, and fewer labels; then with less of that, where it is refused."""
    plain = {option: value for option, value in written.items() if option not in _WORDS} | {"share": share}
    named = plain if "mechanism" in plain else plain | {"mechanism": made.mechanism}
    for table in (named, plain) if named is not plain else (plain,):
        yield _shrunk(table, made)
        yield table


def _shrunk(table: Mapping[str, Any], made: Any) -> dict[str, Any]:
    small = dict(table)
    for option, few in _FEW.items():  # what is not written may be large as well
        if option not in table and isinstance(value := made._options.get(option), int) and value > few:
            small[option] = few
    for option, value in table.items():
        if isinstance(value, list) and option in ("categories", "types", "columns") and len(value) > _LABELS:
            small[option] = value[:_LABELS] if option != "columns" or "vertices" not in table else value
        elif option in _FEW and isinstance(value, int) and value > _FEW[option]:
            small[option] = _FEW[option]
    if isinstance(small.get("k"), int) and isinstance(small.get("categories"), list):
        small["k"] = min(small["k"], len(small["categories"]))
    return small
