"""What a data frame is made of, and what it must not be.

One event more may add or take away rows of its own, and change no other row: what is charged for it is a row. So each
step above the events must make its rows of single rows, and what else a row is looked up in must not be the events
again: it is named. A list of steps that do harm would be out of date with the next version of Spark; these are the
steps that are known to do none, and everything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evertally.errors import ConfigurationError
from evertally.spark.expressions import fickle, is_collated, listed, raising, unseen
from evertally.spark.failures import withheld
from evertally.spark.sources import identities, is_below, is_cached, names_twice, rows_of_unknown_making

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Classes of Catalyst's analyzed plans. Sources:
_SOURCES = {
    "DataSourceV2Relation", "DataSourceV2ScanRelation", "HiveTableRelation", "LocalRelation", "LogicalRDD",
    "LogicalRelation", "OneRowRelation", "Range", "StreamingDataSourceV2Relation", "StreamingDataSourceV2ScanRelation",
    "StreamingExecutionRelation", "StreamingRelation", "StreamingRelationV2",
}  # fmt: skip
CONSTANT = {"OneRowRelation", "Range"}  # nobody's rows
# Steps whose rows follow from single rows. `EventTimeWatermark` changes none; streams refuse it in words of their own.
_BY_ROWS = {
    "CTERelationDef", "CTERelationRef", "EventTimeWatermark", "Expand", "Filter", "Generate", "Join", "Project",
    "RebalancePartitions", "Repartition", "RepartitionByExpression", "ResolvedHint", "Sort", "SubqueryAlias", "Union",
    "View", "WithCTE",
}  # fmt: skip
# Of several equal rows they keep one: an event more adds one, or none.
DISTINCT = {"Deduplicate", "Distinct", "Except", "Intersect"}
_OF_TABLES = {"Aggregate"}  # where no event is below, one more changes nothing of it
# On which side of a join the events may be: on the other one, an event more adds and takes away rows of the table.
_LEFT, _RIGHT = 0, 1
_SIDES = {
    "Inner": {_LEFT, _RIGHT},
    "Cross": {_LEFT, _RIGHT},
    "LeftOuter": {_LEFT},
    "RightOuter": {_RIGHT},
    "LeftSemi": {_LEFT},
    "LeftAnti": {_LEFT},
}


@dataclass(frozen=True, eq=False)
class Step:
    """A node of a plan, as Java has it. `below`: what it makes its rows of. `within`: plans in its expressions, as in
    `where page in (select ...)`. `of_events`: whether its rows are made of events."""

    node: Any
    kind: str
    below: tuple[Step, ...] = ()
    within: tuple[Step, ...] = ()
    of_events: bool = False

    @property
    def is_source(self) -> bool:
        """Whether rows begin here."""
        return self.kind != "CTERelationRef" and not self.below

    def ids(self) -> list[int]:
        """Spark's numbers of its columns."""
        return [identity for _, identity in self.columns()]

    def columns(self) -> list[tuple[str, int]]:
        """Its columns: names, and Spark's numbers."""
        return [(one.name(), one.exprId().id()) for one in listed(self.node.output())]


class Plan:
    """The steps of a data frame, each after those that it is made of. `look_up`: data frames in which events are looked
    up; all other sources are events."""

    def __init__(self, events: DataFrame, look_up: Sequence[DataFrame] = ()) -> None:
        self.frame = events
        self._tables = [leaf for table in look_up for leaf in _leaves(_analyzed(table))]
        self.steps = self._built(_analyzed(events))
        sources = [step for step in self.steps if step.is_source]
        if not any(step.of_events for step in sources) and not self._tables:  # nothing but what is nobody's
            self.steps = self._built(_analyzed(events), constants_are_events=True)
            sources = [step for step in self.steps if step.is_source]
        self.events = [step for step in sources if step.of_events]
        self.tables = [step for step in sources if not step.of_events]

    @property
    def top(self) -> Step:
        """The last step, of which the rows are."""
        return self.steps[-1]

    def column(self, name: str) -> int:
        """Spark's number of a column of the data frame."""
        number: int = self.top.ids()[self.frame.columns.index(name)]
        return number

    def expressions(self, of_events: bool = False) -> list[Any]:
        """All that steps compute; or those steps alone that have rows of events. Those of sources are their columns."""
        steps = [step for step in self.steps if not step.is_source and (step.of_events or not of_events)]
        return [one for step in steps for one in listed(step.node.expressions())]

    def _built(self, top: Any, constants_are_events: bool = False) -> list[Step]:
        found: list[Step] = []
        parts: dict[int, tuple[list[Step], list[Step]]] = {}  # of a node that is not built yet: below, within
        named: dict[Any, Step] = {}  # by number, what `with` defines
        for number, node, parent, role in reversed(list(_from_the_top(top))):
            kind = _kind(node)
            below, within = parts.pop(number, ([], []))
            if kind == "WithCTE":  # what it defines is a part of whatever names it
                below = below[-1:]
            elif kind == "CTERelationRef":
                below = [named[node.cteId()]]
            of_events = any(step.of_events for step in below)
            if not below and (constants_are_events or kind not in CONSTANT):
                of_events = not any(node.sameResult(table) for table in self._tables)
            step = Step(node, kind, tuple(below), tuple(within), of_events)
            if kind == "CTERelationDef":
                named[node.id()] = step
            found.append(step)
            parts.setdefault(parent, ([], []))[role].append(step)
        return found


