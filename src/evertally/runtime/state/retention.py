"""Which ticks the release log keeps: the last ones in full, of older ones every n-th, of very old ones none.

A function of public numbers: what is kept says nothing about any event. Ticks are kept by their own number (the
multiples of `every`), so that what stays today stays tomorrow.
"""

from __future__ import annotations

from evertally.runtime.spec.types import Retention

Condition = tuple[str, tuple[int, ...]]  # in SQL, with its values


def thinned_through(released: int, retention: Retention, not_after: int) -> int:
    """The last tick that may have to go, but for those that are kept for good; nothing after `not_after` goes."""
    return max(0, min(released - retention.full, not_after))


def dropped_where(released: int, retention: Retention, not_after: int, swept: int = 0) -> list[Condition]:
    """Which ticks of a table are not kept, as far as tick `not_after`.

    `swept` saves time: a tick through which the same retention has been applied already (`thinned_through` of the last
    call). What is kept of older ticks is then not looked at again, however much it becomes.

    >>> dropped_where(100, Retention(full=30, every=20, keep=90), not_after=100, swept=60)
    [('tick > ? AND tick <= ? AND tick % ? != 0', (60, 70, 20)), ('tick <= ?', (10,))]
    """
    conditions: list[Condition] = []
    last = thinned_through(released, retention, not_after)
    if last > swept:
        if retention.every:
            conditions.append(("tick > ? AND tick <= ? AND tick % ? != 0", (swept, last, retention.every)))
        else:
            conditions.append(("tick > ? AND tick <= ?", (swept, last)))
    if retention.keep is not None and min(released - retention.keep, not_after) > 0:
        conditions.append(("tick <= ?", (min(released - retention.keep, not_after),)))
    return conditions
