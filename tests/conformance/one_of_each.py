"""One subject for each class of statistics, for checks of what all engines of a class share: their door."""

from __future__ import annotations

import re
from collections.abc import Callable

from conformance.mechanisms import MECHANISMS
from evertally.checks.subject import Subject

_SLOW = re.compile("rebased|epoch|sparse|sqrt")  # long in the making


def one_of_each(wanted: Callable[[Subject], bool] = lambda subject: True) -> list[Subject]:
    """By class and by how events are handed over, those first that are quickly made."""
    found: dict[tuple[str, bool, bool], Subject] = {}
    for subject in sorted(MECHANISMS, key=lambda subject: bool(_SLOW.search(subject.name))):
        what = re.split("[(:,]", subject.name)[0], subject.users, subject.owned
        if what not in found and wanted(subject):
            found[what] = subject
    return list(found.values())
