"""Planted bugs of the interval tree are found, the product passes the same probes, and planting leaves no trace."""

from __future__ import annotations

import pytest
from interval_runs import play, shares_of
from mutants import MUTANTS, Mutant, Probe

from evertally.dynamic import holders, interval_plan, ledgers
from evertally.dynamic.interval_tree import IntervalTree
from evertally.dynamic.node import Node, Workshop
from evertally.dynamic.prefix import FiniteTree

PROBES = {mutant.probe.__name__: mutant.probe for mutant in MUTANTS}


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES.keys())
def test_the_product_passes(probe: Probe) -> None:
    assert probe() == ""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_found(mutant: Mutant) -> None:
    with mutant.patch():
        assert mutant.probe() != ""


def test_planting_leaves_no_trace() -> None:
    def names() -> list[dict[str, object]]:
        places = (holders, ledgers, interval_plan, holders.Holders, IntervalTree, Node, Workshop, FiniteTree)
        return [dict(vars(place)) for place in places]

    before = names()
    for mutant in MUTANTS:
        assert mutant.trap, mutant.name
        with mutant.patch():
            assert names() != before, mutant.name
        assert names() == before, mutant.name


def test_nodes_refuse_what_a_mutant_asks_of_them() -> None:
    """Without retirement the product's own nodes stop it, before a release is made."""
    mutant = next(mutant for mutant in MUTANTS if "never retired" in mutant.name)
    with mutant.patch(), pytest.raises(AssertionError, match="in its window only"):
        play([[]] * 4, named=False, cells=1, shares=shares_of())
