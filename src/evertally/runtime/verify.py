"""Whether a published log is what a stream has released: from the log, a signed head, a public key, and no secret."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain as joined
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from evertally.errors import ConfigurationError
from evertally.runtime.clock import written
from evertally.runtime.sinks.lines import unmarked
from evertally.runtime.spec import StreamSpec
from evertally.runtime.state.public_log import chained, is_signed, tick_digest
from evertally.runtime.state.sidecar import NO_CHAIN
from evertally.runtime.state.verifying import StoreToVerify

Row = Mapping[str, Any]
Shown = tuple[int, object, dict[str, dict[str, Any]], int]  # tick, time, columns by query, rows of windows


class Checked(NamedTuple):
    """What is wrong with a log (nothing, if all of it is what was released), its first and last tick, and how many of
    its rows are windows, which nobody has signed."""

    problems: list[str]
    first: int = 0
    last: int = 0
    windows: int = 0


@contextmanager
def state_of(spec: StreamSpec) -> Iterator[StoreToVerify]:
    """The state of a stream that has run, to be verified. Needs the key. `Unreadable`: what says which state it is was
    changed, so there is nothing to go through."""
    with StoreToVerify.of(spec) as (_, store):
        yield store


@dataclass(frozen=True)
class Certified:
    """Whose log it should be: what a certificate says, or a spec and its key."""

    stream: str
    spec_digest: str
    public_key: str
    queries: frozenset[str]

    @classmethod
    def by(cls, certificate: Mapping[str, Any]) -> Certified:
        try:
            public_key = certificate["release_log"]["public_key"]
            queries = frozenset(query["name"] for query in certificate["queries"])
            made = cls(certificate["stream"], certificate["spec_digest"], public_key, queries)
        except (KeyError, TypeError):
            raise ConfigurationError(
                "the certificate names no public key: get one from the stream as it runs"
            ) from None
        if made.public_key is None:
            raise ConfigurationError("the certificate is from before the stream began: it names no public key yet")
        return made

    def checked(self, head: Mapping[str, Any], log: Path) -> Checked:
        found = self._checked(head, log, marked=False)
        if found.problems and log.suffix == ".csv":  # in downloads, and in files for spreadsheets, labels may be marked
            unmarked = self._checked(head, log, marked=True)
            return found if unmarked.problems else unmarked
        return found

    def _checked(self, head: Mapping[str, Any], log: Path, marked: bool) -> Checked:
        if not is_signed(head, self.public_key):
            return Checked(["the head is not signed with the key that the certificate names"])
        if (head["stream"], head["spec_digest"]) != (self.stream, self.spec_digest):
            return Checked(["the head is that of another stream"])
        digests: dict[int, bytes] = {}
        first = last = windows = 0
        with _documented(log):
            for tick, time, queries, more in shown_in(log, self.queries, marked):
                if tick <= last:  # the second one would hide the first
                    return Checked([f"tick {tick} comes after tick {last}"])
                first, last, windows = first or tick, tick, windows + more
                digests[tick] = tick_digest(tick, time, queries)
        if last > head["tick"]:
            return Checked([f"it goes on after the head, tick {head['tick']}: take a newer head"])
        if _chain(head, digests) == head["chain"] and first > head["since"]:
            return Checked([], first, last, windows)
        return Checked(list(_differences(head, digests, first)), first, last, windows)


def _chain(head: Mapping[str, Any], digests: Mapping[int, bytes]) -> str:
    """Where a log leads to; ticks that are not in it must have shown nothing."""
    chain = NO_CHAIN
    for tick in range(head["since"] + 1, head["tick"] + 1):
        chain = chained(chain, tick, digests.get(tick) or tick_digest(tick, None, {}))
    return chain


def _differences(head: Mapping[str, Any], digests: Mapping[int, bytes], first: int) -> Iterator[str]:
    """A part of a log, or one that is wrong: by the digests of single ticks."""
    signed = {one["tick"]: bytes.fromhex(one["digest"]) for one in head["digests"]}
    if not digests.keys() <= signed.keys() or not digests:
        yield (
            "it does not lead to the chain of the head: a tick was changed, added or left out. To check a part of a "
            "log, or to know which tick it is, take a head with digests"
        )
    for tick, digest in sorted(signed.items()):
        if tick >= first and digests.get(tick, tick_digest(tick, None, {})) != digest:
            yield f"tick {tick} is not what was released" if tick in digests else f"tick {tick} was left out"


def read_json(path: Path) -> Any:
    """A certificate, a head, an answer of /v1/releases."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        raise ConfigurationError(f"{path} is not JSON") from None


