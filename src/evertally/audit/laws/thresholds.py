"""Labels that only one person brought: from which noise on they are shown, and how likely that is.

Which labels are shown where nobody listed them is decided by a threshold that is made for a small delta; games never
get there. Here the threshold is the one that the program applies: the smallest noise with which a label appears is
looked for by planting it, with nobody else there and beside any number of other labels, at first and late ticks. How
likely such noise is follows from the laws that were drawn, by the bounds that the theorems use (streaming-selection
4.3 - 4.6, 7.2 and 10.4), added up over ticks and over the labels that one unit can bring. A threshold needs to be as
high as it is: the row says by how much it could be lower.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.audit.game import IntArray, owned
from evertally.audit.label_noise import ScriptKey, _Named
from evertally.audit.laws.one_shot import calls_of, one_shot_of, selection_of, unit_streams
from evertally.audit.laws.own_arithmetic import (
    Unit,
    first_from,
    log_gumbel_difference,
    log_laplace_difference,
    log_normal_tail,
    tick_counts,
)
from evertally.audit.laws.tap import APART, Drawn, Tap
from evertally.audit.report import Report
from evertally.audit.whitebox import again, smaller
from evertally.contract.in_place import InPlace
from evertally.encode import ItemTotals
from evertally.encode.texts import Texts
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Law, item_addresses
from evertally.privacy import Neighbours
from evertally.selection.item_engine import ItemEngine
from evertally.selection.items import Items

_TABLE_SIZES = (0, 1, 30, 1000, 20_000)  # other labels, beside that of one person
_FEW_SIZES = (0, 30, 1000)
_MINE = "mine alone"
_NEVER = -(2**45)
_ALWAYS = 2**45
_LONGEST = 400
_FAR = 2.0**30
_TIE = 1 / 3  # of the threshold's variate: never in a tie with the numbers that are tried


@dataclass(frozen=True)
class Applied:
    """The smallest noise that shows a label at a tick: the height of the threshold above what one person brings."""

    height: int
    draws: int  # that the noise of the label is the sum of
    variance: float  # of each
    tick: int
    others: int


def _report(model: Any, told: str, applied: int, needed: int) -> Report:
    """Heights: how high the threshold is, against how high it has to be."""
    report = Report.computed(model, f"threshold, {told}", "exact law", "height", float(applied), float(needed))
    return replace(report, aspect="noise")


# -- one threshold a tick, and the noise of a tree ---------------------------------------------------------------------


def engine_of(model: Any) -> Any:
    """The engine of items behind a mechanism that finds labels by a tree; None for others."""
    engine = model._engine
    while not isinstance(engine, InPlace) and hasattr(engine, "_inner"):
        engine = engine._inner
    worker = getattr(engine, "worker", None)
    if worker is None and hasattr(model, "_worker"):
        worker = model._worker()
    return worker if isinstance(worker, ItemEngine) else None


def tree_report(model: Any) -> Report:
    """The thresholds of all ticks, read off at some of each kind, against the delta that is paid for labels.

    >>> import evertally as et
    >>> words = et.UnknownHistogram(guarantee=et.ApproxDP(1.0, 1e-6), horizon=365, key=et.simulation(0))
    >>> report = tree_report(words)
    >>> report.verdict, report.claimed - report.audited
    ('holds (tight)', 0.0)
    """
    unit, T = _unit(model), int(model.horizon)
    radix = int(engine_of(model).tree.radix)
    alone = _brought(model, unit)
    # By sums of digits: as many draws are in the noise of a label. The least height of each kind of tick counts.
    kinds: dict[int, Applied] = {}
    guess = 0
    for tick in _ticks(T, radix):
        for others in _TABLE_SIZES if tick == 1 else _FEW_SIZES[:2]:
            if model.max_labels is not None and others > model.max_labels // 4:
                continue
            found = _applied(model, tick, others, alone, guess)
            guess = found.height
            digits = _digit_sum(tick, radix)
            known = kinds.get(digits)
            # A threshold that is lower for large tables may be so at every tick.
            if known is None or _log_tail(found) > _log_tail(known):
                kinds[digits] = found
    counts = tick_counts(T, radix)
    paid = math.log(float(model.charge.delta)) - math.log(unit.at_risk)
    lowest = min(kinds.values(), key=lambda one: one.height)

    def enough(lower: int) -> bool:
        """Whether all thresholds together could be so much lower."""
        logs = [
            math.log(n) + _log_tail(kinds.get(s) or replace(_of_kind(kinds, s), draws=s), lower)
            for s, n in counts.items()
        ]
        return float(np.logaddexp.reduce(logs)) <= paid + 1e-12

    spare = -first_from(-lowest.height, lambda raised: enough(-raised))
    told = f"{T} ticks, {unit.at_risk} labels at risk, {lowest.others} other labels at tick {lowest.tick}"
    return _report(model, told, lowest.height, lowest.height - spare)


def _unit(model: Any) -> Unit:
    if owned(model):  # different labels of each user count, each once
        replaced = Neighbours.parse(model.neighbours) is Neighbours.REPLACE
        return Unit(int(model._options["max_categories"]), 1, 1, replaced)
    return Unit.of(model)


def _of_kind(kinds: dict[int, Applied], digits: int) -> Applied:
    """The tick of this kind; of a kind that was not looked at, the nearest one below, whose noise is smaller."""
    return kinds[max((s for s in kinds if s <= digits), default=min(kinds))]


def _log_tail(applied: Applied, lower: int = 0) -> float:
    return log_normal_tail(applied.height - lower, applied.draws, applied.variance)


def _digit_sum(tick: int, radix: int) -> int:
    total = 0
    while tick:
        tick, digit = divmod(tick, radix)
        total += digit
    return total


def _ticks(horizon: int, radix: int) -> list[int]:
    """The first tick of every sum of digits, and the last ticks."""
    found, tick, length = {1, 2, horizon - 1, horizon}, 0, 1
    while length <= horizon:
        for digit in range(1, radix):
            if tick + digit * length <= horizon:
                found.add(tick + digit * length)
        tick, length = tick + (radix - 1) * length, length * radix
    return sorted(t for t in found if 1 <= t <= horizon)


def _brought(model: Any, unit: Unit) -> int:
    """What the door counts of one unit that names one label as often and as loudly as it may, and then some."""
    tap = Tap(lambda drawn: _ALWAYS)
    copy = again(model)(tap.key)
    events: list[Any] = [_MINE] * (unit.events + 2)
    if owned(copy):
        copy.step_events(events, users=["one"] * len(events))
    else:
        events = [{_MINE: unit.weight + 5}] * (unit.events + 2 if unit.events > 1 or copy._users is not None else 1)
        copy.step_events(events, users=["one"] * len(events)) if copy._users is not None else copy.step_events(events)
    counts = engine_of(copy).table.counts
    return int(counts[0]) if len(counts) else 0


class _Mine(_Named):
    """Noise that shows no label but that of one person, in the block that ends with a tick; of all others none is ever
    shown. It notes the draws of that label."""

    def __init__(self, tick: int, noise: int, rest: int = 0) -> None:
        super().__init__()
        self._tick, self._noise, self._rest = tick, noise, rest
        self._address = item_addresses(self, [_MINE])
        self.laws_drawn: set[Any] = set()

    def item_draws(self, lane: str, law: Law, node: int, items: NDArray[np.uint64]) -> IntArray:
        mine = (items == self._address).all(axis=1)
        if mine.any():
            self.laws_drawn.add(law)
        return np.where(mine, self._noise if node == self._tick else self._rest, _NEVER).astype(np.int64)


def _applied(model: Any, tick: int, others: int, count: int, guess: int) -> Applied:
    """Goes to the tick before, adds one person's label beside others, and looks for the noise that shows it."""
    labels = Texts.of([*(f"other {i}" for i in range(others)), _MINE])
    counts = np.array([*(3 + i % 7 for i in range(others)), count], dtype=np.int64)
    laws: set[Any] = set()

    def released(source: _Mine) -> int | None:
        engine = engine_of(again(model)(ScriptKey(source)))
        engine.take(tick - 1, np.zeros(0, dtype=np.bool_))
        counted: dict[str, int] = engine.advance([ItemTotals(labels, counts)])[0][0].counts
        laws.update(source.laws_drawn)
        return counted.get(_MINE)

    def shows(value: int) -> bool:
        return released(_Mine(tick, value)) is not None

    height = guess if shows(guess) and not shows(guess - 1) else first_from(-(2**20), shows)
    # With 1 in every other draw the released count says how many of them are in it.
    seen = released(_Mine(tick, _ALWAYS, rest=1))
    assert seen is not None, "a label that no noise shows"
    (law,) = laws
    assert isinstance(law, DiscreteGaussian)
    return Applied(height, seen - count - _ALWAYS + 1, float(law.sigma_squared), tick, others)


