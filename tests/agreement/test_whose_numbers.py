"""Numbers are put together by their labels and by the mechanism that made them, never by their place."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import evertally as et


def histogram(name: str, labels: list[str]) -> et.Histogram:
    return et.Histogram(categories=labels, guarantee=et.ZCDP(50), horizon=9, key=et.simulation(1), name=name)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_frames_are_read_by_their_columns(library: type) -> None:
    first, second = histogram("one", ["n", "s"]), histogram("two", ["n", "s"])
    totals = library({"n": [100, 100], "s": [1, 1]})
    # The columns of the second are handed over in another order.
    given = {"a": first.run(totals), "b": second.run(totals)[["s", "n"]]}
    fit = et.consistent(given, sums={"a": "b"}, of={"a": first, "b": second})
    first_fit, second_fit = np.asarray(fit.value["a"]), np.asarray(fit.value["b"])
    assert np.allclose(first_fit, second_fit)
    assert np.allclose(first_fit[-1], [200, 2], atol=3)
    with pytest.raises(et.ConfigurationError, match="labels of its mechanism"):
        et.consistent({"a": library({"n": [1], "x": [2]})}, nonnegative=True, of={"a": first})


def test_releases_of_another_mechanism_are_refused() -> None:
    first, second = histogram("one", ["n", "s"]), histogram("two", ["s", "n"])
    mine, other = [first.step({"n": 5}) for _ in range(2)], [second.step({"n": 5}) for _ in range(2)]
    with pytest.raises(et.ConfigurationError, match="of another"):
        first.between(other[0], mine[1])
    with pytest.raises(et.ConfigurationError, match="one mechanism"):
        et.consistent({"a": [mine[0], other[1]]}, nonnegative=True, of={"a": first})
    with pytest.raises(et.ConfigurationError, match="one mechanism"):
        et.consistent({"a": mine}, nonnegative=True, of={"a": second})


def test_numbers_that_share_noise_are_refused() -> None:
    """Metrics of a dashboard that overlap are sums of the same columns: nothing here may take them for independent."""
    board = et.Dashboard(
        types=["a", "b", "c"],
        metrics={"ab": ["a", "b"], "bc": ["b", "c"], "ca": ["c", "a"]},
        way="types",
        guarantee=et.ZCDP(0.5),
        horizon=9,
        key=et.simulation(1),
    )
    release = board.step_events(["a", "b", "c"])
    assert release.maker is not None
    assert not release.maker.apart
    with pytest.raises(et.ConfigurationError, match="share noise"):
        et.consistent({"d": release}, nonnegative=True)
    with pytest.raises(et.ConfigurationError, match="share columns"):
        board.covariance([1, 2])
