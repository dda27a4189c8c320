"""Releases that must never change: see frozen_releases.py."""

from __future__ import annotations

import json

import pytest

from evertally.checks.subject import Subject
from frozen_releases import FILE, released, subjects

FROZEN = json.loads(FILE.read_text())
SUBJECTS = subjects()


def test_every_mechanism_is_frozen() -> None:
    assert set(FROZEN) == {subject.name for subject in SUBJECTS}


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_releases_are_those_of_the_day_they_were_frozen(subject: Subject) -> None:
    assert released(subject) == FROZEN[subject.name]
