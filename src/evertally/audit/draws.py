"""The draws themselves, word by word: whether a draw is what its random bits and the law that the code named say.

Exact laws, closed forms and thresholds read which laws are drawn and trust that a draw has its law; games see it only
where it is wrong often. Here the random words are chosen: at the borders of neighbouring values and of the cells that
samplers interpolate in, in the far tail, undecided after one word and after two. What the law says is written down once
more, in balls of many bits (docs/theory/samplers.md, 1 to 3, 7 and 8; only the definitions are used, no table).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from evertally.audit.addresses import wrong_addresses
from evertally.audit.attacks import Finding
from evertally.audit.game import Factory, take
from evertally.audit.known_code import once
from evertally.audit.leaders import wrong_leader
from evertally.audit.watching import watched
from evertally.balls import at_precision
from evertally.noise import DiscreteGaussian, DiscreteLaplace, sampler, simulation
from evertally.noise.reals import RealLaw, Reals
from evertally.noise.source import KeyedSource
from evertally.noise.variates import AddressedVariates

Words = NDArray[np.uint64]
More = Callable[[int, int], tuple[int, int]]

_BITS = 320  # of a tail that is written down here
_FIRST, _SECOND = 63, 127  # bits of V in one word and in two; the lowest bit of the first word is the sign
_SUMMED = 4000.0  # sigma up to which the tails of a Gaussian are added up
_BORDERS, _CHANCE = 16, 200  # borders of values that words are put at; words that are not chosen
_SURE = 2.0**-20  # a variate must be known at least so well
_DOUBLE = 2.0**-98  # what numbers of two floats are known to


def draws_attack(make: Factory, inputs: Sequence[Any]) -> Finding:
    """Looks which laws a mechanism draws on some inputs, and plants telling words for each of them.

    >>> import evertally as et
    >>> draws_attack(lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=key), [3, 1]).leaked
    False
    """
    wrong = once("evertally.noise", "addresses", wrong_addresses)
    if wrong:
        return Finding("draws", True, wrong)
    laws = sorted(laws_of(make, inputs), key=str)
    for law in laws:
        wrong = once("evertally.noise", law, partial(wrong_draw, law))
        if wrong:
            return Finding("draws", True, wrong)
    told = ", ".join(map(_named, laws)) or "none"
    return Finding("draws", False, f"of the laws {told} every planted word gives what its bits say", bool(laws))


def laws_of(make: Factory, inputs: Sequence[Any]) -> set[Any]:
    """The laws, and the kinds of variates, that a mechanism asks its source for."""
    found: set[Any] = set()

    def note(source: Any, lane: str, law: Any, *further: Any) -> None:
        found.add(RealLaw(law.kind, "") if isinstance(law, RealLaw) else law)

    with ExitStack() as stack:
        for method in ("draws", "reals", "variates", "item_draws", "item_reals", "item_variates"):
            stack.enter_context(watched(KeyedSource, method, note))
        mechanism = make(simulation(0))
        for tick, x in enumerate(inputs[: mechanism.horizon], start=1):
            take(mechanism, x, tick=tick)
    return found


def wrong_draw(law: Any) -> str:
    """What is wrong with the draws of a law, in a few words; nothing if all are right.

    >>> wrong_draw(DiscreteLaplace(3)), wrong_draw(RealLaw("normal", "")), wrong_draw("gumbel")
    ('', '', '')
    """
    if isinstance(law, DiscreteLaplace | DiscreteGaussian):
        return _wrong_integer(law)
    if isinstance(law, RealLaw):
        return _wrong_real(law.kind)
    return _wrong_variate(law) if law in ("gumbel", "exponential") else ""


def _named(law: Any) -> str:
    return law.text() if hasattr(law, "text") and not isinstance(law, RealLaw) else str(getattr(law, "kind", law))


# -- integers ----------------------------------------------------------------------------------------------------------


def tails_of(law: DiscreteLaplace | DiscreteGaussian) -> list[int] | None:
    """P(|Z| >= k) for k = 1, 2, ... in units of 2^-320, rounded; None where there are too many to add up."""

    def laplace(scale: arb) -> list[int]:
        q = (-1 / scale).exp()
        tail, found = 2 * q / (1 + q), list[int]()
        while tail > arb(2) ** -80 and len(found) < 40 * _SUMMED:
            found.append(_whole(tail))
            tail *= q
        return found

    def gauss(variance: arb) -> list[int]:
        weights, step = [arb(1)], (-1 / (2 * variance)).exp()
        odd, square = step, step * step  # exp(-(2k + 1)/(2 sigma^2)): the ratio of neighbours
        while weights[-1] > arb(2) ** -340:
            weights.append(weights[-1] * odd)
            odd *= square
        above, found = arb(0), list[arb]()
        for weight in reversed(weights[1:]):
            above += 2 * weight
            found.append(above)
        whole = 1 + above
        return [_whole(tail / whole) for tail in reversed(found) if tail > whole * arb(2) ** -80]

    if isinstance(law, DiscreteLaplace):
        scale = law.scale
        if scale > _SUMMED:
            return None
        return at_precision(3 * _BITS, lambda: laplace(arb(fmpq(scale.numerator, scale.denominator))))
    variance = law.sigma_squared
    if variance > _SUMMED**2:
        return None
    return at_precision(3 * _BITS, lambda: gauss(arb(fmpq(variance.numerator, variance.denominator))))


def _whole(tail: arb) -> int:
    return int((tail * arb(2) ** _BITS).mid().floor().unique_fmpz())


def _wrong_integer(law: DiscreteLaplace | DiscreteGaussian) -> str:
    tails = tails_of(law)
    if tails is None:
        return ""
    falling = [-tail for tail in tails]  # bisect wants them to rise
    # All bits of V that are planted: at a border from each side, as late as in the third round.
    planted = [bits for tail in _spread(tails) for bits in _around(tail)]
    planted += [int.from_bytes(simulation(7).mac("words", i.to_bytes(4)), "little") for i in range(_CHANCE)]
    planted = [bits % (1 << _BITS) for bits in planted]
    words = np.array([_words(bits, i) for i, bits in enumerate(planted)], dtype=np.uint64)

    def more(i: int, round_: int) -> tuple[int, int]:
        rest = planted[i] << _SECOND << 128 * (round_ - 1)  # behind the first two words, round by round
        part = (rest >> (_BITS - 128)) & ((1 << 128) - 1)
        return part >> 64, part & ((1 << 64) - 1)

    expected = np.array([bisect_left(falling, -bits) for bits in planted])
    expected *= np.where(np.arange(len(planted)) % 2, -1, 1)
    # Few draws are interpreted, many are compiled; every third few will do: what is undecided is slow in both.
    parts = [("a few", slice(i, i + 8)) for i in range(0, len(words), 24)]
    for told, some in (*parts, ("at once", slice(0, len(words)))):
        drawn = sampler.draw(law, words[some], _from(more, some.start))
        if (drawn != expected[some]).any():
            at = int(np.flatnonzero(drawn != expected[some])[0])
            return f"a draw of {law.text()} ({told}) is {drawn[at]} where its bits say {expected[some][at]}"
    return ""


def _from(more: More, first: int) -> More:
    return lambda i, round_: more(first + i, round_)


def _spread(tails: Sequence[int]) -> Iterable[int]:
    """Some of them: the first ones, and others farther and farther out."""
    last = len(tails) - 1
    wanted = {round(last ** (i / (_BORDERS - 1))) for i in range(_BORDERS)} if last > 0 else {0}
    return [tails[i] for i in sorted({*range(min(8, len(tails))), *wanted}) if i <= last]


def _around(tail: int) -> list[int]:
    """Numbers on both sides of a border, that differ from it in the first word, the second one, the third round."""
    return [tail + sign * (1 << (_BITS - bits)) for bits in (40, _FIRST + 3, 120, 260) for sign in (1, -1)]


def _words(bits: int, i: int) -> tuple[int, int]:
    """The first two words of an address: every second draw has the other sign."""
    first = bits >> (_BITS - _FIRST)
    return first << 1 | i % 2, (bits >> (_BITS - _SECOND)) & ((1 << 64) - 1)


# -- real numbers ------------------------------------------------------------------------------------------------------


def _real_words() -> Words:
    """At the borders and in the middle of the cells that are interpolated in, in every octave, and in the tail."""
    found = list[tuple[int, int]]()
    for octave in range(62):
        cells = range(32, 64, 1 if octave < 6 else 9)
        for cell in cells:
            for part in (0, 1, 1 << 19, (1 << 20) - 1):
                bits = ((cell << 20) + part) << (_SECOND - 26 - octave) if octave <= _SECOND - 26 else 0
                found.append(_words(bits << (_BITS - _SECOND), len(found)))
    return np.array(found, dtype=np.uint64)


def _uniform(words: Words, i: int, bits: int, *, signed: bool) -> arb:
    first, second = int(words[i, 0]), int(words[i, 1])
    return arb(((first >> 1 if signed else first) << 64) | second) / arb(2) ** bits


def _wrong_real(kind: str) -> str:
    words = _real_words()
    reals = Reals(kind, words.reshape(-1, 1, 2), lambda i, j, round_: (0, 0))  # type: ignore[arg-type]
    doubles = reals.doubles()

    def wrong() -> str:
        for i in range(len(words)):
            v, sign = _uniform(words, i, _SECOND, signed=True), -1 if int(words[i, 0]) & 1 else 1
            radius = float(reals.radius[i])
            if not radius < _SURE:
                return f"a {kind} number is known to {radius:.0e} only"
            if not _lies(kind, v, arb(sign * float(reals.value[i, 0])), arb(radius)):
                return f"a {kind} number is farther than {radius:.0e} from what its bits say"
            twofold = arb(sign * float(doubles.high[i, 0])) + arb(sign * float(doubles.low[i, 0]))
            if not _lies(kind, v, twofold, arb(_DOUBLE)):
                return f"a {kind} number of two floats is farther than 2^-98 from what its bits say"
        return ""

    return at_precision(_BITS, wrong)


def _lies(kind: str, v: arb, value: arb, radius: arb) -> bool:
    """Whether the variate of V may lie within `radius` of a value: its tail function falls."""
    if not v > 0:
        return True
    near, far = value - radius, value + radius
    if kind == "laplace":
        return not ((-near).exp() < v or (-far).exp() > v)
    root = arb(2).sqrt()
    return not ((near / root).erfc() < v or (far / root).erfc() > v)


def _wrong_variate(kind: str) -> str:
    words = _real_words()
    found = AddressedVariates(kind, words, lambda i, round_: (0, 0))  # type: ignore[arg-type]

    def wrong() -> str:
        for i in range(len(words)):
            value = -_uniform(words, i, 128, signed=False).log()
            if kind == "gumbel":
                value = -value.log()
            lower, upper = float(found.lower[i]), float(found.upper[i])
            if not value.is_finite():
                continue
            if value < arb(lower) or value > arb(upper):
                return f"a {kind} number lies in [{lower:.17g}, {upper:.17g}], which is not what its bits say"
            if not upper - lower < _SURE * max(1.0, math.fabs(lower)):
                return f"a {kind} number is known to {upper - lower:.0e} only"
        return ""

    return at_precision(_BITS, wrong) or wrong_leader()
