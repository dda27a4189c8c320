"""How much planted bugs of users-and-domains 10 lose, on the worst pair that is named there: true rho over claimed rho.

Each bug is planted into the product, its worst pair goes through the product's door, and what it moves is held against
the noise that is read off the product. `PYTHONPATH=tests python -m audit.ratios` prints the list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from audit.bugs import MUTANTS, Mutant
from audit.probes.distinct import erased
from audit.probes.probing import KEY, counter, histogram, length, shift
from audit.probes.user_ticks import RHO, of, squared
from evertally.applications.dashboard import Dashboard
from evertally.audit.game import Factory
from evertally.audit.gaussian import ImpulseSource, form_of, impulse_response
from evertally.audit.impulses import losses_of
from evertally.audit.presence import PathSearch
from evertally.contract import restore
from evertally.counting.centred import CentredPath, active_laws, centred_laws
from evertally.counting.path_factor import FINENESS, path_factor
from evertally.counting.process import go_to, remembered
from evertally.counting.runs import PathCost, Presence, centred
from evertally.encode.owned import owned_tick
from evertally.privacy import ZCDP
from evertally.sketches.count_sketch import CountSketch
from evertally.users.active_rule import ActiveRule
from evertally.users.distinct import DistinctUsers
from evertally.users.retention import Retention
from evertally.values.quantiles import ValueQuantile
from evertally.values.sums import RunningSum

YEAR = 365
_TICKS = 4


@dataclass(frozen=True)
class Ratio:
    """A bug of the list, where it is planted, what the list says, and how to measure it."""

    number: int
    mutant: Mutant
    pair: str
    spec: float
    measure: Callable[[], float]


RATIOS: list[Ratio] = []


def ratio(number: int, bug: str, pair: str, spec: float) -> Callable[[Callable[[], float]], None]:
    """Registers a measure of a bug, which is named by its function."""
    mutant = next(m for m in MUTANTS if f"{m.patch.__module__}.{m.patch.__name__}".endswith(f".{bug}"))
    return lambda measure: RATIOS.append(Ratio(number, mutant, pair, spec, measure))


def moved(make: Factory, left: Any, right: Any) -> float:
    """Of one event, at the worst tick."""
    form = form_of(*impulse_response(make(KEY), _TICKS), 0.0)
    return (float(form.mu.max()) * length(shift(make, left, right))) ** 2 / (2 * RHO)


# -- distinct users ----------------------------------------------------------------------------------------------------


def distinct(**options: Any) -> Factory:
    return lambda key: DistinctUsers(guarantee=ZCDP(RHO), horizon=YEAR, mechanism="sqrt", key=key, **options)


@ratio(1, "forgotten_at_restart", "one user, ticks 1 and 2, T = 365", 3.57)
def _() -> float:
    def restarted(made: Any) -> Any:
        return restore(made.snapshot(), key=KEY, allow_copy=True) if made.tick == 1 else made

    return squared(distinct(allow_copy=True), of("ann", (1, 2), YEAR), of("ann", (), YEAR), restarted)


@ratio(2, "bits_as_names", "user first, bit-mate 0.8 T later, T = 365", 1.62)
def _() -> float:
    make = distinct(bits=256)
    made: Any = make(KEY)
    names = [f"u{i}" for i in range(60)]
    places = made._engine.rule.places(made._door.owned([None] * 60, names, 1).names).tolist()
    first, mate = next((a, b) for a in range(60) for b in range(a) if places[a] == places[b])
    late = of(names[mate], (292,), YEAR)
    both = [mine or his for mine, his in zip(of(names[first], (1,), YEAR), late, strict=True)]
    return squared(make, both, late)


@ratio(22, "labels_before_columns", "user with m = 2 undeclared labels", 2)
def _() -> float:
    stream = of("ann", (), YEAR)
    both: list[Any] = [[("ann", "one"), ("ann", "other")], *stream[1:]]
    return squared(distinct(by=["north"], other="rest", max_categories=2), both, stream)


@ratio(24, "erased_user_counts_again", "one user, ticks 1 and 2, T = 365", 3.57)
def _() -> float:
    return squared(
        distinct(), of("ann", (1, 2), YEAR), of("ann", (), YEAR), lambda made: erased(made) if made.tick == 1 else made
    )


# -- active users ------------------------------------------------------------------------------------------------------


def along(laws: Any, paths: list[Any], restarts: frozenset[int] = frozenset()) -> float:
    """The most that one of these paths loses under the noise of a process, restored after some ticks."""

    source, process, parts = ImpulseSource(), None, []
    for first, last in zip([0, *sorted(restarts)], [*sorted(restarts), YEAR], strict=True):
        made = CentredPath(laws, horizon=YEAR, columns=2 * YEAR + 1, source=source)
        if process is not None:
            go_to(made, first, remembered(process))
        process = made
        parts += [made.advance() for _ in range(first, last)]
    noise = source.read(np.concatenate(parts))
    return float(losses_of(*noise, np.array(paths, dtype=np.float64)).max()) ** 2 / (2 * RHO)


def monthly() -> Any:
    """W = 28, lambda = 7/8, T = 365."""
    factor = path_factor(FINENESS // 8)
    energy = float(np.sum(factor.inverse()[:YEAR] ** 2)) * 4.0**16
    return centred_laws(ZCDP(RHO), PathCost(FINENESS * 7 // 8, centred(factor, Presence.windows(YEAR, 28)), energy))


def rhythm(on: int, off: int, phase: int = 0) -> list[float]:
    return [float((t + phase) % (on + off) < on) for t in range(YEAR)]


for _bug, _number, _found in (("shared_draw_anew", 3, 3.61), ("shared_draw_left_out", 4, 3.80)):

    @ratio(_number, _bug, "always active, W = 1, T = 365", _found)
    def _() -> float:
        return along(active_laws(ZCDP(RHO), Presence.windows(YEAR, 1)), [[1.0] * YEAR])


def counted(path: list[float]) -> Any:
    """What the rule makes of one user with windows of 28 ticks."""
    rule = ActiveRule([28])
    rows = [rule.admit(owned_tick(["me"] * int(there), None, t)) for t, there in enumerate(path, start=1)]
    return np.cumsum(np.concatenate(rows))


@ratio(5, "early_expiry", "on and off every few ticks, lambda = 7/8", 4.88)
def _() -> float:
    paths = [counted(rhythm(on, off)) for on in (1, 2, 3) for off in (1, 2, 3)]
    return along(monthly(), paths)


for _many, _found in ((12, 0.93), (52, 1.14), (YEAR - 1, 2.64)):

    @ratio(15, "recursion_lost", f"runs of 28, gaps of 5 to 28, {_many} restarts", _found)
    def _(many: int = _many) -> float:
        paths = [rhythm(28, off, phase) for off in (5, 10, 16, 28) for phase in range(0, 28 + off, 2)]
        return along(monthly(), paths, frozenset(k * YEAR // (many + 1) for k in range(1, many + 1)))


# -- users in several ticks --------------------------------------------------------------------------------------------

_USER: dict[str, Any] = {"unit": "user"}


@ratio(6, "calendar_as_separation", "ticks 30, 31, 90, 91, ... at (365, 12, 30)", 1.07)
def _() -> float:
    make = counter(ZCDP(RHO), YEAR, "sqrt", max_ticks_per_user=12, min_separation=30, calendar=True, **_USER)
    return squared(make, of("ann", [t for t in range(30, 361, 60) for t in (t, t + 1)], YEAR), of("ann", (), YEAR))


@ratio(6, "calendar_as_separation", "ticks 182 and 183 at k = 2, b = 182", 1.42)
def _() -> float:
    make = counter(ZCDP(RHO), YEAR, "sqrt", max_ticks_per_user=2, min_separation=182, calendar=True, **_USER)
    return squared(make, of("ann", (182, 183), YEAR), of("ann", (), YEAR))


@ratio(8, "replaced_user_as_removed", "disjoint categories", 2)
def _() -> float:
    make = histogram(ZCDP(RHO), 4, mechanism="tree", max_events_per_user=1, neighbours="replace", **_USER)
    return squared(make, of("ann", (1,), 4, "a"), of("ann", (1,), 4, "b"))


for _mechanism, _horizon, _late, _found in (("sqrt", YEAR, 292, 1.62), ("epoch-tree", None, 4, 2)):

    @ratio(20, "replaced_events_of_a_group", f"event at tick 1 against tick {_late}, {_mechanism}", _found)
    def _(mechanism: str = _mechanism, horizon: int | None = _horizon, late: int = _late) -> float:
        make = counter(ZCDP(RHO), horizon, mechanism, max_events_per_user=1, neighbours="replace", **_USER)
        return squared(make, of("ann", (1,), horizon or 15), of("bob", (late,), horizon or 15))


@ratio(21, "aligned_blocks", "T = 4, b = 2, k = 3, blocks from tick 2", 1.58)
def _() -> float:
    make = counter(ZCDP(RHO), 4, "sqrt", max_ticks_per_user=3, min_separation=2, calendar=True, first_block=1, **_USER)
    return max(squared(make, of("ann", ticks, 4), of("ann", (), 4)) for ticks in ((1, 2, 4), (1, 3, 4)))


# -- values, types, sketches, tables -----------------------------------------------------------------------------------


@ratio(9, "rows_not_charged", "one label, five rows", 5)
def _() -> float:
    return moved(
        lambda key: CountSketch(guarantee=ZCDP(RHO), horizon=_TICKS, rows=5, mechanism="tree", key=key), ["label"], []
    )


@ratio(13, "two_types", "event with two types, total and types", 1.5)
def _() -> float:
    metrics: dict[str, Any] = {"total": "all", "a": ["a"], "b": ["b"]}
    options: dict[str, Any] = {"types": ["a", "b"], "metrics": metrics, "multipliers": dict.fromkeys(metrics, 1)}

    def make(key: Any) -> Dashboard:
        return Dashboard(guarantee=ZCDP(RHO), mechanism="tree", horizon=_TICKS, key=key, **options)

    return moved(make, [["a", "b"]], [])


def quantiles(**options: Any) -> Factory:
    return lambda key: ValueQuantile(edges=range(2049), guarantee=ZCDP(RHO), horizon=_TICKS, key=key, **options)


@ratio(10, "charged_as_one_cell", "lowest cell, U = 2048", 3.49)
def _() -> float:
    return moved(quantiles(), [0.5], [])


@ratio(10, "value_quantiles.replaced_as_removed", "argmax pair, U = 2048", 1.68)
def _() -> float:
    return max(moved(quantiles(neighbours="replace"), [0.5], [cell + 0.5]) for cell in (1200, 1500, 1640, 1800))


@ratio(11, "net_cap", "+V, -2V, +2V, -2V, ..., T = 12", 12.5)
def _() -> float:
    def make(key: Any) -> RunningSum:
        options: dict[str, Any] = {"lower": -2, "upper": 2, "unit": "user", "max_total_per_user": 1}
        return RunningSum(guarantee=ZCDP(RHO), horizon=12, mechanism="sqrt", key=key, **options)

    stream = [[("ann", 2 * (-1) ** t)] for t in range(12)]
    return squared(make, stream, [[] for _ in stream])


def table(ticks: int, **options: Any) -> float:
    made = Retention(period=1, ages=2, horizon=ticks, guarantee=ZCDP(RHO), key=KEY, **options)
    return PathSearch(made).report().fraction ** 2


@ratio(25, "one_draw_for_all_rows", "user in the second of two rows, A = 2", 1.60)
def _() -> float:
    return table(4)


@ratio(26, "one_row_for_two_users", "two users, two rows, always active", 2)
def _() -> float:
    return table(3, neighbours="replace")


def found(one: Ratio) -> tuple[float, float]:
    """The ratio of the product itself, and with the bug."""
    right = one.measure()
    with one.mutant.patch():
        return right, one.measure()


def main() -> None:
    """Prints the list."""
    for one in sorted(RATIOS, key=lambda one: one.number):
        right, wrong = found(one)
        print(f"| {one.number} | {one.mutant.name} | {one.pair} | {one.spec:g} | {wrong:.2f} ({right:.2f}) |")


if __name__ == "__main__":
    main()
