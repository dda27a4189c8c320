"""Queries written in a spec: the JSON form of an expression as TOML tables, with labels in the place of column numbers.

    {ranks = [-1, -1], of = "all"}                                             the largest column
    {constant = "0", plus = [["1/2", {column = "north"}], ["1/2", {column = "south"}]]}    the mean of two columns

A column is named by its label (text), or by its place in `categories`, from 0 on (a whole number).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evertally.encode.labels import canonical
from evertally.errors import ConfigurationError
from evertally.histogram.expressions import Expression, from_json


def check_form(form: Any) -> None:
    """Refuses what is no query, whatever the categories are."""
    try:
        _expression(form, lambda label: 0)
    except ConfigurationError as error:
        raise ConfigurationError(f"must be a query: {error}") from None


def expression(form: Any, categories: Sequence[str | int]) -> Expression:
    """The query that a spec writes down.

    >>> expression({"column": "south"}, ["north", "south"])
    h[1]
    """
    labels = [canonical(category) for category in categories]

    def place(label: str) -> int:
        if canonical(label) not in labels:
            raise ConfigurationError(f"there is no category {label!r} for the query to look at")
        return labels.index(canonical(label))

    return _expression(form, place)


def _expression(form: Any, place: Callable[[str], int]) -> Expression:
    try:
        return from_json(_placed(form, place))
    except ConfigurationError:
        raise
    except (TypeError, ValueError):  # a list of the wrong length, a table in the place of a number
        raise ConfigurationError("this is not the JSON form of a query") from None


def _placed(form: Any, place: Callable[[str], int]) -> Any:
    if isinstance(form, list):
        return [_placed(part, place) for part in form]
    if not isinstance(form, dict):
        return form
    return {
        name: place(part) if name == "column" and isinstance(part, str) else _placed(part, place)
        for name, part in form.items()
    }
