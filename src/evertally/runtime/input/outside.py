"""Rows of a file that are outside of a run: before its first tick, after its last one, or without a readable time.

They are counted before anything is released, and a run in which they would get lost, or be counted twice, is refused
until somebody says what is to become of them. The counts are exact: they are for whoever holds the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from evertally.errors import ConfigurationError
from evertally.runtime.spec import StreamSpec

Late = Literal["refuse", "count", "drop"]
Later = Literal["refuse", "leave"]
Unreadable = Literal["refuse", "drop"]


@dataclass(frozen=True)
class Asked:
    """What is to become of rows outside of a run.

    `late`: "count" them in the first tick that is not out, or "drop" them: those of a file that grows were counted by
    an earlier run. `later`: "leave" them out of this run. `unreadable`: "drop" them even if there are no others.
    """

    late: Late = "refuse"
    later: Later = "refuse"
    unreadable: Unreadable = "refuse"

    def __post_init__(self) -> None:
        for name, values in (("late", Late), ("later", Later), ("unreadable", Unreadable)):
            if getattr(self, name) not in get_args(values):
                raise ConfigurationError(f"{name} must be one of {', '.join(map(repr, get_args(values)))}")


@dataclass(frozen=True)
class Rows:
    """How many rows a file has, how many of them are outside of a run, and how far the others reach."""

    all: int
    late: int
    later: int
    unreadable: int  # have no readable time
    broken: int  # lines that are no rows at all; not part of `all`
    end: int = 0  # the last tick of the run that has a row; 0: none has

    def check(self, asked: Asked, name: str, spec: StreamSpec, first: int, last: int) -> None:
        """Refuses what was not asked for."""
        problems = []
        if self.unreadable and self.unreadable == self.all and asked.unreadable == "refuse":
            problems.append(
                f"{_rows(self.all)} and no readable time in the column {spec.clock.column!r}, so that nothing would be "
                f"counted. Look whether its times are like {spec.clock.end_of(0)!r}; --drop-unreadable goes on"
            )
        if self.late and asked.late == "refuse":
            problems.append(
                f"{_rows(self.late)} before {_start(spec, first)}. If an earlier run has counted them (a file that "
                "grows), --drop-late leaves them out; if they are new, --count-late adds them to the first tick of "
                "this run"
            )
        if self.later and asked.later == "refuse":
            problems.append(f"{_rows(self.later)} at or after {_end(spec, last)}")
        if problems:
            raise ConfigurationError(f"{name} has {'; and '.join(problems)}. Nothing was released")

    def lines(self, asked: Asked, spec: StreamSpec, first: int, last: int) -> list[str]:
        """What is going to happen to them, for whoever starts the run."""
        done = "are counted in the first tick of this run" if asked.late == "count" else "are left out"
        told = [
            (self.late, f"before {spec.clock.end_of(first - 1)} {done}"),
            (self.later, f"at or after {spec.clock.end_of(last)} are left out of this run"),
            (self.unreadable, "without a readable time are left out"),
            (self.broken, "that cannot be read at all are left out"),
        ]
        lines = [f"{_rows(count)} {what}" for count, what in told if count]
        if self.end < last:
            ends = f"the last row is in tick {self.end}" if self.end >= first else "no row is in the ticks of this run"
            empty = max(first, self.end + 1)
            which = f"tick {last} is" if empty == last else f"ticks {empty} to {last} are"
            lines.append(f"{ends}: {which} released empty, and no later run can change that")
        return lines


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _start(spec: StreamSpec, first: int) -> str:
    when = spec.clock.end_of(first - 1)
    return f"{when}, up to where all ticks are out" if first > 1 else f"{when}, the start of the clock"


def _end(spec: StreamSpec, last: int) -> str:
    when = spec.clock.end_of(last)
    if last == spec.last_tick:
        return f"{when}, where the stream ends: no run will count them. --leave-later leaves them out"
    return (
        f"{when}, which this run would not count. Give a later --until, or --leave-later: a later run of the file, "
        "with --drop-late, counts them"
    )
