"""Planted mistakes are noticed, and only they."""

from __future__ import annotations

import pytest
from linear_mutants import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_planted_mistakes_are_noticed(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not mutant.probe()
    mutant.patch(monkeypatch)
    assert mutant.probe()
