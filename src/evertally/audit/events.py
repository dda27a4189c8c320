"""What to bet on: events and scores, chosen by games that are not judged.

Several ways to look at games, because each sees what the others do not: the adversary's own score, if it has one (the
optimal test where the law is known), a linear score with trained weights (a change of the mean), the same with signs,
sizes and squares, and marks, which are what a place of a game can show: exact values, fractions, residues, the finest
bit of a float, differences of neighbours, labels, the form of the answer. Of each kind of marks the most telling one
is taken, and all together that came on one side and never on the other.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evertally.audit import estimators
from evertally.audit.bets import Bet, DivergenceBet, EventBet, Scale, Score
from evertally.audit.game import FloatArray, IntArray
from evertally.audit.outcomes import LABEL, Place, Seen

Codes = NDArray[np.int64]
_FINE = 1e-6  # differences below it are float rounding: noise that cancels leaves them
_MOST_MARKS = 20_000  # in a union
_MOST_LABELS = 64


@dataclass(frozen=True)
class Look:
    """One number for each game: what is looked at, and in which place. Marks are its values."""

    kind: str
    code: Callable[[Seen], Codes]


def bets_of(left: Seen, right: Seen, scale: Scale) -> list[Bet]:
    """One generation of bets, from games that may be looked at."""
    places = sorted(set(left.places) | set(right.places))
    found = _linear_bets(left, right, places, scale)
    if left.scores is not None and right.scores is not None:
        found += _score_bets("the adversary's score", lambda seen: _finite(seen.scores), left, right, scale)
    kinds: dict[str, list[Look]] = {}
    for look in _looks(left, right, places):
        kinds.setdefault(look.kind, []).append(look)
    for kind, looks in kinds.items():
        found += _mark_bets(kind, looks, left, right, scale)
    return found


# -- marks -----------------------------------------------------------------------------------------------------------


def _looks(left: Seen, right: Seen, places: list[Place]) -> Iterator[Look]:
    ticks, numbers = range(len(left.ticks)), [place for place in places if not place[1].endswith(LABEL)]
    for tick in ticks:
        yield Look("forms", partial(_form, tick))
    yield Look("forms", _forms)
    for tick, label in sorted(left.labels | right.labels)[:_MOST_LABELS]:
        yield Look("labels", partial(_label, tick, label))
    if numbers:
        yield Look("zeros", partial(_count, numbers, lambda x: x == 0))
        yield Look("zeros", partial(_count, numbers, lambda x: ~np.isfinite(x)))
        yield Look("fractions", partial(_count, numbers, lambda x: np.mod(x, 1.0) != 0))
        yield Look("bits", lambda seen: np.max([_finest_bit(seen.released(place)) for place in numbers], axis=0))
    for place in numbers:
        yield from _looks_at(place)
    for place in places:
        yield Look("values", partial(_whole, [place]))
    for before, after in _neighbours(numbers):
        yield Look("differences", partial(_difference, before, after))
    if len(places) > len(ticks):
        for tick in ticks:
            yield Look("answers", partial(_whole, [place for place in places if place[0] == tick]))
    yield Look("transcripts", partial(_whole, places))


def _looks_at(place: Place) -> Iterator[Look]:
    yield Look("fractions", lambda seen: _rounded(np.mod(seen.numbers(place), 1.0)))
    yield Look("bits", lambda seen: _finest_bit(seen.released(place)))
    yield Look("zeros", lambda seen: _special(seen.released(place)))
    for divisor in (2, 3, 10):
        yield Look("residues", partial(_residue, place, divisor))


def _neighbours(places: list[Place]) -> Iterator[tuple[Place, Place]]:
    """The same place one tick before, and the place before in the same tick."""
    known, last = set(places), None
    for place in places:
        if (place[0] - 1, place[1]) in known:
            yield (place[0] - 1, place[1]), place
        if last is not None and last[0] == place[0]:
            yield last, place
        last = place


def _form(tick: int, seen: Seen) -> Codes:
    return seen.forms(tick).astype(np.int64)


def _forms(seen: Seen) -> Codes:
    """How often the form is another one than at first."""
    first = seen.forms(0)
    others = [seen.forms(tick) != first for tick in range(len(seen.ticks))]
    return np.asarray(np.sum(others, axis=0), dtype=np.int64)


def _label(tick: int, label: float, seen: Seen) -> Codes:
    return seen.has(tick, label).astype(np.int64)


def _difference(before: Place, after: Place, seen: Seen) -> Codes:
    return _rounded(seen.numbers(after) - seen.numbers(before))


def _whole(places: list[Place], seen: Seen) -> Codes:
    """A number for all that is seen in some places."""
    found = np.zeros(seen.games, dtype=np.int64)
    with np.errstate(over="ignore"):
        for place in places:
            bits = (seen.numbers(place) + 0.0).view(np.int64)  # -0.0 is 0 here, and told apart in `_special`
            found = (found ^ bits) * 0x9E3779B97F4A7C1
    return found


def _rounded(x: FloatArray) -> Codes:
    return np.asarray(np.clip(np.nan_to_num(np.rint(x / _FINE), nan=-1e18), -1e18, 1e18)).astype(np.int64)


def _residue(place: Place, divisor: int, seen: Seen) -> Codes:
    x = seen.numbers(place)
    whole = np.isfinite(x) & (np.abs(x) < 2.0**53) & (np.mod(np.nan_to_num(x), 1.0) == 0)
    return np.where(whole, np.mod(np.where(whole, x, 0.0), divisor), -1).astype(np.int64)


def _special(x: FloatArray) -> Codes:
    code = np.where(np.isnan(x), 3, np.where(np.isposinf(x), 4, np.where(np.isneginf(x), 5, 0)))
    return np.where(x == 0, np.where(np.signbit(x), 2, 1), code).astype(np.int64)


def _finest_bit(x: FloatArray) -> Codes:
    """k where x is an odd multiple of 2^-k; 0 for integers. Sums of floats have coarser bits than what is added."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(x), x, 0.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    zeros = np.log2(np.maximum(whole & -whole, 1)).astype(np.int64)
    return np.where(whole == 0, 0, np.maximum(0, 53 - exponent - zeros)).astype(np.int64)


