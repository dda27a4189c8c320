"""How far one event, or one user, can move a sketch (users-and-domains 5.1 and 5.2).

A label touches some columns: `plain` of them always with a plus, `signed` of them with a sign. What an event adds to
one column is merged over its labels and clipped to the largest weight at the door, so that b labels cost b and not b^2,
also where they share a bucket (trap 12).
"""

from __future__ import annotations

from dataclasses import dataclass

from evertally.privacy import Change, Contribution, Neighbours


@dataclass(frozen=True)
class Touched:
    """How many columns a label touches, and how: with a plus, or with a sign."""

    plain: int
    signed: int

    @property
    def columns(self) -> int:
        return self.plain + self.signed


def sketch_change(
    relation: Neighbours, touched: Touched, contribution: Contribution, labels_per_user: int | None, loose: bool
) -> Change:
    """The charge. `labels_per_user`: so many columns of each row move for a user, each once; otherwise a user's events
    may meet in the same columns. `loose`: nothing is proved of the factor, so that two users who share a column may
    add up there whatever their signs (1.2 there needs a Gram matrix that is nowhere negative).

    >>> sketch_change(Neighbours.REPLACE, Touched(2, 10), Contribution(max_per_event=3), None, loose=False)
    Change(l1=72, l2_squared=132, linf=2)
    """
    b, m, w = contribution.max_per_event, contribution.max_weight, contribution.max_events_per_user
    if labels_per_user is not None:
        b, w = labels_per_user, None
    times = w or 1
    l1, height = b * m * touched.columns * times, m * times
    if relation is Neighbours.ADD_REMOVE:
        return Change(l1, b * m * m * touched.columns * times**2, height)
    user = contribution.unit == "user"
    # One event in the place of another is in its tick: entries of one sign cannot add up, whatever the factor.
    plain = 4 if loose and user else 2
    squares = b * m * m * times**2 * (plain * touched.plain + 4 * touched.signed)
    return Change(2 * l1, squares, 2 * height if touched.signed or user else height)
