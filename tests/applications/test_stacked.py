"""Stacks: one row for all parts, charged for all of them, and the same noise as with shares of the guarantee."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import evertally as et
from evertally.applications import stacked as product_code
from evertally.applications.refuter import Worst, streams
from evertally.applications.stacking import balanced, joint
from evertally.counting.bank import mu_squared
from evertally.noise import ZeroNoise
from evertally.privacy import Change, Guarantee

PARTS = {
    "orders": et.part(et.strings.EpisodeCounts, alphabet="ab", words=["ab"], sequence="stream"),
    "letters": et.part(et.Histogram, categories=["a", "b"]),
}


def stack(parts: Any = PARTS, **options: Any) -> et.Stacked:
    return et.Stacked(parts, **{"guarantee": et.ZCDP(0.5), "horizon": 9, "key": ZeroNoise()} | options)


# -- privacy -----------------------------------------------------------------------------------------------------------


def worst_of(made: et.Stacked) -> Worst:
    """All streams of five letters, as the parts read them."""
    read = made._door.read  # type: ignore[attr-defined]
    records = [read(letter) for letter in "ab"]
    return made.refute(records, streams(records, 5))


@pytest.mark.parametrize(("neighbours", "by"), list(product(("add_remove", "replace"), ((1, 1), (1, 3), (4, 1)))))
def test_one_record_moves_the_row_by_what_is_charged(neighbours: str, by: tuple[int, int]) -> None:
    """The sum of squares is attained: without "b" in "abb" both parts change as much as they can."""
    made = stack(neighbours=neighbours, multipliers=dict(zip(PARTS, by, strict=True)))
    worst = worst_of(made)
    assert not worst.refuted
    assert (worst.l1, worst.l2_squared) == (made.sensitivity.l1, made.sensitivity.l2_squared)
    uncharged = joint([part.unit for part in made._counted], [1, 1])
    assert replace(worst, claim=uncharged).refuted == (by != (1, 1))


def mutant_charges(change: Callable[[list[Change], list[int]], Change]) -> bool:
    """Whether the refuter objects to a stack that is charged so."""
    with mock.patch.object(product_code, "joint", change):
        return worst_of(stack(multipliers={"orders": 2, "letters": 5})).refuted


def test_planted_bugs_are_refuted() -> None:
    assert not mutant_charges(joint)
    # multipliers are not charged
    assert mutant_charges(lambda changes, by: joint(changes, [1] * len(by)))
    # each part has the whole guarantee
    assert mutant_charges(
        lambda changes, by: max((joint([c], [n]) for c, n in zip(changes, by, strict=True)), key=lambda c: c.l2_squared)
    )
    # multipliers are charged once, where their squares are due
    assert mutant_charges(
        lambda changes, by: replace(
            joint(changes, by), l2_squared=sum(n * c.l2_squared for c, n in zip(changes, by, strict=True))
        )
    )


def test_users_are_charged_for_all_parts() -> None:
    parts = {
        "orders": et.part(et.strings.EpisodeCounts, alphabet="ab", words=["ab", "b"], sequence="user"),
        "letters": et.part(et.Histogram, categories=["a", "b"]),
    }
    made = stack(parts, unit="user", max_events_per_user=3, multipliers={"orders": 2, "letters": 3})
    alone = [et.strings.EpisodeCounts, et.Histogram]
    units = [
        kind(  # type: ignore[operator]
            **part.options, guarantee=et.ZCDP(0.5), horizon=9, key=ZeroNoise(), unit="user", max_events_per_user=3
        ).sensitivity
        for kind, part in zip(alone, parts.values(), strict=True)
    ]
    assert made.sensitivity == joint(units, [2, 3])
    release = made.step_events([*"abab", "b"], users=["ann", "ann", "ann", "ann", "bob"])
    assert release.value == {"orders": {"ab": 1, "b": 2}, "letters": {"a": 2, "b": 2}}
    with pytest.raises(TypeError):
        made.step(["a"])


# -- accuracy ----------------------------------------------------------------------------------------------------------


def alone(name: str, guarantee: Guarantee, **options: Any) -> float:
    part = PARTS[name]
    made: Any = part.kind(**part.options, **{"guarantee": guarantee, "horizon": 64, "key": ZeroNoise()} | options)
    deviation: float = made.stddev(64)
    return deviation


@pytest.mark.parametrize("guarantee", [et.ZCDP(0.01), et.PureDP(0.1)])
@pytest.mark.parametrize("weights", [None, {"orders": 3}, {"orders": "1/2", "letters": 2.5}])
def test_noise_is_that_of_shares_of_the_guarantee(guarantee: Guarantee, weights: Any) -> None:
    """Every part has the noise that it would have with its share, up to whole multipliers (and rounding)."""
    made = stack(guarantee=guarantee, horizon=64, weights=weights, mechanism="tree")
    given = {"orders": 1.0, "letters": 1.0} | {n: float(Fraction(str(w))) for n, w in (weights or {}).items()}
    for name, deviation in made.stddevs(64).items():
        share = given[name] / sum(given.values())
        assert deviation == pytest.approx(alone(name, guarantee.share(share), mechanism="tree"), rel=0.03)


def test_one_conversion_costs_less_than_two() -> None:
    """(epsilon, delta) is converted once, as for shares; split by hand it is converted twice, with half of both. A
    stack is alone under its promise, so that it has the exact curve, which shares have not."""
    guarantee = et.ApproxDP(1.0, 1e-6)
    together = stack(guarantee=guarantee, horizon=64).stddevs(64)
    curve = math.sqrt(2 * guarantee.to_zcdp().exact_rho / mu_squared(guarantee))
    assert 0.92 < curve < 0.94
    for name, deviation in together.items():
        assert deviation == pytest.approx(curve * alone(name, guarantee.share(0.5)), rel=0.03)
        assert deviation < 0.75 * alone(name, et.ApproxDP(0.5, 5e-7), mechanism="bank")


def test_a_list_of_both_is_a_joint_bound_below_the_sum() -> None:
    """Episodes of two lists in one: the worst letter of both lists is not the sum of the worst letters of each."""
    one, other = (
        et.part(et.strings.EpisodeCounts, alphabet="abcd", words=words, sequence="stream") for words in (["ab"], ["cd"])
    )
    both = et.part(et.strings.EpisodeCounts, alphabet="abcd", words=["ab", "cd"], sequence="stream")
    assert stack({"one": one, "other": other}).sensitivity == Change(4, 4, 2)
    assert stack({"both": both}).sensitivity == Change(2, 2, 2)


def test_errors_of_parts_are_those_of_their_multiplier() -> None:
    made = stack(multipliers={"orders": 1, "letters": 4}, horizon=64, mechanism="tree")
    row = made.noise.spread(64)
    deviations = made.stddevs(tick=64)
    assert deviations["orders"] == row.stddev
    assert deviations["letters"] == pytest.approx(math.sqrt(row.stddev**2 / 16 + (1 - 1 / 16) / 12))
    bounds = made.error_bounds(0.05)
    assert bounds["letters"] == math.floor(bounds["orders"]) / 4 + 0.5
    assert made.error_bound(0.05) == bounds["orders"]
    assert made.stddev(64) is None


def test_rounding_is_as_far_off_as_it_says() -> None:
    """round(z/c) of the noise z, in many columns: no bias, the stated deviation."""
    n = 400
    parts = PARTS | {"letters": et.part(et.Histogram, categories=["a", *range(n - 1)])}
    made = stack(parts, key=et.simulation(1), multipliers={"orders": 1, "letters": 4}, guarantee=et.ZCDP(2.0))
    truth = {"a": 2}
    released = made.step(["a", "a"]).value["letters"]
    off = [count - truth.get(label, 0) for label, count in released.items()]
    deviation = made.stddevs(1)["letters"]
    assert deviation is not None
    assert 0.5 < deviation < 2  # rounding shows
    assert abs(sum(off)) < 6 * deviation * math.sqrt(n)
    assert abs(sum(x * x for x in off) / n / deviation**2 - 1) < 6 * math.sqrt(2 / n)


def test_multipliers_are_in_the_ratio_of_roots() -> None:
    assert balanced([Fraction(1), Fraction(1)]) == [1, 1]
    assert balanced([Fraction(1), Fraction(1, 10**6)]) == [1000, 1]
    assert balanced([Fraction(2), Fraction(1)]) in ([7, 5], [10, 7], [17, 12])
    for squares in ([Fraction(1, 7), Fraction(3, 50), Fraction(11)], [Fraction(1, 2514), Fraction(1, 2)]):
        numbers = balanced(squares)
        for n, m in zip(numbers, squares, strict=True):
            assert (n / numbers[0]) ** 2 == pytest.approx(float(m / squares[0]), rel=0.06)


# -- the statistic -----------------------------------------------------------------------------------------------------


def test_releases_by_part() -> None:
    made = stack(max_window=2)
    made.step(["a", "b"])
    release: Any = made.step(["?", "a", "b", "b"])
    assert release.value == {"orders": {"ab": 2}, "letters": {"a": 2, "b": 3}}
    assert release["letters"].value == {"a": 2, "b": 3}
    assert release["letters"].stddev == made.stddevs(2)["letters"]
    lower, upper = release["letters"].interval(0.05)
    assert lower["a"] < 2 < upper["a"]
    assert release.interval(0.05)[0]["letters"] == lower
    assert made.last(1).value == {"orders": {"ab": 1}, "letters": {"a": 1, "b": 2}}
    again = stack()
    assert again.run([["a", "b"], ["?", "a", "b", "b"]]).tolist() == [[1, 1, 1], [2, 2, 3]]
    table = stack().run([["a", "b"]], full=True)
    assert table["column"].to_pylist() == ["orders.ab", "letters.a", "letters.b"]
    assert table["value"].to_pylist() == [1, 1, 1]


def test_edges_and_letters_read_records_in_their_own_way() -> None:
    made = stack({"edges": et.part(et.graph.EdgeCount), "pairs": et.part(et.Histogram, categories=["a"])})
    assert made.step([("a", "b"), ("b", "a"), "a", None]).value == {"edges": 1, "pairs": {"a": 3}}


def test_one_entry_of_the_ledger() -> None:
    stream = et.Stream("letters", guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1))
    made = stream.add(et.Stacked, share=1, parts=PARTS)
    assert made.charge == et.ZCDP(0.5)
    with pytest.raises(et.BudgetExceeded):
        stream.add(et.Counter, share=0.01)


def test_snapshots_keep_parts_in_their_order() -> None:
    key = et.simulation(7)
    made = stack(key=key, weights={"letters": 2})
    made.step(["a", "b"])
    other = et.restore(made.snapshot(), key=key)
    assert list(other.parts) == ["orders", "letters"]
    for tick in (["b"], ["a", "b", "?"]):
        assert made.step(tick).value == other.step(tick).value


def test_snapshots_come_back_in_another_process(tmp_path: Path) -> None:
    """Where nobody has asked for rooms that come when they are asked for."""
    part, key = PARTS["orders"], et.simulation(7)
    alone: Any = part.kind(**part.options, guarantee=et.ZCDP(0.5), horizon=9, key=key)  # type: ignore[call-arg]
    expected = ""
    for name, made in (("1", stack(key=key)), ("2", alone)):
        made.step(["a", "b"])
        (tmp_path / name).write_bytes(made.snapshot())
        expected += f"{made.step(['a', 'b']).value}\n"
    program = (
        "import evertally as et, sys\n"
        "for name in sys.argv[1:]:\n"
        "    blob = open(name, 'rb').read()\n"
        "    print(et.restore(blob, key=et.simulation(7)).step(['a', 'b']).value)\n"
    )
    call = [sys.executable, "-c", program, str(tmp_path / "1"), str(tmp_path / "2")]
    assert subprocess.run(call, capture_output=True, text=True, check=True).stdout == expected


def test_the_noise_is_that_of_these_parts_alone() -> None:
    names = {
        stack(key=et.simulation(1), **options).noise_fingerprint
        for options in (
            {},
            {"multipliers": {"orders": 1, "letters": 1}},
            {"parts": dict(reversed(PARTS.items()))},
            {"parts": PARTS | {"letters": et.part(et.Histogram, categories=["a", "c"])}},
        )
    }
    assert len(names) == 4


BY_USER = et.part(et.strings.EpisodeCounts, alphabet="ab", words=["ab"], sequence="user", replaces="letter")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"parts": {}}, "by name"),
        ({"parts": [et.Counter]}, "by name"),
        ({"parts": {"a": et.Counter}}, "et.part"),
        ({"parts": {"a": et.part(et.RunningMean, lower=0, upper=1)}}, "cannot be a part"),
        ({"parts": {"a": et.part(et.Counter, largest=9)}}, "sparse"),
        ({"parts": {"a": et.part(et.Stacked, parts=PARTS)}}, "cannot be a part"),
        ({"parts": PARTS | {"c": et.part(et.Histogram, categories=["a"], protects="item")}}, "protect"),
        ({"parts": PARTS | {"c": BY_USER}, "neighbours": "replace"}, "protect"),
        ({"multipliers": {"orders": 1}}, "every part"),
        ({"multipliers": {"orders": 0, "letters": 1}}, "multiplier"),
        ({"multipliers": {"orders": 1.5, "letters": 1}}, "multiplier"),
        ({"multipliers": {"orders": 1, "letters": 1}, "weights": {"orders": 1}}, "weights"),
        ({"weights": {"nobody": 1}}, "weights"),
        ({"weights": {"orders": -1}}, "weights"),
        ({"weights": {"orders": float("nan")}}, "weights"),
        ({"neighbours": "independent", "guarantee": et.ZCDP(0.5, adversary="oblivious")}, "neighbours"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(et.ConfigurationError, match=words):
        stack(**options)


@pytest.mark.parametrize("kind", [et.UnknownTopK, et.MaxSum, int, "Counter"])
def test_what_is_no_part(kind: Any) -> None:
    with pytest.raises(et.ConfigurationError, match="a part is"):
        et.part(kind)


def _watching(*names: str) -> et.Stacked:
    part = et.part(et.graph.DegreeVector, watch=list(names))
    return et.Stacked({"d": part}, guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1))


def test_what_is_shown_of_many_is_in_the_address() -> None:
    """Other coordinates in the same columns would have the same noise, and publish the difference."""
    assert _watching("ann").noise_fingerprint != _watching("cem").noise_fingerprint
    assert _watching("ann").noise_fingerprint == _watching("ann").noise_fingerprint
    with pytest.raises(et.ConfigurationError, match="watch"):
        et.Stacked({"d": et.part(et.graph.DegreeVector)}, guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1))


def test_a_stack_of_a_graph_that_loses_edges_begins_with_all_of_them() -> None:
    lost: dict[str, Any] = {"updates": "delete", "vertices": 4, "initial": [(0, 1), (1, 2), (2, 3)]}
    classes = {"edges": et.graph.EdgeCount, "degrees": et.graph.DegreeVector, "parts": et.graph.Components}
    stack = et.Stacked(
        {name: et.part(kind, **lost) for name, kind in classes.items()},
        guarantee=et.ZCDP(0.5),
        horizon=9,
        max_window=3,
        key=ZeroNoise(),
    )
    assert stack.step([(0, 1)]).value == {"edges": 2, "degrees": {"0": 0, "1": 1, "2": 2, "3": 1}, "parts": 2}
    assert stack.step([(1, 2)]).value["parts"] == 3
    assert stack.last(2).value == {"edges": -2, "degrees": {"0": -1, "1": -2, "2": -1, "3": 0}, "parts": 2}


def test_a_stack_protects_what_its_parts_do() -> None:
    parts = {"a": et.part(et.Histogram, categories=["a", "b"], max_per_event=2, protects="item")}
    stack = et.Stacked(parts, guarantee=et.ZCDP(0.5), horizon=9, key=et.simulation(1))
    assert (stack.protected_unit, stack.contribution.protects) == ("item of an event", "item")
