"""Planted bugs are caught, the product passes the very same audits, and planting leaves no trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import evertally
from audit.bugs import MUTANTS, Mutant
from audit.concerned import Run, affordable, concerned, product_names, traced
from audit.matrix import FAMILIES, judge
from audit.probes import PROBES, Probe


@pytest.mark.parametrize("probe", PROBES.values(), ids=lambda probe: f"{probe.family}: {probe.name}")
def test_the_product_passes(probe: Probe) -> None:
    detection = probe()
    assert not detection.caught, detection.evidence


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_caught(mutant: Mutant) -> None:
    with mutant.patch():
        detection = mutant.detect()
    assert detection.caught, f"survived {detection.by}: {detection.evidence}"
    assert detection.evidence


def test_there_are_enough_of_them_and_most_fall_to_their_outputs() -> None:
    assert len(MUTANTS) >= 25
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.trap for mutant in MUTANTS)
    # The law of the releases, games, attacks; conformance checks may look inside, and are not counted.
    outputs = [mutant for mutant in MUTANTS if mutant.detect.family != "conformance"]
    assert 3 * len(outputs) >= 2 * len(MUTANTS)
    assert {mutant.detect.family for mutant in outputs} == set(FAMILIES) - {"conformance"}


def test_planting_leaves_no_trace() -> None:
    for mutant in MUTANTS:
        with mutant.patch():
            pass  # modules are loaded
    before = ids()
    for mutant in MUTANTS:
        with mutant.patch():
            assert ids() != before or "restore" in mutant.name, f"{mutant.name} patches nothing"
    after = ids()
    assert not {name for name in before | after if before.get(name) != after.get(name)}


def ids() -> dict[tuple[str, ...], int]:
    return {name: id(value) for name, value in product_names().items()}


def test_a_bug_concerns_the_probe_that_must_find_it_and_not_those_that_run_other_things() -> None:
    runs = {name: traced(name) for name in ("one item taken out of an event that was cut", "one tick, pure")}
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    assert concerned(by_name["truncation not charged"], runs) == ["one item taken out of an event that was cut"]
    assert concerned(by_name["sampler drops the sign bit"], runs) == list(runs)
    assert concerned(by_name["noise restarted after a restore"], runs) == list(runs), "it is not known what it changes"


def test_a_bug_meets_its_own_probe_and_the_quick_ones_that_are_affordable() -> None:
    runs = {name: Run(frozenset(), frozenset(), cost) for name, cost in (("slow", 5.0), ("quick", 1.0), ("other", 2.0))}
    mutant = next(one for one in MUTANTS if one.name == "noise restarted after a restore")  # concerns all
    own = mutant.detect.name
    assert affordable(mutant, runs, 3) == [own, "quick", "other"]
    assert affordable(mutant, runs, 0) == [own]
    assert affordable(mutant, runs, float("inf")) == [own, "quick", "other", "slow"]


def test_nobody_who_audits_loads_the_planted_bugs() -> None:
    code = "import sys, evertally.audit; print([m for m in sys.modules if 'bugs' in m or 'probes' in m])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
    package = Path(evertally.__file__).parent
    assert not [path for path in package.rglob("*.py") if "audit.bugs" in path.read_text()], "they are in no wheel"


def test_the_matrix_reads_a_row() -> None:
    row = judge("truncation not charged", ["one item taken out of an event that was cut", "one tick, pure"])
    assert [row.cell(family) for family in FAMILIES] == [".", "1", ".", ".", "."]
    assert judge("", ["one tick, pure"]).found == {}
