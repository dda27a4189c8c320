"""The constructions, by name: one line each."""

from __future__ import annotations

from evertally.dynamic.anew import ANEW
from evertally.dynamic.insertions import DOUBLING, TREE
from evertally.dynamic.interval_plan import INTERVAL_TREE
from evertally.dynamic.parts import Construction
from evertally.dynamic.subtract import SUBTRACT

CONSTRUCTIONS: dict[str, Construction] = {made.name: made for made in (ANEW, TREE, DOUBLING, SUBTRACT, INTERVAL_TREE)}
