"""Whether a data frame is nothing but columns of Parquet files, and how tasks share them; looked at on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from evertally.spark.expressions import options_of
from evertally.spark.parquet_files import Scan, arrow_type, cut, row_groups
from evertally.spark.sources import is_data

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SOURCES = "org.apache.spark.sql.execution.datasources"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_PROJECT = "org.apache.spark.sql.catalyst.plans.logical.Project"
_MOST_FILES = 10_000  # the driver looks at all footers, about a millisecond each
# Properties of a session that change what Spark's reader makes of a file, and the value without which it is asked.
_MUST_BE = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",  # of files that do not say who wrote them
}
# Options of a reader that say which files there are, and nothing about their content.
_WHICH_FILES = {"path", "paths", "pathglobfilter", "recursivefilelookup", "modifiedbefore", "modifiedafter"}


def scan_of(rows: DataFrame, names: list[str]) -> Scan | None:
    """How tasks may read the rows of a data frame by themselves; None: Spark has to read them. `names` is what its
    columns are in the spec.

    What is looked at is the plan that Spark has made of it, with all rules of the session: a filter, a cast, rows that
    are cached, a rule about who may see which row all stand there, and then it is no bare scan.
    """
    try:
        return _scan(rows, names)
    # Another version of Spark, a file that is damaged or encrypted: its own reader says what is wrong.
    except Exception:
        return None


def _scan(rows: DataFrame, names: list[str]) -> Scan | None:
    session = rows.sparkSession
    if any(str(session.conf.get(name)).lower() != value.lower() for name, value in _MUST_BE.items()):
        return None
    plan = rows._jdf.queryExecution().optimizedPlan()
    known = _names(plan)
    relation = None if known is None else _relation(plan)
    if known is None or relation is None:
        return None
    output, fields = plan.output(), rows.schema.fields
    found = [known[output.apply(place).exprId().id()] for place in range(output.size())]
    if len(set(found)) != len(fields) or any("__CHAR_VARCHAR_TYPE_STRING" in field.metadata for field in fields):
        return None
    zone = str(session.conf.get("spark.sql.session.timeZone"))
    columns = {name: field.dataType.simpleString() for name, field in zip(found, fields, strict=True)}
    if any(arrow_type(kind, zone) is None for kind in columns.values()):
        return None
    sizes = _sizes(sorted(name for name in relation.location().inputFiles() if is_data(name)), columns)
    if sizes is None:
        return None
    cores = session.sparkContext.defaultParallelism
    most = session._jsparkSession.sessionState().conf().filesMaxPartitionBytes()
    rounds = -(-sum(map(sum, sizes.values())) // (most * cores))
    return Scan(tuple(cut(sizes, max(1, rounds) * cores)), columns, tuple(names), zone)


def _names(plan: Any) -> dict[int, str] | None:
    """The names in the files of what a plan gives, by the numbers that Spark has for them; None where a step does more
    than to choose columns and to name them."""
    kind = plan.getClass().getName()
    if kind == f"{_SOURCES}.LogicalRelation":
        output = plan.output()
        return {output.apply(place).exprId().id(): output.apply(place).name() for place in range(output.size())}
    if kind != _PROJECT:
        return None
    below, found = _names(plan.child()), {}
    chosen = plan.projectList()
    for place in range(chosen.size()):
        one = chosen.apply(place)
        taken = one.child() if one.getClass().getName() == f"{_EXPRESSIONS}.Alias" else one
        if below is None or taken.getClass().getName() != f"{_EXPRESSIONS}.AttributeReference":
            return None
        if taken.exprId().id() not in below:
            return None
        found[one.exprId().id()] = below[taken.exprId().id()]
    return found


def _relation(plan: Any) -> Any:
    """The files under a plan of projections, None where they are not just Parquet files in folders."""
    while plan.getClass().getName() == _PROJECT:
        plan = plan.child()
    relation = plan.relation()
    if relation.getClass().getName() != f"{_SOURCES}.HadoopFsRelation" or plan.catalogTable().isDefined():
        return None
    parts = relation.fileFormat(), relation.location()
    classes = [part.getClass().getName() for part in parts]
    if classes != [f"{_SOURCES}.parquet.ParquetFileFormat", f"{_SOURCES}.InMemoryFileIndex"]:
        return None
    said = options_of(relation.options()).keys()
    plain = relation.partitionSchema().size() == 0 and not relation.bucketSpec().isDefined() and said <= _WHICH_FILES
    return relation if plain else None


def _sizes(files: list[str], columns: Mapping[str, str]) -> dict[tuple[str, int], list[int]] | None:
    """The row groups of each file, path and size; None if one of them is Spark's to read. Only of this machine's file
    system, or one that is mounted like it: what an address of a store means, and whose rights count, Hadoop knows."""
    if not 0 < len(files) <= _MOST_FILES or len(set(files)) < len(files):
        return None
    found: dict[tuple[str, int], list[int]] = {}
    for name in files:
        address = urlparse(name)
        if address.scheme != "file" or address.netloc or address.params or address.query or address.fragment:
            return None
        path = unquote(address.path)
        size = Path(path).stat().st_size
        groups = row_groups(path, columns)
        if groups is None or not size:
            return None
        found[path, size] = groups
    return found
