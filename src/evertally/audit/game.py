"""The adaptive game of continual release, executable.

price-of-continual-release 1.5. In every tick the adversary sees all earlier releases and either hands over a row, or,
once in the game, a pair of rows of which the mechanism gets the one of the hidden side. The promise says: whatever the
adversary does, what it sees under the two sides is close.

Many games are played at once, along a first axis of `trials`. Mechanisms of the linear engine play them as columns of
one process (`ReplicaArena`: the product's own noise code, one column for each trial); any other mechanism is made anew
for each trial (`ObjectArena`). All of it is reproducible: trial i of a seed has its own simulation key.

A promise that is made against oblivious adversaries only (`guarantee.adversary`, design decision 9) is tested against
those only: the adversary then hands over its whole stream before anything is released.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evertally.audit.gaussian import widened
from evertally.contract.doors import RowDoor, by_column
from evertally.counting.choose import build
from evertally.counting.linear import LinearEngine
from evertally.errors import ConfigurationError
from evertally.noise import NoiseKey, simulation
from evertally.privacy import Change
from evertally.ranking import choosing_once
from evertally.statistics.linear_options import Linear, is_linear
from evertally.values.quantiles import ValueQuantile

Side = Literal["left", "right"]
Factory = Callable[[NoiseKey], Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class Sent(NamedTuple):
    """Events of a tick as they come to the door, with their users where those are protected."""

    events: Any
    users: Any = None


@dataclass(frozen=True)
class Move:
    """What the adversary does in one tick, for all trials: rows of shape (trials, columns).

    Where `challenge` is set the pair (left, right) is handed over and `rows` is ignored.
    """

    rows: IntArray
    challenge: NDArray[np.bool_] | None = None
    left: IntArray | None = None
    right: IntArray | None = None


@dataclass(frozen=True)
class Views:
    """What the adversary knows at the end of its games: nothing of the mechanism but the releases.

    `rows` are the rows handed over, with the right-hand row in place of the challenge; `challenged` is the tick of the
    challenge (0: none); `shift` is left minus right.
    """

    releases: FloatArray  # (trials, ticks, numbers released in a tick)
    rows: IntArray  # (trials, ticks, columns)
    challenged: IntArray  # (trials,)
    shift: IntArray  # (trials, columns)

    @property
    def residuals(self) -> FloatArray:
        """Releases minus what they would be without noise on the right: noise, plus the shift on the left.

        A mechanism that does not release one number for each column is no counter; then these are its releases.
        """
        if self.releases.shape != self.rows.shape:
            return self.releases
        return self.releases - np.cumsum(self.rows, axis=1)


class Adversary(ABC):
    """Plays the game. A subclass says what to do in each tick, and may say how to judge the views at the end.

    `adaptive` says whether its moves use the releases. An adversary that is not adaptive never gets to see any before
    the end, so it cannot say so wrongly.
    """

    name: str = "adversary"
    adaptive: bool = True

    def begin(self, trials: int, ticks: int, columns: int) -> None:
        """Called before the first tick."""
        self.trials, self.ticks, self.columns = trials, ticks, columns

    @abstractmethod
    def move(self, tick: int, releases: FloatArray) -> Move:
        """The move of a tick, from the releases of the ticks before it: shape (trials, tick - 1, numbers).

        If the adversary is not adaptive the shape is (trials, 0, numbers) in every tick.
        """

    def score(self, views: Views) -> FloatArray | None:
        """A number for each trial, large when the left side looks likely; None: let the auditor train one."""
        return None

    def zeros(self) -> IntArray:
        """Rows without events."""
        return np.zeros((self.trials, self.columns), dtype=np.int64)


class Game:
    """One side of the game against one adversary.

    >>> import evertally as et
    >>> from evertally.audit.adversaries import FirstTick
    >>> make = lambda key: et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=key)
    >>> views = Game(make, FirstTick(), "left").play(100)
    >>> views.releases.shape, int(views.challenged[0])
    ((100, 4, 1), 1)
    """

    def __init__(
        self, mechanism_factory: Factory, adversary: Adversary, side: Side, *, ticks: int | None = None
    ) -> None:
        if side not in ("left", "right"):
            raise ConfigurationError('side is "left" or "right"')
        self.factory, self.adversary, self.side = mechanism_factory, adversary, side
        self.model = mechanism_factory(simulation(0))
        claimed = getattr(getattr(self.model, "guarantee", None), "adversary", "adaptive")
        if adversary.adaptive and claimed == "oblivious":
            raise ConfigurationError(
                f"the promise is made for streams fixed beforehand (adversary='oblivious'), and {adversary.name!r} "
                "chooses its rows after seeing releases; play an adversary with adaptive=False"
            )
        horizon: int | None = getattr(self.model, "horizon", None)
        length = horizon if ticks is None else ticks
        if length is None:
            raise ConfigurationError("a mechanism without a horizon is played for a number of ticks: give ticks=...")
        self.ticks = length
        self.columns = width(self.model)

    def play(self, trials: int, seed: int = 0) -> Views:
        """Plays `trials` games and returns what the adversary saw."""
        arena = self.arena(trials, seed)
        self.adversary.begin(trials, self.ticks, self.columns)
        releases = np.zeros((trials, self.ticks, 0))
        rows = np.zeros((trials, self.ticks, self.columns), dtype=np.int64)
        challenged = np.zeros(trials, dtype=np.int64)
        shift = np.zeros((trials, self.columns), dtype=np.int64)
        for tick in range(1, self.ticks + 1):
            move = self.adversary.move(tick, releases[:, : tick - 1 if self.adversary.adaptive else 0])
            fed = move.rows.copy()
            rows[:, tick - 1] = move.rows
            if move.challenge is not None and move.challenge.any():
                now = move.challenge
                if move.left is None or move.right is None:
                    raise ConfigurationError("a challenge is a pair of rows: give left and right")
                check_pair(self.model, move.left[now], move.right[now], challenged[now])
                fed[now] = (move.left if self.side == "left" else move.right)[now]
                rows[now, tick - 1] = move.right[now]
                challenged[now] = tick
                shift[now] = move.left[now] - move.right[now]
            check_rows(self.model, fed)
            released = arena.step(fed)
            if tick == 1:
                releases = np.zeros((trials, self.ticks, released.shape[1]))
            releases[:, tick - 1] = released
        return Views(releases, rows, challenged, shift)

    def arena(self, trials: int, seed: int) -> Arena:
        """Where the games are played."""
        return arena_for(self.factory, self.model, trials, seed)


class Arena(Protocol):
    """Takes the rows of all trials, tick by tick, and shows what each of them released."""

    def step(self, rows: IntArray) -> FloatArray: ...


def check_pair(model: Any, left: IntArray, right: IntArray, challenged: IntArray) -> None:
    """Refuses a second challenge, and a pair that the mechanism's neighbouring relation does not contain."""
    if challenged.any():
        raise ConfigurationError("an adversary may challenge once in a game")
    allowed: Change | None = getattr(model, "sensitivity", None)
    if allowed is None:
        return  # a mechanism of the user's: the adversary answers for its pairs
    moved = np.abs(left - right)
    too_far = (moved.sum(axis=1) > allowed.l1) | ((moved**2).sum(axis=1) > allowed.l2_squared)
    if (too_far | (moved.max(axis=1, initial=0) > allowed.linf)).any():
        raise ConfigurationError(
            f"the pair differs by more than one step of the relation {model.neighbours.value!r} allows ({allowed})"
        )


