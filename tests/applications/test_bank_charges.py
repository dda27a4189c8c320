"""Banks under statistics that rest on three-entry S4: charged the 8D forms (S3), whatever is protected, never less."""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest
from graph_streams import differing, edge_streams, made

import evertally as et
from evertally.applications.graph import DegreeHistogram
from evertally.applications.graph.prices import histogram
from evertally.applications.paths import dense
from evertally.applications.refuter import removed
from evertally.counting.bank_certificate import certified
from evertally.counting.choose import build
from evertally.noise import ZeroNoise
from evertally.privacy import Change

USERS = {"unit": "user", "max_events_per_user": 3}
BANKS = [("bank", 8), ("bank-open", None)]


def hidden(statistic: Any) -> Fraction:
    """The D2^2 that the noise is made for, from its scale and the certified sensitivity of its coefficients."""
    noise: Any = build(statistic._choice, statistic._setting, ZeroNoise().source())
    assert statistic.charge.exact_rho == Fraction(1, 2)
    return Fraction(noise.sigma) ** 2 / Fraction(certified(noise.bank))


_BY_EDGE = [({}, 1), ({"neighbours": "replace"}, 4), (USERS, 9)]
_CASES = [(case, *how) for case in ("clipped", "projected", "declared") for how in _BY_EDGE]


@pytest.mark.parametrize(("case", "options", "times"), [*_CASES, ("node", {}, 1)], ids=str)  # nodes are there or not
def test_degree_histograms(case: str, options: dict[str, Any], times: int) -> None:
    bound: dict[str, Any] = {"degree_bound": case} if case in ("clipped", "projected") else {"degree_bound": "declared"}
    if case in ("declared", "node"):
        bound["copies"] = "absent"
    if case == "node":
        bound["protects"] = "node"
    price = histogram({"clipped": "cut", "declared": "plain"}.get(case, case), 3)  # type: ignore[arg-type]
    common = {"vertices": 5, "max_degree": 3, "horizon": 8} | bound | options
    root, bank = (made(DegreeHistogram, **common, mechanism=name) for name in ("sqrt", "bank"))
    assert root.sensitivity == Change(root.sensitivity.l1, times * price.gamma_squared, root.sensitivity.linf)
    assert price.split is not None
    assert bank.sensitivity == Change(root.sensitivity.l1, times * price.split, root.sensitivity.linf)
    assert times * price.split <= hidden(bank) <= times * price.split * (1 + Fraction(1, 2**40))


def test_users_replaced_and_other_processes() -> None:
    options = {"vertices": 5, "max_degree": 3, "neighbours": "replace", **USERS}
    assert made(DegreeHistogram, **options, mechanism="tree").sensitivity.l2_squared == 36 * 64
    for name, horizon in BANKS:
        assert made(DegreeHistogram, **options, mechanism=name, horizon=horizon).sensitivity.l2_squared == 36 * 80
    again = et.restore(
        made(DegreeHistogram, **options, mechanism="bank", horizon=8, key=et.simulation(2)).snapshot(),
        key=et.simulation(2),
    )
    assert again.sensitivity.l2_squared == 36 * 80
    pure = made(DegreeHistogram, **options, guarantee=et.PureDP(1.0), horizon=8)
    assert (pure.mechanism, pure.sensitivity.l1) == ("pure-blocks", 6 * 24)  # l1 whatever the factor


def test_stacks() -> None:
    parts = {
        "bins": et.part(DegreeHistogram, vertices=5, max_degree=3),
        "edges": et.part(et.graph.EdgeCount, vertices=5),
    }
    common: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 8, "multipliers": {"bins": 2, "edges": 3}}
    tree, bank = (et.Stacked(parts, **common, mechanism=name, key=et.simulation(1)) for name in ("tree", "bank"))
    assert tree.sensitivity.l2_squared == 4 * 64 + 9 * 2
    assert bank.sensitivity.l2_squared == 4 * 80 + 9 * 2
    assert hidden(bank) >= 4 * 80 + 9 * 2
    assert et.Stacked(parts, **common, key=et.simulation(1)).mechanism == "bank"


def test_no_tiny_stream_loses_more_than_is_charged() -> None:
    """Under the bank's own factor."""
    statistic = made(DegreeHistogram, vertices=4, max_degree=2, horizon=5, mechanism="bank")
    noise: Any = build(statistic._choice, statistic._setting, ZeroNoise().source())
    gram, worst = bank_gram(noise.bank), 0.0
    for stream in islice(edge_streams(4, 5), 0, None, 5):
        for pair in removed(stream):
            rows = dense(differing(statistic, pair)).astype(float)
            worst = max(worst, float(np.einsum("tc,ts,sc->", rows, gram, rows)))
    assert 0.3 < worst / noise.sigma**2 <= 1


def bank_gram(bank: Any) -> np.ndarray:
    """R^T R by the recursion of optimal-counting 2.1, in floats."""
    T = bank.horizon
    a, K, r = (np.repeat(one, bank.lengths, axis=0) for one in (bank.a, bank.K, bank.r))
    R = np.zeros((T, T))
    for j in range(T):
        xi = np.zeros(bank.states)
        for t in range(j, T):
            nu = 1 - float(a[t] @ xi)
            R[t, j], xi = nu / r[t], a[t] * xi + K[t] * nu
    return R.T @ R
