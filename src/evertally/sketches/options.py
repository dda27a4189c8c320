"""What sketches of labels have in common: options, doors, users, charge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evertally.applications.encoder import EncodedEngine
from evertally.contract.cutting import CutsEvents
from evertally.contract.options import option, statistic
from evertally.contract.owned import OwnedDoor
from evertally.contract.parts import Blueprint, Door, Engine, Form, Options
from evertally.contract.ticks import last_tick
from evertally.counting.linear import LinearEngine
from evertally.counting.process import NoiseProcess
from evertally.counting.processes import Gram, proved_of
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import Neighbours
from evertally.sketches.charges import sketch_change
from evertally.sketches.labels import LARGEST_WEIGHT, KeyedColumns, LabelDoor, LabelReader
from evertally.sketches.once import OncePerUser
from evertally.statistics.linear_options import ROW_ENGINES, Linear

WIDEST = 2**26  # columns of one table


class TableEngine(LinearEngine):
    """The linear engine behind labels: nobody hands over the totals of its columns, so what feeds it totals (audits of
    counters, stacks) must not take it for a counter."""

    @classmethod
    def of(cls, engine: Engine) -> Engine:
        """The same noise and sums; somebody else's engine as it is."""
        return cls(engine._make) if type(engine) is LinearEngine else engine


ROW_ENGINES.add(TableEngine)


@statistic
class LabelSketch(Linear, CutsEvents):
    """Labels of a large domain, counted in a fixed number of columns. Not used directly; see `CountSketch` and
    `HeavyPrefixes`."""

    max_weight: int = option("The largest amount that an event adds (to each of its columns).", default=1)
    max_per_event: int = option(
        "How many labels an event has at most; the rest is cut off, by a secret order.", default=1
    )
    max_labels_per_user: int | None = option(
        'How many labels of a user are counted in the whole stream, each once; goes with unit="user", and takes the '
        "place of max_events_per_user.",
        default=None,
    )

    @classmethod
    def user_rule(cls, options: Mapping[str, Any]) -> str:
        most = options.get("max_labels_per_user")
        if most is None:
            return ""
        return "one label counts, once" if most == 1 else f"at most {most} labels count, each once"

    @property
    def noise(self) -> NoiseProcess:
        """The noise process; it never sees a label."""
        engine: Any = self._engine
        inner = engine.inner if isinstance(engine, EncodedEngine) else engine
        assert isinstance(inner, LinearEngine)
        return inner.noise

    def _check_users(self) -> None:
        if self.max_labels_per_user is None:
            return
        if self.unit != "user":
            raise ConfigurationError('max_labels_per_user is for unit="user": which labels count depends on their user')
        if self.max_events_per_user is not None:
            raise ConfigurationError("max_labels_per_user bounds a user by itself: leave out max_events_per_user")
        self.max_labels_per_user = whole("max_labels_per_user", self.max_labels_per_user, 1, 2**31)

    def _sketched(
        self, word: str, columns: KeyedColumns, address: Options, form: Form, settled: Options | None = None
    ) -> Blueprint:
        """For what `columns` says of labels; `address` has every public option that says what is counted."""
        relation = Neighbours.parse(self.neighbours)
        if relation is Neighbours.INDEPENDENT:
            raise ConfigurationError(
                'neighbours are "add_remove" or "replace" here: all rows of a sketch have one event'
            )
        self._check_users()
        self.max_weight = whole("max_weight", self.max_weight, 1, LARGEST_WEIGHT)
        self.max_per_event = whole("max_per_event", self.max_per_event, 1, 2**16)
        if columns.width > WIDEST:
            raise ConfigurationError(f"the table has {columns.width} columns, more than 2^26: fewer or narrower rows")
        contribution = self._contributing(
            max_per_event=self.max_per_event,
            max_weight=self.max_weight,
            signed=columns.touched.signed > 0,
            user_rule=self.user_rule({"max_labels_per_user": self.max_labels_per_user}),
        )
        # "auto" takes ours alone, whose Gram matrices are nowhere negative.
        loose = self.mechanism != "auto" and proved_of(self.mechanism) is Gram.UNKNOWN
        change = sketch_change(relation, columns.touched, contribution, self.max_labels_per_user, loose)
        reader = LabelReader(
            self.max_per_event,
            self.max_weight,
            order=lambda message: self._source.order(message),  # there is no key yet
            cutting=self.cutting,
        )
        self._read_by(reader)

        def door(source: ItemSource, limit: int) -> Door:
            columns.key(source.fingerprint())
            made = LabelDoor(reader, columns, limit)
            return made if self.max_labels_per_user is None else OwnedDoor(made.cells)

        common = self._given("max_weight", "max_per_event", "unit", "max_events_per_user", "max_labels_per_user")
        plan = self._linear(word, columns.width, change, contribution, address | common, door, form, settled)
        if self.max_labels_per_user is None:
            return replace(plan, engine=lambda source: TableEngine.of(plan.engine(source)))
        most, limit = self.max_labels_per_user, 2**61 // last_tick(self.horizon)

        def engine(source: ItemSource) -> EncodedEngine:
            rule: Any = OncePerUser(columns.width, columns.touched.columns, self.max_per_event, most, limit)
            return EncodedEngine(rule, plan.engine(source))

        return replace(plan, owned=True, engine=engine)


def sketch_rows(rows: Any, width: Any) -> tuple[int, int]:
    """How many rows of how many buckets."""
    rows, width = whole("rows", rows, 1, 63), whole("width", width, 1, WIDEST)
    if rows % 2 == 0:
        raise ConfigurationError(f"rows is odd, so that the median is the number of one row; not {rows}")
    return rows, width
