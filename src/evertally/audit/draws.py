"""The draws themselves, word by word: whether a draw is what its random bits and the law that the code named say.

Exact laws, closed forms and thresholds read which laws are drawn and trust that a draw has its law; games see it only
where it is wrong often. Here the random words are chosen: at the borders of neighbouring values and of the cells that
samplers interpolate in, in the far tail, undecided after one word and after two. What the law says is written down once
more, in balls of many bits (docs/theory/samplers.md, 1 to 3, 7 and 8; only the definitions are used, no table).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from evertally.audit.addresses import wrong_addresses
from evertally.audit.attacks import Finding
from evertally.audit.certificates import wrong_table
from evertally.audit.game import Factory, take
from evertally.audit.known_code import once
from evertally.audit.leaders import wrong_leader
from evertally.audit.planted_bits import BITS, PlantedSource
from evertally.audit.tails import BITS as _BITS
from evertally.audit.tails import Tails
from evertally.audit.watching import watched
from evertally.balls import at_precision
from evertally.noise import DiscreteGaussian, DiscreteLaplace, sampler, simulation
from evertally.noise.reals import RealKind, RealLaw, Reals, SideBySide
from evertally.noise.source import KeyedSource
from evertally.noise.variates import AddressedVariates

Words = NDArray[np.uint64]
More = Callable[[int, int], tuple[int, int]]

_FIRST, _SECOND = 63, 127  # bits of V in one word and in two; the lowest bit of the first word is the sign
_BORDERS, _CHANCE = 16, 200  # borders of values that words are put at; words that are not chosen
_ROUNDS = 8  # of bits that a draw may ask for: what is planted is decided by three
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
        return _wrong_integer(law) or _wrong_table_of(law)
    if isinstance(law, RealLaw):
        return _wrong_real(law.kind) or _wrong_table_of(law)
    return _wrong_variate(law) or _wrong_table_of(law) if law in ("gumbel", "exponential") else ""


def _wrong_table_of(law: Any) -> str:
    """Of the table that a law is looked up in: narrow Gaussian laws have none, and logarithms share one."""
    if isinstance(law, DiscreteGaussian) and not law.is_wide():
        return ""
    kind = "normal" if isinstance(law, DiscreteGaussian) else getattr(law, "kind", "laplace")
    return once("evertally.noise", ("table", kind), partial(wrong_table, kind))


def _named(law: Any) -> str:
    return law.text() if hasattr(law, "text") and not isinstance(law, RealLaw) else str(getattr(law, "kind", law))


# -- integers ----------------------------------------------------------------------------------------------------------


@contextmanager
def _tails_once() -> Iterator[None]:
    """Each tail of a narrow Gaussian law is a sum of hundreds of terms, and all words around a border ask for the same
    few: the program computes them once."""
    real = DiscreteGaussian.tail
    known: dict[Any, arb] = {}

    def tail(self: DiscreteGaussian, k: int) -> arb:
        asked = self, k, ctx.prec
        if asked not in known:
            known[asked] = real(self, k)
        return known[asked]

    DiscreteGaussian.tail = tail  # type: ignore[method-assign]
    try:
        yield
    finally:
        DiscreteGaussian.tail = real  # type: ignore[method-assign]


@_tails_once()
def _wrong_integer(law: DiscreteLaplace | DiscreteGaussian) -> str:
    tails = Tails(law)
    # All bits of V that are planted: at a border from each side, as late as in the third round.
    planted = [bits for k in _spread(tails.last) for bits in _around(tails.at(k))]
    planted += [int.from_bytes(simulation(7).mac("words", i.to_bytes(4)), "little") for i in range(_CHANCE)]
    planted = [bits % (1 << _BITS) for bits in planted]
    words = np.array([_words(bits, i) for i, bits in enumerate(planted)], dtype=np.uint64)

    def more(i: int, round_: int) -> tuple[int, int]:
        if round_ > _ROUNDS:
            raise _EndlessError
        rest = planted[i] << _SECOND << 128 * (round_ - 1)  # behind the first two words, round by round
        part = (rest >> (_BITS - 128)) & ((1 << 128) - 1)
        return part >> 64, part & ((1 << 64) - 1)

    expected = np.array([tails.says(bits) for bits in planted])
    expected *= np.where(np.arange(len(planted)) % 2, -1, 1)
    # Few draws are interpreted, many are compiled; every third few will do: what is undecided is slow in both.
    parts = [("a few", slice(i, i + 8)) for i in range(0, len(words), 24)]
    for told, some in (*parts, ("at once", slice(0, len(words)))):
        try:
            drawn = sampler.draw(law, words[some], _from(more, some.start))
        except _EndlessError:
            return f"a draw of {law.text()} ({told}) is not decided by {_ROUNDS} rounds of bits that decide it"
        if (drawn != expected[some]).any():
            at = int(np.flatnonzero(drawn != expected[some])[0])
            return f"a draw of {law.text()} ({told}) is {drawn[at]} where its bits say {expected[some][at]}"
    return ""


class _EndlessError(Exception):
    """Bits are asked for that nobody needs."""


def _from(more: More, first: int) -> More:
    return lambda i, round_: more(first + i, round_)


def _spread(last: int) -> Iterable[int]:
    """Some values: the first ones, and others farther and farther out."""
    wanted = {round(last ** (i / (_BORDERS - 1))) for i in range(_BORDERS)} if last > 1 else {1}
    return [k for k in sorted({*range(1, min(8, last) + 1), *wanted}) if k <= last]


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


def _wrong_real(kind: RealKind) -> str:
    words = _real_words()
    near_one = words[: len(words) // 62][-4:]  # of the first octave: small numbers, that are known best
    told = _wrong_reals(kind, words.reshape(-1, 1, 2))
    # Numbers of a node share a bound, which is that of the worst: wherever it stands.
    for column in (0, 1, 2):
        mixed = np.broadcast_to(near_one[0], (len(words), 3, 2)).copy()
        mixed[:, column] = words
        told = told or _wrong_reals(kind, mixed[:: 7 if column else 1])
    return told or _wrong_tails(kind)


def _wrong_reals(kind: RealKind, words: Words) -> str:
    nodes, columns = words.shape[:2]
    reals = Reals(kind, words, _no_more)
    parts = [Reals(kind, words[:, j : j + 1], _no_more) for j in range(columns)]
    beside = SideBySide(parts) if columns > 1 else reals
    doubles = beside.doubles()

    def wrong() -> str:
        for i in range(nodes):
            for j in range(columns):
                v, sign = _uniform(words[:, j], i, _SECOND, signed=True), -1 if int(words[i, j, 0]) & 1 else 1
                for known in (reals, beside):
                    radius, value = float(known.radius[i]), float(known.value[i, j])
                    if not radius < _SURE:
                        return f"a {kind} number is known to {radius:.0e} only"
                    if not _lies(kind, v, arb(sign * value), arb(radius)):
                        return f"a {kind} number is farther than {radius:.0e} from what its bits say"
                    if abs(value) > float(known.size[i]):
                        return f"a {kind} number is larger than is said of all of its node"
                twofold = arb(sign * float(doubles.high[i, j])) + arb(sign * float(doubles.low[i, j]))
                if not _lies(kind, v, twofold, arb(_DOUBLE)):
                    return f"a {kind} number of two floats is farther than 2^-98 from what its bits say"
        return ""

    return at_precision(_BITS, wrong)


def _no_more(i: int, j: int, round_: int) -> tuple[int, int]:
    return 0, 0


def _wrong_tails(kind: RealKind) -> str:
    """Numbers so large that the bits of their first rounds are all zero."""
    source, law = PlantedSource(), RealLaw(kind, "tails")
    sizes = (5.7, 8.5, 11.2, 12.9, 16.4, 20.3) if kind == "normal" else (17.3, 36.9, 60.1, 87.2, 140.3, 210.4)
    for node, size in enumerate(sizes):
        source.plant(("tails", node, 0), kind, arb(size) * (-1) ** node)
    reals = source.reals("tails", law, range(len(sizes)))
    doubles = reals.doubles()

    def wrong() -> str:
        for node in range(len(sizes)):
            exact, radius = source.variate("tails", law, node, 0), arb(float(reals.radius[node]))
            if abs(exact - arb(float(reals.value[node, 0]))) > radius or not radius < arb(_SURE):
                return f"a {kind} number of the far tail is not within {float(radius):.0e} of what its bits say"
            twofold = arb(float(doubles.high[node, 0])) + arb(float(doubles.low[node, 0]))
            if abs(exact - twofold) > arb(_DOUBLE):
                return f"a {kind} number of two floats is farther than 2^-98 from what its bits say"
        return ""

    return at_precision(BITS, wrong)


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
