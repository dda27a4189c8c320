"""What a linear mechanism has settled, as public numbers: who holds them and the key can play a part of its columns."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import asdict, dataclass
from typing import Any

from evertally.contract.snapshot import guarantee_from_json, guarantee_to_json
from evertally.counting.choose import Choice, build
from evertally.counting.process import Coefficients, NoiseProcess
from evertally.counting.processes import Setting
from evertally.errors import ConfigurationError, StateError
from evertally.noise import ItemSource, NoiseKey, SliceSource, Source
from evertally.privacy import ZCDP, ApproxDP, Change, Participation, PureDP

_FORMAT = "evertally-plan-1"


@dataclass(frozen=True)
class LinearPlan:
    """A linear mechanism without its state: public, small, the same text wherever it is read.

    Nothing in it is chosen again: the path is the one that noise was addressed by, the setting is that of *all*
    columns, coefficients that were found by floats are in it. A slice could not choose otherwise if it wanted to.

    >>> import evertally as et
    >>> counts = et.VectorCounter(columns=8, guarantee=et.ZCDP(0.5), horizon=90, key=et.simulation(1))
    >>> plan = counts.plan()
    >>> plan.choice.mechanism, plan.columns, LinearPlan.from_json(plan.to_json()) == plan
    ('bank', 8, True)
    """

    path: tuple[str, ...]  # the address of the noise: stream, name, word, charge, hex digest of all parameters
    noise: str  # its fingerprint under the stream's key
    choice: Choice
    setting: Setting
    low: int  # totals of a tick are clipped to low .. limit
    limit: int
    settled: bytes = b""  # coefficients, where a process has some

    @property
    def columns(self) -> int:
        return self.setting.columns

    @property
    def horizon(self) -> int | None:
        return self.setting.horizon

    def source(self, key: NoiseKey) -> ItemSource:
        """The noise of the mechanism under its key, and under no other."""
        return planned_source(self.path, self.noise, key)

    def process(self, source: Source, first: int, stop: int) -> NoiseProcess:
        """The noise process of the columns first .. stop - 1, at its beginning; `source` is that of the whole."""
        if not 0 <= first < stop <= self.columns:
            raise ConfigurationError(f"a slice is a range of the columns 0 to {self.columns - 1}, with one at least")
        made = build(self.choice, self.setting, SliceSource(source, first), stop - first)
        if isinstance(made, Coefficients):
            made.settle(self.settled)
        return made

    def to_json(self) -> str:
        setting = asdict(self.setting)
        del setting["slice_width"]
        written = {
            "format": _FORMAT,
            "path": list(self.path),
            "noise": self.noise,
            "mechanism": self.choice.mechanism,
            "charge": guarantee_to_json(self.choice.charge),
            "setting": setting,
            "bounds": [self.low, self.limit],
            "settled": base64.b64encode(self.settled).decode(),
        }
        return json.dumps(written, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> LinearPlan:
        try:
            found = json.loads(text)
            if found["format"] != _FORMAT:
                raise StateError("this is the plan of another version; use the version that wrote it")
            charge = guarantee_from_json(found["charge"])
            if not isinstance(charge, PureDP | ZCDP | ApproxDP):
                raise TypeError
            low, limit = found["bounds"]
            return cls(
                tuple(found["path"]),
                found["noise"],
                Choice(found["mechanism"], charge),
                _setting(found["setting"]),
                low,
                limit,
                base64.b64decode(found["settled"], validate=True),
            )
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise StateError("this is not the plan of a mechanism, or it is damaged; make it again") from None


def planned_source(path: tuple[str, ...], noise: str, key: NoiseKey) -> ItemSource:
    """The noise at the path of a plan, if the key is the one under which it has this fingerprint."""
    *names, digest = path
    source = key.source(*names, bytes.fromhex(digest))
    if source.fingerprint().hex() != noise:
        raise StateError(
            "this is not the key of the plan, or a version that addresses noise otherwise: with other noise the "
            "past would be drawn anew. Use the key, and the version, that the stream was begun with"
        )
    return source


def _setting(found: dict[str, Any]) -> Setting:
    changes = {name: found[name] and Change(**found[name]) for name in ("change", "split", "loose")}
    rule = found["rule"]
    if rule is not None:
        rule = Participation(**(rule | {"per_tick": Change(**rule["per_tick"])}))
    return Setting(**(found | changes | {"rule": rule}))
