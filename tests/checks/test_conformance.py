"""Every mechanism passes every check, and the checks are able to fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evertally.checks import CHECKS, MECHANISMS, Subject, checks
from evertally.checks.column_mechanisms import COLUMN_MECHANISMS
from evertally.histogram.approaches import NAMES
from evertally.histogram.column_query import ColumnQuery
from evertally.histogram.veils import RecomputeVeil
from evertally.noise import ZeroNoise, simulation
from evertally.partition.engine import PartitionedRelease
from evertally.partition.veil import PartitionVeil


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("subject", MECHANISMS, ids=lambda subject: subject.name)
def test_conformance(subject, check):
    check(subject)


def test_the_list_is_complete() -> None:
    names = [subject.name for subject in MECHANISMS]
    assert len(set(names)) == len(names)
    made = [subject.make(simulation(0)) for subject in COLUMN_MECHANISMS]
    assert {type(mechanism) for mechanism in made} == set(ColumnQuery.__subclasses__())
    assert {mechanism.mechanism for mechanism in made} == set(NAMES) - {"honaker", "epoch-hybrid"}
    assert all(subject.runs >= 40 for subject in MECHANISMS), "with fewer runs false alarms are above 1e-6"


# Left out: those whose error is of the size of the answer.
STEADY = [s for s in COLUMN_MECHANISMS if s.noise != "none" and not s.name.startswith("TopKSelect(3): doubling")]


@pytest.mark.parametrize("subject", STEADY, ids=lambda subject: subject.name)
def test_the_streams_outgrow_what_is_allowed(subject: Subject) -> None:
    """A mechanism that repeats its first answer for ever fails the check without noise and the check of the bound."""
    mechanism = subject.make(ZeroNoise())
    inputs = subject.feed(subject.length(mechanism))
    first = mechanism.step(inputs[0]).value
    mechanism.run(inputs[1:])
    gap = np.abs(subject.error(first, subject.truth(inputs)[-1])).max()
    assert gap > subject.slack(mechanism)
    assert gap > mechanism.error_bound(beta=0.1, t=len(inputs))
    if subject.noise == "transcript":
        assert mechanism._veil.partition.closes >= 4


# -- planted bugs ------------------------------------------------------------------------------------------------------


def subject_named(start: str) -> Subject:
    return next(subject for subject in COLUMN_MECHANISMS if subject.name.startswith(start))


PARTITION = subject_named("MaxSum: rebased, PureDP")
LADDERS = subject_named("MaxSum: noisy-ladders, PureDP")
LEADER = subject_named("SumSelect: rebased")
RECOMPUTED = subject_named("SumSelect: recompute, ZCDP")


def leaks_the_open_interval(self: PartitionVeil, rows: Any) -> Any:
    values, lasts = ADVANCE(self, rows)
    return values + np.eye(1, values.shape[1], dtype=np.int64) * self.partition._c[0], lasts  # type: ignore[attr-defined]


def noise_of_the_test_by_data(self: PartitionedRelease, first: int, count: int) -> Any:
    return self._source.draws("mu", self._mu_law, [int(self._c.sum()) + t for t in range(first, first + count)])[:, 0]


def noise_of_the_test_once(self: PartitionedRelease, first: int, count: int) -> Any:
    return self._source.draws("mu", self._mu_law, [1] * count)[:, 0]


def no_noise_in_the_test(self: PartitionedRelease, first: int, count: int) -> Any:
    return np.zeros(count, dtype=np.int64)


def one_threshold_for_all(self: PartitionedRelease) -> int:
    return int(self._source.draws("tau", self._tau_law, [1])[0, 0])


def extra_draws_on_busy_days(self: PartitionedRelease, rows: Any, first: int) -> Any:
    if rows.sum() > 250:
        self._source.draws("busy", self._tau_law, [first])
    return PLAY(self, rows, first)


def two_laws_in_one_lane(self: PartitionedRelease, interval: int) -> None:
    law = self._rule.update_law if interval % 2 else self._tau_law
    self._source.draws("update", law, [interval])


def forgets_the_open_interval(self: PartitionedRelease) -> list[bytes]:
    parts = STATE(self)
    return [*parts[:3], bytes(len(parts[3])), *parts[4:]]


def closes_late(self: PartitionedRelease, c: Any) -> int:
    return SLACK(self, c) + 150


ADVANCE, PLAY, STATE, SLACK = (
    PartitionVeil.advance,
    PartitionedRelease.play,
    PartitionedRelease.state,
    PartitionedRelease._slack,
)
BUGS = [
    (PARTITION, PartitionVeil, "advance", leaks_the_open_interval, checks.check_noise_sees_no_data),
    (PARTITION, PartitionedRelease, "_draw_mu", noise_of_the_test_by_data, checks.check_noise_sees_no_data),
    (PARTITION, PartitionedRelease, "_draw_mu", noise_of_the_test_once, checks.check_noise_sees_no_data),
    (PARTITION, PartitionedRelease, "_draw_mu", no_noise_in_the_test, checks.check_noise_sees_no_data),
    (PARTITION, PartitionedRelease, "_draw_tau", one_threshold_for_all, checks.check_noise_sees_no_data),
    (PARTITION, PartitionedRelease, "play", extra_draws_on_busy_days, checks.check_noise_sees_no_data),
    (PARTITION, PartitionedRelease, "state", forgets_the_open_interval, checks.check_snapshot_at_every_tick),
    (PARTITION, PartitionedRelease, "_slack", closes_late, checks.check_without_noise_it_is_exact),
    (LEADER, PartitionedRelease, "_slack", closes_late, checks.check_without_noise_it_is_exact),
    (LEADER, LEADER.make(ZeroNoise()).__class__, "_place", lambda self, values: 0, checks.check_error_formula),
    (LEADER, LEADER.make(ZeroNoise()).__class__, "_show", lambda self, values: "zebra", checks.check_release_form),
    (RECOMPUTED, RecomputeVeil, "error_bound", lambda self, beta, tick: 1.0, checks.check_error_formula),
]


@pytest.mark.parametrize(("subject", "owner", "name", "bug", "check"), BUGS)
def test_planted_bugs_are_found(monkeypatch, subject, owner, name, bug, check) -> None:
    check(subject)
    monkeypatch.setattr(owner, name, bug)
    with pytest.raises((AssertionError, KeyError, ValueError)):
        check(subject)


def test_one_lane_with_two_laws_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionedRelease, "_extra_release", two_laws_in_one_lane)
    with pytest.raises(AssertionError, match="two laws"):
        checks.check_noise_sees_no_data(LADDERS)


def test_noise_where_none_is_claimed_is_found() -> None:
    for check in (checks.check_keys, checks.check_noise_sees_no_data):
        with pytest.raises(AssertionError):
            check(replace(RECOMPUTED, noise="none"))
        with pytest.raises(AssertionError):
            check(replace(subject_named("MaxSum: trivial"), noise="fixed"))
