"""The audit of graphs, strings and stacks: its neighbours, its search, exact laws of tiny instances."""

from __future__ import annotations

from itertools import product
from unittest import mock

import numpy as np
import pytest

import evertally as et
from audit.probes.applications import row
from evertally.applications.encoder import Rule
from evertally.applications.strings.sequences import WordEnds
from evertally.audit.application_copies import small_copy
from evertally.audit.application_games import WorstNeighbours
from evertally.audit.application_streams import ME, Pair, Players, Sent, neighbours, ticks_of
from evertally.audit.applications import Search, world_of
from evertally.audit.edge_streams import double_stars, drawn, short_streams
from evertally.audit.exact import exact_columns
from evertally.audit.faults import FAULTS
from evertally.audit.local_messages import LocalMessage, message_report
from evertally.audit.report import measure_mu
from evertally.audit.suite import plan
from evertally.audit.together import Together

KEY = et.simulation(0)
PURE, CONCENTRATED = et.PureDP(1.0), et.ZCDP(0.5)
LETTERS = {"alphabet": "ab", "longest": 2, "sequence": "stream"}


def made(kind, *first, guarantee=PURE, horizon=None, **options):
    return kind(*first, guarantee=guarantee, horizon=horizon, key=KEY, **options)


def stream(text):
    return tuple(None if word == "." else Sent(tuple(word)) for word in text.split())


# -- neighbours --------------------------------------------------------------------------------------------------------


def test_one_record_is_there_or_not():
    model = made(et.graph.EdgeCount)
    for pair in neighbours(model, world_of(model, 3), 50):
        (gone,) = [i for i, (a, b) in enumerate(zip(pair.left, pair.right, strict=True)) if a != b]
        assert pair.right[gone] is None


def test_another_record_is_in_its_place():
    model = made(et.graph.EdgeCount, neighbours="replace")
    for pair in neighbours(model, world_of(model, 3), 50):
        assert sum(a != b for a, b in zip(pair.left, pair.right, strict=True)) == 1
        assert None not in pair.right


def test_a_node_goes_with_all_its_edges_and_nothing_comes_twice():
    model = made(et.graph.Triangles, vertices=4, copies="absent", protects="node")
    for pair in neighbours(model, world_of(model, 3), 50):
        there = [sent.record for sent in pair.left]
        assert len(set(map(frozenset, there))) == len(there)
        gone = [a.record for a, b in zip(pair.left, pair.right, strict=True) if b is None]
        assert frozenset.intersection(*map(frozenset, gone))


def test_declared_degrees_hold_on_both_sides():
    model = made(et.graph.Triangles, max_degree=2, degree_bound="declared")
    for pair in neighbours(model, world_of(model, 4), 200):
        edges = {frozenset(sent.record) for sent in pair.left}
        assert max(sum(end in edge for edge in edges) for end in set().union(*edges)) <= 2


def test_all_records_of_a_user_go_and_the_cap_is_tried():
    model = made(et.graph.EdgeCount, unit="user", max_events_per_user=2)
    pairs = neighbours(model, world_of(model, 3), 100)
    mine = [sum(sent is not None and sent.owner == ME for sent in pair.left) for pair in pairs]
    assert set(mine) == {1, 2, 3}
    assert not any(sent is not None and sent.owner == ME for pair in pairs for sent in pair.right)


@pytest.mark.parametrize(
    ("options", "records"),
    [
        ({"removal": "null"}, {"evertally-undeclared"}),
        ({"neighbours": "replace"}, {"a", "b", "evertally-undeclared"}),
        ({"neighbours": "replace", "sequence": "user", "replaces": "letter"}, {"ann", "bob"}),
    ],
)
def test_letters_in_the_place_of_a_letter(options, records):
    model = made(et.strings.SubstringCounts, **LETTERS | options)
    found = set()
    for pair in neighbours(model, world_of(model, 3), 200):
        ((before, after),) = [(a, b) for a, b in zip(pair.left, pair.right, strict=True) if a != b]
        if isinstance(after.record, tuple):
            assert before.record[0] == after.record[0], "a letter keeps its user"
        found.add(after.record[0] if isinstance(after.record, tuple) else after.record)
    assert found == records


