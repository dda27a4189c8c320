"""The options of a mechanism as addresses and snapshots keep them: one fingerprint means one law, also for streams that
an earlier version began."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from evertally.contract.parts import Options
from evertally.contract.snapshot import guarantee_from_json, guarantee_to_json
from evertally.errors import ConfigurationError
from evertally.privacy import Contribution, Neighbours


class KeptOptions:
    """The options of a mechanism that are kept."""

    unit: Any
    max_events_per_user: int | None
    charging: Any
    neighbours: str | Neighbours

    def _given(self, *names: str) -> Options:
        """Some of the options, as addresses keep them."""
        return {name: getattr(self, name) for name in names}

    def _contributing(self, **bounds: Any) -> Contribution:
        """What one event may contribute, or all events of a user."""
        if self.charging not in ("users", "events"):
            raise ConfigurationError('charging is "users"; "events" is for streams that an earlier version began')
        return Contribution(
            unit=self.unit,
            max_events_per_user=self.max_events_per_user,
            in_steps=self.charging == "events",
            **bounds,
        )

    def _version(self) -> Options:
        """What addresses keep of versions of ours; streams of earlier versions, no more than before."""
        return {}

    @classmethod
    def _of_earlier(cls, options: Options) -> Options:
        """What options mean that the snapshot of an earlier version does not have."""
        if options["unit"] == "user" and options["neighbours"] == Neighbours.REPLACE.value:
            # What earlier versions took from the budget; with less noise the past would be drawn anew.
            return {"charging": "events"}
        return {}

    def _user_address(self) -> Options:
        """What addresses keep of the protected unit: streams of earlier versions, and other units, no more than before.
        One fingerprint means one law."""
        kept = self._given("unit", "max_events_per_user")
        replaced = self.unit == "user" and Neighbours.parse(self.neighbours) is Neighbours.REPLACE
        return kept | {"charging": self.charging} if replaced and self.charging != "events" else kept

    @classmethod
    def _encoded(cls, name: str, value: Any) -> Any:
        if name == "guarantee":
            return guarantee_to_json(value)
        if isinstance(value, Neighbours):
            return value.value
        if isinstance(value, Fraction):
            return str(value)
        if isinstance(value, np.generic):
            return value.item()
        return [cls._encoded("", part) for part in value] if isinstance(value, list | tuple) else value

    @classmethod
    def _decoded(cls, name: str, value: Any) -> Any:
        return guarantee_from_json(value) if name == "guarantee" else value
