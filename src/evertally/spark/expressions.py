"""What expressions of a data frame do: three things that none of them may.

They must give the same when they are computed again, must give for a row what follows from this row, and must stop the
stream for no record. Since Spark 4 an expression raises where it gave null before (`spark.sql.ansi.enabled`): one cell
that is no number, one division by zero, and no batch with that record is ever released. Whoever sees that nothing comes
any more knows of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

# Expressions that raise for some values, whatever the mode. Others say so themselves.
_ALWAYS = {
    "AesDecrypt", "ArrayInsert", "AssertNotNull", "BitwiseGet", "MakeDTInterval", "MakeYMInterval", "MapConcat",
    "MapFromArrays", "MapFromEntries", "MicrosToTimestamp", "MillisToTimestamp", "RaiseError", "SecondsToTimestamp",
    "Sequence", "StringToMap", "TimestampAdd", "ToBinary", "ToNumber", "TransformKeys", "UnBase64", "ValidateUTF8",
}  # fmt: skip
# Those that raise for some formats, patterns, places, names of time zones, ...: arguments that must be constant.
_MUST_BE_CONSTANT = {
    **dict.fromkeys(
        (
            "AddMonths", "DateFormatClass", "Decode", "ElementAt", "Encode", "FormatNumber", "FromUnixTime",
            "FromUTCTimestamp", "Hmac", "ILike", "Like", "ParseToDate", "ParseToTimestamp", "RLike", "RegExpCount",
            "RegExpExtract", "RegExpExtractAll", "RegExpInStr", "RegExpReplace", "RegExpSubStr", "SplitPart",
            "StringDecode", "StringSplit", "ToUnixTimestamp", "ToUTCTimestamp", "UnixTimestamp",
        ),
        slice(1, None),
    ),
    "ConvertTimezone": slice(2),
    "CreateMap": slice(0, None, 2),
    "FormatString": slice(1),
}  # fmt: skip
_OWN_FORMATS = ("Hll", "Kll", "ST_", "Theta", "Tuple", "XPath")  # of bytes or texts, which a record need not have
_MOMENTS = {"date", "timestamp", "timestamp_ntz"}  # each of them can be cast to each other
# Clocks say that they are deterministic, as within one query they are; encryption draws a nonce.
_FICKLE = {
    "AesEncrypt", "CurrentBatchTimestamp", "CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now",
}  # fmt: skip
_ONE_ROW_AT_A_TIME = {100, 101}  # types of Python functions; all others are given many rows
_PLAIN = {"AttributeReference", "Literal"}


def fickle(expressions: Iterable[Any]) -> list[str]:
    """Those of Catalyst's expressions that give another value when they are computed again."""
    given = list(expressions)
    found = {_name(one) for one in _all(given) if _class(one) in _FICKLE}
    for one in given:
        if not one.deterministic():  # it has a part that is not; which one, they say of themselves
            parts = [part for part in _all([one]) if not part.deterministic() and _deterministic_below(part)]
            found |= {_name(part) for part in parts}
    return sorted(found)


def _deterministic_below(one: Any) -> bool:
    return all(child.deterministic() for child in listed(one.children()))


def unseen(expressions: Iterable[Any]) -> list[str]:
    """Those whose value may follow from other rows: functions that are given many, variables of a session."""
    found = set()
    for one in _all(expressions):
        kind = _class(one)
        if kind == "VariableReference":
            found.add("a variable of the session")
        if kind.startswith("Python") and one.evalType() not in _ONE_ROW_AT_A_TIME:
            found.add("a Python function of many rows")
    return sorted(found)


def raising(expressions: Iterable[Any]) -> list[str]:
    """Those that raise for some record. What is constant is worked out before one is read."""
    return sorted({_name(one) for one in _all(expressions) if _raises(one) and not one.foldable()})


def _all(expressions: Iterable[Any]) -> Iterator[Any]:
    """They and all they are made of; columns and constants aside."""
    todo = list(expressions)
    while todo:
        one = todo.pop()
        if _class(one) not in _PLAIN:
            yield one
            todo += listed(one.children())


def _raises(one: Any) -> bool:
    kind = _class(one)
    if kind in _ALWAYS or kind.startswith(_OWN_FORMATS) or "Sketch" in kind or one.throwable():
        return True
    if kind == "UnaryMinus" and one.dataType().typeName() == "decimal":  # of 38 digits
        return True
    if kind in _MUST_BE_CONSTANT:
        of_maps = kind == "ElementAt" and listed(one.children())[0].dataType().typeName() == "map"
        if not of_maps and not all(child.foldable() for child in listed(one.children())[_MUST_BE_CONSTANT[kind]]):
            return True
    if kind in ("JsonToStructs", "CsvToStructs", "XmlToStructs") and fails_fast(options_of(one.options())):
        return True
    mode = _said(one, "evalMode")
    if kind == "Cast":
        return "interval" in one.dataType().typeName() or (mode == "ANSI" and not _harmless(one))
    if mode is not None:
        return mode == "ANSI"
    return "TRUE" in (_said(one, "failOnError"), _said(one, "ansiEnabled"))


def _harmless(cast: Any) -> bool:
    """Whether every value has a place in the other type."""
    old, new = cast.child().dataType(), cast.dataType()
    return bool(cast.canUpCast(old, new)) or {old.typeName(), new.typeName()} <= _MOMENTS


def options_of(options: Any) -> dict[str, str]:
    """Options of a reader, from a map of Scala; it takes their names in any case."""
    return {name.lower(): str(options.apply(name)) for name in listed(options.keys().toSeq())}


def fails_fast(options: Mapping[str, str]) -> bool:
    """Whether a reader stops at a record that it cannot read.

    >>> fails_fast({"mode": "FailFast"}), fails_fast({})
    (True, False)
    """
    return options.get("mode", "").upper() == "FAILFAST"


def listed(sequence: Any) -> list[Any]:
    """What is in a sequence of Scala."""
    return [sequence.apply(place) for place in range(sequence.size())]


def _class(one: Any) -> str:
    return str(one.getClass().getSimpleName())


def _name(one: Any) -> str:
    return str(one.prettyName())


def _said(one: Any, method: str) -> str | None:
    """What an expression says of itself; None of one that has no such mode."""
    with suppress(Exception):
        return str(getattr(one, method)()).upper()
    return None
