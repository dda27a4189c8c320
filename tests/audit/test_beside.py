"""Hostile records beside others: readers that let one record decide about others are seen, and the product does not."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from evertally.audit.spec_down.small import Small, small_copy
from evertally.audit.ways.bodies import READERS
from evertally.audit.ways.ways_in import _Ways
from evertally.runtime import load_spec
from evertally.runtime.input import arrow_columns, batches, csv_lines, json_cells, json_lines
from evertally.runtime.input import tick_events as ticks
from evertally.runtime.mechanisms import build
from spec_text import HOURLY, WARD, spec_text

WORDS = {"name": "words", "kind": "unknown_histogram", "column": "ward"}
DELTA = {"epsilon": 2, "delta": 1e-6}
USERS = {"name": "visits", "horizon": 48, "unit": "user", "user_column": "patient", "max_events_per_user": 3}
ALL = {"name": "all", "kind": "counter"}
SUM = {"name": "sum", "kind": "running_sum", "column": "minutes", "upper": 9}
ON_REQUEST = {**HOURLY, "close": "request"}
NUMBERED = {"column": "time", "start": 0, "tick": 10, "close": "request"}

Play = Callable[..., str]


@pytest.fixture
def beside(tmp_path: Path) -> Play:
    """What hostile records do to others in the copy of a spec with one query."""
    return lambda *queries, **sections: _Ways(small(tmp_path, *queries, **sections), 0).beside_others()


def small(folder: Path, *queries: Any, **sections: Any) -> Small:
    text = spec_text(*queries, **sections)
    (folder / "visits.toml").write_text(text)
    spec = load_spec(folder / "visits.toml")
    name = spec.queries[0].name
    return small_copy(tomllib.loads(text), spec, name, build(spec, None)[name], 6)


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"clock": ON_REQUEST},
        {"clock": NUMBERED},
        {"stream": {**USERS, "order": "content"}, "clock": ON_REQUEST},
        {"events": {"ward": "text", "time": "time"}},
        {"events": {"ward": "list of text", "time": "time"}},  # no text of Arrow can be sent
    ],
)
def test_no_record_decides_about_others(beside: Play, sections: Any) -> None:
    assert beside({**WARD, "categories": ["north", "Z\u00fcrich", "7"]}, **sections) == ""


@pytest.mark.parametrize("category", ["a,b", 'so "called"', "two\nlines", " north", "\ufeffnorth"])
def test_nor_where_a_category_is_hard_to_write(beside: Play, category: str) -> None:
    assert beside({**WARD, "categories": [category, "north"]}) == ""


def test_nor_where_labels_are_found_or_numbers_read_or_nothing_is(beside: Play) -> None:
    assert beside(WORDS, guarantee=DELTA) == ""
    assert beside(SUM) == ""
    assert beside(ALL) == ""
    assert beside(ALL, stream=USERS) == ""


@pytest.mark.parametrize("name", READERS)
def test_most_of_what_is_hostile_can_be_sent(name: str, tmp_path: Path) -> None:
    spec = small(tmp_path, WARD).spec
    made = lambda: [{"ward": "north"}, {"ward": None}, {"ward": "so\u00f9th "}]  # noqa: E731
    told = []
    for body in READERS[name].bodies(spec, ["ward"], made, "ward", {"ward": "north"}):
        told.append(body.told)
        (batch,) = body.batches(spec, 1)
        # Of what is hostile: beside nothing odd, and beside blanks at each of the five places.
        hostile = 6 if body.told else 0
        assert len(batch["ward"]) == len(body.meant) == 3 + hostile
    assert len(told) == len(set(told)) >= 7


# -- planted -----------------------------------------------------------------------------------------------------------


def test_blanks_that_go_with_quotes(beside: Play, monkeypatch: Any) -> None:
    honest = csv_lines._cells
    monkeypatch.setattr(csv_lines, "_cells", lambda line: [cell.strip() for cell in honest(line)])
    assert beside(WARD).startswith("CSV: beside a quote")


def _without_the_first_blank(monkeypatch: Any) -> None:
    """Only in lines with a quote, and only where it is in front of a cell that has none."""
    honest = csv_lines._cells

    def fewer(line: str) -> list[str]:
        return [cell.removeprefix(" ") for cell in honest(line)] if '"' in line else honest(line)

    monkeypatch.setattr(csv_lines, "_cells", fewer)


def test_blanks_that_go_in_lines_with_a_quote(beside: Play, monkeypatch: Any) -> None:
    _without_the_first_blank(monkeypatch)
    assert beside(WARD).startswith("CSV: beside")
    assert beside(WORDS, guarantee=DELTA).startswith("CSV: beside")


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_users_of_lines_with_a_quote_are_others(beside: Play, monkeypatch: Any, most: int) -> None:
    """Also where no cap tells whose an event is."""
    _without_the_first_blank(monkeypatch)
    assert beside(ALL, stream=USERS | {"max_events_per_user": most}).startswith("CSV: beside a")


def test_users_of_records_with_blanks_around_them_are_others(beside: Play, monkeypatch: Any) -> None:
    honest = json_cells._carefully

    def fewer(text: str) -> Any:
        found = honest(text)
        if not isinstance(found, dict):
            return found
        return {name: cell.removeprefix("\u00a0") if isinstance(cell, str) else cell for name, cell in found.items()}

    monkeypatch.setattr(json_cells, "_carefully", fewer)
    assert beside(ALL, stream=USERS).endswith("that nobody reads, records are those of other users")


def test_accents_of_csv_that_go_with_a_bad_byte(beside: Play, monkeypatch: Any) -> None:
    honest = csv_lines._lines
    monkeypatch.setattr(csv_lines, "_lines", lambda block: honest(block.decode("ascii", "ignore").encode()))
    assert beside(WORDS, guarantee=DELTA).startswith("CSV: beside")


@pytest.mark.parametrize(("query", "sections"), [(WORDS, {"guarantee": DELTA}), (ALL, {"stream": USERS})])
def test_accents_of_json_that_go_with_a_bad_byte(beside: Play, monkeypatch: Any, query: Any, sections: Any) -> None:
    monkeypatch.setattr(json_cells, "_text", lambda line: line.decode("latin-1"))
    assert beside(query, **sections).startswith("JSON")


def test_a_line_that_hides_those_behind_it(beside: Play, monkeypatch: Any) -> None:
    honest = json_lines._Scanner._carefully

    def fewer(self: Any, part: bytes, left: Any, *given: Any) -> Any:
        kept, *others = honest(self, part, left, *given)
        kept[left[0] + 1 :] &= kept[left].all()
        return kept, *others

    monkeypatch.setattr(json_lines._Scanner, "_carefully", fewer)
    assert beside(ALL).startswith("JSON lines: beside")


def test_an_element_that_refuses_an_array(beside: Play, monkeypatch: Any) -> None:
    honest = batches._elements

    def strict(body: bytes, spec: Any) -> Any:
        count, records = honest(body, spec)
        if len(records) < count:
            raise batches.BatchRefused(batches.NOT_JSON)
        return count, records

    monkeypatch.setattr(batches, "_elements", strict)
    assert beside(ALL) == "a JSON array: 7 in the place of a record decides whether others are taken"


def test_a_text_of_arrow_that_refuses_its_batch(beside: Play, monkeypatch: Any) -> None:
    monkeypatch.delitem(arrow_columns._SAME_LAYOUT, pa.string())
    assert beside(WARD).startswith("texts of Arrow: a byte that is no UTF-8")


def test_a_time_that_drops_the_events_behind_it(beside: Play, monkeypatch: Any) -> None:
    honest = ticks.own_ticks

    def until_it_cannot_be_read(batch: Any, spec: Any) -> Any:
        own, readable = honest(batch, spec)
        return own, readable if readable.all() else readable & (readable.cumsum() <= readable.argmin())

    monkeypatch.setattr(ticks, "own_ticks", until_it_cannot_be_read)
    assert "otherwise than as objects" in beside(ALL, clock=ON_REQUEST)


def test_what_is_read_otherwise_in_all_forms_is_seen_one_by_one(beside: Play, monkeypatch: Any) -> None:
    from evertally.contract.mechanism import Mechanism

    honest = Mechanism._last_input
    calls = iter(range(10**6))
    monkeypatch.setattr(Mechanism, "_last_input", lambda self: honest(self) + bytes([next(calls) % 5]))
    assert beside(ALL) == "records beside a strange one release something else than one by one"
