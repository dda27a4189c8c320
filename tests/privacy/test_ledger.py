"""The ledger: what fits is promised, nothing else is, and the total never exceeds the guarantee."""

import contextlib
import threading
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evertally.errors import BudgetExceeded, ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Ledger, PureDP, epsilon_of_rho, rho_of_epsilon_delta

GUARANTEES = [PureDP(0.7), ZCDP(0.3), ApproxDP(1.1, 1e-7), ApproxZCDP(0.3, 1e-7)]


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("shares", [[0.1] * 10, ["1/3"] * 3, [0.3, 0.7], [1], [Fraction(1, 7)] * 7])
def test_shares_of_exactly_one_fit_and_nothing_more_does(guarantee, shares):
    ledger = Ledger(guarantee)
    for number, share in enumerate(shares):
        ledger.promise(f"mechanism {number}", guarantee.share(share))
    assert ledger.spent == 1
    assert ledger.left == 0
    assert guarantee.covers(ledger.total())
    with pytest.raises(BudgetExceeded):
        ledger.promise("one more", guarantee.share(Fraction(1, 10**40)))
    assert len(ledger.entries) == len(shares)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_the_smallest_excess_is_refused_and_leaves_no_trace(guarantee):
    ledger = Ledger(guarantee)
    ledger.promise("first", guarantee.share(0.6))
    before = (ledger.entries, ledger.spent, ledger.left, ledger.total())
    with pytest.raises(BudgetExceeded):
        ledger.promise("second", guarantee.share(Fraction(4, 10) + Fraction(1, 10**30)))
    assert (ledger.entries, ledger.spent, ledger.left, ledger.total()) == before
    ledger.promise("second", guarantee.share(ledger.left))
    assert ledger.left == 0


def test_the_refusal_says_what_was_asked_what_is_left_and_what_to_do():
    ledger = Ledger(PureDP(1))
    ledger.promise("visits", PureDP(0.5))
    with pytest.raises(BudgetExceeded) as error:
        ledger.promise("wards", PureDP(0.75))
    for word in ("'wards'", "0.75", "PureDP(epsilon=1.0)", "'visits'", "left: 0.5", "share"):
        assert word in str(error.value)


def test_an_empty_ledger():
    ledger = Ledger(PureDP(1))
    assert (ledger.spent, ledger.left, ledger.total(), ledger.entries) == (0, 1, None, ())


def test_table_and_repr_are_readable():
    ledger = Ledger(ApproxDP(1, 1e-6))
    ledger.promise("visits", ledger.guarantee.share("2/3"))
    assert "visits" in ledger.table()
    assert "1/3" in ledger.table()
    assert repr(ledger) == "<Ledger of ApproxDP(epsilon=1.0, delta=1e-06): 1 promises, 1/3 left>"


# Kinds


def test_entries_in_three_currencies():
    ledger = Ledger(ApproxDP(10, 0.5, force=True))
    pure = ledger.promise("a", PureDP(0.5))
    assert (pure.epsilon, pure.rho, pure.delta) == (Fraction(1, 2), Fraction(1, 8), 0)
    bad_event = ledger.promise("b", ApproxZCDP(0.25, 0.125, force=True))
    assert (bad_event.epsilon, bad_event.rho, bad_event.delta) == (None, Fraction(1, 4), Fraction(1, 8))
    assert ledger.cost.rho == Fraction(3, 8)


def test_a_pure_mechanism_costs_half_its_squared_epsilon_in_a_zcdp_ledger():
    ledger = Ledger(ZCDP(1))
    ledger.promise("laplace", PureDP(1))
    ledger.promise("gauss", ZCDP(0.5))
    assert ledger.left == 0
    assert ledger.total() == ZCDP(1)


@pytest.mark.parametrize("charge", [ZCDP(1e-9), ApproxDP(1e-9, 1e-9), ApproxZCDP(1e-9, 1e-9)])
def test_nothing_but_pure_fits_a_pure_ledger(charge):
    with pytest.raises(BudgetExceeded, match="implies PureDP"):
        Ledger(PureDP(100)).promise("x", charge)


def test_no_delta_fits_a_zcdp_ledger():
    for charge in (ApproxDP(1e-9, 1e-9), ApproxZCDP(1e-9, 1e-9)):
        with pytest.raises(BudgetExceeded, match="implies ZCDP"):
            Ledger(ZCDP(100)).promise("x", charge)


def test_approximate_zcdp_ledger_watches_both_numbers():
    ledger = Ledger(ApproxZCDP(1, 1e-6))
    ledger.promise("a", ZCDP(0.5))
    assert ledger.total() == ApproxZCDP(0.5, 1e-6)
    ledger.promise("b", ApproxZCDP(0.125, Fraction(1e-6) * 3 / 4))
    assert ledger.left == Fraction(1, 4)
    with pytest.raises(BudgetExceeded):
        ledger.promise("c", ApproxZCDP(0.125, Fraction(1e-6) / 2))
    assert ledger.total() == ApproxZCDP(0.625, Fraction(1e-6) * 3 / 4)


