"""All mechanisms of one stream at once: the promise of a stream is about everything that is released."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from evertally.applications.dashboard import Dashboard, GroupBy
from evertally.audit.active import is_active
from evertally.audit.adversaries import FirstTick
from evertally.audit.applications import is_encoded, world_of
from evertally.audit.attacks import Finding
from evertally.audit.dynamic import is_dynamic
from evertally.audit.dynamic_streams import values_of
from evertally.audit.game import Factory, FloatArray, public
from evertally.audit.labels import as_numbers
from evertally.audit.presence import is_presence, numbers_of
from evertally.audit.shown import noiseless
from evertally.audit.sketches import is_sketch, labels_of
from evertally.audit.state_steps import attack_steps
from evertally.audit.steps import Step
from evertally.audit.suite import SIZES, Effort, hunted
from evertally.audit.values import has_epochs
from evertally.audit.whitebox import largest_value, of_values, takes_values
from evertally.contract.doors import by_column
from evertally.noise import simulation
from evertally.privacy import Guarantee
from evertally.statistics import StreamingTopK
from evertally.statistics.unknown import UnknownItems

_TICKS = 4
_LABEL = "somebody"


class Together:
    """A stream as one mechanism: x events go through the doors of all its queries, and all releases come out.

    Each mechanism draws its noise under the stream's one key, as in production: noise that two of them shared would
    show here, and nowhere else.

    >>> import evertally as et
    >>> stream = et.Stream("visits", guarantee=et.PureDP(1.0), horizon=4, key=et.simulation(0))
    >>> both = {name: stream.add(et.Counter, share=0.5, name=name) for name in ("all", "again")}
    >>> Together(both, stream.guarantee, stream.horizon).step(1).shape
    (2,)
    """

    columns = 1

    def __init__(self, mechanisms: Mapping[str, Any], guarantee: Guarantee, horizon: int | None) -> None:
        self._mechanisms = list(mechanisms.values())
        self.guarantee, self.horizon = guarantee, horizon

    def step(self, x: int) -> FloatArray:
        return np.concatenate([_seen(mechanism, _fed(mechanism, x)) for mechanism in self._mechanisms])


def _seen(mechanism: Any, release: Any) -> FloatArray:
    if isinstance(mechanism, UnknownItems):
        return as_numbers(release.value, [_LABEL])
    if isinstance(mechanism, StreamingTopK):
        return as_numbers(release.value, mechanism.labels)
    users = is_presence(mechanism) or is_active(mechanism)
    return numbers_of(mechanism) if users else public(release)


def _fed(mechanism: Any, x: int) -> Any:
    bounds = mechanism.contribution
    cap = bounds.max_events_per_user_tick if bounds.separated else bounds.max_events_per_user
    if is_presence(mechanism):
        return mechanism.step_events([_LABEL] * x)  # a user's events, or insertions of one item
    if cap is None and mechanism.takes_users:
        return mechanism.step_events([_event(mechanism)] * x, users=["one"] * x)
    if cap is None:
        return mechanism.step_events([_event(mechanism)] * x)
    events = [_event(mechanism)] * (x * cap)
    return mechanism.step_events(events, users=["one"] * len(events))


def _event(mechanism: Any) -> Any:
    """The event with the largest row."""
    if is_dynamic(mechanism):
        return "insert", values_of(mechanism)[0], _LABEL
    if is_encoded(mechanism):
        return next(sent.record for sent in world_of(mechanism, 2).known[0] if sent is not None)
    if of_values(mechanism) or has_epochs(mechanism):
        return mechanism.upper
    if takes_values(mechanism):
        return largest_value(mechanism)
    if is_sketch(mechanism):
        return labels_of(mechanism)[0]
    if isinstance(mechanism, Dashboard | GroupBy):
        return mechanism.each_type[0]
    if mechanism._plan.owned and not hasattr(mechanism, "max_weight"):  # who is there counts, or in which category
        labels = getattr(mechanism, "by", None) or getattr(mechanism, "after", None) or [None]
        return next(iter(labels))
    weight = mechanism._options["max_weight"]
    if isinstance(mechanism, UnknownItems):
        return {_LABEL: weight}
    if not by_column(mechanism):
        return weight
    return dict.fromkeys(mechanism.labels[: mechanism.contribution.max_per_event], weight)


def together_plan(factory: Factory, effort: Effort = "short", *, seed: int = 0) -> list[Step]:
    """One game: an event is there in the first tick or not; bets on whatever all releases of a few ticks show."""
    adversary = FirstTick()
    adversary.name += ", all queries"
    model = factory(simulation(0))
    ticks = min(_TICKS, model.horizon or _TICKS)
    # Tables of users are made anew for every game, which takes long.
    owned = any(getattr(one, "_plan", None) is not None and one._plan.owned for one in model._mechanisms)
    games = SIZES[effort].objects // (8 if owned else 1)
    apart = attack_steps(model, [("noise of their own", lambda: shared_noise_attack(factory))])
    return [Step(adversary.name, lambda: hunted(factory, adversary, games, ticks=ticks, seed=seed)), *apart]


def shared_noise_attack(factory: Factory) -> Finding:
    """Whether queries draw the same noise: each gets another number of events, so that a difference of two releases
    would be exact."""

    def play(fed: bool, key: Any) -> dict[str, float]:
        mechanisms = factory(key)._mechanisms
        found: dict[str, float] = {}
        for number, mechanism in enumerate(mechanisms):
            seen = _seen(mechanism, _fed(mechanism, (number + 1) * fed))
            found |= {f"value of query {number + 1}, number {i + 1}": float(x) for i, x in enumerate(seen[:4])}
        return found

    return noiseless("noise of their own", partial(play, True), partial(play, False))