# -- one threshold for every block -------------------------------------------------------------------------------------


def block_report(model: Any) -> Report:
    """The threshold of each block, against its part of delta: as many calls as a unit can be in.

    >>> import evertally as et
    >>> words = et.UnknownHistogram(mechanism="meta", guarantee=et.ApproxDP(1.0, 1e-6), horizon=100,
    ...                             key=et.simulation(0))
    >>> block_report(words).verdict
    'holds (tight)'
    """
    played: Any = model if model.horizon <= _LONGEST else smaller(model, _LONGEST)
    unit = Unit.of(model)
    streams = unit_streams(played)
    calls = max(_differing(played, left, right) for _, left, right in streams[:1])
    if model.unit != "event":
        calls *= unit.sides * unit.events  # each of the events may meet a block of its own, in every level
    paid = math.log(float(played.charge.delta)) - math.log(calls)
    return _one_shot_threshold(model, one_shot_of(played), unit, paid, f"{calls} calls")


def release_threshold_report(one_shot: Any, charge: Any, unit: Unit, model: Any) -> Report:
    """The threshold of one release (`et.oneshot`)."""
    return _one_shot_threshold(model, one_shot, unit, math.log(float(charge.delta)), "one call")


def _differing(model: Any, left: Any, right: Any) -> int:
    one, other = (calls_of(model, stream, model.horizon).by_node for stream in (left, right))
    return sum(one[node].histogram != other[node].histogram for node in one.keys() | other.keys())


