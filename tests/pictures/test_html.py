"""What a notebook shows: small tables, escaped, without a secret."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest

import evertally as et
from evertally.pictures import html_table
from evertally.runtime import load_spec, plan
from spec_text import spec_text

EVIL = "<script>alert('x')</script>"


def cells(page: str) -> list[str]:
    return [html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", page)]


def test_releases() -> None:
    options: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 9, "key": et.simulation(1)}
    release = et.Histogram(categories=[EVIL, "b"], **options).step([5000, 3])
    page = release._repr_html_()
    assert EVIL not in page
    low, high = release.interval()
    assert cells(page)[:4] == [EVIL, f"{release.value[EVIL]:,}", f"{low[EVIL]:,}", f"{high[EVIL]:,}"]
    assert "not private" in page
    number = et.Counter(**options).step(5)
    assert cells(number._repr_html_())[0] == str(number.value).replace("-", "\N{MINUS SIGN}")
    assert len(cells(et.VectorCounter(3, **options).step([1, 2, 3])._repr_html_())) == 12
    names = et.oneshot.known_top({"a": 90}, 1, ["a", "b"], guarantee=et.ZCDP(0.5), counts=False, key=et.simulation(1))
    assert cells(names._repr_html_())[1] == "a"


def test_a_mechanism_shows_what_its_repr_shows_and_no_data() -> None:
    key = et.Key.generate()
    counter = et.Counter(guarantee=et.ZCDP(0.5), horizon=9, key=key, name=EVIL)
    counter.step(987_654)
    page = counter._repr_html_()
    assert EVIL not in page
    assert {"ZCDP(rho=0.5)", "1 of 9"} <= set(cells(page))
    assert "987" not in page
    assert bytes(key._secret).hex() not in page
    unmade = et.Counter.__new__(et.Counter)
    assert "not made" in unmade._repr_html_()


def test_ledgers_streams_and_plans(tmp_path: Path) -> None:
    stream = et.Stream("visits", guarantee=et.ZCDP(0.5), horizon=365, key=et.simulation(1))
    stream.add(et.Counter, share=0.3, name=EVIL)
    for page in (stream._repr_html_(), stream.ledger._repr_html_()):
        assert EVIL not in page
        assert "ZCDP(rho=0.15)" in page
        assert "0.7" in page
    ranked = et.plan(et.Counter, guarantee=et.ZCDP(0.5), horizon=365)
    shown = cells(ranked._repr_html_())
    assert shown[0] == ranked.best.name
    printed = repr(ranked)
    assert all(cell in printed for cell in shown)
    (tmp_path / "visits.toml").write_text(spec_text({"name": "all", "kind": "counter"}))
    planned = plan(load_spec(tmp_path / "visits.toml"))
    assert cells(planned._repr_html_())[:4] == ["all", "counter", "1", planned.queries[0].mechanism]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1234567, "1,234,567"),
        (-3, "\N{MINUS SIGN}3"),
        (2.65912, "2.659"),
        (1234.5, "1,234"),
        (None, ""),
        (True, "True"),
    ],
)
def test_numbers_as_people_write_them(value: Any, shown: str) -> None:
    assert cells(html_table("", ["value"], [[value]])) == [shown]


def test_many_rows_are_cut() -> None:
    page = html_table("", ["value"], [[i] for i in range(25)])
    assert len(cells(page)) == 20
    assert "5 more rows" in page
