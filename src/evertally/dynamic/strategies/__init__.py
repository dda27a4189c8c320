"""Integer strategies: which sums of cells get the noise, so that the queries of a family come out of few of them."""

from evertally.dynamic.strategies.hierarchies import Axis, Hierarchies
from evertally.dynamic.strategies.optimised import best_matrix, optimised
from evertally.dynamic.strategies.square_root import SquareRoot
from evertally.dynamic.strategies.strategy import Load, Norms, Strategy
from evertally.dynamic.strategies.tables import Asked, Explicit, Identity, Tables

__all__ = [
    "Asked",
    "Axis",
    "Explicit",
    "Hierarchies",
    "Identity",
    "Load",
    "Norms",
    "SquareRoot",
    "Strategy",
    "Tables",
    "best_matrix",
    "optimised",
]
