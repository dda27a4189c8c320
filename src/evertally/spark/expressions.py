"""What expressions of a data frame do: three things that none of them may.

They must give the same when they are computed again, must give for a row what follows from this row, and must stop the
stream for no record. Since Spark 4 an expression raises where it gave null before (`spark.sql.ansi.enabled`): one cell
that is no number, one division by zero, and no batch with that record is ever released. Whoever sees that nothing comes
any more knows of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

# Expressions that raise for some values, whatever the mode; found by calling nearly all of Spark's own with extreme
# ones. Others say so themselves.
_ALWAYS = {
    "AddMonths", "AesDecrypt", "ArrayInsert", "ArraySort", "AssertNotNull", "BitwiseGet", "ConvertTimezone",
    "CsvToStructs", "DateAddInterval", "DateAddYMInterval", "Encode", "FromUTCTimestamp", "MakeDTInterval",
    "MakeYMInterval", "MapConcat", "MapFromArrays", "MapFromEntries", "MicrosToTimestamp", "MillisToTimestamp",
    "RaiseError", "SecondsToTimestamp", "Sequence", "Slice", "StringDecode", "StringToMap", "StructsToCsv",
    "StructsToXml", "SubtractDates", "SubtractTimestamps", "TimeAdd", "TimestampAdd", "TimestampAddInterval",
    "TimestampAddYMInterval", "ToBinary", "ToNumber", "ToUTCTimestamp", "TransformKeys", "TruncTimestamp", "UnBase64",
    "ValidateUTF8",
}  # fmt: skip
_OWN_FORMATS = ("Hll", "Kll", "ST_", "Theta", "Tuple", "Vector", "XPath")  # which a record need not have
# Those that raise for some formats, patterns, places, ...: arguments that must be constant.
_MUST_BE_CONSTANT = {
    **dict.fromkeys(
        (
            "DateFormatClass", "ElementAt", "FormatNumber", "FromUnixTime", "Hmac", "ILike", "Like", "RLike",
            "RegExpCount", "RegExpExtract", "RegExpExtractAll", "RegExpInStr", "RegExpReplace", "RegExpSubStr",
            "SplitPart", "StringSplit",
        ),
        slice(1, None),
    ),
    **dict.fromkeys(("ArrayRepeat", "BinaryPad", "StringLPad", "StringRPad", "StringRepeat"), slice(1, 2)),  # how often
    "StringSpace": slice(1),
    "CreateMap": slice(0, None, 2),
    "FormatString": slice(1),
}  # fmt: skip
# By a format they read years that no time stamp has, and raise; without one such a text is null.
_BY_FORMAT = {"GetTimestamp", "ParseToDate", "ParseToTimestamp", "ToUnixTimestamp", "UnixTimestamp"}
_GROUPS = {"RegExpExtract", "RegExpExtractAll"}
_LATER = {"timestamp", "timestamp_ntz"}
_NAMES_OF_NOW = re.compile(r"[\x00-\x20]*(now|today|tomorrow|yesterday)\b", re.I)
# What adds up to the same however rows come.
_OF_ANY_ORDER = {
    "BitAndAgg", "BitOrAgg", "BitXorAgg", "BoolAnd", "BoolOr", "Count", "Max", "Min", "Sum",
}  # fmt: skip
# Clocks say that they are deterministic, as within one query they are; encryption draws a nonce.
_FICKLE = {
    "AesEncrypt", "CurrentBatchTimestamp", "CurrentDate", "CurrentTime", "CurrentTimestamp", "LocalTimestamp", "Now",
}  # fmt: skip
_ONE_ROW_AT_A_TIME = {100, 101}  # types of Python functions; all others are given many rows
_PLAIN = {"AttributeReference", "Literal"}


def fickle(expressions: Iterable[Any]) -> list[str]:
    """Those of Catalyst's expressions that give another value when they are computed again."""
    given = list(expressions)
    found = {_name(one) for one in _all(given) if _class(one) in _FICKLE or _is_now(one) or _goes_by_order(one)}
    for one in given:
        if not one.deterministic():  # it has a part that is not; which one, they say of themselves
            parts = [part for part in _all([one]) if not part.deterministic() and _deterministic_below(part)]
            found |= {_name(part) for part in parts}
    return sorted(found)


