"""Strategies without a tree: the cells themselves, the tables of marginals, and matrices that are written down."""

from __future__ import annotations

import hashlib
import itertools
import math
from typing import Any

import numpy as np

from evertally.dynamic.families import Count, Family, Marginals, Points, Queries
from evertally.dynamic.strategies.strategy import FloatArray, IntArray, Load, Norms, check_width, histogram
from evertally.errors import ConfigurationError


class Identity:
    """One row for each cell; a query adds up its cells.

    >>> strategy = Identity(Points(["a", "b"]))
    >>> strategy.norms.l1, strategy.weights("b").tolist()
    (1, [0.0, 1.0])
    """

    address = "identity"
    norms = Norms(1, 1, 1)

    def __init__(self, family: Family) -> None:
        self._family = family
        self.cells = self.width = family.cells

    def apply(self, data: IntArray) -> IntArray:
        return data.copy()

    def encode(self, cells: IntArray, signs: IntArray) -> IntArray:
        return histogram(self.cells, cells, signs)

    def weights(self, query: Any) -> FloatArray:
        return self._family.vector(query) / self._family.unit

    def worst(self) -> Load:
        if isinstance(self._family, Queries):
            return _covering([self.weights(query) for query in self._family.workload()])
        if isinstance(self._family, Count | Points):
            return Load(1.0, 1.0, single=True)
        return Load(float(self.cells), 1.0, single=self.cells == 1, plain=self._family.unit == 1)


class Tables:
    """The tables of highest order of a family of marginals: an item lies in one cell of each (dynamic-data 3.2).

    A query of fewer attributes is in several tables; each of them answers it by a sum of c cells, and the answers are
    averaged with weights proportional to 1/c, the best for noise that is the same in all cells.

    >>> strategy = Tables(Marginals({"a": 2, "b": 3, "c": 2}, order=2))
    >>> strategy.width, strategy.norms.l1, round(strategy.worst().squares, 3)
    (16, 3, 1.714)
    """

    def __init__(self, family: Marginals) -> None:
        self._family = family
        self._tables = family.tables()
        self.cells = family.cells
        sizes = [math.prod(family.shape[a] for a in table) for table in self._tables]
        self._starts = [0, *itertools.accumulate(sizes)]
        self.width = self._starts[-1]
        check_width(self.width)
        self.norms = Norms(len(self._tables), len(self._tables), 1)
        self.address = f"marginals-{family.order}"

    def apply(self, data: IntArray) -> IntArray:
        cube = data.reshape(self._family.shape)
        axes = range(cube.ndim)
        return np.concatenate([cube.sum(axis=tuple(set(axes) - set(t)), dtype=np.int64).ravel() for t in self._tables])

    def encode(self, cells: IntArray, signs: IntArray) -> IntArray:
        return self.apply(histogram(self.cells, cells, signs))

    def weights(self, query: Any) -> FloatArray:
        pattern = dict(self._family.pattern(query))
        shares = self._shares(frozenset(pattern))
        weights = np.zeros(self.width)
        for i, share in shares.items():
            table = self._tables[i]
            cells = np.zeros([self._family.shape[a] for a in table])
            cells[tuple(pattern.get(a, slice(None)) for a in table)] = share
            weights[self._starts[i] : self._starts[i + 1]] = cells.ravel()
        return weights

    def worst(self) -> Load:
        """Over all choices of attributes: the precisions 1/c of the tables that hold them add up to an elementary
        symmetric polynomial of 1/n over the other attributes, n their numbers of values."""
        shape, order = self._family.shape, self._family.order
        others = {
            tuple(sorted(n for a, n in enumerate(shape) if a not in chosen))
            for count in range(order + 1)
            for chosen in itertools.combinations(range(len(shape)), count)
        }
        covered = Load(1.0, 1.0, single=True)
        for sizes in others:
            further = order - (len(shape) - len(sizes))  # attributes to be summed over, in each table
            precision = _symmetric([1 / n for n in sizes], further)
            smallest = math.prod(sizes[:further])
            covered |= Load(
                1 / precision, 1 / smallest / precision, further == 0, plain=math.isclose(precision, 1 / smallest)
            )
        return covered

    def _shares(self, attributes: frozenset[int]) -> dict[int, float]:
        inside = [i for i, table in enumerate(self._tables) if attributes <= set(table)]
        precision = {i: 1 / self._summed(i, attributes) for i in inside}
        return {i: p / sum(precision.values()) for i, p in precision.items()}

    def _summed(self, i: int, attributes: frozenset[int]) -> int:
        return math.prod(self._family.shape[a] for a in self._tables[i] if a not in attributes)


