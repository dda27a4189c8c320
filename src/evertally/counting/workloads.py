"""What a counter may release instead of its running total: sums that weigh ticks by public numbers.

factorization-counting 6.2 and 6.10. `workload=` of `Counter`, `VectorCounter` and `Histogram` takes one of these, or
the table that a spec writes for it (`{"decay": "0.99"}`). They are values: exact numbers, checked when they are made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from evertally.errors import ConfigurationError
from evertally.integers import own_integer, whole

__all__ = ["Average", "Decay", "Toeplitz", "Weights", "Window"]

WEIGHT_BITS = 24  # powers of a decay are rounded to multiples of 2^-24
_FINER = 64  # bits with which they are made before
_LONGEST = 2**22
_FINEST = 2**16
_LARGEST = 2**32

Table = dict[str, Any]
Exact = Fraction | int | str


@dataclass(frozen=True)
class Series:
    """Row_t = sum_k weights_k x_(t-k) / unit, in integers: what is released is the integer next to Row_t plus noise, in
    steps of `step`."""

    weights: tuple[int, ...]
    unit: int
    step: Fraction

    @property
    def limit(self) -> int:
        """How large the total of a tick may be for all sums to fit 64 bits."""
        return 2**61 // sum(map(abs, self.weights))


@dataclass(frozen=True, init=False)
class Decay:
    """Exponential decay: sum_j factor^(t-j) x_j, factor a fraction between 0 and 1.

    factorization-counting 6.10: the factor `lam^k f(k)`, S_inf = (2/pi) K(lam^2); error S_inf D2/sqrt(2 rho) at all
    ticks, also of a stream without a horizon (for factors up to about 0.9995). With a horizon below about
    10/(1 - factor) less error by a bank (`mechanism="bank"`, optimal-counting 7). Weights are rounded to multiples of
    2^-24, and end where they vanish: public numbers, and what is released is the sum with these weights, rounded to a
    multiple of `resolution` together with the noise (additions 11). Tier "exact". Memory O(d/(1 - factor)).

    >>> import evertally as et
    >>> counter = et.Counter(workload=et.workloads.Decay("0.9"), guarantee=et.ZCDP(0.5), horizon=None,
    ...                      key=et.simulation(1))
    >>> release = counter.step(100)
    >>> round(counter.stddev(10**6), 2), counter.mechanism
    (1.48, 'root')
    """

    factor: Fraction
    resolution: Fraction

    def __init__(self, factor: Exact, *, resolution: Exact = 1) -> None:
        factor = _rational("the factor of a decay", factor)
        if not 0 < factor < 1 or factor.denominator > _LARGEST:
            raise ConfigurationError(
                'the factor of a decay lies between 0 and 1, such as "0.99"; for 1 leave out the workload'
            )
        if (1 - factor) * _LONGEST < 20:
            raise ConfigurationError('this decay is slower than any stream is long; use "0.99999", or no workload')
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "resolution", _resolution(resolution))

    def series(self) -> Series:
        return _powers(self)

    def table(self) -> Table:
        return {"decay": str(self.factor)} | _unless_one(self.resolution)


@lru_cache(maxsize=16)
def _powers(decay: Decay) -> Series:
    top, bottom = decay.factor.numerator, decay.factor.denominator
    parts = decay.resolution.denominator
    fine, weights = 1 << _FINER, []
    while (weight := (fine + (1 << (_FINER - WEIGHT_BITS - 1))) >> (_FINER - WEIGHT_BITS)) > 0:
        weights.append(weight * parts)
        fine = (2 * fine * top + bottom) // (2 * bottom)
    return Series(tuple(weights), 1 << WEIGHT_BITS, decay.resolution)


@dataclass(frozen=True)
class Window:
    """A sliding window: the sum over the last `ticks` ticks, at every tick.

    factorization-counting 6.10: the factor ((1 - z^W)/(1 - z))^(1/2), S_inf = (4/pi^2) ln W + 0.9894 + o(1), whatever
    the horizon is (`mechanism="root"`); or the difference of two running totals, by any process that a counter takes
    ("tree", "sqrt", ...). The factor changes sign, so only changes of single ticks and sums over ticks are charged for
    (S1 and S2 of 2.4), as everywhere here. Tier "exact". Memory O(d T) for "root".

    >>> import evertally as et
    >>> last_day = et.Counter(workload=et.workloads.Window(24), guarantee=et.ZCDP(0.5), horizon=4096,
    ...                       key=et.simulation(1))
    >>> last_day.mechanism, round(last_day.stddev(4096), 2)
    ('root', 2.3)
    """

    ticks: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "ticks", whole("the window", self.ticks, 1, _LONGEST))

    def series(self) -> Series:
        return Series((1,) * self.ticks, 1, Fraction(1))

    def table(self) -> Table:
        return {"window": self.ticks}


@dataclass(frozen=True, init=False)
class Toeplitz:
    """Sums sum_k coefficients[k] x_(t-k): any weights by age, the first above 0, as integers or fractions.

    factorization-counting 6.10: the factor is the power-series square root, checked by its square; where it grows
    without bound, noise goes onto the inputs themselves (`mechanism="input"`). Charged by S1 and S2 of 2.4 alone.
    Rounded correctly to a multiple of `resolution` (additions 11). Tier "exact". Memory O(d T).

    >>> import evertally as et
    >>> smooth = et.Counter(workload=et.workloads.Toeplitz(["1", "2/3", "1/3"]), guarantee=et.ZCDP(0.5), horizon=1000,
    ...                     key=et.simulation(1))
    >>> round(smooth.stddev(1000), 2)
    1.16
    """

    coefficients: tuple[Fraction, ...]
    resolution: Fraction

    def __init__(self, coefficients: Sequence[Exact], *, resolution: Exact = 1) -> None:
        given = _listed("coefficients", coefficients)
        found = [_rational("a coefficient", each) for each in given]
        while found and found[-1] == 0:
            found.pop()
        if not found or found[0] <= 0:
            raise ConfigurationError("the first coefficient, that of the present tick, must be above 0")
        object.__setattr__(self, "coefficients", tuple(found))
        object.__setattr__(self, "resolution", _resolution(resolution))
        series = self.series()
        if series.unit > _LARGEST or max(map(abs, series.weights)) > _LARGEST:
            raise ConfigurationError(
                "coefficients have a common denominator, and numerators, of at most 2^32; round them to a coarser grid"
            )

    def series(self) -> Series:
        scaled = [each / self.resolution for each in self.coefficients]
        unit = math.lcm(*(each.denominator for each in scaled))
        return Series(tuple(int(each * unit) for each in scaled), unit, self.resolution)

    def table(self) -> Table:
        return {"toeplitz": [str(each) for each in self.coefficients]} | _unless_one(self.resolution)


@dataclass(frozen=True, init=False)
class Weights:
    """Known public weights: alpha_t sum_(j<=t) beta_j x_j. `beta` has a whole number from 0 on for each tick, `alpha`
    (post-processing) one from 1 on, or is left out.

    factorization-counting 6.10: every change is at most max(beta) times as large, also over several ticks, because no
    beta is negative. All processes of a running total, all guarantees, and their tier "exact". Error: that of the
    running total times max(beta) alpha_t. The running average is `release.value / t` (6.2): nothing private in it.

    >>> import evertally as et
    >>> days = et.Counter(workload=et.workloads.Weights([1, 1, 3, 0]), guarantee=et.PureDP(1.0), horizon=4,
    ...                   key=et.simulation(1))
    >>> days.sensitivity
    Change(l1=3, l2_squared=9, linf=3)
    """

    beta: tuple[int, ...]
    alpha: tuple[int, ...] | None

    def __init__(self, beta: Sequence[int], alpha: Sequence[int] | None = None) -> None:
        weights = [own_integer(each) for each in _listed("beta", beta)]
        if any(each is None or not 0 <= each <= _LARGEST for each in weights) or not any(weights):
            raise ConfigurationError(
                "beta is a list of whole numbers from 0 to 2^32, one for each tick and not all 0. Negative weights are "
                "refused: changes of several ticks would add up (use two counters instead); fractions need a common "
                "denominator"
            )
        scales = None
        if alpha is not None:
            scales = tuple(whole("alpha", each, 1, _FINEST) for each in _listed("alpha", alpha))
            if len(scales) != len(weights):
                raise ConfigurationError("alpha and beta differ in length; give one of each for every tick")
        object.__setattr__(self, "beta", tuple(weights))
        object.__setattr__(self, "alpha", scales)

    def table(self) -> Table:
        return {"weights": list(self.beta)} | ({} if self.alpha is None else {"alpha": list(self.alpha)})


@dataclass(frozen=True, init=False)
class Average:
    """The running average over ticks: the running total divided by the number of ticks so far.

    factorization-counting 6.2: post-processing of the running total, whose processes, guarantees and tier "exact" it
    has; error that of the running total divided by t. Released as the nearest multiple of `resolution`.

    >>> import evertally as et
    >>> load = et.Counter(workload=et.workloads.Average("1/100"), guarantee=et.ZCDP(0.5), horizon=1000,
    ...                   key=et.simulation(1))
    >>> values = load.run([4] * 1000)
    >>> bool(abs(values[-1] - 4) < 0.05), round(load.stddev(1000), 4)
    (True, 0.0041)
    """

    resolution: Fraction

    def __init__(self, resolution: Exact = "1/1000") -> None:
        object.__setattr__(self, "resolution", _resolution(resolution))

    def table(self) -> Table:
        return {"average": str(self.resolution)}


ByAge = Decay | Window | Toeplitz
Workload = ByAge | Weights | Average

_FORMS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "decay": (Decay, ("resolution",)),
    "window": (Window, ()),
    "toeplitz": (Toeplitz, ("resolution",)),
    "weights": (Weights, ("alpha",)),
    "average": (Average, ()),
}


def read(value: Any) -> Workload | None:
    """A workload from what an option was given: one of them, or its table.

    >>> read({"decay": "0.99"}), read({"window": 24}), read(None)
    (Decay(factor=Fraction(99, 100), resolution=Fraction(1, 1)), Window(ticks=24), None)
    """
    if value is None or type(value) in (Decay, Window, Toeplitz, Weights, Average):
        workload: Workload | None = value
        return workload
    if isinstance(value, Mapping):
        table = dict(value)
        kind = next((name for name in _FORMS if name in table), None)
        if kind is not None:
            made, further = _FORMS[kind]
            first = table.pop(kind)
            if all(name in further for name in table):
                found: Workload = made(first, **table)
                return found
    raise ConfigurationError(
        'workload is None or one of et.workloads, e.g. et.workloads.Decay("0.99"); as a table it is {decay = "0.99"}, '
        "{window = 24}, {toeplitz = [...]} (with resolution, if it is not 1), {weights = [...], alpha = [...]} or "
        '{average = "1/1000"}'
    )


def _listed(name: str, value: Any) -> list[Any]:
    if isinstance(value, str) or not (isinstance(value, Sequence) or hasattr(value, "tolist")) or len(value) == 0:
        raise ConfigurationError(f"{name} is a list of numbers that is not empty")
    if len(value) > _LONGEST:
        raise ConfigurationError(f"{name} is longer than {_LONGEST}; use a longer tick")
    return list(value)


def _rational(name: str, value: Any) -> Fraction:
    number = own_integer(value)
    if number is not None:
        return Fraction(number)
    if type(value) is Fraction:
        return value
    if isinstance(value, str):
        try:
            return Fraction(str.__str__(value))
        except (ValueError, ZeroDivisionError):
            pass
    raise ConfigurationError(
        f'{name} is an exact number: a text such as "0.99" or "1/3", an integer or a Fraction; '
        f"a {type(value).__name__} would be another number than the one that is read"
    )


def _resolution(value: Any) -> Fraction:
    resolution = _rational("resolution", value)
    if resolution <= 0 or resolution.numerator != 1 or resolution.denominator > _FINEST:
        raise ConfigurationError(f'resolution is 1 or a part of it, such as "1/16", not below 1/{_FINEST}')
    return resolution


def _unless_one(resolution: Fraction) -> Table:
    return {} if resolution == 1 else {"resolution": str(resolution)}
