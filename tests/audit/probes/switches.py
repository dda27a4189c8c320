"""Sparse vectors and switches (sparseGumb)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from audit.probes.item_probing import (
    ADD,
    REPLACE,
    Histogram,
    exceeds,
    pair_loss,
    separates,
)
from audit.probes.probing import Verdict, concentrated_verdict, probe
from evertally.audit.exact import ExactLoss
from evertally.audit.label_noise import separation
from evertally.audit.laws.enumerated import FAR, Outcome, Place, Run, outcome_law
from evertally.audit.laws.switching import Engine, counter_table, sparse_vector_loss
from evertally.noise import DiscreteGaussian, DiscreteLaplace, Recording, ZeroNoise
from evertally.privacy import ApproxDP
from evertally.selection.sparse_gumbel import SparseGumbel
from evertally.selection.sparse_gumbel_budget import SparseGumbelBudget, sparse_gumbel_budget


def switching(epsilon: float, switches: int, columns: int, horizon: int, eta: int) -> tuple[SparseGumbelBudget, Engine]:
    """The budget of an adaptive promise, and the engine."""
    budget = sparse_gumbel_budget(ApproxDP(epsilon, 1e-6), 1, switches, 1, ADD)
    options: dict[str, Any] = {"columns": columns, "horizon": horizon, "eta": eta, "radix": 2}
    return budget, lambda source: SparseGumbel(budget, source=source, **options)


def waits(runs: int, over: int, eta: int) -> tuple[Any, Any, dict[int, int]]:
    """Two streams and what is named: ten columns wait at the bar for four ticks, one higher on the right, and then
    another column, which is the same on both, exceeds it by `over`; and all of that again."""
    low, named, h = [np.zeros(12, dtype=np.int64)], {1: 0}, np.zeros(12, dtype=np.int64)
    for run in range(1, runs + 1):
        waiting = np.array([1000 * run, *[1000 * run + eta] * 10, h[-1]])
        ending = waiting.copy()
        ending[0], ending[-1] = waiting[0] + 500, waiting[0] + 500 + eta + over  # so far up that nobody else is near
        low += [waiting - h, 0 * h, 0 * h, 0 * h, ending - waiting]
        h = ending
        named[len(low)] = 0
    high = [row.copy() for row in low]
    high[0][1:11] += 1
    return np.array(low), np.array(high), named


@probe("exact law", "sparse vectors: a wait and a switch")
def _() -> Verdict:
    # 1.4 and 6.2: 3/(4 tau1) for each of s of them, and no more of them than s.
    cases, eta = [], 50
    for s in (1, 3):
        budget, make = switching(8, s, 12, 32, eta)
        tau = math.sqrt(budget.tau_squared)
        low, high, named = waits(s + 1, round(2 * math.sqrt(s) * tau), eta)
        cases.append((sparse_vector_loss(make, low, high, named), 3 * math.sqrt(s) / (4 * tau), f"{s} switches"))
    return exceeds(cases, "the ticks of the switches lose epsilon")


@probe("exact law", "sparse vector, replaced events, the same counts")
def _() -> Verdict:
    # additions 3: the bar is made of counts that are in the transcript, also at the tick of the switch. On the left the
    # named column has one event more, on the right ten others have; noise of the blocks with tick 1 makes up for it.
    eta, ticks = 50, 6
    budget = sparse_gumbel_budget(ApproxDP(8, 1e-6), 1, 1, 1, REPLACE)
    tau = math.sqrt(budget.tau_squared)
    low, high, named = waits(1, round(2 * tau), eta)
    low[0][0] += 1
    blocks = {("count-0", node, 0): 1 for node in (1, 2, 4)}

    def make(source: Any) -> SparseGumbel:
        return SparseGumbel(budget, columns=12, horizon=ticks, eta=eta, source=source, radix=2)

    lost = sparse_vector_loss(make, low, high, named, counted=({}, blocks))
    back = sparse_vector_loss(make, high, low, named, counted=(blocks, {}))
    return exceeds([(max(lost, back), 1 / tau, "one switch")], "the ticks of the switches lose epsilon")


@probe("exact law", "sparse vector of three ticks, all draws")
def _() -> Verdict:
    budget, make = switching(200, 1, 2, 3, 1)

    def fixed(place: Place) -> int | None:
        lane, _, coordinate = place
        return None if lane == "threshold" or (lane == "question" and coordinate == 1) else 0

    def run(rows: Any) -> Run:
        def played(source: Any) -> Outcome:
            engine, seen = make(source), []
            for row in rows:
                engine.advance(np.array([row]))
                seen.append(engine.selections)
            return tuple(seen)

        return played

    variates: dict[str | None, float] = {"0": FAR, "1": -FAR}
    pairs = [([(0, 0), (0, 0), (0, 1)], [(0, 0)] * 3), ([(0, 0), (0, 1), (0, 0)], [(0, 0)] * 3)]
    cases = []
    for pair in pairs:
        laws = [outcome_law(run(rows), tail=1e-6, fixed=fixed, variates=variates) for rows in pair]
        loss = ExactLoss(max(lost for _, lost in laws), laws[0][0], laws[1][0])
        cases.append((loss.epsilon, 3 / (4 * math.sqrt(budget.tau_squared)), f"{pair[0]} or none"))
    return exceeds(cases, "the ticks of the switches lose epsilon")


@probe("exact law", "what sparseGumb names first")
def _() -> Verdict:
    budget, make = switching(8, 3, 2, 8, 5)

    def run(histogram: Histogram) -> Run:
        return lambda source: tuple(make(source).advance(np.array([list(histogram.values())]))[0].ravel().tolist())

    loss = pair_loss(run, {"a": 0, "b": 1}, {"a": 0, "b": 0}, fixed=lambda place: 0)
    return concentrated_verdict(loss, float(1 / (2 * (budget.switches + 1) * budget.tau_squared)))


@probe("closed form", "counts of sparseGumb, before and after a switch")
def _() -> Verdict:
    # One event in all columns: every counter that ever ran has it.
    cases = []
    for named in ({1: 0, 3: 1}, {1: 0, 5: 1}, {1: 0, 2: 0}):
        budget, make = switching(8, 1, 3, 8, 50)
        responses, laws = counter_table(make, np.zeros((8, 3), dtype=np.int64), named)
        cases.append((separation(responses, laws, np.ones(8)), float(1 / (2 * budget.tau_squared))))
    return separates(cases)


@probe("conformance", "noise ledger of sparseGumb")
def _() -> Verdict:
    # 6.1: every draw once; s sparse vectors with a threshold each, s + 1 selections; scales from tau.
    s, T, d = 2, 8, 3
    budget, make = switching(8, s, d, T, 0)
    tau = math.sqrt(budget.tau_squared)
    recording = Recording(ZeroNoise())
    engine = make(recording.source())
    for row in ((1, 0, 0), (0, 0, 9), (0, 0, 0), (0, 90, 0), (900, 0, 0), (0, 0, 9000), (0, 0, 0), (1, 1, 1)):
        engine.advance(np.array([row]))
    drawn = [(draw.lane, node) for draw in recording.draws for node in draw.nodes]
    lanes = [lane for lane, _ in drawn]
    # The blocks of a new counter are those that tile the past: they are read again, not drawn again.
    once = [place for place in drawn if not place[0].startswith("count")]
    number = {lane: len({node for other, node in drawn if other == lane}) for lane in set(lanes)}
    if len(set(once)) != len(once):
        return True, "a draw of a selection, a threshold or a question is used twice"
    if (number["select"], number["threshold"]) != (s + 1, s):
        return True, f"{number['select']} selections and {number['threshold']} thresholds, paid for {s + 1} and {s}"
    if len({lane for lane in lanes if lane.startswith("count")}) != s + 1:
        return True, "counters of two selections share their noise"
    needs = {"threshold": 2 * math.sqrt(s) * tau, "question": 4 * math.sqrt(s) * tau, "count": 4 * (s + 1) * tau**2}
    for draw in recording.draws:
        if draw.lane == "select":
            continue
        need = needs[draw.lane.split("-")[0]]
        law = draw.law
        has = float(law.scale) if isinstance(law, DiscreteLaplace) else 0.0
        has = float(law.sigma_squared) if isinstance(law, DiscreteGaussian) else has
        if not need * (1 - 1e-12) <= has <= need * (1 + 1e-9):
            return True, f"{draw.lane} is drawn from {law}, its share buys {need:.6g}"
    return False, "every draw once, and each with the scale that its share buys"
