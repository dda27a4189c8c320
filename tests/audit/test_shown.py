"""All that a release shows beside its value, who came first, noise that is shared: planted, and found."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import evertally as et
from evertally.audit.addresses import wrong_addresses
from evertally.audit.shown import alike_attack, noiseless, order_attack, shown_attack
from evertally.audit.together import Together, shared_noise_attack
from evertally.contract.release import Release
from evertally.noise import source as sources
from evertally.selection import item_table


def counter(key: Any, **options: Any) -> Any:
    return et.Counter(guarantee=et.ZCDP(0.5), horizon=4, mechanism="tree", key=key, **options)


class Wrapped:
    """A counter whose releases are changed before they leave."""

    differences = False

    def __init__(self, key: Any) -> None:
        self._counter, self.horizon, self._total = counter(key), 4, 0

    def step(self, x: int) -> Release:
        self._total += x
        return self.changed(self._counter.step(x))

    def changed(self, release: Release) -> Release:
        return release


class ExactInterval(Wrapped):
    def changed(self, release: Release) -> Release:
        exact = self._total
        return replace(release, bounds=lambda beta: (exact - 9, exact + 9))


class ExactRow(Wrapped):
    def changed(self, release: Release) -> Release:
        release.__dict__["row"] = np.array([self._total])
        return release


class WidthOfTheTotal(Wrapped):
    def changed(self, release: Release) -> Release:
        value, exact = release.value, self._total
        return replace(release, bounds=lambda beta: (value - exact, value + 9))


class NoBarBeforeTheFirst(Wrapped):
    def changed(self, release: Release) -> Release:
        value = release.value
        return release if self._total else replace(release, bounds=lambda beta: (value, value))


class NoDeviationBeforeTheFirst(Wrapped):
    def changed(self, release: Release) -> Release:
        return release if self._total else replace(release, stddev=0.0)


class BarOfTheRelease(Wrapped):
    """What is made of released numbers follows them."""

    def changed(self, release: Release) -> Release:
        value = release.value
        return replace(release, bounds=lambda beta: (value - abs(value), value + 9))


@pytest.mark.parametrize("kind", [ExactInterval, ExactRow, WidthOfTheTotal])
def test_what_is_shown_beside_the_value_without_noise_is_found(kind: type[Wrapped]) -> None:
    assert not shown_attack(Wrapped, [3, 1], [0, 0]).leaked
    assert shown_attack(kind, [3, 1], [0, 0]).leaked


@pytest.mark.parametrize("kind", [NoBarBeforeTheFirst, NoDeviationBeforeTheFirst])
def test_an_error_bar_that_betrays_the_first_event_is_found(kind: type[Wrapped]) -> None:
    found = shown_attack(kind, [1, 0], [0, 0])
    assert found.leaked
    assert "error bar" in found.evidence


def test_an_error_bar_that_follows_from_what_was_released_is_none() -> None:
    assert not shown_attack(BarOfTheRelease, [3, 1], [0, 0]).leaked


@pytest.mark.parametrize("values", [(900.0, 0.0), (1e6, 3.0)])
def test_an_error_bar_whose_float_is_rounded_otherwise_is_the_same(values: tuple[float, float]) -> None:
    class Rounded(Wrapped):
        def changed(self, release: Release) -> Release:
            value = release.value / 64 + values[not self._total]
            return replace(release, value=value, bounds=lambda beta: (value - np.pi, value + np.pi))

    assert not shown_attack(Rounded, [3, 1], [0, 0]).leaked


def test_noise_that_is_too_narrow_to_vary_is_not_judged() -> None:
    found = shown_attack(lambda key: et.Counter(guarantee=et.PureDP(60.0), horizon=1, key=key), [3], [0])
    assert (found.leaked, found.looked) == (False, False)


def test_who_came_first_is_found() -> None:
    class Arrived:
        def __init__(self, key: Any) -> None:
            pass

        def step_events(self, events: list[str]) -> Release:
            return Release(1, dict.fromkeys(events, 3), None, True, lambda beta: ({}, {}))

    assert order_attack(Arrived, [["one"] * 2, ["two"] * 2]).leaked


def found_labels(key: Any) -> Any:
    return et.UnknownHistogram(guarantee=et.ApproxDP(1.0, 1e-6), horizon=4, key=key)


@pytest.mark.parametrize("spelled", [str.casefold, str.strip, lambda label: unicodedata.normalize("NFKC", label)])
def test_labels_nearly_alike_with_the_same_noise_are_found(spelled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = item_table.item_addresses
    alike = lambda source, labels: honest(source, [spelled(label) for label in labels])  # noqa: E731
    assert not alike_attack(found_labels, 900).leaked
    monkeypatch.setattr(item_table, "item_addresses", alike)
    assert alike_attack(found_labels, 900).leaked


def test_labels_nearly_alike_of_users_and_of_the_first_few() -> None:
    guarantee = et.ApproxDP(1.0, 1e-6)
    for kind, options in ((et.UnknownTopK, {"k": 2}), (et.UnknownDistinctUsers, {})):
        found = alike_attack(lambda key: kind(guarantee=guarantee, horizon=4, key=key, **options), 3000)  # noqa: B023
        assert (found.leaked, found.looked) == (False, True), found.evidence


def test_queries_with_the_same_noise_are_found() -> None:
    def apart(key: Any) -> Together:
        made = {name: counter(key, name=name) for name in ("a", "b")}
        return Together(made, et.ZCDP(1.0), 4)

    def shared(key: Any) -> Together:
        return Together({name: counter(key, name="a", allow_copy=True) for name in ("a", "b")}, et.ZCDP(1.0), 4)

    assert not shared_noise_attack(apart).leaked
    assert shared_noise_attack(shared).leaked


def test_a_combination_that_only_looks_constant_among_few_keys_is_none() -> None:
    """As many numbers as keys that choose: something is always constant among those."""

    def play(key: Any) -> dict[str, float]:
        return {f"value {i}": float(x) for i, x in enumerate(key.source("many").draws("a", _WIDE, [1], 40)[0])}

    assert not noiseless("many", play, lambda key: {k: v + 1 for k, v in play(key).items()}).leaked


_WIDE = et.noise.DiscreteLaplace(1000)


def _nodes_modulo(real: Any) -> Any:
    return lambda stream, law, nodes, first, count: real(stream, law, np.asarray(nodes) % 256, first, count)


def _columns_modulo(real: Any) -> Any:
    return lambda stream, law, nodes, first, count: real(stream, law, nodes, first % 4096, count)


@pytest.mark.parametrize(("bug", "told"), [(_nodes_modulo, "nodes"), (_columns_modulo, "columns")])
def test_addresses_that_meet_are_found(bug: Any, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources.KeyedSource, "_piece", staticmethod(bug(sources.KeyedSource._piece)))
    assert told in wrong_addresses()


def test_labels_that_share_an_address_with_one_in_capitals_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loud:
        def __init__(self, hashed: Any) -> None:
            self._hashed = hashed

        def copy(self) -> Loud:
            return Loud(self._hashed.copy())

        def update(self, data: bytes) -> None:
            self._hashed.update(data.upper())

        def digest(self) -> bytes:
            digest: bytes = self._hashed.digest()
            return digest

    honest = sources.KeyedSource.item_hash
    monkeypatch.setattr(sources.KeyedSource, "item_hash", lambda self: Loud(honest(self)))
    assert wrong_addresses() == "two labels share a draw"


def test_labels_that_share_an_address_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    class Deaf:
        def copy(self) -> Deaf:
            return self

        def update(self, data: bytes) -> None:
            """It does not listen."""

        def digest(self) -> bytes:
            return hashlib.sha256(b"").digest()[:16]

    monkeypatch.setattr(sources.KeyedSource, "item_hash", lambda self: Deaf())
    assert wrong_addresses() == "two labels share a draw"
