"""What a spec may say: for every option a check that returns its value or says what is wanted."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from evertally.errors import ConfigurationError

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
    },
    "guarantee": {"epsilon": _number, "delta": _number, "rho": _number},
    "clock": {"column": _text, "start": _anything, "tick": _anything, "end": _anything},
    "key": {"file": _text},
    "state": {"file": _text},
    "output": {"file": _text, "beta": _probability},
}
QUERY: dict[str, Check] = {
    "name": _name,
    "kind": _choice("counter", "histogram", "mean"),
    "share": _share,
    "column": _text,
    "mechanism": _text,
}
KINDS: dict[str, dict[str, Check]] = {
    "counter": {"max_weight": _whole},
    "histogram": {
        "categories": _labels,
        "other": _label,
        "max_per_event": _whole,
        "max_weight": _whole,
        "signed": _flag,
    },
    "mean": {"lower": _number, "upper": _number, "resolution": _number},
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
}