def test_an_approximate_ledger_of_pure_mechanisms_adds_epsilons():
    ledger = Ledger(ApproxDP(1, 1e-6))
    ledger.promise("a", PureDP(0.5))
    ledger.promise("b", PureDP(0.25))
    assert ledger.spent == Fraction(3, 4)
    assert ledger.total() == ApproxDP(0.75, 1e-6)
    assert ledger.left == 0  # shares are zCDP, and by that count pure mechanisms are dear
    ledger.promise("c", PureDP(0.25))
    with pytest.raises(BudgetExceeded):
        ledger.promise("d", PureDP(1e-300))


def test_an_approximate_ledger_of_many_small_pure_mechanisms_counts_rho():
    guarantee = ApproxDP(1, 1e-6)
    ledger = Ledger(guarantee)
    epsilon = Fraction(1, 100)
    fitting = int(guarantee.to_zcdp().exact_rho / (epsilon**2 / 2))
    assert fitting > 400  # four times more than epsilons that add up
    for number in range(fitting):
        ledger.promise(str(number), PureDP(epsilon))
    assert ledger.total().exact_epsilon <= 1
    with pytest.raises(BudgetExceeded):
        ledger.promise("one more", PureDP(epsilon))


def test_an_approximate_ledger_converts_once_with_the_delta_that_is_left():
    delta = Fraction(1, 10**6)
    ledger = Ledger(ApproxDP(1, delta))
    ledger.promise("unknown domain", ApproxZCDP(0.01, delta / 4))
    ledger.promise("counter", ZCDP(0.01))
    left = delta * 3 / 4
    rho = Fraction(0.01) * 2
    assert ledger.total() == ApproxDP(epsilon_of_rho(rho, left), delta)
    ledger.promise("rest", ZCDP(rho_of_epsilon_delta(1, left) - rho))
    assert ledger.left == 0
    with pytest.raises(BudgetExceeded):
        ledger.promise("more", ZCDP(1e-300))


def test_a_delta_that_leaves_nothing_to_convert_with_is_refused():
    with pytest.raises(BudgetExceeded, match="smaller"):
        Ledger(ApproxDP(1, 1e-6)).promise("x", ApproxZCDP(1e-9, 1e-6))


def test_approximate_charges_add_by_basic_composition():
    ledger = Ledger(ApproxDP(1, 0.5, force=True))
    ledger.promise("a", ApproxDP(0.5, 0.25, force=True))
    ledger.promise("b", ApproxDP(0.5, 0.25, force=True))
    assert ledger.spent == 1
    assert ledger.total() == ApproxDP(1, 0.5, force=True)


def test_an_oblivious_claim_does_not_fit_an_adaptive_stream():
    charge = PureDP(0.1, adversary="oblivious")
    with pytest.raises(BudgetExceeded, match="oblivious"):
        Ledger(PureDP(1)).promise("x", charge)
    ledger = Ledger(PureDP(1, adversary="oblivious"))
    ledger.promise("x", charge)
    ledger.promise("y", PureDP(0.1))
    assert ledger.total().adversary == "oblivious"


# Mistakes in the call


def test_names_are_needed_and_unique():
    ledger = Ledger(PureDP(1))
    ledger.promise("visits", PureDP(0.1))
    with pytest.raises(ConfigurationError, match="already"):
        ledger.promise("visits", PureDP(0.1))
    for bad in ("", None, 3):
        with pytest.raises(ConfigurationError, match="name"):
            ledger.promise(bad, PureDP(0.1))
    with pytest.raises(ConfigurationError, match="guarantee"):
        Ledger(1.0)


# Every sequence of charges

charges = st.one_of(
    st.floats(1e-4, 0.5).map(PureDP),
    st.floats(1e-5, 0.05).map(ZCDP),
    st.builds(ApproxZCDP, st.floats(1e-5, 0.05), st.floats(1e-9, 1e-6)),
    st.builds(ApproxDP, st.floats(1e-4, 0.5), st.floats(1e-9, 1e-6)),
)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6), ApproxZCDP(0.1, 1e-6)]),
    st.lists(charges, max_size=8),
)
def test_the_total_never_exceeds_the_guarantee(guarantee, asked):
    ledger = Ledger(guarantee)
    for number, charge in enumerate(asked):
        try:
            ledger.promise(str(number), charge)
        except BudgetExceeded:
            continue
        assert 0 < ledger.spent <= 1
        assert 0 <= ledger.left < 1
        assert guarantee.covers(ledger.total())
        if ledger.left:
            trial = Ledger(guarantee)
            for entry in ledger.entries:
                trial.promise(entry.name, entry.charge)
            trial.promise("the rest", guarantee.share(ledger.left))


def test_threads_do_not_overspend():
    """The first to look waits until others could have looked too: without turns, all of them would take the rest."""
    looking = threading.Barrier(4)
    admits = PureDP.admits

    class Slow(PureDP):
        def admits(self, cost):
            with contextlib.suppress(threading.BrokenBarrierError):
                looking.wait(timeout=0.2)
            return admits(self, cost)

    ledger = Ledger(Slow(1))
    refused = []

    def work(name):
        try:
            ledger.promise(name, PureDP(1))
        except BudgetExceeded:
            refused.append(name)

    threads = [threading.Thread(target=work, args=(str(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    assert ledger.spent == 1
