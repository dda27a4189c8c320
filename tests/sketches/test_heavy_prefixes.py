"""Heavy prefixes against plain counts: what is found, what it is called, how far it is off."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evertally as et
from evertally.errors import ConfigurationError
from evertally.noise import ZeroNoise
from evertally.sketches.descent import descend
from evertally.sketches.medians import median_factor

EXACT = ZeroNoise()
NUMBERS: dict[str, Any] = {"labels": "number", "symbols": 3, "fanout": 10}


def made(key: Any = EXACT, **options: Any) -> Any:
    defaults: dict[str, Any] = {"symbols": 6, "threshold": 5, "width": 512, "guarantee": et.ZCDP(0.5), "horizon": 20}
    return et.HeavyPrefixes(key=key, **(defaults | options))


def test_without_noise_what_is_found_is_what_occurs_often() -> None:
    dice = np.random.default_rng(1)
    numbers = (dice.zipf(1.3, 600) % 1000).tolist()
    counts = Counter(numbers)
    release = made(width=1000, **NUMBERS).step_events(numbers)  # exact at every length
    expected = {str(n): c for n, c in counts.items() if c >= 5}
    assert release.value == dict(sorted(expected.items(), key=lambda pair: (-pair[1], pair[0])))
    tens = Counter(n // 10 for n in numbers)
    sums = {f"{t * 10}..{t * 10 + 9}": c for t, c in tens.items() if c >= 5}
    assert {name: n for name, n in release.prefixes.items() if name in sums} == sums
    sketched = made(width=256, **NUMBERS).step_events(numbers)  # the last length has 1000 > 256 prefixes
    assert all(abs(sketched.value.get(str(n), 0) - c) <= 25 for n, c in counts.items() if c >= 30)


def test_texts_end_where_they_end() -> None:
    texts = made(width=2**14)
    release = texts.step_events(
        ["fig"] * 9 + ["figs"] * 7 + ["figure skating"] * 6 + ["*"] * 5 + ["a\0b"] * 8 + [""] * 6
    )
    assert release.value == {"fig": 9, "a": 8, "figs": 7, "": 6, "figure*": 6, "\\*": 5}
    assert list(release.prefixes)[:2] == ["f*", "a*"]
    assert release.prefixes["fig*"] == 22
    word = made(width=2**14, symbols=12).step_events(["caf\u00e9"] * 9 + ["cafe\u0301"] * 9)  # one label
    assert word.value == {"caf\u00e9": 18}
    assert word.prefixes["caf\\\\xc3*"] == 18  # half a letter


def test_addresses() -> None:
    senders = made(labels="ipv4", symbols=4, width=2**12)
    column = (
        ["10.0.0.1"] * 9 + ["10.0.7.1"] * 4 + ["10.0.0.01"] * 3 + ["1.2.3", "1.2.3.4.5", "1..2.3", "256.1.1.1", "a"]
    )
    release = senders.step_events(pa.array(column))
    assert release.value == {"10.0.0.1": 12}
    assert release.prefixes == {"10.*": 16, "10.0.*": 16, "10.0.0.*": 12, "10.0.0.1": 12}
    everything = made(labels="ipv4", symbols=4, width=2**12, show="prefixes").step_events(column)
    assert everything.value == release.prefixes
    assert list(everything.interval()[0]) == list(everything.value)


def test_noise_of_addresses() -> None:
    """users-and-domains 5.2: four sketched levels, R = 5, T = 4096, rho = 1/2: 8.9."""
    flat = et.Counter(guarantee=et.ZCDP(0.5), horizon=4096, mechanism="sqrt", key=et.simulation(0)).stddev(4096)
    assert math.sqrt(20) * median_factor(5) * flat == pytest.approx(8.9, abs=0.05)
    # The class itself, at a size that fits: the same levels and rows, two buckets each.
    senders = made(key=et.simulation(0), labels="ipv4", symbols=4, width=2, horizon=4096, mechanism="sqrt")
    assert senders.sensitivity.l2_squared == 20
    assert senders.stddev(4096) == pytest.approx(8.9, abs=0.08)


def test_all_that_is_far_above_the_threshold_is_found_and_nothing_far_below() -> None:
    """Exact levels, so that alpha is the bound on noise; it fails with probability 1e-3 at most."""
    for seed in range(5):
        numbers = made(key=et.simulation(seed), width=1000, threshold=100, **NUMBERS)
        alpha = numbers.error_bound(1e-3)
        heavy, light = math.ceil(100 + alpha), math.floor(100 - alpha) - 1
        release = numbers.step_events([7] * heavy + [123] * heavy + [500] * light)
        assert set(release.value) == {"7", "123"}
        lower, upper = release.interval(0.001)
        assert all(lower[label] <= heavy <= upper[label] for label in release.value)


def test_so_many_prefixes_are_followed_by_size_and_then_by_name() -> None:
    numbers = made(width=1000, most=3, **NUMBERS)
    release = numbers.step_events([900] * 8 + [111] * 6 + [112] * 6 + [113] * 6 + [222] * 7 + [444] * 9)
    assert release.value == {"444": 9, "900": 8, "111": 6}  # 222 has less than 111, 112 and 113 together
    columns = numbers._form.columns
    looked: list[int] = []
    plain = columns.below

    class Watched:
        levels, spelling, cells = columns.levels, columns.spelling, columns.cells

        @staticmethod
        def below(codes: Any, symbols: Any, level: Any) -> Any:
            looked.append(len(symbols))
            return plain(codes, symbols, level)

    descend(np.full(columns.width, 50), Watched(), 5, 3)  # type: ignore[arg-type]
    assert looked == [10, 30, 30]  # whatever the table holds


def test_windows_users_and_runs() -> None:
    numbers = made(width=1000, max_window=2, **NUMBERS)
    values = numbers.run([[5] * 9, [6] * 9, [7] * 9])
    assert values == [{"5": 9}, {"5": 9, "6": 9}, {"5": 9, "6": 9, "7": 9}]
    assert numbers.last(2).value == {"6": 9, "7": 9}
    table = made(width=1000, **NUMBERS).run([[5] * 9, []], full=True)
    assert table.to_pydict()["column"] == ["5", "5"]
    assert made(**NUMBERS).run([]) == []
    users = made(width=1000, unit="user", max_labels_per_user=2, **NUMBERS)
    names = [f"u{i}" for i in range(6)]
    for _ in range(3):
        release = users.step_events([5] * 6 + [15] * 6 + [25] * 6, users=names * 3)
    assert release.value == {"15": 6, "5": 6}  # each user once, the first two of three labels
    assert release.prefixes["0..99"] == 6  # and once in a prefix


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"labels": "ipv6"}, "labels is one of"),
        ({"labels": "ipv4"}, "four octets"),
        ({"fanout": 10}, "byte by byte"),
        ({"labels": "number", "symbols": 20, "fanout": 10}, "2\\^62"),
        ({"threshold": 0}, "threshold"),
        ({"symbols": 0}, "symbols"),
        ({"rows": 2}, "odd"),
        ({"most": 2**20}, "most times fanout"),
        ({"show": "all"}, "show"),
        ({"unit": "user"}, "max_events_per_user"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        made(**options)
