"""Planted bugs of functions of graphs are found, and the product passes the same probes."""

from __future__ import annotations

import pytest
from nonlinear_mutants import NONLINEAR_MUTANTS, Mutant, Probe

PROBES = {mutant.probe.__name__: mutant.probe for mutant in NONLINEAR_MUTANTS}


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES.keys())
def test_the_product_passes(probe: Probe) -> None:
    assert probe() == ""


@pytest.mark.parametrize("mutant", NONLINEAR_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_found(mutant: Mutant) -> None:
    assert mutant.docstring
    with mutant.patch():
        assert mutant.probe() != ""
