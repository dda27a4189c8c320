"""Bugs in the noise room: addresses that collide, draws of another law."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audit.bugs.planting import Bug, all_of, plant, replaced
from evertally.contract import mechanism
from evertally.noise import DiscreteLaplace, Key, Law, Source, source
from evertally.noise.keystream import Keystream
from evertally.noise.sampler import draw
from evertally.noise.source import KeyedSource

_STREAM, _NAME, _KIND, _CHARGE, _DIGEST = range(5)  # the path that a mechanism gives to its key


def address_without(*parts: int, options: Iterable[str] = ()) -> Bug:
    """The address of all noise without some of its parts, and its digest without some options."""
    original = Key.source

    def shorter(self: Key, *path: str | bytes) -> Source:
        return original(self, *(part for i, part in enumerate(path) if i not in parts))

    def dumps(value: Any, **how: Any) -> str:
        return json.dumps({name: v for name, v in value.items() if name not in options}, **how)

    return all_of(replaced(Key, source=shorter), replaced(mechanism, json=SimpleNamespace(dumps=dumps)))


@plant("a second mechanism on the same stream")
def mechanism_name_missing() -> Bug:
    """noise shared between two counters: mechanism name missing from the address (design decision 1;
    parameterized-histograms 8: mechanism vs mechanism need independent noise)"""
    return address_without(_NAME, options=["name"])


@plant("a second stream under the same key")
def stream_name_missing() -> Bug:
    """key reused for a second stream: stream name missing from the address (design decision 1: anything else than the
    same names and parameters is independent noise)"""
    return address_without(_STREAM, options=["stream"])


@plant("a second mechanism on the same stream")
def kind_missing() -> Bug:
    """kind of mechanism missing from the address (streaming-selection 10.2: noise is keyed by mechanism id)"""

    # A counter and a vector of one column have different options; their digest would tell them apart.
    return address_without(_KIND, _DIGEST)


@plant("the same names with other parameters")
def digest_missing() -> Bug:
    """same bits at two scales: parameter digest missing from the address (streaming-selection 10.2: never key two
    instances over the same data with another scale)"""
    return address_without(_CHARGE, _DIGEST)


@plant("a second stream under the same key")
def nothing_derived() -> Bug:
    """derived keys are the key itself (design decision 6: a noise key lives and dies with its stream)"""
    return replaced(Key, derive=lambda self, name: self)


@plant("columns")
def columns_share() -> Bug:
    """two columns share their noise (price-of-continual-release P5: sharing noise voids the proof)"""
    original = KeyedSource.draws

    def draws(
        self: KeyedSource, lane: str, law: Law, nodes: Iterable[int], coordinates: int = 1, first: int = 0
    ) -> NDArray[np.int64]:
        return np.repeat(original(self, lane, law, nodes, 1, 0), coordinates, axis=1)

    return replaced(KeyedSource, draws=draws)


@plant("draws at all addresses")
def addresses_wrap() -> Bug:
    """noise of a tick repeated: node addresses wrap around (price-of-continual-release P5: fresh noise for every
    node)"""
    original = Keystream.words

    def words(self: Keystream, nodes: Any, *rest: Any) -> NDArray[np.uint64]:
        return original(self, np.asarray(nodes, dtype=np.int64) % 64, *rest)

    return replaced(Keystream, words=words)


Draw = Callable[[Law, NDArray[np.uint64], Any], NDArray[np.int64]]


@plant("one tick, pure, by the release itself")
def tails_cut() -> Bug:
    """sampler without tails: nothing beyond three standard deviations (streaming-selection 10.4: the upper tail is
    cut)"""

    def cut(law: Law, words: NDArray[np.uint64], more: Any) -> NDArray[np.int64]:
        most = int(3 * law.stddev())
        return np.clip(draw(law, words, more), -most, most)

    return replaced(source, draw=cut)


@plant("one tick, pure")
def sign_dropped() -> Bug:
    """sampler drops the sign bit (parameterized-histograms 8 (item 4 of its privacy defects): a random sign)"""
    return replaced(source, draw=lambda law, words, more: np.abs(draw(law, words, more)))


@plant("one tick, pure")
def zero_twice() -> Bug:
    """sampler counts zero twice (parameterized-histograms 8 (item 4 of its privacy defects): reject minus zero)"""

    def geometric(law: Law, words: NDArray[np.uint64], more: Any) -> NDArray[np.int64]:
        if not isinstance(law, DiscreteLaplace):
            return draw(law, words, more)
        v = ((words[:, 0] >> np.uint64(1)) + 0.5) / 2.0**63
        size = np.floor(-float(law.scale) * np.log(v)).astype(np.int64)
        return np.asarray(np.where(words[:, 0] & np.uint64(1), -size, size))

    return replaced(source, draw=geometric)
