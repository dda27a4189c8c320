"""The door of applications: the records of a tick, each bounded by a fixed function of itself.

What an application makes of a record is `read`: a tuple of texts and whole numbers, or None for a record that cannot
be used. Such a record is dropped without a word (factorization-counting 6.0).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evertally.applications.tables import as_bytes
from evertally.contract.doors import RecordsOfTicks
from evertally.encode.labels import as_list, require_column
from evertally.secret import Secret

Record = tuple[Any, ...]  # texts, whole numbers, None


@dataclass(frozen=True, repr=False)
class Records(Secret):
    """The records of one tick that can be used, in their order of arrival. Secret."""

    read: tuple[Record, ...]

    def __len__(self) -> int:
        return len(self.read)

    def digest(self) -> bytes:
        """A hash that says whether two ticks had the same input. Order counts: a letter follows another."""
        return hashlib.sha256(as_bytes(self.read)).digest()


class RecordDoor(RecordsOfTicks):
    """Records one by one: `read` says what is made of each, None drops it.

    `sort`: for statistics that do not look at the order of a tick's records; then the digest does not either.
    """

    def __init__(self, read: Callable[[Any], Record | None], width: int, *, sort: bool = False) -> None:
        super().__init__(self.records, width)
        self.read, self.sort = read, sort

    def records(self, events: Any) -> Records:
        """Those of one tick."""
        require_column(events, "events")
        read = [record for record in map(self.read, as_list(events)) if record is not None]
        return Records(tuple(sorted(read) if self.sort else read))


def with_owners(events: Any, users: Any) -> tuple[list[Any], list[Any]]:
    """Records (user, event), and the users: one column says whose a record is, for the cap and for sequences.

    >>> with_owners(["a", "b"], ["ann", "bob"])
    ([('ann', 'a'), ('bob', 'b')], ['ann', 'bob'])
    """
    require_column(events, "events")
    require_column(users, "users")
    records, owners = as_list(events), as_list(users)
    if len(owners) != len(records):
        raise TypeError("users and events differ in length; give exactly one user for each event")
    return list(zip(owners, records, strict=True)), owners
