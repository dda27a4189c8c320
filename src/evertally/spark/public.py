"""What readers see of a stream on Spark: copies of what manifests name, and what to know about them. Nothing else may
be read by anybody: the root holds what dead attempts wrote, other contents under the same noise.

    public/N/about.json          ticks and their times, chain, files with their hashes, errors of rows; signed
    public/N/QUERY-..parquet     wide rows: tick, category, value; items: tick, category (bytes), value;
                                 everything else: tick, payload (JSON, the bytes that one process keeps in its log)
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from evertally.errors import StateError
from evertally.runtime.releases import pack, unpack
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.runtime.state.shelf import Shelf, open_shelf
from evertally.selection.found import Found
from evertally.selection.item_plan import ItemPlan
from evertally.selection.item_shards import merged
from evertally.spark.beginning import Taken
from evertally.spark.job import put
from evertally.spark.playing import parquet
from evertally.spark.root import NO_CHAIN, Record, content_name, is_content, written
from evertally.spark.ways import is_plain

ABOUT = "about.json"
_SIGNED = b"evertally spark 1\n"


def publish(taken: Taken, record: Record, engine: Record) -> None:
    """Shows a batch that has its mark. Done again, it does nothing: names are put where there are none."""
    public = open_shelf(taken.spec.engine.public)
    folder = f"{record['batch']:08d}"
    if _is_shown(public, taken, record):
        return
    files: dict[str, list[str]] = {query.name: [] for query in taken.spec.queries}
    errors: dict[str, Any] = {}
    ticks = range(record["opened"], record["through"] + 1)
    for number, query in enumerate(taken.spec.queries):
        way = taken.stand.ways[number]
        mine = [
            name for part, name in zip(record["parts"], record["releases"], strict=True) if part[0] == number and name
        ]
        data = [_genuine(taken.log.root, name) for name in mine]
        mechanism = taken.mechanisms[query.name]
        rows = way.place == "slices" and is_plain(mechanism._form)
        if way.place == "shards":
            data = [_together(ItemPlan.from_json(way.plan), data, ticks)]
        elif way.place == "slices" and not rows:
            data = [_answered(query, mechanism, data, ticks, taken.spec.beta)]
        for place, content in enumerate(data):
            name = content_name(f"{folder}/{query.name}-{place:06d}", content) + ".parquet"
            put(public, name, content)
            files[query.name].append(name)
        if rows or way.place == "shards":
            errors[query.name] = _errors(mechanism, _shown(record, rows, ticks), taken.spec.beta)
    said = {
        "stream": taken.spec.name,
        "spec_digest": taken.spec.digest,
        "batch": record["batch"],
        "opened": record["opened"],
        "through": record["through"],
        "times": [taken.spec.clock.end_of(tick) for tick in ticks],
        "release": record["release"],
        "before": record["before"],
        "chain": record["chain"],
        "files": files,
        "errors": errors,
        "engine": engine,
        "public_key": taken.key.public_key.hex(),
    }
    about = written(said | {"signature": taken.key.sign(_SIGNED + written(said)).hex()})
    public.put_new(f"{folder}/{ABOUT}", about)
    _is_shown(public, taken, record)


def check_shown(taken: Taken) -> None:
    """Refuses to go on where readers have seen something else: marks that are restored together with their root vouch
    for each other, and what was shown is the one thing left that knows."""
    public = open_shelf(taken.spec.engine.public)
    newest = next((int(name) for name in reversed(_folders(public)) if _has(public, name)), None)
    if newest is None:
        return
    record = taken.log.manifest(newest)
    if record is None:
        raise StateError(
            f"{taken.spec.engine.public} shows batch {newest}, and root and marks know of none: they are older, or it "
            "belongs to another stream. Bring the newest back; going on would release the same ticks from other events"
        )
    _is_shown(public, taken, record)


def _folders(public: Shelf) -> list[str]:
    """Those of batches, in order; whoever copies or lists them may leave other things beside them."""
    return [name for name in public.names("") if len(name) == 8 and name.isdecimal()]


def _has(public: Shelf, folder: str) -> bool:
    return public.read(f"{folder}/{ABOUT}") is not None


def _is_shown(public: Shelf, taken: Taken, record: Record) -> bool:
    """Whether a batch is shown. Under its number nothing else may be."""
    name = f"{record['batch']:08d}/{ABOUT}"
    data = public.read(name)
    if data is None:
        return False
    about = _said(data)
    mine = (taken.spec.digest, taken.key.public_key.hex(), record["chain"])
    if about is None or (about["spec_digest"], about["public_key"], about["chain"]) != mine:
        raise StateError(
            f"{taken.spec.engine.public}/{name} is not what root and marks say of this batch: it is damaged, of "
            "another stream, or of a past that was taken back. Bring the right one back; stopped"
        )
    return True


def _shown(record: Record, rows: bool, ticks: range) -> Sequence[int]:
    """The ticks whose releases are made: of wide rows perhaps not all."""
    if not rows or not record["release"].startswith(("every", "on")):
        return ticks
    step = int(record["release"].removeprefix("every ")) if record["release"].startswith("every") else 0
    return [tick for tick in ticks if step and tick % step == 0]


def _genuine(root: Shelf, name: str) -> bytes:
    data = root.read(name)
    if data is None or not is_content(name, data):
        raise StateError(f"{name} under the root is missing or damaged, and its batch is not shown yet: bring it back")
    return data


def _errors(mechanism: Any, ticks: Sequence[int], beta: float) -> dict[str, list[Any]]:
    """Standard deviation and radius of the interval at each tick, as payloads of one process have them."""
    found: dict[str, list[Any]] = {"tick": list(ticks), "stddev": [], "radius": []}
    for tick in ticks:
        accuracy = mechanism._engine.accuracy(tick)
        deviation = mechanism._form.deviation(accuracy)
        found["stddev"].append(None if deviation is None else float(f"{deviation:.6g}"))
        found["radius"].append(math.floor(accuracy.radius(beta)))
    return found


def _answered(query: QuerySpec, mechanism: Any, slices: list[bytes], ticks: Sequence[int], beta: float) -> bytes:
    """What is shown of rows that are not shown themselves (tables of sketches, estimates): made of released numbers."""
    values = {tick: np.zeros(mechanism._engine.width, np.int64) for tick in ticks}
    for data in slices:
        table = pq.read_table(io.BytesIO(data))
        at, columns, numbers = (table[name].to_numpy() for name in ("tick", "category", "value"))
        for tick in np.unique(at).tolist():
            mine = at == tick
            values[tick][columns[mine]] = numbers[mine]
    made = [pack(query, mechanism._released(values[tick], tick), beta, rows=True) for tick in ticks]
    return parquet(pa.table({"tick": pa.array(list(ticks), pa.int32()), "payload": pa.array(made, pa.binary())}))


def _together(plan: ItemPlan, shards: list[bytes], ticks: range) -> bytes:
    """What all shards show, as one release a tick, best first."""
    by_tick: dict[int, list[Found]] = {tick: [] for tick in ticks}
    for data in shards:
        found: dict[int, dict[str, int]] = {}
        for tick, label, value in _lines(pq.read_table(io.BytesIO(data))):
            found.setdefault(tick, {})[label.decode("utf-8", "surrogatepass")] = value
        for tick, counts in found.items():
            by_tick[tick].append(Found(counts, {}))
    rows = [
        (tick, label.encode("utf-8", "surrogatepass"), value)
        for tick in ticks
        for label, value in merged(plan, by_tick[tick]).counts.items()
    ]
    kinds = (("tick", pa.int32()), ("category", pa.binary()), ("value", pa.int64()))
    return parquet(pa.table({name: pa.array([row[i] for row in rows], kind) for i, (name, kind) in enumerate(kinds)}))


def _lines(table: pa.Table) -> Iterator[tuple[int, Any, int]]:
    return zip(*(table[name].to_pylist() for name in ("tick", "category", "value")), strict=True)


def batches(spec: StreamSpec) -> list[Record]:
    """What is shown so far, in order, each checked against its signature and its predecessor."""
    public = open_shelf(spec.engine.public)
    found: list[Record] = []
    folders = _folders(public)
    for folder in folders:
        data = public.read(f"{folder}/{ABOUT}")
        if data is None:  # its driver has died over it, or is still busy; then it is the last
            if folder != folders[-1]:
                raise StateError(f"{spec.engine.public}/{folder}/{ABOUT} is missing; copy it anew from who has it")
            break
        about = _said(data)
        if about is None or about["spec_digest"] != spec.digest:
            raise StateError(f"{spec.engine.public}/{folder}/{ABOUT} is damaged, or of another stream")
        if about["before"] != (found[-1]["chain"] if found else NO_CHAIN):
            raise StateError(
                f"{spec.engine.public}: batch {folder} does not follow the one before it; some are missing"
            )
        if found and about["public_key"] != found[0]["public_key"]:
            raise StateError(f"{spec.engine.public}: batch {folder} is signed with another key than the first")
        found.append(about)
    return found


def _said(data: bytes) -> Record | None:
    """What a signed record says; None if it does not bear the signature of the key that it names."""
    try:
        about: Record = json.loads(data)
        said = {name: value for name, value in about.items() if name != "signature"}
        signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(about["public_key"]))
        signer.verify(bytes.fromhex(about["signature"]), _SIGNED + written(said))
    except (InvalidSignature, ValueError, KeyError, TypeError, AttributeError):
        return None
    return about


def shown(
    spec: StreamSpec, query: str, first: int = 1, last: int | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The releases of a query, tick by tick, as columns: category, value, lower, upper, stddev. For what fits into
    memory; `releases` gives a data frame of Spark."""
    public, asked = open_shelf(spec.engine.public), _query(spec, query)
    for about in batches(spec):
        if about["through"] < first or (last is not None and about["opened"] > last):
            continue
        tables = [_read(public, name) for name in about["files"][query]]
        if query not in about["errors"]:
            for tick, payload in zip(tables[0]["tick"].to_pylist(), tables[0]["payload"].to_pylist(), strict=True):
                if first <= tick and (last is None or tick <= last):
                    yield tick, unpack(asked, payload)
            continue
        errors = about["errors"][query]
        for tick, stddev, radius in zip(errors["tick"], errors["stddev"], errors["radius"], strict=True):
            if tick < first or (last is not None and tick > last):
                continue
            rows = [table.filter(pa.compute.equal(table["tick"], tick)) for table in tables]
            category = [_text(label) for part in rows for label in part["category"].to_pylist()]
            value = [number for part in rows for number in part["value"].to_pylist()]
            yield (
                tick,
                {
                    "category": category,
                    "value": value,
                    "lower": [number - radius for number in value],
                    "upper": [number + radius for number in value],
                    "stddev": stddev,
                },
            )


def payloads(spec: StreamSpec, query: str) -> Iterator[tuple[int, bytes]]:
    """The releases of a query that is played in one place, as one process keeps them in its log."""
    public = open_shelf(spec.engine.public)
    for about in batches(spec):
        if query not in about["errors"]:
            for name in about["files"][query]:
                table = _read(public, name)
                yield from zip(table["tick"].to_pylist(), table["payload"].to_pylist(), strict=True)


def _read(public: Shelf, name: str) -> pa.Table:
    data = public.read(name)
    if data is None or not is_content(name.removesuffix(".parquet"), data):
        raise StateError(f"{name} of what was shown is missing or damaged; copy it anew from a reader who has it")
    return pq.read_table(io.BytesIO(data))


def _query(spec: StreamSpec, name: str) -> QuerySpec:
    for query in spec.queries:
        if query.name == name:
            return query
    raise StateError(f"there is no query {name!r} in {spec.path}")


def _text(label: Any) -> str:
    return label.decode("utf-8", "surrogatepass") if isinstance(label, bytes) else str(label)
