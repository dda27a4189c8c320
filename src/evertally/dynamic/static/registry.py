"""The static mechanisms, by name: ours, their ranking, and those of somebody else.

Whether noise is Laplace or Gaussian is no name: it follows from the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evertally.dynamic.families import Boxes, Family, Marginals, Queries, Ranges
from evertally.dynamic.parts import Budget, StaticMechanism
from evertally.dynamic.static.additive import Additive
from evertally.dynamic.static.weights_update import MultiplicativeWeights
from evertally.dynamic.strategies import Asked, Explicit, Hierarchies, Identity, SquareRoot, Tables, best_matrix
from evertally.errors import ConfigurationError
from evertally.privacy import PureDP
from evertally.ranking import Ranking, Way

Build = Callable[[Family, bool, Mapping[str, Any]], StaticMechanism]  # family, whether budgets are pure, options


@dataclass(frozen=True)
class StaticRecord:
    """How a static mechanism is built, which options it has, and the section that proves it."""

    build: Build
    section: str
    additive: bool = True
    options: tuple[str, ...] = ()


def _histogram(family: Family, pure: bool, options: Mapping[str, Any]) -> Additive:
    return Additive(family, Identity(family))


def _hierarchy(family: Family, pure: bool, options: Mapping[str, Any]) -> Additive:
    if not isinstance(family, Ranges | Boxes):
        raise ConfigurationError('"hierarchy" needs ordered cells: a family of ranges or boxes')
    if "fanout" not in options and not options.get("root"):
        return Additive(family, Hierarchies.best(family, pure))
    given = options.get("fanout", 2)
    axes = len(family.axes) if isinstance(family, Boxes) else 1
    fanouts = list(given) if isinstance(given, Sequence) else [given] * axes
    if len(fanouts) != axes:
        raise ConfigurationError(f"fanout is a number, or a list of {axes}, one for each axis")
    return Additive(family, Hierarchies(family, fanouts, root=bool(options.get("root", False))))


def _square_root(family: Family, pure: bool, options: Mapping[str, Any]) -> Additive:
    if not isinstance(family, Ranges | Boxes):
        raise ConfigurationError('"square-root" needs ordered cells: a family of ranges or boxes')
    return Additive(family, SquareRoot(family))


def _marginals(family: Family, pure: bool, options: Mapping[str, Any]) -> Additive:
    if not isinstance(family, Marginals):
        raise ConfigurationError('"marginals" needs a family of marginals')
    return Additive(family, Tables(family))


def _matrix(family: Family, pure: bool, options: Mapping[str, Any]) -> Additive:
    if "matrix" in options:
        try:
            matrix = np.array(options["matrix"])
        except ValueError:
            matrix = np.zeros(0)
        # Whole numbers, of which no sum overflows.
        if matrix.dtype.kind not in "iu" or matrix.ndim != 2 or (np.abs(matrix) > 2**31).any():
            raise ConfigurationError("matrix is a list of rows of whole numbers, none of them above 2^31")
        return Additive(family, Explicit(family, matrix.astype(np.int64)))
    if "rows" in options:
        if options["rows"] not in ("cells", "queries"):
            raise ConfigurationError('rows is "cells" or "queries"')
        return Additive(family, Identity(family) if options["rows"] == "cells" else Asked(family))
    return Additive(family, best_matrix(family, pure))


def settled_options(name: str, static: StaticMechanism, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that lead to this static mechanism again, without looking for it: fan-outs and matrices are found in
    floats, and another machine, or version, might find others. Snapshots keep them.

    >>> settled_options("hierarchy", make_static("hierarchy", Ranges(size=1024), pure=False), {})
    {'fanout': [3], 'root': False}
    """
    strategy = static.strategy if type(static) is Additive else None
    if isinstance(strategy, Hierarchies):
        return {"fanout": strategy.fanouts, "root": strategy.root}
    if isinstance(strategy, Explicit):
        return {"matrix": strategy.matrix.tolist()}
    if name == "matrix":
        return {"rows": "queries" if isinstance(strategy, Asked) else "cells"}
    return dict(given)


def _weights(family: Family, pure: bool, options: Mapping[str, Any]) -> MultiplicativeWeights:
    return MultiplicativeWeights(family, **options)


STATICS: dict[str, StaticRecord] = {
    "histogram": StaticRecord(_histogram, "dynamic-data 3.3"),
    "hierarchy": StaticRecord(_hierarchy, "dynamic-data 3.3", options=("fanout", "root")),
    "square-root": StaticRecord(_square_root, "users-and-domains 4"),
    "marginals": StaticRecord(_marginals, "dynamic-data 3.2"),
    "matrix": StaticRecord(_matrix, "dynamic-data 3.2", options=("matrix", "rows")),
    "multiplicative-weights": StaticRecord(_weights, "dynamic-data 3.3", additive=False, options=("max_rounds",)),
}


@dataclass(frozen=True)
class OwnStatic:
    """How somebody else's is built, and where it is proved."""

    build: Callable[[Family], StaticMechanism]
    proof: str


