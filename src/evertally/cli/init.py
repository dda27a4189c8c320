"""`evertally init`: a few questions, and a spec that says what was answered."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from pathlib import Path

import typer

from evertally.errors import ConfigurationError
from evertally.runtime import load_spec
from evertally.runtime.first_spec import Answers, Guess, guessed, written
from evertally.runtime.input.sources import InputFile
from evertally.runtime.sample import try_spec

_YEAR = 366 * 86400
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


@dataclass(frozen=True)
class Questions:
    """Asks on the terminal, or takes what would be offered there."""

    asks: bool

    def text(self, question: str, default: str = "") -> str:
        if not self.asks:
            return default
        answer = str(typer.prompt(f"{question} [{default or 'none'}]", default=default, show_default=False, err=True))
        return "" if answer.strip() == "none" else answer.strip()

    def whole(self, question: str, default: int) -> int:
        answer = self.text(question, str(default))
        if not re.fullmatch(r"[1-9]\d{0,8}", answer):
            raise ConfigurationError(f"{question}: a whole number is needed")
        return int(answer)


def command(spec_file: Path | None, sample: Path | None, yes: bool, start: str | None, tick: str | None) -> Path:
    """Writes the spec, and says where it is."""
    guess = Guess({}) if sample is None else guessed(InputFile(sample))
    path = spec_file or Path(f"{sample.stem if sample else 'stream'}.toml")
    if path.exists():
        raise ConfigurationError(f"{path} is there already; nothing is overwritten. Give another name")
    answers = _asked(Questions(not yes), guess, path.stem, start, tick)
    try:
        with open(path, "x", encoding="utf-8") as file:  # whoever was quicker keeps what he has
            file.write(written(answers))
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from None
    try:
        try_spec(load_spec(path))
    except ConfigurationError:
        path.unlink()
        raise
    return path


def _asked(ask: Questions, guess: Guess, stem: str, start: str | None, tick: str | None) -> Answers:
    name = ask.text("Name of the stream", re.sub(r"[^A-Za-z0-9_.-]+", "-", stem)[:64])
    time = ask.text("Column of the time stamps (none: events count when a service receives them)", guess.time or "")
    integer = guess.kinds.get(time) == "integer"
    start = start or _start(ask, time, integer)
    tick = tick or ask.text("Length of a tick", "86400" if integer else "1d" if time else "1h")
    seconds = _seconds(tick)
    user = ask.text("Column that says whose an event is (none: single events are protected)", guess.user or "")
    cap = ask.whole("Events of one person that count, at most", 10) if user else 10
    horizon = ask.whole("Ticks in the life of the stream", max(1, _YEAR // seconds))
    epsilon = ask.text("Epsilon, for all releases together (smaller is more private)", "1.0")
    delta = ask.text("Delta", "1e-6")
    labels, bounds, further = {}, {}, []
    for column, kind in guess.kinds.items():
        if column in (time, user, guess.user) or kind == "time":
            continue
        if kind == "text" and (given := ask.text(f"Labels of {column}, with commas between them (none: for later)")):
            labels[column] = [label.strip() for label in given.split(",") if label.strip()]
        elif kind != "text" and (given := ask.text(f"Least and largest {column}, as in: 0 100 (none: for later)")):
            bounds[column] = _two_numbers(column, given)
        else:
            further.append((column, kind))
    return Answers(
        name=name,
        time=time or None,
        start=start if integer or _is_time(start) else f'"{start}"',
        tick=tick if integer else f'"{tick}"',
        horizon=horizon,
        epsilon=_number("epsilon", epsilon),
        delta=_number("delta", delta) if delta else None,
        user=user or None,
        max_events_per_user=cap,
        labels=labels,
        bounds=bounds,
        further=further,
    )


def _start(ask: Questions, time: str, integer: bool) -> str:
    if not time:
        return "first serve"
    year = dt.datetime(dt.datetime.now(dt.UTC).year, 1, 1, tzinfo=dt.UTC)
    default = str(int(year.timestamp())) if integer else f"{year:%Y-%m-%dT%H:%M:%SZ}"
    return ask.text("Where the first tick begins (from what you know, not from the data)", default)


def _is_time(start: str) -> bool:
    return bool(re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)?)?", start))


def _seconds(tick: str) -> int:
    match = re.fullmatch(r"([1-9]\d{0,8})([smhdw]?)", tick)
    if match is None:
        raise ConfigurationError('the length of a tick is a number and s, m, h, d or w, such as "1d"')
    return int(match[1]) * _UNITS.get(match[2], 1)


def _number(what: str, text: str) -> str:
    if not re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", text):
        raise ConfigurationError(f"{what} must be a number, such as 1.0 or 1e-6")
    return text


def _two_numbers(column: str, given: str) -> tuple[str, str]:
    numbers = given.replace(",", " ").split()
    if len(numbers) != 2:
        raise ConfigurationError(f"the least and the largest {column}: two numbers, with a blank between them")
    return _number(f"the least {column}", numbers[0]), _number(f"the largest {column}", numbers[1])
