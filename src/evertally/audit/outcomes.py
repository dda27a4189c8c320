"""What a mechanism of which nothing is known gives away in a tick: numbers, and all that is no number.

An adversary sees more than numbers: of what type an answer is, which keys and labels it has, how long it is, whether it
is -0.0 or NaN, and that there was none, because the mechanism failed. All of it is kept here, game by game, so that
`audit.events` can look for whatever one side shows and the other does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from evertally.audit.game import Adversary, Factory, FloatArray, Game, IntArray, Side, as_input, many, take
from evertally.errors import ConfigurationError

Place = tuple[int, str]  # tick (from 0), and where in its answer
FAILED = "failed with "
LABEL = "'"  # at the end of the place of a label
_MOST_PLACES = 512  # numbers of a game that are looked at: more cannot be learned from so few games


class Answer:
    """One answer, taken apart: its form (types, keys, lengths), its numbers, and where in the answer they are.

    A label is a number too, one that hardly any other label has. The places follow from the form.

    >>> Answer({"a": 1.5, "b": (2, 3)}).form
    'dict{a: float, b: tuple[int, int]}'
    >>> Answer([7, "x"]).places
    ['/0', "/1'"]
    """

    def __init__(self, value: Any) -> None:
        self.numbers: list[float] = []
        self.places: list[str] = []
        self.form = self._read(getattr(value, "value", value), "")

    @classmethod
    def of_failure(cls, error: Exception) -> Answer:
        """What is seen where a step fails: the type of the exception and its text."""
        made = cls(str(error))
        made.form = FAILED + type(error).__name__
        return made

    def _read(self, value: Any, place: str) -> str:
        kind = type(value).__name__
        if isinstance(value, Number | np.bool_):
            self._number(value, place)
        elif isinstance(value, str | bytes):
            self.numbers.append(number_of(str(value)))
            self.places.append(place + LABEL)
        elif isinstance(value, Mapping):
            parts = [f"{key}: {self._read(part, f'{place}/{key}')}" for key, part in value.items()]
            return f"{kind}{{{', '.join(parts)}}}"
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            self.numbers += value.ravel().astype(np.float64).tolist()
            self.places += [f"{place}/{i}" for i in range(value.size)]
            return f"array of {value.dtype} {value.shape}"
        elif isinstance(value, np.ndarray):
            self._each(value.ravel().tolist(), place)
            return f"array of {value.dtype} {value.shape}"
        elif isinstance(value, Sequence):
            return f"{kind}[{', '.join(self._each(value, place))}]"
        elif isinstance(value, set | frozenset):
            return f"{kind}[{', '.join(self._each(sorted(value, key=repr), place))}]"
        elif getattr(value, "__dict__", None):
            return f"{kind} {self._read(vars(value), place)}"
        elif value is not None:
            self._read(repr(value), place)
        return kind

    def _each(self, values: Iterable[Any], place: str) -> list[str]:
        return [self._read(part, f"{place}/{i}") for i, part in enumerate(values)]

    def _number(self, value: Any, place: str) -> None:
        if isinstance(value, complex):
            self._number(value.real, place + ".real")
            self._number(value.imag, place + ".imag")
            return
        try:
            self.numbers.append(float(value))
        except OverflowError:  # an integer beyond all floats
            self.numbers.append(float("inf") if value > 0 else float("-inf"))
        self.places.append(place)


def number_of(word: str) -> float:
    """A number that hardly any other word has, the same in every run."""
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return float(int.from_bytes(digest, "little"))


@dataclass(frozen=True)
class _Alike:
    """The answers of one form in one tick: of which games, and their numbers (games, places)."""

    form: str
    places: list[str]
    games: IntArray
    numbers: FloatArray


@dataclass(frozen=True)
class Seen:
    """All that was seen in some games of one side.

    `totals` are subtracted from numbers where rows depend on releases: the running totals of what was handed over.
    `scores` are those of an adversary that knows how to judge its games.
    """

    games: int
    ticks: list[list[_Alike]]
    totals: FloatArray | None = None  # (games, ticks, columns)
    scores: FloatArray | None = None  # (games,)

    def numbers(self, place: Place) -> FloatArray:
        """The number in a place, of every game; NaN where there is none."""
        tick, name = place
        found = self.released(place)
        if self.totals is not None and not name.endswith(LABEL):
            last = name.rsplit("/", 1)[-1]
            column = int(last) if last.isdigit() else 0
            found = found - self.totals[:, tick, min(column, self.totals.shape[2] - 1)]
        return found

    def released(self, place: Place) -> FloatArray:
        """The same as it was released."""
        tick, name = place
        found = np.full(self.games, np.nan)
        for alike in self.ticks[tick]:
            if name in alike.places:
                found[alike.games] = alike.numbers[:, alike.places.index(name)]
        return found

    def forms(self, tick: int) -> FloatArray:
        """A number for the form of the answer, of every game."""
        found = np.zeros(self.games)
        for alike in self.ticks[tick]:
            found[alike.games] = number_of(alike.form)
        return found

    def has(self, tick: int, label: float) -> FloatArray:
        """Whether a label is anywhere in the answer, of every game."""
        found = np.zeros(self.games)
        for alike in self.ticks[tick]:
            labels = [i for i, name in enumerate(alike.places) if name.endswith(LABEL)]
            found[alike.games] = (alike.numbers[:, labels] == label).any(axis=1)
        return found

    @property
    def places(self) -> list[Place]:
        """Where there is a number in some game."""
        found = sorted({(t, name) for t, tick in enumerate(self.ticks) for alike in tick for name in alike.places})
        return found[:: -(-len(found) // _MOST_PLACES)] if found else []

    @property
    def labels(self) -> set[tuple[int, float]]:
        """Labels, and the ticks in which some game shows them."""
        return {
            (t, label)
            for t, tick in enumerate(self.ticks)
            for alike in tick
            for i, name in enumerate(alike.places)
            if name.endswith(LABEL)
            for label in np.unique(alike.numbers[:, i]).tolist()
        }

    @property
    def only_failures(self) -> bool:
        return all(alike.form.startswith(FAILED) for tick in self.ticks for alike in tick)


def joined(parts: Sequence[Seen]) -> Seen:
    """The games of several, in order."""
    starts = np.cumsum([0] + [part.games for part in parts]).tolist()
    ticks: list[list[_Alike]] = []
    for tick in range(len(parts[0].ticks)):
        by_form: dict[str, list[_Alike]] = {}
        for start, part in zip(starts, parts, strict=False):
            for alike in part.ticks[tick]:
                moved = _Alike(alike.form, alike.places, alike.games + start, alike.numbers)
                by_form.setdefault(alike.form, []).append(moved)
        ticks.append([_merged(same) for same in by_form.values()])
    totals = [part.totals for part in parts if part.totals is not None]
    scores = [part.scores for part in parts if part.scores is not None]
    if len(scores) not in (0, len(parts)):
        raise ConfigurationError("an adversary scores some of its games and not others")
    return Seen(
        starts[-1], ticks, np.concatenate(totals) if totals else None, np.concatenate(scores) if scores else None
    )


def _merged(same: list[_Alike]) -> _Alike:
    games, numbers = np.concatenate([a.games for a in same]), np.concatenate([a.numbers for a in same])
    return _Alike(same[0].form, same[0].places, games, numbers)


class _Recording:
    """One mechanism for each trial; whatever it answers is kept, failures too."""

    def __init__(self, factory: Factory, trials: int, seed: int) -> None:
        self._mechanisms = many(factory, trials, seed)
        self.ticks: list[list[_Alike]] = []
        self.failure: Exception | None = None
        self._width = 0

    def step(self, rows: IntArray) -> FloatArray:
        groups: dict[str, tuple[list[str], list[int], list[list[float]]]] = {}
        for game, (mechanism, row) in enumerate(zip(self._mechanisms, rows, strict=True)):
            answer = self._answer(mechanism, row)
            _, games, numbers = groups.setdefault(answer.form, (answer.places, [], []))
            games.append(game)
            numbers.append(answer.numbers)
        alike = [
            _Alike(form, places, np.array(games), np.array(numbers, dtype=np.float64).reshape(len(games), -1))
            for form, (places, games, numbers) in groups.items()
        ]
        self.ticks.append(alike)
        return self._shown(alike, len(rows))

    def _answer(self, mechanism: Any, row: IntArray) -> Answer:
        try:
            return Answer(take(mechanism, as_input(mechanism, row)))
        except Exception as error:  # whatever it is: that a step fails, and how, is seen by everybody
            self.failure = error
            return Answer.of_failure(error)

    def _shown(self, tick: list[_Alike], games: int) -> FloatArray:
        """What adaptive adversaries decide by: always as many numbers as in the first tick, 0 for what is none."""
        if not self._width:
            self._width = max(1, *(alike.numbers.shape[1] for alike in tick))
        shown = np.zeros((games, self._width))
        for alike in tick:
            numbers = np.nan_to_num(alike.numbers[:, : self._width], posinf=0.0, neginf=0.0)
            shown[alike.games, : numbers.shape[1]] = numbers
        return shown


class RecordedGame(Game):
    """One side of the game against one adversary, of which all is kept that was seen.

    >>> import evertally as et
    >>> from evertally.audit.adversaries import FirstTick
    >>> make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=2, key=key)
    >>> RecordedGame(make, FirstTick(), "left").watch(5, seed=0).places
    [(0, ''), (1, '')]
    """

    def arena(self, trials: int, seed: int) -> _Recording:
        self._recording = _Recording(self.factory, trials, seed)
        return self._recording

    def watch(self, trials: int, seed: int) -> Seen:
        views = self.play(trials, seed)
        totals = np.cumsum(views.rows, axis=1).astype(np.float64) if self.adversary.adaptive else None
        seen = Seen(trials, self._recording.ticks, totals, self.adversary.score(views))
        if seen.only_failures:
            raise ConfigurationError(
                f"{type(self.model).__name__}.step fails in every tick of every game, with "
                f"{type(self._recording.failure).__name__}: there is nothing to audit. It is called with an integer, "
                "or an array of as many as the mechanism has columns"
            ) from self._recording.failure
        return seen


class Pair:
    """Both sides of the game against one adversary, played with common random numbers.

    Game number i has the same key on both sides: where noise does not depend on data, both differ by the change alone,
    which shows what there is to be seen in few games. What is concluded later uses each side's law alone and is right
    for every coupling of the two (`audit.bets`).
    """

    def __init__(self, factory: Factory, adversary: Adversary, ticks: int) -> None:
        sides: tuple[Side, Side] = ("left", "right")
        self.adversary = adversary
        self.games = [RecordedGame(factory, adversary, side, ticks=ticks) for side in sides]

    def watch(self, trials: int, seed: int) -> tuple[Seen, Seen]:
        left, right = (game.watch(trials, seed) for game in self.games)
        return left, right
