"""Static mechanisms: one release of one data set, from which every query of a family is answered (dynamic-data 3)."""

from evertally.dynamic.static.additive import Additive
from evertally.dynamic.static.registry import (
    OWN_STATICS,
    STATICS,
    StaticRecord,
    forget_static,
    make_static,
    rank_static,
    register_static,
    settled_options,
    static_proof_elsewhere,
)
from evertally.dynamic.static.weights_update import MultiplicativeWeights

__all__ = [
    "OWN_STATICS",
    "STATICS",
    "Additive",
    "MultiplicativeWeights",
    "StaticRecord",
    "forget_static",
    "make_static",
    "rank_static",
    "register_static",
    "settled_options",
    "static_proof_elsewhere",
]
