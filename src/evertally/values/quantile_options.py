"""What the options of quantiles mean: which encoder, which shares, what one unit moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evertally.encode.plain import real
from evertally.errors import ConfigurationError
from evertally.privacy import Change, Contribution, Guarantee, Neighbours, Participation, PureDP
from evertally.privacy.participation import taking_part
from evertally.values.quantile_domains import Domain, TreeDomain, square_root_domain, tree_domain


def moved_by(
    neighbours: str | Neighbours, added: Change, another: Change, contribution: Contribution
) -> tuple[Change, Change]:
    """What one unit moves, and the same where nothing is known of the factor of the noise. `added`: one value that is
    there or not, `another`: one in the place of another."""
    relation = Neighbours.parse(neighbours)
    if relation is Neighbours.INDEPENDENT:
        raise ConfigurationError('a value lies in one cell: use "add_remove" or "replace"')
    replaced, w = relation is Neighbours.REPLACE, contribution.max_events_per_user
    if w is None:
        moved = another if replaced else added
        return moved, moved
    moved = added.group(w)
    if not replaced:
        return moved, moved
    # Rows have no negative entry: those of the old and the new user do not add up (users-and-domains 1.2).
    l1, l2_squared, linf = 2 * moved.l1, 2 * moved.l2_squared, 2 * moved.linf
    return Change(l1, l2_squared, linf), Change(l1, 2 * l2_squared, linf)


def apart(neighbours: str | Neighbours, added: Change, contribution: Contribution) -> Participation | None:
    """What users move who count in few ticks, or in ticks that are apart (users-and-domains 1.3 and 4: beta^2 = N_U).
    None where there is no such rule."""
    times = 2 if Neighbours.parse(neighbours) is Neighbours.REPLACE else 1
    return taking_part(contribution, added, times) if contribution.separated else None


def domain_of(guarantee: Guarantee, cells: int, flat: bool = False) -> Domain:
    """Laplace noise pays for l1, Gaussian noise for l2. `flat`: the children of one node of a tree."""
    if not isinstance(guarantee, PureDP):
        return square_root_domain(cells)
    return TreeDomain(cells, cells) if flat else tree_domain(cells)


def best_fanout(bits: int, pure: bool) -> int:
    """Of levels of equal width: the widest up to 256, under Laplace noise the one with the least h^3 b.

    >>> best_fanout(32, pure=False), best_fanout(32, pure=True), best_fanout(7, pure=False)
    (256, 16, 128)
    """
    digits = [digit for digit in range(1, 9) if bits % digit == 0]
    return int(2 ** (min(digits, key=lambda digit: (bits // digit) ** 3 * 2**digit) if pure else digits[-1]))


def read_shares(q: Any) -> list[float]:
    given = list(q) if isinstance(q, Sequence | np.ndarray) and not isinstance(q, str) else [q]
    shares = [real(share) for share in given]
    if not shares or not all(0 < share <= 1 for share in shares) or len(set(shares)) < len(shares):
        raise ConfigurationError("q is a share of the values above 0 and at most 1, or a list of different ones")
    return shares
