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
from evertally.counting.survey import widest
from evertally.noise import ZeroNoise
from evertally.partition import Split
from evertally.partition.budget import noise_of
from evertally.privacy import ZCDP, Change, PureDP
from evertally.theory.frontier import optimal_factor

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


@pytest.mark.parametrize("name", ["tree", "honaker", "sqrt", "bank"])
def test_the_table_of_processes(name: str) -> None:
    """docs/architecture.md: worst standard deviation at T = 4096, rho = 1/2."""
    text = (DOCS / "architecture.md").read_text()
    (written,) = re.findall(rf"^\| `{name}` \|[^|]*\|[^|]*\| ([\d.]+) \|", text, flags=re.M)
    setting = Setting(Change(1, 1, 1), 4096, 1, 2**30)
    worst = build(Choice(name, ZCDP(0.5)), setting, ZeroNoise().source()).worst().stddev
    digits = len(written.split(".")[1])
    assert round(worst, digits) == float(written)


def test_the_table_of_processes_of_other_promises() -> None:
    text = (DOCS / "architecture.md").read_text()
    for said, name, charge, horizon in (
        ("4.30 at tick 4096", "bank-open", ZCDP(0.5), None),
        ("15.7 at eps = 1", "pure-blocks", PureDP(1), 4096),
        ("(tree: 28.3)", "tree", PureDP(1), 4096),
        ("22.5 at eps = 1 up to tick 4096", "epoch-blocks", PureDP(1), None),
        ("(epoch tree: 64.6)", "epoch-tree", PureDP(1), None),
    ):
        assert said in text
        setting = Setting(Change(1, 1, 1), horizon, 1, 2**30)
        worst = widest(build(Choice(name, charge), setting, ZeroNoise().source()), 4096)
        assert worst is not None
        written = re.findall(r"\d+\.\d+", said)[0]
        assert f"{worst.stddev:.{len(written.split('.')[1])}f}" == written, name
    assert "at least 3.39 is needed at T = 4096" in text
    assert 3.39 < optimal_factor(4096)[0] < 3.40
