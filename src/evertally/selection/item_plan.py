"""What a mechanism over unknown items has settled, as public numbers: who holds them and the key can play some of its
labels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction

from evertally.bounds.selection import Threshold
from evertally.contract.ticks import LONGEST_HORIZON
from evertally.counting.plan import planned_source
from evertally.errors import StateError
from evertally.integers import whole
from evertally.noise import DiscreteGaussian, ItemSource, NoiseKey
from evertally.selection.item_engine import ItemEngine

_FORMAT = "evertally-item-plan-1"


@dataclass(frozen=True)
class ItemPlan:
    """A tree over unknown items without its state: public, small, the same text wherever it is read.

    Nothing in it is chosen again: the path is the one that noise was addressed by, law and threshold are those of the
    whole. Labels do not know of each other, so that is all that a shard of them needs.

    >>> import evertally as et
    >>> words = et.UnknownTopK(3, guarantee=et.ApproxDP(1.0, 1e-6), horizon=500, key=et.simulation(1))
    >>> plan = words.item_plan()
    >>> plan.most, plan.horizon, plan.threshold.at(1), ItemPlan.from_json(plan.to_json()) == plan
    (3, 500, 206, True)
    """

    path: tuple[str, ...]  # the address of the noise: stream, name, word, charge, hex digest of all parameters
    noise: str  # its fingerprint under the stream's key
    law: DiscreteGaussian  # the noise of an item in one block of the tree
    threshold: Threshold
    radix: int
    depth: int
    horizon: int
    sticky: bool
    most: int | None  # how many are shown, after the shards are merged; None: all that are above the threshold
    limit: int  # totals of a tick are clipped to it

    @classmethod
    def of(cls, engine: ItemEngine, path: tuple[str, ...], noise: str, limit: int) -> ItemPlan:
        """The plan of an engine that follows all labels; the rest is what the mechanism knows."""
        tree, law = engine.tree, engine.tree.law
        assert isinstance(law, DiscreteGaussian)
        ways = tree.radix, tree.depth, engine.horizon, engine.sticky, engine.most
        return cls(path, noise, law, engine.threshold, *ways, limit)

    def source(self, key: NoiseKey) -> ItemSource:
        """The noise of the mechanism under its key, and under no other."""
        return planned_source(self.path, self.noise, key)

    def engine(self, source: ItemSource) -> ItemEngine:
        """The engine of some labels, at its beginning. It is the whole's own; of its own labels it shows as many as the
        whole may: which of them are among the first of all is known once all are together."""
        return ItemEngine(
            self.law,
            self.threshold,
            radix=self.radix,
            depth=self.depth,
            horizon=self.horizon,
            source=source,
            sticky=self.sticky,
            most=self.most,
        )

    def to_json(self) -> str:
        threshold = self.threshold
        written = {
            "format": _FORMAT,
            "path": list(self.path),
            "noise": self.noise,
            "variance": str(self.law.sigma_squared),
            "threshold": [threshold.kind, str(threshold.delta), threshold.move],
            "tree": [self.radix, self.depth, self.horizon],
            "sticky": self.sticky,
            "most": self.most,
            "limit": self.limit,
        }
        return json.dumps(written, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ItemPlan:
        try:
            found = json.loads(text)
            if found["format"] != _FORMAT:
                raise StateError("this is the plan of another version; use the version that wrote it")
            law = DiscreteGaussian(Fraction(found["variance"]))
            radix, depth, horizon = found["tree"]
            kind, delta, move = found["threshold"]
            most = None if found["most"] is None else whole("most", found["most"], 1)
            if not isinstance(found["sticky"], bool) or not isinstance(found["noise"], str):
                raise TypeError
            return cls(
                tuple(found["path"]),
                found["noise"],
                law,
                Threshold(kind, horizon, radix, law.sigma_squared, Fraction(delta), whole("move", move, 1)),
                whole("radix", radix, 2),
                whole("depth", depth, 1, 64),
                whole("horizon", horizon, 2, LONGEST_HORIZON),
                found["sticky"],
                most,
                whole("limit", found["limit"], 1, 2**61),
            )
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise StateError("this is not the plan of a mechanism, or it is damaged; make it again") from None
