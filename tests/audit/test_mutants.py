"""Planted bugs are caught, the product passes the very same audits, and planting leaves no trace."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evertally
from audit.bugs import MUTANTS, Mutant
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
    before = product_names()
    for mutant in MUTANTS:
        with mutant.patch():
            assert product_names() != before or "restore" in mutant.name, f"{mutant.name} patches nothing"
    after = product_names()
    assert not {name for name in before | after if before.get(name) != after.get(name)}


def product_names() -> dict[tuple[str, ...], int]:
    """Every name of every product module and class, and which object it is."""
    found: dict[tuple[str, ...], int] = {}
    for module_name, module in list(sys.modules.items()):
        if not module_name.startswith("evertally.") or module_name.startswith("evertally.audit"):
            continue
        for name, value in vars(module).items():
            found[module_name, name] = id(value)
            if isinstance(value, type) and value.__module__ == module_name:
                found |= {(module_name, name, part): id(v) for part, v in members(value).items()}
    return found


def members(kind: type) -> dict[str, Any]:
    return {name: value for name, value in vars(kind).items() if not name.startswith("_abc")}


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
