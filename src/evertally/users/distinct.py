"""How many different users there were so far, altogether and by category."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.applications.encoder import EncodedEngine
from evertally.contract.forms import LabelledForm, NumberForm, RowForm
from evertally.contract.mechanism import by_tick
from evertally.contract.options import option, statistic
from evertally.contract.owned import OwnedDoor
from evertally.contract.parts import Blueprint
from evertally.contract.ticks import last_tick
from evertally.counting.linear import LinearEngine
from evertally.counting.process import NoiseProcess
from evertally.encode.door import declared_labels
from evertally.encode.texts import Texts
from evertally.errors import ConfigurationError
from evertally.histogram.expressions import exact_number
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.statistics.linear_options import Linear
from evertally.users.bitmap import Bitmap
from evertally.users.distinct_charge import moved_by
from evertally.users.distinct_rules import FirstCategories, FirstSeen, keyed_numbers
from evertally.users.estimates import BitsForm, EstimateForm, SampleForm
from evertally.users.labels import column_reader
from evertally.users.not_negative import NotNegative

_MOST_BITS = 2**32
_HASHES = 2**64
_OPEN = "how far an estimate is off depends on how many users there are: ask error_bound(users=...)"


@statistic
class DistinctUsers(Linear):
    """How many different users there were so far. Of each user any number of events, at any ticks: everybody counts
    once, at the first one, so nothing is to be declared about how active users are.

    Theorem (users-and-domains 2.1 [R], adaptive streams included): a user who is there or not moves one number by one,
    at one tick, so all noise processes of `Counter` are paid as for a single event, (1, 1, 1). "replace": (2, 2, 1).
    `unit="event"`, or "user-period" with blocks of `period` ticks, is *less* protection and costs more, (2, 2, 1):
    without one event its user counts at the next one. Error: that of `Counter`, times sqrt(2) for (2, 2, 1).

    By category (`by`, 2.2): the first `max_categories` categories of each user count, each once, (m, m, 1); "replace"
    (2m, 2m, 1); unit "user" only. Undeclared labels are dropped, or are one category `other`. With
    `max_categories=1` everybody is counted in the category of the first event that names one.

    Memory: the names of all users (and `max_categories` numbers each), for ever: a user who was forgotten would count
    twice. Where that is too much: `max_users` counts the first so many only, at (2, 2, 1). `bits` (2.6) keeps a map of
    bits and no names, at (2, 2, 1), and releases an estimate by linear counting, whose own deviation is
    sqrt(M (e^(n/M) - n/M - 1)); `noisy_bits` is what it is made of. `sample` counts a secret fixed part of all users
    and divides, at (1, 1, 1); no amplification is claimed for it. Intervals of both include the chance of the estimate.

    `step_events(users)`, or `step_events(labels, users=users)` with `by`; events without exactly one user are left out.
    `nonnegative=True` shows what is below 0 as 0. A running maximum of releases is private as well, and leans upwards.
    Exactness tier "exact". Time O(users of the tick) plus that of the noise. Time, memory and snapshots of this object
    are as private as the data.

    >>> import evertally as et
    >>> users = et.DistinctUsers(guarantee=et.ZCDP(0.5), horizon=4096, key=et.simulation(1))
    >>> release = users.step_events(["ann", "bob", "ann"] + list(range(998)))
    >>> users.mechanism, users.sensitivity, round(users.worst_stddev(), 2), abs(release.value - 1000) < 20
    ('bank', Change(l1=1, l2_squared=1, linf=1), 3.42, True)
    >>> home = et.DistinctUsers(by=["north", "south"], guarantee=et.PureDP(1.0), horizon=100, key=et.simulation(1))
    >>> sorted(home.step_events(["north", "south", "south"], users=["ann", "bob", "ann"]).value)
    ['north', 'south']
    >>> small = et.DistinctUsers(bits=2**16, guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> lower, upper = small.step_events(range(5000)).interval()
    >>> lower < 5000 < upper, small.noisy_bits < 5000
    (True, True)
    """

    unit: Any = option(
        'What is protected: everything of one "user" (the cheapest), one "event", or what one user does in one block '
        'of `period` ticks ("user-period").',
        default="user",
    )
    period: int | None = option('How many ticks a block has; goes with unit="user-period".', default=None)
    by: Sequence[Any] | None = option(
        "The categories, all of them, to count users by; None: all together.", default=None
    )
    other: Any = option("A category for labels that were not declared; None: they are dropped.", default=None)
    max_categories: int = option("In how many categories a user counts at most: the first ones.", default=1)
    max_users: int | None = option("How many users are counted, and kept, at most; None: all.", default=None)
    bits: int | None = option("Keeps so many bits in place of names, and releases an estimate.", default=None)
    sample: Any = option('Counts this part of all users, such as "1/16", and divides; None: all.', default=None)
    nonnegative: bool = option("Whether numbers below 0 are shown as 0.", default=False)

    @classmethod
    def user_rule(cls, options: Mapping[str, Any]) -> str:
        if options.get("by") is not None:
            m = options.get("max_categories", 1)
            return "the first category, once" if m == 1 else f"the first {m} categories, each once"
        if options.get("bits") is not None:
            return "one bit, set once"
        return "the first event"

    @property
    def noise(self) -> NoiseProcess:
        """The noise process behind the count; it never sees a user."""
        engine: Any = self._engine
        assert isinstance(engine.inner, LinearEngine)
        return engine.inner.noise

    @property
    def noisy_bits(self) -> int:
        """With `bits`: how many were set at the last tick, with noise; what the estimate is made of."""
        if self.bits is None:
            raise ConfigurationError("there are no bits here: give bits=..., the size of the map")
        return int(self._kept.played.recent[-1][0])

    @by_tick
    def error_bound(self, beta: float = 0.05, tick: int | None = None, *, users: int | None = None) -> float:
        """With probability at least 1 - beta no number of any tick is further off than this.

        With `tick`, the bound for that tick, all ticks together still failing with probability at most beta. With
        `bits` or `sample` how far an estimate is off depends on how many users there are, and nothing bounds that:
        with `users`, a public number, it is the bound of a tick with so many users (the noise of all ticks together,
        the chance of this one).
        """
        form = self._form.inner if isinstance(self._form, NotNegative) else self._form
        if not isinstance(form, EstimateForm):
            return self._bound(beta, tick)
        if users is None:
            return math.inf
        most = whole("users", users, 0, 2**60)
        return form.off(self._bound(beta / 2 if 0 < beta < 1 else beta, tick), most, beta / 2)

    def _blueprint(self) -> Blueprint:
        self._check_options()
        labels = None if self.by is None else declared_labels(self.by, self.other)
        width = 1 if labels is None else len(labels)
        m = 0 if labels is None else whole("max_categories", self.max_categories, 1, width)
        share = self._share()
        words = self.user_rule(self._given("by", "max_categories", "bits"))
        contribution = self._contributing(user_rule=words, period=self.period)
        moved = moved_by(
            self.neighbours, self.unit, categories=m, full=self.max_users is not None or self.bits is not None
        )
        declared = None if labels is None else list(labels[: len(labels) - (self.other is not None)])
        settled = {"by": declared, "sample": None if share is None else str(share)}
        address = settled | self._given("unit", "period", "other", "max_categories", "max_users", "bits")
        read = None if labels is None else column_reader(labels, self.other is not None)
        form: RowForm = NumberForm(1) if labels is None else LabelledForm(labels)
        if self.bits is not None:
            form = BitsForm(self.bits)
        elif share is not None:
            form = SampleForm(float(share))
        rows = self._linear(
            "DistinctUsers",
            width,
            moved.change,
            contribution,
            address,
            lambda source, limit: OwnedDoor(read),
            NotNegative(form) if self.nonnegative else form,
            settled=settled,
            loose=moved.loose,
        )
        if isinstance(form, EstimateForm):
            rows = replace(rows, open=_OPEN)
        limit = 2**61 // last_tick(self.horizon)

        def rule(source: ItemSource) -> Any:
            if self.bits is not None:
                return Bitmap(self.bits, source.order)
            if m:
                return FirstCategories(m, width, limit)
            return FirstSeen(self.max_users, None if share is None else _chosen(share, source), limit)

        return replace(rows, owned=True, engine=lambda source: EncodedEngine(rule(source), rows.engine(source)))

    def _check_options(self) -> None:
        if self.max_events_per_user is not None:
            raise ConfigurationError("of each user any number of events may come here: leave out max_events_per_user")
        if self.by is None and (self.other is not None or self.max_categories != 1):
            raise ConfigurationError("other and max_categories go with by, the categories to count users by")
        kept = [name for name in ("by", "max_users", "bits", "sample") if getattr(self, name) is not None]
        if len(kept) > 1:
            raise ConfigurationError(f"{' and '.join(kept)} do not go together; no charge is known for it")
        if self.max_users is not None:
            self.max_users = whole("max_users", self.max_users, 1, 2**40)
        if self.bits is not None:
            self.bits = whole("bits", self.bits, 64, _MOST_BITS)
            if self.max_window:
                raise ConfigurationError("an estimate from bits has no windows: users share bits with earlier ones")

    def _share(self) -> Fraction | None:
        """The part of all users that counts, in 64 binary digits."""
        if self.sample is None:
            return None
        share = Fraction(int(exact_number(self.sample, "sample") * _HASHES), _HASHES)
        if not 0 < share <= 1:
            raise ConfigurationError("sample is a part of all users: above 0, and at most 1")
        return share


def _chosen(share: Fraction, source: ItemSource) -> Callable[[Texts], NDArray[np.bool_]]:
    """Who is in the sample: the coin of a user is tossed once for life, by a keyed hash of the name."""
    least = np.uint64(int(share * _HASHES) - 1)

    def chosen(names: Texts) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = keyed_numbers(names, source.order, b"sample of users:") <= least
        return found

    return chosen
