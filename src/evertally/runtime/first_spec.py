"""A first spec from a few answers: commented, and accepted as it is written.

What is taken from a sample is its header and the kinds of its cells. Labels, bounds and the beginning of the clock are
asked for and never read from it: a parameter that was chosen by looking at private data would reveal it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from evertally.encode.labels import as_list
from evertally.encode.numbers import floats
from evertally.errors import ConfigurationError
from evertally.runtime.clock import Clock
from evertally.runtime.input.sources import InputFile
from evertally.runtime.input.times import instants

Kind = Literal["time", "integer", "number", "text"]

_LOOKED_AT = 1000  # rows
_TIMES = re.compile(r"time|date|^ts$|^at$|_at$|^when$|^day$", re.IGNORECASE)
_USERS = re.compile(r"^(user|customer|client|patient|member|person|account|visitor|subject)(_?(id|name|no))?$", re.I)
_DAYS = Clock.declared(column="time", start="2000-01-01", tick="1d")


@dataclass(frozen=True)
class Guess:
    """What the columns of a sample seem to be."""

    kinds: dict[str, Kind]

    @property
    def time(self) -> str | None:
        """The column of the time stamps."""
        times = [name for name, kind in self.kinds.items() if kind == "time"]
        times += [name for name, kind in self.kinds.items() if kind == "integer" and _TIMES.search(name)]
        return next(iter([name for name in times if _TIMES.search(name)] or times), None)

    @property
    def user(self) -> str | None:
        """The column that says whose an event is, by its name."""
        return next((name for name in self.kinds if _USERS.match(name)), None)


def guessed(source: InputFile) -> Guess:
    """Looks at the header of a sample and at its first rows."""
    names = source.column_names()
    if not any(names) or len(set(names)) < len(names):
        raise ConfigurationError(f"{source.path} must name its columns, each once: in its first line, if it is CSV")
    names = [name for name in names if name]
    batch = next(iter(source.batches(names)), {})
    return Guess({name: _kind(batch[name][:_LOOKED_AT] if name in batch else []) for name in names})


def _kind(cells: Any) -> Kind:
    values = [cell for cell in as_list(cells) if cell is not None]
    if not values:
        return "text"
    if not isinstance(cells, np.ndarray) and str(cells.type).startswith(("timestamp", "date")):
        return "time"
    numbers = floats(values)
    if not np.isnan(numbers).any():
        return "integer" if np.all(numbers == np.floor(numbers)) else "number"
    _, readable = instants(np.fromiter(values, object, len(values)), _DAYS)
    return "time" if readable.mean() > 0.9 else "text"


@dataclass(frozen=True)
class Answers:
    """What a first spec says."""

    name: str
    time: str | None  # None: events belong to the tick of their receipt
    start: str
    tick: str
    horizon: int
    epsilon: str
    delta: str | None
    user: str | None  # None: single events are protected
    max_events_per_user: int = 10
    labels: dict[str, list[str]] = field(default_factory=dict)  # by column
    bounds: dict[str, tuple[str, str]] = field(default_factory=dict)  # by column
    further: Sequence[tuple[str, Kind]] = ()  # columns that are left for later


def written(answers: Answers) -> str:
    """The text of the spec."""
    blocks = [_HEAD, _stream(answers), _guarantee(answers), _clock(answers), _places(answers.name), _ALL]
    taken = {"all"}
    blocks += [_histogram(_free(f"by-{name}", taken), name, labels) for name, labels in answers.labels.items()]
    blocks += [_mean(_free(f"mean-{name}", taken), name, *ends) for name, ends in answers.bounds.items()]
    blocks += [[f"# {line}" for line in _suggestion(name, kind, taken)] for name, kind in answers.further]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _noted(setting: str, note: str) -> str:
    return f"{setting:<31} # {note}"


_HEAD = [
    "# A stream spec, written by `evertally init`. What it will release, and how exactly: `evertally plan`.",
    "# Whether test data fits: `evertally check --sample`. Never choose a label, a bound or any other parameter by",
    "# looking at private data: the choice would reveal it.",
]
_ALL = [
    _noted("[[query]]", "the guarantee is shared by the queries: fewer of them are more exact"),
    'name = "all"',
    _noted('kind = "counter"', "how many events so far"),
]


def _stream(answers: Answers) -> list[str]:
    lines = [
        "[stream]",
        f"name = {_quoted(answers.name)}",
        _noted(
            f"horizon = {answers.horizon}", "ticks in the life of the stream; the promise is for all of them together"
        ),
    ]
    if answers.user is None:
        return [
            *lines,
            _noted('# unit = "user"', "protects all that one person ever does, in place of single events:"),
            _noted('# user_column = "..."', "the column that says whose an event is,"),
            _noted("# max_events_per_user = 10", "and how many events of one person count"),
        ]
    cap = f"max_events_per_user = {answers.max_events_per_user}"
    return [
        *lines,
        _noted('unit = "user"', "all that one person ever does is one secret"),
        f"user_column = {_quoted(answers.user)}",
        _noted(cap, "the first ones of a person count. From what you know, not from the data"),
    ]


def _guarantee(answers: Answers) -> list[str]:
    lines = [
        _noted("[guarantee]", "for all releases of all queries together, for ever"),
        f"epsilon = {answers.epsilon}",
    ]
    return [*lines, f"delta = {answers.delta}"] if answers.delta else lines


def _clock(answers: Answers) -> list[str]:
    column = [_noted(f"column = {_quoted(answers.time)}", "the time stamps")] if answers.time else []
    tick = _noted(f"tick = {answers.tick}", "there is one release of everything for each of them, idle or not")
    return ["[clock]", *column, f"start = {answers.start}", tick]


def _places(name: str) -> list[str]:
    key = f"file = {_quoted(f'secret/{name}.key')}"
    return [
        "[key]",
        _noted(key, "made at the first start. As secret as the data, and never beside the state"),
        "",
        "[state]",
        _noted(f"file = {_quoted(f'{name}.state')}", "made at the first start, sealed with the key"),
        "",
        "[output]",
        _noted(f"file = {_quoted(f'{name}-releases.csv')}", "every release, one line for each number. Public"),
    ]


def _histogram(query: str, column: str, labels: Sequence[str]) -> list[str]:
    return [
        "[[query]]",
        f"name = {_quoted(query)}",
        _noted('kind = "histogram"', "how many events of each label so far"),
        f"column = {_quoted(column)}",
        f"categories = [{', '.join(map(_quoted, labels))}]",
        _noted('other = "other"', "where undeclared labels go; left out: nowhere"),
    ]


def _mean(query: str, column: str, lower: str, upper: str) -> list[str]:
    return [
        "[[query]]",
        f"name = {_quoted(query)}",
        _noted('kind = "running_mean"', "the mean so far"),
        f"column = {_quoted(column)}",
        f"lower = {lower}",
        _noted(f"upper = {upper}", "every number is cut to lower..upper"),
    ]


def _suggestion(column: str, kind: Kind, taken: set[str]) -> list[str]:
    if kind == "text":
        return _histogram(_free(f"by-{column}", taken), column, ["...", "..."])
    return _mean(_free(f"mean-{column}", taken), column, "0", "100")


def _free(name: str, taken: set[str]) -> str:
    """A name of a query that is allowed and not taken."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)[:60]
    while name in taken:
        name = f"{name}-2"[-64:]
    taken.add(name)
    return name


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