def test_streams_of_edges():
    assert set(short_streams(3, 2)) == {((0, 1), (0, 1)), ((0, 1), (0, 2)), ((0, 1), (1, 2))}
    assert drawn("0a 12") == ((0, 10), (1, 2))
    assert ((0, 1), (0, 2), (1, 3), (0, 1)) in set(double_stars(4))


def test_ticks_hold_several_records_or_none():
    places = stream("01 02 . 03")
    assert ticks_of(places, (2, 0, 2)) == [[places[0], places[1]], [], [places[3]]]


# -- the search --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "most"),
    [
        (et.graph.EdgeCount, {}, {"vertices": 12}),
        (et.graph.Triangles, {"max_degree": 99}, {"vertices": 12, "max_degree": 4}),
        (et.graph.Triangles, {}, {"vertices": 4}),
        (et.graph.HighDegree, {"threshold": 50}, {"vertices": 12, "threshold": 2}),
        (et.graph.Stars, {"max_degree": 99, "k": 5}, {"max_degree": 3, "k": 2}),
    ],
)
def test_copies_are_small(kind, options, most):
    copied = small_copy(made(kind, vertices=500, horizon=10**6, **options), 63)
    assert copied.horizon == 63
    for name, size in most.items():
        found = getattr(copied, name)
        assert (len(found) if name == "vertices" else found) == size


def test_a_difference_is_what_the_real_door_and_encoder_say():
    model = made(et.graph.EdgeCount)
    players = Players(model)
    pair = Pair(stream("ab ab bb"), stream(". ab bb"))
    assert players.difference(pair) == [{0: 1}, {0: -1}, {}]
    assert players.difference(pair, (3,)) == [{}]


def test_the_cap_of_a_user_is_before_the_door():
    model = made(et.graph.EdgeCount, unit="user", max_events_per_user=1)
    mine = tuple(Sent(("0", end), ME) for end in "123")
    assert Players(model).difference(Pair(mine, (None,) * 3)) == [{0: 1}, {}, {}]


def test_a_mechanism_that_is_put_together_otherwise_is_noticed():
    search = Search(made(et.graph.EdgeCount), 3, 20)
    assert search.whole().passed
    with mock.patch.object(Rule, "admit", return_value=np.zeros(1, dtype=np.int64)):
        assert not search.whole().passed


def test_memory_that_a_restart_forgets_is_noticed():
    plain = WordEnds.load
    search = Search(made(et.strings.SubstringCounts, **LETTERS), 3, 20)
    assert search.whole().passed

    def forgets(self, tick, data):
        plain(self, tick, data)
        self._recent.read([])

    with mock.patch.object(WordEnds, "load", forgets):
        assert not search.whole().passed


def test_noise_that_is_missing_is_a_broken_promise():
    search = Search(made(et.graph.EdgeCount), 3, 20)
    with mock.patch.object(type(search.model.noise), "advance", lambda self, count=1: np.zeros((count, self.columns))):
        assert not search.report().passed


def test_refined_estimates_have_no_formula():
    report = row(et.graph.EdgeCount, guarantee=PURE, horizon=100, mechanism="honaker")
    assert (report.method, report.passed) == ("not here", True)


class Quieter:
    """A key under which every draw is half of what it should be."""

    def __init__(self, key):
        self.key = key

    def source(self, *path):
        made = self.key.source(*path)
        draws = made.draws
        made.draws = lambda *given, **more: draws(*given, **more) // 2
        return made


def test_games_see_draws_of_another_law():
    """The closed form trusts that a draw has the law it names; the most powerful score does not."""
    given = {"vertices": 4, "copies": "absent", "protects": "node", "mechanism": "epoch-tree"}
    played = Search(made(et.graph.Triangles, guarantee=et.ZCDP(4.0), **given), 3, 20).game()
    assert played.gaussian
    options = {"ticks": len(played.left), "trials": 300, "seed": 1}
    honest = measure_mu(played.mechanism, WorstNeighbours(played), **options)
    assert honest.passed
    assert honest.fraction > 0.6
    assert not measure_mu(lambda key: played.mechanism(Quieter(key)), WorstNeighbours(played), **options).passed


