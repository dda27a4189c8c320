"""What every device and the server agree on before the first message: public, and the same everywhere."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from evertally.contract.snapshot import guarantee_from_json, guarantee_to_json
from evertally.counting.sqrt_factor import GRID_BITS
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.local.factor import IntArray, integer_factor, swap_distance_squared
from evertally.local.messages import OVERHEAD
from evertally.noise import DiscreteGaussian, round_up
from evertally.noise.key import encode_path
from evertally.privacy import ZCDP, ApproxDP
from evertally.privacy._exact import exact

VERSION = 1
MOST_CELLS = 1 << 16
MOST_CLIENTS = 1 << 31  # so many messages of 32 bits add up in 64

# Entries further out than this many deviations are cut, by clients (e^-128 of them), and refused by the server: so
# much is what one dishonest client can do at most.
_DEVIATIONS = 16


@dataclass(frozen=True, init=False)
class Protocol:
    """One number in [low, high] is to be learnt from about `clients` people, each under `guarantee`.

    Theorem: factorization-counting 6.9 and 11. A client's point falls into one of w = `cells` cells (default:
    ceil(epsilon sqrt(clients)), for zCDP with sqrt(2 rho) in place of epsilon); its message is the column of that cell
    in the integer square-root factor, plus discrete Gaussians of variance Delta_swap^2/(2 rho) for each of the w
    entries. Neighbours: *any* other value or loss of the same client (replacement; in local privacy there is no other
    choice). Tier "exact". Time and bytes of a message O(w).

    The guarantee is one client's, for this protocol alone: another protocol is another message and adds to it.
    Gaussian noise is never pure. A delta that is not well below 1/clients is refused: that many clients might lose
    everything.

    >>> import evertally as et
    >>> protocol = et.local.Protocol(guarantee=et.ApproxDP(1.0, 1e-9), clients=10_000, low=0, high=120)
    >>> protocol.cells, protocol.message_bytes
    (100, 433)
    >>> protocol == et.local.Protocol.from_json(protocol.to_json())
    True
    """

    guarantee: ApproxDP | ZCDP
    clients: int
    low: Fraction
    high: Fraction
    cells: int

    def __init__(
        self,
        *,
        guarantee: ApproxDP | ZCDP,
        clients: int,
        low: Fraction | int | float,
        high: Fraction | int | float,
        cells: int | None = None,
    ) -> None:
        if not isinstance(guarantee, ApproxDP | ZCDP):
            raise ConfigurationError(
                "a message has Gaussian noise, which is never pure, and no bad event: give ApproxDP or ZCDP"
            )
        n = whole("clients", clients, 1, MOST_CLIENTS)
        if isinstance(guarantee, ApproxDP) and guarantee.exact_delta * n > Fraction(1, 10):
            raise ConfigurationError(
                f"delta {guarantee.delta} is not well below 1/clients (at most {0.1 / n:.2g}): each client's promise "
                "may fail altogether with that probability, and some client's would. Give a smaller delta"
            )
        ends = exact(low, "low"), exact(high, "high")
        if not ends[0] < ends[1]:
            raise ConfigurationError(f"low must be below high; got {low!r} and {high!r}")
        given = _usual_cells(guarantee, n) if cells is None else whole("cells", cells, 2, MOST_CELLS)
        settled = {"guarantee": guarantee, "clients": n, "low": ends[0], "high": ends[1], "cells": given}
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        _ = self.law  # a budget that no noise is wide enough for is refused here

    @cached_property
    def factor(self) -> IntArray:
        """r, the first column of the integer factor."""
        return integer_factor(self.cells)

    @cached_property
    def swap_distance_squared(self) -> int:
        """Delta_swap^2: how far apart two columns can be, exactly."""
        return swap_distance_squared(self.factor)

    @cached_property
    def law(self) -> DiscreteGaussian:
        """The noise of each entry of a message: sigma^2 >= Delta_swap^2/(2 rho)."""
        return DiscreteGaussian(round_up(self.swap_distance_squared / (2 * self.guarantee.to_zcdp().exact_rho)))

    @cached_property
    def largest_entry(self) -> int:
        """No entry of a message is larger in size."""
        return (1 << GRID_BITS) + _DEVIATIONS * (math.isqrt(math.ceil(self.law.sigma_squared)) + 1)

    @property
    def entry_type(self) -> np.dtype[np.signedinteger]:
        """How an entry is written: 4 bytes, or 8 for very small budgets."""
        return np.dtype("<i4" if self.largest_entry < 2**31 else "<i8")

    @property
    def message_bytes(self) -> int:
        """The length of every message."""
        return OVERHEAD + self.cells * self.entry_type.itemsize

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that name all public parameters and the noise that follows from them."""
        parameters = encode_path(
            "local", str(VERSION), self.to_json(), self.law.text(), self.factor.astype("<i8").tobytes()
        )
        return hashlib.blake2b(parameters, digest_size=16, person=b"evertally:local").digest()

    def cell(self, point: Fraction) -> int:
        """Which cell a point is in, from 0: cells are half-open but for the last; what is outside is in the last one
        of its side."""
        place = (point - self.low) * self.cells // (self.high - self.low)
        return max(0, min(self.cells - 1, place))

    def to_json(self) -> str:
        """All parameters as a text, the same for equal protocols."""
        parameters = {
            "version": VERSION,
            "guarantee": guarantee_to_json(self.guarantee),
            "clients": self.clients,
            "low": str(self.low),
            "high": str(self.high),
            "cells": self.cells,
        }
        return json.dumps(parameters, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Protocol:
        """The protocol of such a text."""
        try:
            given = json.loads(text)
            version, guarantee = given["version"], guarantee_from_json(given["guarantee"])
            numbers = {"low": Fraction(given["low"]), "high": Fraction(given["high"])}
            counts = {"clients": given["clients"], "cells": given["cells"]}
        except (ValueError, TypeError, KeyError, ZeroDivisionError) as error:
            raise ConfigurationError("this is not a protocol as to_json writes it") from error
        if version != VERSION:
            raise ConfigurationError(f"this is a protocol of version {version!r}; this program knows version {VERSION}")
        return cls(guarantee=guarantee, **numbers, **counts)  # type: ignore[arg-type]


def _usual_cells(guarantee: ApproxDP | ZCDP, clients: int) -> int:
    """ceil(epsilon sqrt(n)), exactly."""
    square = guarantee.exact_epsilon**2 if isinstance(guarantee, ApproxDP) else 2 * guarantee.exact_rho
    target = math.ceil(square * clients)
    root = math.isqrt(target)
    return max(2, min(MOST_CELLS, root + (root * root < target)))
