"""How far one protected unit moves a distinct count: the table of users-and-domains 2.1, 2.2 and 2.6."""

from __future__ import annotations

from dataclasses import dataclass

from evertally.errors import ConfigurationError
from evertally.privacy import Change, Neighbours

ONCE = Change(1, 1, 1)
# +1 at one tick and -1 at another: what they add up to is at most 2 where no entry of the Gram matrix is negative
# (S3 of factorization-counting 1.1), 4 where nothing is known of it.
SWAPPED, ANY_SWAPPED = Change(2, 2, 1), Change(2, 4, 1)


@dataclass(frozen=True)
class Moved:
    """`change`, for processes of which a Gram matrix without negative entries is proved, and `loose`, for all others;
    None where that is the same."""

    change: Change
    loose: Change | None = None


def moved_by(neighbours: str | Neighbours, unit: str, *, categories: int = 0, full: bool = False) -> Moved:
    """What one step of the relation moves. `categories`: how many count of each user, 0 where there are none; `full`:
    where a user who leaves makes room for another, because the number of users or of bits is limited.

    >>> moved_by("add_remove", "user").change, moved_by("replace", "user", categories=3).change
    (Change(l1=1, l2_squared=1, linf=1), Change(l1=6, l2_squared=6, linf=1))
    >>> moved_by("add_remove", "event")
    Moved(change=Change(l1=2, l2_squared=2, linf=1), loose=Change(l1=2, l2_squared=4, linf=1))
    """
    relation = Neighbours.parse(neighbours)
    if relation is Neighbours.INDEPENDENT:
        raise ConfigurationError('users are there or not, or replaced: neighbours are "add_remove" or "replace"')
    if unit != "user":
        if categories or full:
            # One event less may change which later ones count, without bound (users-and-domains 1.1).
            what = "categories" if categories else "max_users and bits"
            raise ConfigurationError(
                f'{what} are proved for unit="user" alone, which is also the cheaper one: leave out the unit'
            )
        if relation is Neighbours.REPLACE:
            raise ConfigurationError(
                f'unit="{unit}" is proved for "add_remove" neighbours only; "replace" goes with unit="user"'
            )
        return Moved(SWAPPED, ANY_SWAPPED)
    if full:
        if relation is Neighbours.REPLACE:
            raise ConfigurationError(
                'max_users and bits are proved for "add_remove" neighbours only; leave them out, or the relation'
            )
        return Moved(SWAPPED, ANY_SWAPPED)
    m = categories or 1
    if relation is Neighbours.ADD_REMOVE:
        return Moved(Change(m, m, 1))  # each column moves once: every factor pays the same (U1)
    return Moved(Change(2 * m, 2 * m, 1), Change(2 * m, 4 * m, 1))
