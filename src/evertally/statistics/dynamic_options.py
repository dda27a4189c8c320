"""Options of statistics about what is present now, and their blueprint."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal

from evertally.contract.admission import AdmissionEngine
from evertally.contract.doors import RecordsOfTicks
from evertally.contract.guarded import exclusive
from evertally.contract.mechanism import Mechanism
from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint, Options, check_beta
from evertally.contract.release import Release
from evertally.contract.ticks import LONGEST_HORIZON
from evertally.counting.tree import Radix
from evertally.dynamic.answers import AnswersQueries, CellForm, PresentRelease, QueryForm
from evertally.dynamic.charges import Relation
from evertally.dynamic.families import Family, Points
from evertally.dynamic.parts import Identity
from evertally.dynamic.planning import Wanted, settle, ways
from evertally.dynamic.presence import Minted, presence_of
from evertally.dynamic.static import settled_options
from evertally.encode.frames import Table, column
from evertally.encode.updates import FIELDS, UpdateDoor, records, updates_of
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import Contribution, Neighbours
from evertally.ranking import Ranking

LONGEST_LIFE = 2**32


@statistic
class Dynamic(Mechanism):
    """Statistics about items that come and go. Not used directly; see `DynamicCount`, `DynamicHistogram`.

    An event is a record `(action, value, id)`: "insert" or "delete" (or True/False, 1/-1), the value, the name of the
    item. `step` and `step_events` take the records of a tick in their order of arrival, `run` a list of such ticks;
    `step_events(inserted, deleted)` takes what comes and what goes in two columns. Malformed records, deletions of what
    is not there, and insertions of what is there are dropped without a word.
    """

    identity: Identity = option(
        'How a deletion finds what it deletes: by the "id" that its insertion brought, by a "token" that is minted '
        'here for every insertion (`tokens`), by "value" (one of that value, if there is one), or "raw" (every '
        "deletion counts -1).",
        default="id",
    )
    protects: Literal["event", "item"] = option(
        'What is protected: one "item", which is its insertion and everything that names it, or one "event".',
        default="item",
    )
    lifetimes: int = option('How often a name may live, one life after another; goes with identity="id".', default=1)
    unique_deletions: bool = option(
        "A declared fact that privacy rests on: no item can be deleted twice, by construction of the source. Only "
        "where items have no names.",
        default=False,
    )
    max_lifetime: int | None = option(
        "Items are deleted this many ticks after their insertion, at the latest; None: no limit.", default=None
    )
    process: str = option(
        'The noise process of mechanism="linear"; "auto" takes the one with the least worst standard deviation.',
        default="auto",
    )
    radix: Radix = option(
        'How many children a node of a tree has: a number, "formula", or "exact" (the least worst digit sum).',
        default="formula",
    )
    memory_limit: int = option("The bytes that noise may take at most.", default=2**30)
    deletions: bool = option("Whether anything is deleted; False: records that delete are dropped.", default=True)
    static: str = option(
        'What is released of the items: the strategy of mechanism="linear", or the static mechanism that a '
        'construction is built around; "auto" takes the one with the smallest predicted error.',
        default="auto",
    )
    static_options: Mapping[str, Any] | None = option('Options of `static`, e.g. {"fanout": 4}.', default=None)
    every: int | None = option('How many ticks lie between releases of mechanism="anew".', default=None)
    max_items: int | None = option(
        "How many items are present at most: a declared fact that error bounds rest on, where noise grows with the "
        "data or answers wait for the next release. Privacy does not rest on it.",
        default=None,
    )
    partition: Literal["identity", "finite", "infinite"] = option(
        'Which ticks a construction releases at: all ("identity"), or when enough has happened, with a horizon '
        '("finite") or without ("infinite").',
        default="identity",
    )
    beta: float = option("The failure probability that partitions are made for.", default=0.05)
    construction: Mapping[str, Any] | None = option(
        'Further options of a construction, e.g. {"split": "1/2"}.', default=None
    )

    @exclusive
    def step_events(self, events: Any, deleted: Any = None, *, users: Any = None, tick: int | None = None) -> Release:
        """One tick from records; or, with `deleted`, from what is inserted and what is deleted, in this order.

        Insertions are then (value, id) pairs, names where everything lies in one cell, or values where items have no
        names from outside; deletions are names, tokens or values. `users` has one entry for each, insertions first.
        """
        if deleted is not None:
            by_name, named = self.identity in ("id", "token"), self.identity == "id"
            events, deleted = column(events), column(deleted)
            events = records(events, deleted, pairs=named and self._family.cells > 1, by_name=by_name, named=named)
        plain: Any = Mechanism.step_events
        release: Release = plain.__wrapped__(self, events, users=users, tick=tick)
        return release

    def _of_table(self, found: Table) -> Any:
        named = self.identity == "id" or (self.identity == "token" and self.deletions)
        wanted = [name for name, there in zip(FIELDS, (True, self._family.cells > 1, named), strict=True) if there]
        return updates_of(found, wanted, insertions=not self.deletions)

    @property
    def protected_unit(self) -> str:
        # Items by name are others than items by token.
        return self.unit if self.protects == "event" else f"item by {self.identity}"

    @property
    def tokens(self) -> list[str]:
        """The tokens of the last tick's insertions, one for each record that said "insert", in order (of a user's
        events: of those that the cap kept). For the ingest side only, and as secret as the data: who has the token of
        an item can delete it, and how many there are is how many were inserted."""
        return self._tokens()

    @exclusive
    def _tokens(self) -> list[str]:
        presence = self._presence_engine().rule
        if not isinstance(presence, Minted):
            raise ConfigurationError('tokens are minted with identity="token" only')
        return presence.tokens()

    def ways(self) -> Ranking:
        """The ranked table of ways to release this, with bounds that hold with probability 95 %."""
        ranked = ways(self._wanted, self._taken)
        return Ranking(way.shown_as(_once_more) for way in ranked) if self._rounded() else ranked

    def _rounded(self) -> bool:
        return isinstance(self._form, AnswersQueries) and self._form.rounded

    def _bound(self, beta: float, tick: int | None, trust_largest: bool = False) -> float:
        bound = super()._bound(beta, tick, trust_largest)
        return _once_more(bound) if self._rounded() else bound

    def _presence_engine(self) -> AdmissionEngine:
        assert isinstance(self._engine, AdmissionEngine)
        return self._engine

    def _release(self, row: Any, accuracy: Accuracy) -> Release:
        made = super()._release(row, accuracy)
        form = self._form
        assert isinstance(form, AnswersQueries)
        return PresentRelease(
            made.tick,
            made.value,
            made.stddev,
            made.private,
            made.bounds,
            made.about,
            lambda query: form.answer(row, query, accuracy),
        )

    def _relation(self) -> Relation:
        longest = self.max_lifetime
        return Relation(
            self.identity,
            self.protects,
            Neighbours.parse(self.neighbours),
            self.deletions,
            whole("lifetimes", self.lifetimes, 1, 2**20),
            self.unique_deletions,
            self.max_events_per_user,
            None if longest is None else whole("max_lifetime", longest, 1, LONGEST_LIFE),
        )

    def _present(
        self,
        word: str,
        family: Family,
        shown: Mapping[str, Any],
        *,
        single: bool = False,
        settled: Options | None = None,
    ) -> Blueprint:
        """The blueprint of queries of a family."""
        self._family = family
        contribution = Contribution(signed=True, unit=self.unit, max_events_per_user=self.max_events_per_user)
        relation = self._relation()
        if self.partition not in ("identity", "finite", "infinite"):
            raise ConfigurationError(f'partition is "identity", "finite" or "infinite", not {self.partition!r}')
        check_beta(self.beta)
        # All points, in their order: each is a column of the row that counts cells.
        cells = isinstance(family, Points) and tuple(shown.items()) == tuple(family.shown.items())
        wanted = self._wanted = Wanted(
            family=family,
            relation=relation,
            guarantee=self.guarantee,
            contribution=contribution,
            horizon=self.horizon,
            memory_limit=whole("memory_limit", self.memory_limit, 1, 2**62),
            queries=None if cells else tuple(shown.values()),
            radix=self.radix,
            process=self.process,
            static=self.static,
            static_options=_read(self.static_options, "static_options"),
            every=None if self.every is None else whole("every", self.every, 1, LONGEST_HORIZON),
            max_items=None if self.max_items is None else whole("max_items", self.max_items, 1, 2**62),
            partition=self.partition,
            beta=self.beta,
            options=_read(self.construction, "construction"),
        )
        taken = self._taken = settle(wanted, self.mechanism)
        self.static = taken.static_name
        self.process = taken.process or "auto"
        static = taken.static
        static_options = settled_options(taken.static_name, static, wanted.static_options)
        if cells and taken.static_name == "histogram":
            form: AnswersQueries = CellForm(list(shown), static.weights)
        else:
            form = QueryForm(static.width, static.unit, static.weights, shown, counts=family.unit == 1, single=single)
        identity, longest = relation.identity, relation.max_lifetime
        door = UpdateDoor(
            family.cell,
            by_name=identity in ("id", "token"),
            named=identity == "id",
            single=family.cells == 1,
            deletions=relation.deletions,
        )

        def engine(source: ItemSource) -> AdmissionEngine:
            presence = presence_of(
                identity, source, protects=relation.protects, lifetimes=relation.lifetimes, longest=longest
            )
            return AdmissionEngine(presence, taken.engine(source))

        address: Options = {
            "family": family.written(),
            "identity": identity,
            "protects": relation.protects,
            "lifetimes": relation.lifetimes,
            "unique_deletions": relation.unique_deletions,
            "deletions": relation.deletions,
            "max_lifetime": longest,
            "static": taken.static_name,
            "rows": getattr(static, "address", ""),
            "static_options": static_options,
            "process": taken.process,
            "radix": self.radix,
            "memory_limit": wanted.memory_limit,
            "every": wanted.every,
            "max_items": wanted.max_items,
            "partition": wanted.partition,
            "beta": wanted.beta,
            "construction": dict(wanted.options),
            "unit": self.unit,
            "max_events_per_user": contribution.max_events_per_user,
        }
        return Blueprint(
            word=word,
            address=address,
            mechanism=taken.mechanism,
            charge=taken.charge,
            contribution=contribution,
            sensitivity=taken.change,
            door=lambda source, limit: RecordsOfTicks(door.arrivals, static.width),
            engine=engine,
            form=form,
            open=taken.open,
            settled={
                "process": self.process,
                "static": self.static,
                "static_options": static_options or None,
                "construction": dict(wanted.options) or None,
            }
            | (settled or {}),
        )


def _once_more(bound: float) -> float:
    """The error of what is rounded to whole numbers, like the truth."""
    return math.floor(bound + 0.5) if math.isfinite(bound) else bound


def _read(options: Any, name: str) -> dict[str, Any]:
    """Options of a part, copied as they are written down: they are in the address of the noise, and in snapshots."""
    if options is None:
        return {}
    try:
        written = json.dumps(dict(options), allow_nan=False)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{name} is a table of options by name: numbers, texts, and lists of them") from None
    read: dict[str, Any] = json.loads(written)
    return read
