"""What the tests of local learning share: planted draws, exact laws of a message, and the paper's two counters."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
from flint import arb

import evertally as et
from evertally.local import protocol as protocol_module
from evertally.local.messages import unpack
from evertally.noise import DiscreteGaussian
from evertally.privacy._exact import ball

Array = np.ndarray[Any, Any]
SMALL = np.array([8, 4, 3], dtype=np.int64)  # round(8 f): largest column 89, largest distance 105


class PlantedUniform:
    """-ln U for one known U."""

    def __init__(self, u: Fraction) -> None:
        self._u = u
        self.lower = self.upper = np.zeros(1)  # nobody may decide by floats

    def refine(self, i: int, bits: int) -> arb:
        return -ball(self._u).log()


class PlantedSource:
    """The draws of one message, given in advance. It notes the law that it is asked for."""

    def __init__(self, z: Array | None, u: Fraction) -> None:
        self._z, self._u = z, u
        self.asked: list[DiscreteGaussian] = []

    def draws(self, lane: str, law: Any, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> Array:
        self.asked.append(law)
        given = np.zeros(coordinates, dtype=np.int64) if self._z is None else self._z
        return given.reshape(1, coordinates)

    def variates(self, lane: str, kind: Any, node: int, coordinates: int) -> PlantedUniform:
        return PlantedUniform(self._u)

    def order(self, message: bytes) -> bytes:
        return hashlib.sha256(message).digest()

    def fingerprint(self) -> bytes:
        return bytes(16)


class PlantedKey:
    """A key whose noise is given."""

    private, fresh, process = False, True, 0

    def __init__(self, z: Array | None = None, u: Fraction = Fraction(1, 2)) -> None:
        self.planted = PlantedSource(z, u)

    def source(self, *path: str | bytes) -> Any:
        return self.planted


@contextmanager
def small_factor(r: Array = SMALL) -> Iterator[None]:
    """Protocols of a few cells with a factor so small that laws can be written down."""
    with mock.patch.object(protocol_module, "integer_factor", lambda cells: r[:cells]):
        yield


def middle_of(protocol: et.local.Protocol, cell: int) -> Fraction:
    return protocol.low + (protocol.high - protocol.low) * Fraction(2 * cell + 1, 2 * protocol.cells)


def sent(protocol: Any, value: object, z: Array | None = None) -> tuple[Array, DiscreteGaussian]:
    """The entries of the message that the real client makes of a value and given draws, and the law it asked for."""
    key = PlantedKey(z)
    message = et.local.Client(protocol, key).message(value)
    return unpack(protocol, message)[0], key.planted.asked[-1]


def masses(law: DiscreteGaussian, reach: int) -> Array:
    """P(Z = -reach), ..., P(Z = reach), the tail cut where it is below 1e-30."""
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-(k**2) / (2 * float(law.sigma_squared)))
    return weights / weights.sum()


def divergence(law: DiscreteGaussian, shift: int, order: float) -> float:
    """Renyi divergence of the law moved by `shift` from the law, by summation."""
    reach = int(order * abs(shift) + 14 * law.stddev()) + 2
    k = np.arange(-reach, reach + 1)
    s = 2 * float(law.sigma_squared)
    total = np.logaddexp.reduce(-(k**2) / s)
    moment = np.logaddexp.reduce(-(order * (k - shift) ** 2 + (1 - order) * k**2) / s) - total
    return float(moment / (order - 1))


def worst_loss(protocol: Any, order: float = 2.0) -> float:
    """The largest divergence between messages of two cells, by the client's own columns and law, over order * rho."""
    found = [sent(protocol, middle_of(protocol, cell)) for cell in range(protocol.cells)]
    rho = float(protocol.guarantee.to_zcdp().exact_rho)
    worst = 0.0
    for mine, law in found:
        for theirs, _ in found:
            shifts = (mine - theirs).tolist()
            worst = max(worst, sum(divergence(law, shift, order) for shift in shifts if shift))
    return worst / (order * rho)


# -- the paper's two counters ------------------------------------------------------------------------------------------


def reversed_cell(cell: int, cells: int) -> int:
    """Cell j of u is cell w + 1 - j of v (from 1), which the paper writes w - j."""
    return cells - 1 - cell


def variance_of_each(swap_squared: int, rho: Fraction) -> Fraction:
    """Both counters together: std sqrt(2) sigma_1 Delta_swap each."""
    return 2 * swap_squared / (2 * rho)


def one_hot(cell: int, cells: int) -> Array:
    u = np.zeros(cells, dtype=np.int64)
    if 0 <= cell < cells:
        u[cell] = 1
    return u


def prefix(u: Array, t: int) -> int:
    return int(u[:t].sum())
