"""What a [[query]] about sequences of letters may say."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from evertally.kinds.fields import Flag, Label, OptionError, Text, Whole, says
from evertally.kinds.query_table import Query

Alphabet = Annotated[
    list[str | int | bool] | str,
    Field(min_length=1),
    says('must be a list of labels such as ["search", "buy"], or a text such as "abc"'),
]
Word = str | list[str | int]
Words = Annotated[
    list[Word],
    Field(min_length=1),
    says('must be a list of words, each a text or a list of letters, such as [["search", "buy"]]'),
]


class StringQuery(Query):
    """A column of letters, and whose they are."""

    column: Text
    alphabet: Alphabet
    sequence: Literal["stream", "user"]
    by: Text | None = None
    longest: Whole | None = None
    other: Label | None = None
    words: Words | None = None
    once_per_user: Flag | None = None

    @model_validator(mode="after")
    def _whose(self) -> Self:
        if self.by is not None and self.sequence != "user":
            raise OptionError("by", 'by names the column of the user, and goes with sequence = "user"')
        if self.longest is None and self.words is None:
            raise OptionError(None, "needs 'longest', the number of letters that a word has at most, or its 'words'")
        return self


class EpisodeCountsQuery(StringQuery):
    show: Words | None = None


class SubstringCountsQuery(StringQuery):
    show: Words | None = None
    only_longest: Flag | None = None
    gap: Whole | None = None
    max_words: Whole | None = None


class FrequentSubstringsQuery(StringQuery):
    above: Whole
    most: Whole | None = None
    gap: Whole | None = None
    max_words: Whole | None = None


def with_stream(parameters: Any) -> dict[str, Any]:
    """The options of the class."""
    return {option: value for option, value in parameters.items() if option != "by"}
