"""Bugs in quantiles of values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from audit.bugs.planting import Bug, plant, replaced
from evertally.privacy import Change
from evertally.values import periods, quantiles


def _charged(change: Callable[[Any], dict[str, Change]]) -> Bug:
    """Domains that say something else about what one value moves."""
    original = quantiles.domain_of

    def domain_of(guarantee: Any, cells: int, flat: bool = False) -> Any:
        domain = copy.copy(original(guarantee, cells, flat))
        vars(domain).update(change(domain))
        return domain

    return replaced(quantiles, domain_of=domain_of)


@plant("one value, in any cell")
def charged_as_one_cell() -> Bug:
    """quantile encoder charged as one cell (users-and-domains 10, bug 10: a value in the lowest cell moves all)"""
    return _charged(lambda domain: {"added": Change(domain.added.linf, domain.added.linf**2, domain.added.linf)})


@plant("one value in place of another")
def replaced_as_removed() -> Bug:
    """a replaced value charged as one that is there or not (users-and-domains 10, bug 10: the maximum over pairs)"""
    return _charged(lambda domain: {"replaced": domain.added})


@plant("two blocks of quantiles side by side")
def blocks_share_noise() -> Bug:
    """all blocks of a tumbling window draw one noise (users-and-domains 4: a fresh instance per public period)"""

    def made(self: periods.PeriodSource, source: Any, number: int) -> None:
        self._source, self._lane = source, "period/"

    return replaced(periods.PeriodSource, __init__=made)
