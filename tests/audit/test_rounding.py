"""The rows "margins", "undecided" and "restored noise": the product holds, and mistakes that one release in millions
would show are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flint import arb

import evertally as et
from evertally.audit import audit_mechanism, exact_paths
from evertally.audit.attacks import Finding
from evertally.audit.planted_bits import BITS, PlantedSource
from evertally.audit.processes_built import processes_of
from evertally.audit.rounding import margins_attack, restored_noise_attack, undecided_attack
from evertally.audit.transforms import wrong_transform
from evertally.balls import at_precision
from evertally.counting import (
    bank,
    bank_path,
    block_level,
    block_table,
    fourier,
    honaker,
    pure_blocks,
    recursion,
    sqrt,
    sqrt_factor,
    toeplitz_factor,
    tree,
)
from evertally.noise.reals import RealLaw

Make = Callable[[Any], Any]


def _counter(mechanism: str, guarantee: Any = None, horizon: int | None = 20, **options: Any) -> Make:
    def make(key: Any) -> Any:
        promise = et.ZCDP(0.5) if guarantee is None else guarantee
        return et.Counter(guarantee=promise, horizon=horizon, mechanism=mechanism, key=key, **options)

    return make


def _active(key: Any) -> Any:
    return et.ActiveUsers(guarantee=et.ZCDP(0.5), horizon=200, windows=[1, 56], key=key)


_PURE = et.PureDP(1.0)
_DECAY = et.workloads.Decay("0.7")
MADE: dict[str, tuple[Make, list[Any]]] = {
    "bank": (_counter("bank"), [1, 2]),
    "bank-open": (_counter("bank-open", horizon=None), [1, 2]),
    "blocks": (_counter("pure-blocks", _PURE), [1, 2]),
    "levels": (_counter("pure-blocks", _PURE, 2048), [1, 2]),
    "epoch-blocks": (_counter("epoch-blocks", _PURE, None), [1, 2]),
    "decay": (_counter("bank", workload=_DECAY), [1, 2]),
    "honaker": (_counter("honaker", horizon=100), [1, 2]),
    "short honaker": (_counter("honaker"), [1, 2]),
    "long sqrt": (_counter("sqrt", horizon=150), [1, 2]),
    "root": (_counter("root", workload=_DECAY), [1, 2]),
    "endless root": (_counter("root", horizon=None, workload=_DECAY), [1, 2]),
    "toeplitz": (_counter("root", workload=et.workloads.Toeplitz((3, 2, 1))), [1, 2]),
    "input": (_counter("input", _PURE, workload=et.workloads.Window(3)), [1, 2]),
    "sqrt": (_counter("sqrt"), [1, 2]),
    "tree": (_counter("tree", _PURE, 100), [1, 2]),
}
ROWS = (margins_attack, undecided_attack, restored_noise_attack)


@pytest.mark.parametrize("name", MADE)
def test_the_product_holds(name: str) -> None:
    for row in ROWS:
        found = row(*MADE[name])
        assert not found.leaked, found.evidence


def test_paths_of_users_hold() -> None:
    inputs = [_sent(0), _sent(1)]
    assert [built.kind.__name__ for built in processes_of(_active, inputs)][:1] == ["CentredPath"]
    for row in ROWS:
        found = row(_active, inputs)
        assert found.looked
        assert not found.leaked, found.evidence


def _sent(tick: int) -> Any:
    from evertally.audit.game import Sent

    return Sent(["x"], [f"user {tick}"])


def test_rows_say_where_there_is_nothing_to_look_at() -> None:
    found = undecided_attack(*MADE["tree"])
    assert not found.looked
    assert not found.leaked
    assert margins_attack(*MADE["tree"]).looked, "sums of integers have a definition too"


def test_every_audit_has_the_rows() -> None:
    reports = {report.adversary: report for report in audit_mechanism(_counter("honaker", horizon=4))}
    for name in ("margins", "undecided", "restored noise"):
        assert (reports[name].aspect, reports[name].verdict) == ("state", "holds (tight)")


def test_bits_that_are_planted_are_read_back() -> None:
    source, law = PlantedSource(), RealLaw("laplace", "test")
    for value in ("0.0009765625", "-3.5", "250"):
        source.plant(("lane", 1, 0), law.kind, arb(value))
        exact = at_precision(BITS, lambda: source.variate("lane", law, 1, 0))
        drawn = source.reals("lane", law, range(1, 2))
        assert at_precision(BITS, lambda: abs(exact - arb(value)) < arb(2) ** -300)  # noqa: B023
        assert at_precision(BITS, lambda: exact.overlaps(drawn.refine(0, 0, 500)))  # noqa: B023
        assert abs(float(drawn.value[0, 0]) - float(arb(value))) <= float(drawn.radius[0])


def test_transforms_keep_what_they_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wrong_transform() == ""
    monkeypatch.setattr(fourier, "error_factor", lambda n: 2.0**-56)
    assert "farther than" in wrong_transform()


# -- mistakes ----------------------------------------------------------------------------------------------------------


def _bounds_of_blocks(patch: pytest.MonkeyPatch) -> None:
    walked = block_level.BlockLevel._walked
    patch.setattr(block_level.BlockLevel, "_walked", lambda self, *where: (walked(self, *where)[0], np.zeros(where[2])))


def _bounds_of_refined_trees(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(honaker, "UNIT", 0.0)


def _bound_of_a_transform(patch: pytest.MonkeyPatch) -> None:
    rounded = sqrt.FactorProcess._rounded
    patch.setattr(
        sqrt.FactorProcess, "_rounded", lambda self, centre, radius, *more: rounded(self, centre, radius / 1e6, *more)
    )


def _a_recursion_without_sizes(patch: pytest.MonkeyPatch) -> None:
    def enclosed(self: Any, z: Any) -> Any:
        terms = self._later * self._recent
        centre = (z - terms.sum(axis=0)) / self.coefficients[0]
        fresh = 64 * 2.0**-53 * (np.abs(z) + terms.sum(axis=0)) / self.coefficients[0]
        self._radius = np.maximum(self._radius, self._gain * self._radius + fresh)
        self._recent[:] = np.concatenate([[centre], self._recent])[:-1]
        return centre, self._radius

    patch.setattr(recursion.RecursiveProcess, "_enclose", enclosed)


def _inverse_without_its_error(patch: pytest.MonkeyPatch) -> None:
    inverse = sqrt_factor.certified_inverse
    patch.setattr(toeplitz_factor, "certified_inverse", lambda *given: (inverse(*given)[0] + 2.0**-40, 2.0**-52))


def _floats_that_decide_everything(patch: pytest.MonkeyPatch) -> None:
    settled = bank_path.BankPath.settled
    patch.setattr(
        bank_path.BankPath, "settled", lambda self, column, ticks: [x + 1 for x in settled(self, column, ticks)]
    )


def _balls_that_lose_a_bare_tick(patch: pytest.MonkeyPatch) -> None:
    ball = block_table.BlockTable.path_ball
    patch.setattr(block_table.BlockTable, "path_ball", lambda self, *given: [x + 1 for x in ball(self, *given)])


def _ties_downwards(patch: pytest.MonkeyPatch) -> None:
    def quotient(z: Any, series: list[int], rest: int = 0, unit: int = 1) -> int:
        return -sqrt_factor.rounded_quotient(-z, series, -rest, unit)

    patch.setattr(toeplitz_factor, "rounded_quotient", quotient)


def _exact_integers_of_another_height(patch: pytest.MonkeyPatch) -> None:
    exact = honaker.HonakerProcess._exact
    patch.setattr(honaker.HonakerProcess, "_exact", lambda self, tick, column: exact(self, max(1, tick - 1), column))


def _cut_without_its_rest(patch: pytest.MonkeyPatch) -> None:
    rounded = toeplitz_factor.ToeplitzFactor.rounded

    def always(self: Any, z: Any, rest: int = 0, cut: bool = False) -> Any:
        return rounded(self, z[1:] if cut else z, rest, cut) if not cut else rounded(self, z, rest, cut) + 1

    patch.setattr(toeplitz_factor.ToeplitzFactor, "rounded", always)


def _radius_forgotten(patch: pytest.MonkeyPatch) -> None:
    recall = recursion.RecursiveProcess.recall

    def forgetful(self: Any, tick: int, memory: bytes) -> None:
        recall(self, tick, memory)
        self._radius = np.zeros(self.columns)

    patch.setattr(recursion.RecursiveProcess, "recall", forgetful)


def _nodes_forgotten(patch: pytest.MonkeyPatch) -> None:
    recall = honaker.HonakerProcess.recall

    def forgetful(self: Any, tick: int, memory: bytes) -> None:
        recall(self, tick, memory)
        self._node[:, 0] = 0.0

    patch.setattr(honaker.HonakerProcess, "recall", forgetful)


def _states_of_another_tick(patch: pytest.MonkeyPatch) -> None:
    kept = bank_path.BankPath.kept
    patch.setattr(bank_path.BankPath, "kept", lambda self, tick: kept(self, max(0, tick - 1)))


def _memory_of_anything(patch: pytest.MonkeyPatch) -> None:
    recall = bank.BankProcess.recall
    patch.setattr(
        bank.BankProcess, "recall", lambda self, tick, memory: recall(self, tick, bank._FORMAT[:1] + memory[1:])
    )


def _a_tree_that_seeks_too_far(patch: pytest.MonkeyPatch) -> None:
    blocks = tree.TreeProcess._blocks
    patch.setattr(tree.TreeProcess, "_blocks", lambda self, tick: blocks(self, tick)[:-1])


def _a_block_that_begins_late(patch: pytest.MonkeyPatch) -> None:
    make = pure_blocks.PureBlocksProcess._make

    def late(self: Any, done: int, wanted: int) -> None:
        make(self, done, wanted)
        if done:
            self._rows = np.roll(self._rows, 1, axis=0)

    patch.setattr(pure_blocks.PureBlocksProcess, "_make", late)


MISTAKES: list[tuple[Callable[[pytest.MonkeyPatch], None], str, Callable[..., Finding]]] = [
    (_bounds_of_blocks, "blocks", margins_attack),
    (_bounds_of_refined_trees, "short honaker", margins_attack),
    (_bound_of_a_transform, "long sqrt", margins_attack),
    (_inverse_without_its_error, "root", margins_attack),
    (_floats_that_decide_everything, "bank", undecided_attack),
    (_balls_that_lose_a_bare_tick, "blocks", undecided_attack),
    (_ties_downwards, "root", undecided_attack),
    (_exact_integers_of_another_height, "honaker", undecided_attack),
    (_cut_without_its_rest, "endless root", undecided_attack),
    (_nodes_forgotten, "honaker", restored_noise_attack),
    (_states_of_another_tick, "bank", restored_noise_attack),
    (_memory_of_anything, "bank", restored_noise_attack),
    (_a_tree_that_seeks_too_far, "tree", restored_noise_attack),
    (_a_block_that_begins_late, "blocks", restored_noise_attack),
]


@pytest.mark.parametrize(("plant", "name", "row"), MISTAKES, ids=lambda one: getattr(one, "__name__", str(one)))
def test_mistakes_are_found(plant: Any, name: str, row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _forget()
    with monkeypatch.context() as patch:
        plant(patch)
        found = row(*MADE[name])
    _forget()
    assert found.leaked, found.evidence


@pytest.mark.parametrize(
    ("plant", "row"), [(_a_recursion_without_sizes, margins_attack), (_radius_forgotten, restored_noise_attack)]
)
def test_mistakes_of_paths_of_users_are_found(plant: Any, row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    found = row(_active, [_sent(0), _sent(1)])
    assert found.leaked, found.evidence


def _forget() -> None:
    """Factors that were made before, or with a mistake."""
    for made in (toeplitz_factor.root_factor, sqrt_factor.sqrt_factor, block_table.block_table):
        made.cache_clear()


def test_definitions_are_of_their_own_kind() -> None:
    """A definition that nobody wrote down is none, not a pass."""
    assert exact_paths.path_of(object(), PlantedSource(), 0, 3) is None
