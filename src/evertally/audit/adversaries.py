"""The worst cases of the specifications, as adversaries.

Each takes the largest legal change by default; `left` and `right` set the challenged pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from evertally.audit.game import Adversary, FloatArray, IntArray, Move, Views, width
from evertally.audit.gaussian import ClosedForm, NodeForm, closed_form, node_form
from evertally.audit.laplace import ShiftForm, shift_form
from evertally.privacy import Change, Neighbours, PureDP
from evertally.statistics.column_options import Guessing
from evertally.statistics.linear_options import is_linear
from evertally.statistics.separated_options import Separated
from evertally.values.quantiles import ValueQuantile

Row = Sequence[int] | None
Form = ClosedForm | NodeForm | ShiftForm


def worst_pair(model: Any) -> tuple[IntArray, IntArray]:
    """The two rows of the largest change that the mechanism's relation allows, as far as its sensitivity says.

    Columns move as far as they can until l2 is used up, and one more by what is left: for replacement half of them in
    each direction, so that every total stays what a legal event can make it.
    """
    if isinstance(model, ValueQuantile):
        return model.worst_rows()  # not the same in every column: the rows of two cells
    columns = width(model)
    change = getattr(model, "sensitivity", None)
    left, right = np.zeros(columns, dtype=np.int64), np.zeros(columns, dtype=np.int64)
    if change is None:
        left[0] = 1
        return left, right
    height = _height(model, change)
    cells = min(columns, change.l2_squared // height**2, change.l1 // height)
    left[:cells] = height
    rest = min(change.l1 - cells * height, math.isqrt(change.l2_squared - cells * height**2))
    if rest and cells < columns:
        left[cells] = rest
    if model.neighbours is Neighbours.REPLACE and columns > 1:
        right[cells // 2 : cells], left[cells // 2 : cells] = height, 0
    return left, right


def _height(model: Any, change: Change) -> int:
    """How far one column moves. Where users are replaced linf counts the events of both, and is twice what a column can
    differ by: the worst pair is w m in b columns against w m in b others (users-and-domains 1.2)."""
    if not isinstance(model, Separated | Guessing) or model.neighbours is not Neighbours.REPLACE:
        return change.linf
    rule = model.contribution
    return change.linf // 2 if rule.max_events_per_user is not None and not rule.in_steps else change.linf


class _OneChallenge(Adversary):
    """Hands over the worst pair at one tick, and in the others what `fill` writes into the first column: nothing."""

    tick: int | None = 1  # of the challenge; None: in the middle, so that there is something to see before and after

    def __init__(self, model: Any = None, left: Row = None, right: Row = None) -> None:
        self._model, self._left, self._right = model, left, right
        self._best = BestScore(model)

    def pair(self) -> tuple[IntArray, IntArray]:
        if self._model is not None:
            left, right = worst_pair(self._model)
        else:
            left, right = np.eye(1, self.columns, dtype=np.int64)[0], np.zeros(self.columns, dtype=np.int64)
        if self._left is not None:
            left = np.asarray(self._left, dtype=np.int64)
        if self._right is not None:
            right = np.asarray(self._right, dtype=np.int64)
        return np.tile(left, (self.trials, 1)), np.tile(right, (self.trials, 1))

    def move(self, tick: int, releases: FloatArray) -> Move:
        if tick == (self.tick or max(1, self.ticks // 2)):
            return self.challenge(slice(None))
        rows = self.zeros()
        self.fill(rows[:, 0], tick, releases)
        return Move(rows)

    def fill(self, column: IntArray, tick: int, releases: FloatArray) -> None:
        """The events of a tick without a challenge."""

    def challenge(self, where: Any) -> Move:
        left, right = self.pair()
        mask = np.zeros(self.trials, dtype=bool)
        mask[where] = True
        return Move(self.zeros(), mask, left, right)

    def score(self, views: Views) -> FloatArray | None:
        return self._best(views)


class FirstTick(_OneChallenge):
    """Changes the first tick: the worst one for factorizations and for trees (factorization-counting 12, trap 2;
    price-of-continual-release 10.3, pair 1). `tick` moves it."""

    adaptive = False

    def __init__(self, model: Any = None, left: Row = None, right: Row = None, tick: int = 1) -> None:
        super().__init__(model, left, right)
        self.tick = tick
        self.name = f"change of tick {tick}"


class Scripted(Adversary):
    """Two streams that somebody has thought of, and nothing else: `left` and `right` differ in one row."""

    adaptive = False

    def __init__(self, name: str, left: IntArray, right: IntArray) -> None:
        self.name = name
        self._left, self._right = left, right

    def move(self, tick: int, releases: FloatArray) -> Move:
        if tick > len(self._left):
            return Move(self.zeros())
        left, right = (np.tile(stream[tick - 1], (self.trials, 1)) for stream in (self._left, self._right))
        if np.array_equal(left, right):
            return Move(right)
        return Move(right, np.ones(self.trials, dtype=bool), left, right)


class LateTrigger(_OneChallenge):
    """Challenges at the first tick after which the last release was above `threshold` (A1), at the last tick at the
    latest: the tick of the challenge depends on noise."""

    name = "late trigger"

    def __init__(self, model: Any = None, threshold: float = 0.0) -> None:
        super().__init__(model)
        self.threshold = threshold

    def begin(self, trials: int, ticks: int, columns: int) -> None:
        super().begin(trials, ticks, columns)
        self._done = np.zeros(trials, dtype=bool)

    def move(self, tick: int, releases: FloatArray) -> Move:
        # Half of the horizon is left after the latest challenge, so that there is something to see.
        late = tick == max(1, self.ticks // 2)
        above = releases[:, -1, 0] > self.threshold if tick > 1 else np.zeros(self.trials, dtype=bool)
        now = ~self._done & (above | late)
        self._done |= now
        return self.challenge(now)


class Feedback(_OneChallenge):
    """Feeds back the low bit of the last release (A3): data depend on noise that was shown. Challenges at tick 1."""

    name = "feedback"

    def fill(self, column: IntArray, tick: int, releases: FloatArray) -> None:
        column[:] = np.mod(releases[:, -1, 0], 2)


class Differencing(_OneChallenge):
    """Averages all residuals after the challenge (A4): the estimate must not sharpen with repetition."""

    name = "averaging"
    adaptive = False

    def score(self, views: Views) -> FloatArray:
        moved = views.residuals * np.sign(views.shift)[:, None, :]
        return np.asarray(moved.sum(axis=(1, 2)))


class DeleteAndReinsert(_OneChallenge):
    """For signed counters: an item is inserted, deleted and inserted again around the challenge."""

    name = "delete and re-insert"
    adaptive = False
    tick = None

    def fill(self, column: IntArray, tick: int, releases: FloatArray) -> None:
        column[:] = 1 if tick % 2 else -1


class EdgeStream(_OneChallenge):
    """Keeps the first column at the edge of a threshold (where sparse-vector tests are most sensitive) by adding
    events until the released value reaches it; challenges there."""

    name = "edge stream"
    tick = None

    def __init__(self, model: Any = None, threshold: int = 10) -> None:
        super().__init__(model)
        self.threshold = threshold

    def fill(self, column: IntArray, tick: int, releases: FloatArray) -> None:
        if tick > 1:
            column[:] = releases[:, -1, 0] < self.threshold


class RandomSearch(Adversary):
    """For mechanisms that nobody has analysed: a random stream with a random challenge, by number.

    `audit.hunt` tries several and plays the most promising one to the end.
    """

    adaptive = False

    def __init__(self, seed: int, largest: int = 1) -> None:
        self.seed, self.largest = seed, largest
        self.name = f"random stream {seed}"

    def begin(self, trials: int, ticks: int, columns: int) -> None:
        super().begin(trials, ticks, columns)
        # A fixed little generator: the streams are public, nothing secret hangs on it.
        state = (self.seed * 6364136223846793005 + 1442695040888963407) % 2**64
        numbers = []
        for _ in range(ticks * columns + 2):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            numbers.append(state >> 33)
        self._at = 1 + numbers[0] % ticks if self.seed else 1
        self._column = numbers[1] % columns
        self._rows = np.array([x % (self.largest + 1) for x in numbers[2:]], dtype=np.int64).reshape(ticks, columns)
        if self.seed % 2 == 0:
            self._rows[:] = 0

    def move(self, tick: int, releases: FloatArray) -> Move:
        rows = np.tile(self._rows[tick - 1], (self.trials, 1))
        if tick != self._at:
            return Move(rows)
        right = self.zeros()
        left = right.copy()
        left[:, self._column] = 1
        return Move(rows, np.ones(self.trials, dtype=bool), left, right)


class BestScore:
    """The most powerful score of a mechanism where it is known, the log-likelihood ratio: for linear mechanisms with
    Gaussian noise, and with Laplace noise where releases determine the draws; for real Laplace noise a ratio near it.
    The mechanism is read once."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._forms: dict[int, Form | None] = {}

    def __call__(self, views: Views) -> FloatArray | None:
        if not is_linear(self._model) or not views.challenged.all():
            return None
        form = self._form(views.releases.shape[1])
        if form is None:
            return None
        residuals, score = views.residuals, np.empty(len(views.challenged))
        for tick in np.unique(views.challenged):
            now = np.flatnonzero(views.challenged == tick)
            score[now] = form.log_ratio(residuals[now], int(tick), views.shift[now])
        return score

    def _form(self, ticks: int) -> Form | None:
        if ticks not in self._forms:
            try:
                self._forms[ticks] = self._read(ticks)
            except np.linalg.LinAlgError:  # releases without noise: nothing is more powerful than looking at them
                self._forms[ticks] = None
        return self._forms[ticks]

    def _read(self, ticks: int) -> Form | None:
        if not isinstance(self._model.charge, PureDP):
            return closed_form(self._model, ticks)
        return node_form(self._model, ticks) or shift_form(self._model, ticks)
