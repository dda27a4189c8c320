"""The stream spec: one TOML file that says what is released, under which guarantee, on which clock, and where
things are kept.

Everything is checked here, before a key is made or an input opened. Each refusal names the file, the line and
what to write instead. The digest covers all that decides releases, and leaves out where files are and how the stream
is served.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import Annotated, Any

from pydantic import PlainValidator

from evertally import kinds
from evertally.errors import ConfigurationError
from evertally.kinds.query_table import Query, a
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.runtime.clock import FIRST_SERVE, Clock
from evertally.runtime.spec import sections
from evertally.runtime.spec.checks import check_whole
from evertally.runtime.spec.file import Model, SpecFile, nearest
from evertally.runtime.spec.types import EngineSpec, QuerySpec, ServeSpec, SinkSpec, StreamSpec, Words

_SECONDS_AFTER = 0.5
_STRANGERS_OF_ONE_ADDRESS = 64
_WORDS = ("title", "noun", "unit", "description", "window", "per")  # for readers: they decide nothing
_OF_ALL_KINDS = ("name", "kind", "share", "column", *_WORDS)  # options that are no parameters of a mechanism


def load_spec(path: str | os.PathLike[str]) -> StreamSpec:
    """Reads and checks a spec file."""
    return spec_of(SpecFile(Path(path).absolute()))


def spec_of(file: SpecFile) -> StreamSpec:
    """Checks what a spec file says, or what was given in its place."""
    # First of all: a misspelt section is the cause more often than not if one is missing.
    for name in file.content:
        if name not in sections.ALL:
            where = f"{file.path}:{file.line(name)}"
            raise ConfigurationError(f"{where}: there is no section [{name}].{nearest(name, sections.ALL)}")
    stream = _section(file, "stream", sections.StreamSection)
    promised = _section(file, "guarantee", sections.GuaranteeSection)
    declared = _section(file, "clock", sections.ClockSection)
    key, state = _section(file, "key", sections.KeySection), _section(file, "state", sections.StateSection)
    output = _section(file, "output", sections.OutputSection, needed=False)
    retention = _section(file, "retention", sections.RetentionSection, needed=False)
    serve = _section(file, "serve", sections.ServeSection, needed=False)
    engine = _section(file, "engine", sections.EngineSection, needed=False)
    clock, guarantee = _clock(file, declared), _guarantee(file, promised)
    queries = _queries(file, clock)
    folder = file.path.parent
    period = None if stream.period is None else _ticks(file, clock, stream.period, "stream", "period")
    spec = StreamSpec(
        **dict(stream) | {"horizon": _horizon(file, stream.horizon, clock), "period": period},
        path=file.path,
        guarantee=guarantee,
        shared=shared_guarantee(file, guarantee, queries),
        clock=clock,
        key_file=folder / key.file,
        state_file=folder / state.file,
        output_file=None if output.file is None else folder / output.file,
        beta=output.beta,
        queries=queries,
        digest="",
        events=_events(file),
        snapshot_every=state.snapshot_every,
        batch_ids=state.batch_ids,
        sinks=_sinks(file, output),
        sources=tuple(
            file.read(sections.SourceSection, table, "source", number)
            for number, table in enumerate(_tables(file, "source"), 1)
        ),
        retention=retention,
        serve=_serve(file, serve, clock),
        engine=_engine(file, engine, folder / key.file, folder / state.file),
        file=file,
    )
    check_whole(spec)
    public = _public(spec, promised.given())
    return replace(spec, digest=_digest(public), parts=_parts(public))


def _section(file: SpecFile, name: str, model: type[Model], needed: bool = True) -> Model:
    if needed and name not in file.content:
        options = [option for option, field in model.model_fields.items() if field.is_required()]
        needs = ", ".join(options) or "epsilon, or epsilon and delta, or rho"
        raise ConfigurationError(f"{file.path}: the section [{name}] is missing; it needs {needs}")
    return file.read(model, file.content.get(name, {}), name)


def _events(file: SpecFile) -> Mapping[str, str] | None:
    if "events" not in file.content:
        return None
    return dict(file.read(sections.EventsSection, file.content["events"], "events").root)


def _clock(file: SpecFile, section: sections.ClockSection) -> Clock:
    try:
        return Clock.declared(section.column, section.start, section.tick, section.end, section.close)
    except ConfigurationError as error:
        option = str(error).split(" ", 1)[0]
        file.refuse(str(error), "clock", option if option in section.model_fields_set else None)


def _horizon(file: SpecFile, horizon: int | None, clock: Clock) -> int | None:
    if horizon is not None and clock.ticks is not None and clock.ticks > horizon:
        problem = f"end is {clock.ticks} ticks after start, but [stream] horizon is {horizon}; raise the horizon"
        file.refuse(problem, "clock", "end")
    return horizon if horizon is not None else clock.ticks


def _guarantee(file: SpecFile, section: sections.GuaranteeSection) -> Guarantee:
    values = section.given()
    form: Any = ZCDP if "rho" in values else ApproxDP if "delta" in values else PureDP
    try:
        guarantee: Guarantee = form(**values)
    except ConfigurationError as error:
        named = next((option for option in values if option in str(error)), None)
        file.refuse(str(error), "guarantee", named)
    return guarantee


def shared_guarantee(file: SpecFile, guarantee: Guarantee, queries: tuple[QuerySpec, ...]) -> Guarantee:
    """Shares of (epsilon, delta) are zCDP, without a delta; queries about unknown items need one."""
    for number, query in enumerate(queries, 1):
        refuse = partial(file.refuse, section="query", number=number)
        undivided = query.record.undivided if query.takes_whole(guarantee) else None
        if undivided is not None and len(queries) > 1:
            refuse(
                f'mechanism "{undivided.mechanism}" pays in epsilon and delta, which have no shares: give it '
                f'a stream of its own, or use mechanism = "{undivided.instead}"; if events do not depend on what was '
                'released, [guarantee] adversary = "oblivious" works too',
                option="kind",
            )
        if undivided is not None and query.share < 1:
            refuse(f'mechanism "{undivided.mechanism}" takes the whole guarantee: leave out share', option="share")
        if query.record.needs_delta and not isinstance(guarantee, ApproxDP):
            refuse(
                f"{a(query.kind)} needs a [guarantee] of epsilon and delta: what only one event brought may "
                "show up, with a small probability, where labels are not declared",
                option="kind",
            )
    if isinstance(guarantee, ApproxDP) and any(query.record.needs_delta for query in queries):
        return guarantee.with_bad_event()
    return guarantee


def _sinks(file: SpecFile, output: sections.OutputSection) -> tuple[SinkSpec, ...]:
    """The output file is the first. What was delivered is remembered by name: a file may move with its folder."""
    sinks: dict[str, SinkSpec] = {}
    if output.file is not None:
        sinks["output"] = SinkSpec("output", file.path.parent / output.file, None, 0.0, output.spreadsheet)
    webhooks = 0
    for number, table in enumerate(_tables(file, "sink"), 1):
        section = file.read(sections.SinkSection, table, "sink", number)
        webhooks += section.webhook is not None
        name = f"webhook-{webhooks}" if section.file is None else Path(section.file).name
        if name in sinks:
            problem = f"there is a sink {name!r} already; the name of a file must be new, in any folder"
            file.refuse(problem, "sink", "file", number)
        path = None if section.file is None else file.path.parent / section.file
        sinks[name] = SinkSpec(name, path, section.webhook, section.timeout, section.spreadsheet)
    return tuple(sinks.values())


def _serve(file: SpecFile, section: sections.ServeSection, clock: Clock) -> ServeSpec:
    folder = file.path.parent
    on_the_wall = clock.close == "wall" and not clock.integer
    default = min(_SECONDS_AFTER, clock.length / 2_000_000) if on_the_wall else 0.0
    settled = {
        "tokens": folder / (section.tokens or f"{file.path.stem}.tokens"),
        "certificate": folder / section.certificate if section.certificate else None,
        "private_key": folder / section.private_key if section.private_key else None,
        "connections_per_address": section.connections_per_address
        or (None if section.behind_proxy else _STRANGERS_OF_ONE_ADDRESS),
        "hosts": None if section.hosts is None else tuple(section.hosts),
        "publish_after": default if section.publish_after is None else section.publish_after,
    }
    return ServeSpec(**dict(section) | settled)


def _engine(file: SpecFile, section: sections.EngineSection, key_file: Path, state_file: Path) -> EngineSpec:
    def place(given: str | None, default: str) -> str:
        return default if given is None else given if "://" in given else str(file.path.parent / given)

    settled: dict[str, str | Path] = {
        "root": place(section.root, f"{state_file}.root"),
        "home": place(section.home, f"{key_file}.marks"),
        "public": place(section.public, str(file.path.with_suffix(".public"))),
        "worker_key": Path(place(section.worker_key, f"{key_file}.worker")),
    }
    real = {name: _real(place) for name, place in settled.items()} | {"the key": _real(key_file)}
    if len(set(real.values())) < len(real):
        file.refuse("root, home, public, worker_key and the key are five different places", "engine")
    for outer, why in (("public", "readers see all of it"), ("root", "a backup of it must not hold marks or keys")):
        for inner, place_of_it in real.items():
            if inner != outer and place_of_it.is_relative_to(real[outer]):
                file.refuse(f"{inner} lies in {outer}: {why}. Each is a place of its own", "engine")
    return EngineSpec(**{name: value for name, value in section if name != "kind"} | settled)


def _real(place: str | Path) -> PurePath:
    """A place as it is, whatever it is called: links followed; addresses of other stores as they are written."""
    scheme, separator, rest = str(place).partition("://")
    if separator and scheme != "file":
        return PurePosixPath(scheme, *(part for part in rest.split("/") if part))
    return Path(rest if separator else place).resolve()


def _tables(file: SpecFile, section: str) -> list[Any]:
    tables = file.content.get(section, [])
    if not isinstance(tables, list):
        file.refuse(f"is written [[{section}]], with two brackets: there may be several", section)
    return tables


def _ticks(file: SpecFile, clock: Clock, given: Any, section: str, option: str, number: int = 1) -> Any:
    """Lengths of time in ticks of the clock."""
    try:
        if isinstance(given, list):
            return [clock.ticks_in(option, length) for length in given]
        return clock.ticks_in(option, given)
    except ConfigurationError as error:
        file.refuse(str(error), section, option, number)


def _parameters(file: SpecFile, clock: Clock, query: Query, number: int) -> dict[str, Any]:
    given = {option: value for option, value in query.given().items() if option not in _OF_ALL_KINDS}
    record = kinds.find(query.kind)
    for option in () if record is None else record.in_ticks:
        if option in given:
            given[option] = _ticks(file, clock, given[option], "query", option, number)
    return given


def _words(file: SpecFile, clock: Clock, query: Query, number: int) -> Words:
    given = {name: value for name in _WORDS if (value := getattr(query, name)) is not None}
    if "per" in given and "window" not in given:
        file.refuse("per needs window: a rate is about the ticks of a window", "query", "per", number)
    written = f"{given.get('window')}" + (f" per {given['per']}" if "per" in given else "")
    ticks = {name: _ticks(file, clock, given[name], "query", name, number) for name in _WORDS[4:] if name in given}
    return Words(**given | ticks, written=written if "window" in given else "")


def _queries(file: SpecFile, clock: Clock) -> tuple[QuerySpec, ...]:
    read = [_query(file, table, number) for number, table in enumerate(_tables(file, "query"), 1)]
    names = {spelling: record.name for record in kinds.known() for spelling in record.spellings}
    if not read:
        raise ConfigurationError(f"{file.path}: nothing is asked; add at least one [[query]] with a name and a kind")
    _refuse_twins(file, [query.name for query in read])
    shares = _shares(file, [query.share for query in read])
    return tuple(
        _whole(
            file,
            QuerySpec(
                name=query.name,
                kind=names[query.kind],
                share=share,
                column=query.column,
                line=file.line("query", None, number),
                parameters=_parameters(file, clock, query, number),
                words=_words(file, clock, query, number),
            ),
        )
        for number, (query, share) in enumerate(zip(read, shares, strict=True), 1)
    )


def _whole(file: SpecFile, query: QuerySpec) -> QuerySpec:
    """The query, if its categories and its rule for users can be told: only its class can judge the options they follow
    from."""
    try:
        _ = query.categories, query.user_rule
    except ConfigurationError as error:
        raise ConfigurationError(f"{file.path}:{query.line}: query {query.name!r}: {error}") from error
    return query


def _query(file: SpecFile, table: Any, number: int) -> Query:
    kind = table.get("kind") if isinstance(table, dict) else None
    record = kinds.find(kind)
    if record is not None:
        return file.read(record.options, table, "query", number, f" for {a(str(kind))}")
    # The kind itself is missing or wrong: options that some kind would know are not to blame.
    foreign = {option for one in kinds.known() for option in one.options.model_fields} - set(Query.model_fields)
    if isinstance(table, dict):
        table = {option: value for option, value in table.items() if option not in foreign}
    return file.read(_NoKind, table, "query", number)


def _refuse_kind(given: object) -> str:
    spellings = [spelling for record in kinds.known() for spelling in record.spellings]
    close = difflib.get_close_matches(str(given).lower(), spellings, 1)
    meant = f"names no kind. Did you mean {close[0]!r}? It" if close else ""
    names = ", ".join(repr(record.name) for record in kinds.known())
    raise ValueError(f"{meant} must be one of {names}".lstrip())


class _NoKind(Query):
    """A [[query]] of a kind that does not exist: read for the first mistake in it."""

    kind: Annotated[str, PlainValidator(_refuse_kind)]


def _refuse_twins(file: SpecFile, names: list[str]) -> None:
    for number, name in enumerate(names, 1):
        if name in names[: number - 1]:
            file.refuse(f"the name {name!r} is taken; every query needs its own", "query", "name", number)


def _shares(file: SpecFile, given: list[Fraction | None]) -> list[Fraction]:
    if all(share is None for share in given):
        return [Fraction(1, len(given))] * len(given)
    total = Fraction(0)
    shares = []
    for number, share in enumerate(given, 1):
        if share is None:
            file.refuse("needs 'share': give one to every query, or to none (equal shares)", "query", None, number)
        total += share
        if total > 1:
            file.refuse(f"the shares add up to {float(total):g}, more than the guarantee", "query", "share", number)
        shares.append(share)
    return shares


def _query_digest(query: QuerySpec) -> list[Any]:
    parameters = dict(query.parameters)
    parts = [query.name, query.record.digest_word, str(query.share), query.column, parameters]
    # A table of named questions is written down sorted, but answers come in the order of the file.
    names = query.result.categories(parameters) or []
    named = any(isinstance(table, Mapping) and list(table) == names for table in parameters.values())
    return [*parts, names] if named and names != sorted(names) else parts


def _digest(public: Any) -> str:
    return hashlib.sha256(json.dumps(public, sort_keys=True).encode()).hexdigest()


def _parts(public: Mapping[str, Any]) -> dict[str, str]:
    """Short digests, by what they are called in a spec: to say what was changed."""
    tables = {f"[{name}]": public[name] for name in ("stream", "guarantee", "clock")}
    tables["[stream]"] = [public["stream"], public.get("period"), public.get("max_events_per_tick")]
    tables["[stream]"] += [public["order"]] if "order" in public else []
    queries = {f"query {query[0]!r}": query for query in public["queries"]}
    parts = {**tables, "[output] beta": public["beta"], **queries, "the order of queries": list(queries)}
    return {name: _digest(part)[:16] for name, part in parts.items()}


def _public(spec: StreamSpec, guarantee: Mapping[str, int | float | str]) -> dict[str, Any]:
    """What decides releases."""
    public: dict[str, Any] = {
        "format": 1,
        "stream": [spec.name, spec.horizon, spec.neighbours, spec.unit, spec.max_events_per_user, spec.user_column],
        "guarantee": {
            option: value if isinstance(value, str) else str(Fraction(value))
            for option, value in guarantee.items()
            if option != "force"  # a word to the loader; it decides nothing that is released
        },
        "clock": [
            spec.clock.column,
            FIRST_SERVE if spec.clock.floating else spec.clock.start,
            spec.clock.length,
            spec.clock.integer,
            spec.clock.ticks,
        ],
        "beta": spec.beta,
        "queries": [_query_digest(query) for query in spec.queries],
    }
    if spec.period is not None:
        public["period"] = spec.period
    if spec.max_events_per_tick is not None:
        public["max_events_per_tick"] = spec.max_events_per_tick
    if spec.order != "arrival":
        public["order"] = spec.order
    return public
