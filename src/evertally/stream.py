"""One stream, one ledger: several mechanisms on the same events under one guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Literal, TypeVar

from evertally.errors import ConfigurationError
from evertally.noise import NoiseKey, own_key
from evertally.pictures import html_table
from evertally.privacy import Guarantee, Ledger, Neighbours
from evertally.privacy._promise import read_share

M = TypeVar("M")


class Stream:
    """A stream with a name, a guarantee for its whole life, and a ledger that refuses what does not fit.

    Each mechanism gets a share of the guarantee. All of them see the same events, so their losses add up (the ledger
    states the composition theorem); shares that add up to more than 1 are refused. Name, key and parameters together
    address the noise: two streams need two names, and a name is used once.

    >>> import evertally as et
    >>> stream = et.Stream("clinic-visits", guarantee=et.ZCDP(0.5), horizon=365, key=et.simulation(4))
    >>> visits = stream.add(et.Counter, share=0.3)
    >>> by_ward = stream.add(et.Histogram, share=0.7, categories=["a", "b"])
    >>> visits.guarantee, by_ward.guarantee
    (ZCDP(rho=0.15), ZCDP(rho=0.35))
    >>> stream.add(et.Counter, share=0.01, name="one more")
    Traceback (most recent call last):
    ...
    evertally.errors.BudgetExceeded: ...
    """

    def __init__(
        self,
        name: str,
        *,
        guarantee: Guarantee,
        horizon: int | None,
        key: NoiseKey | None = None,
        neighbours: str | Neighbours = "add_remove",
        unit: Literal["event", "user", "user-period"] = "event",
        max_events_per_user: int | None = None,
        period: int | None = None,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ConfigurationError("a stream has a name: it is part of the address of its noise")
        self.name = name
        self.guarantee = guarantee
        self.horizon = horizon
        self.key: NoiseKey = own_key(key)
        self.neighbours = Neighbours.parse(neighbours)
        self.unit = unit
        self.max_events_per_user = max_events_per_user
        self.period = period
        self.ledger = Ledger(guarantee)
        self.mechanisms: dict[str, Any] = {}

    def add(self, kind: type[M], /, *, share: Fraction | str | float, name: str | None = None, **options: Any) -> M:
        """A mechanism of this stream, paid with `share` of the guarantee; options go to its constructor."""
        # The first name that a class had: a name is part of the address of noise.
        name = name or [kind.__name__, *vars(kind).get("earlier_names", ())][-1].lower()
        if name in self.mechanisms:
            raise ConfigurationError(f"the stream already has a mechanism named {name!r}; give this one another name")
        own = {"guarantee", "horizon", "key", "stream", "neighbours", "unit", "max_events_per_user"}
        # Where users are not protected block by block, a period is one that a statistic counts by.
        reserved = (own if self.period is None else own | {"period"}) & set(options)
        if reserved:
            raise ConfigurationError(f"{', '.join(sorted(reserved))}: set for the whole stream, not for one mechanism")
        # The whole of it is no share: nothing else fits beside, and noise that is alone may pay in epsilon and delta.
        part = self.guarantee if read_share(share) == 1 else self.guarantee.share(share)
        factory: Callable[..., M] = kind
        made = factory(
            **options,
            **self.shared_options(kind, options),
            guarantee=part,
            key=self.key,
            stream=self.name,
            name=name,
        )
        # What the mechanisms pay adds up only if all of them hide a change of the same thing.
        unit = getattr(made, "protected_unit", self.unit)
        for other in self.mechanisms.values():
            if getattr(other, "protected_unit", self.unit) != unit:
                raise ConfigurationError(
                    f"{name} would hide {unit}s and another mechanism of the stream hides something else, so that no "
                    'promise would cover both: give protects="event" to those that protect items, or two streams'
                )
        self.ledger.promise(name, part)
        self.mechanisms[name] = made
        return made

    def shared_options(self, kind: Any, options: Mapping[str, Any]) -> dict[str, Any]:
        """What all mechanisms of the stream have in common, as options of one of them.

        The cap of the stream is for those that do not bound a user by themselves; one's rule never filters the events
        of another (users-and-domains 1.1).
        """
        shared: dict[str, Any] = {"horizon": self.horizon, "neighbours": self.neighbours, "unit": self.unit}
        rule = getattr(kind, "user_rule", None)
        if rule is None or not rule(options):
            shared["max_events_per_user"] = self.max_events_per_user
        if self.period is not None:
            if "period" not in getattr(kind, "__dataclass_fields__", {"period": None}):
                raise ConfigurationError(
                    f'{kind.__name__} bounds a user once and for all, not in every block; use unit="user"'
                )
            shared["period"] = self.period
        return shared

    def _repr_html_(self) -> str:
        rows = [
            (name, type(made).__name__, getattr(made, "mechanism", ""), str(made.guarantee), made.tick)
            for name, made in self.mechanisms.items()
        ]
        horizon = "no horizon" if self.horizon is None else f"{self.horizon:,} ticks"
        notes = [f"{self.guarantee}, {horizon}, hides one {self.unit}; left: {float(self.ledger.left):.4g}"]
        return html_table(f"Stream {self.name}", ["name", "statistic", "mechanism", "paid", "tick"], rows, notes)

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, {self.guarantee}, horizon={self.horizon}, mechanisms={list(self.mechanisms)})"
