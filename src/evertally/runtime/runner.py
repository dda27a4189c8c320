"""From a spec and a file to released ticks: exactly once, whatever is interrupted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from evertally.errors import ConfigurationError, StateError
from evertally.runtime import output
from evertally.runtime.binning import BinnedEvents
from evertally.runtime.mechanisms import Mechanisms, build, restored
from evertally.runtime.sources import InputFile
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.runtime.store import RunInProgress, State, Store, fence, keep_key, obtain_key


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
    output: Path


Progress = Callable[[Step], None]


def run(
    spec: StreamSpec,
    input_path: str | os.PathLike[str],
    until: object = None,
    progress: Progress | None = None,
) -> Report:
    """Releases every tick from the first unreleased one to `until` (default: the end of the clock, or the horizon)."""
    last = _last_tick(spec, until)
    source = InputFile(input_path)
    with fence(spec.key_file):
        key, new_key = obtain_key(spec.key_file, spec.state_file)
        store = Store(key, spec.key_file, spec.state_file, spec.output_file, spec.digest, spec.name)
        state = store.open()
        if state is None:
            # Mechanisms come first: a parameter that they refuse must not leave a bound key behind.
            mechanisms, state = build(spec, key), State()
            if new_key:
                keep_key(key, spec.key_file)
            store.bind()
        else:
            mechanisms = restored(spec, key, state.snapshots)
        return _Run(spec, store, state, mechanisms, source, last, progress).complete()


def _last_tick(spec: StreamSpec, until: object) -> int:
    limit = spec.clock.ticks if spec.clock.ticks is not None else spec.horizon
    if until is None:
        if limit is None:
            raise ConfigurationError(
                "this stream has neither [clock] end nor [stream] horizon: say how far to go with --until TIME"
            )
        return limit
    last = spec.clock.tick_before(until)
    if limit is not None and last > limit:
        raise ConfigurationError(
            f"until is after the last tick of the horizon, which ends at {spec.clock.end_of(limit)}"
        )
    return last


class _Run:
    def __init__(
        self,
        spec: StreamSpec,
        store: Store,
        state: State,
        mechanisms: Mechanisms,
        source: InputFile,
        last: int,
        progress: Progress | None,
    ) -> None:
        self._spec = spec
        self._store = store
        self._state = state
        self._mechanisms = mechanisms
        self._source = source
        self._progress = progress
        self._resumed = state.run is not None
        self._run = state.run or RunInProgress(source.sha256, state.released + 1, last)
        self._check_against_run_in_progress(last)
        self._events = BinnedEvents(spec, source, self._run.first, self._run.last)
        self._check_not_consumed()

    def _check_against_run_in_progress(self, last: int) -> None:
        end_of = self._spec.clock.end_of
        if not self._resumed and last < self._run.first:
            raise ConfigurationError(
                f"nothing to release: all ticks up to {end_of(self._state.released)} are out already. Give a later "
                "--until, if the stream has any ticks left"
            )
        if self._run.input_sha256 != self._source.sha256:
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
        if self._events.records and self._source.sha256 in self._state.consumed:
            raise StateError(
                f"{self._source.path} has been counted already (same content). Each input is run once; events at or "
                "after its --until were left out then, and are not added later"
            )

    def complete(self) -> Report:
        while self._state.released < self._run.last:
            self._release_batch()
        done = replace(
            self._state,
            run=None,
            consumed=(*self._state.consumed, self._run.input_sha256),
            offset=self._state.offset + len(self._state.pending),
            pending=b"",
        )
        self._store.commit(done)
        return Report(self._run.first, self._run.last, self._resumed, self._spec.output_file)

    def _release_batch(self) -> None:
        state = self._state
        stop = min(self._run.last, state.released + self._batch_ticks())
        offset = state.offset + len(state.pending)
        steps: list[Step] = []
        lines = chain.from_iterable(self._tick_rows(tick, steps) for tick in range(state.released + 1, stop + 1))
        pending = output.encode(lines, self._spec.output_file.suffix.lower(), header=offset == 0)
        self._state = self._store.commit(
            replace(
                state,
                released=stop,
                snapshots={name: mechanism.snapshot() for name, mechanism in self._mechanisms.items()},
                run=self._run,
                offset=offset,
                pending=pending,
            )
        )
        # A display is an emission too: nothing may be seen before the input that it came from is committed.
        if self._progress is not None:
            for step in steps:
                self._progress(step)

    def _batch_ticks(self) -> int:
        # Public numbers only: how often a stream commits must not depend on its events.
        rows = sum(_rows(query) for query in self._spec.queries)
        return max(1, min((self._run.last - self._run.first) // 64, 4096, 65536 // rows))

    def _tick_rows(self, tick: int, steps: list[Step]) -> Iterator[tuple[Any, ...]]:
        releases = {}
        users = {"users": self._events.users(tick)} if self._spec.unit == "user" else {}
        for query in self._spec.queries:
            mechanism = self._mechanisms[query.name]
            releases[query.name] = mechanism.step_events(self._events.events(query, tick), tick=tick, **users)
        steps.append(Step(tick, self._run.first, self._run.last, releases))
        time = self._spec.clock.end_of(tick)
        return chain.from_iterable(
            output.rows(name, time, release, self._spec.beta) for name, release in releases.items()
        )


def _rows(query: QuerySpec) -> int:
    """About how many rows a tick has, from public numbers: how many labels an unknown histogram will show is none."""
    if query.kind == "unknown-histogram":
        return 1000
    return query.parameters["k"] if query.kind == "unknown-top" else len(query.parameters.get("categories", "1"))
