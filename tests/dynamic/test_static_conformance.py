"""The conformance check of static mechanisms: ours pass it, one's own passes it, planted mistakes do not."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from static_laws import played
from static_mistakes import MISTAKES

import evertally as et
from evertally.checks import STATIC_CHECKS, StaticSubject, check_static
from evertally.dynamic.families import Boxes, Count, HalfSpaces, Marginals, Points, Queries, Ranges
from evertally.dynamic.static import (
    STATICS,
    MultiplicativeWeights,
    forget_static,
    make_static,
    rank_static,
    static_proof_elsewhere,
)
from evertally.errors import ConfigurationError
from evertally.noise import DiscreteGaussian, round_up
from evertally.privacy import ZCDP, PureDP

BUDGETS = [PureDP(1), PureDP(Fraction(1, 10)), ZCDP(Fraction(1, 2))]
SOME = Queries({"a": [0.5, 1, 0], "b": [1, 1, 0], "c": [0, 0.125, 1]}, range(3))
CASES = [
    ("histogram", Count()),
    ("histogram", Points(["a", "b", "c"])),
    ("histogram", HalfSpaces([(0, 0), (1, 0), (0, 2)], declared=[((1, 1), 1)])),
    ("hierarchy", Ranges(size=21)),
    ("hierarchy", Boxes([3, 5])),
    ("square-root", Ranges(size=9)),
    ("square-root", Boxes([3, 4])),
    ("marginals", Marginals({"a": 2, "b": 3, "c": 2}, order=2)),
    ("matrix", SOME),
    ("multiplicative-weights", SOME),
    ("multiplicative-weights", Ranges(size=4)),
]


@pytest.mark.parametrize(("name", "family"), CASES, ids=[f"{name}-{family.kind}" for name, family in CASES])
def test_ours_conform(name, family):
    for pure in (True, False):
        static = make_static(name, family, pure=pure)
        budgets = [budget for budget in BUDGETS if isinstance(budget, PureDP) == pure]
        assert check_static(StaticSubject(name, static, family, budgets, releases=300)) == len(STATIC_CHECKS)


@pytest.mark.parametrize("mistake", [m for m in MISTAKES if m.caught_by], ids=lambda m: m.name)
def test_planted_mistakes_are_caught(mistake):
    subject = StaticSubject(mistake.name, mistake.static, mistake.family, [mistake.budget], releases=600)
    with pytest.raises(AssertionError, match=mistake.caught_by):
        check_static(subject)


@pytest.mark.parametrize("mistake", [m for m in MISTAKES if not m.caught_by], ids=lambda m: m.name)
def test_mistakes_in_rounds_show_in_the_exact_law(mistake, monkeypatch):
    """One round, given size: the loss of some transcript passes the budget; that of the right mechanism never does."""
    losses = {}
    for static in (mistake.static, MultiplicativeWeights(mistake.family)):
        static.max_rounds = 1
        worst, grid = 0.0, mistake.family.unit
        for data, cell in itertools.product([(0, 0), (1, 2), (36, 0), (30, 4)], range(2)):
            one = np.array(data, dtype=np.int64)
            other = one + np.eye(2, dtype=np.int64)[cell]
            for chosen, measured in itertools.product(range(2), (-99 * grid, 99 * grid)):
                first, second = (
                    played(static, d, mistake.budget, 40, [chosen], [measured], monkeypatch)[1] for d in (one, other)
                )
                worst = max(worst, abs(first - second))
        losses[type(static)] = worst
    right = losses.pop(MultiplicativeWeights)
    assert right <= mistake.budget.epsilon
    assert max(losses.values()) > mistake.budget.epsilon


class TotalAndCells:
    """Somebody's own, whole: the total and every cell, each with Gaussian noise; a total is answered by its own row."""

    unit, pure, concentrated, additive = 1, False, True, True

    def __init__(self, family):
        self.family, self.cells, self.width = family, family.cells, family.cells + 1

    def fit(self, data, budget, place, size_hint=None):
        return np.append(data, data.sum()) + place.draws(self._law(budget), self.width)

    def weights(self, query):
        vector = self.family.vector(query).astype(float)
        return np.append(0 * vector, 1.0) if vector.all() else np.append(vector, 0.0)

    def error(self, budgets, beta, size, query=None):
        variance = sum(float(self._law(budget).sigma_squared) for budget in budgets)
        return (2 * self.cells * variance * np.log(2 * self.family.queries / beta)) ** 0.5

    def stddev(self, budgets, query):
        squares = float((self.weights(query) ** 2).sum())
        return (squares * sum(self._law(budget).stddev() ** 2 for budget in budgets)) ** 0.5

    def _law(self, budget):  # an item is in two rows: l2^2 = 2
        return DiscreteGaussian(round_up(2 / (2 * budget.exact_rho)))


