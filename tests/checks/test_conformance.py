"""Every mechanism passes every check."""

import pytest

from evertally.checks import CHECKS, MECHANISMS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("subject", MECHANISMS, ids=lambda subject: subject.name)
def test_conformance(subject, check):
    check(subject)
