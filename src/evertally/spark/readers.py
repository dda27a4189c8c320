"""How Spark reads the files of a data frame, where that follows from what is in them.

A reader that looks at the records to find out of which types their columns are lets one record decide about all: where
one says `n/a` and the others `007`, all of them are texts, and without it they are numbers: another label, 7.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evertally.errors import ConfigurationError, StateError
from evertally.runtime.spec import StreamSpec
from evertally.spark.expressions import fails_fast, is_slow, listed, options_of
from evertally.spark.failures import withheld
from evertally.spark.plans import Plan, Step, origins
from evertally.spark.sources import files_of, path_of

_LOOK = ("json",)  # at the records, unless it is given a schema
_TEXTS = ("json", "csv")
_CENTURY = 36_500  # days
_MANY = 1_000_000  # cells
_LONGEST_HEADER = 2**20  # letters
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate", ".xz")
_LEAVE_OUT = ("ignoreCorruptFiles", "ignoreMissingFiles")
_REBASE = ("spark.sql.parquet.datetimeRebaseModeInRead", "spark.sql.avro.datetimeRebaseModeInRead")
_MAY_LOOK = ("inferSchema", "inferTimestamp")
_WHY = "types that follow from all records let one of them change what the others mean"
_LEFT_OUT = (
    "take ignoreCorruptFiles and ignoreMissingFiles away: of a file with a bad record the rest would be left out"
)
_OLD_DATES = "one old date would stop the stream for all others: datetimeRebaseModeInRead must not be EXCEPTION"

Options = Mapping[str, str]
Rule = Callable[[Step, Options], bool]


def check_readers(plan: Plan, spec: StreamSpec) -> bool:
    """Refuses readers of events that stop at a bad record, and those whose types may follow from records, unless they
    are declared; gives whether there are such."""
    with withheld("the plan"):
        sources = [(step, reader_options(step)) for step in plan.events]
        refused = [words for rule, words in _RULES if any(rule(step, given) for step, given in sources)]
        unknown = [_format(step) for step in plan.events if _may_have_looked(step)]
        in_folders = _from_folders(plan, spec.columns())
        others = [
            other for step, given in sources if _is_headed(step, given) and (other := _of_another_header(step, given))
        ]
    refused += _of_session(plan)
    if refused:
        raise ConfigurationError(refused[0])
    if others:
        raise ConfigurationError(
            f"{others[0]} has another header than the files before it: give each batch files of one kind, or one order"
        )
    undeclared = [name for name in spec.columns() if name not in (spec.events or {})]
    asked = undeclared if unknown else [name for name in undeclared if name in in_folders]
    if asked:
        raise ConfigurationError(
            f"{spec.path.name}: give the reader of {unknown[0] if unknown else 'these folders'} a schema, and declare "
            f"the same types in [events], of {', '.join(asked)}: {_WHY}"
        )
    return bool(unknown or in_folders)


def _of_session(plan: Plan) -> list[str]:
    session = plan.frame.sparkSession.conf
    found = [_LEFT_OUT for name in _LEAVE_OUT if session.get(f"spark.sql.files.{name}") == "true"]
    return found + [_OLD_DATES for name in _REBASE if str(session.get(name)).upper() == "EXCEPTION"]


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


def _is_on(name: str) -> Rule:
    """Whether an option is set."""
    return lambda _step, options: options.get(name, "").lower() == "true"


def _is_headed(step: Step, options: Options) -> bool:
    return _format(step) == "csv" and options.get("header", "").lower() == "true"


def _by_place(step: Step, options: Options) -> bool:
    """Whether Spark does not look at what a header says."""
    return _is_headed(step, options) and options.get("enforceschema", "true").lower() == "true"


def _is_narrow(step: Step, options: Options) -> bool:
    """Whether a line of CSV may be too long."""
    cells, letters = int(options.get("maxcolumns", "0")), int(options.get("maxcharspercolumn", "-1"))
    return _format(step) == "csv" and (cells < _MANY or letters != -1)


def _has_slow_cells(step: Step, _options: Options) -> bool:
    return _format(step) in _TEXTS and any(is_slow(one.dataType().simpleString()) for one in listed(step.node.output()))


def _forgets(step: Step, options: Options) -> bool:
    """Whether a stream passes over old files."""
    if step.kind != "StreamingRelation" or "path" not in options:
        return False
    found = re.fullmatch(r"\s*(\d+)\s*(d|day|days)\s*", options.get("maxfileage", "7d").lower())
    return found is None or int(found[1]) < _CENTURY


_RULES: tuple[tuple[Rule, str], ...] = (
    *((_is_on(name.lower()), _LEFT_OUT) for name in _LEAVE_OUT),
    (lambda _step, options: options.get("datetimerebasemode", "").upper() == "EXCEPTION", _OLD_DATES),
    (
        lambda _step, options: fails_fast(options),
        "a reader is in mode FAILFAST: one bad record would stop the stream for all others. Take PERMISSIVE",
    ),
    *(
        (
            rule,
            "a record may run over several lines (multiLine, XML): one that does not end takes in those after it. "
            "Write one record a line, or Parquet",
        )
        for rule in (_is_on("multiline"), lambda step, _options: _format(step) == "xml")
    ),
    (
        _has_slow_cells,
        "a decimal number is worked at for minutes where a record says 1e10000000: read a text, and cast it",
    ),
    (_is_on("filenameonly"), "take fileNameOnly away: files of one name in two folders would be counted once"),
    (
        _is_narrow,
        'Spark stops at a line of CSV with more cells than it expects: option("maxColumns", 1000000), and no '
        "maxCharsPerColumn",
    ),
    (
        _by_place,
        "CSV with a header is read by the places of its columns, and in a file where they stand otherwise each cell is "
        'taken for another: option("enforceSchema", False) holds every header against the names',
    ),
    (
        _forgets,
        "files that are older than a week beside the newest one would not be read, without a word: "
        'option("maxFileAge", "100000d")',
    ),
    *((_is_on(name.lower()), f"take {name} away, and give the reader a schema: {_WHY}") for name in _MAY_LOOK),
)


def _of_another_header(step: Step, options: Options) -> str | None:
    """The first file whose header is not that of the others; of this machine, and not compressed."""
    paths = [path for name in files_of(step) or [] if (path := path_of(name)) and not path.endswith(_PACKED)]
    separator = options.get("sep", options.get("delimiter", ","))
    first = None
    for path in sorted(paths):
        names = _header(path, separator)
        if names and names != (first := first or names):
            return path
    return None


def _header(path: str, separator: str) -> list[str]:
    """The names in the first line of a file that is not blank, without regard to case, as Spark compares them."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
            line = next((line for line in iter(lambda: file.readline(_LONGEST_HEADER), "") if line.strip()), "")
    except OSError as error:
        raise StateError(f"cannot look at {path}: {error.strerror}") from None
    given = separator if len(separator) == 1 else ","
    return [name.strip().casefold() for name in next(csv.reader([line.rstrip("\r\n")], delimiter=given), [])]


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
