"""The bank without a horizon: one mechanism up to 2^30 ticks, no epochs, no budget split, no jumps.

optimal-counting 5 [R, reviewed twice, for this table]. The coefficients come with the package: balanced so that the
variance of *every* tick t is near its own least, gamma_2(t)^2: at most 1.61 times it for all t up to 2^30, where no
Gaussian mechanism can stay below 1.58. Their sensitivity is certified by jumps (bank_jumps.py; `make audit` does it
whole). Past 2^30 ticks (34 years of seconds) it refuses.

Error: standard deviation 3.74 / 5.39 / 6.48 over sqrt(2 rho) at tick 2^10 / 2^16 / 2^20. Time about 35 ns a tick and
coordinate, memory 80 bytes a coordinate.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from importlib.resources import files

from evertally.bounds.tails import Spread
from evertally.counting.bank import FilteredNoise
from evertally.counting.bank_path import not_a_bank
from evertally.counting.bank_schedule import Bank
from evertally.counting.process import IntArray
from evertally.errors import HorizonExceeded, StateError
from evertally.noise import Source
from evertally.privacy import ZCDP, ApproxDP, Change

OPEN_LAST_TICK = 2**30
OPEN_STATES = 10
# What certify_by_jumps proves for the table of this digest, and for no other.
OPEN_SENSITIVITY = Fraction("2.3360505")
OPEN_DIGEST = "d8010721edff743f6cb21ff992d591548365c629c96b7633704e7871e2f2b6e9"
_FORMAT = b"evertally-open-1"


@lru_cache(maxsize=1)
def open_bank() -> Bank:
    """The table that comes with the package; a file that is not exactly this one is refused."""
    bank = Bank.from_bytes(files("evertally.counting").joinpath("tables", "bank_2_30.bin").read_bytes())
    if bank.digest != OPEN_DIGEST:
        raise StateError("the coefficients in this installation are not those that were certified; install it again")
    return bank


class OpenBankProcess(FilteredNoise):
    """Noise of the bank without a horizon.

    >>> from evertally.noise import simulation
    >>> process = OpenBankProcess(ZCDP(0.5), Change(1, 1, 1), columns=1, source=simulation(0).source("demo"))
    >>> [round(process.spread(2**k).stddev, 2) for k in (0, 10, 16, 30)]
    [1.3, 3.75, 5.39, 9.27]
    """

    def __init__(
        self,
        charge: ZCDP | ApproxDP,
        change: Change,
        *,
        columns: int,
        source: Source,
        lane: str = "bank-open",
    ) -> None:
        super().__init__(charge, change, columns=columns, source=source, lane=lane)
        self.horizon = None
        self._use(open_bank(), OPEN_SENSITIVITY)

    def advance(self, count: int = 1) -> IntArray:
        _check(self.tick + count)
        return super().advance(count)

    def spread(self, tick: int) -> Spread:
        _check(tick)
        return super().spread(tick)

    def widest(self, tick: int) -> Spread:
        _check(tick)
        return super().widest(tick)

    def mean_variance(self, tick: int) -> float:
        _check(tick)
        return super().mean_variance(tick)

    def window_spread(self, tick: int, window: int) -> Spread:
        _check(tick)
        return super().window_spread(tick, window)

    def memory(self) -> bytes:
        """States, and which table they are of."""
        return _FORMAT + bytes.fromhex(self.bank.digest) + self._path.memory(self.tick)

    def recall(self, tick: int, memory: bytes) -> None:
        head = _FORMAT + bytes.fromhex(self.bank.digest)
        if not memory.startswith(head):
            raise not_a_bank()
        self._path.recall(tick, memory[len(head) :])
        self.seek(tick)

    def worst_in(self, k: int) -> Spread:
        """The widest spread of the ticks 2^k .. 2^(k+1) - 1."""
        return self._spread(self._moments.widest(min(2 ** (k + 1) - 1, OPEN_LAST_TICK), 2**k))

    def joint_radius(self, beta: float, tick: int | None = None) -> float:
        """All ticks of 2^k .. 2^(k+1) - 1 around `tick` at once; stretch k gets the part 6/(pi (k + 1))^2 of beta."""
        assert tick is not None, "without a horizon the bound is for one tick"
        _check(tick)
        k = tick.bit_length() - 1
        return self.worst_in(k).radius(6 * beta / (math.pi * (k + 1)) ** 2 / 2**k)


def _check(tick: int) -> None:
    """There is no noise, and so no spread, beyond the last tick of the table."""
    if tick > OPEN_LAST_TICK:
        raise HorizonExceeded(f'tick {tick} is beyond 2^30, where the noise of "bank-open" ends; start a new stream')
