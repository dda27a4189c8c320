"""What a spec may say: for every option a check that returns its value or says what is wanted."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from evertally.errors import ConfigurationError
from evertally.runtime.spec_expressions import check_form

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

Check = Callable[[object], Any]


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError("must be a text that is not empty")
    return value


def _name(value: object) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ConfigurationError("must be a name of letters, digits, '_', '-' and '.', at most 64 long")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError("must be an integer of at least 1")
    return value


def _natural(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigurationError("must be an integer of at least 0")
    return value


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigurationError("must be a number")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigurationError("must be true or false")
    return value


def _labels(value: object) -> list[str | int]:
    if not isinstance(value, list) or not value or not all(isinstance(v, str | int) for v in value):
        raise ConfigurationError('must be a list of labels such as ["JFK", "LGA"]')
    return value


def _label(value: object) -> str | int:
    if not isinstance(value, str | int):
        raise ConfigurationError("must be a label: a text or an integer")
    return value


def _share(value: object) -> Fraction:
    share = Fraction(str(_number(value))) if not isinstance(value, str) else _fraction(value)
    if not 0 < share <= 1:
        raise ConfigurationError('must be above 0 and at most 1, for example 0.3 or "1/3"')
    return share


def _fraction(text: str) -> Fraction:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise ConfigurationError('must be a number or a fraction such as "1/3"') from None


def _quantile(value: object) -> str:
    return str(_share(value))


def _split(value: object) -> list[str]:
    if not isinstance(value, list) or len(value) != 3 or sum(shares := [_share(part) for part in value]) != 1:
        raise ConfigurationError('must be three shares that add up to 1, for example ["1/4", "1/4", "1/2"]')
    return [str(share) for share in shares]


def _expression(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigurationError('must be a table such as {ranks = [-1, -1], of = "all"}')
    check_form(value)
    return value


def _expressions(value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        raise ConfigurationError('must be a table of names, such as {top = {ranks = [-1, -1], of = "all"}}')
    return {_name(name): _expression(one) for name, one in value.items()}


def _probability(value: object) -> float:
    number = float(_number(value))
    if not 0 < number < 1:
        raise ConfigurationError("must lie between 0 and 1")
    return number


def _choice(*allowed: str) -> Check:
    def check(value: object) -> str:
        if value not in allowed:
            raise ConfigurationError(f"must be one of {', '.join(map(repr, allowed))}")
        return str(value)

    return check


def _anything(value: object) -> object:
    return value


SECTIONS: dict[str, dict[str, Check]] = {
    "stream": {
        "name": _name,
        "horizon": _whole,
        "neighbours": _choice("add_remove", "replace", "independent"),
        "unit": _choice("event", "user"),
        "max_events_per_user": _whole,
        "user_column": _text,
        "max_events_per_tick": _whole,
    },
    "guarantee": {
        "epsilon": _number,
        "delta": _number,
        "rho": _number,
        "adversary": _choice("adaptive", "oblivious"),
    },
    "clock": {"column": _text, "start": _anything, "tick": _anything, "end": _anything},
    "key": {"file": _text},
    "state": {"file": _text},
    "output": {"file": _text, "beta": _probability},
}
_COLUMNS: dict[str, Check] = {
    "categories": _labels,
    "other": _label,
    "max_per_event": _whole,
    "max_weight": _whole,
}
# Guesses and splits for mechanisms whose error follows the answer: accuracy only, never privacy.
TUNING: dict[str, Check] = {
    "largest": _whole,
    "beta": _probability,
    "split": _split,
}
_TREE_OF_ITEMS: dict[str, Check] = {"threshold": _choice("sum", "per_tick", "paper"), "sticky": _flag}
_ITEMS: dict[str, Check] = {"max_per_event": _whole, "max_weight": _whole, **_TREE_OF_ITEMS, "kbar": _whole}
_SWITCHES: dict[str, Check] = {
    "switches": _natural,
    "eta": _natural,
    "accounting": _choice("adaptive", "paper", "standard", "monotone"),
    "reuse": _flag,
}
KINDS: dict[str, dict[str, Check]] = {
    "counter": {"max_weight": _whole, **TUNING},
    "histogram": {**_COLUMNS, "signed": _flag, **TUNING},
    "mean": {"lower": _number, "upper": _number, "resolution": _number},
    "max": {**_COLUMNS, **TUNING},
    "min": {**_COLUMNS, **TUNING},
    "quantile": {"q": _quantile, **_COLUMNS, **TUNING},
    "top": {"k": _whole, **_COLUMNS, **TUNING},
    "leader": {**_COLUMNS, **TUNING},
    "leaders": {"k": _whole, **_COLUMNS, **TUNING},
    "query": {"expression": _expression, "expressions": _expressions, **_COLUMNS, **TUNING},
    "streaming-top": {"k": _whole, **_SWITCHES, **_COLUMNS},
    "unknown-histogram": _ITEMS,
    "unknown-top": {"k": _whole, **_ITEMS},
}
LINEAR = ("counter", "histogram", "mean")
UNKNOWN = ("unknown-histogram", "unknown-top")  # of labels that nobody declared
SELECTION = (*UNKNOWN, "streaming-top")  # labels and counts; the kinds that are left are queries on column sums
# Options that go with one mechanism of their kind: with "meta" (True), or with any other (False).
WITH_META: dict[str, bool] = {**dict.fromkeys((*_TREE_OF_ITEMS, *_SWITCHES), False), "kbar": True}
QUERY: dict[str, Check] = {
    "name": _name,
    "kind": _choice(*KINDS),
    "share": _share,
    "column": _text,
    "mechanism": _text,
}
REQUIRED = {
    "stream": ("name",),
    "guarantee": (),
    "clock": ("column", "start", "tick"),
    "key": ("file",),
    "state": ("file",),
    "output": ("file",),
}
REQUIRED_BY_KIND = {
    "counter": (),
    "histogram": ("column", "categories"),
    "mean": ("column", "lower", "upper"),
    "max": ("column", "categories"),
    "min": ("column", "categories"),
    "quantile": ("q", "column", "categories"),
    "top": ("k", "column", "categories"),
    "leader": ("column", "categories"),
    "leaders": ("k", "column", "categories"),
    "query": ("column", "categories"),
    "streaming-top": ("k", "column", "categories"),
    "unknown-histogram": ("column",),
    "unknown-top": ("k", "column"),
}


def rests_on_rate(kind: str, mechanism: str | None) -> bool:
    """Whether an error bound, or the choice of a mechanism, rests on the public guess `max_events_per_tick`."""
    if kind in LINEAR:
        return mechanism == "sparse"
    return kind not in SELECTION or mechanism == "meta"
