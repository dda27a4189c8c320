"""The row "ways in": planted mistakes of doors and tables of users are seen; the product is the same in all ways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evertally.audit.report import Report
from evertally.audit.spec_down import spec_steps
from evertally.audit.suite import run
from evertally.encode import content_kernels, content_order, labels, name_index, owners, siphash, spelled, users
from evertally.encode.bags import Bag
from evertally.encode.caps import Cap
from evertally.encode.name_index import NameIndex
from evertally.encode.texts import Texts
from evertally.encode.user_table import UserTable
from evertally.runtime import load_spec
from evertally.runtime.input import csv_lines, tick_events
from evertally.runtime.mechanisms import build
from mutation.specs import SPECS
from spec_text import spec_text

pytestmark = pytest.mark.long

USERS = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "patient", "max_events_per_user": 3}
WARD = {"name": "ward", "kind": "histogram", "column": "ward", "categories": ["north", "south", "west"]}
LISTS = {**WARD, "max_per_event": 2}
ALL = {"name": "all", "kind": "counter"}
WORDS = {"name": "words", "kind": "unknown_histogram", "column": "ward", "max_per_event": 2}
DELTA = {"epsilon": 2, "delta": 1e-6}
RETURNING = {"name": "returning", "kind": "period_users", "period": 4}
TABLE = {"ward": ["north", "south"], "sex": ["f", "m"]}
BY_TWO = {"name": "both", "kind": "group_by", "columns": TABLE, "tables": [["ward"], []]}

# One of every family; all of them would take a minute, and the audits of mutants play them.
FAMILIES = (
    *("counter", "sqrt", "epoch-blocks", "memory", "replaced-users", "separated-users", "calendar-users"),
    *("content-users", "distinct", "active", "periods", "retention", "sum", "sum-of-users", "mean", "variance"),
    *("value-quantile", "weights", "two-level", "recompute", "found-limited", "found-meta", "found-lists", "ahead"),
    *("switches", "found-users", "dynamic", "dynamic-wards", "present", "degrees", "substrings", "sketch", "tables"),
    "dashboard",
)

Rows = Callable[..., Report]


@pytest.fixture
def ways_in(tmp_path: Path) -> Rows:
    """That row of a spec with one query."""

    def audited(text: str, row: str = "ways in") -> Report:
        path = tmp_path / "visits.toml"
        path.write_text(text)
        spec = load_spec(path)
        steps = spec_steps(path, spec, build(spec, None))
        return run(next(step for own in steps.values() for step in own if step.name == row))

    return audited


@pytest.mark.parametrize("family", FAMILIES)
def test_the_product_is_the_same_in_all_ways(ways_in: Rows, family: str) -> None:
    report = ways_in(SPECS[family])
    assert (report.verdict, report.aspect) == ("holds (tight)", "state"), report.stopped
    assert {"names", "hashes", "few events", "many events"} <= set(report.stopped.partition(":")[0].split(", "))


def test_it_says_what_was_looked_at(ways_in: Rows) -> None:
    assert "pieces" in ways_in(spec_text(LISTS)).stopped
    assert "those that count, without somebody" in ways_in(spec_text(WARD, stream=USERS)).stopped
    assert "another order" in ways_in(spec_text(WARD, stream={**USERS, "order": "content"})).stopped
    assert "tables" in ways_in(spec_text(BY_TWO)).stopped


def broken(report: Report, said: str) -> None:
    assert report.verdict == "broken", report.stopped
    assert said in report.stopped


# -- readers -----------------------------------------------------------------------------------------------------------


def test_blanks_that_go_in_lines_of_csv_with_a_quote(ways_in: Rows, monkeypatch: Any) -> None:
    honest = csv_lines._cells

    def fewer(line: str) -> list[str]:
        return [cell.removeprefix(" ") for cell in honest(line)] if '"' in line else honest(line)

    monkeypatch.setattr(csv_lines, "_cells", fewer)
    for text in (spec_text(WARD, stream=USERS), spec_text(WORDS, guarantee=DELTA)):
        broken(ways_in(text), "few events as CSV beside a quoted cell release something else")


# -- tables of users ---------------------------------------------------------------------------------------------------


def test_names_that_share_a_hash_are_taken_for_one(ways_in: Rows, monkeypatch: Any) -> None:
    def by_hash(self: NameIndex, names: Texts, hidden: Any, some_hidden: bool = True) -> Any:
        known = self.texts()
        numbers = {h: i for i, h in enumerate(name_index._hashes(known, 0).tolist()) if not hidden[i]}
        return np.array([numbers.get(h, -1) for h in name_index._hashes(names, 0).tolist()], np.int64)

    monkeypatch.setattr(NameIndex, "find", by_hash)
    broken(ways_in(spec_text(ALL)), "names")


def test_a_table_that_loses_the_users_beyond_a_block(ways_in: Rows, monkeypatch: Any) -> None:
    load = UserTable.load

    def shorter(self: UserTable, data: bytes) -> None:
        load(self, data)
        for column in self._now.columns:
            column[1024:] = 0

    monkeypatch.setattr(UserTable, "load", shorter)
    broken(ways_in(spec_text(WARD, stream=USERS)), "put away")


def test_a_cap_that_keeps_one_more_of_many(ways_in: Rows, monkeypatch: Any) -> None:
    kernel = users.kernel

    def other(function: Any, names: int, size: int = 0) -> Any:
        def generous(codes: Any, most: int, counts: Any, kept: Any) -> None:
            function(codes, most + 1, counts, kept)

        return kernel(function, names, size) if names < 2048 else generous

    monkeypatch.setattr(users, "kernel", other)
    broken(ways_in(spec_text(WARD, stream=USERS)), "cap of 3")


def test_an_erased_user_counts_again(ways_in: Rows, monkeypatch: Any) -> None:
    monkeypatch.setattr(UserTable, "erased", lambda self, numbers: np.zeros(len(numbers), np.bool_))
    for text in (spec_text(WARD, stream=USERS), SPECS["retention"]):
        broken(ways_in(text), "erased")


def test_a_cap_is_restored_with_users_that_it_does_not_know(ways_in: Rows, monkeypatch: Any) -> None:
    honest = Cap.from_bytes.__func__  # type: ignore[attr-defined]

    def careless(cls: Any, blob: bytes) -> Any:
        try:
            return honest(cls, blob)
        except Exception:
            return cls(3)

    monkeypatch.setattr(Cap, "from_bytes", classmethod(careless))
    broken(ways_in(spec_text(ALL)), "damaged state of a cap")


# -- columns -----------------------------------------------------------------------------------------------------------


def test_numbers_and_truth_values_are_one_label(ways_in: Rows, monkeypatch: Any) -> None:
    """As dictionary keys True, 1 and 1.0 are one; as labels they are not."""
    monkeypatch.setattr(labels, "only", lambda entries, *kinds: all(isinstance(one, kinds) for one in entries))
    broken(ways_in(spec_text(WORDS, guarantee=DELTA)), "release something else")


def test_users_who_are_numbers_are_others_than_their_texts(ways_in: Rows, monkeypatch: Any) -> None:
    monkeypatch.setattr(owners, "decimals", lambda values: Texts.of([f"{value:+d}" for value in values.tolist()]))
    broken(ways_in(spec_text(WARD, stream=USERS)), "users who are numbers")


def test_a_list_that_is_cut_by_arrival_where_there_are_many(ways_in: Rows, monkeypatch: Any) -> None:
    from evertally.encode.cutting import SecretOrder

    kept = SecretOrder.kept

    def first(self: Any, starts: Any, code: Any, weight: Any, names: Texts, tick: int, most: int) -> Any:
        if len(code) < 256:
            return kept(self, starts, code, weight, names, tick, most)
        return np.arange(len(code)) - np.repeat(starts[:-1], np.diff(starts)) < most

    monkeypatch.setattr(SecretOrder, "kept", first)
    broken(ways_in(spec_text(ALL)), "secret order")


def test_weights_that_are_forgotten_where_events_are_laid_out_flat(ways_in: Rows, monkeypatch: Any) -> None:
    from evertally.encode import door

    made = door.bags

    def plain(events: Any) -> list[Bag] | None:
        found = made(events)
        return None if found is None else [Bag(bag.lengths, bag.values) for bag in found]

    monkeypatch.setattr(door, "bags", plain)
    for query, sections in ((LISTS | {"max_weight": 5}, {}), (WORDS | {"max_weight": 5}, {"guarantee": DELTA})):
        broken(ways_in(spec_text(query, **sections)), "something else")


def test_batches_that_are_joined_with_the_labels_of_the_first(ways_in: Rows, monkeypatch: Any) -> None:
    monkeypatch.setattr(spelled, "_shifted", lambda columns, sizes: np.concatenate(columns))
    broken(ways_in(spec_text(WARD)), "release something else than as objects")


def test_nulls_of_arrow_that_count(ways_in: Rows, monkeypatch: Any) -> None:
    honest = labels.coded_arrow

    def filled(column: Any) -> Any:
        found = honest(column)
        return None if found is None else (np.maximum(found[0], 0), found[1])

    monkeypatch.setattr(labels, "coded_arrow", filled)
    broken(ways_in(spec_text(WARD)), "release something else than as objects")


def test_an_exception_in_one_way_alone(ways_in: Rows, monkeypatch: Any) -> None:
    def refused(*_: Any) -> Any:
        raise ValueError("a record")

    monkeypatch.setattr(tick_events, "joined_labels", refused)
    report = ways_in(spec_text(WARD))
    broken(report, "ValueError")
    assert "a record" not in report.stopped


# -- hashes ------------------------------------------------------------------------------------------------------------


def test_a_hash_that_forgets_the_end_of_a_text(ways_in: Rows, monkeypatch: Any) -> None:
    honest = content_kernels.digests_of_texts
    shorter = lambda texts, key: honest(Texts.of_bytes([name[:16] for name in texts.names()]), key)  # noqa: E731
    monkeypatch.setattr(content_kernels, "digests_of_texts", shorter)
    monkeypatch.setattr(content_order, "digests_of_texts", shorter)
    broken(ways_in(spec_text(ALL)), "not those of their definition")


def test_siphash_with_too_few_bits(ways_in: Rows, monkeypatch: Any) -> None:
    monkeypatch.setattr(siphash, "_ALL", 2**63 - 1)
    broken(ways_in(spec_text(ALL)), "SipHash")


def test_an_order_by_content_that_is_that_of_arrival(ways_in: Rows, monkeypatch: Any) -> None:
    monkeypatch.setattr(tick_events, "content_order", lambda columns, key: np.arange(len(columns[0][0])))
    broken(ways_in(spec_text(WARD, stream={**USERS, "order": "content"})), "another order")