def _count(places: list[Place], what: Callable[[FloatArray], Any], seen: Seen) -> Codes:
    found = np.zeros(seen.games, dtype=np.int64)
    with np.errstate(invalid="ignore"):
        for place in places:
            found += what(seen.released(place))
    return found


@dataclass
class _Best:
    worth: float
    look: Look
    mark: int
    rates: tuple[float, float]


class _Counted(NamedTuple):
    """The marks of a look; for each side which of them every game has, and how many games have each."""

    look: Look
    marks: Codes
    sides: tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]

    @classmethod
    def of(cls, look: Look, left: Seen, right: Seen) -> _Counted:
        marks, index = np.unique(np.concatenate([look.code(left), look.code(right)]), return_inverse=True)
        here, there = index[: left.games], index[left.games :]
        counts = [np.bincount(side, minlength=marks.size) for side in (here, there)]
        return cls(look, marks, ((here, counts[0]), (there, counts[1])))


def _mark_bets(kind: str, looks: list[Look], left: Seen, right: Seen, scale: Scale) -> list[Bet]:
    """For both directions: the best mark, and all marks that several games on one side have and none on the other."""
    found: list[Bet] = []
    counted = [_Counted.of(look, left, right) for look in looks]
    for swapped in (False, True):
        likely, other = (right, left) if swapped else (left, right)
        best: _Best | None = None
        only: list[tuple[Look, IntArray]] = []
        union = np.zeros(likely.games, dtype=bool)
        for look, marks, sides in counted:
            (index, a), (_, b) = sides[::-1] if swapped else sides
            worth = _worth(a, b, likely.games, scale.delta)
            top = int(np.argmax(worth))
            if marks.size > 1 and (best is None or worth[top] > best.worth):
                rates = a[top] / likely.games, b[top] / other.games
                best = _Best(float(worth[top]), look, int(marks[top]), rates)
            alone = (a >= 2) & (b == 0)
            if alone.any() and len(only) < _MOST_MARKS:
                only.append((look, marks[alone]))
                union |= alone[index]
        if best is not None and best.worth > 0:
            event = _one_mark(best.look, best.mark)
            found.append(EventBet(kind, event, swapped, scale, _shrunk(*best.rates, likely.games)))
        if only:
            rates = _shrunk(float(union.mean()), 0.0, likely.games)
            found.append(EventBet(f"{kind} of one side", _any_mark(only), swapped, scale, rates))
    return found


def _worth(a: IntArray, b: IntArray, games: int, delta: float) -> FloatArray:
    """log(a/b), less a standard deviation: rare events have to be one-sided to be worth anything."""
    with np.errstate(divide="ignore", invalid="ignore"):
        likely = np.maximum(a + 0.5 - games * delta, 1e-9)
        return np.asarray(np.log(likely / (b + 0.5)) - np.sqrt(1 / (a + 0.5) + 1 / (b + 0.5)))


def _shrunk(p: float, q: float, games: int) -> tuple[float, float]:
    """Rates of an event that was chosen because it looked well: a standard deviation less of it."""
    p, q = (p * games + 0.5) / (games + 1), (q * games + 0.5) / (games + 1)
    return max(p - math.sqrt(p * (1 - p) / games), 0.0), min(q + math.sqrt(q * (1 - q) / games), 1.0)


def _one_mark(look: Look, mark: int) -> Score:
    return lambda seen: look.code(seen) == mark


def _any_mark(only: list[tuple[Look, IntArray]]) -> Score:
    def event(seen: Seen) -> Any:
        found = np.zeros(seen.games, dtype=bool)
        for look, marks in only:
            found |= np.isin(look.code(seen), marks)
        return found

    return event


# -- linear scores ---------------------------------------------------------------------------------------------------


