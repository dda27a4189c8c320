"""The values that a table of a spec may hold, as pydantic types.

Nothing is converted behind the writer's back: models are strict ("3" is not 3, true is not 1), and fractions are read
digit by digit. Every type says in full words what is wanted; pydantic's own texts speak to programmers.
"""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, ValidationError, WrapValidator

from evertally.counting.workloads import read
from evertally.encode.cells import read_edges
from evertally.encode.range_door import MOST_COLUMNS
from evertally.errors import ConfigurationError
from evertally.kinds.written_expressions import check_form


class Section(BaseModel):
    """One table of a spec."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)

    def given(self) -> dict[str, Any]:
        """The options that the file has, in the order of the model."""
        return {option: getattr(self, option) for option in type(self).model_fields if option in self.model_fields_set}


class OptionError(ValueError):
    """What is wrong between options of one table, at the option that has to change."""

    def __init__(self, option: str | None, problem: str) -> None:
        super().__init__(problem)
        self.option = option


def says(text: str) -> WrapValidator:
    """Replaces pydantic's text by ours, unless a part of the value has said more already."""

    def check(value: Any, validate: Any) -> Any:
        try:
            return validate(value)
        except ValidationError as error:
            first = error.errors()[0]
            said = first["ctx"]["error"] if first["type"] == "value_error" else text
            raise ValueError(str(said)) from None

    return WrapValidator(check)


def _share(value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a number")
    try:
        share = Fraction(str(value))  # as it is written: 0.1 is 1/10
    except (ValueError, ZeroDivisionError):
        raise ValueError('must be a number or a fraction such as "1/3"') from None
    if not 0 < share <= 1:
        raise ValueError('must be above 0 and at most 1, for example 0.3 or "1/3"')
    return share


def _visible(text: str) -> str:
    if any(unicodedata.category(sign) in ("Cc", "Zl", "Zp") or sign in _TURNING for sign in text):
        raise ValueError("must be a text without line breaks and other control characters")
    return text


def _visible_lines(text: str) -> str:
    _visible(text.replace("\r\n", " ").replace("\n", " "))
    return text


def _adds_up(shares: list[Fraction]) -> list[str]:
    if sum(shares) != 1:
        raise ValueError(_SPLIT)
    return [str(share) for share in shares]


def _form(value: dict[str, Any]) -> dict[str, Any]:
    try:
        check_form(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return value


def _workload(value: dict[str, Any]) -> dict[str, Any]:
    """The table of a workload, in its one spelling: what means the same stream reads the same."""
    try:
        workload = read(value)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    assert workload is not None
    if "average" in (table := workload.table()):
        raise ValueError("a stream releases whole numbers: release the total, and divide it by the number of ticks")
    if "resolution" in table:
        raise ValueError("a stream releases whole numbers: leave out resolution, or count in a finer unit")
    return table


def _edges(value: Any) -> Any:
    try:
        read_edges(value)
    except ConfigurationError as error:
        raise ValueError(f"is refused: {error}") from None
    return value


_COLUMNS = f'must be how many columns there are, from 1 to {MOST_COLUMNS}, or a list of names such as ["JFK", "LGA"]'
_EDGES = "must be a list of increasing numbers, or a table such as {from = 0.1, to = 1000, ratio = 1.05}"
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # of the direction of writing
_SPLIT = 'must be three shares that add up to 1, for example ["1/4", "1/4", "1/2"]'

Text = Annotated[str, Field(min_length=1), says("must be a text that is not empty")]
# Shown to readers. What cannot be seen, or turns the direction of writing, could make a page say something else.
Line = Annotated[Text, AfterValidator(_visible)]
Lines = Annotated[Text, AfterValidator(_visible_lines)]
Name = Annotated[
    str, Field(pattern=_NAME), says("must be a name of letters, digits, '_', '-' and '.', at most 64 long")
]
Whole = Annotated[int, Field(ge=1), says("must be an integer of at least 1")]
# A number of ticks, or a length of time that is one; the loader, which knows the clock, makes ticks of it (`in_ticks`).
Ticks = Annotated[int | str, says('must be a number of ticks, or a length of whole ticks such as "7d"')]
Natural = Annotated[int, Field(ge=0), says("must be an integer of at least 0")]
Number = Annotated[int | float, says("must be a number")]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False), says("must be a number of seconds, 0 or more")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), says("must be a number above 0")]
Probability = Annotated[float, Field(gt=0, lt=1), says("must lie between 0 and 1")]
Flag = Annotated[bool, says("must be true or false")]
Label = Annotated[str | int | bool, says("must be a label: a text or an integer")]
Labels = Annotated[list[str | int | bool], Field(min_length=1), says('must be a list of labels such as ["JFK", "LGA"]')]
Columns = Annotated[
    Annotated[int, Field(ge=1, le=MOST_COLUMNS)] | Annotated[list[str | int | bool], Field(min_length=1)],
    says(_COLUMNS),
]
Edges = Annotated[list[int | float] | dict[str, int | float], AfterValidator(_edges), says(_EDGES)]
Outside = Literal["ends", "cells"]
Share = Annotated[Fraction, PlainValidator(_share)]
Quantile = Annotated[str, PlainValidator(lambda value: str(_share(value)))]
Split = Annotated[list[Share], Field(min_length=3, max_length=3), AfterValidator(_adds_up), says(_SPLIT)]
Workload = Annotated[
    dict[str, Any], AfterValidator(_workload), says('must be a table such as {decay = "0.99"} or {window = 24}')
]
Expression = Annotated[
    dict[str, Any], AfterValidator(_form), says('must be a table such as {ranks = [-1, -1], of = "all"}')
]
Expressions = Annotated[
    dict[Name, Expression],
    Field(min_length=1),
    says('must be a table of names, such as {top = {ranks = [-1, -1], of = "all"}}'),
]
