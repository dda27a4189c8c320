"""Banks under the auditor: the most powerful test from their own noise, read by impulses, shows nearly all that is
claimed and no more; with several columns, after a restart, for the shortest horizons."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import evertally as et
from concluded import conclusion
from evertally.audit import suite
from evertally.audit.gaussian import impulse_response
from evertally.audit.suite import Sizes, plan
from evertally.audit.whitebox import closed_form_report
from evertally.cli.app import app
from evertally.counting import bank as bank_module
from evertally.counting.bank_path import BankPath
from spec_text import spec_text

KEY = et.simulation(0)


def counter(T: int | None, rho: float = 0.5, **options: Any) -> et.Counter:
    mechanism = "bank-open" if T is None else "bank"
    return et.Counter(guarantee=et.ZCDP(rho), horizon=T, mechanism=mechanism, key=KEY, **options)


def pair_of_columns(T: int | None, rho: float) -> et.VectorCounter:
    return et.VectorCounter(
        2,
        guarantee=et.ZCDP(rho),
        horizon=T,
        mechanism="bank-open" if T is None else "bank",
        max_per_event=1,
        neighbours="replace",
        key=KEY,
    )


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize(
    ("T", "rho"),
    [(1, 0.5), (1, 1e-9), (2, 0.5), (3, 0.5), (3, 1e-9), (365, 0.5), (365, 0.005), (None, 0.5), (None, 0.005)],
)
def test_the_claim_is_shown_and_no_more(T: int | None, rho: float, columns: int, restored: bool) -> None:
    ticks = T or 127
    model = counter(T, rho) if columns == 1 else pair_of_columns(T, rho)
    report = closed_form_report(model, ticks, ticks // 2 if restored else 0)
    assert report.passed
    assert report.fraction >= 0.95


def test_nothing_of_the_certificate_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same separation from a program whose certificate says something else, at the scale that it then takes."""
    honest = closed_form_report(counter(40, 0.005), 40)
    certified = bank_module._sensitivity
    monkeypatch.setattr(bank_module, "_sensitivity", lambda bank: certified(bank) / 4)
    wrong = closed_form_report(counter(40, 0.005), 40)
    assert not wrong.passed
    assert wrong.audited == pytest.approx(2 * honest.audited, rel=0.02)


def forgets_states(self: BankPath, tick: int, memory: bytes) -> None:
    original_recall(self, tick, memory)
    for block in self._blocks:
        block.e[:] = 0


original_recall = BankPath.recall


def test_states_that_a_snapshot_forgets_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "restored" in {step.name for step in plan(lambda key: counter(40))}
    monkeypatch.setattr(BankPath, "recall", forgets_states)
    assert closed_form_report(counter(40, 0.005), 40).passed
    assert not closed_form_report(counter(40, 0.005), 40, 20).passed


def test_the_response_of_a_restored_process_is_the_same() -> None:
    """Through memory and back, at every tick."""
    whole, _ = impulse_response(counter(12, 0.005), 12)
    for tick in range(1, 12):
        again, _ = impulse_response(counter(12, 0.005), 12, tick)
        assert np.array_equal(whole, again)
    sigma = counter(12, 0.005).noise.sigma
    assert whole[0, 0] == pytest.approx(sigma * counter(12).noise.bank.r[0], rel=1e-6)
    assert math.isclose(np.abs(np.triu(whole, 1)).max(), 0)


# -- from the command line ---------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(suite.SIZES, "short", Sizes(8, 20_000, 2_000, 10_000, 100, 100))


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("guarantee", "queries"),
    [
        ({"rho": 0.5}, [{"kind": "counter", "mechanism": "bank"}]),
        (
            {"epsilon": 1.0},
            [
                {"kind": "counter", "mechanism": "pure-blocks"},
                {"kind": "histogram", "column": "ward", "categories": ["a", "b"], "mechanism": "pure-blocks"},
            ],
        ),
    ],
)
def test_a_spec(guarantee: dict[str, float], queries: list[dict[str, Any]], tmp_path: Path) -> None:
    spec = tmp_path / "visits.toml"
    named = [{"name": f"q{i}"} | query for i, query in enumerate(queries)]
    spec.write_text(spec_text(*named, stream={"name": "visits", "horizon": 24}, guarantee=guarantee))
    result = call(spec)
    told = "1 holds (tight)" if len(queries) == 1 else f"{len(queries)} hold (tight)"
    assert conclusion(result) == f"{told}, 0 no power here, 0 broken"
    assert "closed form" in result.output
    assert f"mechanism={queries[0]['mechanism']}" in result.output.replace("\n", "")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "arguments",
    [
        ["counter", "--rho", 0.5, "--horizon", 20, "--mechanism", "bank"],
        ["counter", "--rho", 0.5, "--mechanism", "bank-open"],
        ["histogram", "--epsilon", 1, "--horizon", 20, "--categories", 3, "--mechanism", "pure-blocks"],
    ],
)
def test_by_name(arguments: list[object]) -> None:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    assert "closed form" in result.output
