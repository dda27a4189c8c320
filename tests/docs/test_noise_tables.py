"""Tables of noise in the documents are those of the objects."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from audit.bugs.partitions import mu_halved
from benchmarks import noise_table
from evertally.counting.choose import Choice, build
from evertally.counting.processes import Setting
from evertally.noise import ZeroNoise
from evertally.partition import Split
from evertally.partition.budget import noise_of
from evertally.privacy import ZCDP, Change, PureDP

DOCS = Path(__file__).parents[2] / "docs"


def test_the_noise_tables_of_column_queries_are_what_is_drawn() -> None:
    text = (DOCS / "column-queries.md").read_text()
    assert text == noise_table.written(text), "run: python -m benchmarks.noise_table docs/column-queries.md"


def test_no_scale_is_left_that_nobody_generated() -> None:
    """Outside the generated part a law is written with letters, never with numbers."""
    text = (DOCS / "column-queries.md").read_text()
    rest = re.sub(r"<!-- noise tables: begin -->.*<!-- noise tables: end -->", "", text, flags=re.S)
    assert not re.findall(r"(?:Lap|N)\([\d.]+k?(?:/eps)?\)", rest)


def test_a_wrong_scale_does_not_pass() -> None:
    text = (DOCS / "column-queries.md").read_text()
    right = noise_table.rows()[0]
    assert f"| {right[0]} | {right[1]} | {right[2]} | {right[3]} |" in text
    with mu_halved():
        wrong = noise_table.rows()[0]
    assert f"| {wrong[0]} | {wrong[1]} | {wrong[2]} | {wrong[3]} |" not in text


def test_the_formulas_beside_them() -> None:
    linf, split = 3, Split.halves()
    for one_way, sides in ((True, 1), (False, 2)):
        noise = noise_of(PureDP(2), split, linf=linf, one_way=one_way)
        assert noise.tau.scale == linf / (2 * split.tau)
        assert noise.mu.scale == sides * linf / (2 * split.mu)
    update = noise_of(PureDP(2), Split.thirds(), queries=7, linf=linf).update
    assert update is not None
    assert getattr(update, "scale") == Fraction(7 * linf) / (2 * Fraction(1, 3))  # noqa: B009 (a Law may have none)


@pytest.mark.parametrize("name", ["tree", "honaker", "sqrt"])
def test_the_table_of_processes(name: str) -> None:
    """docs/architecture.md: worst standard deviation at T = 4096, rho = 1/2."""
    text = (DOCS / "architecture.md").read_text()
    (written,) = re.findall(rf"^\| `{name}` \|[^|]*\|[^|]*\| ([\d.]+) \|", text, flags=re.M)
    setting = Setting(Change(1, 1, 1), 4096, 1, 2**30)
    worst = build(Choice(name, ZCDP(0.5)), setting, ZeroNoise().source()).worst().stddev
    digits = len(written.split(".")[1])
    assert round(worst, digits) == float(written)
