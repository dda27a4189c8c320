"""The record shop: the example runs on real orders, twelve weeks of them, and what it prints is near the truth."""

from __future__ import annotations

import csv
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from evertally.runtime import load_spec
from printed import ROOT

WEEKS = 12


@pytest.fixture(scope="module")
def shop() -> Any:
    if str(ROOT / "examples") not in sys.path:
        sys.path.append(str(ROOT / "examples"))
    return importlib.import_module("record_shop")


def test_it_runs_and_is_near_the_truth(
    shop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["record_shop", str(tmp_path), "--weeks", str(WEEKS)])
    shop.main()
    printed = capsys.readouterr().out
    numbers = r"([\d,]+) +([\d,]+) +([\d,]+) to ([\d,]+)"
    found = {name: re.search(rf"^{name} +{numbers}", printed, re.M) for name in ("customers", "revenue", "active 4")}
    for name, line in found.items():
        assert line, name
        released, true, lower, upper = (int(number.replace(",", "")) for number in line.groups())
        assert abs(released - true) < 3 * (upper - lower) / 2  # six standard deviations
    assert (tmp_path / "record-shop.png").stat().st_size > 20_000
    assert (ROOT / "docs" / "images" / "record-shop.png").exists()
    with open(tmp_path / "orders.csv", newline="") as file:
        assert next(csv.reader(file)) == ["day", "customer", "dollars"]


def test_the_data_are_those_of_the_page(shop: Any) -> None:
    found = shop.orders(78)
    assert (len(found), len({order.customer for order in found})) == (69_659, 23_570)
    assert "69,659 orders of 23,570 customers" in (ROOT / "docs" / "users.md").read_text(encoding="utf-8")


def test_the_example_counts_what_its_spec_says(shop: Any) -> None:
    queries = {query.name: query.parameters for query in load_spec(shop.SPEC).queries}
    assert queries["revenue"]["max_total_per_user"] == shop.ALLOWANCE
    assert queries["revenue"]["upper"] == shop.MOST
    assert (queries["returning"]["period"], queries["returning"]["ages"]) == (shop.MONTH, shop.AGES)
    assert queries["active"]["windows"] == [4, 12]
    assert queries["order-values"]["q"] == list(shop.SHARES)
