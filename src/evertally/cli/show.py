"""Tables and progress on a terminal; nothing moves when the output is a file or a pipe."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from evertally.cli.progress import ProgressBar
from evertally.errors import ConfigurationError
from evertally.planner import ranking_of
from evertally.runtime import Plan, PlannedQuery, Step, StreamSpec
from evertally.runtime.affordable import Wanted
from evertally.runtime.clock import duration
from evertally.runtime.plan import only_above
from evertally.runtime.protected import counted_of_users
from evertally.runtime.releases import entries, pack, unpack
from evertally.runtime.spec import QuerySpec, check_runnable, check_servable
from evertally.runtime.spec.network import shown_host
from evertally.runtime.standing import standing
from evertally.runtime.windows.exactness import asked_for

_LONGEST_SHOWN = 60
_NO_BOUND = 2**60  # an end of an interval that is further away is none


class Display:
    """What whoever starts a run sees: on a terminal a progress bar and a live table of the last tick's releases; if the
    output goes elsewhere and errors go to a terminal, a plain bar there. A pipe sees nothing of it, and neither does a
    log: what is announced about rows is exact."""

    def __init__(self, spec: StreamSpec, quiet: bool = False) -> None:
        self._spec = spec
        self.last: Step | None = None
        self._progress = Progress(
            TextColumn(spec.name), BarColumn(), MofNCompleteColumn(), TextColumn("ticks"), TimeRemainingColumn()
        )
        self._task = self._progress.add_task(spec.name, total=None)
        console = Console()
        self._rows_shown = max(3, min(24, console.height - 8))
        self._live, self._bar = None, None
        if not quiet and console.is_terminal:
            self._live = Live(get_renderable=self._render, console=console, refresh_per_second=8)
        elif not quiet and sys.stderr.isatty():
            self._bar = ProgressBar(spec.name, sys.stderr)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        if self._bar is not None:
            self._bar.say("reading the input")
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        if self._bar is not None:
            self._bar.clear()

    def announce(self, lines: Sequence[str]) -> None:
        """What becomes of rows outside of the run, and where they end: said before anything is released."""
        for line in (f"{self._spec.name}: {line}" for line in lines):
            if self._bar is not None:
                self._bar.line(line)
            elif self._live is not None and sys.stdout.isatty():
                self._live.console.print(line, markup=False, highlight=False)

    def step(self, step: Step) -> None:
        self.last = step
        if self._bar is not None:
            self._bar.show(step.tick - step.first + 1, step.last - step.first + 1)

    def _render(self) -> Any:
        step = self.last
        if step is None:
            return self._progress
        self._progress.update(self._task, completed=step.tick - step.first + 1, total=step.last - step.first + 1)
        return Group(self._table(step), self._progress)

    def _table(self, step: Step) -> Table:
        table = Table(title=f"{self._spec.name}, until {self._spec.clock.end_of(step.tick)}")
        for heading in ("query", "category", "released", f"± ({1 - self._spec.beta:.0%})"):
            table.add_column(heading, justify="left" if heading in ("query", "category") else "right")
        rows = [row for query in self._spec.queries for row in self._rows(query, step.releases[query.name])]
        shown = self._rows_shown
        for row in rows[:shown]:
            table.add_row(*row)
        if len(rows) > shown:
            table.add_row("...", f"{len(rows) - shown} more")
        return table

    def _rows(self, query: QuerySpec, release: Any) -> Iterator[tuple[str, ...]]:
        columns = unpack(query, pack(query, release, self._spec.beta))
        for category, value, lower, upper in entries(columns):
            yield query.name, escape(printable(category or "")), escape(_shown(value)), _margin(value, lower, upper)


def printable(label: str) -> str:
    """A label on one line of a terminal: it may be anybody's text, with control sequences in it."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in label)
    return shown if len(shown) <= _LONGEST_SHOWN else shown[: _LONGEST_SHOWN - 1] + "…"


def _margin(value: Any, lower: float, upper: float) -> str:
    """How far off it may be. A label has no middle: its sum is at most `upper` below the right one."""
    if upper >= _NO_BOUND:
        return "no bound" if isinstance(value, str) or lower <= -_NO_BOUND else f"at least {_shown(lower)}"
    return f"≤ {_shown(upper)}" if isinstance(value, str) else _shown((upper - lower) / 2)


