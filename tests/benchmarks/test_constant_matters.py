"""The reproduction of factorization-counting 14.4, on short streams: measured errors are those of the formulas, every
target is what the specification prints, and every process of the list is in every section.

Seeds are fixed. Over the choice of seeds the bars below fail with probability below 1e-6 each.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from evertally.bounds.square_root import S

ROOT = Path(__file__).parents[2]
SPEC = (ROOT / "docs" / "theory" / "factorization-counting.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def main():
    sys.path.insert(0, str(ROOT))
    try:
        import benchmarks.constant_matters.__main__ as module
    finally:
        sys.path.remove(str(ROOT))
    return module


@pytest.fixture(scope="module")
def results(main):
    return main.measure(main.QUICK)


def test_every_tick_has_the_error_of_the_formula(results):
    for pooled in results.pools:
        off = (pooled.std / pooled.expected) ** 2 - 1
        # chi-square of 220 runs: at most 6.5 standard deviations of its normal tail at any of 2^10 ticks
        assert np.abs(off).max() < 6.5 * math.sqrt(2 / pooled.runs), pooled.process.name
        rms = math.sqrt(np.mean(pooled.rms**2))
        assert rms == pytest.approx(math.sqrt(np.mean(pooled.expected**2)), rel=0.07)


def test_signal_over_noise_goes_by_density_and_the_square_root_wins(results):
    for runs in results.played:
        expected = runs.density * np.mean(np.arange(1, runs.horizon + 1) / runs.process.expected(runs.horizon))
        value = next(iter(runs.snr().values()))
        assert abs(value - expected / runs.multiplier) <= 7 * runs.snr_error() + 0.05 * value
    root, tree = (
        [next(iter(runs.snr().values())) for runs in results.played if runs.process.mechanism == name and runs.density]
        for name in ("sqrt", "tree")
    )
    assert all(a > 1.5 * b for a, b in zip(root, tree, strict=True))


def test_formulas_give_the_targets_of_the_specification(main):
    published, T = main.published, main.published.T
    for (epsilon, name), target in published.SPEC_MULTIPLIERS.items():
        assert published.multipliers(epsilon)[name] == pytest.approx(target, rel=1e-6)
    for (epsilon, name), target in published.SPEC_LAST_STD.items():
        assert published.multipliers(epsilon)[name] * S(T) == pytest.approx(target, abs=6e-4)
    for epsilon, targets in published.SPEC_BOUNDS.items():
        assert list(published.bounds(epsilon, T).values()) == pytest.approx(targets, abs=0.006)
    expected = {process.mechanism: process.expected(T) for process in main.PROCESSES}
    for name, targets in published.SPEC_STD.items():
        for t, target in targets.items():
            assert expected[name][t - 1] == pytest.approx(target, abs=6e-4)
    for t, target in published.SPEC_RATIOS.items():
        assert expected["tree"][t - 1] / expected["sqrt"][t - 1] == pytest.approx(target, abs=0.006)
    ticks, units = np.arange(1, T + 1), published.multipliers(0.5)
    for (name, noise), target in published.SPEC_SNR.items():
        assert np.mean(2**-4 * ticks / expected[name]) / units[noise] == pytest.approx(target, rel=3e-3)
    # optimal-counting 4: certified, and the same at nearly all ticks
    assert expected["bank"].max() == pytest.approx(4.272341, rel=1e-4)
    for name in ("sqrt", "tree"):
        assert expected[name].max() == pytest.approx(published.SPEC_RUNS[name]["worst"], abs=6e-4)
        assert math.sqrt(np.mean(expected[name] ** 2)) == pytest.approx(published.SPEC_RUNS[name]["rms"], abs=6e-4)


def test_targets_and_published_numbers_are_in_the_text(main):
    published = main.published
    numbers = [*published.SPEC_RUNS["sqrt"].values(), *published.SPEC_RUNS["tree"].values()]
    numbers += [*published.SPEC_BAND.values(), *published.PAPER_TOP_SNR.values(), *published.PAPER_CROSSING.values()]
    numbers += [value for process in published.PAPER_SNR.values() for value in process.values()]
    for number in numbers:
        assert f"{number:g}".lstrip("0") in SPEC, number


def test_each_process_has_every_row_and_everything_is_drawn(main, results, tmp_path):
    sections = results.sections()
    assert len(sections) == 10
    for section in sections:
        processes = {row.process for row in section.rows}
        assert processes == {"formula"} or {"square root", "binary tree"} <= processes, section.title
        assert all(math.isfinite(row.here) for row in section.rows)
        assert section.table().rows
    main.plots.errors(results.pools, tmp_path / "error.png")
    main.plots.streams(results.played[-4:], tmp_path / "streams.png")
    main.plots.top(results.tops, tmp_path / "top.png")
    assert len(list(tmp_path.iterdir())) == 3


def test_a_process_that_is_only_named_uses_the_products_own_statement(main):
    named = main.Process("honaker", "honaker")
    assert named.expected(64) == pytest.approx(main.FURTHER["honaker"].expected(64), rel=1e-5)
