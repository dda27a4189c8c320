"""`Histogram` with edges: numbers by bin."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise

EDGES = [0, 10, 20, 60]
LABELS = ("0 to 10", "10 to 20", "20 to 60")
VALUES = [-5, 0, 10, 10.5, 20, 60, 99, None, float("nan"), float("inf"), "7", "seven", True]


def exact(**options: Any) -> et.Histogram:
    return et.Histogram(**({"edges": EDGES, "guarantee": et.ZCDP(0.5), "horizon": 20, "key": ZeroNoise()} | options))


def test_counts_are_those_of_the_definition() -> None:
    numbers = [-5, 0, 10, 10.5, 20, 60, 99, np.inf, 7, 1]
    inside = [min(max(n, 1e-9), 60) for n in numbers]
    expected = {f"{a} to {b}": sum(a < n <= b for n in inside) for a, b in pairwise(EDGES)}
    assert exact().step(VALUES).value == expected
    assert exact().step_events(VALUES).value == expected
    assert exact().run([VALUES]).tolist() == [list(expected.values())]
    apart = exact(outside="cells").step(VALUES).value
    assert apart == {"<= 0": 2, "0 to 10": 3, "10 to 20": 2, "20 to 60": 1, "> 60": 2}
    assert exact().labels == exact().columns == LABELS


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"outside": "cells"},
        {"mechanism": "sparse", "largest": 100, "max_events_per_tick": 20},
        {"workload": et.workloads.Window(3)},
        {"unit": "user", "max_events_per_user": 2},
        {"unit": "user", "max_ticks_per_user": 2, "min_separation": 3},
        {"max_window": 4, "neighbours": "replace"},
    ],
)
def test_noise_and_charge_are_those_of_a_histogram_of_labels(options: dict[str, Any]) -> None:
    options = {"guarantee": et.PureDP(1.0), "horizon": 20, "key": et.simulation(3)} | options
    binned = et.Histogram(edges=EDGES, **options)
    options.pop("outside", None)
    labelled = et.Histogram(categories=binned.columns, **options)
    assert binned.sensitivity == labelled.sensitivity
    assert binned.mechanism == labelled.mechanism
    assert binned.stddev(20) == labelled.stddev(20)
    assert binned.error_bound() == labelled.error_bound()
    assert binned.noise_fingerprint != labelled.noise_fingerprint


def test_every_declared_number_is_in_the_address() -> None:
    common = {"guarantee": et.ZCDP(0.5), "horizon": 9, "key": et.simulation(1), "name": "x"}
    found = [
        et.Histogram(edges=edges, outside=outside, **common).noise_fingerprint
        for edges, outside in product(([0, 1], [0, 2], [0, 1, 2]), ("ends", "cells"))
    ]
    found.append(et.ValueHistogram(edges=[0, 1], **common).noise_fingerprint)
    assert len(set(found)) == len(found)
    assert et.Histogram(edges=[0, 1], **common).noise_fingerprint == found[0]
    logarithmic = et.Histogram(edges={"from": 1, "to": 8, "ratio": 2}, **common)
    assert logarithmic.noise_fingerprint == et.Histogram(edges=[1.0, 2, 4, 8], **common).noise_fingerprint


def test_a_snapshot_goes_on_bit_for_bit() -> None:
    key = et.Key.generate()
    histogram = et.Histogram(edges={"from": 1, "to": 64, "ratio": 2}, guarantee=et.ZCDP(0.5), horizon=9, key=key)
    histogram.step([1, 5, 70])
    twin = et.restore(histogram.snapshot(), key=key, allow_copy=True)
    assert twin.step([3]).value == histogram.step([3]).value


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"edges": None}, "either categories"),
        ({"categories": ["a"]}, "either categories"),
        ({"edges": None, "categories": ["a"], "outside": "cells"}, "goes with edges"),
        ({"edges": [3, 2]}, "each above"),
        ({"edges": "0, 1"}, "list of increasing"),
        ({"outside": "nowhere"}, "outside is"),
        ({"max_weight": 2}, "max_weight belongs to categories"),
        ({"max_per_event": 2}, "max_per_event belongs to categories"),
        ({"other": "rest"}, "other belongs to categories"),
        ({"signed": True}, "signed belongs to categories"),
        ({"protects": "item"}, "protects belongs to categories"),
        ({"neighbours": "independent", "guarantee": et.ZCDP(0.5, adversary="oblivious")}, "one bin"),
    ],
)
def test_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        exact(**options)
