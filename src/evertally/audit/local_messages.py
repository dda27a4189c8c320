"""The audit of local learning: all that leaves a device is one message, of one value (factorization-counting 6.9).

Neighbours replace: *any* two values of a client. The messages of all cells are made by the real client without noise,
and what any two differ by is held against the law that the client asked for: discrete Gaussians of one scale, so the
most powerful test separates by the distance over the deviation.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, TypeGuard

import numpy as np

from evertally.audit.attacks import Finding
from evertally.audit.game import FloatArray, IntArray
from evertally.audit.gaussian import claimed_mu
from evertally.audit.report import Report
from evertally.errors import ReplayRefused
from evertally.local import Client, Protocol
from evertally.local.messages import unpack
from evertally.noise import DiscreteGaussian, DiscreteLaplace, NoiseKey, Recording, ZeroNoise, simulation
from evertally.privacy import Guarantee

_CELLS = 256
_GARBAGE: tuple[Any, ...] = (None, "many", float("nan"), float("inf"), -(10**400), [1], {}, b"\xff", object())


class LocalMessage:
    """One client as a mechanism of one tick: a cell goes in, the message comes out."""

    columns, horizon, mechanism, audited_as, exactness = 1, 1, "local", "Client", "exact"

    def __init__(self, protocol: Protocol, key: NoiseKey) -> None:
        self.protocol, self._key = protocol, key
        self.guarantee: Guarantee = protocol.guarantee
        self.charge = protocol.guarantee.to_zcdp()

    def step(self, cell: int) -> FloatArray:
        return self.entries(cell).astype(np.float64)

    def entries(self, cell: int) -> IntArray:
        message = Client(self.protocol, self._key).message(middle_of(self.protocol, int(cell)))
        return unpack(self.protocol, message)[0]


def is_local(model: Any) -> TypeGuard[LocalMessage]:
    """Whether these audits are for the mechanism."""
    return isinstance(model, LocalMessage)


def middle_of(protocol: Protocol, cell: int) -> Fraction:
    """A value in the middle of a cell."""
    return protocol.low + (protocol.high - protocol.low) * Fraction(2 * cell + 1, 2 * protocol.cells)


# -- audits ------------------------------------------------------------------------------------------------------------


def message_report(model: LocalMessage) -> Report:
    """The two cells whose messages are furthest apart, against the noise that the client drew.

    >>> import evertally as et
    >>> protocol = et.local.Protocol(guarantee=et.ZCDP(0.5), clients=100, low=0, high=1, cells=16)
    >>> report = message_report(LocalMessage(protocol, et.simulation(0)))
    >>> round(report.fraction, 6), report.adversary
    (1.0, 'cell 1 against cell 14')
    """
    protocol, claimed = with_cells(model.protocol, _CELLS), claimed_mu(model.charge)
    key = Recording(ZeroNoise())
    sent = np.array([LocalMessage(protocol, key).entries(cell) for cell in range(protocol.cells)], dtype=np.float64)
    asked = [draw for draw in key.draws if isinstance(draw.law, DiscreteGaussian | DiscreteLaplace)]
    deviations = {_sigma_squared(draw.law) for draw in asked}
    if {len(draw.nodes) * draw.coordinates for draw in asked} != {protocol.cells} or len(asked) != protocol.cells:
        return Report.computed(model, "an entry without noise of its own", "closed form", "mu", claimed, math.inf)
    squares = (sent**2).sum(axis=1)
    apart = squares[:, None] + squares[None, :] - 2 * sent @ sent.T
    one, other = (int(i) for i in np.unravel_index(np.argmax(apart), apart.shape))
    mu = math.sqrt(apart[one, other] / min(deviations))
    return Report.computed(model, f"cell {one + 1} against cell {other + 1}", "closed form", "mu", claimed, mu)


def _sigma_squared(law: Any) -> float:
    return float(law.sigma_squared) if isinstance(law, DiscreteGaussian) else 0.0


def with_cells(protocol: Protocol, most: int) -> Protocol:
    """The same with fewer cells, if there are many: distances of all pairs are a matrix."""
    options: dict[str, Any] = {"guarantee": protocol.guarantee, "clients": protocol.clients}
    ends: dict[str, Any] = {"low": protocol.low, "high": protocol.high}
    return Protocol(**options, **ends, cells=min(protocol.cells, most))


def worst_cells(protocol: Protocol) -> tuple[int, int]:
    """Two cells far apart: the first, and one near 0.83 of all."""
    return 0, min(protocol.cells - 1, round(0.83 * protocol.cells))


def message_attack(model: LocalMessage) -> Finding:
    """Asks a client for a second message, for the same and for another value, and sends values that are none."""
    protocol, name = model.protocol, "second message"
    client = Client(protocol, simulation(0))
    first = client.message(protocol.low)
    if client.message(protocol.low) != first:
        return Finding(name, True, "asked again, a client draws other noise: two messages have less of it")
    try:
        client.message(protocol.high)
    except ReplayRefused:
        pass
    else:
        return Finding(name, True, "a client makes messages of two values with one noise")
    for value in _GARBAGE:
        try:
            length = len(Client(protocol, simulation(1)).message(value))
        except Exception as error:  # who waits for the message sees that none comes
            return Finding(name, True, f"a value that is no number raised {type(error).__name__}")
        if length != len(first):
            return Finding(name, True, "the length of a message follows from its value")
    return Finding(name, False, "a client makes one message, whatever its value")