def check_rows(model: Any, rows: IntArray) -> None:
    """Refuses totals that no legal events add up to: they would be clipped, and the residuals would be wrong."""
    if is_linear(model) and not model.contribution.signed and (rows < 0).any():
        raise ConfigurationError("an adversary handed over a negative total to a mechanism that is not signed")


class ObjectArena:
    """One mechanism for each trial."""

    def __init__(self, factory: Factory, trials: int, seed: int) -> None:
        self._mechanisms = many(factory, trials, seed)

    def step(self, rows: IntArray) -> FloatArray:
        pairs = zip(self._mechanisms, rows, strict=True)
        return np.stack([public(take(mechanism, as_input(mechanism, row))) for mechanism, row in pairs])


def many(factory: Factory, trials: int, seed: int) -> list[Any]:
    """A mechanism for each trial, with a key of its own; whatever is chosen from public numbers is chosen once."""
    key = simulation(seed)
    with choosing_once():
        return [factory(key.derive(str(i))) for i in range(trials)]


class ReplicaArena:
    """All trials in one noise process of the product, a block of columns for each."""

    def __init__(self, model: Linear, trials: int, seed: int) -> None:
        setting = model._setting
        wide = widened(setting, setting.columns * trials)
        self._process = build(model._choice, wide, simulation(seed).source("audit"))
        self._sums = np.zeros((trials, setting.columns), dtype=np.int64)

    def step(self, rows: IntArray) -> FloatArray:
        self._sums += rows
        noise = self._process.advance(1)[0].reshape(self._sums.shape)
        return np.asarray(self._sums + noise, dtype=np.float64)


