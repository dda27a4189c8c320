"""How many different users each item had, where nobody listed the items: unique visitors of every page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evertally.contract.admission import AdmissionEngine
from evertally.contract.in_place import InPlace
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint
from evertally.encode import ItemTotals
from evertally.encode.texts import Texts
from evertally.encode.user_table import UserTable
from evertally.errors import ConfigurationError, StateError
from evertally.integers import whole
from evertally.noise import ItemSource, item_addresses
from evertally.privacy import Change, Neighbours
from evertally.secret import Secret
from evertally.selection.found import Found, FoundItems
from evertally.selection.item_engine import charge_of
from evertally.statistics.unknown import ItemFinder
from evertally.users.distinct_rules import USED_UP, Digest, FirstPairs
from evertally.users.labels import LabelledDoor, LabelledTick


class Followed(Secret):
    """What a rule asks of the engine behind it, where labels are limited: which of them are followed."""

    def __init__(self, engine: InPlace, source: ItemSource) -> None:
        self._engine, self._source = engine, source

    @property
    def level(self) -> int:
        found: int = self._worker.followed.level
        return found

    def let_in(self, labels: Texts) -> NDArray[np.bool_]:
        """Which labels the hash lets in."""
        found: NDArray[np.bool_] = self._worker.followed.passes(item_addresses(self._source, labels.list()))
        return found

    def counted(self, labels: Texts) -> NDArray[np.bool_]:
        """Which labels have counts."""
        found: NDArray[np.bool_] = self._worker.table.find(labels) >= 0
        return found

    @property
    def _worker(self) -> Any:
        return self._engine.worker


class FirstLabels(Secret):
    """The first `most` different labels of each user count, each once. Of a tick: new users of each label.

    A label that no user keeps leaves no trace: it must not become known either.
    """

    def __init__(self, most: int, followed: Followed | None = None) -> None:
        # Numbers of labels stay, and may lie in the fields of users.
        self.pairs, self.labels = FirstPairs(most), UserTable(fields=0)
        self._followed, self._level = followed, 0
        self._before = self.labels, self._level

    @property
    def limited(self) -> bool:
        """Whether which labels are followed depends on the labels of all users."""
        return self._followed is not None

    def admit(self, tick: LabelledTick) -> ItemTotals:
        followed = self._followed
        if followed is not None and followed.level > self._level:
            self._drop_labels(followed)
        known = self.labels.find(tick.labels)
        # New labels have numbers for now that no old one has: they are entered once it is known who keeps them.
        numbers = np.where(known < 0, len(self.labels) + np.arange(len(known)), known)
        if followed is not None and followed.level:
            numbers[(known < 0) & ~followed.let_in(tick.labels)] = -1  # a user's place is not used by them
        users, cells, fields = self.pairs.offered(tick.names, tick.codes, np.append(numbers, -1)[tick.cells[:, 0]])
        kept, counts = np.unique(cells, return_counts=True)
        by_number = np.argsort(numbers)
        labels = tick.labels.take(by_number[np.searchsorted(numbers[by_number], kept)])
        final = self.labels.enter(labels)
        self.pairs.write(users, final[np.searchsorted(kept, cells)], fields)
        return ItemTotals(labels, counts)

    def _drop_labels(self, followed: Followed) -> None:
        """Labels that are not followed any more lose their numbers; places of users that they took stay taken."""
        everything = self.labels.names(np.arange(len(self.labels)))
        kept = np.flatnonzero(followed.let_in(everything) | followed.counted(everything))
        left = UserTable(fields=0)
        numbers = np.full(len(everything), USED_UP - 1)
        numbers[kept] = left.enter(everything.take(kept))
        users = self.pairs.users
        for field in range(users.fields):
            held = users.column(field)
            taken = np.flatnonzero((held > 0) & (held < USED_UP))
            users.write(field, taken, numbers[held[taken] - 1] + 1)
        self.labels, self._level = left, followed.level

    def recognise(self, digest: Digest) -> None:
        self.pairs.users.recognise(digest)

    def erase(self, names: Texts) -> None:
        self.pairs.erase(names)

    def begin(self, tick: int) -> None:
        self.pairs.users.begin()
        self.labels.begin()
        self._before = self.labels, self._level

    def undo(self, tick: int) -> None:
        self.pairs.users.undo()
        self.labels, self._level = self._before
        self.labels.undo()

    def save(self) -> bytes:
        users = self.pairs.users.save()
        return len(users).to_bytes(8, "little") + users + self.labels.save()

    def load(self, tick: int, data: bytes) -> None:
        stop = 8 + int.from_bytes(data[:8], "little")
        if len(data) < stop:
            raise StateError("a table of users is cut short; restore from an intact snapshot")
        self.pairs.users.load(data[8:stop])
        self.labels.load(data[stop:])


class FoundByUsers(FoundItems):
    """The same form behind a rule."""

    def load(self, data: bytes, engine: Any, tick: int) -> list[Found]:
        return super().load(data, engine.inner, tick)


@statistic
class UnknownDistinctUsers(ItemFinder):
    """How many different users each item had so far, where the items are not known in advance: unique visitors of every
    page. The first `max_categories` items of each user count, each once, whatever else the user does.

    At every tick the items whose noisy number of users is above a threshold are released, label -> number, largest
    first; of the others nothing is. `threshold`, `sticky` and `max_labels` as for `UnknownHistogram`.

    Theorem (users-and-domains 2.2 [R], streaming-selection 7.2, and 7.5 [R] for `max_labels`, adaptive streams
    included): a user is like one event of m items that is spread over ticks, (m/(2 tau^2), m delta), with
    m = `max_categories`: an item that only one user has has a count of exactly 1, so the threshold is that of single
    events. "replace" doubles rho and the items at risk. With `max_labels` a user's first items are the first that are
    followed when they come. Against `UnknownHistogram` with `unit="user"` and m events of each user: an m-th of rho,
    and a threshold lower by m - 1. A guarantee without a delta cannot be kept. Protected is always the user.

    `step_events(labels, users=users)`: an event names one label and belongs to one user; what has no user, or no label
    of at most 1024 bytes, is left out. Exactness tier "exact". Error: `stddev` and intervals are those of the noise.
    Time O(items so far) a tick; memory O(items so far) and 8 m bytes beside the name of each user, for ever: whoever is
    forgotten would count twice. Time, memory and snapshots of this object are as private as the data.

    >>> import evertally as et
    >>> pages = et.UnknownDistinctUsers(max_categories=2, guarantee=et.ApproxDP(1.0, 1e-6), horizon=500,
    ...                                 key=et.simulation(1))
    >>> visits = [("home", user) for user in range(900)] * 3 + [("a secret", 7)] * 5000
    >>> release = pages.step_events([page for page, _ in visits], users=[user for _, user in visits])
    >>> list(release.value), abs(release.value["home"] - 900) < 60, pages.threshold_at(1)
    (['home'], True, 297)
    """

    unit: Any = option('What is protected: everything of one "user".', default="user")
    max_categories: int = option("How many items of a user count at most: the first ones.", default=1)

    named_ways: ClassVar[tuple[str, ...]] = ("tree",)

    @classmethod
    def user_rule(cls, options: Mapping[str, Any]) -> str:
        m, limited = options.get("max_categories", 1), options.get("max_labels") is not None
        if m == 1:
            return f"the first item{' that is followed when it comes' if limited else ''}, once"
        return f"the first {m} items{' that are followed when they come' if limited else ''}, each once"

    def _worker(self) -> Any:
        engine: Any = self._engine
        return engine.inner.worker

    def _blueprint(self) -> Blueprint:
        if self.mechanism not in ("auto", "tree"):
            raise ConfigurationError(f'unknown mechanism {self.mechanism!r}; users of items are counted by a "tree"')
        if self.unit != "user":
            # One event less may change which later items count, without bound (users-and-domains 1.1).
            raise ConfigurationError('the first items of each user are proved for unit="user" alone')
        if self.max_events_per_user is not None:
            raise ConfigurationError("of each user any number of events may come here: leave out max_events_per_user")
        relation, _ = self._relation_and_horizon()
        m = self.max_categories = whole("max_categories", self.max_categories, 1, 2**16)
        at_risk = m if relation is Neighbours.ADD_REMOVE else 2 * m
        charge, moved = charge_of(self.guarantee), Change(at_risk, at_risk, 1)
        made, limit = self._by_tree(charge, moved, at_risk), self.max_labels

        def engine(source: ItemSource) -> AdmissionEngine:
            inner = InPlace(lambda source: made(source=source), source, returns=False)
            return AdmissionEngine(FirstLabels(m, None if limit is None else Followed(inner, source)), inner)

        return Blueprint(
            word="UnknownDistinctUsers",
            address=self._given("threshold", "sticky", "radix", "max_categories", "unit") | self._limit_address(),
            mechanism="tree",
            charge=charge,
            contribution=self._contributing(user_rule=self.user_rule({"max_categories": m, "max_labels": limit})),
            sensitivity=moved,
            door=lambda source, limit: LabelledDoor(),
            engine=engine,
            form=FoundByUsers(),
            owned=True,
        )
