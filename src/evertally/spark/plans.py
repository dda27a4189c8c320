"""What a data frame is made of: the steps of its plan, where its events come from, and what it must not be.

One event more may add or take away rows of its own, and change no other row: what is charged for it is a row. So each
step must make its rows of single rows, and what else a row is looked up in must not be the events again. A list of
steps that do would be out of date with the next version of Spark; this is the list of those that are known to do no
such thing, and everything else is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evertally.errors import ConfigurationError
from evertally.spark.expressions import raising
from evertally.spark.failures import withheld

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Classes of Catalyst's analyzed plans. Sources:
_SOURCES = {
    "CTERelationRef", "DataSourceV2Relation", "DataSourceV2ScanRelation", "HiveTableRelation", "LocalRelation",
    "LogicalRDD", "LogicalRelation", "OneRowRelation", "Range", "StreamingDataSourceV2Relation",
    "StreamingDataSourceV2ScanRelation", "StreamingExecutionRelation", "StreamingRelation", "StreamingRelationV2",
}  # fmt: skip
# Steps whose rows follow from single rows. `EventTimeWatermark` changes none; streams refuse it in words of their own.
_BY_ROWS = {
    "CTERelationDef", "Distinct", "EventTimeWatermark", "Except", "Expand", "Filter", "Generate", "Intersect", "Join",
    "Project", "RebalancePartitions", "Repartition", "RepartitionByExpression", "ResolvedHint", "Sort",
    "SubqueryAlias", "Union", "View", "WithCTE",
}  # fmt: skip
CONSTANT = {"OneRowRelation", "Range"}  # nobody's rows
# What gives another value when it is computed again: half of the parts would count one, half another.
_FICKLE = ("rand", "randn", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id", "input_file_name")
_CLOCKS = ("current_timestamp", "current_time", "current_date", "now", "localtimestamp", "unix_timestamp")
_DATA_SOURCES = "org.apache.spark.sql.execution.datasources"


@dataclass(frozen=True)
class Step:
    """A node of a plan, as Java has it, and the way to it. What has a name in the query (`with ... as`) is a part of
    each step that names it."""

    node: Any
    place: tuple[int, ...] = ()
    named: Mapping[Any, Any] = field(default_factory=dict)  # by number, what `with` defines

    @property
    def kind(self) -> str:
        """The name of its class."""
        return str(self.node.getClass().getSimpleName())

    @property
    def is_source(self) -> bool:
        """Whether rows begin here."""
        return self.kind != "CTERelationRef" and not self.node.children().size()

    def below(self) -> list[Step]:
        """What it reads from."""
        if self.kind == "CTERelationRef":
            return self._steps([self.named[self.node.cteId()]])
        children = _listed(self.node.children())
        return self._steps(children[-1:] if self.kind == "WithCTE" else children)

    def within(self) -> list[Step]:
        """Plans in its expressions: `where page in (select ...)`."""
        return [
            Step(plan, (*self.place, -1 - number), self.named)
            for number, plan in enumerate(_listed(self.node.subqueries()))
        ]

    def _steps(self, nodes: Sequence[Any]) -> list[Step]:
        return [Step(node, (*self.place, number), self.named) for number, node in enumerate(nodes)]

    def ids(self) -> list[int]:
        """Spark's numbers of its columns."""
        return [identity for _, identity in self.columns()]

    def columns(self) -> list[tuple[str, int]]:
        """Its columns: names, and Spark's numbers."""
        return [(one.name(), one.exprId().id()) for one in _listed(self.node.output())]


def steps_of(events: DataFrame) -> list[Step]:
    """All steps of the plan of a data frame, those of its subqueries too; the last one first."""
    top = events._jdf.queryExecution().analyzed()
    found, todo = [], [Step(top, (), _named(top))]
    while todo:
        step = todo.pop()
        found.append(step)
        todo += step.below() + step.within()
    return found


def _named(top: Any) -> dict[Any, Any]:
    found, todo = {}, [top]
    while todo:
        node = todo.pop()
        if Step(node).kind == "CTERelationDef":
            found[node.id()] = node
        todo += _listed(node.children()) + _listed(node.subqueries())
    return found


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(place) for place in range(sequence.size())]


@dataclass(frozen=True)
class Sources:
    """Where the rows of a data frame begin: the events, and what they are looked up in."""

    events: tuple[Step, ...]
    beside: tuple[Step, ...]


def sources_of(events: DataFrame, clock: str | None) -> Sources:
    """Events are what has the time at which something happened; of a stream, what comes live."""
    steps = steps_of(events)
    known = [step for step in steps if step.is_source]
    own = set[tuple[int, ...]]()
    if events.isStreaming:
        own = {step.place for step in known if step.node.isStreaming()}
    elif clock is not None:
        own = {step.place for step, _ in origins(steps[0], {column_of(events, steps, clock)}, of_one_side=True)}
    own = own or {step.place for step in known}
    return Sources(
        tuple(step for step in known if step.place in own), tuple(step for step in known if step.place not in own)
    )


def column_of(events: DataFrame, steps: Sequence[Step], name: str) -> int:
    """Spark's number of a column of the data frame."""
    return steps[0].ids()[events.columns.index(name)]


