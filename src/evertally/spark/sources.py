"""Where rows of a data frame come from: files, rows in memory, and what Spark keeps of them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from evertally.spark.expressions import listed, options_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from evertally.spark.plans import Step

_DATA_SOURCES = "org.apache.spark.sql.execution.datasources"
# RDDs whose rows were handed over by Python. What functions of its owner did to them there is seen as little as what
# they did before; it is theirs to answer for, as with a UDF.
_HANDED_OVER = {"ParallelCollectionRDD", "MapPartitionsRDD", "PythonRDD"}


def files_of(step: Step) -> list[str] | None:
    """The files of a source as Spark has listed them; None if it is none of plain files: a table of a catalog, rows in
    memory. Names that Spark lists and does not read (`_metadata`) are left out."""
    location = _location(step)
    if location is None or location.getClass().getName() != f"{_DATA_SOURCES}.InMemoryFileIndex":
        return None
    if step.kind == "LogicalRelation" and step.node.catalogTable().isDefined():
        return None
    return _data(location)


_LISTED = re.compile(r"path=([^;]*); isDirectory=false; length=(\d+);[^}]*?modification_time=(\d+);")


def listing(step: Step) -> list[tuple[int, int]] | None:
    """Sizes, and times in milliseconds, of the files of this machine that Spark has listed; None where they cannot be
    told, or are none."""
    location = _location(step)
    if location is None or files_of(step) is None or any(path_of(name) is None for name in _data(location)):
        return None
    # As one text: to ask Java for each of them takes a millisecond.
    if not any(";" in name for name in _data(location)):
        said = _LISTED.findall(str(location.allFiles().mkString("\n")))
        return [(int(size), int(time)) for path, size, time in said if is_data(path)]
    files = [one for one in listed(location.allFiles().toSeq()) if is_data(str(one.getPath().toString()))]
    return [(int(one.getLen()), int(one.getModificationTime())) for one in files]


def identities(step: Step) -> set[str]:
    """The files of a source, of tables too, each under one name whatever links lead to it."""
    location = _location(step)
    return set() if location is None else {_identity(name) for name in _data(location)}


def names_twice(sources: Iterable[Step]) -> str | None:
    """A file that one source names twice."""
    for step in sources:
        location = _location(step)
        names = Counter() if location is None else Counter(map(_identity, _data(location)))
        if twice := sorted(name for name, times in names.items() if times > 1):
            return twice[0]
    return None


def is_below(files: set[str], step: Step) -> bool:
    """Whether one of these files lies in the folder of a stream: it is, was or will be one of its events."""
    if step.kind != "StreamingRelation":
        return False
    folder = options_of(step.node.dataSource().options()).get("path", "")
    if not folder or urlparse(folder).scheme not in ("", "file") or any(sign in folder for sign in "*?[{"):
        return False  # of which files it is, a pattern does not say; each of them is looked at when it comes
    whole = os.path.realpath(unquote(urlparse(folder).path) if folder.startswith("file:") else folder)
    return any(name == whole or name.startswith(whole.rstrip("/") + "/") for name in files)


def _location(step: Step) -> Any:
    """What lists the files of a source."""
    with suppress(Exception):  # no relation of files: Java has no such method
        if step.kind == "LogicalRelation":
            return step.node.relation().location()
        if step.kind in ("DataSourceV2Relation", "DataSourceV2ScanRelation"):
            table = step.node.table() if step.kind == "DataSourceV2Relation" else step.node.relation().table()
            return table.fileIndex()
    return None


def _data(location: Any) -> list[str]:
    return [name for name in location.inputFiles() if is_data(name)]


def is_data(name: str) -> bool:
    """Whether Spark reads a file that it has listed.

    >>> [is_data(f"file:/in/{name}") for name in ("0.parquet", "_day=1.parquet", "_metadata", ".0.parquet.crc")]
    [True, True, False, False]
    """
    last = name.rpartition("/")[2]
    return not last.startswith(".") and not (last.startswith("_") and "=" not in last)


def path_of(name: str) -> str | None:
    """The path of a file of this machine, behind all links; None of one in a store."""
    address = urlparse(name)
    return os.path.realpath(unquote(address.path)) if address.scheme in ("", "file") else None


def _identity(name: str) -> str:
    return path_of(name) or name


def rows_of_unknown_making(step: Step) -> bool:
    """Whether rows of an RDD may have been made of other rows: only those that Python has handed over are not."""
    if step.kind != "LogicalRDD":
        return False
    todo = [step.node.rdd()]
    while todo:
        rdd = todo.pop()
        if rdd.isCheckpointed() or str(rdd.getClass().getSimpleName()) not in _HANDED_OVER:
            return True
        todo += [one.rdd() for one in listed(rdd.dependencies())]
    return False


def is_cached(frame: DataFrame, steps: Iterable[Step]) -> bool:
    """Whether Spark would take kept rows where it finds a step of the plan."""
    session: Any = frame.sparkSession
    kept = session._jsparkSession.sharedState().cacheManager()
    return not kept.isEmpty() and any(
        kept.lookupCachedData(session._jsparkSession, step.node).isDefined() for step in steps
    )
