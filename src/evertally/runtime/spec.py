"""The stream spec: one TOML file that says what is released, under which guarantee, on which clock, and where
things are kept.

Everything is checked here, before a key is made or an input opened. Each refusal names the file, the line and
what to write instead. The digest covers all that is public about the stream and leaves out where its files
are.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NoReturn

from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.runtime.clock import Clock
from evertally.runtime.spec_file import SpecFile, nearest
from evertally.runtime.spec_options import (
    KINDS,
    LINEAR,
    QUERY,
    REQUIRED,
    REQUIRED_BY_KIND,
    SECTIONS,
    SELECTION,
    TUNING,
    UNKNOWN,
    WITH_META,
    rests_on_rate,
)

Unit = Literal["event", "user"]


@dataclass(frozen=True)
class QuerySpec:
    """One released statistic: its mechanism, its share of the guarantee, and its column (None: events are counted)."""

    name: str
    kind: str
    share: Fraction
    column: str | None
    parameters: Mapping[str, Any]
    line: int

    @property
    def mechanism(self) -> str | None:
        """The mechanism that the spec names."""
        return self.parameters.get("mechanism")

    def takes_whole(self, guarantee: Guarantee) -> bool:
        """Whether its mechanism pays in epsilon and delta themselves, of which there are no shares."""
        switching = self.kind == "streaming-top" and self.mechanism in (None, "sparse-gumbel")
        return switching and isinstance(guarantee, ApproxDP) and guarantee.adversary == "adaptive"


@dataclass(frozen=True)
class StreamSpec:
    """A checked spec. Paths are absolute; what is not in the file has its default."""

    path: Path
    name: str
    horizon: int | None
    neighbours: str
    unit: Unit
    max_events_per_user: int | None
    user_column: str | None
    max_events_per_tick: int | None
    guarantee: Guarantee
    shared: Guarantee  # what the queries get shares of: it suffices for the guarantee
    clock: Clock
    key_file: Path
    state_file: Path
    output_file: Path
    beta: float
    queries: tuple[QuerySpec, ...]
    digest: str

    def columns(self) -> list[str]:
        """The input columns that the stream needs, each once."""
        wanted = [self.clock.column, self.user_column, *(query.column for query in self.queries)]
        return list(dict.fromkeys(name for name in wanted if name is not None))

    def refuse(self, line: int, problem: str) -> NoReturn:
        """A ConfigurationError that points into the file."""
        raise ConfigurationError(f"{self.path}:{line}: {problem}")


def load_spec(path: str | os.PathLike[str]) -> StreamSpec:
    """Reads and checks a spec file."""
    file = SpecFile(Path(path).absolute())
    sections = {name: _section(file, name) for name in SECTIONS}
    for name in file.content:
        if name not in SECTIONS and name != "query":
            file.refuse(f"there is no section [{name}].{nearest(name, [*SECTIONS, 'query'])}", name)
    stream, clock = sections["stream"], _clock(file, sections["clock"])
    guarantee, queries = _guarantee(file, sections["guarantee"]), _queries(file)
    spec = StreamSpec(
        path=file.path,
        name=stream["name"],
        horizon=_horizon(file, stream.get("horizon"), clock),
        neighbours=stream.get("neighbours", "add_remove"),
        unit=_unit(file, stream),
        max_events_per_user=stream.get("max_events_per_user"),
        user_column=stream.get("user_column"),
        max_events_per_tick=stream.get("max_events_per_tick"),
        guarantee=guarantee,
        shared=_shared(file, guarantee, queries),
        clock=clock,
        key_file=file.path.parent / sections["key"]["file"],
        state_file=file.path.parent / sections["state"]["file"],
        output_file=_output(file, sections["output"]["file"]),
        beta=sections["output"].get("beta", 0.05),
        queries=queries,
        digest="",
    )
    if len({spec.key_file, spec.state_file, spec.output_file, spec.path}) < 4:
        file.refuse("the spec, key, state and output must be four different files", "state", "file")
    growing = next((q.kind for q in queries if q.kind not in LINEAR and rests_on_rate(q.kind, q.mechanism)), None)
    if growing is not None and spec.max_events_per_tick is None:
        # A default would be a promise that nobody made: error bounds and the choice of a mechanism rest on it.
        file.refuse(
            f"[stream] needs 'max_events_per_tick' for a {growing}: a public guess that error bounds rest on", "stream"
        )
    return replace(spec, digest=_digest(spec, sections["guarantee"]))


def _section(file: SpecFile, name: str) -> dict[str, Any]:
    if name not in file.content:
        raise ConfigurationError(f"{file.path}: the section [{name}] is missing; it needs {_needs(name)}")
    values = file.checked(file.content[name], SECTIONS[name], name)
    for option in REQUIRED[name]:
        if option not in values:
            file.refuse(f"[{name}] needs {option!r}", name)
    return values


def _needs(name: str) -> str:
    return ", ".join(REQUIRED[name]) or "epsilon, or epsilon and delta, or rho"


def _clock(file: SpecFile, values: dict[str, Any]) -> Clock:
    try:
        return Clock.declared(**values)
    except ConfigurationError as error:
        option = str(error).split(" ", 1)[0]
        file.refuse(f"[clock] {error}", "clock", option if option in values else None)


def _horizon(file: SpecFile, horizon: int | None, clock: Clock) -> int | None:
    if horizon is not None and clock.ticks is not None and clock.ticks > horizon:
        file.refuse(
            f"[clock] end is {clock.ticks} ticks after start, but [stream] horizon is {horizon}; raise the horizon",
            "clock",
            "end",
        )
    return horizon if horizon is not None else clock.ticks


def _unit(file: SpecFile, stream: dict[str, Any]) -> Unit:
    unit: Unit = stream.get("unit", "event")
    for option in ("max_events_per_user", "user_column"):
        if (option in stream) != (unit == "user"):
            problem = f'unit = "user" needs {option}' if unit == "user" else f'{option} needs unit = "user"'
            file.refuse(f"[stream] {problem}", "stream", option if option in stream else "unit")
    return unit


def _guarantee(file: SpecFile, values: dict[str, Any]) -> Guarantee:
    forms: dict[frozenset[str], Callable[..., Guarantee]] = {
        frozenset({"epsilon"}): PureDP,
        frozenset({"rho"}): ZCDP,
        frozenset({"epsilon", "delta"}): ApproxDP,
    }
    form = forms.get(frozenset(values) - {"adversary"})
    if form is None:
        file.refuse("[guarantee] needs exactly one of: epsilon; epsilon and delta; rho", "guarantee")
    try:
        return form(**values)
    except ConfigurationError as error:
        named = next((option for option in values if option in str(error)), None)
        file.refuse(f"[guarantee] {error}", "guarantee", named)


def _shared(file: SpecFile, guarantee: Guarantee, queries: tuple[QuerySpec, ...]) -> Guarantee:
    """Shares of (epsilon, delta) are zCDP, without a delta; queries about unknown items need one."""
    for number, query in enumerate(queries, 1):
        if query.takes_whole(guarantee) and len(queries) > 1:
            file.refuse(
                '[[query]] mechanism "sparse-gumbel" pays in epsilon and delta, which have no shares: give it a stream '
                'of its own, or use mechanism = "meta"; if events do not depend on what was released, '
                '[guarantee] adversary = "oblivious" works too',
                "query",
                "kind",
                number,
            )
        if query.takes_whole(guarantee) and query.share < 1:
            file.refuse(
                '[[query]] mechanism "sparse-gumbel" takes the whole guarantee: leave out share',
                "query",
                "share",
                number,
            )
        if query.kind in UNKNOWN and not isinstance(guarantee, ApproxDP):
            file.refuse(
                f"[[query]] {_a(query.kind)} needs a [guarantee] of epsilon and delta: what only one event brought may "
                "show up, with a small probability, where labels are not declared",
                "query",
                "kind",
                number,
            )
    if isinstance(guarantee, ApproxDP) and any(query.kind in UNKNOWN for query in queries):
        return guarantee.with_bad_event()
    return guarantee


def _output(file: SpecFile, name: str) -> Path:
    if Path(name).suffix.lower() not in (".jsonl", ".csv"):
        file.refuse("[output] file must end in .jsonl or .csv", "output", "file")
    return file.path.parent / name


def _queries(file: SpecFile) -> tuple[QuerySpec, ...]:
    tables = file.content.get("query")
    if not isinstance(tables, list) or not tables:
        raise ConfigurationError(f"{file.path}: nothing is asked; add at least one [[query]] with a name and a kind")
    parsed = [_query(file, table, number) for number, table in enumerate(tables, 1)]
    _refuse_twins(file, [values["name"] for values in parsed])
    shares = _shares(file, [values.pop("share", None) for values in parsed])
    return tuple(
        QuerySpec(
            name=values.pop("name"),
            kind=values.pop("kind"),
            share=share,
            column=values.pop("column", None),
            line=file.line("query", None, number),
            parameters=values,
        )
        for number, (values, share) in enumerate(zip(parsed, shares, strict=True), 1)
    )


def _query(file: SpecFile, table: object, number: int) -> dict[str, Any]:
    kind = table.get("kind") if isinstance(table, dict) else None
    own = KINDS.get(kind, {}) if isinstance(kind, str) else {}
    if own:
        values = file.checked(table, {**QUERY, **own}, "query", number)
    else:  # the kind itself is missing or wrong: check the rest without blaming options that some kind would know
        values = file.checked(
            table,
            {**QUERY, **{o: c for options in KINDS.values() for o, c in options.items()}},
            "query",
            number,
        )
    for option in ("name", "kind", *REQUIRED_BY_KIND.get(str(kind), ())):
        if option not in values:
            suffix = "" if option in ("name", "kind") else f" for {_a(str(kind))}"
            file.refuse(f"[[query]] needs {option!r}{suffix}", "query", None, number)
    if kind == "counter" and "max_weight" in values and "column" not in values:
        file.refuse(
            "[[query]] max_weight needs a column to add up; without one events are counted",
            "query",
            "max_weight",
            number,
        )
    _check_together(file, str(kind), values, number)
    return values


def _a(kind: str) -> str:
    return f"{'an' if kind.startswith('u') else 'a'} {kind}"


def _check_together(file: SpecFile, kind: str, values: dict[str, Any], number: int) -> None:
    """Options that need, or exclude, each other."""
    if kind == "query" and ("expression" in values) == ("expressions" in values):
        file.refuse(
            "[[query]] needs either 'expression' (one) or 'expressions' (several, by name)", "query", None, number
        )
    if kind in SELECTION:
        meta = values.get("mechanism") == "meta"
        for option in values:
            if WITH_META.get(option, meta) != meta:
                other = 'mechanism = "meta"' if not meta else 'another mechanism than "meta"'
                file.refuse(f"[[query]] {option} of {_a(kind)} goes with {other}", "query", option, number)
    if kind not in LINEAR:
        return
    sparse = values.get("mechanism") == "sparse"
    for option in values:
        if option in TUNING and not sparse:
            file.refuse(f'[[query]] {option} of a {kind} goes with mechanism = "sparse"', "query", option, number)
    if sparse and values.get("signed"):
        file.refuse(
            "[[query]] sparse mechanisms need counts that only grow: leave out signed", "query", "signed", number
        )


def _refuse_twins(file: SpecFile, names: list[str]) -> None:
    for number, name in enumerate(names, 1):
        if name in names[: number - 1]:
            file.refuse(f"[[query]] the name {name!r} is taken; every query needs its own", "query", "name", number)


def _shares(file: SpecFile, given: list[Fraction | None]) -> list[Fraction]:
    if all(share is None for share in given):
        return [Fraction(1, len(given))] * len(given)
    total = Fraction(0)
    shares = []
    for number, share in enumerate(given, 1):
        if share is None:
            file.refuse(
                "[[query]] needs 'share': give one to every query, or to none (equal shares)",
                "query",
                None,
                number,
            )
        total += share
        if total > 1:
            file.refuse(
                f"[[query]] the shares add up to {float(total):g}, more than the whole guarantee",
                "query",
                "share",
                number,
            )
        shares.append(share)
    return shares


def _digest(spec: StreamSpec, guarantee: Mapping[str, int | float | str]) -> str:
    public: dict[str, Any] = {
        "format": 1,
        "stream": [
            spec.name,
            spec.horizon,
            spec.neighbours,
            spec.unit,
            spec.max_events_per_user,
            spec.user_column,
        ],
        "guarantee": {
            option: value if isinstance(value, str) else str(Fraction(value)) for option, value in guarantee.items()
        },
        "clock": [
            spec.clock.column,
            spec.clock.start,
            spec.clock.length,
            spec.clock.integer,
            spec.clock.ticks,
        ],
        "beta": spec.beta,
        "queries": [
            [query.name, query.kind, str(query.share), query.column, dict(query.parameters)] for query in spec.queries
        ],
    }
    if spec.max_events_per_tick is not None:
        public["max_events_per_tick"] = spec.max_events_per_tick
    return hashlib.sha256(json.dumps(public, sort_keys=True).encode()).hexdigest()