_BELOW, _WITHIN = 0, 1


def _from_the_top(top: Any) -> Iterator[tuple[int, Any, int, int]]:
    """Each node with its number, that of the node above, and whether it stands below or within that. Backwards, each
    comes after all that it is made of; what `with` defines comes before the queries that name it."""
    todo = [(top, -1, _BELOW)]
    number = 0
    while todo:
        node, parent, role = todo.pop()
        yield number, node, parent, role
        todo += [(child, number, _BELOW) for child in listed(node.children())]
        todo += [(child, number, _WITHIN) for child in listed(node.subqueries())]
        number += 1


def _analyzed(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _leaves(top: Any) -> list[Any]:
    leaves = [node for _, node, _, _ in _from_the_top(top) if not node.children().size()]
    return [node for node in leaves if _kind(node) not in CONSTANT | {"CTERelationRef"}]


def _kind(node: Any) -> str:
    return str(node.getClass().getSimpleName())


# -- what it must not be


def check_plan(plan: Plan) -> None:
    """Refuses a data frame of which one event more could change several rows, or which is not the same when it is
    computed again."""
    with withheld("the plan"):
        refused = _of_others(plan) or _of_itself(plan) or _of_chance(plan)
    if refused:
        raise ConfigurationError(refused)


def _of_others(plan: Plan) -> str | None:
    strange = sorted({_kind_of(step) for step in plan.steps if not _is_by_rows(step)})
    if strange:
        return (
            f"{', '.join(strange)}: which rows there are, or what they hold, follows from other rows, or it is not "
            "known that it does not, and one event more would change several. Hand over single events, chosen by what "
            "each of them holds (filter, distinct, join with a table); what they are looked up in may be added up, if "
            "it is named: look_up=[table]"
        )
    if any(rows_of_unknown_making(step) for step in plan.events):
        return (
            "rows of an RDD, or of a checkpoint, do not say how they were made: if from other rows, one event more "
            "would change several. Write them to files, and read those"
        )
    hidden = unseen(plan.expressions())
    if hidden:
        return (
            f"{', '.join(hidden)}: what it gives for a row may follow from other rows, and one event more would change "
            "several. Take a function of one row (udf without pandas or Arrow batches), and a value in the place of a "
            "variable"
        )
    return None


def _has_place_in_file(columns: Any) -> bool:
    """Whether a column says where in its file a row lies: that follows from those before it. Columns of the second name
    Spark fills in whoever asks for them."""
    names = str(columns.mkString(" ")).lower()  # a thousand columns are not asked one by one
    if "_tmp_metadata" in names:
        return True
    return "_metadata#" in names and any(
        one.metadata().contains("__file_source_metadata_col") for one in listed(columns)
    )


def _kind_of(step: Step) -> str:
    return "_metadata" if step.kind in _SOURCES else step.kind


def _is_by_rows(step: Step) -> bool:
    if step.kind in DISTINCT:
        keys = {one.exprId().id() for one in listed(step.node.keys())} if step.kind == "Deduplicate" else None
        every = keys is None or keys == set(step.ids())  # a key may be named twice
        # Of texts that are equal by a collation, which one is kept follows from the order of rows.
        return every and not any(map(is_collated, listed(step.node.output())))
    if step.is_source and _has_place_in_file(step.node.output()):
        return False
    if step.kind == "Aggregate" and any(is_collated(key) for key in listed(step.node.groupingExpressions())):
        return False
    return step.kind in _BY_ROWS | _SOURCES or (step.kind in _OF_TABLES and not step.of_events)


def _of_itself(plan: Plan) -> str | None:
    for step in plan.steps:
        sides = [side for side, below in enumerate(step.below) if below.of_events]
        if any(inner.of_events for inner in step.within) or (step.kind != "Union" and len(sides) > 1):
            return (
                f"events meet other rows ({step.kind}): name what they are looked up in, look_up=[table, ...]. If that "
                "is the events again, one event more would change others: join events with a table of something else"
            )
        if step.kind == "Union" and sides and any(_has_table(below) for below in step.below if not below.of_events):
            return "rows of a table in look_up are counted as events (union): take it out of look_up"
        if sides and not _may_stand_there(step, sides[0]):
            return (
                f"{_join_of(step)} keeps rows of a table without an event, or because there is one: an event more "
                "would take some away, or add several. Put events on the side that is kept: events left join table"
            )
    if not plan.events or not plan.top.of_events:
        return (
            "all that this data frame is made of is in look_up, and nothing is left to be the events: they cannot be "
            "looked up in themselves"
        )
    if twice := names_twice(plan.events):
        return f"{twice} is named twice: each of its events would count twice"
    tables = [(step, identities(step)) for step in plan.tables]
    for step in plan.events:
        own = identities(step)
        if any(own & files or is_below(files, step) for _, files in tables):
            return (
                "the events are looked up in themselves: a file of look_up is one of theirs, and one event more would "
                "change others. Join events with a table of something else"
            )
    return None


def _has_table(step: Step) -> bool:
    """Whether it is made of more than what is nobody's."""
    return step.kind not in CONSTANT if step.is_source else any(map(_has_table, step.below))


def _may_stand_there(step: Step, side: int) -> bool:
    if step.kind == "Join":
        return side in _SIDES.get(_join_of(step), {_LEFT} if _join_of(step).startswith("ExistenceJoin") else set())
    return step.kind != "Except" or side == _LEFT


def _join_of(step: Step) -> str:
    return str(step.node.joinType().toString()) if step.kind == "Join" else step.kind


def _of_chance(plan: Plan) -> str | None:
    if found := fickle(plan.expressions()):
        return (
            f"the data frame is not the same when it is computed again ({', '.join(found)}): a task that is tried "
            "again would count other rows under the same noise. Drop such columns, or write it to files first, and "
            "read those"
        )
    if is_cached(plan.frame, plan.steps):
        return (
            "rows of this data frame, or of what it is made of, are cached: they are those of the files that lay there "
            "then. unpersist() them, or spark.catalog.clearCache()"
        )
    legacy = str(plan.frame.sparkSession.conf.get("spark.sql.legacy.timeParserPolicy")).upper()
    found = ["spark.sql.legacy.timeParserPolicy=EXCEPTION"] if legacy == "EXCEPTION" else []
    if found := found + raising(plan.expressions(of_events=True)):
        return (
            f"the data frame has functions that raise for some values ({', '.join(found)}): one such record would stop "
            "the stream for all others. If it is the mode (spark.sql.ansi.enabled), make it without, as es.application "
            "does, or with try_cast, try_divide, ...; times by a format are a cast of a text that regexp_replace has "
            "put in order (docs/spark.md); else write the column to files first"
        )
    return None


# -- where columns come from


def origins(step: Step, wanted: set[int]) -> Iterator[tuple[Step, set[int]]]:
    """The sources whose columns decide these columns of a step, and which of theirs do."""
    if step.is_source:
        yield step, wanted
    elif step.kind in ("Union", "CTERelationRef"):  # the same columns under other numbers
        places = [step.ids().index(one) for one in wanted]
        for child in step.below:
            numbers = child.ids()
            yield from origins(child, {numbers[place] for place in places})
    else:
        known = [set(child.ids()) for child in step.below]
        made = wanted.difference(*known)
        followed = (wanted - made) | (_made_from(step, made) if made else set())
        for child, ids in zip(step.below, known, strict=True):
            if followed & ids:
                yield from origins(child, followed & ids)


def _made_from(step: Step, made: set[int]) -> set[int]:
    """The columns from which a step makes these."""
    if step.kind != "Project":
        return {one.exprId().id() for one in listed(step.node.references().toSeq())}
    chosen = [one for one in listed(step.node.projectList()) if one.exprId().id() in made]
    return {read.exprId().id() for one in chosen for read in listed(one.references().toSeq())}
