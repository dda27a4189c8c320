"""A stream spec from Python values: the same checks as for a file, in words for who wrote a call."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from evertally import kinds
from evertally.errors import ConfigurationError
from evertally.kinds.kind import kind_name
from evertally.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from evertally.runtime.spec import StreamSpec
from evertally.runtime.spec.file import SpecFile
from evertally.runtime.spec.loading import shared_guarantee, spec_of

CALL = "et.release"
_PLACE = re.compile(rf"^(?:\S*{re.escape(CALL)})(?::\d+)?: ")
# What a spec calls otherwise than the call does.
_WORDS = (("[stream] ", ""), ("[clock] ", ""), ("[guarantee] ", "guarantee: "), ("user_column", "user"))


class GivenSpec(SpecFile):
    """What a file would say, and no file."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        # Nothing is ever written: the names of files are those that a spec cannot do without.
        files = {"key": {"file": "no.key"}, "state": {"file": "no.state"}}
        self.path, self.content = Path(CALL), files | dict(content)
        self._lines = {}

    def refuse(self, problem: str, section: str, option: str | None = None, number: int = 1) -> NoReturn:
        """Names the query, where it is about one."""
        if section == "query":
            table = self.content["query"][number - 1]
            name = table.get("name") if isinstance(table, Mapping) else None
            problem = f"query {number if name is None else repr(name)}: {problem}"
        raise ConfigurationError(problem)


def spec_from(content: Mapping[str, Any], guarantee: Guarantee | None = None) -> StreamSpec:
    """The checked spec; a guarantee stands for its section, and is kept to the last digit."""
    if guarantee is not None:
        content = {**content, "guarantee": _section(guarantee)}
    file = GivenSpec(content)
    spec = spec_of(file)
    if guarantee is not None and spec.guarantee != guarantee:
        spec = replace(spec, guarantee=guarantee, shared=shared_guarantee(file, guarantee, spec.queries))
    return spec


def in_words_of_the_call(error: ConfigurationError, from_spec: bool) -> ConfigurationError:
    """The error without a place, where there is no file and no line to look at; a spec keeps the words of specs."""
    text = _PLACE.sub("", str(error))
    for theirs, ours in () if from_spec else _WORDS:
        text = text.replace(theirs, ours)
    return type(error)(text)


def query_tables(queries: Any) -> list[dict[str, Any]]:
    """Queries as tables with names: from a mapping by name, or a list."""
    if isinstance(queries, Mapping):
        return [{"name": name, **_table(table)} for name, table in queries.items()]
    if isinstance(queries, list | tuple):
        return [_table(table) for table in queries]
    raise ConfigurationError(
        'queries are given by name, {"orders": et.query(et.Counter)}, as a list of tables with name and kind, or as '
        "the path of a stream spec"
    )


def query_table(kind: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """One query; its kind by name, or by its class."""
    name = kind_name(kind) if isinstance(kind, type) else kind
    if kinds.find(name) is None:
        known = [record.name for record in kinds.known()]
        near = difflib.get_close_matches(name, known, n=1) if isinstance(name, str) else []
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
        raise ConfigurationError(f"there is no such kind of query, {str(name)!r}; {hint}")
    return {"kind": name, **{option: _plain(value) for option, value in options.items()}}


def _table(table: Any) -> dict[str, Any]:
    if isinstance(table, str | type):
        return query_table(table, {})
    if not isinstance(table, Mapping):
        raise ConfigurationError('a query is a table such as et.query(et.Histogram, column="city", categories=[...])')
    return {option: _plain(value) for option, value in table.items()}


def _plain(value: Any) -> Any:
    """Lists and numbers as a file would have them."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, set | frozenset):
        raise ConfigurationError("a set has no order, and releases have one: give a list")
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_plain(one) for one in value]
    return value


def _section(guarantee: Any) -> dict[str, Any]:
    if not isinstance(guarantee, PureDP | ZCDP | ApproxDP):
        raise ConfigurationError("guarantee is what is promised: et.ApproxDP(1.0, 1e-6), et.ZCDP(0.1) or et.PureDP(1)")
    amounts = {name: getattr(guarantee, name) for name in ("epsilon", "delta", "rho") if hasattr(guarantee, name)}
    # A large delta was asked about when the guarantee was made.
    forced = {"force": True} if "delta" in amounts else {}
    return amounts | {"adversary": guarantee.adversary} | forced