def test_scores_of_laplace_noise_are_ratios_of_likelihoods():
    """One tick, one draw: what is released lies between the sums of both streams, or outside."""
    played = Search(
        made(et.graph.EdgeCount, guarantee=et.PureDP(4.0), copies="counted", mechanism="epoch-tree"), 2, 20
    ).game()
    left, right = (float(side[0, 0]) for side in (played.left_sums, played.right_sums))
    paths = np.zeros((2, len(played.left), 1)) + played.right_sums
    paths[0] = played.left_sums
    assert left - right in (1.0, 0.0)
    up, down = played.score(paths)
    assert up == pytest.approx(-down)
    assert 0 < up <= 4.0 * (1 + 1e-9)


def test_the_steps_of_a_plan():
    names = [step.name for step in plan(lambda key: et.graph.DegreeVector(guarantee=PURE, horizon=9, key=key))]
    assert names == ["neighbours", "restarts", "the worst neighbours", "questions", "replay", "restore", "bad record",
                     "all that is shown", "draws", "margins", "undecided", "restored noise", "many ticks at once",
                     "shown", "horizon",
                     *FAULTS]  # fmt: skip
    protocol = et.local.Protocol(guarantee=CONCENTRATED, clients=9, low=0, high=1)
    assert [step.name for step in plan(lambda key: LocalMessage(protocol, key))] == [
        "all cells",
        "two values far apart",
        "second message",
        "faults",
    ]


def test_messages_of_many_cells_are_audited_on_a_copy():
    protocol = et.local.Protocol(guarantee=CONCENTRATED, clients=10**6, low=0, high=1, cells=5000)
    assert message_report(LocalMessage(protocol, KEY)).fraction == pytest.approx(1.0)


# -- exact laws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options", "epsilon", "records"),
    [
        (et.graph.EdgeCount, {}, 4.0, [("a", "b"), ("b", "c")]),
        (et.graph.Triangles, {"vertices": 4, "copies": "absent"}, 4.0, None),
        (et.strings.SubstringCounts, LETTERS, 12.0, ["a", "b"]),
    ],
)
def test_the_exact_law_of_three_ticks(kind, options, epsilon, records):
    """Every draw of the epoch tree; neighbours of all short streams that are told apart most."""
    model = made(kind, guarantee=et.PureDP(epsilon), mechanism="epoch-tree", **options)
    players = Players(model)
    if records is None:
        full = [tuple(edge) for edge in ("01", "02", "12", "03", "13")]
        streams = [tuple(map(Sent, full[i:] + full[:i])) for i in range(5)]
        groups = [(4, 1, 0), (3, 1, 1)]
    else:
        streams = [tuple(map(Sent, text)) for n in (3, 4) for text in product(records, repeat=n)]
        groups = [(1, 1, 1), (2, 1, 1)]
    seen = {}
    for one in streams:
        for place, shape in product(range(len(one)), groups):
            pair = Pair(one, (*one[:place], None, *one[place + 1 :]))
            if sum(shape) == len(one):
                moved = players.difference(pair, shape)
                size = sum(abs(amount) for tick in moved for amount in tick.values())
                columns = sorted({c for tick in moved for c in tick})
                rows = np.array([[tick.get(c, 0) for c in columns] for tick in moved])
                seen.setdefault(rows.tobytes(), (size, len(seen), rows))
    worst = 0.0
    for _, _, rows in sorted(seen.values(), reverse=True)[:4]:
        left = np.zeros((3, model._setting.columns), dtype=np.int64)
        left[:, : rows.shape[1]] = rows
        lost = exact_columns(model, left.tolist(), np.zeros_like(left).tolist(), 1e-7).epsilon
        assert lost <= epsilon * (1 + 1e-9)
        worst = max(worst, lost)
    assert worst >= 0.9 * epsilon


# -- whole streams -----------------------------------------------------------------------------------------------------


def test_all_queries_of_a_stream_of_edges_together():
    made = et.Stream("calls", guarantee=et.PureDP(2.0), horizon=4, key=KEY)
    queries = {
        "edges": made.add(et.graph.EdgeCount, share=0.5, name="edges"),
        "degrees": made.add(et.graph.DegreeVector, share=0.5, name="degrees", vertices=3),
    }
    assert Together(queries, made.guarantee, made.horizon).step(1).shape == (4,)