def _one_shot_threshold(model: Any, one_shot: Any, unit: Unit, paid: float, told: str) -> Report:
    """Beside no others, and beside so many that the cut is theirs."""
    kbar = int(getattr(one_shot, "kbar", 0))
    sizes = sorted({0, 1, 30, *((kbar + 1, kbar + 200) if 0 < kbar <= 3000 else ())})
    worst: tuple[float, int, int, int] | None = None
    for others in sizes:
        found = _one_shot_height(one_shot, unit, others)
        if found is None:
            continue
        height, tail = found
        needed = _needed(tail, paid)
        if worst is None or needed - height > worst[0]:
            worst = needed - height, height, needed, others
    assert worst is not None, "no label of a single person was ever looked at"
    _, height, needed, others = worst
    return _report(model, f"{told}, {others} other labels", height, needed)


def _needed(tail: Callable[[int], float], paid: float) -> int:
    """The smallest height whose tail is paid for."""
    return first_from(-(2**20), lambda n: tail(n) <= paid + 1e-12)


def _one_shot_height(one_shot: Any, unit: Unit, others: int) -> tuple[int, Callable[[int], float]] | None:
    """The smallest lead over the noise of the threshold with which a label is shown that only one unit can have
    brought, and ln of a bound on the probability of all such leads. None where such a label is no candidate."""
    cut = 50
    kbar = getattr(one_shot, "kbar", None)
    above = unit.alone * unit.sides if kbar is not None and others > kbar else unit.alone
    histogram = {f"other {i:06}": cut for i in range(others)}
    histogram[_MINE] = (cut if kbar is not None and others > kbar else 0) + above
    planted = 0.0
    drawn: list[Drawn] = []

    def plant(one: Drawn) -> float:
        if isinstance(one.law, str):
            return {_MINE: planted, None: _TIE}.get(one.place, -_FAR)  # type: ignore[arg-type]
        return {_MINE: planted, None: 0.0}.get(one.place, float(_NEVER))  # type: ignore[arg-type]

    def shows(value: float) -> bool:
        nonlocal planted
        planted = value
        tap = Tap(plant)
        released = dict(one_shot.release(Items.of(histogram, tap), tap, 1))
        drawn[:] = [one for one in tap.drawn if one.place == _MINE or one.place is None]
        return _MINE in released

    if not shows(float(_FAR)):
        return None
    labels = math.log(unit.at_risk)
    selection = selection_of(one_shot)
    if selection is not None:
        low, high = -_FAR, _FAR
        for _ in range(75):
            middle = (low + high) / 2
            low, high = (low, middle) if shows(middle) else (middle, high)
        scale, lead = selection.scale, high - APART - _TIE
        # In whole counts, as thresholds are.
        return round(lead * scale), lambda n: math.log(max(kbar or 1, 1)) + log_gumbel_difference(n / scale)
    height = first_from(-(2**20), lambda n: shows(float(n)))
    (law,) = {one.law for one in drawn if one.place == _MINE}
    noisy = any(one.place is None for one in drawn)
    if isinstance(law, DiscreteLaplace):
        return height, lambda n: labels + log_laplace_difference(n, float(law.scale))
    assert isinstance(law, DiscreteGaussian)
    return height, lambda n: labels + log_normal_tail(n, 2 if noisy else 1, float(law.sigma_squared))


def has_threshold(model: Any) -> bool:
    """Whether it shows labels that nobody listed."""
    return engine_of(model) is not None or hasattr(one_shot_of(model), "margin")


def threshold_report(model: Any) -> Report:
    """Whichever of both the mechanism has."""
    return tree_report(model) if engine_of(model) is not None else block_report(model)
