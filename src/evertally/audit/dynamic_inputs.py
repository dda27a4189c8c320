"""What a construction asks its static mechanism for: the exact input of every release, with its budget and its place.

Privacy of a construction is that of its releases (dynamic-data 2.1, 6.6): given the boundaries and the restarts, which
are public, budget times distance of the inputs adds up over all releases. So two neighbouring streams are played under
noise that fixes boundaries and restarts, and every release is written down. For independent Laplace releases the sum is
what is really lost; for others it is what their own proofs allow.

Boundaries cost something themselves. The probability of given boundaries on two streams is asked of the program, by
the smallest noise that closes a segment at a tick (`Boundaries`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from evertally.audit.dynamic_streams import Pair, Players, Stream
from evertally.audit.scripts import ALWAYS, NEVER
from evertally.audit.watching import watched
from evertally.counting.process import FloatArray, IntArray
from evertally.dynamic.node import SizeRelease
from evertally.dynamic.static.rounds import Rounds
from evertally.dynamic.static.weights_update import MultiplicativeWeights
from evertally.noise import DiscreteLaplace, ItemSource, Law, ZeroNoise
from evertally.noise.source import ZeroSource
from evertally.privacy import PureDP

_LARGE_SIZE, _LARGER_COUNT = 2**40, 2**44  # what a node believes to hold, and to have lost

Closes = Callable[[int], bool]  # whether a segment ends with a tick
Restarts = Callable[[int, int], bool]  # whether a node of a level opens a new round at a segment


class Fixed(ZeroSource):
    """Noise that fixes boundaries and restarts, and is zero otherwise. It notes the tests of partitions."""

    def __init__(self, closes: Closes, restarts: Restarts, halts: bool, planted: dict[tuple[str, int], int]) -> None:
        self._closes, self._restarts, self._halts, self._planted = closes, restarts, halts, planted
        self.laws_of: dict[str, Law] = {}
        self.asked: list[tuple[str, int]] = []

    def draws(self, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0) -> IntArray:
        index = [int(node) for node in nodes]
        self.laws_of.setdefault(lane, law)
        self.asked += [(lane, node) for node in index]
        return np.array([[self._value(lane, node)] * coordinates for node in index], dtype=np.int64).reshape(
            len(index), coordinates
        )

    def _value(self, lane: str, node: int) -> int:
        if (lane, node) in self._planted:
            return self._planted[lane, node]
        if lane.endswith("/mu"):
            return ALWAYS if self._closes(node) else NEVER
        if lane.startswith("interval/size/"):
            again = int(lane.split("/")[3]) > 1
            return -_LARGE_SIZE if self._halts and again else _LARGE_SIZE
        if lane.startswith("interval/counted/"):
            return _LARGER_COUNT if self._restarts(int(lane.split("/")[2]), node) else 0
        return 0


@dataclass
class FixedKey(ZeroNoise):
    """The key of such noise."""

    closes: Closes = lambda tick: True
    restarts: Restarts = lambda level, segment: False
    halts: bool = False
    planted: dict[tuple[str, int], int] = field(default_factory=dict)
    source_made: Fixed | None = None

    def source(self, *path: str | bytes) -> ItemSource:
        self.source_made = Fixed(self.closes, self.restarts, self.halts, self.planted)
        return self.source_made


@dataclass(frozen=True)
class Asked:
    """One release."""

    amount: Fraction  # epsilon, or rho
    pure: bool
    data: tuple[int, ...]


@dataclass
class Releases:
    """All releases of a run by their places, and what was wrong with the places."""

    by_place: dict[tuple[str, int], Asked] = field(default_factory=dict)
    twice: str = ""

    def note(self, data: IntArray, budget: Any, place: Any) -> None:
        pure = isinstance(budget, PureDP)
        asked = Asked(budget.exact_epsilon if pure else budget.exact_rho, pure, tuple(data.tolist()))
        before = self.by_place.setdefault((place.lane, place.node), asked)
        if before != asked:
            self.twice = f"the noise of {place.lane} {place.node} was used for other data, or at another scale"


@contextmanager
def one_round() -> Iterator[None]:
    """Multiplicative weights work for one round, for the time of a `with` block in which their input is looked at:
    rounds, which take nearly all the time, see that input alone, and what they make of it is taken for granted."""
    real = MultiplicativeWeights.rounds

    def first(self: MultiplicativeWeights, *asked: Any, **more: Any) -> Rounds:
        return replace(real(self, *asked, **more), count=1)

    MultiplicativeWeights.rounds = first  # type: ignore[method-assign]
    try:
        yield
    finally:
        MultiplicativeWeights.rounds = real  # type: ignore[method-assign]


def releases_of(players: Players, stream: Stream, key: FixedKey) -> Releases:
    """Plays a stream, and lets the static mechanism (and the sizes of nodes) tell what they were asked for."""
    noted = Releases()

    def note(_: Any, data: IntArray, budget: Any, place: Any, *more: Any) -> None:
        noted.note(data, budget, place)

    with one_round(), watched(type(players.model._taken.static), "fit", note), watched(SizeRelease, "fit", note):
        for _ in players.play(stream, key):
            pass
    return noted


@dataclass(frozen=True)
class Spent:
    """What telling two streams apart costs in releases: epsilon and rho; `wrong` says what no budget pays for."""

    epsilon: Fraction
    rho: Fraction
    wrong: str = ""


def spent(one: Releases, other: Releases) -> Spent:
    """Budget times distance for pure releases, rho times its square for others, in exact fractions."""
    wrong = one.twice or other.twice
    left, right = one.by_place, other.by_place
    if left.keys() != right.keys() or any(left[p].amount != right[p].amount for p in left.keys() & right.keys()):
        wrong = wrong or "which releases are made, and at which budgets, follows from data"
    epsilon = rho = Fraction(0)
    for place in left.keys() & right.keys():
        a, b = left[place], right[place]
        distance = sum(abs(x - y) for x, y in zip(a.data, b.data, strict=True))
        if a.pure:
            epsilon += a.amount * distance
        else:
            rho += a.amount * distance**2
    return Spent(epsilon, rho, wrong)


# -- boundaries --------------------------------------------------------------------------------------------------------


_FARTHEST = 2**14  # from a threshold


@dataclass(frozen=True)
class Boundaries:
    """The law of given boundaries. `cuts` has for each partition its segments, each with the cut of its ticks: the
    smallest noise that closes it there if the threshold has none; None where it is closed in any case."""

    cuts: tuple[tuple[tuple[tuple[int | None, ...], bool], ...], ...]
    scales: tuple[tuple[float, float], ...]  # of tau and mu

    def log_probability(self) -> float:
        return math.fsum(
            _segment(ticks, closes, *scales)
            for segments, scales in zip(self.cuts, self.scales, strict=True)
            for ticks, closes in segments
        )


def boundaries_of(players: Players, stream: Stream, closes: Closes) -> Boundaries | None:
    """Read off the program; None where there is no partition."""
    key = FixedKey(closes)
    with one_round():
        for _ in players.play(stream, key):
            pass
    assert key.source_made is not None
    source = key.source_made
    lanes = sorted(lane for lane in source.laws_of if lane.endswith("/mu"))
    if not lanes:
        return None
    found, scales = [], []
    for lane in lanes:
        threshold = lane[: -len("mu")] + "tau"
        laws = source.laws_of[threshold], source.laws_of[lane]
        scales.append(tuple(float(law.scale) for law in laws if isinstance(law, DiscreteLaplace)))
        found.append(tuple(_segments(players, stream, closes, lane, threshold)))
    return Boundaries(tuple(found), tuple((a, b) for a, b in scales))


def _segments(
    players: Players, stream: Stream, closes: Closes, lane: str, threshold: str
) -> Iterator[tuple[tuple[int | None, ...], bool]]:
    def closed(noise: int, tick: int) -> int:
        """How many segments are closed after a tick whose test has this noise."""
        key = FixedKey(closes, planted={(lane, tick): noise})
        with one_round():
            for _ in players.of(tick).play(stream, key):
                pass
        assert key.source_made is not None
        # One threshold for each segment: the first, and one more for each that was closed.
        return len({node for name, node in key.source_made.asked if name == threshold}) - 1

    ticks: list[int | None] = []
    before = 0
    for tick in range(1, players.ticks + 1):
        forced = closed(NEVER, tick) > before
        ticks.append(None if forced else _least(closed, tick, before))
        if forced or closes(tick):
            yield tuple(ticks), True
            ticks, before = [], before + 1
    if ticks:
        yield tuple(ticks), False


def _least(closed: Callable[[int, int], int], tick: int, before: int) -> int:
    """The smallest noise that closes a segment."""
    low, high = -_FARTHEST, _FARTHEST  # does not close, closes
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if closed(middle, tick) > before else (middle, high)
    return high


def _segment(cuts: Sequence[int | None], closes: bool, tau: float, mu: float) -> float:
    """ln of the probability that a segment goes on until its last tick, and ends there or not."""
    reach = int(40 * max(tau, mu)) + 1
    rho = np.arange(-reach, reach + 1)
    alive: FloatArray = -np.abs(rho) / tau - math.log(float(np.sum(np.exp(-np.abs(rho) / tau))))
    for number, cut in enumerate(cuts, start=1):
        last = number == len(cuts)
        if cut is None:  # closed whatever the noise says
            continue
        # P(Z < k) = P(Z >= 1 - k)
        alive = alive + np.log(_at_least(cut + rho if last and closes else 1 - cut - rho, mu))
    return float(np.logaddexp.reduce(alive))


def _at_least(k: IntArray, b: float) -> FloatArray:
    """P(Z >= k) of the discrete Laplace law."""
    q = math.exp(-1 / b)
    upper = np.exp(-np.maximum(k, 0) / b) / (1 + q)
    lower = 1 - np.exp(-np.maximum(1 - k, 0) / b) / (1 + q)
    return np.asarray(np.where(k > 0, upper, lower))


def partition_loss(players: Players, pair: Pair, closes: Closes) -> float:
    """|ln| of the ratio of the probabilities of these boundaries; 0 where there is no partition."""
    sides = [boundaries_of(players, stream, closes) for stream in (pair.left, pair.right)]
    if sides[0] is None or sides[1] is None:
        return 0.0
    return abs(sides[0].log_probability() - sides[1].log_probability())
