"""The page about users: its code runs, its spec is one, and its numbers are the product's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from page_tables import rows

import evertally as et
from evertally.runtime import load_spec, plan
from printed import ROOT, run_as_printed

PAGE = "docs/users.md"


def test_it_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_as_printed(PAGE)
    printed = capsys.readouterr().out
    assert names["came"] == ["bob", "cid"]
    assert printed.splitlines()[:2] == ["banded 57.8", "10.2"]
    assert set(names["wards"].step_events([], users=[]).value) == {"north", "south", "elsewhere"}
    assert "a secret" not in printed
    assert "AT, 7" in printed
    assert (names["days"].tick, names["weeks"].tick, names["seats"].tick) == (2, 14, 2)
    assert {cohort: len(row) for cohort, row in names["releases"][-1].value.items()} == {1: 2, 2: 1}
    assert set(names["orders"].step_events([], users=[]).value) == {"order", "call"}


def _worst(made: Any) -> float | None:
    rank = getattr(made, "rank_stddev", None)
    return float(rank(365)) if rank else made.worst_stddev()


def test_the_first_table_is_that_of_the_classes() -> None:
    found = rows(PAGE, "## Which statistic for which question")
    assert {cells[1].strip("`").partition("(")[0] for cells in found} >= {
        *("DistinctUsers", "UnknownDistinctUsers", "ActiveUsers", "PeriodUsers", "Retention", "JoinedEvents"),
        *("PresentItems", "RunningSum", "RunningVariance", "AdaptiveSum", "ValueQuantile", "ValueHistogram"),
        *("CountSketch", "HeavyPrefixes", "Dashboard", "Counter"),
    }
    checked = 0
    for number, (_, call, _, squared, printed, _, _) in enumerate(found):
        name, _, options = call.strip("`").partition("(")
        kind = getattr(et, name)
        guarantee = et.ApproxDP(1, 1e-6) if name.startswith("Unknown") else et.ZCDP(0.5)
        common: dict[str, Any] = {"guarantee": guarantee, "horizon": 365, "key": et.simulation(number)}
        if name != "PresentItems":
            common["unit"] = "user"
        made = eval(f"make({options}", {"et": et, "make": lambda *given, **more: kind(*given, **more, **common)})  # noqa: B023
        formula = re.fullmatch(r"1|([mwV])(²?)(?: \(.*\))?|(rows x p)", squared)
        if formula:
            letters = {
                "m": ("max_categories", "max_pairs"),
                "w": ("max_events_per_user",),
                "V": ("max_total_per_user",),
            }
            value = 1
            if formula[1]:
                value = next(getattr(made, option) for option in letters[formula[1]] if hasattr(made, option))
            value = made.rows * made.max_labels_per_user if formula[3] else value ** (2 if formula[2] else 1)
            assert made.sensitivity.l2_squared == value, call
            checked += 1
        if figure := re.match(r"[\d.]+", printed):
            assert _worst(made) == pytest.approx(float(figure[0]), rel=1e-3, abs=0.006), call
        elif printed != "needs a delta":
            assert _worst(made) is None, call
    assert checked >= 7


def test_its_changes_and_deviations_are_those_of_the_statistic() -> None:
    found = rows(PAGE, "what one protected unit can change")
    assert len(found) == 8
    for call, change, deviation in found:
        options = eval(call.strip("`").replace("DistinctUsers", "dict"))
        made = et.DistinctUsers(guarantee=et.ZCDP(0.5), horizon=4096, key=et.simulation(1), **options)
        moved = made.sensitivity
        assert re.findall(r"\d+", change) == [str(n) for n in (moved.l1, moved.l2_squared, moved.linf)]
        assert made.worst_stddev() == pytest.approx(float(deviation), abs=0.006)
    capped = et.Counter(unit="user", max_events_per_user=10, guarantee=et.ZCDP(0.5), horizon=4096, key=et.simulation(1))
    assert capped.worst_stddev() == pytest.approx(34.03, abs=0.006)


def test_the_spec_is_one(tmp_path: Path) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / PAGE).read_text(), flags=re.S)
    path = tmp_path / "shop.toml"
    path.write_text(next(block for block in blocks if 'name = "shop"' in block))
    planned = {row.name: row.mechanism for row in plan(load_spec(path)).queries}
    assert planned == {
        "customers": "bank",
        "active": "path",
        "today": "centred",
        "returning": "centred",
        "after-the-letter": "bank",
        "orders": "banded",
    }
