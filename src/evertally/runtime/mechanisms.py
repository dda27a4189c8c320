"""The mechanisms that a spec asks for, new or brought back from snapshots."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evertally.contract import restore
from evertally.errors import ConfigurationError, EvertallyError, StateError
from evertally.noise import Key, NoiseKey
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.stream import Stream

Mechanisms = dict[str, Any]  # by query name, in the order of the spec

# The runtime fences its streams itself: lock, store, sidecar, and replays that must lead to the released bytes.
_FENCED: dict[str, Any] = {"allow_copy": True}
_OF_THE_STREAM = ("horizon", "neighbours", "unit", "max_events_per_user", "period")


def build(spec: StreamSpec, key: Key | None) -> Mechanisms:
    """New mechanisms on one stream under one ledger. What they refuse is reported at the line of the query."""
    shared: dict[str, Any] = {name: getattr(spec, name) for name in _OF_THE_STREAM}
    stream = Stream(spec.name, guarantee=spec.shared, key=key, **shared)
    return {query.name: _added(spec, stream, query) for query in spec.queries}


def _added(spec: StreamSpec, stream: Stream, query: QuerySpec) -> Any:
    statistic = query.record.statistic
    try:
        options = _options(spec, query)
        if not query.takes_whole(spec.guarantee):
            return stream.add(statistic, share=query.share, name=query.name, **options, **_FENCED)
        # The only query of its stream (the spec was checked): there is nothing to share, and no ledger to keep.
        options |= stream.shared_options(statistic, options) | {"key": stream.key} | _FENCED
        return statistic(**options, guarantee=spec.guarantee, stream=stream.name, name=query.name)
    except EvertallyError as error:
        raise ConfigurationError(f"{spec.path}:{query.line}: query {query.name!r}: {error}") from error


def _options(spec: StreamSpec, query: QuerySpec) -> dict[str, Any]:
    """The options of a query as arguments of its class."""
    options = query.record.arguments(query.parameters)
    if spec.max_events_per_tick is not None and query.record.rests_on_rate(query.mechanism):
        options["max_events_per_tick"] = spec.max_events_per_tick
    return options


def twins(mechanisms: Mechanisms, key: NoiseKey | None = None) -> Mechanisms:
    """The same mechanisms before their first tick, with all that was settled for them; without a key, under one
    that is thrown away.

    To be asked about mechanism, charge and error: they have seen nothing, so that no answer can depend on data.
    """
    return {name: _twin(name, mechanism, key) for name, mechanism in mechanisms.items()}


def _twin(name: str, mechanism: Any, key: NoiseKey | None) -> Any:
    kind = type(mechanism)
    # Through text, as a snapshot keeps them: some are read otherwise than they are kept.
    kept = json.loads(json.dumps({of: mechanism._encoded(of, value) for of, value in mechanism._options.items()}))
    made = kind(**{of: kind._decoded(of, value) for of, value in kept.items()}, key=key, **_FENCED)
    if (made.charge, made._address) != (mechanism.charge, mechanism._address):
        raise StateError(f"query {name!r}: its options do not lead to the mechanism that runs; please report it")
    return made


def restored(spec: StreamSpec, key: Key, snapshots: Mapping[str, bytes]) -> Mechanisms:
    """The mechanisms of a stream that has run, exactly as they were."""
    if list(snapshots) != [query.name for query in spec.queries]:
        raise StateError(f"{spec.state_file} does not hold the queries of {spec.path}; the stream stops")
    return {name: restore(blob, key=key, **_FENCED) for name, blob in snapshots.items()}
