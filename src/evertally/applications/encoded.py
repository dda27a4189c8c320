"""Statistics whose changes are encoded and counted: options, blueprint, certified sensitivity."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evertally.applications.encoder import EncodedEngine, Encoder, Rule
from evertally.applications.records import Record, RecordDoor
from evertally.applications.refuter import Stream, Worst, neighbours, search
from evertally.contract.options import check_neighbours, statistic
from evertally.contract.parts import Blueprint, Form, Options
from evertally.contract.ticks import last_tick
from evertally.counting.linear import LinearEngine
from evertally.counting.process import NoiseProcess
from evertally.errors import ConfigurationError
from evertally.privacy import Change, Contribution, Neighbours
from evertally.statistics.linear_options import Linear


@dataclass(frozen=True)
class Certified:
    """How far one record can move the encoded stream, and where that is proved.

    `change` is for one record under the relation; what a user's w records can do is its group (6.0). `removal` is for
    one record that is there or not, where `change` is not: a user is replaced by removals and additions, 2w of them.
    `split` is Gamma^2 by S3 alone, where `change` needs more than that: for factors that have no three-entry S4.
    """

    change: Change
    section: str
    removal: Change | None = None
    split: int | None = None
    removal_split: int | None = None

    def by_split(self) -> Certified | None:
        """The same by S3 alone; None where that makes no difference."""
        if self.split is None:
            return None
        removal = self.removal
        if removal is not None and self.removal_split is not None:
            removal = replace(removal, l2_squared=self.removal_split)
        return Certified(replace(self.change, l2_squared=self.split), self.section, removal)

    def of_unit(self, relation: Neighbours, contribution: Contribution) -> Change:
        """For one record, or for all that count of a user: w of them, 2w where a user is replaced (6.0)."""
        w = contribution.max_events_per_user
        if w is None:
            return self.change
        if relation is Neighbours.ADD_REMOVE:
            return self.change.group(w)
        return (self.change if self.removal is None else self.removal).group(2 * w)


@statistic
class Encoded(Linear):
    """Statistics of records, counted by their changes. Not used directly; see `et.graph` and `et.strings`.

    `step` and `step_events` take the records of a tick, `run` a list of such ticks. Records that cannot be used are
    dropped without a word. What one record can do to all releases is `certified()`, and can be put to the test:

    >>> import evertally as et
    >>> from evertally.applications.refuter import streams
    >>> edges = et.graph.EdgeCount(guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1))
    >>> edges.certified().change, edges.certified().section
    (Change(l1=2, l2_squared=2, linf=2), 'factorization-counting 6.5, edge count, door')
    >>> some = [("ann", "bob", 1), ("bob", "cid", 1)]  # as its door reads them: two ends, and what is added
    >>> worst = edges.refute(some, streams(some, 4))  # all streams of four such records, each without one of them
    >>> worst.pairs, worst.l1, worst.refuted
    (64, 2, False)

    Theorem: factorization-counting 6.0, and the section that `certified` names. Tier: exact. Error: that of a counter
    times Gamma. Time and memory: see each statistic; what it remembers of records is secret and in its snapshots.
    """

    @abstractmethod
    def certified(self) -> Certified:
        """How far one record (or what else is protected) can move what is counted, at most, and where that is proved.

        Follows from public options alone. `sensitivity` is what is paid for: a user's records together, if users are
        protected.
        """

    @abstractmethod
    def encoder(self) -> Encoder:
        """A new encoder that has seen no record: what `refute` plays streams through, and every engine has its own."""

    def refute(self, records: Sequence[Record], some: Iterable[Stream]) -> Worst:
        """Looks for neighbours among made-up streams that differ by more than is certified.

        `records` are read records (what the door makes of them): those that may stand in another's place. `some` are
        streams of them, such as `refuter.streams(records, length)` makes. Never give it real data: what is found is
        shown. Nothing found is no proof; that is the section's.
        """
        return search(self.encoder, neighbours(some, records, self._relation().value), self.certified().change)

    @property
    def noise(self) -> NoiseProcess:
        """The noise process behind the counter; it never sees a record."""
        engine: Any = self._engine
        assert isinstance(engine, EncodedEngine)
        assert isinstance(engine.inner, LinearEngine)
        return engine.inner.noise

    def _relation(self) -> Neighbours:
        relation = Neighbours.parse(self.neighbours)
        if relation is Neighbours.INDEPENDENT:
            raise ConfigurationError('neighbours are "add_remove" or "replace" here: a record is there, or another is')
        return relation

    def _encoded_blueprint(
        self,
        word: str,
        width: int,
        read: Callable[[Any], Record | None],
        address: Options,
        form: Form,
        *,
        sort: bool = False,
        settled: Options | None = None,
    ) -> Blueprint:
        """`address`: every public option that says what is counted. `sort`: the order inside a tick says nothing."""
        relation = self._relation()
        check_neighbours(self.neighbours, self.guarantee)
        contribution = self._contributing()
        certified = self.certified()
        change, by_split = certified.of_unit(relation, contribution), certified.by_split()
        if change.l2_squared <= 0:
            raise ConfigurationError("nothing can change here, so nothing is to be counted: choose other bounds")
        # The encoder stands before whatever engine takes rows: the linear one, or somebody else's.
        rows = self._linear(
            word,
            width,
            change,
            contribution,
            address | self._given("unit", "max_events_per_user"),
            lambda source, limit: RecordDoor(read, width, sort=sort),
            form,
            settled=settled,
            split=None if by_split is None else by_split.of_unit(relation, contribution),
        )
        limit = 2**61 // last_tick(self.horizon)
        return replace(
            rows, engine=lambda source: EncodedEngine(Rule(self.encoder(), width, limit), rows.engine(source))
        )
