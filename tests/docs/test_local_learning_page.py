"""The page about learning without a curator: its code runs, its table is the product's."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.local import BETA, by_formula

import evertally as et
from evertally.local import Protocol, Result, losses
from printed import ROOT, run_as_printed

PAGE = (ROOT / "docs" / "local-learning.md").read_text(encoding="utf-8")


def test_it_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_as_printed("docs/local-learning.md")
    assert "median" in capsys.readouterr().out
    assert names["server"].messages == 2000
    assert names["result"].private
    assert {len(names[name]) for name in ("message", "upper", "near", "own")} == {names["protocol"].message_bytes}


def test_the_table_is_what_the_product_states() -> None:
    """What was measured is `python -m benchmarks.local`'s; what is public is computed again."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if re.match(r"\| (ApproxDP|ZCDP)\(", line)]
    assert len(rows) == 6
    for promise, clients, cells, size, stddev, formula, slopes, noise, median, isotonic, loss, bound in rows:
        guarantee = eval(promise, {"ApproxDP": et.ApproxDP, "ZCDP": et.ZCDP})
        n = int(clients.replace(",", ""))
        protocol = Protocol(guarantee=guarantee, clients=n, low=0, high=1)
        result = Result.of(protocol, np.zeros(protocol.cells), n, BETA, private=False)
        assert (protocol.cells, protocol.message_bytes) == (int(cells), int(size.replace(",", "")))
        assert float(stddev) == pytest.approx(result.stddev[-1], abs=1e-4)
        assert float(formula) == pytest.approx(by_formula(protocol, n), abs=1e-4)
        assert float(noise) == pytest.approx(result.bound.noise, abs=1e-3)
        assert float(bound) == pytest.approx(result.bound.total, abs=1e-3)
        assert float(slopes) < float(noise)
        assert float(loss) < float(bound)
        assert 0 <= min(float(median), float(isotonic)) <= max(float(median), float(isotonic)) < 1


def test_every_loss_is_in_the_table() -> None:
    for name in ("absolute", "quantile", "insensitive", "hinge", "Loss"):
        assert f"| `{name}(" in PAGE
        assert hasattr(losses, name)


def test_delta_is_refused_where_the_page_says() -> None:
    assert "1/(10 clients)" in PAGE
    Protocol(guarantee=et.ApproxDP(1, Fraction(1, 10_000)), clients=1000, low=0, high=1)
    with pytest.raises(et.ConfigurationError):
        Protocol(guarantee=et.ApproxDP(1, Fraction(1, 9_999)), clients=1000, low=0, high=1)