class Asked:
    """The queries themselves, one row each, on their own grid.

    >>> strategy = Asked(Queries({"some": [0.5, 1], "all": [1, 1]}, ["a", "b"]))
    >>> strategy.norms, strategy.apply(np.array([1, 1])).tolist(), strategy.weights("some").tolist()
    (Norms(l1=4, l2_squared=8, linf=2, nonnegative=True), [3, 4], [0.5, 0.0])
    """

    def __init__(self, family: Family) -> None:
        self._family = family
        queries = family.workload()
        self._matrix = np.array([family.vector(query) for query in queries], dtype=np.int64)
        self._row = {digest(row): i for i, row in enumerate(self._matrix)}
        self.width, self.cells = self._matrix.shape
        self.norms = matrix_norms(self._matrix)
        self.address = f"queries-{digest(self._matrix)}"

    def apply(self, data: IntArray) -> IntArray:
        return np.asarray(self._matrix @ data)

    def encode(self, cells: IntArray, signs: IntArray) -> IntArray:
        return _encoded(self._matrix, cells, signs)

    def weights(self, query: Any) -> FloatArray:
        row = self._row.get(digest(self._family.vector(query)))
        if row is None:
            raise ConfigurationError("this mechanism answers the declared queries alone; ask one of them")
        weights = np.zeros(self.width)
        weights[row] = 1 / self._family.unit
        return weights

    def worst(self) -> Load:
        unit = self._family.unit
        return Load(1 / unit**2, 1 / unit, single=True, plain=unit == 1)


class Explicit:
    """An integer matrix that is written down; weights by least squares, for every query that its rows can tell.

    >>> strategy = Explicit(Points(["a", "b"]), np.array([[2, 2], [1, 0]]))
    >>> strategy.norms, strategy.weights("b").round(12).tolist()
    (Norms(l1=3, l2_squared=5, linf=2, nonnegative=True), [0.5, -1.0])
    """

    def __init__(self, family: Family, matrix: IntArray) -> None:
        if matrix.dtype != np.int64 or matrix.ndim != 2 or matrix.shape[1] != family.cells or not matrix.any():
            raise ConfigurationError(f"a strategy is a matrix of int64 with a column for each of {family.cells} cells")
        self._family = family
        self._matrix = matrix.copy()
        self.width, self.cells = matrix.shape
        self.norms = matrix_norms(matrix)
        self.address = f"matrix-{digest(matrix)}"
        self._floats = matrix.astype(np.float64)
        self._inverse = _inverse(self._floats)

    @property
    def matrix(self) -> IntArray:
        """A itself, a copy."""
        return self._matrix.copy()

    def apply(self, data: IntArray) -> IntArray:
        return np.asarray(self._matrix @ data)

    def encode(self, cells: IntArray, signs: IntArray) -> IntArray:
        return _encoded(self._matrix, cells, signs)

    def weights(self, query: Any) -> FloatArray:
        return np.asarray(self._all_weights([query])[0])

    def worst(self) -> Load:
        return _covering(list(self._all_weights(self._family.workload())))

    def tells_all(self) -> bool:
        """Whether every query has an answer, up to float rounding."""
        return bool(np.abs(self._inverse @ self._floats - np.eye(self.cells)).max() < 1e-8)

    def _all_weights(self, queries: list[Any]) -> FloatArray:
        vectors = np.array([self._family.vector(query) for query in queries]) / self._family.unit
        weights = np.asarray(vectors @ self._inverse)
        if np.abs(weights @ self._floats - vectors).max() > 1e-8:
            raise ConfigurationError("the rows of this strategy do not tell the answer of that query")
        return weights


def matrix_norms(matrix: IntArray) -> Norms:
    """The norms of the largest column, in Python's integers: no sum can overflow."""
    columns = [[abs(int(x)) for x in column] for column in matrix.T.tolist()]
    return Norms(
        max(sum(column) for column in columns),
        max(sum(x * x for x in column) for column in columns),
        max(max(column) for column in columns),
        bool((matrix >= 0).all()),
    )


def _encoded(matrix: IntArray, cells: IntArray, signs: IntArray) -> IntArray:
    if 4 * len(cells) > matrix.shape[1]:  # many updates meet in few cells
        return np.asarray(matrix @ histogram(matrix.shape[1], cells, signs))
    return np.asarray(matrix[:, cells] @ signs)


def _symmetric(values: list[float], degree: int) -> float:
    """The sum of all products of `degree` of the values.

    >>> _symmetric([1.0, 2.0, 3.0], 2)
    11.0
    """
    sums = [1.0] + [0.0] * degree
    for value in values:
        for k in range(degree, 0, -1):
            sums[k] += value * sums[k - 1]
    return sums[degree]


def digest(matrix: IntArray) -> str:
    """A short name of a matrix, the same on every machine."""
    shape = np.array(matrix.shape, dtype="<i8").tobytes()
    return hashlib.blake2b(shape + matrix.astype("<i8").tobytes(), digest_size=8).hexdigest()


def _inverse(matrix: FloatArray) -> FloatArray:
    if matrix.shape[0] == matrix.shape[1]:
        try:
            return np.asarray(np.linalg.inv(matrix))
        except np.linalg.LinAlgError:
            pass
    return np.asarray(np.linalg.pinv(matrix))


def _covering(weights: list[FloatArray]) -> Load:
    loads = [Load.of(one) for one in weights]
    covered = loads[0]
    for load in loads[1:]:
        covered |= load
    return covered
