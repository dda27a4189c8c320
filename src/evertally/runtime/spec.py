"""The stream spec: one TOML file that says what is released, under which guarantee, on which clock, and where
things are kept.

Everything is checked here, before a key is made or an input opened. Each refusal names the file, the line and
what to write instead. The digest covers all that is public about the stream and leaves out where its files
are.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NoReturn

from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.runtime.clock import Clock

Unit = Literal["event", "user"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class QuerySpec:
    """One released statistic: its mechanism, its share of the guarantee, and its column (None: events are counted)."""

    name: str
    kind: str
    share: Fraction
    column: str | None
    parameters: Mapping[str, Any]
    line: int


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
    guarantee: Guarantee
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


# What an option may hold: a check that returns the value or says what is wanted.

Check = Callable[[object], Any]


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError("must be a text that is not empty")
    return value


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ConfigurationError("must be a name of letters, digits, '_', '-' and '.', at most 64 long")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError("must be an integer of at least 1")
    return value


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigurationError("must be a number")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError("must be true or false")
    return value


def _labels(value: object) -> list[str | int]:
    if not isinstance(value, list) or not value or not all(isinstance(v, str | int) for v in value):
        raise ConfigurationError('must be a list of labels such as ["JFK", "LGA"]')
    return value


def _label(value: object) -> str | int:
    if not isinstance(value, str | int):
        raise ConfigurationError("must be a label: a text or an integer")
    return value


def _share(value: object) -> Fraction:
    share = Fraction(str(_number(value))) if not isinstance(value, str) else _fraction(value)
    if not 0 < share <= 1:
        raise ConfigurationError('must be above 0 and at most 1, for example 0.3 or "1/3"')
    return share


def _fraction(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ConfigurationError('must be a number or a fraction such as "1/3"') from None


def _probability(value: object) -> float:
    number = float(_number(value))
    if not 0 < number < 1:
        raise ConfigurationError("must lie between 0 and 1")
    return number


def _choice(*allowed: str) -> Check:
    def check(value: object) -> str:
        if value not in allowed:
            raise ConfigurationError(f"must be one of {', '.join(map(repr, allowed))}")
        return str(value)

    return check


def _anything(value: object) -> object:
    return value


_SECTIONS: dict[str, dict[str, Check]] = {
    "stream": {
        "name": _name,
        "horizon": _whole,
        "neighbours": _choice("add_remove", "replace", "independent"),
        "unit": _choice("event", "user"),
        "max_events_per_user": _whole,
        "user_column": _text,
    },
    "guarantee": {"epsilon": _number, "delta": _number, "rho": _number},
    "clock": {"column": _text, "start": _anything, "tick": _anything, "end": _anything},
    "key": {"file": _text},
    "state": {"file": _text},
    "output": {"file": _text, "beta": _probability},
}
_QUERY: dict[str, Check] = {
    "name": _name,
    "kind": _choice("counter", "histogram", "mean"),
    "share": _share,
    "column": _text,
    "mechanism": _text,
}
_KINDS: dict[str, dict[str, Check]] = {
    "counter": {"max_weight": _whole},
    "histogram": {
        "categories": _labels,
        "other": _label,
        "max_per_event": _whole,
        "max_weight": _whole,
        "signed": _flag,
    },
    "mean": {"lower": _number, "upper": _number, "resolution": _number},
}
_REQUIRED = {
    "stream": ("name",),
    "guarantee": (),
    "clock": ("column", "start", "tick"),
    "key": ("file",),
    "state": ("file",),
    "output": ("file",),
}
_REQUIRED_BY_KIND = {
    "counter": (),
    "histogram": ("column", "categories"),
    "mean": ("column", "lower", "upper"),
}


class _File:
    """The parsed file beside its text, to find the line of whatever is wrong."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            text = path.read_text("utf-8")
        except OSError as error:
            raise ConfigurationError(f"cannot read the spec {path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ConfigurationError(f"{path}: a spec is a TOML file in UTF-8") from None
        try:
            self.content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            where = re.search(r"at line (\d+)", str(error))
            line = where[1] if where else str(text.count("\n") + 1)
            raise ConfigurationError(f"{path}:{line}: this is not valid TOML: {error}") from None
        self._lines = _lines_of(text)

    def line(self, section: str, option: str | None = None, number: int = 1) -> int:
        """The line of an option, of its section if it is not written out, or 1."""
        for place in ((section, number, option), (section, number, None), ("", 1, section)):
            if place in self._lines:
                return self._lines[place]
        return 1

    def refuse(self, problem: str, section: str, option: str | None = None, number: int = 1) -> NoReturn:
        raise ConfigurationError(f"{self.path}:{self.line(section, option, number)}: {problem}")

    def checked(self, given: object, allowed: Mapping[str, Check], section: str, number: int = 1) -> dict[str, Any]:
        shown = f"[[{section}]]" if section == "query" else f"[{section}]"
        if not isinstance(given, dict):
            self.refuse(f"{shown} must be a table", section, None, number)
        values = {}
        for option, value in given.items():
            if option not in allowed:
                hint = _nearest(option, allowed)
                self.refuse(f"{shown} has no option {option!r}.{hint}", section, option, number)
            try:
                values[option] = allowed[option](value)
            except ConfigurationError as error:
                self.refuse(f"{shown} {option} {error}", section, option, number)
        return values


def _lines_of(text: str) -> dict[tuple[str, int, str | None], int]:
    lines: dict[tuple[str, int, str | None], int] = {}
    section, number = "", 1
    seen: dict[str, int] = {}
    for position, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\[?\s*([\w.-]+)\s*\]", line):
            section = header[1]
            number = seen[section] = seen.get(section, 0) + 1
            lines.setdefault((section, number, None), position)
        elif option := re.match(r"""\s*["']?([\w-]+)["']?\s*[.=]""", line):
            lines.setdefault((section, number, option[1]), position)
    return lines


def _nearest(option: str, allowed: Iterable[str]) -> str:
    close = difflib.get_close_matches(option, list(allowed), 1)
    return f" Did you mean {close[0]!r}?" if close else f" It has: {', '.join(allowed)}"


def load_spec(path: str | os.PathLike[str]) -> StreamSpec:
    """Reads and checks a spec file."""
    file = _File(Path(path).absolute())
    sections = {name: _section(file, name) for name in _SECTIONS}
    for name in file.content:
        if name not in _SECTIONS and name != "query":
            file.refuse(f"there is no section [{name}].{_nearest(name, [*_SECTIONS, 'query'])}", name)
    stream, clock = sections["stream"], _clock(file, sections["clock"])
    spec = StreamSpec(
        path=file.path,
        name=stream["name"],
        horizon=_horizon(file, stream.get("horizon"), clock),
        neighbours=stream.get("neighbours", "add_remove"),
        unit=_unit(file, stream),
        max_events_per_user=stream.get("max_events_per_user"),
        user_column=stream.get("user_column"),
        guarantee=_guarantee(file, sections["guarantee"]),
        clock=clock,
        key_file=file.path.parent / sections["key"]["file"],
        state_file=file.path.parent / sections["state"]["file"],
        output_file=_output(file, sections["output"]["file"]),
        beta=sections["output"].get("beta", 0.05),
        queries=_queries(file),
        digest="",
    )
    if len({spec.key_file, spec.state_file, spec.output_file, spec.path}) < 4:
        file.refuse("the spec, key, state and output must be four different files", "state", "file")
    return replace(spec, digest=_digest(spec, sections["guarantee"]))


def _section(file: _File, name: str) -> dict[str, Any]:
    if name not in file.content:
        raise ConfigurationError(f"{file.path}: the section [{name}] is missing; it needs {_needs(name)}")
    values = file.checked(file.content[name], _SECTIONS[name], name)
    for option in _REQUIRED[name]:
        if option not in values:
            file.refuse(f"[{name}] needs {option!r}", name)
    return values


def _needs(name: str) -> str:
    return ", ".join(_REQUIRED[name]) or "epsilon, or epsilon and delta, or rho"


def _clock(file: _File, values: dict[str, Any]) -> Clock:
    try:
        return Clock.declared(**values)
    except ConfigurationError as error:
        option = str(error).split(" ", 1)[0]
        file.refuse(f"[clock] {error}", "clock", option if option in values else None)


def _horizon(file: _File, horizon: int | None, clock: Clock) -> int | None:
    if horizon is not None and clock.ticks is not None and clock.ticks > horizon:
        file.refuse(
            f"[clock] end is {clock.ticks} ticks after start, but [stream] horizon is {horizon}; raise the horizon",
            "clock",
            "end",
        )
    return horizon if horizon is not None else clock.ticks


def _unit(file: _File, stream: dict[str, Any]) -> Unit:
    unit: Unit = stream.get("unit", "event")
    for option in ("max_events_per_user", "user_column"):
        if (option in stream) != (unit == "user"):
            problem = f'unit = "user" needs {option}' if unit == "user" else f'{option} needs unit = "user"'
            file.refuse(f"[stream] {problem}", "stream", option if option in stream else "unit")
    return unit


def _guarantee(file: _File, values: dict[str, Any]) -> Guarantee:
    forms: dict[frozenset[str], Callable[..., Guarantee]] = {
        frozenset({"epsilon"}): PureDP,
        frozenset({"rho"}): ZCDP,
        frozenset({"epsilon", "delta"}): ApproxDP,
    }
    form = forms.get(frozenset(values))
    if form is None:
        file.refuse("[guarantee] needs exactly one of: epsilon; epsilon and delta; rho", "guarantee")
    try:
        return form(**values)
    except ConfigurationError as error:
        named = next((option for option in values if option in str(error)), None)
        file.refuse(f"[guarantee] {error}", "guarantee", named)


def _output(file: _File, name: str) -> Path:
    if Path(name).suffix.lower() not in (".jsonl", ".csv"):
        file.refuse("[output] file must end in .jsonl or .csv", "output", "file")
    return file.path.parent / name


def _queries(file: _File) -> tuple[QuerySpec, ...]:
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


def _query(file: _File, table: object, number: int) -> dict[str, Any]:
    kind = table.get("kind") if isinstance(table, dict) else None
    own = _KINDS.get(kind, {}) if isinstance(kind, str) else {}
    if own:
        values = file.checked(table, {**_QUERY, **own}, "query", number)
    else:  # the kind itself is missing or wrong: check the rest without blaming options that some kind would know
        values = file.checked(
            table,
            {**_QUERY, **{o: c for options in _KINDS.values() for o, c in options.items()}},
            "query",
            number,
        )
    for option in ("name", "kind", *_REQUIRED_BY_KIND.get(str(kind), ())):
        if option not in values:
            suffix = "" if option in ("name", "kind") else f" for a {kind}"
            file.refuse(f"[[query]] needs {option!r}{suffix}", "query", None, number)
    if kind == "counter" and "max_weight" in values and "column" not in values:
        file.refuse(
            "[[query]] max_weight needs a column to add up; without one events are counted",
            "query",
            "max_weight",
            number,
        )
    return values


def _refuse_twins(file: _File, names: list[str]) -> None:
    for number, name in enumerate(names, 1):
        if name in names[: number - 1]:
            file.refuse(f"[[query]] the name {name!r} is taken; every query needs its own", "query", "name", number)


def _shares(file: _File, given: list[Fraction | None]) -> list[Fraction]:
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


def _digest(spec: StreamSpec, guarantee: Mapping[str, int | float]) -> str:
    public = {
        "format": 1,
        "stream": [
            spec.name,
            spec.horizon,
            spec.neighbours,
            spec.unit,
            spec.max_events_per_user,
            spec.user_column,
        ],
        "guarantee": {option: str(Fraction(value)) for option, value in guarantee.items()},
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
    return hashlib.sha256(json.dumps(public, sort_keys=True).encode()).hexdigest()
