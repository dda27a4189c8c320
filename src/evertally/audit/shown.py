"""All that a release shows, beside its value: error bars, the row that windows are made of, windows themselves.

The promise is about everything that leaves. What is made of released numbers alone follows them, whatever the data: so
no number beside the value, and no combination of numbers, may be free of noise and yet tell one stream from another.
An error bar around the exact sum is such a number, and so is the difference of two queries that draw the same noise, or
of two labels. How wide an error bar is, is looked at as a number of its own: it betrays an event if it is one number
while nothing was counted, and another one since.

Two streams are played under the same keys. Some keys choose combinations that did not vary among them; other keys prove
them: what varies in at least half of the keys (narrower noise is not judged here) stays the same under _PROVE fresh
keys with a probability of 2^-_PROVE at most. A combination that never varies, and is another number on the other
stream, has no noise: its loss is infinite, whoever the neighbours are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evertally.audit.attacks import Finding
from evertally.audit.game import Factory, FloatArray, flat, take
from evertally.audit.outcomes import LABEL, Answer
from evertally.noise import simulation

_BAR = "error bar"  # what a place is called that says how wide one is
_ALIKE = ("one", "One", " one", "one ", "on\u00e8", "\uff4fne")  # different labels, if one looks closely
_CHOOSE, _PROVE = 30, 40  # keys
_FEW = 64  # columns from the first on, and as many from everywhere, that are looked at
_MOST_PLACES = 18  # fewer than keys that choose, or every combination would look constant
_SAME = 1e-7  # of the size of numbers: float rounding
_EXACT = 2.0**53  # beyond it floats are not what was shown: bounds of what has none

Play = Callable[[Any], dict[str, float]]  # what is shown of one game, by place, under a key


def shown_attack(make: Factory, left: Sequence[Any], right: Sequence[Any]) -> Finding:
    """Looks for what is shown of a mechanism without noise.

    >>> import evertally as et
    >>> make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=key)
    >>> shown_attack(make, [3, 0], [0, 0]).leaked
    False
    """
    return noiseless(
        "all that is shown", lambda key: _surfaces(make(key), left), lambda key: _surfaces(make(key), right)
    )


def noiseless(name: str, left: Play, right: Play) -> Finding:
    """Whether some combination of what is shown tells two streams apart, and never varies."""
    keys = [simulation(number).derive("shown") for number in range(_CHOOSE + _PROVE)]
    sides = [_Side.of([play(key) for key in keys]) for play in (left, right)]
    bare = _bare(*sides)
    if bare:
        return Finding(name, True, f"{bare} has no noise, and follows the data")
    places = _judged(*sides)
    if not places:
        return Finding(name, False, "no number is shown whose noise varies from key to key", looked=False)
    if len(places) > 1:
        a, b = (side.numbers(places) for side in sides)
        if _combined(a, b):
            return Finding(
                name, True, f"a combination of {', '.join(places[:4])} ... has no noise, and follows the data"
            )
    count = f"{len(sides[0].games[0])} numbers, {len(places)} of them combined"
    return Finding(name, False, f"{count}: under {_CHOOSE + _PROVE} keys each has noise, or does not follow the data")


def _surfaces(mechanism: Any, inputs: Sequence[Any]) -> dict[str, float]:
    """The numbers of some ticks, all that a reader gets of them, by part, tick and label."""
    found: dict[str, float] = {}
    before = None
    for tick, x in enumerate(inputs[: mechanism.horizon], start=1):
        release = take(mechanism, x)
        parts = _shown(release) | {"row": _numbers(release.row)}
        if before is not None and mechanism.differences and before.row is not None and release.row is not None:
            parts |= {f"window's {part}": read for part, read in _shown(mechanism.between(before, release)).items()}
        for part, read in parts.items():
            found |= {f"{part} at tick {tick}{place}": x for place, x in read.items()}
        before = release
    return found


def _shown(release: Any) -> dict[str, dict[str, float]]:
    """Value and interval, and how wide error bars are below and above the value."""
    value, lower, upper = map(_numbers, (release.value, *release.interval(0.05)))
    below = {place: x - lower[place] for place, x in value.items() if place in lower}
    above = {place: upper[place] - x for place, x in value.items() if place in upper}
    bars = {f"{_BAR} below": _sure(below, value), f"{_BAR} above": _sure(above, value)}
    return {"value": value, "lower": lower, "upper": upper, **bars, f"{_BAR} (stddev)": _numbers(release.stddev)}


def _numbers(shown: Any) -> dict[str, float]:
    answer = Answer(_narrowed(shown))
    numbers = zip(answer.places, answer.numbers, strict=True)
    return {place: x for place, x in numbers if not place.endswith(LABEL) and abs(x) < _EXACT}


def _narrowed(shown: Any) -> Any:
    """Of thousands of columns the first ones, some from everywhere and the last, the same of all that is shown."""
    if isinstance(shown, Mapping) and len(shown) > 2 * _FEW:
        return dict(_narrowed(list(shown.items())))
    if not isinstance(shown, np.ndarray | list) or len(shown) <= 2 * _FEW:
        return shown
    places = [*range(_FEW), *np.linspace(_FEW, len(shown) - 1, _FEW).astype(int)]
    return shown[places] if isinstance(shown, np.ndarray) else [shown[i] for i in places]


def _sure(widths: dict[str, float], around: dict[str, float]) -> dict[str, float]:
    """Those that rounding does not change much, however large the value is."""
    return {place: width for place, width in widths.items() if not 0 < abs(width) < 1e-6 * abs(around[place])}


@dataclass(frozen=True)
class _Side:
    """What one stream shows under every key."""

    games: list[dict[str, float]]

    @classmethod
    def of(cls, games: list[dict[str, float]]) -> _Side:
        common = [p for p in games[0] if all(p in game and np.isfinite(game[p]) for game in games)]
        return cls([{place: game[place] for place in common} for game in games])

    def numbers(self, places: Sequence[str]) -> FloatArray:
        return np.array([[game[place] for place in places] for game in self.games])

    def varies(self, place: str) -> bool:
        """Whether no number comes in more than half of the games."""
        return Counter(game[place] for game in self.games).most_common(1)[0][1] * 2 <= len(self.games)

    def only(self, place: str) -> float | None:
        """The number that all games show; of a width, which is a difference of floats, but for rounding."""
        seen = {game[place] for game in self.games}
        if len(seen) == 1 or (_BAR in place and _close(min(seen), max(seen))):
            return max(seen)
        return None


def _bare(a: _Side, b: _Side) -> str:
    """A place beside a value that varies, which is always the same on each side, and not the same on both."""
    for place in a.games[0]:
        if place.startswith("value") or place not in b.games[0]:
            continue
        value = "value" + place[place.index(" at ") :]
        beside = value if value in a.games[0] else next((p for p in a.games[0] if p.startswith("value")), None)
        if beside is None or beside not in b.games[0] or not (a.varies(beside) and b.varies(beside)):
            continue
        here, there = a.only(place), b.only(place)
        if here is not None and there is not None and here != there and not (_BAR in place and _close(here, there)):
            return place
    return ""


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME * max(abs(one), abs(other))


def _judged(a: _Side, b: _Side) -> list[str]:
    """Places whose numbers vary on both sides; of many, from everywhere."""
    found = [place for place in a.games[0] if place in b.games[0] and a.varies(place) and b.varies(place)]
    return found[:: -(-len(found) // _MOST_PLACES)] if found else []


def _combined(a: FloatArray, b: FloatArray) -> bool:
    """Whether a combination of columns is constant on each side, and another constant on the other."""
    middle, spread = a.mean(axis=0), a.std(axis=0)
    x, y = (a - middle) / spread, (b - middle) / spread
    chosen = x[:_CHOOSE] - x[:_CHOOSE].mean(axis=0)
    _, sizes, directions = np.linalg.svd(chosen)
    flat = directions[np.pad(sizes, (0, len(directions) - len(sizes))) < _SAME * len(chosen)]
    for direction in flat:
        here, there = x @ direction, y @ direction
        bound = _SAME * (np.abs(x).max() + np.abs(y).max())
        if np.ptp(here) < bound and np.ptp(there) < bound and abs(here[0] - there[0]) > 100 * bound:
            return True
    return False


def alike_attack(make: Factory, many: int) -> Finding:
    """Labels that are nearly the same, each many times and those before it more: the noise of each is its own, or the
    difference of two counts would be exact.

    >>> import evertally as et
    >>> make = lambda key: et.UnknownHistogram(guarantee=et.ApproxDP(1.0, 1e-6), horizon=4, key=key)
    >>> alike_attack(make, 900).leaked
    False
    """

    def play(more: int, key: Any) -> dict[str, float]:
        events = [label for number, label in enumerate(reversed(_ALIKE)) for _ in range(many + more * number)]
        mechanism = make(key)
        users = {"users": list(range(len(events)))} if mechanism.takes_users else {}
        value = mechanism.step_events(events, **users).value
        return {f"value of {label!r}": float(value[label]) for label in _ALIKE if label in value}

    # In steps that are wider than most noise: of those that show few labels, they are the first ones.
    return noiseless("labels nearly alike", partial(play, many // 5), partial(play, many // 6))


def order_attack(make: Factory, parts: Sequence[Sequence[Any]]) -> Finding:
    """Sends the events of a tick in two orders, under one key: who came first is nobody's business.

    >>> import evertally as et
    >>> make = lambda key: et.UnknownHistogram(guarantee=et.ApproxDP(1.0, 1e-6), horizon=4, key=key)
    >>> order_attack(make, [["one"] * 900, ["two"] * 900]).leaked
    False
    """
    name, shown = "order", []
    for order in (parts, parts[::-1]):
        release = make(simulation(5)).step_events([event for part in order for event in part])
        shown.append((list(flat(release.value)), list(release.value)))
    if shown[0] != shown[1]:
        return Finding(name, True, f"{shown[0][1]} when the first came first, {shown[1][1]} when it came last")
    return Finding(name, False, f"{len(shown[0][1])} labels, the same in either order of their events")
