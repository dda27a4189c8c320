"""How Spark reads the files of a data frame, where that follows from what is in them.

A reader that looks at the records to find out of which types their columns are lets one record decide about all: where
one says `n/a` and the others `007`, all of them are texts, and without it they are numbers: another label, 7.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from typing import Any

from evertally.errors import ConfigurationError
from evertally.runtime.spec import StreamSpec
from evertally.spark.expressions import fails_fast, is_slow, listed, options_of
from evertally.spark.failures import withheld
from evertally.spark.plans import Plan, Step, origins
from evertally.spark.sources import files_of, path_of

_LOOK = ("json",)  # at the records, unless it is given a schema
_TEXTS = ("json", "csv")
_CENTURY = 36_500  # days
_MANY = 1_000_000  # cells
_LONGEST_HEADER = 2**20  # bytes
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".xz")
_LEAVE_OUT = ("ignoreCorruptFiles", "ignoreMissingFiles")
_REBASE = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.avro.datetimeRebaseModeInRead")
_MAY_LOOK = ("inferschema", "infertimestamp")
_WHY = "types that follow from all records let one of them change what the others mean"


def check_readers(plan: Plan, spec: StreamSpec) -> bool:
    """Refuses readers of events that stop at a bad record, and those whose types may follow from records, unless they
    are declared; gives whether there are such."""
    with withheld("the plan"):
        sources = plan.events
        options = [reader_options(step) for step in sources]
        formats = {_format(step) for step in sources}
        unknown = [_format(step) for step in sources if _may_have_looked(step)]
        in_folders = _from_folders(plan, spec.columns())
    session = plan.frame.sparkSession.conf
    for name in _LEAVE_OUT:
        if "true" in (*(given.get(name.lower(), "") for given in options), session.get(f"spark.sql.files.{name}")):
            raise ConfigurationError(f"take {name} away: of a file with one bad record the rest would be left out")
    rebased = [given.get("datetimerebasemode", "").upper() for given in options]
    if "EXCEPTION" in (*rebased, *(str(session.get(name)).upper() for name in _REBASE)):
        raise ConfigurationError(
            "one old date would stop the stream for all others: datetimeRebaseModeInRead must not be EXCEPTION"
        )
    if any(fails_fast(given) for given in options):
        raise ConfigurationError(
            "a reader is in mode FAILFAST: one bad record would stop the stream for all others. Take PERMISSIVE"
        )
    if any(given.get("multiline", "").lower() == "true" for given in options) or "xml" in formats:
        raise ConfigurationError(
            "a record may run over several lines (multiLine, XML): one that does not end takes in those after it. "
            "Write one record a line, or Parquet"
        )
    slow = [name for step in sources if _format(step) in _TEXTS for name, kind in _types(step) if is_slow(kind)]
    if slow:
        raise ConfigurationError(
            f"{slow[0]}: a decimal number is worked at for minutes where a record says 1e10000000. Read a text, and "
            "cast it"
        )
    if any(given.get("filenameonly", "").lower() == "true" for given in options):
        raise ConfigurationError("take fileNameOnly away: files of one name in two folders would be counted once")
    if any(_is_narrow(given) for step, given in zip(sources, options, strict=True) if _format(step) == "csv"):
        raise ConfigurationError(
            'Spark stops at a line of CSV with more cells than it expects: option("maxColumns", 1000000), and no '
            "maxCharsPerColumn"
        )
    if any(_by_place(step, given) for step, given in zip(sources, options, strict=True)):
        raise ConfigurationError(
            "CSV with a header is read by the places of its columns, and in a file where they stand otherwise each "
            'cell is taken for another: option("enforceSchema", False) holds every header against the names'
        )
    for step, given in zip(sources, options, strict=True):
        if _format(step) == "csv" and given.get("header", "").lower() == "true" and (other := _of_another_header(step)):
            raise ConfigurationError(
                f"{other} has another header than the files before it: give each batch files of one kind, or one order"
            )
    if any(_forgets(step, given) for step, given in zip(sources, options, strict=True)):
        raise ConfigurationError(
            "files that are older than a week beside the newest one would not be read, without a word: "
            'option("maxFileAge", "100000d")'
        )
    looking = [name for name in _MAY_LOOK for given in options if given.get(name, "").lower() == "true"]
    if looking:
        raise ConfigurationError(f"take {looking[0]} away, and give the reader a schema: {_WHY}")
    undeclared = [name for name in spec.columns() if name not in (spec.events or {})]
    asked = undeclared if unknown else [name for name in undeclared if name in in_folders]
    if asked:
        raise ConfigurationError(
            f"{spec.path.name}: give the reader of {unknown[0] if unknown else 'these folders'} a schema, and declare "
            f"the same types in [events], of {', '.join(asked)}: {_WHY}"
        )
    return bool(unknown or in_folders)


def reader_options(step: Step) -> dict[str, str]:
    """The options of a source, of either generation, by names in lower case."""
    node = step.node
    if step.kind == "StreamingRelation":
        return options_of(node.dataSource().options())
    if step.kind == "StreamingRelationV2":
        return _lowered(node.extraOptions())
    if step.kind == "LogicalRelation" and _is_of_files(node.relation()):
        return options_of(node.relation().options())
    return _lowered(node.options()) if step.kind == "DataSourceV2Relation" else {}


def _may_have_looked(step: Step) -> bool:
    """Whether nothing says that a reader was given the types of its columns."""
    if step.kind == "StreamingRelation":
        return not step.node.dataSource().userSpecifiedSchema().isDefined()
    if step.kind == "DataSourceV2Relation" and _format(step) in _LOOK:
        return not step.node.table().userSpecifiedSchema().isDefined()
    return _format(step) in _LOOK or _names_cells(step)


def _by_place(step: Step, options: Mapping[str, str]) -> bool:
    """Whether Spark does not look at what a header says."""
    headed = _format(step) == "csv" and options.get("header", "").lower() == "true"
    return headed and options.get("enforceschema", "true").lower() == "true"


def _of_another_header(step: Step) -> str | None:
    """The first file whose header is not that of the others; of this machine, and not compressed."""
    paths = [path for name in files_of(step) or [] if (path := path_of(name)) and not path.endswith(_PACKED)]
    first = None
    for path in sorted(paths):
        with open(path, "rb") as file:
            line = file.readline(_LONGEST_HEADER).removeprefix(codecs.BOM_UTF8).rstrip(b"\r\n")
        if line and line != (first := first or line):
            return path
    return None


def _is_narrow(options: Mapping[str, str]) -> bool:
    """Whether a line of CSV may be too long."""
    return int(options.get("maxcolumns", "0")) < _MANY or int(options.get("maxcharspercolumn", "-1")) != -1


def _types(step: Step) -> list[tuple[str, str]]:
    return [(one.name(), str(one.dataType().simpleString())) for one in listed(step.node.output())]


def _forgets(step: Step, options: Mapping[str, str]) -> bool:
    """Whether a stream passes over old files."""
    if step.kind != "StreamingRelation" or "path" not in options:
        return False
    found = re.fullmatch(r"\s*(\d+)\s*(d|day|days)\s*", options.get("maxfileage", "7d").lower())
    return found is None or int(found[1]) < _CENTURY


def _names_cells(step: Step) -> bool:
    """Whether columns are called by their place in the first line of a CSV file: how many there are, that one says."""
    headed = reader_options(step).get("header", "").lower() == "true"
    return _format(step) == "csv" and not headed and [name for name, _ in step.columns()][:1] == ["_c0"]


def _format(step: Step) -> str:
    if step.kind == "StreamingRelation":
        return str(step.node.dataSource().className()).lower()
    if step.kind == "LogicalRelation" and _is_of_files(step.node.relation()):
        return str(step.node.relation().fileFormat().getClass().getSimpleName()).removesuffix("FileFormat").lower()
    return str(step.node.table().name()).partition(" ")[0].lower() if step.kind == "DataSourceV2Relation" else ""


def _from_folders(plan: Plan, names: Sequence[str]) -> list[str]:
    """The columns that follow from names of folders (`country=07`) which were taken for something else than texts."""
    return [
        name
        for name in names
        if any(
            source.of_events and columns & _folder_columns(source)
            for source, columns in origins(plan.top, {plan.column(name)})
        )
    ]


def _folder_columns(source: Step) -> set[int]:
    node = source.node
    if source.kind == "LogicalRelation" and _is_of_files(node.relation()):
        folders = _typed(node.relation().partitionSchema())
    elif source.kind == "DataSourceV2Relation" and files_of(source) is not None:
        folders = _typed(node.table().fileIndex().partitionSchema())
    elif source.kind == "StreamingRelation" and node.dataSource().userSpecifiedSchema().isDefined():
        given = {field.name() for field in node.dataSource().userSpecifiedSchema().get().fields()}
        folders = _typed(node.schema()) - given  # what was not given, Spark has found in names of folders
    else:
        return set()
    return {identity for name, identity in source.columns() if name in folders}


def _typed(schema: Any) -> set[str]:
    return {field.name() for field in schema.fields() if field.dataType().typeName() != "string"}


def _is_of_files(relation: Any) -> bool:
    return str(relation.getClass().getSimpleName()) == "HadoopFsRelation"


def _lowered(options: Any) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in dict(options.asCaseSensitiveMap()).items()}
