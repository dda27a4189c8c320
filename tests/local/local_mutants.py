"""Planted bugs of local learning, each with the probe that finds it (factorization-counting 6.9, 11.1, 12).

A probe returns what it found, in words; nothing, where nothing is wrong.

>>> paper = next(mutant for mutant in MUTANTS if mutant.name == "noise for the largest column")
>>> paper.probe()
''
>>> with paper.patch():
...     paper.probe()
'two cells lose 1.18 of what is promised'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Any
from unittest import mock

import local_laws
import numpy as np
from local_laws import PlantedKey, PlantedUniform, middle_of, one_hot, prefix, small_factor, worst_loss

import evertally as et
from evertally.counting.sqrt_factor import coefficients
from evertally.errors import EvertallyError, MessageRefused, ReplayRefused
from evertally.local import client, losses, messages, protocol, result, server
from evertally.local.factor import column, swap_distance_squared

Probe = Callable[[], str]
Patch = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Mutant:
    """A planted bug: where the spec warns of it, how to plant it, and the probe that must find it."""

    name: str
    warning: str
    patch: Patch
    probe: Probe


MUTANTS: list[Mutant] = []


def plant(probe: Probe) -> Callable[[Patch], Patch]:
    """Registers the patch of a bug; its docstring is the name, and in brackets what the spec says."""

    def register(patch: Patch) -> Patch:
        name, _, warning = " ".join((patch.__doc__ or "").split()).partition(" (")
        MUTANTS.append(Mutant(name, warning.removesuffix(")"), patch, probe))
        return patch

    return register


def made(guarantee: Any = None, **options: Any) -> protocol.Protocol:
    usual: dict[str, Any] = {"guarantee": guarantee or et.ZCDP(1), "clients": 50, "low": 0, "high": 1, "cells": 6}
    return protocol.Protocol(**(usual | options))


# -- probes ------------------------------------------------------------------------------------------------------------


def loss_of_a_message() -> str:
    with small_factor():
        tiny = made(et.ZCDP(Fraction(13, 2)), cells=3)
        lost = worst_loss(tiny)
    return f"two cells lose {lost:.2f} of what is promised" if lost > 1 + 1e-9 else ""


def law_of_a_point() -> str:
    """U on either side of a third, closer than floats can tell."""
    loss = losses.Loss([Fraction(1, 2)], [Fraction(-1, 3), 1])
    for u, point in ((Fraction(1, 3) - Fraction(1, 2**90), 0), (Fraction(1, 3) + Fraction(1, 2**90), Fraction(1, 2))):
        if loss.point(Fraction(0), Fraction(1), PlantedUniform(u)) != point:  # type: ignore[arg-type]
            return "a point has another probability than its loss says"
    return ""


def expected_distance() -> str:
    """A client with a hinge: the law of the real message's point, by planted U."""
    loss, usual = losses.hinge(1, Fraction(1, 2)), made()
    cells = []
    for k in range(8):
        sent = client.Client(usual, PlantedKey(u=Fraction(2 * k + 1, 16))).message_for_loss(loss)
        entries = messages.unpack(usual, sent)[0].tolist()
        cells.append(next(i for i, entry in enumerate(entries) if entry))
    return "" if cells == [3] * 4 + [5] * 4 else "points of a hinge do not lie where they should"


def one_message() -> str:
    key = et.Key.generate()
    mine = client.Client(made(), key, name="me")
    first = mine.message(0.2)
    if mine.message(0.2) != first:
        return "asked again, a client draws other noise"
    try:
        mine.message(0.9)
    except ReplayRefused:
        pass
    else:
        return "a client makes two messages"
    try:
        client.Client(made(), key, name="me").message(0.9)
    except EvertallyError:
        return ""
    return "the same noise on two records"


def noise_of_its_own() -> str:
    key = et.Key.generate()
    seen = set()
    for usual in (made(), made(clients=51), made(high=2)):
        entries, _ = messages.unpack(usual, client.Client(usual, key, name="me").message(0))
        seen.add(tuple((entries - column(usual.factor, 0)).tolist()))
    return "" if len(seen) == 3 else "two protocols share their noise"


