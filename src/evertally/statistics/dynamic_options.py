"""Options of statistics about what is present now, and their blueprint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from evertally.contract.guarded import exclusive
from evertally.contract.mechanism import Mechanism
from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint, Options
from evertally.contract.release import Release
from evertally.counting.tree import Radix
from evertally.dynamic.answers import AnswersQueries, CellForm, PresentRelease, QueryForm
from evertally.dynamic.charges import Encoder, Relation
from evertally.dynamic.choosing import Question, choose_noise
from evertally.dynamic.door import RecordsOfTicks
from evertally.dynamic.engine import PresenceEngine
from evertally.dynamic.families import Family
from evertally.dynamic.linear import OneHot, UpdateEngine
from evertally.dynamic.parts import Identity
from evertally.dynamic.presence import Minted, presence_of
from evertally.encode.updates import UpdateDoor, records
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
        'How a deletion finds what it deletes: by the "id" that its insertion brought, by a "token" that is minted here '
        'for every insertion (`tokens`), by "value" (one of that value, if there is one), or "raw" (every deletion '
        "counts -1).",
        default="id",
    )
    protects: Literal["event", "item"] = option(
        'What is protected: one "item", which is its insertion and everything that names it, or one "event".',
        default="item",
    )
    lifetimes: int = option('How often a name may live, one life after another; goes with identity="id".', default=1)
    unique_deletions: bool = option(
        "A declared fact that privacy rests on: no item can be deleted twice, by construction of the source. Only where "
        "items have no names.",
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

    @exclusive
    def step_events(self, events: Any, deleted: Any = None, *, users: Any = None, tick: int | None = None) -> Release:
        """One tick from records; or, with `deleted`, from what is inserted and what is deleted, in this order.

        Insertions are then (value, id) pairs, names where everything lies in one cell, or values where items have no
        names from outside; deletions are names, tokens or values. `users` has one entry for each, insertions first.
        """
        if deleted is not None:
            by_name, named = self.identity in ("id", "token"), self.identity == "id"
            events = records(events, deleted, pairs=named and self._family.cells > 1, by_name=by_name, named=named)
        plain: Any = Mechanism.step_events
        release: Release = plain.__wrapped__(self, events, users=users, tick=tick)
        return release

    @property
    def tokens(self) -> list[str]:
        """The tokens of the last tick's insertions, one for each record that said "insert", in order (of a user's
        events: of those that the cap kept). For the ingest side only, and as secret as the data: who has the token of
        an item can delete it, and how many there are is how many were inserted."""
        return self._tokens()

    @exclusive
    def _tokens(self) -> list[str]:
        presence = self._presence_engine().presence
        if not isinstance(presence, Minted):
            raise ConfigurationError('tokens are minted with identity="token" only')
        return presence.tokens()

    def ways(self) -> Ranking:
        """The ranked table of ways to release this, with bounds that hold with probability 95 %."""
        return Ranking([replace(self._noise.ways.best, name="linear")])

    def _presence_engine(self) -> PresenceEngine:
        assert isinstance(self._engine, PresenceEngine)
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

    def _relation(self, deletions: bool) -> Relation:
        longest = self.max_lifetime
        return Relation(
            self.identity,
            self.protects,
            Neighbours.parse(self.neighbours),
            deletions,
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
        deletions: bool = True,
    ) -> Blueprint:
        """The blueprint of queries of a family."""
        self._family = family
        contribution = Contribution(signed=True, unit=self.unit, max_events_per_user=self.max_events_per_user)
        relation = self._relation(deletions)
        memory_limit = whole("memory_limit", self.memory_limit, 1, 2**62)
        if self.mechanism not in ("auto", "linear"):
            raise ConfigurationError(f'unknown mechanism {self.mechanism!r}; choose "auto" or "linear"')
        strategy = OneHot(family.cells, family.vector)
        asked = Question(
            self.guarantee, relation, Encoder(), self.horizon, strategy.width, memory_limit, self.radix
        )
        noise = choose_noise(asked, self.process)
        self._noise, self.process = noise, noise.process
        if single:
            form: AnswersQueries = QueryForm(strategy.width, strategy.unit, strategy.weights, shown, single=True)
        else:
            form = CellForm(list(shown), strategy.weights)
        identity, longest = relation.identity, relation.max_lifetime
        records = UpdateDoor(
            family.cell,
            by_name=identity in ("id", "token"),
            named=identity == "id",
            single=family.cells == 1,
            deletions=deletions,
        )

        def engine(source: ItemSource) -> PresenceEngine:
            presence = presence_of(
                identity, source, protects=relation.protects, lifetimes=relation.lifetimes, longest=longest
            )
            return PresenceEngine(presence, UpdateEngine(lambda: noise.make(source), strategy))

        address: Options = {
            "family": family.written(),
            "identity": identity,
            "protects": relation.protects,
            "lifetimes": relation.lifetimes,
            "unique_deletions": relation.unique_deletions,
            "deletions": deletions,
            "max_lifetime": longest,
            "process": noise.process,
            "radix": self.radix,
            "memory_limit": memory_limit,
            "unit": self.unit,
            "max_events_per_user": contribution.max_events_per_user,
        }
        return Blueprint(
            word=word,
            address=address,
            mechanism="linear",
            charge=noise.charge,
            contribution=contribution,
            sensitivity=noise.change,
            door=lambda source, limit: RecordsOfTicks(records, strategy.width),
            engine=engine,
            form=form,
            settled={"process": noise.process} | (settled or {}),
        )