def _is_now(one: Any) -> bool:
    """Whether a text that names a moment is taken for one, each time that the plan is made ready."""
    if _class(one) not in _BY_FORMAT | {"Cast"} or _type(one) not in _LATER | {"date"}:
        return False
    text = listed(one.children())[0]
    return text.foldable() and _type(text) == "string" and bool(_NAMES_OF_NOW.match(_text(text)))


def _goes_by_order(one: Any) -> bool:
    """Whether an aggregate may follow from the order of rows, which is another after a retry."""
    if _class(one) != "AggregateExpression":
        return False
    function = one.aggregateFunction()
    kinds = [_type(child) for child in listed(function.children())]
    return _class(function) not in _OF_ANY_ORDER or (
        _class(function) == "Sum" and not {"double", "float"}.isdisjoint(kinds)
    )


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
    parts = listed(one.children())
    if kind in _MUST_BE_CONSTANT:
        of_maps = kind == "ElementAt" and _type(parts[0]).startswith("map")
        if not of_maps and not all(part.foldable() for part in parts[_MUST_BE_CONSTANT[kind]]):
            return True
    if kind == "FormatString" and re.search(r"%[^a-zA-Z%]*[cC]", _text(parts[0])):  # a letter by its number
        return True
    if kind == "RegExpReplace" and not _has_groups(*parts[1:3]):
        return True
    if kind in _GROUPS and not _has_group(*parts[1:]):
        return True
    if kind in _BY_FORMAT and len(parts) > 1 and _type(parts[0]).startswith("string"):
        return True
    if kind in ("JsonToStructs", "XmlToStructs") and (fails_fast(options_of(one.options())) or is_slow(_type(one))):
        return True
    if kind == "ScalarSubquery":  # for each row, one of a table, which may have several
        return bool(parts) and _top_of(one.plan()) != "Aggregate"
    if kind in ("Abs", "UnaryMinus") and _type(one).startswith("decimal(38"):
        return True
    mode = _said(one, "evalMode")
    if kind == "Cast":
        return _cast_raises(_type(parts[0]), _type(one), one, mode)
    if mode is not None:
        return mode == "ANSI"
    return "TRUE" in (_said(one, "failOnError"), _said(one, "ansiEnabled"))


def _cast_raises(old: str, new: str, cast: Any, mode: str | None) -> bool:
    if "interval" in old + new or old == "variant" or (old == "date" and new in _LATER):
        return True
    if "<" in old and old != new and any(kind in old for kind in ("date", "timestamp", "variant")):  # within lists, ...
        return True
    if {old, new} == _LATER:  # by the zone of the session, beyond the end
        return str(cast.timeZoneId().get()) != "UTC"
    lossless = bool(cast.canUpCast(cast.child().dataType(), cast.dataType())) or (old in _LATER and new == "date")
    return mode == "ANSI" and not lossless


def _has_group(pattern: Any, group: Any) -> bool:
    """Whether a pattern has the group that is asked for; as far as Python reads it as Java does."""
    with suppress(Exception):
        return bool(re.compile(_text(pattern)).groups >= int(group.eval(None)))
    return False


def _has_groups(pattern: Any, replacement: Any) -> bool:
    """Whether a pattern has all groups that a replacement names."""
    with suppress(Exception):
        text = _text(replacement)
        named = re.sub(r"\$\d", "", text)
        groups = re.compile(_text(pattern)).groups
        return not set(named) & set("$\\") and all(int(number) <= groups for number in re.findall(r"\$(\d)", text))
    return False


def _top_of(plan: Any) -> str:
    """The class of what a subquery comes down to."""
    while _class(plan) in ("Project", "SubqueryAlias"):
        plan = plan.child()
    return _class(plan)


def is_collated(one: Any) -> bool:
    """Whether texts may be equal that differ."""
    return "collate" in _type(one)


def is_slow(kind: str) -> bool:
    """Whether a text of ten bytes, 1e10000000, is worked at for minutes where such a type is read from it."""
    return "decimal" in kind


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


def _text(constant: Any) -> str:
    return str(constant.eval(None) or "")


def _type(one: Any) -> str:
    return str(one.dataType().simpleString())


def _name(one: Any) -> str:
    return str((one.aggregateFunction() if _class(one) == "AggregateExpression" else one).prettyName())


def _said(one: Any, method: str) -> str | None:
    """What an expression says of itself; None of one that has no such mode."""
    with suppress(Exception):
        return str(getattr(one, method)()).upper()
    return None
