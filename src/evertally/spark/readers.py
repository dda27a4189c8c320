"""How Spark reads the files of a data frame, where that follows from what is in them.

A reader that looks at the records to find out of which types their columns are lets one record decide about all: where
one says `n/a` and the others `007`, all of them are texts, and without it they are numbers: another label, 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evertally.errors import ConfigurationError
from evertally.runtime.spec import StreamSpec
from evertally.spark.expressions import fails_fast, options_of
from evertally.spark.failures import withheld
from evertally.spark.plans import Step, column_of, files_of, origins, steps_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOOK = ("json", "xml")  # at the records, unless they are given a schema
_MAY_LOOK = ("inferschema", "infertimestamp")
_WHY = "types that follow from all records let one of them change what the others mean"


def check_readers(events: DataFrame, spec: StreamSpec) -> None:
    """Refuses readers that stop at a bad record, and those that may have found their types in the records."""
    with withheld("the plan"):
        steps = steps_of(events)
        sources = [step for step in steps if step.is_source]
        options = [reader_options(step) for step in sources]
        unknown = [_format(step) for step in sources if _may_have_looked(step)]
        in_folders = _from_folders(events, steps, spec.columns())
    if any(fails_fast(given) for given in options):
        raise ConfigurationError(
            "a reader is in mode FAILFAST: one bad record would stop the stream for all others. Take PERMISSIVE"
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
    return _format(step) in _LOOK


def _format(step: Step) -> str:
    if step.kind == "StreamingRelation":
        return str(step.node.dataSource().className()).lower()
    if step.kind == "LogicalRelation" and _is_of_files(step.node.relation()):
        return str(step.node.relation().fileFormat().getClass().getSimpleName()).removesuffix("FileFormat").lower()
    return str(step.node.table().name()).partition(" ")[0].lower() if step.kind == "DataSourceV2Relation" else ""


def _from_folders(events: DataFrame, steps: Sequence[Step], names: Sequence[str]) -> list[str]:
    """The columns that follow from names of folders (`country=07`) which were taken for something else than texts."""
    found = []
    for name in names:
        for source, columns in origins(steps[0], {column_of(events, steps, name)}):
            if columns & _folder_columns(source):
                found.append(name)
    return found


def _folder_columns(source: Step) -> set[int]:
    node = source.node
    if source.kind == "LogicalRelation" and _is_of_files(node.relation()):
        folders = node.relation().partitionSchema()
    elif source.kind == "DataSourceV2Relation" and files_of(source) is not None:
        folders = node.table().fileIndex().partitionSchema()
    else:
        return set()
    typed = {field.name() for field in folders.fields() if field.dataType().typeName() != "string"}
    return {identity for name, identity in source.columns() if name in typed}


def _is_of_files(relation: Any) -> bool:
    return str(relation.getClass().getSimpleName()) == "HadoopFsRelation"


def _lowered(options: Any) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in dict(options.asCaseSensitiveMap()).items()}
