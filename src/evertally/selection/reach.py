"""How far one protected unit moves a histogram: what the charges and margins of one-shot mechanisms follow from.

streaming-selection 1.3 [R]. D is the largest change of one count: `max_weight` (DeltaInf) times `events` (g, the events
of one user that are counted; 1 protects single events). With at most `max_items` (Delta0) labels an event:

| | add_remove | replace |
|---|---|---|
| all counts move | one way | any way |
| labels that change | g Delta0 | 2 g Delta0 |
| l1, l2 squared | Delta0 D, Delta0 D^2 | twice that |
| a label that only one world can show is above the cut by at most | D | 2 D |

The last line is where "+1" in the thresholds comes from. Under replacement a label and the cut may both move, and "+1"
is wrong (1.3 there).

Replacement of a user with several events is not a row of 1.3, but follows from the same lines: counts, hence the cut,
move by at most D, so a label that one world shows and the other does not has h_0 <= h_1 + D <= cut_1 + D <= cut_0 + 2D,
and the sensitivity lemma of 4.3 holds for any two histograms (additions 5). The tests enumerate it like the other rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from evertally import integers
from evertally.errors import ConfigurationError
from evertally.privacy import Neighbours

_LARGEST = 2**40


@dataclass(frozen=True)
class Reach:
    """What one unit can change.

    >>> Reach().move, Reach().above_cut, Reach().l2_squared(max_items=3)
    (1, 1, 3)
    >>> replaced = Reach(max_weight=2, neighbours=Neighbours.REPLACE)
    >>> replaced.move, replaced.above_cut, replaced.l2_squared(max_items=3), replaced.labels(max_items=3)
    (2, 4, 24, 6)
    """

    max_weight: int = 1
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    events: int = 1

    def __post_init__(self) -> None:
        if Neighbours.parse(self.neighbours) is Neighbours.INDEPENDENT:
            raise ConfigurationError('selection is proved for "add_remove" and "replace" neighbours only')
        object.__setattr__(self, "neighbours", Neighbours.parse(self.neighbours))
        whole("max_weight times events", whole("max_weight", self.max_weight) * whole("events", self.events))

    @property
    def sides(self) -> int:
        """1 if all counts move the same way, 2 if some may rise while others fall."""
        return 1 if self.neighbours is Neighbours.ADD_REMOVE else 2

    @property
    def move(self) -> int:
        """D, the largest change of one count."""
        return self.max_weight * self.events

    @property
    def above_cut(self) -> int:
        """How far a label that only one world can show may lie above h_(kbar+1)."""
        return self.sides * self.move

    def labels(self, max_items: int) -> int:
        """How many labels can change, or exist in one world only."""
        return self.sides * max_items * self.events

    def l1(self, max_items: int) -> int:
        """The largest sum of all changes."""
        return self.sides * max_items * self.move

    def l2_squared(self, max_items: int) -> int:
        """The largest sum of squares of all changes: at most D times the sum of changes."""
        return self.sides * max_items * self.move**2


def whole(name: str, value: object, low: int = 1) -> int:
    return integers.whole(name, value, low, _LARGEST)