def _shown(value: float | str) -> str:
    if isinstance(value, str):
        return printable(value)
    return f"{value:,.2f}" if isinstance(value, float) and not value.is_integer() else f"{value:,.0f}"


def output_console(least: int) -> Console:
    """A console that is at least so wide where nobody watches: a file has no edge."""
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = max(console.width, least)
    return console


def plan_table(spec: StreamSpec, plan: Plan) -> None:
    """What a spec promises and what it will cost in accuracy."""
    console = output_console(110)
    horizon = f"{spec.horizon} ticks" if spec.horizon else "without end"
    console.print(f"Stream [bold]{spec.name}[/bold]: {spec.guarantee} for its whole life, {horizon}")
    for warning in plan.warnings:
        console.print(f"[bold red]WARNING[/bold red]: {escape(warning)}")
    protected = f"one {spec.protects}" if spec.period is None else f"one user in a block of {spec.period} ticks"
    counted = "" if spec.unit == "event" else f", {'; '.join(counted_of_users(spec))} of each {spec.user_column!r}"
    console.print(escape(f"Neighbours: {spec.neighbours}; protected unit: {protected}{counted}"))
    first, last = _moments(spec, plan.ticks)
    stamps = f"time stamps in column {spec.clock.column!r}" if spec.clock.column else "time stamps are those of receipt"
    console.print(escape(f"Clock: {_span(spec, first, last)}, {stamps}"))
    if not spec.horizon:
        console.print(
            escape(f"Errors below are those at tick {plan.ticks:,}, an example: this stream has no last tick")
        )
    table = Table()
    for heading in (
        "query",
        "kind",
        "counts",
        "share",
        "noise",
        "pays",
        "std",
        "worst",
        f"all ticks, {1 - plan.beta:.0%}",
    ):
        right = heading in ("counts", "share", "std", "worst")
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for query, planned in zip(spec.queries, plan.queries, strict=True):
        table.add_row(
            planned.name,
            planned.kind,
            _counts(query, planned),
            str(query.share),
            f"{planned.mechanism}, {planned.exactness}",
            _paid(planned),
            f"{planned.stddev:,.1f}" if planned.stddev is not None else "*" if planned.error_bound is None else "",
            f"{planned.worst_stddev:,.1f}" if planned.worst_stddev is not None else "",
            _promised(query, planned),
        )
    console.print(table)
    if spec.user_column is not None:
        console.print(escape(f"{plan.about[0].upper()}{plan.about[1:]}."))
    for why in dict.fromkeys(query.record.error_later for query in spec.queries):
        if why:
            console.print(escape(f"* {why}"))
    for line in plan.advice:
        console.print(escape(f"{line}."))
    for query, planned in zip(spec.queries, plan.queries, strict=True):
        for line in planned.users:
            console.print(escape(f"{planned.name}: {line}."))
        if planned.known:
            console.print(escape(f"{planned.name}: {planned.known}, with probability {1 - plan.beta:.0%}."))
        if planned.unbounded_because and not planned.known:
            console.print(escape(f"{planned.name} has no error bound: {planned.unbounded_because}."))
        if planned.guessed_bound is not None:
            smaller = f"{_sign(query, planned)} {planned.guessed_bound:,.0f}"
            console.print(escape(f"{planned.name}: {smaller} while answers stay below `largest`, which is a guess."))
        if query.record.discovery is not None:
            console.print(_explained(query, planned, plan.beta, last))
    if any(query.words.window is not None for query in spec.queries):
        for line in asked_for(spec, standing(spec)):
            console.print(escape(f"{line}."))
    for line in _places(spec):
        console.print(escape(line))


def ways_tables(spec: StreamSpec) -> None:
    """Every way to release each query, ranked: what "auto" takes is the first. A stream that has run stays with what it
    began with."""
    for name, mechanism in standing(spec).items():
        print(f"{name}: {mechanism.mechanism} is taken\n{ranking_of(mechanism)}\n")


def affordable_lines(wanted: Wanted) -> None:
    """What a wanted error costs: the least guarantee, or the longest stream under the present one."""
    spec = wanted.spec
    whose = "every release" if wanted.query is None else f"every release of {wanted.query}"
    print(f"For {whose} to be within {wanted.error:g}, with probability {1 - (wanted.beta or spec.beta):.4g}:")
    for what, now, ask in (("guarantee", spec.guarantee, wanted.guarantee), ("horizon", spec.horizon, wanted.horizon)):
        if now is not None:
            try:
                print(f"  {what}: {ask()} (now {now})")
            except ConfigurationError as problem:
                print(f"  {what}: {problem}")
    if left := wanted.uncounted():
        print(f"Without {', '.join(left)}: their errors depend on the data (of means, say --count)")


