"""`et.release`: a whole table at once, with the parts of the runtime and none of its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, cast

from evertally.contract.paths import named, once
from evertally.errors import ConfigurationError
from evertally.noise import Key, NoiseKey, own_key
from evertally.privacy import Guarantee
from evertally.runtime.input.binning import BinnedEvents, BinnedTick
from evertally.runtime.input.sources import InputFile
from evertally.runtime.machine import Machine
from evertally.runtime.mechanisms import build
from evertally.runtime.spec import StreamSpec, check_runnable, load_spec
from evertally.runtime.table.columns import TableInput, Within
from evertally.runtime.table.given import CALL, in_words_of_the_call, query_table, query_tables, spec_from
from evertally.runtime.table.released import Released
from evertally.runtime.table.tidy import Log

_NAME = "table"
_CLOCK = (
    'time, start, end and tick are declared: time="ts", start="2024-01-01", end="2025-01-01", tick="1d". They '
    "are never read off the rows: were the first tick that of the earliest row, removing one row could move all others"
)


def query(kind: Any, *, column: str | None = None, **options: Any) -> dict[str, Any]:
    """One query of a table: its kind, by name or class, and its options as a [[query]] of a spec has them.

    >>> query("histogram", column="city", categories=["Ulm", "Bonn"]) == {
    ...     "kind": "histogram", "column": "city", "categories": ["Ulm", "Bonn"]
    ... }
    True
    """
    read = {} if column is None else {"column": column}
    return query_table(kind, read | options)


def release(
    table: Any,
    queries: Any,
    *,
    time: str | None = None,
    start: Any = None,
    end: Any = None,
    tick: Any = None,
    guarantee: Guarantee | None = None,
    user: str | None = None,
    window: Any = None,
    per: Any = None,
    key: NoiseKey | None = None,
    name: str | None = None,
    beta: float | None = None,
    outside: Literal["refuse", "drop"] = "refuse",
    **stream: Any,
) -> Released:
    """All releases of a whole table, tick by tick, under one guarantee; a tidy frame comes back.

    `table` is a frame of pandas or Polars, an Arrow table, a dictionary of columns, or the path of a CSV, Parquet,
    Arrow or JSON-lines file. `queries` are given by name, or are the path (or content) of a stream spec, which then
    says everything that is public. `time` is the column of time stamps (without a zone: UTC). Rows before `start`, or
    at `end` or later, are refused unless `outside="drop"`; single rows without a readable time stamp are left out.
    `user` is the column of users, who are then hidden with all their rows; `window` and `per` are as in
    `Released.window`. `stream` takes the rest of [stream]: `max_events_per_user`, `neighbours`, `period`,
    `max_events_per_tick`, and `unit="event"` beside a `user`.

    **Each call spends its guarantee.** A second call about the same people spends it again; what lives on, tick by
    tick, is a `Stream` or a spec that is served. Noise follows from `key`, which is drawn unless one is given; a key
    sees one table under one `name`, and other rows are refused.

    What is promised is what the queries promise (their theorems are in `.certificate`); tier "exact" where theirs is.
    Time and memory are those of the table's columns and of the mechanisms, one tick after the other.

    >>> import evertally as et
    >>> orders = {"day": ["2024-01-01", "2024-01-01", "2024-01-03"], "city": ["Ulm", "Bonn", "Ulm"]}
    >>> queries = {"orders": "counter", "by_city": query("histogram", column="city", categories=["Bonn", "Ulm"])}
    >>> clock = {"time": "day", "start": "2024-01-01", "end": "2024-01-04", "tick": "1d"}
    >>> found = release(orders, queries, **clock, guarantee=et.ZCDP(0.5), key=et.simulation(1))
    >>> found.to_arrow().num_rows, found.to_arrow().column_names
    (9, ['tick', 'time', 'query', 'label', 'value', 'stddev', 'low', 'high'])
    """
    given = {"time": time, "start": start, "end": end, "tick": tick, "guarantee": guarantee, "user": user, "beta": beta}
    try:
        noise = own_key(key)
        spec = _spec(queries, {of: one for of, one in given.items() if one is not None} | stream, name, key)
        source = TableInput(table)
        if outside not in ("refuse", "drop"):
            raise ConfigurationError('outside is "refuse" or "drop": what happens to rows before start, or from end on')
        found = _released(spec, source, noise, outside == "drop")
        return found if window is None and per is None else found.window(window, per=per)
    except ConfigurationError as error:
        raise in_words_of_the_call(error, _is_spec(queries)) from None


def _is_spec(queries: Any) -> bool:
    """The path of a spec, or its content: queries by name have no list of tables."""
    content = isinstance(queries, Mapping) and isinstance(queries.get("query"), list)
    return content or isinstance(queries, str | os.PathLike)


def _spec(queries: Any, given: Mapping[str, Any], name: str | None, key: NoiseKey | None) -> StreamSpec:
    if _is_spec(queries):
        if said := [*given, *(["name"] if name is not None else [])]:
            raise ConfigurationError(f"{', '.join(said)}: the spec says so already; leave it out here")
        spec = spec_from(queries) if isinstance(queries, Mapping) else load_spec(queries)
        check_runnable(spec)
        return spec
    if missing := [option for option in ("time", "start", "end", "tick") if option not in given]:
        raise ConfigurationError(f"{', '.join(missing)} missing. {_CLOCK}")
    if "guarantee" not in given:
        raise ConfigurationError("say what is promised: guarantee=et.ApproxDP(1.0, 1e-6), for example")
    rest = dict(given)
    clock = {"column": rest.pop("time"), "close": "request", **{of: rest.pop(of) for of in ("start", "end", "tick")}}
    promise, user, beta = rest.pop("guarantee"), rest.pop("user", None), rest.pop("beta", None)
    stream: dict[str, Any] = {"name": _NAME if key is None else named(name, key, _NAME)} | rest
    if user is not None:
        stream |= {"user_column": user, "unit": stream.get("unit") or ("user-period" if "period" in rest else "user")}
    tables = query_tables(queries)
    if asked := [table.get("name") for table in tables if table.keys() & {"window", "per"}]:
        raise ConfigurationError(
            f"query {asked[0]!r}: window and per are asked for in the call, for all queries, or of what it gives back: "
            'found.window("7d", per="1d")'
        )
    content = {"stream": stream, "clock": clock, "query": tables}
    return spec_from(content | ({} if beta is None else {"output": {"beta": beta}}), promise)


def _released(spec: StreamSpec, source: TableInput, key: NoiseKey, drop: bool) -> Released:
    last = spec.last_tick
    if last is None:
        raise ConfigurationError("a table has a last tick: the spec needs [clock] end or [stream] horizon")
    rows = Within(source, spec, last)
    if not drop:
        rows.check()
    # Noise of its own: under the key of a live stream of the same name, the two would publish their difference.
    own = key.derive(CALL) if isinstance(key, Key) else key
    mechanisms = build(spec, cast(Key, own))
    if key.private:
        digest = own.mac(CALL, rows.digest())
        for mechanism in mechanisms.values():
            once(bytes.fromhex(mechanism.noise_fingerprint), digest, key.process, _NAME)
    machine, binned, log = Machine(spec, mechanisms, own), BinnedEvents(spec, cast(InputFile, rows), 1, last), Log()
    for tick in range(1, last + 1):
        log.add(machine.step(BinnedTick(binned, tick), tick), machine.releases)
    return Released(spec, machine.twins(), log, source.library, key)
