"""The server: exact sums in any order, and results whose bounds hold (factorization-counting 6.9, 14.2.7)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from benchmarks.local import by_formula, same_integers, seeds, sums_of, true_slopes
from local_laws import PlantedKey, middle_of

import evertally as et
from evertally.checks.interruptions import interrupted, lines_of
from evertally.errors import ConfigurationError, MessageRefused, StateError
from evertally.local import Client, Protocol, Result, Server, losses
from evertally.local.result import never_falling

PROTOCOL = Protocol(guarantee=et.ZCDP(2), clients=100, low=-1, high=3, cells=8)
WIDE = Protocol(guarantee=et.ZCDP(1e-7), clients=100, low=-1, high=3, cells=8)


def messages(protocol: Protocol = PROTOCOL, count: int = 12) -> list[bytes]:
    return [Client(protocol, et.simulation(i)).message(i % 4 - 1) for i in range(count)]


def exactly(values: list[Any], protocol: Protocol = PROTOCOL, **options: Any) -> Result:
    """The result without noise."""
    server = Server(protocol)
    server.add_many(Client(protocol, PlantedKey()).message(value) for value in values)
    return server.result(**options)


# -- sums --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [PROTOCOL, WIDE], ids=["4 bytes", "8 bytes"])
def test_order_and_parts_do_not_matter(protocol: Protocol) -> None:
    sent = messages(protocol)
    whole = Server(protocol)
    whole.add_many(sent)
    for seed in range(3):
        mixed = random.Random(seed).sample(sent, len(sent))
        one, other = Server(protocol), Server(protocol)
        one.add_many(mixed[:5])
        for message in mixed[5:]:
            other.add(message)
        one.merge(Server.restore(other.snapshot()))
        assert one.snapshot() == whole.snapshot()
        assert other.messages == 7


def test_sums_do_not_overflow_where_entries_are_wide() -> None:
    server = Server(WIDE)
    server._sums = server._sums.plus(np.array([2**62] * 8, dtype=object), 1, 0)
    again = Server.restore(server.snapshot())
    again.merge(server)
    assert int(again._sums.entries[0]) == 2**63
    assert math.isfinite(again.result().slopes[-1])


def test_what_is_no_message_is_left_out_and_counted() -> None:
    server = Server(PROTOCOL)
    foreign = messages(WIDE, 1)[0]
    added = server.add_many([*messages(), b"", foreign, foreign, None])  # type: ignore[list-item]
    assert added.messages == server.messages == 12
    assert sorted(added.refused.values()) == [1, 1, 2]
    before = server.snapshot()
    with pytest.raises(MessageRefused):
        server.add(foreign)
    assert server.snapshot() == before


def test_refusals_of_a_server() -> None:
    server = Server(PROTOCOL)
    with pytest.raises(StateError, match="no message"):
        server.result()
    with pytest.raises(ConfigurationError, match="itself"):
        server.merge(server)
    with pytest.raises(ConfigurationError, match="another protocol"):
        server.merge(Server(WIDE))
    server.add_many(messages())
    for beta in (0, 1, -1, float("nan")):
        with pytest.raises(ConfigurationError, match="beta"):
            server.result(beta)


def test_damaged_snapshots_are_refused() -> None:
    server = Server(PROTOCOL)
    server.add_many(messages())
    blob = server.snapshot()
    for wrong in (b"", blob[1:], blob[:-1], blob + b"\0", blob[:-40] + bytes([blob[-40] ^ 1]) + blob[-39:]):
        with pytest.raises(StateError):
            Server.restore(wrong)
    assert Server.restore(blob).protocol == PROTOCOL


def test_an_interrupted_call_has_added_everything_or_nothing() -> None:
    sent = messages(count=3)
    other = Server(PROTOCOL)
    other.add_many(sent)

    def check(call: Callable[[Server], Any]) -> None:
        fresh, done = Server(PROTOCOL).snapshot(), Server(PROTOCOL)
        _, lines = lines_of(lambda: call(done))
        for line in lines:
            server = Server(PROTOCOL)
            interrupted(lambda: call(server), line)  # noqa: B023
            assert server.snapshot() in (fresh, done.snapshot())

    check(lambda server: server.add_many(sent))
    check(lambda server: server.add(sent[0]))
    check(lambda server: server.merge(other))


# -- results -----------------------------------------------------------------------------------------------------------


def test_without_noise_the_slopes_are_those_of_the_data() -> None:
    for cell in range(8):
        result = exactly([middle_of(PROTOCOL, cell)])
        assert result.slopes == pytest.approx([-1.0] * (cell + 1) + [1.0] * (8 - cell), abs=1e-9)
        assert result.minimiser == result.grid[cell + 1]
    values = [-0.9, 0.1, 0.2, 2.2, 2.9]
    result = exactly(values)
    assert result.slopes == pytest.approx(true_slopes(PROTOCOL, np.array(values)), abs=1e-9)


def test_slope_takes_the_nearest_grid_point_and_risk_is_its_integral() -> None:
    result = exactly([-0.9, 0.1, 0.2, 2.2, 2.9])
    width = Fraction(1, 2)
    assert result.slope(-1) == -1
    assert result.slope(-1 + width / 2) == -1, "of two grid points at the same distance the smaller"
    assert result.slope(Fraction(-1) + width * Fraction(51, 100)) == pytest.approx(-0.6)
    fine = np.linspace(-1, 3, 8001)
    middles = (fine[1:] + fine[:-1]) / 2
    integral = np.concatenate([[0.0], np.cumsum([result.slope(float(x)) for x in middles])]) * (4 / 8000)
    for k in range(0, 8001, 500):
        assert result.risk(float(fine[k])) == pytest.approx(integral[k], abs=1e-3)
    for theta in (-1.01, 3.01, float("nan")):
        with pytest.raises(ConfigurationError):
            result.risk(theta)


def test_without_noise_risk_is_within_a_cell_of_the_average_loss() -> None:
    rng = np.random.default_rng(5)
    for _ in range(5):
        values = rng.uniform(-1, 3, 9)
        result = exactly(values.tolist())
        for theta in np.linspace(-1, 3, 41).tolist():
            true = np.abs(values - theta).mean() - np.abs(values + 1).mean()
            assert abs(result.risk(theta) - true) <= result.bound.discretisation + 1e-9
        least = np.abs(values - np.median(values)).mean()
        assert np.abs(values - result.minimiser).mean() - least <= result.bound.discretisation + 1e-9


def test_a_quantile_by_its_loss() -> None:
    server = Server(PROTOCOL)
    rng = np.random.default_rng(6)
    for i in range(600):
        loss = losses.quantile(float(rng.uniform(-1, 3)), Fraction(3, 4))
        server.add(Client(PROTOCOL, et.simulation(i)).message_for_loss(loss))
    result = server.result()
    assert abs(result.minimiser - 2.0) <= 1.0
    assert result.interval[0] <= 2.0 <= result.interval[1]


def test_never_falling_is_the_closest_and_stays_within() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        values = rng.normal(size=12) + np.linspace(-1, 1, 12)
        found = never_falling(values)
        assert (np.diff(found) >= -1e-12).all()
        assert found.sum() == pytest.approx(values.sum())
        for _ in range(20):
            other = np.sort(found + rng.normal(size=12) * 0.1)
            assert ((values - found) ** 2).sum() <= ((values - other) ** 2).sum() + 1e-9
        truth = np.linspace(-1, 1, 12)
        assert np.abs(found - truth).max() <= np.abs(values - truth).max() + 1e-12


def test_the_vectorised_sums_are_the_server_s() -> None:
    values = np.random.default_rng(8).uniform(-2, 4, 60).tolist()
    assert same_integers(PROTOCOL, values, seeds(8, 60))
    assert same_integers(Protocol(guarantee=et.ZCDP(1), clients=9, low=0, high=1, cells=3), values, seeds(9, 60))


def test_the_stated_deviation_is_the_formula_s_and_the_measured_one() -> None:
    """300 runs of 10 clients: the mean square of the last and the middle slope within 5 of its own deviations."""
    protocol = Protocol(guarantee=et.ZCDP(0.5), clients=10, low=0, high=1, cells=40)
    values = [0.5] * 10
    truth = true_slopes(protocol, np.array(values))
    results = [
        Result.of(protocol, sums_of(protocol, values, seeds(20 + i, 10)), 10, 0.05, private=False) for i in range(300)
    ]
    stated = results[0].stddev
    assert stated[0] == 0
    assert (np.diff(stated) > 0).all()
    assert stated[-1] == pytest.approx(by_formula(protocol, 10), rel=1e-5)
    off = np.array([result.slopes - truth for result in results])
    for t in (20, 40):
        assert (off[:, t] ** 2).mean() / stated[t] ** 2 == pytest.approx(1, abs=5 * math.sqrt(2 / 300))


def average_loss(theta: float) -> float:
    """E|U^2 - theta| - E U^2 for U uniform on [0, 1]: least at the median, 1/4."""
    return theta * (2 * math.sqrt(theta) - 1) - 2 * theta**1.5 / 3


def test_the_bounds_hold() -> None:
    """Ten runs of 1000 clients. Each may fail with 5 %; more than six of ten do so with probability below 1e-6."""
    n = 1000
    protocol = Protocol(guarantee=et.ApproxDP(8.0, 1e-9), clients=n, low=0, high=1, cells=40)
    failed = [0, 0, 0, 0]
    closest = math.inf
    for run in range(10):
        values = np.random.default_rng(run).uniform(0, 1, n) ** 2
        sums = sums_of(protocol, values.tolist(), seeds(100 + run, n))
        result = Result.of(protocol, sums, n, 0.05, private=False)
        off = max(abs(result.risk(k / 48) - average_loss(k / 48)) for k in range(49))
        noise = float(np.abs(result.slopes - true_slopes(protocol, values)).max())
        failed[0] += off > result.bound.total
        failed[1] += noise > result.bound.noise
        failed[2] += average_loss(result.minimiser) - average_loss(0.25) > result.bound.total
        failed[3] += not result.interval[0] <= 0.25 <= result.interval[1]
        closest = min(closest, result.bound.noise / noise)
        assert result.bound.total < 0.9, "the bound says something"
    assert max(failed) <= 6
    assert closest < 4, "and it is no wild guess"


def test_terms_of_the_bound_are_those_of_the_formula() -> None:
    n, beta = 400, 0.1
    protocol = Protocol(guarantee=et.ZCDP(0.5), clients=n, low=-1, high=3, cells=16)
    result = Result.of(protocol, np.zeros(16), n, beta, private=True)
    assert result.bound.noise == pytest.approx(
        4 * by_formula(protocol, n) * math.sqrt(2 * math.log(2 * 16 / (beta / 2))), rel=1e-4
    )
    assert result.bound.discretisation == 4 / 16
    assert result.bound.sampling == pytest.approx(4 * 2 * math.sqrt(math.log(2 / (beta / 2)) / (2 * n)))
    assert result.bound.total == sum((result.bound.noise, result.bound.discretisation, result.bound.sampling))


def test_one_simulated_message_makes_the_result_not_private() -> None:
    server = Server(PROTOCOL)
    server.add(Client(PROTOCOL).message(1))
    assert server.result().private
    server.add(messages()[0])
    assert not server.result().private
    assert not Server.restore(server.snapshot()).result(isotonic=True).private
