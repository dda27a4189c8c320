"""One client, one message: never a second one, never other noise, nothing shown (factorization-counting 6.9, 11.1)."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from local_laws import sent

import evertally as et
from evertally.checks.interruptions import interrupted, lines_of
from evertally.errors import ConfigurationError, NoiseReused, ReplayRefused
from evertally.local import Client, Protocol, losses
from evertally.local.factor import column
from evertally.local.messages import unpack
from evertally.noise import Recording

PROTOCOL = Protocol(guarantee=et.ApproxDP(1.0, 1e-9), clients=100, low=0, high=10)
OTHER = Protocol(guarantee=et.ApproxDP(1.0, 1e-9), clients=100, low=0, high=11)


def noise(protocol: Protocol, message: bytes, cell: int) -> list[int]:
    return (unpack(protocol, message)[0] - column(protocol.factor, cell)).tolist()


def test_asked_again_it_gives_the_same_bytes_or_refuses() -> None:
    for key in (et.Key.generate(), et.simulation(1)):
        client = Client(PROTOCOL, key)
        message = client.message(3)
        for same in (3, 3.0, "3", Fraction(3), np.int8(3)):
            assert client.message(same) == message
        assert client.message_for_loss(losses.absolute(3)) == message
        for another in (4, 3.1, None):
            with pytest.raises(ReplayRefused):
                client.message(another)
        with pytest.raises(ReplayRefused):
            client.message_for_loss(losses.hinge(1))
        assert client.message(3) == message


def test_a_key_and_a_name_stand_for_one_record() -> None:
    key = et.Key.generate()
    message = Client(PROTOCOL, key, name="age").message(3)
    assert Client(PROTOCOL, key, name="age").message(3) == message
    with pytest.raises(NoiseReused, match="another message"):
        Client(PROTOCOL, key, name="age").message(4)
    with pytest.raises(ConfigurationError, match="name"):
        Client(PROTOCOL, key)  # it has made noise: for what is it to be used now?
    assert Client(PROTOCOL, key, name="income").message(4) != message


def test_each_protocol_and_each_name_has_noise_of_its_own() -> None:
    key = et.Key.generate()
    messages = [
        noise(protocol, Client(protocol, key, name=name).message(0), 0)
        for protocol in (PROTOCOL, OTHER)
        for name in ("a", "b")
    ]
    assert len({tuple(found) for found in messages}) == 4


def test_a_fork_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(PROTOCOL, et.Key.generate())
    monkeypatch.setattr("os.getpid", lambda: 1)
    with pytest.raises(NoiseReused, match="fork"):
        client.message(3)


def test_without_a_key_every_client_has_its_own() -> None:
    assert Client(PROTOCOL).message(3) != Client(PROTOCOL).message(3)
    assert Client(PROTOCOL).private
    assert not Client(PROTOCOL, et.simulation(1)).private


def test_what_is_drawn_does_not_depend_on_the_record() -> None:
    asked = []
    for loss in (losses.absolute(3), losses.absolute(None), losses.hinge(0.3), losses.quantile(9, 0.1)):
        key = Recording(et.simulation(1))
        Client(PROTOCOL, key).message_for_loss(loss)
        asked.append(key.draws)
    assert all(draws == asked[0] for draws in asked)
    assert [(draw.lane, draw.nodes, draw.coordinates) for draw in asked[0]] == [
        ("point", (0,), 1),
        ("message", (0,), PROTOCOL.cells),
    ]


@pytest.mark.parametrize(
    ("value", "cell"),
    [(0, 0), (-5, 0), (0.999, 0), (1, 1), (Fraction(1, 3), 0), (9.99, 9), (10, 9), (1e308, 9), (float("-inf"), 0)],
)
def test_cells_are_half_open_and_ends_are_ends(value: object, cell: int) -> None:
    assert PROTOCOL.cells == 10
    assert (sent(PROTOCOL, value)[0] == column(PROTOCOL.factor, cell)).all()


def test_thirds_are_decided_exactly() -> None:
    made = Protocol(guarantee=et.ZCDP(1), clients=10, low=0, high=1, cells=3)
    just_below = Fraction(1, 3) - Fraction(1, 10**40)
    assert [made.cell(point) for point in (just_below, Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**40))] == [
        0,
        1,
        1,
    ]


def test_nobody_without_a_value_stands_out() -> None:
    lengths = {len(Client(PROTOCOL).message(value)) for value in (3, None, "?", float("nan"), [1, 2], object())}
    assert lengths == {PROTOCOL.message_bytes}
    first, last = (sum(sent(PROTOCOL, point)[0][0] > 0 for point in (point,)) for point in (0, 10))
    assert (first, last) == (1, 0)
    ends = [Client(PROTOCOL, et.simulation(i)).message(None) for i in range(64)]
    raw = [et.simulation(i).source("local", "client", PROTOCOL.digest) for i in range(64)]
    columns = [
        (unpack(PROTOCOL, m)[0] - s.draws("message", PROTOCOL.law, [0], PROTOCOL.cells)[0])[0] > 0
        for m, s in zip(ends, raw, strict=True)
    ]
    assert 10 < sum(columns) < 54  # half of them at each end; 5.5 deviations


def test_a_client_shows_nothing() -> None:
    client = Client(PROTOCOL)
    client.message(4711)
    assert repr(client) == "<Client, not shown>"
    with pytest.raises(TypeError):
        pickle.dumps(client)
    with pytest.raises(ReplayRefused) as refused:
        client.message(4712)
    assert "471" not in str(refused.value)
    with pytest.raises(TypeError, match="losses"):
        client.message_for_loss(4713)  # type: ignore[arg-type]


def test_an_interrupted_call_has_sent_nothing_and_changes_nothing() -> None:
    expected, lines = lines_of(lambda: Client(PROTOCOL, et.simulation(2)).message_for_loss(losses.hinge(0.7, 3)))
    ours = [line for line in lines if "/local/" in line[0].co_filename]
    assert len(ours) > 20
    for line in ours:
        client = Client(PROTOCOL, et.simulation(2))
        interrupted(lambda: client.message_for_loss(losses.hinge(0.7, 3)), line)  # noqa: B023
        assert client.message_for_loss(losses.hinge(0.7, 3)) == expected


def test_mistakes_of_a_protocol_are_refused() -> None:
    usual = {"guarantee": et.ApproxDP(1.0, 1e-9), "clients": 100, "low": 0, "high": 1}
    for wrong, word in (
        ({"guarantee": et.PureDP(1)}, "never pure"),
        ({"guarantee": et.ApproxDP(1.0, 1e-9).with_bad_event()}, "ApproxDP or ZCDP"),
        ({"guarantee": 1.0}, "ApproxDP or ZCDP"),
        ({"clients": 10**9}, "well below 1/clients"),
        ({"clients": 0}, "clients"),
        ({"low": 1}, "below high"),
        ({"low": float("nan")}, "low"),
        ({"cells": 1}, "cells"),
        ({"cells": 10**9}, "cells"),
        ({"guarantee": et.ZCDP(1e-30)}, "outside"),
    ):
        with pytest.raises(ConfigurationError, match=word):
            Protocol(**(usual | wrong))  # type: ignore[arg-type]


def test_the_usual_number_of_cells() -> None:
    def cells(guarantee: et.ApproxDP | et.ZCDP, clients: int) -> int:
        return Protocol(guarantee=guarantee, clients=clients, low=0, high=1).cells

    assert cells(et.ApproxDP(1.0, 1e-9), 10_000) == 100
    assert cells(et.ApproxDP(1.0, 1e-9), 10_001) == 101
    assert cells(et.ApproxDP(0.5, 1e-9), 10_000) == 50
    assert cells(et.ZCDP(0.5), 10_000) == 100
    assert cells(et.ZCDP(0.5), 1) == 2


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"version": 2}', PROTOCOL.to_json().replace('"version": 1', '"version": 2')]
)
def test_texts_that_are_no_protocol(text: str) -> None:
    with pytest.raises(ConfigurationError):
        Protocol.from_json(text)
