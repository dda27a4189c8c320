"""Where the privacy of each query is proved: sections of docs/theory, by mechanism and by kind."""

from __future__ import annotations

from evertally.runtime.spec.options import SELECTION, UNKNOWN
from evertally.runtime.spec.types import QuerySpec, StreamSpec

_MECHANISMS = {
    "tree": "streaming-selection 3.1 and 3.2, price-of-continual-release 3.2",
    "sqrt": "factorization-counting 4 and 11, square-root-counter 1 and 2",
    "honaker": "factorization-counting 8.3",
    "epoch-tree": "price-of-continual-release 9.1, parameterized-histograms 3.5",
    "epoch-hybrid": "factorization-counting 10.1",
    "intervals": "parameterized-histograms 2.2 and 7.2",
    "rebased": "parameterized-histograms 2.2 and 7.2",
    "bounded": "parameterized-histograms 2.2 and 4",
    "noisy-ladders": "parameterized-histograms 2.2 and 2.3",
    "doubling": "parameterized-histograms 2.2 and 5.1",
    "two-level": "parameterized-histograms 2.5 and 5.4",
    "recompute": "price-of-continual-release 3.5 and 3.6",
    "trivial": "price-of-continual-release 3.1",
}
_SELECTIONS = {
    ("unknown-histogram", "tree"): "streaming-selection 7.2",
    ("unknown-top", "tree"): "streaming-selection 7.2",
    ("unknown-histogram", "meta"): "streaming-selection 5.1 and 4.3",
    ("unknown-top", "meta"): "streaming-selection 5.1 and 4.5",
    ("streaming-top", "tree"): "streaming-selection 3.1 and 3.4",
    ("streaming-top", "meta"): "streaming-selection 5.1 and 4.2",
    ("streaming-top", "meta-gauss"): "streaming-selection 5.1 and 4.1",
    ("streaming-top", "sparse-gumbel"): "streaming-selection 6.2 and 1.4, additions 3",
}
# Their noise is smaller where an event moves what they look at one way.
_ONE_WAY = ("intervals", "rebased", "bounded", "noisy-ladders", "doubling", "two-level")
_CHANGE = {"counter": "factorization-counting 2.4", "mean": "factorization-counting 6.2 and 2.4"}


def mechanism_proof(spec: StreamSpec, query: QuerySpec, mechanism: str) -> str:
    """That this noise hides a change of the given size."""
    if query.kind in SELECTION:
        return _SELECTIONS[query.kind, mechanism]
    further = ", additions 7" if spec.neighbours == "add_remove" else ""
    if mechanism == "recompute" and query.kind in ("leader", "leaders"):
        return f"price-of-continual-release 3.7{further}"
    return _MECHANISMS[mechanism] + (further if mechanism in _ONE_WAY else "")


def change_proof(spec: StreamSpec, query: QuerySpec) -> str:
    """By how much one protected unit can change what is counted."""
    if spec.neighbours == "independent":
        return "parameterized-histograms 1.2 and 6"
    if query.kind in SELECTION:
        proof = "streaming-selection 1.3"
    else:
        proof = _CHANGE.get(query.kind, "factorization-counting 6.3, price-of-continual-release 9.4")
    if spec.unit == "event":
        return proof
    further = ", additions 4 and 5" if query.kind in UNKNOWN else ", additions 4" if query.kind in SELECTION else ""
    return f"{proof}, price-of-continual-release 9.5{further}"
