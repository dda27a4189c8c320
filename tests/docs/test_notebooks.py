"""The notebooks run, cell by cell and without a server; what they say of their data is true; no outputs are kept."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib import pyplot

import evertally as et
from printed import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.fixture(autouse=True)
def drawing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No screen, and noise with a seed: what is said about intervals holds for this one."""
    pyplot.switch_backend("Agg")
    monkeypatch.setattr(et.Key, "generate", staticmethod(lambda: et.simulation(17)))
    yield
    pyplot.close("all")


def run(path: Path) -> tuple[dict[str, Any], list[Any]]:
    """All names after the last cell, and what each cell shows: the value of its last line."""
    names: dict[str, Any] = {}
    shown = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        place = f"{path.name}, cell {number}"
        tree = ast.parse("".join(cell["source"]), place)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, place, "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), place, "eval"), names))
    return names, shown


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_not_kept(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 3
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


def test_all_of_them_are_listed() -> None:
    page = (ROOT / "docs" / "data-frames.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 4
    assert all(f"examples/notebooks/{path.name}" in page for path in NOTEBOOKS)


def notebook(name: str) -> tuple[dict[str, Any], list[Any]]:
    return run(ROOT / "examples" / "notebooks" / f"{name}.ipynb")


def test_orders_per_day(capsys: Any) -> None:
    names, _ = notebook("orders_per_day")
    assert len(names["orders"]) == 69_659
    assert names["inside"] > 0.85
    assert len(names["shown"]) == 78
    assert "of 78 weeks inside" in capsys.readouterr().out


def test_customers() -> None:
    names, shown = notebook("customers")
    last = names["last"]
    assert last.low <= names["true"] == 23_570 <= last.high
    orders, active = names["orders"], shown[-1]
    since = pd.Timestamp("1998-07-01") - pd.Timedelta(weeks=4)
    month = orders[orders.day >= since].customer.nunique()
    assert active.low.iloc[0] - 200 <= month <= active.high.iloc[0] + 200  # the last week of the clock is not whole


def test_windows() -> None:
    names, shown = notebook("windows")
    rates = names["exact"]["stddev of the rate per day"].tolist()
    assert rates == sorted(rates, reverse=True)
    low, high = names["month"].interval(1e-6)
    assert low <= sum(100 + 40 * (day % 7 == 5) for day in range(335, 365)) <= high
    assert "Release" in names["month"]._repr_html_()
    assert shown


def test_which_epsilon() -> None:
    names, shown = notebook("which_epsilon")
    found = shown[1]
    assert found.epsilon < 1
    assert et.Counter(guarantee=found, horizon=365, key=et.simulation(1)).error_bound(beta=0.05) <= 50
    errors = names["sweep"].columns()["worst_stddev"]
    assert errors == sorted(errors, reverse=True)
    assert 8 < errors[0] / errors[2] < 12  # ten times the epsilon, a tenth of the error
    assert [line.get_label() for line in names["axes"].lines][-1] == "all totals at once, 95%"
    means = list(names["means"].values())
    assert means == sorted(means, reverse=True)
