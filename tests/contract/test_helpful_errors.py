"""What a caller gets wrong in a call is said in words: no key, no whole numbers, an old name."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.contract.snapshot import pack, unpack
from evertally.errors import ConfigurationError
from evertally.noise import Recording, ZeroNoise

RUN: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 9}


def a_client(key: Any) -> Any:
    protocol = et.local.Protocol(guarantee=et.ApproxDP(1.0, 1e-9), clients=10_000, low=0, high=120)
    return et.local.Client(protocol, key)


TAKERS: dict[str, Callable[[Any], Any]] = {
    "a mechanism": lambda key: et.Counter(**RUN, key=key),
    "a stream": lambda key: et.Stream("visits", **RUN, key=key),
    "one release": lambda key: et.oneshot.known_histogram({"a": 1}, ["a"], guarantee=et.ZCDP(0.5), key=key),
    "a client": a_client,
    "a snapshot": lambda key: et.restore(et.Counter(**RUN, key=et.simulation(1)).snapshot(), key=key),
}


@pytest.mark.parametrize("taker", TAKERS)
@pytest.mark.parametrize(
    "key", ["my secret", b"0123456789abcdef0123456789abcdef", 7, object(), et.Key], ids=lambda key: type(key).__name__
)
def test_what_is_no_key_is_refused_and_not_shown(taker: str, key: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"key is a Key object, .*Key\.generate\(\).*Key\.load") as refusal:
        TAKERS[taker](key)
    assert "secret" not in str(refusal.value)
    assert "0123" not in str(refusal.value)


def test_a_snapshot_needs_a_key() -> None:
    with pytest.raises(ConfigurationError, match="key is a Key object, nothing of type NoneType"):
        TAKERS["a snapshot"](None)


@pytest.mark.parametrize("key", [ZeroNoise(), Recording(et.simulation(1)), et.simulation(1), et.Key.generate()])
def test_all_that_serves_as_a_key_is_one(key: Any) -> None:
    assert TAKERS["a mechanism"](key).step(1).tick == 1


@pytest.mark.parametrize("secret", ["a text of thirty-two characters!", 32, None])
def test_a_key_is_made_of_bytes(secret: Any) -> None:
    with pytest.raises(ConfigurationError, match="32 bytes"):
        et.Key(secret)


FRACTIONS = r"RunningSum\(upper=\.\.\., resolution=0\.01\)"
TOTALS: list[tuple[Any, str]] = [
    (3.5, f"not float.*{FRACTIONS}"),
    (3.0, f"not float.*{FRACTIONS}"),
    (np.float64(3.5), f"not float64.*{FRACTIONS}"),
    (np.float32(3), f"not float32.*{FRACTIONS}"),
    (Decimal("3.5"), f"not Decimal.*{FRACTIONS}"),
    (Fraction(7, 2), f"not Fraction.*{FRACTIONS}"),
    ("3", "not texts: raw events go to step_events"),
    (b"3", "not texts"),
    (None, "not None: a tick without events has the total 0"),
    ({"a": 1}, "not dict: give an int"),
    (np.datetime64("2026-01-01"), "not datetime64"),
    (1j, "not complex"),
]


@pytest.mark.parametrize(("total", "says"), TOTALS, ids=lambda case: repr(case)[:20])
def test_a_total_that_is_no_whole_number_is_named_by_its_type(total: Any, says: str) -> None:
    counter = et.Counter(**RUN, max_weight=10, key=et.simulation(1))
    histogram = et.Histogram(categories=["a", "b"], **RUN, key=et.simulation(1))
    for call in (lambda: counter.step(total), lambda: counter.run([total]), lambda: histogram.step([1, total])):
        with pytest.raises(TypeError, match=f"totals are whole numbers, {says}"):
            call()
    assert counter.tick == histogram.tick == 0


@pytest.mark.parametrize("total", [3, True, np.int8(3), np.True_, np.array(3), np.uint64(3)])
def test_whole_numbers_of_every_type_are_totals(total: Any) -> None:
    assert et.Counter(**RUN, key=ZeroNoise()).step(total).value == int(total)


@pytest.mark.parametrize(
    ("kind", "option", "says"),
    [
        (et.Counter, "resolution", r"it counts; sums of amounts are et\.RunningSum\(upper=\.\.\., resolution=\.\.\.\)"),
        (et.Histogram, "bins", r"edges=\[0, 10, 20, 60\]"),
        (et.Histogram, "edge", "did you mean 'edges'"),
    ],
)
def test_options_that_belong_elsewhere_say_where(kind: Any, option: str, says: str) -> None:
    with pytest.raises(TypeError, match=f"has no option '{option}'; .*{says}"):
        kind(**RUN, **{option: 1})


def test_the_old_name_of_a_quantile_of_sums_still_works_and_says_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match=r"et\.Quantile is called et\.SumQuantile now"):
        old = et.Quantile
    assert old is et.SumQuantile
    assert "Quantile" not in et.__all__
    key = et.Key.generate()
    median = old(0.5, ["a", "b", "c"], **RUN, key=key)
    assert median.name == "quantile"  # in the address of the noise: it stays
    assert et.kinds.find("quantile") is et.kinds.find("sum_quantile")
    assert et.kinds.find("sum_quantile").digest_word == "quantile"
    stream = et.Stream("visits", **RUN)
    assert stream.add(et.SumQuantile, share=1, q="1/2", columns=3).name == "quantile"


def test_a_snapshot_that_was_taken_under_the_old_name_comes_back() -> None:
    key = et.Key.generate()
    median = et.SumQuantile(0.5, ["a", "b", "c"], **RUN, key=key)
    median.step([5, 2, 9])
    header, parts = unpack(median.snapshot(), key)
    header.pop("parts")
    old = pack(header | {"kind": "Quantile"}, parts, key)
    again = et.restore(old, key=key, allow_copy=True)
    assert type(again) is et.SumQuantile
    assert again.step([1, 1, 1]).value == median.step([1, 1, 1]).value