@pytest.fixture
def registered():
    et.register_static("total and cells", TotalAndCells, proof="our handbook, page 3")
    yield "total and cells"
    forget_static("total and cells")


def test_ones_own_conforms_and_is_labelled(registered):
    family = Ranges(size=6)
    static = make_static(registered, family, pure=False)
    check_static(StaticSubject(registered, static, family, [ZCDP(1), ZCDP(Fraction(1, 50))], releases=300))
    assert static_proof_elsewhere(registered) == "our handbook, page 3"
    assert static_proof_elsewhere("histogram") is None
    ranked = rank_static(family, [ZCDP(1)])
    assert registered in [way.name for way in ranked.fitting]
    assert ranked.best.name != registered  # whatever its error: "auto" takes ours
    refused = rank_static(family, [PureDP(1)])
    assert registered not in [way.name for way in refused.fitting]


def test_names_are_taken_once(registered):
    for name in (*STATICS, registered, "auto", "", 7):
        with pytest.raises(ConfigurationError):
            et.register_static(name, TotalAndCells, proof="page 3")
    with pytest.raises(ConfigurationError, match="proof"):
        et.register_static("another one", TotalAndCells, proof=" ")


def test_what_does_not_fit_is_refused_with_a_reason():
    for name, family, words in [
        ("hierarchy", Points(["a"]), "ordered cells"),
        ("square-root", Points(["a"]), "ordered cells"),
        ("marginals", Count(), "marginals"),
        ("matrix", Ranges(size=2000), "one by one"),
        ("multiplicative-weights", HalfSpaces([(0,), (1,)]), "declared"),
        ("no such", Count(), "choose"),
    ]:
        with pytest.raises(ConfigurationError, match=words):
            make_static(name, family, pure=True)
    with pytest.raises(ConfigurationError, match="no option"):
        make_static("histogram", Count(), pure=True, options={"fanout": 2})
    with pytest.raises(ConfigurationError, match="each axis"):
        make_static("hierarchy", Boxes([4, 4]), pure=True, options={"fanout": [2]})


def test_the_best_is_taken_from_public_numbers():
    best = {
        "count": rank_static(Count(), [PureDP(1)]).best.name,
        "ranges": rank_static(Ranges(size=1024), [PureDP(1)]).best.name,
        "ranges, Gaussian": rank_static(Ranges(size=1024), [ZCDP(1)]).best.name,
        "marginals": rank_static(Marginals({f"a{i}": 2 for i in range(12)}, 2), [ZCDP(1)]).best.name,
        "queries": rank_static(SOME, [ZCDP(1)]).best.name,
    }
    assert best == {
        "count": "histogram",
        "ranges": "hierarchy",
        "ranges, Gaussian": "square-root",
        "marginals": "marginals",
        "queries": "matrix",
    }


def test_a_linear_encoder_is_asked_for():
    every = [way.name for way in rank_static(SOME, [PureDP(1)], size=30).fitting]
    linear = [way.name for way in rank_static(SOME, [PureDP(1)], size=30, additive=True).fitting]
    assert set(every) - set(linear) == {"multiplicative-weights"}
    unknown = rank_static(SOME, [PureDP(1)]).fitting[-1]
    assert unknown.name == "multiplicative-weights"
    assert "largest" in unknown.open
