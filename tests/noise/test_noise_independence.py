"""Distinct addresses give independent bits. Fixed keys; each test's false-alarm rate is stated and at most 1e-6."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from noise_reference import FALSE_ALARM, Z_BOUND, chi_square_p

from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, DiscreteLaplace, simulation
from evertally.noise.keystream import Keystream
from evertally.noise.source import KeyedSource


def subkey(*path: str) -> bytes:
    return simulation(20)._hash("noise", "/".join(path).encode())


def test_words_at_distinct_addresses_all_differ():
    """About 2^19 words of 64 bits: two of them agree by chance with probability 2^37/2^64 < 1e-8."""
    lists = []
    for path, lane, law in itertools.product(["a", "b"], ["tree", "tree2", "", "t"], ["", "tree", "2"]):
        stream = Keystream(subkey(path), lane, law)
        for round_ in (0, 1, 2**31):
            nodes = np.array([0, 1, 2, 255, 256, 65535, 65536, 2**32, 2**48 + 1])
            for first in (0, 256, 65530, 2**24, 2**31):
                lists.append(stream.words(nodes, first, 120, round_).ravel())
    words = np.concatenate(lists)
    assert words.size > 2**17
    assert np.unique(words).size == words.size


@pytest.fixture(scope="module")
def grid() -> np.ndarray:
    return Keystream(subkey("grid"), "tree", "a law").words(np.arange(65336, 65736), 65336, 400)


NEIGHBOURS = {
    "next node": (slice(None, -1), slice(None), slice(1, None), slice(None)),
    "next coordinate": (slice(None), slice(None, -1), slice(None), slice(1, None)),
    "diagonal": (slice(None, -1), slice(None, -1), slice(1, None), slice(1, None)),
    "256 nodes on": (slice(None, -256), slice(None), slice(256, None), slice(None)),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
@pytest.mark.parametrize("half", [0, 1])
def test_neighbours_are_uncorrelated(grid, name, half):
    """Bits of the xor are fair (|z| <= 6: 2e-9); low and high nibbles are jointly uniform (chi-square, 2 x 4e-7)."""
    a, b, c, d = NEIGHBOURS[name]
    left, right = grid[a, b, half].ravel(), grid[c, d, half].ravel()
    n = left.size * 64
    ones = int(np.bitwise_count(left ^ right).sum())
    assert abs(ones - n / 2) / np.sqrt(n / 4) < Z_BOUND
    for shift in (0, 60):
        pair = ((left >> np.uint64(shift)) & np.uint64(15)) * np.uint64(16) + (
            (right >> np.uint64(shift)) & np.uint64(15)
        )
        counts = np.bincount(pair.astype(np.int64), minlength=256).tolist()
        assert chi_square_p(counts, [left.size / 256] * 256) > 0.4 * FALSE_ALARM


def test_every_bit_is_fair(grid):
    """128 bits at 160000 addresses: |z| <= 6 for all of them, union bound 128 * 2e-9 = 2.5e-7."""
    blocks = np.ascontiguousarray(grid.reshape(-1, 2)).view(np.uint8)
    ones = np.unpackbits(blocks, axis=1).sum(axis=0)
    n = blocks.shape[0]
    assert np.abs((ones - n / 2) / np.sqrt(n / 4)).max() < Z_BOUND


def test_two_words_of_an_address_are_uncorrelated(grid):
    """|z| <= 6: false alarms 2e-9."""
    n = grid[..., 0].size * 64
    ones = int(np.bitwise_count(grid[..., 0] ^ grid[..., 1]).sum())
    assert abs(ones - n / 2) / np.sqrt(n / 4) < Z_BOUND


@pytest.mark.parametrize("law", [DiscreteLaplace(10), DiscreteGaussian(100), DiscreteGaussian(10**6)])
def test_draws_of_neighbours_are_uncorrelated(law):
    """Sample correlations of 160000 pairs, three lags: |r| sqrt(n) <= 6, false alarms 6e-9."""
    draws = simulation(21).source("x").draws("tree", law, range(400), 400).astype(float) / law.stddev()
    for left, right in (
        (draws[1:], draws[:-1]),
        (draws[:, 1:], draws[:, :-1]),
        (draws[1:, 1:], draws[:-1, :-1]),
    ):
        assert abs((left * right).mean()) * np.sqrt(left.size) < Z_BOUND


@pytest.mark.parametrize("law", [DiscreteLaplace(10), DiscreteGaussian(10**6)])
def test_paths_lanes_and_keys_are_uncorrelated(law):
    """Five pairs, |r| sqrt(n) <= 6: false alarms 1e-8."""
    base = simulation(22).source("s", "m").draws("tree", law, range(100000)).ravel() / law.stddev()
    others = [
        simulation(22).source("s", "m2").draws("tree", law, range(100000)),
        simulation(22).source("s2", "m").draws("tree", law, range(100000)),
        simulation(22).source("s", "m").draws("tree2", law, range(100000)),
        simulation(23).source("s", "m").draws("tree", law, range(100000)),
        simulation(22).derive("t").source("s", "m").draws("tree", law, range(100000)),
    ]
    for other in others:
        r = (base * (other.ravel() / law.stddev())).mean()
        assert abs(r) * np.sqrt(base.size) < Z_BOUND


@pytest.mark.parametrize("law", [DiscreteLaplace(10), DiscreteGaussian(100), DiscreteGaussian(10**6)])
def test_pieces_rows_and_single_draws_are_the_same_noise(law):
    """Wide requests are cut into pieces, narrow ones are interpreted: the address alone decides."""
    source = KeyedSource(bytes(32))
    wide = source.draws("tree", law, [2, 70000], 9001)
    assert (source.draws("tree", law, [70000], 9001)[0] == wide[1]).all()
    assert (source.draws("tree", law, [2, 70000], 31, 8970) == wide[:, 8970:]).all()
    for j in (0, 4095, 4096, 9000):
        assert source.draws("tree", law, [2], 1, j)[0, 0] == wide[0, j]
    tall = source.draws("tree", law, range(5000), 3)
    assert (tall[2] == wide[0, :3]).all()
    assert (source.draws("tree", law, np.arange(5000)[::-1], 3)[::-1] == tall).all()
    assert (source.draws("tree", law, iter([4096, 4, 4097]), 3) == tall[[4096, 4, 4097]]).all()
    assert source.draws("tree", law, [], 3).shape == (0, 3)


def test_a_lane_has_one_law():
    """The same bits at two scales reveal data: the second law of a lane is a bug of the caller, and is stopped."""
    source = simulation(1).source("s", "m")
    source.draws("tree", DiscreteLaplace(10), [0])
    source.draws("tree", DiscreteLaplace(10), [1])
    for law in (DiscreteLaplace(11), DiscreteGaussian(10)):
        with pytest.raises(AssertionError, match="two laws"):
            source.draws("tree", law, [0])
    source.draws("other", DiscreteLaplace(11), [0])


@pytest.mark.parametrize("bad", [0, -1, 0.0999, 2**40 + 1, float("nan"), float("inf")])
def test_laplace_scales_outside_the_proved_range_are_refused(bad):
    with pytest.raises(ConfigurationError):
        DiscreteLaplace(bad)


@pytest.mark.parametrize("bad", [0, -1, 0.00999, 2**80 + 1, float("nan"), float("inf")])
def test_gaussian_variances_outside_the_proved_range_are_refused(bad):
    with pytest.raises(ConfigurationError):
        DiscreteGaussian(bad)


def test_the_ends_of_the_range_work():
    source = simulation(2).source("ends")
    for name, law in {
        "a": DiscreteLaplace(0.1),
        "b": DiscreteLaplace(2**40),
        "c": DiscreteGaussian(0.01),
        "d": DiscreteGaussian(2**80),
    }.items():
        assert source.draws(name, law, range(100)).shape == (100, 1)
