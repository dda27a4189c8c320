"""The examples of graphs and strings run on real flights, a few days of them, and what they print is near the truth."""

from __future__ import annotations

import importlib
import re
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import evertally as et
from printed import ROOT

DAYS = 5
Lines = list[list[Any]]


@pytest.fixture(scope="module")
def new_york() -> ModuleType:
    if str(ROOT / "examples") not in sys.path:
        sys.path.append(str(ROOT / "examples"))
    return importlib.import_module("new_york")


@pytest.fixture(scope="module")
def flown(new_york: ModuleType) -> list[list[Any]]:
    return list(new_york.flights(DAYS))


def play(name: str, folder: Path, flown: list[list[Any]], monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str:
    """What an example prints; its flights are read once for all, its noise has a seed."""
    example = importlib.import_module(name)
    monkeypatch.setattr(example, "flights", lambda days: flown[:days])
    monkeypatch.setattr(et.Key, "generate", staticmethod(lambda: et.simulation(7)))
    monkeypatch.setattr(sys, "argv", [name, str(folder), "--days", str(DAYS)])
    example.main()
    (picture,) = folder.glob("*.png")
    assert picture.stat().st_size > 20_000
    assert (ROOT / "docs" / "images" / picture.name).exists()
    assert name in "".join((ROOT / "docs" / page).read_text() for page in ("graphs.md", "strings.md"))
    return str(capsys.readouterr().out)


def table(printed: str, names: str) -> dict[str, list[int]]:
    """The numbers of the lines that begin with one of these names."""
    lines = re.findall(rf"^({names})((?: +-?[\d,]+)+)$", printed, flags=re.M)
    return {name: [int(number.replace(",", "")) for number in numbers.split()] for name, numbers in lines}


def test_flights_are_read_in_their_order(flown: list[list[Any]]) -> None:
    assert [len(day) for day in flown] == [838, 935, 904, 909, 717]  # those that departed
    assert all(one.moment <= other.moment for day in flown for one, other in pairwise(day))


@pytest.mark.usefixtures("new_york")
def test_cuts(tmp_path: Path, flown: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    printed = play("flights_across_regions", tmp_path, flown, monkeypatch, capsys)
    found = table(printed, r"the (?:east|centre|mountains|west)")
    assert len(found) == 4
    for released, exact, stddev in found.values():
        assert exact > 100
        assert abs(released - exact) < 6 * stddev


@pytest.mark.usefixtures("new_york")
def test_triangles(tmp_path: Path, flown: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    printed = play("airports_joined_by_planes", tmp_path, flown, monkeypatch, capsys)
    found = table(printed, "edges|pairs|triangles")
    assert len(found) == 3
    for released, exact, stddev in found.values():
        assert abs(released - exact) < 6 * stddev
    edges, pairs, triangles = (found[name][1] for name in ("edges", "pairs", "triangles"))
    assert 0 < edges < triangles < pairs / 3


@pytest.mark.usefixtures("new_york")
def test_routes(tmp_path: Path, flown: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    example = importlib.import_module("routes_of_planes")
    monkeypatch.setattr(example, "THRESHOLD", 40)  # of five days
    monkeypatch.setattr(example, "MOST", 30_000)
    printed = play("routes_of_planes", tmp_path, flown, monkeypatch, capsys)
    stated = re.search(r"standard deviation: (\d+) flights", printed)
    assert stated
    found = table(printed, r"[A-Z0-9]{3} [A-Z0-9]{3}")
    assert len(found) == example.SHOWN
    for released, exact, _, _ in found.values():
        assert abs(released - exact) < 6 * int(stated[1])  # the largest of thousands of noisy counts
