"""`evertally windows`: what happened between releases, on a terminal or for another program."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evertally.errors import ConfigurationError
from evertally.runtime import StreamSpec
from evertally.runtime.windows import Answer, Question
from evertally.runtime.windows.offline import windows_of
from evertally.runtime.windows.question import asked_for, each
from evertally.runtime.windows.written import as_csv, as_json

FORMATS = ("table", "csv", "json")


def command(
    spec: StreamSpec,
    name: str | None,
    window: str | None,
    per: str | None,
    form: str,
    labels: list[str],
    **limits: int | None,
) -> None:
    """Prints the windows of one query."""
    if form not in FORMATS:
        raise ConfigurationError(f"--format is one of {', '.join(FORMATS)}")
    queries = {query.name: query for query in spec.queries}
    if name is None and len(queries) == 1:
        name = next(iter(queries))
    if name not in queries:
        raise ConfigurationError(f"--query names one of: {', '.join(queries)}")
    words = queries[name].words
    with windows_of(spec) as (whole, windows, last):
        ticks, rate = asked_for(whole.clock, words, window, per)
        question = Question(
            query=name,
            window=ticks,
            per=rate,
            labels=tuple(labels) or None,
            **{option: value for option, value in limits.items() if value is not None},
        )
        answer = windows.answer(question, last)
        if not answer.tick:
            asked = "tick" if question.window is None else f"window of {whole.clock.lasting(question.window)}"
            print(f"evertally: no {asked} is full, kept and asked for; {last:,} ticks are out", file=sys.stderr)
        if form == "json":
            print(json.dumps(as_json(whole, answer), allow_nan=False))
        elif form == "csv":
            sys.stdout.buffer.write(as_csv(whole, answer))
        else:
            _print_table(whole, answer)


def _print_table(spec: StreamSpec, answer: Answer) -> None:
    clock = spec.clock
    labelled = answer.labels is not None
    title = {"total": "totals", "level": "at the end of each window"}.get(
        answer.measure, f"by {clock.lasting(answer.window or 1)}"
    )
    rate = "" if answer.per is None else f", per {each(clock, answer.per)}"
    unit = f", in {answer.query.words.unit}" if answer.query.words.unit else ""
    sure = f"{100 * (1 - answer.beta):g} %"
    table = Table(title=escape(f"{answer.query.name}, {title}{rate}{unit}"), box=None, title_justify="left")
    for head in (
        "from",
        "to",
        *(["label"] if labelled else []),
        "value",
        f"{sure} of the time between",
        "and",
        "change",
    ):
        table.add_column(head, justify="left" if head in ("from", "to", "label") else "right")
    digits = _digits(answer)
    for since, tick, numbers, change in zip(answer.since, answer.tick, answer.numbers, answer.changes, strict=True):
        for place, label in enumerate(answer.labels if answer.labels is not None else [""]):
            cells = [str(clock.end_of(since)), str(clock.end_of(tick)), *([escape(label)] if labelled else [])]
            cells += [_shown(part[place], digits) for part in (numbers.value, numbers.lower, numbers.upper)]
            cells.append("" if change is None else _changed(change[0].value[place], change[1][place], digits))
            table.add_row(*cells)
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def _digits(answer: Answer) -> int:
    """Digits behind the point, alike in all rows: two that count of the smallest error, none of whole numbers."""
    cells = [cell for numbers in answer.numbers for cell in zip(numbers.lower, numbers.upper, strict=True)]
    if all(isinstance(end, int | None) for cell in cells for end in cell):
        return 0
    errors = [(upper - lower) / 2 for lower, upper in cells if None not in (lower, upper) and upper > lower]
    return min(6, max(0, 1 - math.floor(math.log10(min(errors))))) if errors else 2


def _shown(cell: Any, digits: int) -> str:
    if cell is None:
        return "not known"
    return escape(cell) if isinstance(cell, str) else f"{cell:,.{digits}f}"


def _changed(change: Any, clear: bool | None, digits: int) -> str:
    if clear is None or change is None:
        return ""
    return f"{change:+,.{digits}f}" if clear else "not clear"