OWN_STATICS: dict[str, OwnStatic] = {}


def register_static(name: str, build: Callable[[Family], StaticMechanism], *, proof: str) -> None:
    """A static mechanism of your own: `static=name` takes it wherever a construction works around one.

    `build(family)` makes a `StaticMechanism` (dynamic/parts.py): it releases an integer row for a vector of counts, all
    noise drawn from the place that it is given, and says how answers follow from a row and how far they are off.
    `proof` says where it is proved that a release keeps its budget for *every* vector, if one item more or less is
    there; certificates show it with the words "not ours", and "auto" never takes it. `checks.check_static` plays it.
    Its name is in the address of the noise: a mechanism that is changed needs a new name.

    >>> from evertally.dynamic.families import Count
    >>> class NoisyCount(Additive):
    ...     '''All of it could be written anew; here only the weights are.'''
    ...     def weights(self, query):
    ...         return np.ones(1)
    >>> register_static("count of a doctest", lambda family: NoisyCount(family, Identity(family)), proof="page 3")
    >>> make_static("count of a doctest", Count(), pure=True).width, static_proof_elsewhere("count of a doctest")
    (1, 'page 3')
    >>> forget_static("count of a doctest")
    """
    if type(name) is not str or not name:
        raise ConfigurationError("a static mechanism is named by a text")
    if name == "auto" or name in STATICS or name in OWN_STATICS:
        raise ConfigurationError(f"there is a static mechanism {name!r}; what is new, or was changed, needs a new name")
    if not isinstance(proof, str) or not proof.strip():
        raise ConfigurationError("proof says where it is proved that a release keeps its budget; certificates show it")
    OWN_STATICS[name] = OwnStatic(build, proof)


def forget_static(name: str) -> None:
    """Takes back `register_static`."""
    OWN_STATICS.pop(name, None)


def static_proof_elsewhere(name: str) -> str | None:
    """Where a static mechanism of somebody else is proved, by its own words; None for ours."""
    return OWN_STATICS[name].proof if name in OWN_STATICS else None


def make_static(name: str, family: Family, *, pure: bool, options: Mapping[str, Any] | None = None) -> StaticMechanism:
    """The static mechanism of this name for a family; refuses, with the reason, what does not fit.

    >>> make_static("hierarchy", Ranges(size=1024), pure=False).norms.l1
    7
    """
    given = dict(options or {})
    if name in OWN_STATICS:
        if given:
            raise ConfigurationError(f"the static mechanism {name!r} is not ours, and has no options here")
        return OWN_STATICS[name].build(family)
    if name not in STATICS:
        known = ", ".join((*STATICS, *OWN_STATICS))
        raise ConfigurationError(f'unknown static mechanism {name!r}; choose "auto" or one of {known}')
    record = STATICS[name]
    wrong = [key for key in given if key not in record.options]
    if wrong:
        allowed = ", ".join(record.options) or "none"
        raise ConfigurationError(f"the static mechanism {name!r} has no option {wrong[0]!r}; it has {allowed}")
    return record.build(family, pure, given)


def rank_static(
    family: Family,
    budgets: Sequence[Budget],
    *,
    beta: float = 0.05,
    size: float | None = None,
    additive: bool = False,
) -> Ranking:
    """Every static mechanism for a family, best first, by its error over all queries at once.

    Predicted for the sum of releases with these budgets, of data of at most `size` items in all; `additive`: only those
    whose noise does not look at data. The name of the best is what "auto" takes.

    >>> ranked = rank_static(Ranges(size=1024), [PureDP(1)])
    >>> ranked.best.name, [way.name for way in ranked.fitting]
    ('hierarchy', ['hierarchy', 'histogram', 'square-root'])
    """
    pure = isinstance(budgets[0], PureDP)
    names = [*STATICS, *OWN_STATICS]
    return Ranking([_way(name, family, budgets, pure, beta, size, additive) for name in names])


def _way(
    name: str, family: Family, budgets: Sequence[Budget], pure: bool, beta: float, size: float | None, additive: bool
) -> Way:
    charge = budgets[0]
    try:
        static = make_static(name, family, pure=pure)
        if additive and not static.additive:
            raise ConfigurationError("its noise looks at data: it is no linear encoder")
        if not (static.pure if pure else static.concentrated):
            raise ConfigurationError("it takes no such budget")
        bound = static.error(budgets, beta, size)
    except ConfigurationError as refusal:
        return Way(name=name, charge=None, refused=str(refusal))
    unknown = "" if math.isfinite(bound) else "its error depends on how many items there are: declare `max_items`"
    # An optimised matrix is the work of floats: where there is a structure, nobody gets one who did not ask for it.
    named = name in OWN_STATICS or (name == "matrix" and not isinstance(family, Queries))
    return Way(
        name=name,
        charge=charge,
        score=bound,
        promise=lambda: bound,
        memory=8 * static.width,
        open=unknown,
        by_name=named,
    )
