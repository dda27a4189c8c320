"""What every [[query]] may say, and the groups of options that several kinds share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import model_validator

from evertally.encode.labels import canonical
from evertally.kinds.fields import (
    Flag,
    Label,
    Labels,
    Line,
    Lines,
    Name,
    OptionError,
    Probability,
    Section,
    Share,
    Split,
    Text,
    Ticks,
    Whole,
    Workload,
)


class GoesWith(NamedTuple):
    """An option has a meaning with one mechanism, or with all but one."""

    mechanism: str
    itself: bool = True


class Query(Section):
    """The options of every kind; the model of a kind inherits from it.

    `goes_with`: options that only some mechanisms know.
    """

    goes_with: ClassVar[Mapping[str, GoesWith]] = {}

    name: Name
    kind: Text
    share: Share | None = None
    column: Text | None = None
    mechanism: Text | None = None
    # Words for readers, and the windows that they want: in no digest, for every kind.
    title: Line | None = None
    noun: Line | None = None
    unit: Line | None = None
    description: Lines | None = None
    window: Ticks | None = None
    per: Ticks | None = None

    @model_validator(mode="after")
    def _options_of_the_mechanism(self) -> Self:
        for option in self.given():
            rule = self.goes_with.get(option)
            if rule is not None and (self.mechanism == rule.mechanism) != rule.itself:
                which = "mechanism =" if rule.itself else "another mechanism than"
                raise OptionError(option, f'{option} of {a(self.kind)} goes with {which} "{rule.mechanism}"')
        return self


class Tuned(Query):
    """Guesses and splits for mechanisms whose error follows the answer: accuracy only, never privacy."""

    largest: Whole | None = None
    beta: Probability | None = None
    split: Split | None = None


class TunedIfSparse(Tuned):
    goes_with = dict.fromkeys(("largest", "beta", "split"), GoesWith("sparse"))


class Weighed(Query):
    """Sums that weigh ticks by public numbers, in place of running totals."""

    goes_with: ClassVar[Mapping[str, GoesWith]] = {"workload": GoesWith("sparse", itself=False)}

    workload: Workload | None = None


class Apart(Query):
    """A rule for users of its own: few ticks, or ticks that are apart. Only of use where users are protected."""

    goes_with: ClassVar[Mapping[str, GoesWith]] = dict.fromkeys(
        ("max_ticks_per_user", "min_separation", "calendar", "first_block", "max_events_per_user_tick"),
        GoesWith("sparse", itself=False),
    )

    max_ticks_per_user: Whole | None = None
    min_separation: Ticks | None = None
    calendar: Flag = False
    first_block: Ticks | None = None
    max_events_per_user_tick: Whole | None = None


APART_IN_TICKS = ("min_separation", "first_block")


class Labelled(Query):
    """One column of the input becomes counts of declared labels."""

    column: Text
    categories: Labels
    other: Label | None = None
    max_per_event: Whole | None = None
    max_weight: Whole | None = None


def check_words(action: str | None, insert: Any, delete: Any) -> None:
    """The words of a column that says what is done: two different ones, or none."""
    words = [option for option, word in (("insert", insert), ("delete", delete)) if word is not None]
    if words and action is None:
        raise OptionError(words[0], f"{words[0]} is a word of the column that 'action' names, and there is none")
    if len(words) == 1:
        raise OptionError(words[0], "insert and delete go together: the word for each of them")
    if words and canonical(insert) == canonical(delete):
        raise OptionError("delete", "delete must be another word than insert")


def a(kind: str) -> str:
    """A kind with its article.

    >>> a("edge_count"), a("unknown_top_k"), a("histogram")
    ('an edge_count', 'an unknown_top_k', 'a histogram')
    """
    return f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}"
