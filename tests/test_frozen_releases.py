"""Releases that must never change: see frozen_releases.py."""

from __future__ import annotations

import json

import pytest

from evertally.checks.subject import Subject
from frozen_releases import FILE, candidates, is_made, released

FROZEN = json.loads(FILE.read_text())
CANDIDATES = candidates()
SUBJECTS = [subject for subject in CANDIDATES if subject.name in FROZEN]


def test_every_mechanism_is_frozen() -> None:
    assert {subject.name for subject in SUBJECTS} == set(FROZEN)
    assert not [subject.name for subject in CANDIDATES if subject.name not in FROZEN and is_made(subject)]


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_releases_are_those_of_the_day_they_were_frozen(subject: Subject) -> None:
    assert released(subject) == FROZEN[subject.name]
