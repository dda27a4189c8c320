"""From a spec and a file to released ticks: exactly once, whatever is interrupted."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evertally.errors import ConfigurationError, StateError
from evertally.runtime.input.binning import BinnedEvents, BinnedTick
from evertally.runtime.input.outside import Asked
from evertally.runtime.input.sources import InputFile
from evertally.runtime.machine import Machine
from evertally.runtime.opening import opened
from evertally.runtime.publisher import Publisher
from evertally.runtime.spec import StreamSpec, check_runnable
from evertally.runtime.state.records import RunInProgress
from evertally.runtime.state.store import Store
from evertally.secret import Secret


@dataclass(frozen=True)
class Step:
    """One tick has been released: what a progress display may show. All of it is public."""

    tick: int
    first: int
    last: int
    releases: Mapping[str, Any]


@dataclass(frozen=True)
class Report:
    """What a run did. All of it is public."""

    first: int
    last: int
    resumed: bool
    output: Path | None


Progress = Callable[[Step], None]
Announce = Callable[[list[str]], None]  # what becomes of rows outside of the run, and where they end; not public


def run(
    spec: StreamSpec,
    source: str | os.PathLike[str] | InputFile,
    until: object = None,
    progress: Progress | None = None,
    replay: bool = False,
    asked: Asked | None = None,
    announce: Announce | None = None,
    nothing_was_released: bool = False,
) -> Report:
    """Releases every tick from the first unreleased one to `until` (default: the end of the clock, or the horizon).

    Rows outside of these ticks are refused unless `asked` says what is to become of them; `announce` is told before
    anything is released how many there are, and which ticks will be empty because the rows end before them.
    """
    check_runnable(spec)
    file = InputFile(source) if isinstance(source, str | os.PathLike) else source
    events = _Input(spec, file, _last_tick(spec, until), asked or Asked())
    stream = opened(spec, replay=replay, nothing_was_released=nothing_was_released, check_input=lambda: events.check(1))
    with stream as (store, machine, publisher):
        if store.head.ended:
            raise StateError(f"{spec.state_file}: the stream was ended by its operator; it releases nothing any more")
        if next(store.journal(store.head.tick), None) is not None:
            raise StateError(
                f"{spec.state_file} holds events that a service has accepted for the next ticks; a run would leave "
                "them out. Serve the stream until those ticks are closed"
            )
        return _Run(spec, store, machine, publisher, events, progress).complete(announce)


def _last_tick(spec: StreamSpec, until: object) -> int:
    limit = spec.last_tick
    if until is None:
        if limit is None:
            raise ConfigurationError(
                "this stream has neither [clock] end nor [stream] horizon: say how far to go with --until TIME"
            )
        return limit
    last = spec.clock.tick_before(until)
    if limit is not None and last > limit:
        raise ConfigurationError(f"until is after the last tick of the horizon, {spec.clock.end_of(limit)}")
    return last


@dataclass(repr=False)
class _Input(Secret):
    """A file, and its rows in ticks once it has been read."""

    spec: StreamSpec
    file: InputFile
    last: int
    asked: Asked
    _binned: tuple[int, BinnedEvents] | None = None

    def binned(self, first: int) -> BinnedEvents:
        """The rows of the ticks from `first` on."""
        if self._binned is None or self._binned[0] != first:
            late: Literal["count", "drop"] = "drop" if self.asked.late == "drop" else "count"
            self._binned = first, BinnedEvents(self.spec, self.file, first, self.last, late)
        return self._binned[1]

    def check_last(self, first: int) -> None:
        if self.last < first:
            out = self.spec.clock.end_of(first - 1)
            raise ConfigurationError(
                f"nothing to release: all ticks up to {out} are out already. Give a later --until, if the stream has "
                "any ticks left"
            )

    def check(self, first: int) -> None:
        self.check_last(first)
        self.binned(first).rows.check(self.asked, str(self.file.path), self.spec, first, self.last)

    @property
    def content(self) -> str:
        """What is counted: the same rows are other events if late ones are dropped."""
        return self.file.sha256 + (" without late rows" if self.asked.late == "drop" else "")


@dataclass(repr=False)
class _Run(Secret):
    _spec: StreamSpec
    _store: Store
    _machine: Machine
    _publisher: Publisher
    _input: _Input
    _progress: Progress | None

    def __post_init__(self) -> None:
        head = self._store.head
        self._resumed = head.run is not None
        self._source = self._input.file
        name = self._store.input_name(self._input.content)
        self._run = head.run or RunInProgress(name, head.tick + 1, self._input.last)
        self._check_against_run_in_progress(name, self._input.last)
        self._events = self._input.binned(self._run.first)
        self._check_not_consumed()
        self._input.check(self._run.first)

    def _check_against_run_in_progress(self, name: str, last: int) -> None:
        end_of = self._spec.clock.end_of
        if not self._resumed:
            self._input.check_last(self._run.first)
        if self._run.input != name:
            sha256 = self._source.sha256
            if self._run.input in map(self._store.input_name, (sha256, f"{sha256} without late rows")):
                how = "without" if self._input.asked.late == "drop" else "with"
                raise StateError(f"a run of this input {how} --drop-late was interrupted; finish it {how} that first")
            raise StateError(
                f"a run of another input was interrupted, and {self._source.path} is not that file (its content "
                "differs). Run the same file again, unchanged: a tick released from other data would show it"
            )
        if self._run.last != last:
            raise StateError(
                f"a run of this input until {end_of(self._run.last)} was interrupted; finish it with that --until first"
            )

    def _check_not_consumed(self) -> None:
        # A file without any record may come again (two idle days look alike): there is nothing in it to count
        # twice.
        # Without late rows nothing can be counted twice: earlier runs have counted rows of earlier ticks alone.
        dropped = self._input.asked.late == "drop"
        if self._events.rows.all and not dropped and self._store.consumed(self._source.sha256):
            raise StateError(
                f"{self._source.path} has been counted already (same content). Each input is run once; to count what "
                "was at or after its --until then, run it with --drop-late"
            )

    def complete(self, announce: Announce | None) -> Report:
        if announce is not None:
            asked, rows = self._input.asked, self._events.rows
            announce(rows.lines(asked, self._spec, self._run.first, self._run.last))
        while self._store.head.tick < self._run.last:
            self._release_batch()
        self._store.commit([], [], consumed=self._source.sha256, cursors=self._publisher.cursors)
        return Report(self._run.first, self._run.last, self._resumed, self._spec.output_file)

    def _release_batch(self) -> None:
        released = self._store.head.tick
        stop = min(self._run.last, released + self._batch_ticks(), self._store.replay_target or self._run.last)
        ticks, steps = [], []
        for tick in range(released + 1, stop + 1):
            ticks.append(self._machine.step(BinnedTick(self._events, tick), tick))
            steps.append(Step(tick, self._run.first, self._run.last, self._machine.releases))
        self._store.commit(
            ticks,
            [bytes.fromhex(self._source.sha256)] * len(ticks),
            snapshots=self._machine.state().snapshots,
            run=self._run,
            cursors=self._publisher.cursors,
        )
        if self._store.replay_target is not None:
            return  # of a replay nothing is published before it has arrived
        self._publisher.catch_up()
        # A display is an emission too: nothing may be seen before the input that it came from is committed.
        if self._progress is not None:
            for step in steps:
                self._progress(step)

    def _batch_ticks(self) -> int:
        # Public numbers only: how often a stream commits must not depend on its events.
        return max(1, min((self._run.last - self._run.first) // 64, 4096, 65536 // self._spec.rows))
