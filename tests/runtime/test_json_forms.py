"""Streams release the same bytes whichever reader read their JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live_stream import ON_REQUEST, in_pieces
from release_stream import released, spec_of_all_kinds, spec_of_user_kinds
from visit_stream import WriteSpec, visits

from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.runtime.input import json_lines
from evertally.runtime.input.batches import BatchRefused, decode, encode
from evertally.runtime.input.envelope import known, needed
from evertally.runtime.input.sources import Batch
from evertally.runtime.input.tokens import is_tokens
from evertally.runtime.live import Live, Receipt
from evertally.runtime.spec import StreamSpec
from made_keys import save_bound

SCANNED, CAREFULLY = 0, sys.maxsize
# Beside the visits: cells that no reader of simple cells can read, and lines that are left out.
ODD = [
    {"time": "2013-01-01T00:30:00+00:00", "ward": ["north", "south"], "minutes": "17", "patient": 7},
    {"time": "2013-01-01T00:31:00Z", "ward": "n\u00f6rth", "minutes": 1e300, "patient": "\ud800"},
    {"time": "2013-01-01", "ward": {"north": 2}, "minutes": None, "patient": "cafe\u0301"},
    {"time": "2013-01-01T00:30:00Z", "ward": True, "minutes": float("nan"), "patient": ""},
    {"other": 1},
]


def lines(records: list[dict[str, Any]]) -> bytes:
    """Some written in ASCII, some not; a lone surrogate cannot be written in UTF-8."""
    mixed = [one for i, record in enumerate(records) for one in (record, ODD[i % 5])]
    in_ascii = [i % 2 > 0 or "\ud800" in record.values() for i, record in enumerate(mixed)]
    return "".join(json.dumps(r, ensure_ascii=a) + "\n" for r, a in zip(mixed, in_ascii, strict=True)).encode()


def reader(few: int) -> Callable[[StreamSpec, int], Batch]:
    def read(spec: StreamSpec, tick: int) -> Batch:
        found = json_lines.read(lines(visits(tick - 1, tick)), spec.columns(), known(spec), few).columns
        assert all(is_tokens(column) == (few == SCANNED) for column in found.values())
        return found

    return read


@pytest.mark.parametrize("users", [False, True])
def test_all_kinds_release_the_same_bytes(write_spec: WriteSpec, tmp_path: Path, users: bool) -> None:
    spec = spec_of_user_kinds(tmp_path) if users else spec_of_all_kinds(write_spec)
    scanned, careful = ([tick.payloads for tick, _ in released(spec, 3, reader(few))] for few in (SCANNED, CAREFULLY))
    assert scanned == careful


def twin(write_spec: WriteSpec, folder: str, key: Key) -> StreamSpec:
    capped = ("horizon = 48", 'horizon = 48\nunit = "user"\nmax_events_per_user = 3\nuser_column = "patient"')
    path = write_spec(ON_REQUEST, capped, folder=folder)
    save_bound(key, path)
    return load_spec(path)


def test_a_live_stream_goes_on_from_a_journal_of_either_form(write_spec: WriteSpec) -> None:
    key, records = Key.generate(), visits(0, 20)
    batches = [lines(list(some)) for some in in_pieces(records, 7)]

    def play(folder: str, form: Callable[[int], int], restart: int) -> list[Any]:
        spec = twin(write_spec, folder, key)
        live = Live(spec)
        for i, body in enumerate(batches):
            if i == restart:
                live.abandon()
                live = Live(spec)
            batch = json_lines.read(body, needed(spec), known(spec), form(i)).columns
            assert live.accept([(f"batch {i}", batch)]) == [Receipt(1, False)]
        with live:
            return [tick.payloads for tick in live.release_through(20)]

    careful = play("careful", lambda _: CAREFULLY, 2)
    assert play("scanned", lambda _: SCANNED, 3) == careful
    assert play("updated", lambda i: SCANNED if i >= 2 else CAREFULLY, 2) == careful


def test_a_batch_that_an_earlier_version_took_may_come_again(write_spec: WriteSpec) -> None:
    spec = twin(write_spec, ".", Key.generate())
    body = lines(visits(0, 9))
    earlier, now = (json_lines.read(body, needed(spec), known(spec), few).columns for few in (CAREFULLY, SCANNED))
    other = json_lines.read(lines(visits(0, 8)), needed(spec), known(spec), SCANNED).columns
    assert encode(earlier) != encode(now)
    with Live(spec) as live:
        assert live.accept([("one", earlier)]) == [Receipt(1, False)]
        assert live.accept([("one", now)]) == [Receipt(1, True)]
        assert isinstance(live.accept([("one", other)])[0], BatchRefused)


def test_the_journal_is_read_without_the_scanner(write_spec: WriteSpec) -> None:
    spec = twin(write_spec, ".", Key.generate())
    batch = json_lines.read(lines(visits(0, 9)), needed(spec), known(spec), SCANNED).columns
    assert all(map(is_tokens, decode(encode(batch)).values()))
