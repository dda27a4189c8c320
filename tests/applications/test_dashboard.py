"""Dashboards: what one event and one user move, multipliers, both ways to count (users-and-domains 1.6 and 7)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.applications.metrics import Metrics, best_multipliers, moved
from evertally.audit.whitebox import door_report
from evertally.counting.sqrt_factor import coefficients
from evertally.noise import ZeroNoise
from evertally.privacy import Contribution, Neighbours

TYPES = ["click", "order", "refund"]
METRICS = {"total": "all", "money": ["order", "refund"], "clicks": ["click"]}


def board(**options: Any) -> Any:
    given: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 50, "key": et.simulation(1)}
    return et.Dashboard(**{"types": TYPES, "metrics": METRICS} | given | options)


def test_total_and_ten_types_cost_two_instead_of_eleven() -> None:
    types = [f"t{i}" for i in range(10)]
    metrics = {"total": "all", **{one: [one] for one in types}}
    equal = board(types=types, metrics=metrics, multipliers=dict.fromkeys(metrics, 1))
    assert equal.sensitivity.l2_squared == 2
    alone = et.Counter(guarantee=et.ZCDP(0.5 / 11), horizon=50, key=et.simulation(2))
    ratio = alone.worst_stddev() / equal.stddevs(50)["total"]
    assert ratio == pytest.approx((11 / 2) ** 0.5, rel=0.02)  # 2.35, as the spec says
    found = board(types=types, metrics=metrics)
    spread = {name: sum(s**2 for s in one.stddevs(50).values()) for name, one in (("found", found), ("equal", equal))}
    assert spread["found"] < spread["equal"]


def test_multipliers_are_nearly_the_best_of_all() -> None:
    contains = Metrics.of(TYPES, METRICS).contains
    for pure, power in ((False, 2), (True, 1)):

        def cost(numbers: Any, power: int = power) -> float:
            c = np.array(numbers, dtype=float)
            return float((contains.T @ c**power).max() ** (2 / power) * (1 / c**2).sum())

        best = min(cost(numbers) for numbers in itertools.product(range(1, 13), repeat=3))
        assert cost(best_multipliers(contains, [1, 1, 1], pure=pure)) <= 1.02 * best


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("multipliers", [(1, 1, 1), (2, 3, 5)])
def test_the_charge_of_one_event_is_attained_and_never_passed(relation: str, multipliers: tuple[int, ...]) -> None:
    numbers = dict(zip(METRICS, multipliers, strict=True))
    made = board(neighbours=relation, multipliers=numbers)
    matrix = Metrics.of(TYPES, METRICS).rows(multipliers)
    rows = [np.zeros(3, dtype=np.int64), *matrix]
    pairs = itertools.product(rows, rows) if relation == "replace" else ((row, rows[0]) for row in rows)
    assert made.sensitivity.l2_squared == max(int(((a - b) ** 2).sum()) for a, b in pairs)
    report = door_report(made)
    assert report is not None
    assert report.passed
    assert report.fraction == pytest.approx(1)


def test_users_together_move_no_more_than_is_charged() -> None:
    """All pairs of users with two events in three ticks, square root: at most twice a removed user (1.2)."""
    contains = Metrics.of(["a", "b"], {"total": "all", "a": ["a"]})
    matrix = contains.rows([1, 2])
    r = coefficients(3)
    R = np.array([[r[t - s] if t >= s else 0 for s in range(3)] for t in range(3)])
    one = [*itertools.product(range(3), range(2))]
    lives = [(), *[(e,) for e in one], *itertools.combinations_with_replacement(one, 2)]

    def path(life: Any) -> Any:
        moved_rows = np.zeros((3, 2), dtype=np.int64)
        for tick, kind in life:
            moved_rows[tick] += matrix[kind]
        return moved_rows

    paths = [path(life) for life in lives]
    capped = Contribution(unit="user", max_events_per_user=2)
    N = int((R[:, 0] ** 2).sum())
    for relation, others in ((Neighbours.ADD_REMOVE, [paths[0]]), (Neighbours.REPLACE, paths)):
        charged = moved(matrix, relation, capped).l2_squared * N
        worst = max(int(((R @ (a - b)) ** 2).sum()) for a in paths for b in others)
        assert worst <= charged
        if relation is Neighbours.ADD_REMOVE:
            assert worst == charged


@pytest.mark.parametrize("way", ["metrics", "types"])
def test_without_noise_it_counts(way: str) -> None:
    made = board(guarantee=et.ZCDP(0.5), key=ZeroNoise(), way=way, other="rest")
    release = made.step_events(
        ["click", "order", ["refund", "click"], "nobody knows", None, float("nan"), [], {"order": 2}]
    )
    # an event with several labels has the first declared type: the third is a click
    assert release.value == {"total": 5, "money": 2, "clicks": 2}
    assert made.step([1, 0, 1, 3]).value == {"total": 10, "money": 3, "clicks": 3}
    assert made.way == way
    assert list(made.run([[0, 0, 0, 1]])[0]) == [11, 3, 3]


def test_many_small_metrics_are_counted_by_themselves_and_sums_of_few_types_are_not() -> None:
    assert board().way == "metrics"
    overlapping = {f"{a}{b}": [a, b] for a, b in itertools.combinations("abcdef", 2)}
    assert board(types=list("abcdef"), metrics=overlapping).way == "types"


def test_errors_are_those_of_simulations() -> None:
    for way in ("metrics", "types"):
        made = [board(way=way, key=et.simulation(i), horizon=8) for i in range(400)]
        values = [one.run([[0, 0, 0]] * 8)[-1] for one in made]
        for name, found in zip(METRICS, np.std(values, axis=0), strict=True):
            assert found == pytest.approx(made[0].stddevs(8)[name], rel=0.15)
        assert np.abs(values).max() <= made[0].error_bound(beta=1e-6)


def test_tables_by_several_columns() -> None:
    columns = {"sex": ["f", "m"], "ward": ["north", "south", "west"]}
    for way in ("metrics", "types"):
        made = et.GroupBy(columns=columns, tables=[["ward"], ["sex", "ward"], []], way=way, guarantee=et.ZCDP(0.5),
                          horizon=9, key=ZeroNoise())  # fmt: skip
        value = made.step_events([("f", "north"), ["m", "north"], ("f", "x"), ("f",), None, "f"]).value
        assert value["ward=north"] == 2
        assert value["sex=f, ward=north"] == 1
        assert value["all"] == 2
        assert sum(value.values()) == 6
        assert len(value) == 3 + 6 + 1
    assert made.sensitivity.l2_squared == 1
    stacked = et.GroupBy(columns=columns, tables=[["ward"], ["sex"]], way="metrics", guarantee=et.ZCDP(0.5), horizon=9,
                         multipliers=dict.fromkeys(["ward=north", "ward=south", "ward=west", "sex=f", "sex=m"], 1),
                         key=et.simulation(1))  # fmt: skip
    assert stacked.sensitivity.l2_squared == 2


def test_order_of_metrics_survives_a_snapshot() -> None:
    key = et.simulation(5)
    made = board(metrics={"z": "all", "a": ["order"]}, key=key)
    made.step_events(["order"])
    again = et.restore(made.snapshot(), key=key)
    assert list(again.step_events(["click"]).value) == ["z", "a"]
    assert again.multipliers == made.multipliers


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metrics": {}}, "lists of types by name"),
        ({"metrics": {"x": ["nothing"]}}, "no declared type"),
        ({"metrics": {"x": []}}, "list of types"),
        ({"types": ["a", "a"]}, "declared twice"),
        ({"multipliers": {"total": 1}}, "for every metric"),
        ({"multipliers": "some"}, "auto"),
        ({"weights": {"nobody": 1}}, "weights"),
        ({"way": "both"}, "way is"),
        ({"neighbours": "independent", "guarantee": et.ZCDP(0.5, adversary="oblivious")}, "one type"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(et.ConfigurationError, match=words):
        board(**options)
