"""The audit of insertions and deletions: its streams, its exact inputs, the law of boundaries, and what it takes."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

import evertally as et
from audit.probes.dynamic import histogram
from evertally.audit.dynamic import all_pairs, dynamic_audits, game_of, inputs_report, is_dynamic, noise_matrix
from evertally.audit.dynamic_inputs import FixedKey, boundaries_of, partition_loss, releases_of, spent
from evertally.audit.dynamic_streams import Facts, Pair, Players, Record, neighbours, shown, values_of
from evertally.audit.faults import FAULTS
from evertally.audit.promises import loud
from evertally.audit.suite import plan
from evertally.dynamic.families import Boxes, HalfSpaces, Marginals, Queries, Ranges
from evertally.dynamic.static import Additive
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteLaplace

KEY = et.simulation(0)
COMES, GOES = Record(1, 1, 0, "me"), Record(2, -1, 0, "me")


# -- streams -----------------------------------------------------------------------------------------------------------


def test_an_item_is_everything_that_names_it():
    facts = Facts("id", "item", False, True, 1, False, 1, cells=1)
    pairs = list(neighbours(facts, 3, 3))
    assert {shown(pair.right) for pair in pairs} == {"nothing", "+a:other@2", "+a:other@2 -a:other@3"}
    streams = {shown(pair.left) for pair in pairs}
    assert {"+a@1 -a@2 -a@3", "-a@1 +a@1", "+a@1 -a@1 +a@2", "+a@1 +a@1 -a@1"} <= streams


def test_an_event_is_one_record():
    facts = Facts("value", "event", False, True, 1, False, 1, cells=2)
    for pair in neighbours(facts, 2, 2):
        assert len(pair.left) == len(pair.right) + 1
        assert set(pair.right) <= set(pair.left)


def test_items_without_names_may_be_deleted_several_times_unless_that_is_declared():
    def most(unique):
        pairs = neighbours(Facts("raw", "item", False, True, 1, unique, 1, cells=1), 2, 2)
        return max(len(pair.left) - len(pair.right) for pair in pairs)

    assert (most(True), most(False)) == (2, 3)


def test_replaced_items_and_events():
    tokens = Facts("token", "item", True, True, 1, False, 1, cells=1)
    assert any({shown(p.left), shown(p.right)} == {"+a@1 -a@2", "+a@2"} for p in neighbours(tokens, 2, 2))
    raw = Facts("raw", "event", True, True, 1, False, 1, cells=1)
    assert any(shown(p.left) == "+a@1" and shown(p.right) == "-a@1" for p in neighbours(raw, 2, 1))


@pytest.mark.parametrize(
    "family",
    [
        Ranges(size=4),
        Ranges(edges=[0, 1, 2.5]),
        Boxes([2, 3]),
        Marginals({"ward": ["n", "s"], "age": 3}, order=1),
        Queries({"x": [1, 0]}, ["p", "q"]),
        HalfSpaces([(0, 0), (1, 2)]),
    ],
)
def test_values_of_every_family(family):
    model = et.LinearQueries(family, guarantee=et.PureDP(1.0), horizon=4, key=KEY, show=family_shown(family))
    cells = [family.cell(value) for value in values_of(model)]
    assert len(set(cells)) == 2
    assert None not in cells


def family_shown(family):
    return [((1, 0), 1)] if isinstance(family, HalfSpaces) else None


def test_a_token_names_the_item_that_got_it():
    model = histogram(identity="token")
    rows = [row.tolist() for row, _ in Players(model, 3).play((COMES, Record(1, 1, 1, "x"), GOES, GOES))]
    assert rows == [[1, 1, 0], [0, 1, 0], [0, 1, 0]]


def test_a_replica_releases_what_the_mechanism_releases_without_noise():
    stream = (COMES, Record(2, 1, 1, "x"), Record(3, -1, 0, "me"), Record(3, -1, 0, "me"))
    for model in (
        histogram(),
        histogram(horizon=3, mechanism="subtract"),
        histogram(horizon=3, mechanism="anew", every=1),
    ):
        shown_ = [value for _, value in Players(model, 3).play(stream)]
        assert shown_ == [{"a": 1, "b": 0, "c": 0}, {"a": 1, "b": 1, "c": 0}, {"a": 0, "b": 1, "c": 0}]


# -- noise and inputs --------------------------------------------------------------------------------------------------


def test_the_noise_matrix_of_a_tree():
    model = et.DynamicCount(guarantee=et.PureDP(1.0), horizon=4, process="tree", radix=2, key=KEY)
    W, laws, roundings = noise_matrix(model, 4)
    assert W.round(6).tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    assert {law.scale for law in laws} == {Fraction(2 * 3)}  # an item is two updates, in three levels
    assert roundings == 0


def test_exact_inputs_of_a_tree():
    model = histogram(horizon=3, mechanism="tree", deletions=False)
    players, fit = Players(model, 3), Additive.fit
    one, none = (releases_of(players, stream, FixedKey()) for stream in ((COMES,), ()))
    assert [asked.data for asked in one.by_place.values()] == [(1, 0, 0), (1, 0, 0), (0, 0, 0)]
    assert spent(one, none).epsilon == 1
    assert not spent(one, none).wrong
    assert Additive.fit is fit, "nothing is left behind"


def test_a_user_is_a_group_of_records_in_constructions_too():
    user = {"unit": "user", "max_events_per_user": 2, "protects": "event", "identity": "raw"}
    report = inputs_report(histogram(horizon=3, mechanism="subtract", **user), 3)
    assert report.fraction == pytest.approx(1.0)


def test_a_place_with_other_data_is_noticed():
    players = Players(histogram(horizon=3, mechanism="tree"), 3)
    releases = releases_of(players, (COMES,), FixedKey())
    place = next(iter(releases.by_place))

    class At:
        lane, node = place

    releases.note(np.array([7, 0, 0]), et.PureDP(1.0), At)
    assert "other data" in spent(releases, releases_of(players, (), FixedKey())).wrong


def test_releases_that_follow_from_data_are_noticed():
    players = Players(histogram(horizon=3, mechanism="tree"), 3)
    left, right = (releases_of(players, stream, FixedKey()) for stream in ((COMES,), ()))
    right.by_place.popitem()
    assert "follows from data" in spent(left, right).wrong


# -- boundaries --------------------------------------------------------------------------------------------------------


def partitioned(**options):
    return histogram(et.PureDP(2.0), 4, mechanism="doubling", partition="finite", deletions=False, **options)


def test_boundaries_are_read_off_the_program():
    players = Players(partitioned(identity="token"), 4)
    found = boundaries_of(players, (COMES, Record(2, 1, 0, "x")), lambda tick: tick == 3)
    ((first, closes), (last, open_)) = found.cuts[0]
    assert (closes, open_, len(first), len(last)) == (True, False, 3, 1)
    assert first[1] == first[0] - 1 == first[2], "one update more, one less that noise must add"
    assert last[0] == first[0] + 1, "a new segment is empty"


def test_the_law_of_boundaries_is_that_of_the_reference():
    players = Players(partitioned(identity="token"), 2)
    found = boundaries_of(players, (COMES,), lambda tick: tick == 2)
    (cuts, _), (tau, mu) = found.cuts[0][0], found.scales[0]

    scale = float(DiscreteLaplace(Fraction(mu)).scale)
    mass = [math.exp(-abs(j) / scale) for j in range(-4000, 4001)]
    tails = list(accumulate(reversed(mass)))[::-1]

    def tail(k):
        return tails[k + 4000] / tails[0]

    reach = range(-400, 401)
    weights = [math.exp(-abs(r) / tau) for r in reach]
    probability = sum(
        w * (1 - tail(cuts[0] + r)) * tail(cuts[1] + r) for r, w in zip(reach, weights, strict=True)
    ) / sum(weights)
    assert found.log_probability() == pytest.approx(math.log(probability), rel=1e-6)


def test_cumulative_scales_lose_all_that_they_are_charged_for():
    """dynamic-data 2.2: the paper's scales cost half of it."""
    pair = Pair((Record(2, 1, 0, "me"),), ())
    lost = {
        scales: partition_loss(
            Players(partitioned(identity="token", construction={"svt": scales}), 3), pair, lambda t: t == 3
        )
        for scales in ("paper", "cumulative")
    }
    assert 0.2 < lost["paper"] <= 0.5
    assert 0.9 < lost["cumulative"] <= 1.0 + 1e-9