def origins(step: Step, wanted: set[int], of_one_side: bool = False) -> Iterator[tuple[Step, set[int]]]:
    """The sources whose columns decide these columns of a step, and which of theirs do."""
    below = step.below()
    if step.is_source:
        yield step, wanted
    elif step.kind in ("Union", "CTERelationRef"):  # the same columns under other numbers
        places = [step.ids().index(one) for one in wanted]
        for child in below:
            ids = child.ids()
            yield from origins(child, {ids[place] for place in places}, of_one_side)
    else:
        given = [set(child.ids()) for child in below]
        made = wanted.difference(*given)
        followed = (wanted - made) | (_made_from(step, made) if made else set())
        asked = [(child, followed & ids) for child, ids in zip(below, given, strict=True) if followed & ids]
        if of_one_side and len(asked) > 1:
            raise ConfigurationError(
                "when something happened follows from both sides of a join: take the time of the events alone"
            )
        for child, columns in asked:
            yield from origins(child, columns, of_one_side)


def _made_from(step: Step, made: set[int]) -> set[int]:
    """The columns from which a step makes these."""
    if step.kind != "Project":
        return {one.exprId().id() for one in _listed(step.node.references().toSeq())}
    chosen = [one for one in _listed(step.node.projectList()) if one.exprId().id() in made]
    return {read.exprId().id() for one in chosen for read in _listed(one.references().toSeq())}


def files_of(step: Step) -> list[str] | None:
    """The files of a source as Spark has listed them; None if it is none of plain files: a table of a catalog, rows in
    memory. Names that Spark lists and does not read (`_metadata`) are left out."""
    node = step.node
    try:
        if step.kind == "LogicalRelation" and not node.catalogTable().isDefined():
            location = node.relation().location()
            if location.getClass().getName() != f"{_DATA_SOURCES}.InMemoryFileIndex":
                return None
            return [name for name in location.inputFiles() if is_data(name)]
        if step.kind in ("DataSourceV2Relation", "DataSourceV2ScanRelation"):
            table = node.table() if step.kind == "DataSourceV2Relation" else node.relation().table()
            if table.getClass().getName().startswith(f"{_DATA_SOURCES}.v2."):
                return [name for name in table.fileIndex().inputFiles() if is_data(name)]
    except Exception:  # no relation of files: Java has no such method
        return None
    return None


def is_data(name: str) -> bool:
    """Whether Spark reads a file that it has listed.

    >>> [is_data(f"file:/in/{name}") for name in ("0.parquet", "_day=1.parquet", "_metadata", ".0.parquet.crc")]
    [True, True, False, False]
    """
    last = name.rpartition("/")[2]
    return not last.startswith(".") and not (last.startswith("_") and "=" not in last)


def check_plan(events: DataFrame, clock: str | None) -> None:
    """Refuses a data frame of which one event more could change several rows, or which is not the same when it is
    computed again."""
    with withheld("the plan"):
        steps = steps_of(events)
        strange = sorted({step.kind for step in steps} - _BY_ROWS - _SOURCES)
        plan = events._jdf.queryExecution().analyzed().toString()
    if strange or re.search(r"\b_metadata#\d", plan):
        raise ConfigurationError(
            f"{', '.join(strange) or '_metadata'}: which rows there are, or what they hold, follows from other rows, "
            "or it is not known that it does not, and one event more would change several. Hand over single events, "
            "chosen by what each of them holds (filter, distinct, join with a table)"
        )
    with withheld("the plan"):
        twice = _twice(steps)
        again = _again(sources_of(events, clock))
    if twice:
        raise ConfigurationError(f"{twice} is named twice: each of its events would count twice")
    if again:
        raise ConfigurationError(
            "the events are looked up in themselves (a join, a subquery, exceptAll with the same source): one event "
            "more would change others. Join events with a table of something else"
        )
    with withheld("the plan"):
        raised = sorted({name for step in steps for name in raising(_listed(step.node.expressions()))})
    if raised:
        raise ConfigurationError(
            f"the data frame has functions that raise for some values ({', '.join(raised)}): one such record would "
            "stop the stream for all others. Make it with spark.sql.ansi.enabled=false, as in es.application, where "
            "they give null, or take try_cast, try_divide, try_to_timestamp, ..."
        )
    fickle = _fickle(steps, plan)
    if fickle:
        raise ConfigurationError(
            f"the data frame is not the same when it is computed again ({', '.join(fickle)}): a task that is tried "
            "again would count other rows under the same noise. Write it to files first, and read those"
        )


def _twice(steps: list[Step]) -> str | None:
    """A file that one source names twice."""
    for step in steps:
        names = Counter(files_of(step) or [])
        if twice := sorted(name for name, times in names.items() if times > 1):
            return twice[0]
    return None


def _again(sources: Sources) -> bool:
    """Whether what events are looked up in are the events, or some of their files."""
    return any(_same(one, other) for one in sources.events for other in sources.beside)


def _same(one: Step, other: Step) -> bool:
    if one.kind in CONSTANT or other.kind in CONSTANT:
        return False
    return bool(one.node.sameResult(other.node)) or bool({*(files_of(one) or [])} & {*(files_of(other) or [])})


def _fickle(steps: list[Step], plan: str) -> list[str]:
    with withheld("the plan"):
        deterministic = all(_deterministic(step.node) for step in steps)
    found = [name for name in (*_FICKLE, *_CLOCKS) if re.search(rf"\b{name}\(", plan.lower())]
    return found or ([] if deterministic else ["an expression that is not deterministic"])


def _deterministic(node: Any) -> bool:
    return all(expression.deterministic() for expression in _listed(node.expressions()))
