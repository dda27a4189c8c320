"""What the code of a mechanism really draws: a source that notes every request and gives what was planted.

`audit.gaussian` and `audit.impulses` read integers and real numbers of columns. Here every kind of noise is noted:
draws by coordinate or by label, real numbers, and the variates of selections, each with the law that the code named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.audit.game import IntArray
from evertally.audit.gaussian import AnyLaw
from evertally.audit.label_noise import Label, PlantedVariates, ScriptKey, _Named
from evertally.noise import Law, NoiseKey, Variates
from evertally.noise.reals import KnownReals, RealLaw
from evertally.noise.variates import VariateKind

Place = int | Label  # a coordinate, or a label (None: the threshold of an unknown domain)


@dataclass(frozen=True)
class Drawn:
    """One draw: its lane and node, the coordinate or the label that it is for, and its law. `law` is the kind where a
    variate is drawn, whose scale is a matter of the code that compares it."""

    lane: str
    node: int
    place: Place
    law: AnyLaw


APART = 2.0**-20  # between planted variates

Plant = Callable[[Drawn], float]


def nothing(drawn: Drawn) -> float:
    """No noise."""
    return 0.0


class Tap(_Named):
    """A source that notes draws in the order in which they are asked for, and gives what `plant` says.

    >>> from evertally.selection.histograms import KnownGauss
    >>> from evertally.selection.items import Items
    >>> tap = Tap(lambda drawn: 100 if drawn.place == "tea" else 0)
    >>> KnownGauss(variance=8, max_items=2).release(Items.of({"tea": 3, "milk": 0}, tap), tap, node=1)
    [('tea', 103), ('milk', 0)]
    >>> [(drawn.place, float(drawn.law.sigma_squared)) for drawn in tap.drawn]
    [('tea', 8.0), ('milk', 8.0)]
    """

    def __init__(self, plant: Plant = nothing) -> None:
        super().__init__()
        self._plant = plant
        self.drawn: list[Drawn] = []

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        places = range(first, first + coordinates)
        rows = [[self._value(Drawn(lane, int(node), place, law)) for place in places] for node in nodes]
        return np.array(rows, dtype=np.int64).reshape(-1, coordinates)

    def reals(self, lane: str, law: RealLaw, nodes: range, coordinates: int = 1, first: int = 0) -> KnownReals:
        places = range(first, first + coordinates)
        rows = [[self._value(Drawn(lane, int(node), place, law)) for place in places] for node in nodes]
        return KnownReals(np.array(rows, dtype=np.float64).reshape(-1, coordinates))

    def variates(self, lane: str, kind: VariateKind, node: int, coordinates: int) -> Variates:
        return self._variates(lane, kind, node, list(range(coordinates)))

    def item_draws(self, lane: str, law: Law, node: int, items: NDArray[np.uint64]) -> IntArray:
        values = [self._value(Drawn(lane, int(node), label, law)) for label in self._labels(items)]
        return np.array(values, dtype=np.int64)

    def item_reals(self, lane: str, law: RealLaw, nodes: range, items: NDArray[np.uint64]) -> KnownReals:
        labels = self._labels(items)
        rows = [[self._value(Drawn(lane, int(node), label, law)) for label in labels] for node in nodes]
        return KnownReals(np.array(rows, dtype=np.float64).reshape(-1, len(labels)))

    def item_variates(self, lane: str, kind: VariateKind, node: int, items: NDArray[np.uint64]) -> Variates:
        return self._variates(lane, kind, node, list(self._labels(items)))

    def _variates(self, lane: str, kind: VariateKind, node: int, places: list[Any]) -> Variates:
        # Real variates are never equal, and code that compares them may rely on it.
        values = [self._value(Drawn(lane, int(node), place, kind)) for place in places]
        return PlantedVariates([value - i * APART for i, value in enumerate(values)])

    def _value(self, drawn: Drawn) -> float:
        self.drawn.append(drawn)
        return self._plant(drawn)

    @property
    def key(self) -> NoiseKey:
        """A key that hands out this source, whatever it is asked for."""
        return ScriptKey(self)

    def twice(self) -> list[Drawn]:
        """Draws of a lane that has another law elsewhere: the same random bits at two scales reveal data."""
        laws: dict[str, AnyLaw] = {}
        return [drawn for drawn in self.drawn if laws.setdefault(drawn.lane, drawn.law) != drawn.law]
