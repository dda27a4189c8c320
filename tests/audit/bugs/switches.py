"""Bugs in sparse vectors and switches (sparseGumb).

A threshold noise that is kept after a switch loses 1/2 once and not s times; only the ledger finds it, because the
theorem is about another process.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from audit.bugs.planting import Bug, once_made, plant, replaced, scaled
from evertally.counting.process import IntArray
from evertally.privacy import ZCDP, Change
from evertally.selection.sparse_gumbel import SparseGumbel
from evertally.selection.sparse_gumbel_budget import SparseGumbelBudget

_RESTORED = "restored selections"
_VECTOR = "sparse vectors: a wait and a switch"


@plant(_VECTOR)
def switches_never_end() -> Bug:
    """sparse vector goes on after the last switch (streaming-selection 6.2: s runs at most, none after the last
    switch)"""

    def change(self: Any) -> None:
        self._budget = _paid_for(self._budget, switches=99, paid=self._budget.switches)
        self.switches_left = 99

    return once_made(SparseGumbel, change)


@dataclass(frozen=True)
class _Other(SparseGumbelBudget):
    """Noise that was made for another number of switches: tau1 = sqrt(paid) tau."""

    paid: int = 1

    @property
    def _tau1_squared(self) -> Fraction:
        return self.paid * self.tau_squared * self.linf**2


def _paid_for(budget: SparseGumbelBudget, **more: Any) -> _Other:
    """The budget with other numbers."""
    return _Other(**{field.name: getattr(budget, field.name) for field in fields(SparseGumbelBudget)} | more)


@plant(_VECTOR)
def recomputed_scale() -> Bug:
    """noise of the sparse vector for the switches that are left (streaming-selection 6.1: tau1 is not recomputed when s
    decreases)"""
    settle, play = SparseGumbel._settle, SparseGumbel._play

    def shrinking(self: Any, selection: int) -> None:
        self._budget = _paid_for(self._budget, paid=max(1, self.switches_left))
        settle(self, selection)

    def one_by_one(self: Any, sums: IntArray, *out: IntArray) -> None:
        for i in range(len(sums)):  # questions are drawn tick by tick, each with the noise of its time
            play(self, sums[i : i + 1], *(part[i : i + 1] for part in out))

    return replaced(SparseGumbel, _settle=shrinking, _play=one_by_one)


@plant("sparse vector, replaced events, the same counts")
def exact_bar() -> Bug:
    """the bar of the sparse vector from exact counts (additions 3: a bar that is no function of the transcript moves
    too, and a question has sensitivity 2)"""
    play = SparseGumbel._play

    def by_exact_counts(self: Any, sums: IntArray, *out: IntArray) -> None:
        eta = self._eta
        for i in range(len(sums)):
            row = sums[i : i + 1]
            if self.tick:
                noise = self._counted(row, self.tick + 1).min() - row[:, self._named].min()
                self._eta = eta - int(noise)
            play(self, row, *(part[i : i + 1] for part in out))
        self._eta = eta

    return replaced(SparseGumbel, _play=by_exact_counts)


@plant(_VECTOR)
def half_the_questions() -> Bug:
    """half the noise of questions (streaming-selection 6.1: Lap(4 tau1) on questions, Lap(2 tau1) on the threshold)"""
    original: Any = SparseGumbelBudget.__dict__["query"]
    return replaced(SparseGumbelBudget, query=property(lambda self: scaled(original.__get__(self), Fraction(1, 2))))


@plant(_VECTOR)
def no_threshold_noise() -> Bug:
    """no threshold noise in the sparse vector (streaming-selection 6.2: without it every question is paid for)"""
    original = SparseGumbel._settle

    def settle(self: Any, selection: int) -> None:
        left, self.switches_left = self.switches_left, 0  # nothing is drawn for the last selection
        original(self, selection)
        self.switches_left = left

    return replaced(SparseGumbel, _settle=settle)


class _Elsewhere:
    """A source that reads one lane at node 0 only."""

    def __init__(self, inner: Any, lane: str) -> None:
        self._inner, self._lane = inner, lane

    def draws(self, lane: str, law: Any, nodes: Any, *rest: Any) -> Any:
        return self._inner.draws(lane, law, [0 for _ in nodes] if lane == self._lane else nodes, *rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _read_at_zero(lane: str) -> Bug:
    def change(self: Any) -> None:
        self._source = _Elsewhere(self._source, lane)

    return once_made(SparseGumbel, change)


@plant("sparse vector of three ticks, all draws")
def questions_reused() -> Bug:
    """noise of questions reused at every tick (streaming-selection 6.2: query noise never reused)"""
    return _read_at_zero("question")


@plant("noise ledger of sparseGumb")
def threshold_kept() -> Bug:
    """threshold noise of the sparse vector kept after a switch (streaming-selection 6.2: threshold noise redrawn at
    each run)"""
    return _read_at_zero("threshold")


@plant("counts of sparseGumb, before and after a switch")
def counters_of_one_selection() -> Bug:
    """counters that pay as if nothing were named again (streaming-selection 6.2: s + 1 selections share the budget of
    counts)"""

    def instance(self: SparseGumbelBudget) -> tuple[ZCDP, Change]:
        return ZCDP(1 / (2 * self.tau_squared)), Change(self.linf, self.linf**2, self.linf)

    return replaced(SparseGumbelBudget, instance=property(instance))


@plant("what sparseGumb names first")
def selections_of_one() -> Bug:
    """selections that pay as if nothing were named again (streaming-selection 6.1: tau2 = sqrt(s + 1) tau)"""
    original: Any = SparseGumbelBudget.__dict__["gumbel_scale"]
    return replaced(SparseGumbelBudget, gumbel_scale=property(lambda self: original.__get__(replace(self, switches=0))))


@plant(_RESTORED)
def switches_come_back() -> Bug:
    """all switches back after a restore (streaming-selection 6.2: s switches in the whole life of the stream)"""
    original = SparseGumbel.load

    def load(self: Any, tick: int, parts: list[bytes]) -> None:
        original(self, tick, parts)
        self.switches_left = self._budget.switches

    return replaced(SparseGumbel, load=load)