def what_a_server_finds() -> str:
    usual = made()
    for cell in range(6):
        box = server.Server(usual)
        box.add(client.Client(usual, PlantedKey()).message(middle_of(usual, cell)))
        if not np.allclose(box.result().slopes, [-1] * (cell + 1) + [1] * (6 - cell), atol=1e-9):
            return "slopes without noise are not those of the data"
        if box.result().slope(Fraction(2 * cell + 1, 12)) > 0:
            return "of two grid points the larger"
    return ""


def strangers() -> str:
    usual = made()
    good = client.Client(usual, et.simulation(1)).message(0.5)
    foreign = client.Client(made(high=2), et.simulation(1)).message(0.5)
    damaged = good[:25] + bytes([good[25] ^ 1]) + good[26:]
    loud = np.full(6, 2**31 - 1).astype("<i4").tobytes()
    forged = good[:21] + loud + messages._check(good[:21] + loud)
    for wrong in (foreign, damaged, forged, good[:-1], b""):
        try:
            server.Server(usual).add(wrong)
        except MessageRefused:
            continue
        return "a server takes what is no message of its protocol"
    return ""


def sums_add_up() -> str:
    usual = made()
    sent = [client.Client(usual, et.simulation(i)).message(0.5) for i in range(6)]
    whole, one, other = (server.Server(usual) for _ in range(3))
    whole.add_many(sent)
    one.add_many(sent[:2])
    other.add_many(sent[2:])
    one.merge(other)
    return "" if server.Server.restore(one.snapshot()).snapshot() == whole.snapshot() else "parts are not the whole"


def two_counters_reversed() -> str:
    for cell in range(5):
        u, v = one_hot(cell, 5), one_hot(local_laws.reversed_cell(cell, 5), 5)
        if any(prefix(u, t) + prefix(v, 5 - t) != 1 for t in range(6)):
            return "the two counters do not add up to one"
    return ""


def two_counters_lose() -> str:
    """Both counters of the paper get another input; their losses add up."""
    w, rho = 16, Fraction(1, 2)
    r = coefficients(w)
    columns = [np.concatenate([column(r, j), column(r, w - 1 - j)]).astype(object) for j in range(w)]
    worst = max(int(((a - b) ** 2).sum()) for a in columns for b in columns)
    lost = worst / (2 * local_laws.variance_of_each(swap_distance_squared(r), rho))
    return "" if lost <= rho else f"two counters lose {float(lost / rho):.2f} of what is promised"


# -- bugs --------------------------------------------------------------------------------------------------------------


def replaced(target: Any, **attributes: Any) -> AbstractContextManager[Any]:
    return mock.patch.multiple(target, **attributes)


@plant(loss_of_a_message)
def largest_column() -> AbstractContextManager[Any]:
    """noise for the largest column (6.9: the paper uses sqrt(S_w))"""
    return replaced(protocol, swap_distance_squared=lambda r: int((r.astype(object) ** 2).sum()))


@plant(loss_of_a_message)
def last_pair() -> AbstractContextManager[Any]:
    """the distance of neighbouring cells only (6.9: the argmax is near 0.83 w)"""
    return replaced(protocol, swap_distance_squared=lambda r: int(((column(r, 0) - column(r, 1)) ** 2).sum()))


@plant(loss_of_a_message)
def rounded_down() -> AbstractContextManager[Any]:
    """a variance that is rounded down (12.23: rounded to nearest instead of up)"""
    return replaced(protocol, round_up=lambda variance: Fraction(int(variance)))


@plant(loss_of_a_message)
def twice_the_budget() -> AbstractContextManager[Any]:
    """rho = epsilon^2 (3.1: rho = 1/(2 sigma_1^2))"""
    return replaced(protocol, round_up=lambda variance: variance / 2)


@plant(law_of_a_point)
def point_by_floats() -> AbstractContextManager[Any]:
    """a point that is drawn by floats (11: no float decides)"""

    def below(uniform: Any, level: Fraction) -> bool:
        return bool(np.exp(-float(uniform.refine(0, 128).mid())) < float(level))

    return replaced(losses, _below=below)


