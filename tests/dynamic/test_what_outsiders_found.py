"""Statements that did not hold, found by playing the program from outside."""

from __future__ import annotations

from typing import Any

import pytest

import evertally as et
from evertally.dynamic.families import HalfSpaces, Points
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise

COUNT: dict[str, Any] = {"guarantee": et.PureDP(4.0), "horizon": 20}


def deletions(count: int) -> list[tuple[str, None, None]]:
    return [("delete", None, None)] * count


@pytest.mark.parametrize("mechanism", ["linear", "anew"])
def test_raw_deletions_count_below_nothing_in_every_way(mechanism: str) -> None:
    beds = et.DynamicCount(identity="raw", protects="event", mechanism=mechanism, **COUNT, key=ZeroNoise())
    assert beds.step(deletions(200)).value == -200


def test_what_knows_no_negative_numbers_is_not_given_any() -> None:
    with pytest.raises(ConfigurationError, match="below 0"):
        et.DynamicHistogram(
            categories=["a", "b"],
            identity="raw",
            protects="event",
            mechanism="anew",
            static="multiplicative-weights",
            **COUNT,
        )


def test_an_answer_that_waits_has_no_standard_deviation() -> None:
    beds = et.DynamicCount(mechanism="anew", every=5, max_items=1000, **COUNT, key=et.simulation(3))
    assert beds.step([]).stddev is not None
    late = beds.step([("insert", None, i) for i in range(500)])
    assert late.stddev is None
    lower, upper = late.interval(0.05)
    assert lower <= 500 <= upper


@pytest.mark.parametrize("options", [{"every": 3}, {"partition": "finite"}, {"construction": {"split": "1/2"}}])
def test_options_of_other_mechanisms_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="belong"):
        et.DynamicCount(**options, **COUNT)


@pytest.mark.parametrize("matrix", [[[1.9, 1.0]], [[2**63, 1]], [[2**40, 1]], [["x", 1]], [[1], [1, 2]], [1, 2]])
def test_a_matrix_is_whole_numbers(matrix: Any) -> None:
    with pytest.raises(ConfigurationError, match="whole numbers"):
        et.LinearQueries(Points(["a", "b"]), static="matrix", static_options={"matrix": matrix}, **COUNT)


def test_nobody_takes_the_names_of_ours() -> None:
    for name in ("path", "linear", "interval-tree", "anew"):
        with pytest.raises(ConfigurationError, match="new name"):
            et.register_process(name, lambda *_: None, proof="nowhere")  # type: ignore[arg-type,return-value]


def test_half_spaces_that_nobody_named() -> None:
    points = HalfSpaces([(0, 0), (1, 1)])
    with pytest.raises(ConfigurationError, match="show"):
        et.LinearQueries(points, **COUNT)
    shown = et.LinearQueries(points, show=[((1, 1), 1)], **COUNT, key=ZeroNoise())
    release = shown.step([("insert", (1, 1), "a"), ("insert", (0, 0), "b")])
    assert list(release.value.values()) == [1]
    assert release.answer(((1, 0), 5)).value == 2
