"""Real variates: bounds and balls contain the number that the bits define, and the numbers have their law.

The number is computed here again, in mpmath, from the bits of the keystream. False-alarm rate of each statistical test:
at most 1e-6, over the choice of its fixed key.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from noise_reference import FALSE_ALARM, Z_BOUND, chi_square_p

from evertally.noise import DiscreteLaplace, Recording, ZeroNoise, simulation
from evertally.noise import variates as room
from evertally.noise.keystream import Keystream
from evertally.noise.quantile import laplace_quantile
from evertally.noise.variates import AddressedVariates, ZeroVariates

KINDS = ["exponential", "gumbel"]


def make(kind, seed, coordinates, node=0, lane="lane"):
    return simulation(seed).source("variates").variates(lane, kind, node, coordinates)


def true_ends(kind, prefix, bits):
    """The variate at both ends of the interval of U, smaller first, in the precision of mpmath."""
    at = [-mp.log(mpf(prefix + k) / mpf(2) ** bits) if prefix + k else mp.inf for k in (1, 0)]
    if kind == "exponential":
        return at[0], at[1]
    return tuple(-mp.log(e) if e else mp.inf for e in (at[1], at[0]))


def as_mpf(ball):
    """The ends of a ball as exact numbers."""
    mid, rad = (mpf(int(m)) * mpf(2) ** int(e) for m, e in (ball.mid().man_exp(), ball.rad().man_exp()))
    return mid - rad, mid + rad


def planted(kind, first, second=0, later=lambda r: (0, 0)):
    words = np.array([[first, second]], dtype=np.uint64)
    return AddressedVariates(kind, words, lambda i, r: later(r))


# -- bounds ------------------------------------------------------------------------------------------------------------


def wrong(kind, seed, coordinates, node=0):
    """How many bounds miss the numbers between which 128 bits place the variate."""
    source = simulation(seed).source("variates")
    found = source.variates("lane", kind, node, coordinates)
    words = source._lanes["lane"][0].words([node], 0, coordinates)[0]
    missed = 0
    for i, (a, b) in enumerate(words.tolist()):
        low, high = true_ends(kind, a << 64 | b, 128)
        missed += not (found.lower[i] <= low and high <= found.upper[i])
    return missed


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_contain_the_variates(kind):
    assert wrong(kind, 400, 5000) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_contain_the_balls_on_many_addresses(kind):
    found = make(kind, 401, 30000, node=2**40)
    balls = [found.refine(i, 128) for i in range(30000)]
    assert all(low <= ball and ball <= high for low, ball, high in zip(found.lower, balls, found.upper, strict=True))
    assert (found.upper - found.lower).max() < 1e-9
    assert np.median(found.upper - found.lower) < 1e-13


@pytest.mark.parametrize("kind", KINDS)
def test_smaller_margins_are_noticed(kind, monkeypatch):
    table = room._table()
    monkeypatch.setattr(room, "_SLACK", 0.0)
    monkeypatch.setattr(room, "_table", lambda: (table[0], table[1] * 0.01))
    assert wrong(kind, 400, 500) > 0


EDGES = sorted(
    {
        min(max(word + step, 0), 2**64 - 1)
        for word in [
            0,
            *(2**k for k in range(65)),
            *(2**64 - 2**k for k in range(64)),
            *(k << 58 for k in range(32, 64)),
        ]
        for step in (-2049, -2048, -1025, -1024, -2, -1, 0, 1, 2, 1023, 1024)
    }
)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_at_the_edges_of_octaves_and_cells_and_next_to_0_and_1(kind):
    words = np.array([[word, 2**63] for word in EDGES], dtype=np.uint64)
    found = AddressedVariates(kind, words, lambda i, r: (0, 0))
    for i, word in enumerate(EDGES):
        low, high = true_ends(kind, word << 64 | 2**63, 128)
        assert found.lower[i] <= low
        assert high <= found.upper[i]


@pytest.mark.parametrize("kind", KINDS)
@given(first=st.integers(0, 2**64 - 1), second=st.integers(0, 2**64 - 1))
def test_bounds_at_any_word(kind, first, second):
    found = planted(kind, first, second, lambda r: (2**63, 0))
    low, high = true_ends(kind, (first << 64 | second) << 128 | 2**127, 256)
    assert found.lower[0] <= low
    assert high <= found.upper[0]


def test_the_table_keeps_what_the_proof_uses():
    """samplers.md, section 7: r < 2^-49 in the first octave, r < 2^-22 in all."""
    radius = laplace_quantile().radius
    assert radius[: room.CELLS].max() < 2.0**-49
    assert radius.max() < 2.0**-22
    assert abs(mpf(room._LN2) - mp.log(2)) < mpf(2) ** -54


def test_far_words_are_left_to_the_balls():
    assert not room._certified("exponential", np.array([2**64 - 1, 0, 2**23], dtype=np.uint64))[2].any()
    assert not room._certified("gumbel", np.array([2**64 - 2**33], dtype=np.uint64))[2].any()
    sure = np.array([2**64 - 2**12, 2**24, 2**63], dtype=np.uint64)
    assert room._certified("exponential", sure)[2].all()
    assert room._certified("gumbel", np.array([2**64 - 2**35, 2**24, 2**63], dtype=np.uint64))[2].all()


# -- balls -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_ball_holds_the_number_that_its_address_defines(kind):
    source = simulation(402).source("variates")
    found = source.variates("lane", kind, 77, 40)
    stream = Keystream(source._subkey, "lane", kind)
    for i in range(40):
        prefix = 0
        for r in range(4):
            a, b = (int(word) for word in stream.words([77], i, 1, r)[0, 0])
            prefix = prefix << 128 | a << 64 | b
        with mp.workprec(640):
            at = true_ends(kind, prefix, 512)
            for bits, width in ((1, -100), (128, -100), (129, -220), (256, -220), (512, -480)):
                low, high = as_mpf(found.refine(i, bits))
                assert low <= at[0]
                assert at[1] <= high
                assert high - low < mpf(2) ** width


@pytest.mark.parametrize("kind", KINDS)
def test_more_bits_narrow_the_same_ball(kind):
    found = make(kind, 403, 50)
    for i in range(50):
        balls = [found.refine(i, bits) for bits in (128, 256, 384, 1024, 4096)]
        assert all(wide.contains_interior(narrow) for wide, narrow in itertools.pairwise(balls))
        assert found.refine(i, 200).mid() == balls[1].mid()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", [0, 2**64 - 1])
@pytest.mark.parametrize("first", [0, 1, 2**63, 2**64 - 1, 12345678901234567890])
def test_balls_are_nested_at_the_ends_of_an_interval(kind, first, ending):
    """All further bits equal: the variate is at the very end of each interval, where rounding could stick out."""
    found = planted(kind, first, ending, lambda r: (ending, ending) if r < 9 else (2**62, 1))
    balls = [found.refine(0, 128 * r) for r in range(1, 12)]
    assert all(wide.contains(narrow) for wide, narrow in itertools.pairwise(balls))
    assert balls[-1].is_finite()
    assert balls[-1].rad() < 1e-20


def test_a_ball_is_infinite_until_a_bit_differs():
    zeros = planted("exponential", 0, 0, lambda r: (0, 0) if r < 3 else (1, 0))
    assert [zeros.refine(0, 128 * r).is_finite() for r in (1, 2, 3, 4)] == [False, False, False, True]
    assert [zeros.lower[0], zeros.upper[0]] == pytest.approx([448 * math.log(2)] * 2, rel=1e-12)
    top = 2**64 - 1
    ones = planted("gumbel", top, top, lambda r: (top, top - 1))
    assert not ones.refine(0, 128).is_finite()
    assert 254 * math.log(2) < ones.lower[0] < 255.5 * math.log(2) < ones.upper[0] < 257 * math.log(2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_ball_has_the_room_that_the_nesting_proof_uses(kind):
    """Its radius is at least twice that of the exact image of the interval (samplers.md, section 7)."""
    for word in (1, 2**30, 2**63, 3 << 62, 2**64 - 2**20):
        low, high = as_mpf(planted(kind, word, 12345).refine(0, 128))
        left, right = true_ends(kind, word << 64 | 12345, 128)
        assert 1.99 * (right - left) < high - low < 2.01 * (right - left)


def test_a_source_of_equal_bits_is_found_out():
    """After 2^15 bits, 128 in each round."""
    asked = []

    def zeros(round_):
        asked.append(round_)
        assert round_ < 2**15 // 128
        return 0, 0

    with pytest.raises(ArithmeticError, match="broken"):
        planted("exponential", 0, later=zeros)
    assert max(asked) == 2**15 // 128 - 1


def test_numbers_of_this_format_are_frozen():
    """A change here redraws the noise of living streams: it needs a new FORMAT_VERSION."""
    assert [make("exponential", 1, 3, node=5).refine(i, 128).str(30, radius=False) for i in range(3)] == FROZEN[0]
    assert [make("gumbel", 1, 3, node=5).refine(i, 128).str(30, radius=False) for i in range(3)] == FROZEN[1]


FROZEN = [
    ["0.133350114802656881842057749345", "0.337045287640063898059512822039", "0.939597667170344218761609451454"],
    ["1.95143582195941196734247275468", "-0.132564549900922938770817734220", "0.0985664347078392939829063013231"],
]


# -- laws --------------------------------------------------------------------------------------------------------------

DISTRIBUTION = {"exponential": lambda x: -np.expm1(-x), "gumbel": lambda x: np.exp(-np.exp(-x))}
N = 400_000


def fits(kind, values):
    """Chi-square on 256 equally likely cells (9e-7), and the distance of the distributions (Massart's bound, 1e-7)."""
    p = DISTRIBUTION[kind](values)
    counts = np.bincount(np.minimum((p * 256).astype(np.int64), 255), minlength=256)
    steps = np.arange(N + 1) / N
    ordered = np.sort(p)
    distance = max(np.abs(ordered - steps[:-1]).max(), np.abs(ordered - steps[1:]).max())
    return chi_square_p(counts.tolist(), [N / 256] * 256) > 0.9 * FALSE_ALARM and distance < math.sqrt(
        math.log(2 / (0.1 * FALSE_ALARM)) / (2 * N)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_variates_have_their_law(kind):
    source = simulation(404).source("variates")
    values = np.concatenate([source.variates("lane", kind, node, N // 8).lower for node in range(8)])
    assert fits(kind, values)
    assert not fits(kind, values * 1.03)
    assert not fits(kind, values + 0.02)


# -- addresses ---------------------------------------------------------------------------------------------------------


def test_the_same_address_gives_the_same_variates():
    few, many = make("gumbel", 405, 10, node=3), make("gumbel", 405, 1000, node=3)
    assert (few.lower == many.lower[:10]).all()
    assert few.refine(9, 256).mid() == many.refine(9, 256).mid()


def test_different_addresses_give_different_variates():
    """2^16 numbers of 50 bits: two of them agree by chance with probability below 2^-18; under this key none does."""
    lists = [
        make("exponential", seed, 4000, node, lane).lower
        for seed, node, lane in itertools.product((406, 407), (0, 1, 65536, 2**40), ("a", "b"))
    ]
    assert np.unique(np.concatenate(lists)).size == 16 * 4000


def test_neighbouring_addresses_are_uncorrelated():
    """|z| <= 6 for each: 3 x 2e-9."""
    source = simulation(408).source("variates")
    u = np.array([np.exp(-source.variates("lane", "exponential", node, 2000).lower) for node in range(100)]) - 0.5
    for a, b in ((u[1:], u[:-1]), (u[:, 1:], u[:, :-1]), (u[1:, 1:], u[:-1, :-1])):
        assert abs((a * b).sum() * 12 / math.sqrt(a.size)) < Z_BOUND


def test_a_lane_has_one_kind_or_one_law():
    def expects_refusal(first, second):
        source = simulation(409).source("variates")
        first(source)
        first(source)
        with pytest.raises(AssertionError, match="two laws"):
            second(source)

    def draws(source):
        return source.draws("lane", DiscreteLaplace(2), [1])

    def exponential(source):
        return source.variates("lane", "exponential", 1, 2)

    def gumbel(source):
        return source.variates("lane", "gumbel", 1, 2)

    for first, second in itertools.permutations((draws, exponential, gumbel), 2):
        expects_refusal(first, second)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="exponential or gumbel"):
        make("laplace", 410, 2)


# -- test keys ---------------------------------------------------------------------------------------------------------


def test_under_zero_noise_all_variates_are_equal():
    found = ZeroNoise().source("any").variates("lane", "gumbel", 4, 3)
    assert isinstance(found, ZeroVariates)
    assert found.lower.tolist() == found.upper.tolist() == [0, 0, 0]
    assert found.refine(2, 128) == 0


def test_a_recording_key_notes_variates_beside_draws_and_passes_them_on():
    recording = Recording(simulation(411))
    source = recording.source("variates")
    found = source.variates("pick", "gumbel", 9, 5)
    source.draws("tree", DiscreteLaplace(2), [1, 2], 3)
    assert [(e.lane, e.law, e.nodes, e.coordinates, e.first) for e in recording.draws] == [
        ("pick", "gumbel", (9,), 5, 0),
        ("tree", DiscreteLaplace(2), (1, 2), 3, 0),
    ]
    assert (found.lower == make("gumbel", 411, 5, 9, "pick").lower).all()
