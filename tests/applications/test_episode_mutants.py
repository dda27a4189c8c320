"""Every planted bug of episode counts is found, and what is not planted is not."""

from __future__ import annotations

import pytest
from episode_mutants import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_bugs_are_found(mutant: Mutant) -> None:
    assert mutant.probe() == ""
    with mutant.patch():
        assert mutant.probe()
    assert mutant.probe() == ""