def _linear_bets(left: Seen, right: Seen, places: list[Place], scale: Scale) -> list[Bet]:
    numbers = [place for place in places if not place[1].endswith(LABEL)]
    if not numbers:
        return []
    found: list[Bet] = []
    features = _Features(numbers, left, right)
    for name, shape in (("linear", np.asarray), ("shapes", features.with_shape)):
        if name == "shapes" and len(numbers) > estimators.MOST_SHAPED:
            continue
        weights = estimators.direction(*(shape(features(seen)) for seen in (left, right)))
        found += _score_bets(name, _score(features, shape, weights), left, right, scale)
    return found


def _score_bets(name: str, score: Score, left: Seen, right: Seen, scale: Scale) -> list[Bet]:
    found: list[Bet] = []
    a, b = score(left), score(right)
    for swapped, (p, q) in ((False, (a, b)), (True, (b, a))):
        for part, (event, rates) in zip(("", ", rare"), _thresholds(score, p, q, scale), strict=False):
            found.append(EventBet(name + part, event, swapped, scale, rates))
        if scale.unit == "rho":
            found.append(_divergence(name, score, p, q, swapped, scale))
    return found


def _finite(scores: FloatArray | None) -> FloatArray:
    return np.nan_to_num(np.zeros(0) if scores is None else scores, posinf=1e9, neginf=-1e9)


class _Features:
    """The numbers of a game, each in units of its spread; what is no number is 0."""

    def __init__(self, places: list[Place], *sides: Seen) -> None:
        self._places = places
        self._middle, self._spread = np.zeros(len(places)), np.ones(len(places))
        both = np.concatenate([self(seen) for seen in sides])
        self._middle = np.median(both, axis=0)
        deviation = np.quantile(np.abs(both - self._middle), 0.75, axis=0)
        self._spread = np.where(deviation > 0, deviation, np.maximum(both.std(axis=0), 1e-12))

    def __call__(self, seen: Seen) -> FloatArray:
        numbers = np.stack([seen.numbers(place) for place in self._places], axis=1)
        numbers = np.nan_to_num(numbers - self._middle, posinf=0.0, neginf=0.0) / self._spread
        return np.asarray(np.clip(numbers, -1e3, 1e3))

    def with_shape(self, features: FloatArray) -> FloatArray:
        """Signs, sizes and squares: what is linear for Laplace noise, missing noise and noise that follows the data."""
        shapes = [features, np.sign(features), np.abs(features), np.clip(features, -1, 1), np.minimum(features**2, 9)]
        return np.concatenate([*shapes, features == 0], axis=1)


def _score(features: _Features, shape: Callable[[FloatArray], FloatArray], weights: FloatArray) -> Score:
    """Several bets stake on the same score of the same games: those of both sides are kept."""
    last: deque[tuple[Seen, FloatArray]] = deque(maxlen=2)

    def score(seen: Seen) -> FloatArray:
        for known, scores in last:
            if known is seen:
                return scores
        last.append((seen, shape(features(seen)) @ weights))
        return last[-1][1]

    return score


def _thresholds(
    score: Score, p: FloatArray, q: FloatArray, scale: Scale
) -> Iterator[tuple[Score, tuple[float, float]]]:
    """The event {score on the side of p's} with the largest loss that is to be trusted, and a rarer one."""
    if p.mean() < q.mean():
        yield from _thresholds(lambda seen: -score(seen), -p, -q, scale)
        return
    candidates = np.unique(np.quantile(np.concatenate([p, q]), np.linspace(0.02, 0.995, 160)))
    a, b = (side.size - np.searchsorted(np.sort(side), candidates, side="right") for side in (p, q))
    worth = _worth(a, b, p.size, scale.delta)
    top = int(np.argmax(worth))
    rare = int(np.argmin(np.abs(a - a[top] / 4)))
    for at in (top, rare):
        c = float(candidates[at])
        yield partial(_beyond, score, c), _shrunk(a[at] / p.size, b[at] / q.size, p.size)


def _beyond(score: Score, threshold: float, seen: Seen) -> Any:
    return score(seen) > threshold


def _divergence(name: str, score: Score, p: FloatArray, q: FloatArray, swapped: bool, scale: Scale) -> Bet:
    """The score as a log-likelihood ratio of two normal laws, cut off where it pays."""
    variance = max(float(np.concatenate([p - p.mean(), q - q.mean()]).var()), 1e-18)
    slope, middle = (p.mean() - q.mean()) / variance, (p.mean() + q.mean()) / 2

    def ratio(values: FloatArray) -> FloatArray:
        return np.asarray(slope * (values - middle))

    def worth(reach: float) -> float:
        shown = np.clip(ratio(p), -reach, reach) - np.exp(np.clip(ratio(q), -reach, reach)) + 1
        most = reach + math.exp(reach) - 1 + scale.claimed
        level = min(scale.claimed, 0.8 * float(shown.mean()))
        return max(float(np.log1p(stake * (shown - level) / most).mean()) for stake in (0.9, 0.5, 0.25, 0.1, 0.05))

    reach = max((0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0), key=worth)
    return DivergenceBet(f"{name}, divergence", lambda seen: ratio(score(seen)), reach, swapped, scale)
