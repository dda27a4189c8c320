"""The page about stacks: its code runs, and what it says about multipliers and lists is so."""

from __future__ import annotations

from typing import Any

import pytest

import evertally as et
from printed import run_as_printed


def test_it_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    names = run_as_printed("docs/stacked.md")
    assert names["both"].tick == 1
    assert set(names["release"].value) == {"letters", "orders"}
    assert "ab" in capsys.readouterr().out


def test_two_lists_in_one_cost_less_than_a_stack_of_both() -> None:
    promise: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 8, "key": et.simulation(1)}
    letters: dict[str, Any] = {"alphabet": "abcd", "sequence": "stream"}
    one = et.strings.EpisodeCounts(words=["ab", "cd"], **letters, **promise)
    parts = {word: et.part(et.strings.EpisodeCounts, words=[word], **letters) for word in ("ab", "cd")}
    two = et.Stacked(parts, **promise)
    assert (one.sensitivity.l2_squared, two.sensitivity.l2_squared) == (2, 4)
