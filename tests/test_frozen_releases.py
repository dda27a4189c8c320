"""Releases that must never change: see frozen_releases.py."""

from __future__ import annotations

import json

import pytest

from evertally import checks
from frozen_releases import FILE, released

FROZEN = json.loads(FILE.read_text())


def test_every_mechanism_is_frozen() -> None:
    assert set(FROZEN) == {subject.name for subject in checks.MECHANISMS}


@pytest.mark.parametrize("subject", checks.MECHANISMS, ids=lambda subject: subject.name)
def test_releases_are_those_of_the_day_they_were_frozen(subject: checks.Subject) -> None:
    assert released(subject) == FROZEN[subject.name]
