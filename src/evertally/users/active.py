"""How many users are active: daily, weekly, monthly, of any number of events."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from evertally.applications.encoder import EncodedEngine
from evertally.contract.mechanism import Mechanism
from evertally.contract.options import check_neighbours, option, statistic
from evertally.contract.owned import OwnedDoor
from evertally.contract.parts import Accuracy, Blueprint
from evertally.contract.release import Release
from evertally.contract.ticks import LONGEST_HORIZON
from evertally.counting.process import NoiseProcess
from evertally.counting.runs import LONGEST_PATH
from evertally.encode.door import declared_labels
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import Neighbours
from evertally.ranking import Ranking
from evertally.users.active_form import ActiveRelease, WindowsEngine, WindowsForm
from evertally.users.active_noise import Question, choose_noise
from evertally.users.active_rule import ActiveRule
from evertally.users.labels import column_reader

LONGEST_WINDOW = 2**16


@statistic
class ActiveUsers(Mechanism):
    """How many users had an event within the last W ticks, for one or several windows W: daily, weekly and monthly
    active users. Of each user any number of events, for the whole stream: nothing is capped.

    Theorem (users-and-domains 2.3 and 1.4, 1.5 [R], adaptive streams included): a user is active in runs of at least W
    ticks, so the window itself bounds how often a user comes and goes. The path process hides all such paths, around a
    centre that one shared draw provides: B_c of (T, W). Neighbours: with and without one user ("add_remove"), or with
    another in its place ("replace": 4 B_c, no shared draw). `max_active=k`: the first k active ticks of each user
    count. `by`: users by category, the first `max_categories` categories of each user, m times the cost and no shared
    draw. `unit="user-period"`: what one user does in one block of `period` ticks is protected, whoever is active in
    many blocks less; the error then does not depend on the horizon, which may be None. `unit="event"`: one event.
    Pure epsilon: independent Laplace noise around the same centre, or the comings and goings added up by a tree or
    blocks, whichever has less error.

    Several windows share the guarantee such that all have the same error. Exactness tier "exact". Error: standard
    deviation factor/sqrt(2 rho) at every tick; for a year of days the factors are 10.1, 9.3 and 7.3 for W = 1, 7 and
    28, and 15.5 for the three together; noise that is drawn anew for every tick has 19.1 for each.
    `release.ratio(1, 28)` is how many of the month's users came today.

    `step_events(users)`, or `step_events(labels, users=users)` with `by`; events without exactly one user are left out.
    Time O(users of the tick + windows + K) a tick, K <= 681 numbers of noise a window and category. Memory: a name and
    one number for each user of the longest window; whoever was silent for so long is forgotten, exactly (not with `by`
    or `max_active`, which remember for life). Time, memory and snapshots of this object are as private as the data.

    >>> import evertally as et
    >>> active = et.ActiveUsers([1, 7, 28], guarantee=et.ZCDP(0.02), horizon=365, key=et.simulation(1))
    >>> days = [active.step_events([f"u{i * i % 997}" for i in range(300 * day, 300 * day + 400)]) for day in range(9)]
    >>> sorted(days[-1].value), round(active.worst_stddev(), 1)
    ([1, 7, 28], 77.6)
    >>> share, lower, upper = days[-1].ratio(1, 28)
    >>> lower <= share <= upper
    True
    """

    windows: Sequence[int] = option("The windows, in ticks: a list of whole numbers.", kw_only=False)
    unit: Any = option(
        'What is protected: everything of one "user", what one user does in one block of `period` ticks '
        '("user-period"), or one "event".',
        default="user",
    )
    period: int | None = option('How many ticks a block has; goes with unit="user-period".', default=None)
    max_active: int | None = option("How many active ticks of a user count, the first ones; None: all.", default=None)
    by: Sequence[Any] | None = option(
        "The categories, all of them, to count users by; None: all together.", default=None
    )
    other: Any = option("A category for labels that were not declared; None: they are dropped.", default=None)
    max_categories: int = option("In how many categories a user counts at most: the first ones.", default=1)
    memory_limit: int = option("The bytes that noise may take at most.", default=2**30)

    @classmethod
    def user_rule(cls, options: Mapping[str, Any]) -> str:
        windows = options.get("windows") or []
        last = f"the last {' and '.join(str(window) for window in windows)} ticks"
        k, m = options.get("max_active"), options.get("max_categories", 1)
        if options.get("by") is not None:
            which = "the first category" if m == 1 else f"the first {m} categories"
            return f"whether there was an event in {last}, in {which}"
        return f"whether there was an event in {last}" + ("" if k is None else f", by the first {k} active ticks")

    @property
    def noise(self) -> NoiseProcess:
        """The noise behind the numbers; it never sees a user."""
        engine: Any = self._engine
        found: NoiseProcess = engine.inner.noise
        return found

    def ways(self) -> Ranking:
        """The ranked table that "auto" takes its noise from, with bounds that hold with probability 95 %."""
        return self._ways

    def _blueprint(self) -> Blueprint:
        relation = check_neighbours(self.neighbours, self.guarantee)
        windows = self._checked(relation)
        labels = None if self.by is None else declared_labels(self.by, self.other)
        width = 1 if labels is None else len(labels)
        m = 0 if labels is None else whole("max_categories", self.max_categories, 1, width)
        memory_limit = whole("memory_limit", self.memory_limit, 1, 2**62)
        asked = Question(
            windows, self.horizon, self.unit, self.period, self.max_active, width, m, relation, memory_limit
        )
        noise = choose_noise(self.guarantee, asked, self.mechanism)
        self._ways = noise.ways
        words = self.user_rule(self._given("windows", "by", "max_active", "max_categories"))
        contribution = self._contributing(user_rule=words, period=self.period)
        declared = None if labels is None else list(labels[: len(labels) - (self.other is not None)])
        settled = {"windows": list(windows), "by": declared}
        address = settled | self._given("unit", "period", "max_active", "other", "max_categories", "memory_limit")
        read = None if labels is None else column_reader(labels, self.other is not None)
        keys: list[Hashable] = list(windows)
        if labels is not None:
            keys = [f"{label}, {window}" for window in windows for label in labels]

        def engine(source: ItemSource) -> EncodedEngine:
            rule: Any = ActiveRule(windows, width, m, self.max_active)
            return EncodedEngine(rule, WindowsEngine(lambda: noise.make(source)))

        return Blueprint(
            word="ActiveUsers",
            address=address,
            mechanism=noise.name,
            charge=noise.charge,
            contribution=contribution,
            sensitivity=asked.change(),
            door=lambda source, limit: OwnedDoor(read),
            engine=engine,
            form=WindowsForm(keys),
            settled=settled,
            owned=True,
        )

    def _checked(self, relation: Neighbours) -> tuple[int, ...]:
        """The windows, where the options go together."""
        if relation is Neighbours.INDEPENDENT:
            raise ConfigurationError('independent neighbours are about columns; use "add_remove" or "replace"')
        if self.max_events_per_user is not None:
            raise ConfigurationError("of each user any number of events may come here: leave out max_events_per_user")
        if self.by is None and (self.other is not None or self.max_categories != 1):
            raise ConfigurationError("other and max_categories go with by, the categories to count users by")
        if self.unit != "user" and (self.max_active is not None or self.by is not None):
            # Without one event other ones would count, without bound (users-and-domains 1.1).
            raise ConfigurationError("max_active and by remember what a user did before: they go with unit='user' only")
        if self.max_active is not None and self.by is not None:
            raise ConfigurationError("max_active and by do not go together; no charge is known for it")
        if self.unit == "user" and self.horizon is None:
            raise ConfigurationError(
                "a user who comes and goes for ever needs a horizon; without one protect unit='user-period' or 'event'"
            )
        if self.unit == "user" and self.horizon is not None and self.horizon > LONGEST_PATH:
            raise ConfigurationError(f"paths of users are counted for horizons up to {LONGEST_PATH}; take longer ticks")
        if self.max_active is not None:
            self.max_active = whole("max_active", self.max_active, 1, LONGEST_HORIZON)
        if self.period is not None:
            self.period = whole("period", self.period, 1, LONGEST_WINDOW)
        given: Any = self.windows
        if not isinstance(given, list | tuple) or not given:
            raise ConfigurationError("windows is a list of whole numbers of ticks, for example [1, 7, 28]")
        windows = tuple(whole("a window", window, 1, LONGEST_WINDOW) for window in given)
        if sorted(set(windows)) != list(windows):
            raise ConfigurationError("windows are given once each, the shortest first")
        self.windows = list(windows)
        return windows

    def _release(self, row: Any, accuracy: Accuracy) -> Release:
        return ActiveRelease(**vars(super()._release(row, accuracy)))
