"""Every planted bug of banks and blocks is found, and nothing is found where none is planted."""

from __future__ import annotations

import pytest
from bank_mutants import BANK_MUTANTS, Mutant


@pytest.mark.parametrize("mutant", BANK_MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bugs_are_found(mutant: Mutant) -> None:
    with mutant.patch():
        assert mutant.probe()


@pytest.mark.parametrize("probe", dict.fromkeys(m.probe for m in BANK_MUTANTS), ids=lambda probe: probe.__name__)
def test_nothing_is_found_where_nothing_is_wrong(probe) -> None:  # type: ignore[no-untyped-def]
    assert probe() == ""


def test_all_of_the_specification_are_planted() -> None:
    planted = dict.fromkeys(mutant.name.split()[0] for mutant in BANK_MUTANTS)
    assert list(planted) == [f"B{i}" for i in range(1, 15)]
