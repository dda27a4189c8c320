"""Plays of one mechanism, undisturbed: what every play with a fault in it is held against.

The transcript of all releases that anybody saw must be that of *one* stream. So for every tick there is one release,
whatever the adversary does: a second one is the same to the byte, or is refused; and what comes after a fault is what
comes without it. Everything is played under noise (a draw that is made anew shows) and without (what is forgotten shows
where noise would hide it: thresholds, selections).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evertally.audit.faults.streams import Tick, feed, lasting_of, others_of, streams_of
from evertally.audit.game import Factory
from evertally.contract.snapshot import unpack
from evertally.noise import NoiseKey, ZeroNoise, simulation

_NOISY, _OTHERS = 21, range(22, 30)  # seeds
Seen = tuple[int, str, str]  # tick, value, standard deviation


def seen(release: Any) -> Seen:
    """All that a reader sees of a release, so that two of them can be compared to the byte.

    >>> import evertally as et
    >>> counter = et.Counter(guarantee=et.PureDP(1.0), horizon=1, key=et.noise.ZeroNoise())
    >>> seen(counter.step(5))[:2]
    (1, '5')
    """
    return int(release.tick), text_of(release.value), repr(release.stddev)


def text_of(value: Any) -> str:
    """A released value, so that two of them can be compared to the byte."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{label!r}: {text_of(one)}" for label, one in value.items()) + "}"
    return repr(value.tolist() if isinstance(value, np.ndarray | np.generic) else value)


def state_of(blob: bytes, key: NoiseKey) -> Any:
    """What a snapshot keeps, without the laws of its lanes: a call that was interrupted may have met new ones."""
    header, parts = unpack(blob, key)
    return {name: value for name, value in header.items() if name != "parts"}, parts[1:]


@dataclass(frozen=True)
class Play:
    """A stream that nobody disturbed: its releases, and the snapshots before the first tick and after each."""

    key: NoiseKey
    stream: list[Tick]
    releases: list[Seen]
    snapshots: list[bytes]


class Subject:
    """A mechanism and a stream on which its memory shows, as far as one was found.

    >>> import evertally as et
    >>> caps = {"unit": "user", "max_events_per_user": 2}
    >>> make = lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=9, key=key, **caps)
    >>> subject = Subject(make, make(et.simulation(0)))
    >>> subject.remembers, subject.remembers_users, subject.cuts
    (True, True, [0, 1, 3, 5])
    """

    def __init__(self, factory: Factory, model: Any) -> None:
        self.make, self.model = factory, model

    @cached_property
    def refused(self) -> str:
        """Why nothing can be played on it: the auditor knows no events that it takes."""
        try:
            assert self.plays
        except Exception as error:  # of a kind of somebody else's, which reads events in a way of its own
            return f"it does not take the events that the auditor knows ({type(error).__name__}): see faults/streams.py"
        return ""

    # -- undisturbed ---------------------------------------------------------------------------------------------------

    @cached_property
    def keys(self) -> list[NoiseKey]:
        return [simulation(_NOISY), ZeroNoise()]

    @cached_property
    def plays(self) -> list[Play]:
        """The chosen stream under each key."""
        return [self.play(key, self.stream) for key in self.keys]

    def play(self, key: NoiseKey, stream: Sequence[Tick]) -> Play:
        mechanism = self.make(key)
        releases, snapshots = [], [mechanism.snapshot()]
        for tick in stream:
            releases.append(seen(feed(mechanism, tick)))
            snapshots.append(mechanism.snapshot())
        return Play(key, list(stream), releases, snapshots)

    def released(self, key: NoiseKey, stream: Sequence[Tick]) -> list[Seen]:
        mechanism = self.make(key)
        return [seen(feed(mechanism, tick)) for tick in stream]

    # -- what shows ----------------------------------------------------------------------------------------------------

    @property
    def stream(self) -> list[Tick]:
        """The stream that faults are played on."""
        return self._chosen[1]

    @cached_property
    def _chosen(self) -> tuple[int, list[Tick]]:
        """The first stream on which the past shows (1), that of users too where there are any (2); or the best one."""
        best: tuple[int, list[Tick]] | None = None
        for stream in streams_of(self.model):
            shown = self._shows(stream)
            if best is None or shown > best[0]:
                best = shown, stream
            if shown == 1 + self.model.takes_users:
                break
        assert best is not None
        return best

    def _shows(self, stream: list[Tick]) -> int:
        pasts = [stream[:cut] for cut in {1, len(stream) // 2} if 0 < cut < len(stream)]
        if not any(self._differs(stream, [tick.empty() for tick in past]) for past in pasts):
            return 0
        known = self.model.takes_users
        return 1 + (known and any(self._differs(stream, [tick.renamed() for tick in past]) for past in pasts))

    def _differs(self, stream: list[Tick], past: list[Tick]) -> bool:
        """Whether later releases tell that there was another past."""
        cut = len(past)
        return any(
            self.released(key, stream)[cut:] != self.released(key, [*past, *stream[cut:]])[cut:] for key in self.keys
        )

    @cached_property
    def remembers(self) -> bool:
        """Whether later releases show what was sent before."""
        return self._chosen[0] >= 1

    @cached_property
    def remembers_users(self) -> bool:
        """Whether later releases show who was there before."""
        return self._chosen[0] == 2

    @cached_property
    def draws(self) -> bool:
        """Whether releases show the noise: another key gives others (one of them may agree by chance)."""
        return any(self.plays[0].releases != self.released(simulation(seed), self.stream) for seed in _OTHERS)

    @cached_property
    def cuts(self) -> list[int]:
        """Ticks after which faults are played."""
        last = len(self.stream)
        return sorted({0, min(1, last - 1), last // 2, last - 1})

    @cached_property
    def two_contents(self) -> tuple[int, Tick, bool]:
        """A tick (from 1), another content for it, and whether its release tells the two apart."""
        last = len(self.stream)
        wanted = [1, 2, *lasting_of(self.model), last // 2, last]
        tried = list(dict.fromkeys(tick for tick in wanted if 1 <= tick <= last))
        for tick in tried:
            for other in others_of(self.model, self.stream[tick - 1]):
                if self._tells(tick, other):
                    return tick, other, True
        return 1, next(others_of(self.model, self.stream[0])), False

    def _tells(self, tick: int, other: Tick) -> bool:
        stream = [*self.stream[: tick - 1], other]
        return any(self.released(play.key, stream)[-1] != play.releases[tick - 1] for play in self.plays)