def _promised(query: QuerySpec, planned: PlannedQuery) -> str:
    if planned.error_bound is None:
        return "*"
    return f"{_sign(query, planned)} {planned.error_bound:,.0f}" if math.isfinite(planned.error_bound) else "no bound"


def _moments(spec: StreamSpec, ticks: int) -> tuple[str | int, str | int]:
    if spec.clock.floating:
        return "from the first serve", f"tick {ticks}"
    return spec.clock.end_of(0), spec.clock.end_of(ticks)


def _span(spec: StreamSpec, first: str | int, last: str | int) -> str:
    if spec.horizon:
        return f"{first} to {last}"
    return f"{first}, without end" if spec.clock.floating else f"from {first}, without end"


def _places(spec: StreamSpec) -> Iterator[str]:
    """Where things go and how the stream may be run."""
    for sink in spec.sinks:
        # The rest of a webhook's address may be a secret.
        yield f"Releases go to {sink.file or f'the webhook {sink.name} at {urlsplit(str(sink.webhook)).netloc}'}"
    kept = f", then every {spec.retention.every}th" if spec.retention.every else ""
    gone = f", none after {spec.retention.keep:,} ticks" if spec.retention.keep is not None else ""
    yield f"Store: {spec.state_file}; its release log keeps the last {spec.retention.full:,} ticks{kept}{gone}"
    if spec.key_file.parent == spec.state_file.parent:
        yield f"Key: {spec.key_file}, beside the store: a copy of the folder has both. Give the key a folder of its own"
    yield _possible("Files", check_runnable, spec, "ticks by their time stamps")
    yield _possible("Live", check_servable, spec, f"{_closing(spec)}; {_address(spec)}")


def _possible(way: str, check: Callable[[StreamSpec], None], spec: StreamSpec, text: str) -> str:
    try:
        check(spec)
    except ConfigurationError as error:
        return f"{way}: not with this spec. {error}"
    return f"{way}: {text}"


def _closing(spec: StreamSpec) -> str:
    if spec.clock.close == "request":
        return "ticks close on request"
    return f"ticks close every {duration(spec.clock.length)}, published {spec.serve.publish_after:g} s later"


def _address(spec: StreamSpec) -> str:
    serve = spec.serve
    scheme = "https" if serve.certificate else "http"
    readers = "anybody may read" if serve.public else "readers need a token"
    return f"at {scheme}://{shown_host(serve.host)}:{serve.port}, {readers}; tokens in {serve.tokens}"


def _explained(query: QuerySpec, planned: PlannedQuery, beta: float, last: str | int) -> str:
    """What is found among items that nobody declared."""
    if planned.discovery is None:
        return f"{planned.name}: {query.record.no_discovery}"
    threshold, surely = planned.discovery.threshold, planned.discovery.surely
    return (
        f"{planned.name}: an item is shown if its noisy count is above {threshold:,}; nothing is shown of any other. "
        f"At {last} one that occurred {surely:,} times is shown with probability {1 - beta:.0%}, "
        f"one that occurred {threshold + 1:,} times about every second time.{_only_followed(query)}"
    )


def _only_followed(query: QuerySpec) -> str:
    most = query.parameters.get("max_labels")
    if most is None:
        return ""
    return (
        f" That is about items that are followed: all, until their noisy number comes near {most:,}; from then on what "
        "is shown at that moment, and of the others every second, fourth, .. one, by a keyed hash. The rest is never "
        "shown."
    )


def _counts(query: QuerySpec, planned: PlannedQuery) -> str:
    if planned.numbers is None:
        return query.result.labels
    return f"≤ {planned.numbers}" if query.result.labels == "found" else str(planned.numbers)


def _sign(query: QuerySpec, planned: PlannedQuery) -> str:
    if only_above(query, planned):
        return "at most +"
    return "≤" if query.result.value == "label" else "±"


def _paid(planned: PlannedQuery) -> str:
    if planned.mechanism == "trivial":
        return "nothing"
    amounts = {name: getattr(planned.charge, name, None) for name in ("epsilon", "rho", "delta")}
    return ", ".join(f"{name} {amount:.4g}" for name, amount in amounts.items() if amount is not None)