@contextmanager
def _documented(log: Path) -> Iterator[None]:
    """A log is anybody's file: whatever is in it, it is what was released, or not, or no log."""
    try:
        yield
    except OSError as error:
        raise ConfigurationError(f"cannot read {log}: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, csv.Error, pa.ArrowException) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"{log} is not a release log: its rows are not of the documented form") from None


def shown_in(log: Path, queries: frozenset[str], marked: bool = False) -> Iterator[Shown]:
    """The ticks of a log in any format that outputs have. Windows, which follow from the rest, are passed over.
    `marked`: labels of CSV have an apostrophe before what a spreadsheet would take for a formula."""
    windows = tuple(f"{name}/" for name in queries)

    def signed(name: str) -> bool:  # one that nobody has released leads to another digest
        return name in queries or not name.startswith(windows)

    if log.suffix == ".json":
        for release in read_json(log)["releases"]:
            own = {name: _even(columns) for name, columns in release["queries"].items() if signed(name)}
            yield release["tick"], release["time"], own, len(release["queries"]) - len(own)
        return
    for tick, rows in groupby(_rows(log, marked), lambda row: row["tick"]):
        told = list(rows)
        found: dict[str, dict[str, Any]] = {}
        own_rows = [row for row in told if signed(row["query"])]
        for row in own_rows:
            columns = found.setdefault(row["query"], {"stddev": row["stddev"]})
            for name in ("category", "value", "lower", "upper"):
                columns.setdefault(name, []).append(row[name])
            if row["stddev"] != columns["stddev"] or row["time"] != told[0]["time"]:
                columns["stddev"] = float("inf")  # of one tick and query there is one: nothing leads to this
        yield tick, told[0]["time"], found, len(told) - len(own_rows)


def _even(columns: dict[str, Any]) -> dict[str, Any]:
    """Numbers are hashed in a row: one that was moved from the lower to the upper bounds would not be noticed."""
    lists = [columns[name] for name in ("value", "lower", "upper")]
    if len({len(numbers) if isinstance(numbers, list) else None for numbers in lists}) > 1:
        raise ValueError
    return columns


def _rows(log: Path, marked: bool) -> Iterable[Row]:
    if log.is_dir() or log.suffix == ".parquet":
        parts = sorted(log.glob("[!._]*")) if log.is_dir() else [log]  # all that readers of a folder read
        return joined.from_iterable(map(_of_parquet, parts))
    return _of_csv(log, unmarked if marked else str) if log.suffix == ".csv" else _of_lines(log)


def _of_lines(log: Path) -> Iterator[Row]:
    with open(log, "rb") as file:
        yield from map(json.loads, file)


def _of_csv(log: Path, label: Callable[[str], str]) -> Iterator[Row]:
    with open(log, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, strict=True):
            numbers = {name: _number(row[name]) for name in ("stddev", "lower", "upper")}
            chosen = row["value"] == "" and row.get("label") is not None
            value = label(row["label"]) if chosen else _number(row["value"])
            yield {**row, **numbers, "tick": int(row["tick"]), "category": label(row["category"]), "value": value}


def _number(cell: str) -> int | float | None:
    if cell == "":
        return None
    return int(cell) if cell.lstrip("-").isdigit() else float(cell)


def _of_parquet(part: Path) -> Iterator[Row]:
    table = pq.read_table(part)
    moments = pa.types.is_timestamp(table.schema.field("time").type)
    if moments:
        times = table["time"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
        table = table.set_column(table.schema.get_field_index("time"), "time", times)
    for row in table.to_pylist():
        value = row["value"] if row["value"] is not None or "label" not in row else row["label"]
        yield {**row, "time": written(row["time"]) if moments else row["time"], "value": value}
