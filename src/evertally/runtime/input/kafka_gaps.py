"""Messages that Kafka has lost before they were counted: its retention was shorter than a downtime, or a topic was made
anew.

They are events that no release will ever have, so nobody but the operator may go on without them. Until then the
partition waits, as a file that was set aside does (quarantine.py); other partitions, other clients and ticks go on.
"""

from __future__ import annotations

from evertally.runtime.input.quarantine import Quarantine

_PREFIX = "gap:"  # before the name of the partition and the number of the message


def after_gap(mark: int, low: int, high: int) -> tuple[int, int | None]:
    """From which message on it goes, and how many are lost (None: nobody knows), if number `mark` should be next and
    Kafka has those from `low` to before `high`.

    >>> after_gap(10, 500, 900)
    (500, 490)
    >>> after_gap(1000, 0, 900)  # numbers begin anew: which of these messages were counted, under any number?
    (900, None)
    >>> after_gap(600, 500, 900)  # they are back
    (600, 0)
    """
    if mark < low:
        return low, low - mark
    return (mark, 0) if mark <= high else (high, None)


class Gaps:
    """The gaps of a topic, each with what is to become of it."""

    def __init__(self, quarantine: Quarantine) -> None:
        self._quarantine = quarantine

    def hold(self, name: str, mark: int, low: int, high: int) -> None:
        """Partition `name` waits before message `mark`."""
        if self._quarantine.wish(_item(name, mark)) is None:
            to, lost = after_gap(mark, low, high)
            many = "nobody knows how many" if lost is None else f"{lost:,}"
            self._quarantine.hold(
                _item(name, mark), f"Kafka has lost messages ({many}); drop: go on from number {to:,} or later"
            )

    def waits(self, name: str, mark: int) -> bool:
        return self._quarantine.wish(_item(name, mark)) == "hold"

    def dropped(self, name: str, mark: int) -> bool:
        """Whether the operator goes on without what is lost. One who wants it to be tried again is obeyed at once."""
        wish = self._quarantine.wish(_item(name, mark))
        if wish == "retry":
            self._quarantine.forget(_item(name, mark))
        return wish == "drop"

    def forget(self, name: str, mark: int) -> None:
        self._quarantine.forget(_item(name, mark))


def _item(name: str, mark: int) -> str:
    return f"{_PREFIX}{name}:{mark}"