@plant(expected_distance)
def slope_for_level() -> AbstractContextManager[Any]:
    """the slope in place of (1 + slope)/2 (6.9: the distribution function of the point)"""
    return replaced(losses.Loss, _levels=lambda self: [abs(slope) for slope in self._slopes])


@plant(expected_distance)
def mass_left_over_at_zero() -> AbstractContextManager[Any]:
    """what is left over lies at the lower end (6.9: remaining mass at 1)"""
    ours = losses.Loss._steps

    def steps(self: losses.Loss, low: Fraction, high: Fraction) -> list[tuple[Fraction, Fraction]]:
        return [*ours(self, low, high)[:-1], (low, Fraction(1))]

    return replaced(losses.Loss, _steps=steps)


@plant(one_message)
@contextmanager
def fresh_noise() -> Iterator[None]:
    """fresh noise for a message that is asked for again (11.1: noise is drawn once)"""
    asked = count()

    def message_for_loss(self: client.Client, loss: losses.Loss) -> bytes:
        self._source = self._key.source("local", f"again {next(asked)}", self._protocol.digest)
        return messages.pack(self._protocol, self._entries(loss), private=True)

    with replaced(client.Client, message_for_loss=message_for_loss):
        yield


@plant(one_message)
def forgetful_process() -> AbstractContextManager[Any]:
    """a second client with the same key and another record (11.1: never fork)"""
    return replaced(client, once=lambda *given: None)


@plant(noise_of_its_own)
def protocol_not_in_the_address() -> AbstractContextManager[Any]:
    """noise that does not depend on the protocol (5: two counters sharing a noise path)"""
    return replaced(protocol.Protocol, digest=property(lambda self: bytes(16)))


@plant(what_a_server_finds)
def cell_off_by_one() -> AbstractContextManager[Any]:
    """cells from 1 used as if from 0 (12.2: index base)"""
    ours = protocol.Protocol.cell
    return replaced(protocol.Protocol, cell=lambda self, point: min(self.cells - 1, ours(self, point) + 1))


@plant(what_a_server_finds)
def ties_to_the_larger() -> AbstractContextManager[Any]:
    """the larger of two nearest grid points (6.9: ties to the smaller)"""
    ours = result.Result._nearest

    def nearest(self: result.Result, theta: Any) -> tuple[int, Fraction]:
        _, place = ours(self, theta)
        return int(place + Fraction(1, 2)), place

    return replaced(result.Result, _nearest=nearest)


@plant(strangers)
def anybody_s_message() -> AbstractContextManager[Any]:
    """a digest that leaves the parameters out (6.9: all clients have one grid)"""
    return replaced(protocol.Protocol, digest=property(lambda self: bytes(16)))


@plant(strangers)
def entries_of_any_size() -> AbstractContextManager[Any]:
    """entries of any size are added (one client could move the sum at will)"""
    return replaced(protocol.Protocol, largest_entry=property(lambda self: 2**31 - 1))


@plant(sums_add_up)
def merged_without_count() -> AbstractContextManager[Any]:
    """a merge that forgets how many messages there were (6.9: x = (2/n) sum y - 1)"""

    def merge(self: server.Server, other: server.Server) -> None:
        self._sums = self._sums.plus(other._sums.entries, 0, 0)

    return replaced(server.Server, merge=merge)


@plant(two_counters_reversed)
def reversed_off_by_one() -> AbstractContextManager[Any]:
    """the paper's reversed index w - j (6.9: off by one)"""
    return replaced(local_laws, reversed_cell=lambda cell, cells: cells - 2 - cell)


@plant(two_counters_lose)
def two_counters_as_if_alone() -> AbstractContextManager[Any]:
    """two counters, each with the noise of one alone (6.9: calibrated jointly)"""
    return replaced(local_laws, variance_of_each=lambda swap, rho: swap / (2 * rho))


@plant(two_counters_lose)
def two_counters_by_the_column() -> AbstractContextManager[Any]:
    """two counters with half of rho each, for the largest column (6.9: sqrt(2) sigma_1 Delta_swap)"""
    largest = int((coefficients(16).astype(object) ** 2).sum())
    return replaced(local_laws, variance_of_each=lambda swap, rho: 2 * largest / (2 * rho))
