"""What the allocations of the interval tree sum to (dynamic-data 6.6, 6.9, 6.10), in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from evertally.dynamic.interval_index import level
from evertally.dynamic.ledgers import _SERIES, Allocation, Shares, allocation, ledger
from evertally.errors import ConfigurationError

FORMS = ("value", "token-event", "token-item")
FITTING = [
    *(("AT", "value", levels) for levels in (None, 1, 2, 14)),
    *((name, form, levels) for name in ("A0", "A1") for form in FORMS for levels in (None, 14)),
    *(("A2", form, levels) for form in FORMS[1:] for levels in (None, 14)),
]


@pytest.mark.parametrize(("name", "form", "levels"), FITTING)
@pytest.mark.parametrize("rounds", [1, 2, 64])
def test_nothing_spends_more_than_there_is(name: str, form: Any, levels: int | None, rounds: int) -> None:
    assert allocation(name, form=form, rounds=rounds, levels=levels).spent <= 1


def brute(shares: Allocation, top: int) -> Fraction:
    """The value form of 6.6, by its definition, up to a level."""
    total = shares.leaf
    for at in range(2, top + 1):
        rounds = [shares.shares(at, r) for r in range(1, min(shares.rounds, 2 ** (at - 1)) + 1)]
        held, worst = Fraction(0), Fraction(0)
        sums = [Fraction(0)]
        for s in rounds:
            sums.append(sums[-1] + s.opening)
        for R2, last in enumerate(rounds, start=1):
            held = max(held, sums[R2] + last.deletion)
            for R1 in range(1, R2 + 1):
                worst = max(worst, rounds[R1 - 1].deletion + sums[R2] - sums[R1] + last.deletion)
        total += max(held, worst)
    return total


@pytest.mark.parametrize("name", ["AT", "A0", "A1"])
def test_the_value_form_by_its_definition(name: str) -> None:
    shares = allocation(name, form="value", rounds=12)
    sums = [brute(shares, top) for top in (4, 8, 40)]
    assert sums == sorted(sums)
    assert sums[-1] < shares.spent < sums[-1] + Fraction(1, 30)  # the tail is counted, and small
    assert brute(allocation(name, form="value", rounds=12, levels=9), 9) <= 1


def test_the_identities_of_at() -> None:
    shares = allocation("AT", form="value", rounds=128)
    assert shares.leaf == Fraction(1, 2)
    for at in (2, 5):
        node, opened = Fraction(1, at * (at + 1)), Fraction(0)
        for R in range(1, 129):
            s = shares.shares(at, R)
            opened += s.opening
            assert opened == node * R / (R + 1)
            assert opened + s.deletion == node * (R * R + 1) / (R * (R + 1)) <= node
            assert s.size == s.content == s.counted == s.deleted == node / (2 * R * (R + 1))
    assert shares.shares(3, 1).size == Fraction(1, 48)


def test_at_is_asserted_by_value_because_the_other_form_fails() -> None:
    with pytest.raises(AssertionError, match=r"spends 1\.08"):
        allocation("AT", form="token-event", rounds=64)


def printed(round_share: float, leaf: float) -> tuple[float, float]:
    """The paper's series with every level as an inner node except, if given, the leaf: value form and token form."""
    c = 6 / math.pi**2
    rest = 1.0 if not leaf else 1 - c
    worst = c * round_share
    deletion = 2 * (c if not leaf else c / 4) * c / 4
    return leaf + rest * worst, leaf + rest / 2 + 2 * deletion


def test_the_figures_of_the_specification_for_a0() -> None:
    by_value, by_token = printed(1.0, 0.0)
    assert (round(by_value, 3), round(by_token, 3)) == (0.608, 0.870)
    by_value, by_token = printed(1.0, 6 / math.pi**2)
    assert (round(by_value, 3), round(by_token, 3)) == (0.846, 0.896)
    # The same from the code, which charges a leaf for the one release that it makes.
    a0 = allocation("A0", form="value", rounds=64)
    assert round(a0.spent - a0.leaf + 4 * a0.leaf, 3) == Fraction("0.608")
    with_leaf = {form: ledger(_SERIES, a0.shares, "A0", form, 64, None) for form in FORMS}  # type: ignore[arg-type]
    assert round(float(with_leaf["value"]), 3) == 0.846
    assert 0.87 < float(with_leaf["token-event"]) < by_token  # no level opens infinitely many rounds


def test_the_factor_for_a0_is_not_for_leaves_that_take_all() -> None:
    def scaled(at: int, round_: int) -> Shares:
        one = Fraction(1, 4 * at**2 * round_**2) * _SERIES  # times pi^2/6
        return Shares(one, one, one, one)

    assert round(float(ledger(Fraction(1), scaled, "A0", "value", 64, None)), 3) == 1.392


def test_a2_sums_to_one_in_fractions() -> None:
    for form, constant in (("token-event", Fraction(1, 8)), ("token-item", Fraction(1, 4))):
        shares = allocation("A2", form=form, rounds=64)  # type: ignore[arg-type]
        assert shares.leaf == Fraction(1, 4)
        assert shares.shares(2, 1) == Shares(Fraction(1, 48), Fraction(1, 48), constant, constant)
        opened = sum(s.opening for r in range(1, 65) for s in [shares.shares(2, r)])
        assert opened == Fraction(1, 2) * Fraction(1, 6) * Fraction(64, 65)
        assert Fraction("0.95") < shares.spent <= 1
    a2 = allocation("A2", form="token-item", rounds=64)
    assert ledger(a2.leaf, a2.shares, "A2", "token-event", 64, None) > 1  # 1/4 is for whole lifetimes only


def test_what_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs names"):
        allocation("A2", form="value", rounds=64)
    with pytest.raises(ConfigurationError, match="'AT', 'A0', 'A1' or 'A2'"):
        allocation("A3", form="value", rounds=64)
    for rounds in (0, 129, 2.5):
        with pytest.raises(ConfigurationError, match="max_rounds"):
            allocation("AT", form="value", rounds=rounds)  # type: ignore[arg-type]
    shares = allocation("AT", form="value", rounds=3, levels=4)
    for at, round_ in ((5, 1), (1, 1), (2, 4), (2, 0)):
        with pytest.raises(AssertionError, match="outside the ledger"):
            shares.shares(at, round_)


@pytest.mark.parametrize("name", ["AT", "A0", "A1", "A2"])
@pytest.mark.parametrize("levels", [None, 20])
def test_the_ledger_on_every_path_of_a_million_segments(name: str, levels: int | None) -> None:
    """Whoever is inserted in segment a is held on the update chain of a: one node a level, whatever restarts do."""
    form: Any = "token-item" if name == "A2" else "value"
    shares = allocation(name, form=form, rounds=8, levels=levels)
    opened = {at: sum((shares.shares(at, r).opening for r in range(1, 9)), Fraction(0)) for at in range(2, 21)}
    opened[1] = shares.leaf
    fed = max(shares.shares(at, 1).deletion for at in range(2, 21))
    for a in (1, 2, 3, 5, 1023, 1025, 524_287):
        chain, j = [], a
        while j < 2**20:
            chain.append(level(j))
            j += j & -j
        assert len(set(chain)) == len(chain)
        assert sum(opened[at] for at in chain) + fed * (1 if name == "A2" else 0) <= 1