# As they were when the auditor was loaded: an engine that was changed afterwards is noticed too.
_ENGINE: list[tuple[Any, ...]] = [
    (Linear, "step", Linear.step),
    (Linear, "_step", Linear._step),
    (Linear, "_play", Linear._play),
    (Linear, "_release", Linear._release, ValueQuantile._release),  # which shows more of the same row
    (LinearEngine, "play", LinearEngine.play),
    (RowDoor, "clip", RowDoor.clip),
]


def arena_for(factory: Factory, model: Any, trials: int, seed: int) -> ObjectArena | ReplicaArena:
    """The quickest faithful arena. A mechanism that changes `step` or its parts is played as it is."""
    if is_linear(model) and all(_as_loaded(model, *part) for part in _ENGINE):
        return ReplicaArena(model, trials, seed)
    return ObjectArena(factory, trials, seed)


def _as_loaded(model: Linear, owner: type, name: str, *originals: Any) -> bool:
    """Whether a part of a mechanism is the one that the auditor knows."""
    used = next(type(part) for part in (model, model._engine, model._door) if isinstance(part, owner))
    return any(getattr(used, name) is original for original in originals)


def width(model: Any) -> int:
    """How many integers a tick's input has: of a linear mechanism, or as the mechanism says (`columns`), or one."""
    if is_linear(model):
        return model._setting.columns
    columns = getattr(model, "columns", 1)
    return columns if isinstance(columns, int) else len(columns)


def as_input(mechanism: Any, row: IntArray) -> Any:
    """A row as the argument of `step`: one column is a plain integer, unless the mechanism takes rows."""
    return row if row.size > 1 or by_column(mechanism) else int(row[0])


def take(mechanism: Any, x: Any, tick: int | None = None) -> Any:
    """`step`; where users are protected it is refused, and the engine takes the total behind the door.

    The totals of a game are those of users within their caps, by the rules of the game. That the door keeps the caps
    is attacked on its own (`attacks.through_door`). Where users are bounded by what is counted, x is a pair of events
    and users, or one of the two. What is `Sent` goes through the door as it is.
    """
    if isinstance(x, Sent):
        return mechanism.step_events(x.events, users=x.users, tick=tick)
    if owned(mechanism):
        if isinstance(x, tuple):
            events, users = x
        elif getattr(mechanism._door, "read", None) is None:
            events, users = None, x
        else:  # events of different people
            events, users = x, [f"u{i}" for i in range(len(x))]
        return mechanism.step_events(events, users=users, tick=tick)
    if getattr(mechanism, "_users", None) is None:
        return mechanism.step(x, tick=tick) if tick is not None else mechanism.step(x)
    number = mechanism.tick + 1 if tick is None else tick
    return mechanism._step(mechanism._door.total(x, number), tick)


def owned(mechanism: Any) -> bool:
    """Whether it takes events together with those whose they are, and bounds what each of them may do by itself."""
    return bool(getattr(getattr(mechanism, "_plan", None), "owned", False))


def public(release: Any) -> FloatArray:
    """A release, or a bare value, as a flat array of numbers; a label is a number that no other label has."""
    parts = flat(getattr(release, "value", release))
    numbers = [zlib.crc32(part.encode("utf-8", "surrogatepass")) if isinstance(part, str) else part for part in parts]
    return np.array(numbers, dtype=np.float64)


def flat(value: Any) -> list[Any]:
    """The numbers and labels of a released value, in its order; those of a stack part by part."""
    if isinstance(value, dict):
        return [
            part
            for one in value.values()
            for part in (flat(one) if isinstance(one, dict | list | np.ndarray) else [one])
        ]
    return list(np.atleast_1d(np.array(value)).ravel().tolist())
