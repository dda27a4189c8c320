"""What expressions of a data frame do to a single record: none may stop the stream for all others.

Since Spark 4 an expression raises where it gave null before (`spark.sql.ansi.enabled`): one cell that is no number, one
division by zero, and no batch with that record is ever released. Whoever sees that nothing comes any more knows of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

# Expressions that raise for some values, whatever the mode. Others say so themselves.
_ALWAYS = {
    "AesDecrypt", "ArrayInsert", "AssertNotNull", "BitwiseGet", "FromUTCTimestamp", "MapConcat", "MapFromArrays",
    "MapFromEntries", "MicrosToTimestamp", "MillisToTimestamp", "RaiseError", "SecondsToTimestamp", "Sequence",
    "SplitPart", "StringToMap", "TimestampAdd", "ToBinary", "ToNumber", "ToUTCTimestamp", "ValidateUTF8",
}  # fmt: skip
_MOMENTS = {"date", "timestamp", "timestamp_ntz"}  # each of them can be cast to each other


def raising(expressions: Iterable[Any]) -> list[str]:
    """Those of Catalyst's expressions that raise for some record, by the names of their classes."""
    return sorted({_class(one) for one in _within(expressions) if _raises(one)})


def _within(expressions: Iterable[Any]) -> Iterator[Any]:
    """They and all they are made of. What is constant is worked out before a record is read."""
    todo = list(expressions)
    while todo:
        one = todo.pop()
        if not one.foldable():
            yield one
            children = one.children()
            todo += [children.apply(place) for place in range(children.size())]


def _raises(one: Any) -> bool:
    kind = _class(one)
    if kind in _ALWAYS or one.throwable():
        return True
    if kind in ("JsonToStructs", "CsvToStructs", "XmlToStructs") and fails_fast(options_of(one.options())):
        return True
    mode = _said(one, "evalMode")
    if kind == "Cast":
        return mode == "ANSI" and not _harmless(one)
    if mode is not None:
        return mode == "ANSI"
    return "TRUE" in (_said(one, "failOnError"), _said(one, "ansiEnabled"))


def _harmless(cast: Any) -> bool:
    """Whether every value has a place in the other type."""
    old, new = cast.child().dataType(), cast.dataType()
    return bool(cast.canUpCast(old, new)) or {old.typeName(), new.typeName()} <= _MOMENTS


def options_of(options: Any) -> dict[str, str]:
    """Options of a reader, from a map of Scala; it takes their names in any case."""
    keys = options.keys().toSeq()
    return {keys.apply(place).lower(): str(options.apply(keys.apply(place))) for place in range(keys.size())}


def fails_fast(options: Mapping[str, str]) -> bool:
    """Whether a reader stops at a record that it cannot read.

    >>> fails_fast({"mode": "FailFast"}), fails_fast({})
    (True, False)
    """
    return options.get("mode", "").upper() == "FAILFAST"


def _class(one: Any) -> str:
    return str(one.getClass().getSimpleName())


def _said(one: Any, method: str) -> str | None:
    """What an expression says of itself; None of one that has no such mode."""
    with suppress(Exception):
        return str(getattr(one, method)()).upper()
    return None
