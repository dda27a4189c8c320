"""Statistics whose events may have more items than count: which version of the secret order cuts them.

The order is part of what is released: under the same noise another one would publish the difference. So its version is
in the address of the noise, wherever an event can be cut at all, and in the snapshot; a snapshot without one is of a
stream that began with version 1, and goes on with it (encode/door.py).
"""

from __future__ import annotations

from typing import Any

from evertally.contract.mechanism import Mechanism
from evertally.contract.options import option, statistic
from evertally.contract.parts import Options
from evertally.encode.cutting import CUTTING
from evertally.encode.door import EventDoor
from evertally.errors import ConfigurationError


@statistic
class CutsEvents(Mechanism):
    """Not used directly."""

    cutting: int = option(
        "The version of the secret order that says which items stay where an event has too many; 1 is for streams that "
        "an earlier version began.",
        default=CUTTING,
    )

    _may_cut = False

    def _read_by(self, reader: EventDoor[Any]) -> None:
        """Notes whether the reader of events may cut one."""
        self._may_cut = reader.may_cut

    def _version(self) -> Options:
        if self.cutting not in (1, CUTTING):
            raise ConfigurationError(f"cutting is {CUTTING}; 1 is for streams that an earlier version began")
        return {"cutting": self.cutting} if self._may_cut and self.cutting != 1 else {}

    @classmethod
    def _of_earlier(cls, options: Options) -> Options:
        return {"cutting": 1} | super()._of_earlier(options)
