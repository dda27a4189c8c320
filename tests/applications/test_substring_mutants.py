"""Planted bugs of substring counts are found, and the product passes the same probes."""

from __future__ import annotations

import pytest
from substring_mutants import MUTANTS, Mutant, Probe

PROBES = {mutant.probe.__name__: mutant.probe for mutant in MUTANTS}


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES.keys())
def test_the_product_passes(probe: Probe) -> None:
    assert probe() == ""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_found(mutant: Mutant) -> None:
    assert mutant.trap
    with mutant.patch():
        assert mutant.probe() != ""
