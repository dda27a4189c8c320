"""The page about optimal counting: what it says of "auto", of charges, of the exact curve and of floors is so."""

from __future__ import annotations

import math
from typing import Any

import pytest
from page_tables import rows

import evertally as et
from evertally.counting.bank import LONGEST_BANK, mu_squared
from evertally.counting.choose import choose
from evertally.counting.processes import Gram, Setting
from evertally.dynamic.charges import Encoder, Relation
from evertally.privacy import Change, Guarantee, Neighbours
from evertally.theory.frontier import optimal_factor
from printed import ROOT

PAGE = "docs/optimal-counting.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")


def taken(guarantee: Guarantee, horizon: int | None) -> str:
    return choose(guarantee, Setting(Change(1, 1, 1), horizon, 1, 2**30)).mechanism


def test_its_first_lines() -> None:
    assert LONGEST_BANK == 2**24
    assert 'horizon=2**16)  # counter.mechanism is "bank"' in TEXT
    assert et.Counter(guarantee=et.ZCDP(0.5), horizon=2**16, key=et.simulation(1)).mechanism == "bank"


TAKEN: list[tuple[Guarantee, str, dict[int | None, str]]] = [
    (
        et.ZCDP(0.5),
        '`"bank"` from 2 ticks to 2^24',
        {2: "bank", 3: "bank", 365: "bank", 2**16: "bank", 2**20: "bank", None: "bank-open"},
    ),
    (
        et.PureDP(1),
        '`"pure-blocks"` from 4 ticks on',
        {4: "pure-blocks", 5: "pure-blocks", 365: "pure-blocks", 2**24: "pure-blocks", None: "epoch-blocks"},
    ),
    (
        et.ApproxDP(1, 1e-6),
        '`"pure-blocks"` up to 1,024 ticks',
        {4: "pure-blocks", 1024: "pure-blocks", 1025: "bank", 2**20: "bank", None: "bank-open"},
    ),
    (
        et.ApproxDP(1, 1e-9),
        '`"pure-blocks"` up to 2^20 ticks and more, `"bank"` from 2^22 on',
        {365: "pure-blocks", 2**20: "pure-blocks", 2**22: "bank", None: "bank-open"},
    ),
]


@pytest.mark.parametrize(("guarantee", "said", "found"), TAKEN, ids=[str(case[0]) for case in TAKEN])
def test_what_auto_takes(guarantee: Guarantee, said: str, found: dict[int | None, str]) -> None:
    (cells,) = [cells for cells in rows(PAGE, "What it comes to for a count") if said in cells[1]]
    assert cells[2] == f'`"{found[None]}"`'
    assert {horizon: taken(guarantee, horizon) for horizon in found} == found
    # As a share of a stream an (epsilon, delta) promise is zCDP.
    stream = et.Stream("one of two", guarantee=guarantee, horizon=365, key=et.simulation(1))
    share = stream.add(et.Counter, share="1/2")
    assert share.mechanism == ("pure-blocks" if isinstance(guarantee, et.PureDP) else "bank")


def test_large_epsilons_take_trees_of_integers() -> None:
    assert "at epsilon = 8 a tree of discrete noise is better up to some hundred ticks" in TEXT
    assert [taken(et.PureDP(8), T) for T in (16, 100, 1000)] == ["tree", "tree", "pure-blocks"]


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"), [(1, 1e-6, "6.8 % at (1, 1e-6)"), (1, 1e-9, "4.9 %"), (0.1, 1e-6, "8.0 %")]
)
def test_what_the_exact_curve_gains(epsilon: float, delta: float, said: str) -> None:
    promise = et.ApproxDP(epsilon, delta)
    alone: dict[str, Any] = {"guarantee": promise, "horizon": 4096, "mechanism": "bank", "key": et.simulation(1)}
    gained = 1 - math.sqrt(2 * promise.to_zcdp().exact_rho / mu_squared(promise))
    assert f"{100 * gained:.1f} %" in said
    assert said in TEXT
    by_zcdp = et.Counter(**alone | {"guarantee": promise.to_zcdp()})
    counter = et.Counter(**alone)
    assert counter.charge == promise
    assert counter.worst_stddev() / by_zcdp.worst_stddev() == pytest.approx(1 - gained, rel=1e-3)


def test_what_banks_are_charged() -> None:
    def both(**options: Any) -> tuple[int, int]:
        ordered, split = (Relation(**options).change(Encoder(), gram) for gram in (Gram.ORDERED, Gram.NONNEGATIVE))
        return int(ordered.l2_squared), int(split.l2_squared)

    assert "are charged 8 with a bank in place of 6" in TEXT
    assert both(identity="value", protects="item", unique_deletions=True) == (6, 8)
    assert both(identity="token", protects="item", neighbours=Neighbours.REPLACE) == (6, 8)
    for k in (2, 3, 9):
        assert both(identity="id", protects="item", lifetimes=k) == (2 * k, 2 * k * k)
    for options in ({"identity": "id"}, {"identity": "token"}, {"identity": "raw", "unique_deletions": True}):
        ordered, split = both(protects="item", **options)
        assert ordered == split


def test_the_floor_under_a_pure_budget() -> None:
    said = {8: 12.8, 10: 17.5, 16: 36.4, 20: 52.9}
    assert "12.8, 17.5, 36.4 and 52.9 at 2^8, 2^10, 2^16 and 2^20" in TEXT
    blocks = {cells[0]: float(cells[2]) for cells in rows(PAGE, "The largest variance times eps^2")}
    for k, value in said.items():
        floor = 2 * optimal_factor(2**k)[0] ** 2
        assert floor == pytest.approx(value, abs=0.05)
        assert 4 < blocks[f"2^{k}"] / floor < 15


@pytest.mark.parametrize(("ticks", "said"), [(300, "1.57 at 300"), (1000, "1.23 at 1,000"), (2**16, "2.4 at 2^16")])
def test_the_price_under_a_pure_budget(ticks: int, said: str) -> None:
    assert said in TEXT
    price = et.plan(et.Counter, guarantee=et.PureDP(1.0), horizon=ticks).price
    assert price is not None
    assert price.variance_ratio == pytest.approx(float(said.split()[0]), abs=0.006)


def test_epochs_of_blocks() -> None:
    heading, blocks, trees = (
        [cell.strip() for cell in line.split("|")[2:-1]]
        for line in TEXT[TEXT.index("| ticks from |") :].split("\n\n")[0].splitlines()
        if line.startswith(("| ticks from", "| epoch-blocks", "| epoch-tree"))
    )
    for at, *printed in zip(heading, blocks, trees, strict=True):
        k = int(at.removeprefix("2^"))
        for name, value in zip(("epoch-blocks", "epoch-tree"), printed, strict=True):
            counter = et.Counter(guarantee=et.PureDP(0.01), horizon=None, mechanism=name, key=et.simulation(1))
            assert counter.noise.worst_in(k).variance * 1e-4 == pytest.approx(float(value), rel=0.02), (name, at)
