"""Quantiles over a large domain: descents through a tree of which only some nodes are ever read.

users-and-domains 4, large domains [R]. Whole numbers of `bits` bits are leaves of a tree of h levels with fan-out b.
The b children of a node are encoded as a small domain is; noise has the address of its coordinate. A descent looks at
released numbers only, at one node a level, so which nodes are read is public (1.7), and so is how long that takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evertally.contract.forms import RowForm
from evertally.contract.parts import Accuracy, IntArray
from evertally.privacy import Change
from evertally.values.isotonic import isotonic
from evertally.values.quantile_answers import combined
from evertally.values.quantile_domains import Domain
from evertally.values.quantile_form import shown_share

FloatArray = NDArray[np.float64]
Side = Literal["answer", "lowest", "highest"]
Node = tuple[int, int]  # level, and number within it
Radii = Callable[[float, int], float]  # of a share and a level

SIDES: tuple[Side, ...] = ("answer", "lowest", "highest")
_SLACK = 1e-9  # as in quantile_answers


@dataclass(frozen=True)
class Tree:
    """The public shape: `levels` of nodes with `fanout` children, and how the children of one are encoded."""

    levels: int
    fanout: int
    children: Domain

    @property
    def leaves(self) -> int:
        return int(self.fanout**self.levels)

    @property
    def coordinates(self) -> int:
        """Of all nodes of all levels."""
        return self.first_node(self.levels) * self.fanout

    def first_node(self, level: int) -> int:
        """How many nodes are above a level: the number of its first one."""
        return int((self.fanout**level - 1) // (self.fanout - 1))

    def code(self, node: Node) -> int:
        """A number that no other node has."""
        return self.first_node(node[0]) + node[1]

    def span(self, node: Node) -> tuple[int, int]:
        """The first and last leaf below a node."""
        width = self.fanout ** (self.levels - node[0])
        return node[1] * width, (node[1] + 1) * width - 1

    def moved(self, added: Change, replaced: Change) -> tuple[Change, Change]:
        """What one value moves: a node in every level. Replaced, the two part at a node, at the root at worst, and have
        no coordinate in common below it."""
        h, below = self.levels, 2 * (self.levels - 1)
        return (
            Change(h * added.l1, h * added.l2_squared, added.linf),
            Change(replaced.l1 + below * added.l1, replaced.l2_squared + below * added.l2_squared, replaced.linf),
        )

    def worst(self, accuracy: Accuracy, levels: float) -> Accuracy:
        """Of a sum of prefix counts of so many nodes, each with as much noise as a prefix has at most."""
        children = self.children
        energy = float(children.energy.max())
        return combined(accuracy, children.columns, levels * energy, children.heaviest, levels * children.reach)

    def radii(self, accuracy: Accuracy, beta: float) -> Radii:
        """For F - q n at each level: the noise of the nodes so far, and q times that of the total. One of h levels may
        fail, and each on one side only."""
        kept: dict[tuple[float, int], float] = {}

        def radius(q: float, level: int) -> float:
            if (q, level) not in kept:
                kept[q, level] = self.worst(accuracy, level + 1 + q).radius(beta / self.levels)
            return kept[q, level]

        return radius


@dataclass
class Walker:
    """One descent: `answer` to the quantile, `lowest` to the first leaf that it may be, `highest` to the last.

    Let u be the true quantile. As long as `lowest` is above u, it goes to the right of u only if the released count up
    to the end of the child that holds u is below q n by more than the radius, though the true one is not below q n. So
    one number a level must fail; the same for `highest` with the count up to the child before (users-and-domains 4).
    """

    q: float
    side: Side
    number: int = 0
    base: float = field(default=0.0)

    def step(self, prefixes: FloatArray, total: float, radius: float) -> None:
        """From a node to one of its children."""
        target = self.q * total
        if self.side == "highest":
            short = np.flatnonzero(self.base + prefixes < target + radius)
            child = min(int(short[-1]) + 1, prefixes.size - 1) if short.size else 0
        else:
            if self.side == "answer":
                prefixes = np.maximum(isotonic(prefixes), 0.0)
                enough = target - _SLACK * max(1.0, abs(target))
            else:
                enough = target - radius
            reached = np.flatnonzero(self.base + prefixes >= enough)
            child = int(reached[0]) if reached.size else prefixes.size - 1
        self.base += float(prefixes[child - 1]) if child else 0.0
        self.number = self.number * prefixes.size + child


def walkers(shares: Sequence[float]) -> list[Walker]:
    """A descent of each kind for each share."""
    return [Walker(q, side) for q in shares for side in SIDES]


class DescentForm(RowForm):
    """Quantiles from the nodes that were read. A row has a place for the root, then for each level the node of each
    walker: its code, and its children with noise."""

    def __init__(self, tree: Tree, shares: Sequence[float]) -> None:
        self.tree, self.shares = tree, list(shares)
        self.places = 1 + (tree.levels - 1) * len(SIDES) * len(self.shares)
        super().__init__(self.places * (1 + tree.fanout), [shown_share(share) for share in shares])

    def show(self, row: IntArray) -> dict[float, float]:
        read = self._nodes(row)
        return {q: float(self._walked(read, Walker(q, "answer"), _no_radius)[0]) for q in self.shares}

    def show_many(self, rows: IntArray) -> NDArray[Any]:
        shown = [list(self.show(row).values()) for row in rows]
        return np.array(shown, dtype=np.float64).reshape(-1, len(self.shares))

    def interval(self, row: IntArray, accuracy: Accuracy, beta: float) -> tuple[dict[float, float], dict[float, float]]:
        """Where a descent comes to a node that was not read (those of 95 % intervals are), all that is below it."""
        read, radii, shown = self._nodes(row), self.tree.radii(accuracy, beta), self.show(row)
        low = {q: float(self._walked(read, Walker(q, "lowest"), radii)[0]) for q in self.shares}
        high = {q: float(self._walked(read, Walker(q, "highest"), radii)[1]) for q in self.shares}
        return {q: min(low[q], shown[q]) for q in low}, {q: max(high[q], shown[q]) for q in high}

    def deviation(self, accuracy: Accuracy) -> None:
        return None

    def _nodes(self, row: IntArray) -> dict[int, IntArray]:
        places = row.reshape(self.places, -1)
        return {int(place[0]): place[1:] for place in places}

    def _walked(self, read: dict[int, IntArray], walker: Walker, radii: Radii) -> tuple[int, int]:
        tree = self.tree
        total = float(tree.children.prefixes(read[0])[-1])
        for level in range(tree.levels):
            found = read.get(tree.code((level, walker.number)))
            if found is None:
                return tree.span((level, walker.number))
            walker.step(tree.children.prefixes(found), total, radii(walker.q, level))
        return walker.number, walker.number


def _no_radius(q: float, level: int) -> float:
    return 0.0