# -- the whole ---------------------------------------------------------------------------------------------------------


def test_what_is_planned():
    counted = [name for name, _ in dynamic_audits(histogram(), 3)]
    assert counted == ["all short streams", "lifetimes"]
    assert [name for name, _ in dynamic_audits(histogram(horizon=8, mechanism="subtract"), 3)] == ["exact inputs"]
    assert is_dynamic(histogram())
    assert not is_dynamic(et.Counter(guarantee=et.PureDP(1.0), horizon=4, key=KEY))
    names = [step.name for step in plan(lambda key: et.DynamicCount(guarantee=et.PureDP(1.0), horizon=8, key=key))]
    assert names == [
        "all short streams",
        "lifetimes",
        "one lifetime",
        "replay",
        "restore",
        "bad record",
        "all that is shown",
        "draws",
        "margins",
        "undecided",
        "restored noise",
        "many ticks at once",
        "horizon",
        *FAULTS,
    ]


def test_games_have_one_lifetime_more_on_the_left():
    made = game_of(histogram(horizon=9))
    sides = [[made(et.noise.ZeroNoise()).step(side)[0] for _ in range(1)] for side in (1, 0)]
    assert sides == [[1.0], [0.0]]
    assert made(KEY).guarantee == et.PureDP(4.0)


def test_a_long_configuration_is_audited_on_a_copy():
    model = histogram(horizon=10_000, mechanism="interval-tree")
    ((_, run),) = dynamic_audits(model, 2)
    report = run()
    assert "horizon=12" in report.mechanism
    assert report.passed
    assert report.audited > 0.5


def test_streams_of_two_ticks_are_enough_to_see_what_an_item_costs():
    report = inputs_report(histogram(horizon=7, mechanism="subtract"), 3)
    assert (report.unit, report.fraction) == ("epsilon", pytest.approx(1.0))
    assert all_pairs(histogram(), 2)


def test_a_family_without_known_values_is_refused():
    model = histogram()

    class Strange:
        cells = 3

        def cell(self, value):
            return None

    model._family = Strange()
    with pytest.raises(ConfigurationError, match="no values"):
        values_of(model)


def test_games_of_a_share_with_a_delta_are_played_at_a_rho():
    """Beside unknown items every query of a stream has such a share."""
    assert loud(et.ApproxZCDP(0.1, 1e-7)) == et.ZCDP(4.0)
    assert loud(et.ZCDP(9.0)) == et.ZCDP(9.0)
