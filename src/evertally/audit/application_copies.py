"""Copies of statistics of graphs and strings, so small that neighbours can be searched for what is charged.

Small numbers take the place of large bounds (degrees, lengths of words, letters, events of a user); everything else is
the user's: what copies are, where bounds come from, what is protected, the process and its law.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from evertally.applications.encoded import Encoded
from evertally.applications.graph import CutGraph, DegreeHistogram, HighDegree, SpanningForestCost, Stars, Triangles
from evertally.applications.graph.on_demand import AskableGraphStatistic
from evertally.applications.graph.options import GraphStatistic
from evertally.applications.stacked import Stacked
from evertally.applications.stacking import Part
from evertally.applications.strings import FrequentSubstrings, SubstringCounts
from evertally.applications.strings.options import StringStatistic
from evertally.audit.whitebox import smaller

_VERTICES, _COMPLETE = 12, 4  # where degrees are bounded, and where they are bounded by the number of vertices
_LETTERS, _LONGEST, _CAP, _CAP_OF_LETTERS = 2, 3, 2, 3


def small_copy(model: Encoded, ticks: int, **changed: Any) -> Encoded:
    """The same configuration with a horizon of so many ticks, if it has one."""
    horizon: Any = None if model.horizon is None else min(model.horizon, ticks)
    made: Any = smaller(model, horizon, **_shrunk(model) | changed)
    assert isinstance(made, Encoded)
    return made


def _shrunk(model: Any) -> dict[str, Any]:
    """Options of the copy that differ."""
    if isinstance(model, GraphStatistic):
        changed = _shrunk_graph(model)
    elif isinstance(model, StringStatistic):
        changed = _shrunk_strings(model)
    elif isinstance(model, Stacked):
        given = zip(model._options["parts"].items(), model._counted, strict=True)
        changed = {
            "parts": {name: Part(part.kind, {**part.options, **_shrunk_part(one.made)}) for (name, part), one in given},
        }
    else:
        changed = {}
    cap = model.max_events_per_user
    if cap is not None:
        changed["max_events_per_user"] = min(cap, _CAP_OF_LETTERS if isinstance(model, StringStatistic) else _CAP)
    if getattr(model, "max_window", 0):
        changed["max_window"] = 0
    return changed


def _shrunk_part(made: Any) -> dict[str, Any]:
    shared = ("max_events_per_user", "max_window")  # these are the stack's
    return {name: value for name, value in _shrunk(made).items() if name not in shared}


def _shrunk_graph(model: GraphStatistic) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    names: list[str] | None = getattr(model, "_names", None)
    if model.updates == "delete":
        # All edges of four vertices; the weights of a forest are small and large.
        vertices = [str(number) for number in range(_COMPLETE)] if names is None else names[:_COMPLETE]
        edges: list[Any] = list(combinations(vertices, 2))
        if isinstance(model, SpanningForestCost):
            edges = [(*edge, model.max_weight * (i % 2)) for i, edge in enumerate(edges)]
        changed["initial"] = edges
        if model.vertices is not None:
            changed["vertices"] = vertices
    elif names is not None:
        changed["vertices"] = names[: _COMPLETE if model.max_degree is None else _VERTICES]
        if model.max_degree is None and model.protects == "edge" and not _bounded(model):
            changed["vertices"] = names[:_VERTICES]
    if model.max_degree is not None:
        changed["max_degree"] = min(model.max_degree, _largest_degree(model))
    if isinstance(model, HighDegree):
        changed["threshold"] = min(model.threshold, 2)
    if isinstance(model, Stars):
        changed["k"] = min(model.k, 2)
    if isinstance(model, AskableGraphStatistic) and names is None:
        numbers = [str(number) for number in range(_COMPLETE)]
        changed["watch"] = list(combinations(numbers, 2)) if isinstance(model, CutGraph) else numbers
    return changed


def _largest_degree(model: GraphStatistic) -> int:
    """The bound at which most of what is charged can be shown."""
    if isinstance(model, DegreeHistogram) and model.degree_bound == "projected":
        return 1
    return 4 if isinstance(model, Triangles) else 3


def _bounded(model: Any) -> bool:
    """Whether a degree bound is charged for, and the number of vertices is that bound."""
    return getattr(model, "_uses", "ignores") != "ignores"


def _shrunk_strings(model: StringStatistic) -> dict[str, Any]:
    changed: dict[str, Any] = {"show": None}
    if model.words is None:
        letters = changed["alphabet"] = list(model.alphabet[:_LETTERS])
        if model.other is not None and model.other not in letters:
            changed["other"] = letters[0]
        assert model.longest is not None
        changed["longest"] = min(model.longest, _LONGEST)
    if isinstance(model, FrequentSubstrings):
        changed |= {"above": min(model.above, 4), "most": max(model.most, 64)}  # all words are looked at
    if isinstance(model, SubstringCounts):
        if model.gap is not None:
            changed["gap"] = min(model.gap, 1)
        if model.removal == "null":
            changed["other"] = None  # a null can be sent where undeclared letters are nothing else
        if model.max_words is not None:
            changed["max_words"] = min(model.max_words, _CAP_OF_LETTERS)
    return changed
