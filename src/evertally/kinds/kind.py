"""What a kind of query is: one record, which everything from the spec to the page reads.

Nothing above this room asks which kind a query is; it asks the record. A kind has one name, which follows from its
class; other spellings that a spec may use are `also`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from evertally.encode.cells import Cells, read_edges
from evertally.encode.labels import canonical
from evertally.kinds.proofs import CHANGE_OF_USERS, INDEPENDENT_COLUMNS, Proof
from evertally.kinds.query_table import Query
from evertally.kinds.reads import Column, Parameters, Reads, Records, columns_read
from evertally.statistics.own_engines import proof_elsewhere

Arguments = dict[str, Any]
View = Literal["figure", "bars", "ranking", "cuts", "triangle"]
Lasting = Callable[[int], str]  # so many ticks, in the words of a clock

_FOUND = 1000  # rows for sizes, where labels are found: how many there will be is not public


def kind_name(statistic: type[Any]) -> str:
    """The name of a kind: that of its class in lower case, a new word at every capital.

    >>> from evertally import Counter, TopKSelect
    >>> kind_name(Counter), kind_name(TopKSelect)
    ('counter', 'top_k_select')
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", statistic.__name__).lower()


def single(parameters: Parameters) -> None:
    """One value, without a category."""


def declared(parameters: Parameters) -> list[str]:
    """A category for each declared label."""
    return [str(canonical(label)) for label in named(parameters)]


def bins(parameters: Parameters) -> list[str]:
    """A category for each bin between declared edges."""
    return Cells(read_edges(parameters["edges"]), parameters.get("outside") or "ends").labels()


def ranks(parameters: Parameters) -> list[str]:
    """A category for each of k ranks, the best first."""
    return [str(rank) for rank in range(1, parameters["k"] + 1)]


def named(parameters: Parameters) -> list[Any]:
    """The declared labels as they are written, and the one for all others."""
    return [*parameters["categories"], *([parameters["other"]] if "other" in parameters else [])]


@dataclass(frozen=True)
class Result:
    """The shape of a release.

    `categories`: those that every release has, in their order, or None; where there may be more than fit into memory, a
    sequence that makes each when it is asked for. `labels`: "chosen" (from declared ones) and
    "found" where a release brings its own; `most` is then the option that says how many there are at most, if any does.
    "growing": a release brings them too, but they follow from the tick and public numbers. `running`: the numbers of
    labels that a release brings count all ticks so far, so that two of one label say something about the ticks between.
    """

    value: Literal["integer", "real", "label"] = "integer"
    categories: Callable[[Parameters], Sequence[str] | None] = single
    labels: Literal["public", "chosen", "found", "growing"] = "public"
    most: str | None = None
    running: bool = False

    @property
    def brings_labels(self) -> bool:
        """Whether the labels are part of the release."""
        return self.labels != "public"

    def numbers(self, parameters: Parameters) -> int | None:
        """How many numbers, or labels, a release has; of found ones, how many at most. None if nobody knows.

        >>> Result(categories=ranks).numbers({"k": 3}), Result(labels="found").numbers({})
        (3, None)
        """
        if self.brings_labels:
            return None if self.most is None else int(parameters[self.most])
        categories = self.categories(parameters)
        return 1 if categories is None else len(categories)

    def rows(self, parameters: Parameters) -> int:
        """About how many rows a release has, for the size of commits, parts and pages: from public numbers only."""
        return self.numbers(parameters) or _FOUND


def counted_ticks(ticks: int) -> str:
    """So many ticks, where there is no clock that has other words.

    >>> counted_ticks(1), counted_ticks(7)
    ('1 tick', '7 ticks')
    """
    return f"{ticks} tick{'' if ticks == 1 else 's'}"


@dataclass(frozen=True)
class Card:
    """A kind on the page: its view, and what it releases in plain words.

    `words` may hold {column} and the options of the kind; `events` is said instead where a query has no column.
    Queries of one column whose kind has words for several (`together`) share a card, in the order of `order_by`.
    `places`: the categories are ranks, and are shown as places. `vertices`: those of the graph whose pairs, in the
    order of (0, 1), (0, 2), ..., the categories are. `weighed`: the words where ticks have weights; how they are
    weighed is added. `by_label`: the view of a query with declared categories, where they may be left out.
    `names`: what readers call the public categories, in their order. `logarithmic`: whether the values are read on a
    scale of factors. `apart`: the numbers have different units, and each gets an axis of its own. `nested`: whether the
    categories are prefixes, which are shown under what they begin with. `period`: the option that says how many ticks a
    period has. `summed`: the words where events have a {weight}, which is added up. `made`: what one event adds, a
    sentence that may hold {noun} and {column}; `made_of_events` where a query has no column, `made_of_sums` where
    events have a {weight}. `limited`: what is said more under {max_labels}. `lengths`: the option that lists lengths in
    ticks.
    """

    view: View
    words: str
    events: str = ""
    together: str = ""
    order_by: str | None = None
    places: bool = False
    vertices: Callable[[Parameters], list[str]] | None = None
    weighed: str = ""
    by_label: Literal["bars"] | None = None
    names: Callable[[Parameters, Lasting], list[str]] | None = None
    logarithmic: Callable[[Parameters], bool] | None = None
    apart: bool = False
    nested: Callable[[Parameters], bool] | None = None
    period: str | None = None
    summed: str = ""
    lengths: str | None = None
    made: str = ""
    made_of_events: str = ""
    made_of_sums: str = ""
    limited: str = ""

    def view_of(self, parameters: Parameters) -> View:
        """The view of one query."""
        return self.by_label if self.by_label is not None and "categories" in parameters else self.view

    def shown(
        self, column: str | None, parameters: Parameters, several: bool = False, lasting: Lasting = counted_ticks
    ) -> str:
        """The words for one query, or for several on one card.

        >>> Card("figure", "Sum of {column} so far", events="Events so far").shown("minutes", {})
        'Sum of minutes so far'
        """
        words = self.together if several else self.words
        if self.summed and "weight" in parameters:
            words = self.summed
        workload = parameters.get("workload") if self.weighed else None
        if workload is not None:
            return f"{self.weighed.format(column=column or 'events')}, {weighing(workload)}"
        words = self.events if column is None and self.events else words
        order = self.order(parameters)
        given = {**parameters, "column": column} | ({} if order is None else {str(self.order_by): f"{order:g}"})
        if self.period is not None:
            given[self.period] = lasting(parameters[self.period])
        if self.lengths is not None:
            *others, last = [lasting(length).removeprefix("1 ") for length in parameters[self.lengths]]
            given[self.lengths] = f"{', '.join(others)} and {last}" if others else last
        return words.format_map(given)

    def making(self, column: str | None, parameters: Parameters, noun: str) -> str | None:
        """What one event adds; None where there are no words for it.

        >>> Card("bars", "Events", made="Each {noun} adds 1 to its {column}.").making("ward", {}, "visit")
        'Each visit adds 1 to its ward.'
        """
        said = self.made_of_events if column is None else self.made
        if self.made_of_sums and "weight" in parameters:
            said = self.made_of_sums
        if parameters.get("max_labels") is not None:
            said += self.limited
        return (
            None
            if not said or "workload" in parameters
            else said.format_map({**parameters, "noun": noun, "column": column})
        )

    def order(self, parameters: Parameters) -> float | None:
        """The place of a query among those that it shares a card with."""
        return None if self.order_by is None else float(Fraction(parameters[self.order_by]))


def weighing(workload: Mapping[str, Any]) -> str:
    """A workload in plain words.

    >>> weighing({"window": 24}), weighing({"decay": "99/100"})
    ('over the last 24 ticks', 'each tick back counting 0.99 times as much')
    """
    if "window" in workload:
        return f"over the last {workload['window']} ticks"
    if "decay" in workload:
        return f"each tick back counting {float(Fraction(workload['decay'])):g} times as much"
    return "ticks weighed by declared numbers"


@dataclass(frozen=True)
class Discovery:
    """Which items of an unknown domain show at the last tick of the plan.

    A noisy count must exceed `threshold`. An item that occurred `surely` times is shown with probability at least
    1 - beta, one that occurred threshold + 1 times in about half of all cases; under `max_labels`, if it is followed.
    """

    threshold: int
    surely: int


@dataclass(frozen=True)
class Items:
    """What a query protects where that is not a single event: items, each with all events that name it.

    Two queries protect the same items if they put events together in the same way (`made_of`); a stream has one promise
    about one kind of thing. `words`: what an item is. `assumed`: a whole sentence about what makes it one. `one` is
    what `protects` calls it, `single` what that option says where single events are protected instead; `whole`: what
    belongs to it.
    """

    made_of: tuple[Any, ...]
    words: str
    assumed: str
    one: Literal["item", "node"] = "item"
    single: str = "event"
    whole: str = "its insertion and everything that names it"


@dataclass(frozen=True)
class Owner:
    """Records that belong to somebody: the option that names the column, and whether a query needs it. Where users are
    protected, the stream itself says whose an event is, and nothing else may."""

    option: str
    needed: Callable[[Parameters], bool]


@dataclass(frozen=True)
class Undivided:
    """A mechanism that pays in epsilon and delta themselves, of which there are no shares, and what to use instead."""

    mechanism: str
    instead: str
    default: bool = False

    def meant(self, mechanism: str | None) -> bool:
        return mechanism == self.mechanism or (mechanism is None and self.default)


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """One kind of query. `evertally.register_kind` makes one known.

    >>> import evertally as et
    >>> record = et.kinds.find("leader")
    >>> record.name, record.statistic.__name__, record.reads.use, record.card.view
    ('sum_select', 'SumSelect', 'labels', 'ranking')
    """

    statistic: type[Any]  # the Python class; its name is the name of the kind
    options: type[Query]  # what its [[query]] may say
    reads: Reads  # of `column`
    result: Result
    card: Card
    proofs: Mapping[str, Proof]  # by mechanism
    change_proof: str  # how far one event can move what is counted
    user_proof: str = ""  # what is needed beside it where users are protected
    built_on: Callable[[Any], str] | None = None  # of (mechanism): where what it is built on is proved
    reads_as: Callable[[Parameters], Reads] | None = None  # what it reads, where options decide that
    gives_as: Callable[[Parameters], Result] | None = None  # the shape of a release, where options decide that
    also: tuple[str, ...] = ()  # other spellings in a spec
    records: Records | None = None  # where an event is more than one column
    labelled_by: str = "categories"  # the option that declares which labels count: a list, or how many numbers
    owner: Owner | None = None
    rests_on: Callable[[Parameters], list[str]] | None = None  # declared facts that privacy rests on, as clauses
    names_others: str = ""  # where an event names more people than the one whose it is: who is not protected then
    items: Callable[[Parameters], Items | None] | None = None  # which items a query protects, if not single events
    # Whether the order of arrival within a tick is part of what is counted, and not only of which events count first.
    ordered: Callable[[Parameters], bool] | None = None
    level: bool = False  # says how many there are: a difference of two releases is no such number of a window
    event: str = "one event"  # what is protected where neither items nor users are
    arguments: Callable[[Parameters], Arguments] = dict  # from the table to the constructor
    rate_with: tuple[str, ...] | None = ()  # mechanisms that max_events_per_tick is for; None: all
    needs_rate: bool = True  # whether they are refused without it
    needs_delta: bool = False
    in_ticks: tuple[str, ...] = ()  # options of type `Ticks`, or lists of them
    undivided: Undivided | None = None
    error_later: str = ""  # why no error is known before the data
    known_before: Callable[[Any, float, int | None], str] | None = None  # of (mechanism, beta, tick): what is, then
    only_above: tuple[str, ...] = ()  # mechanisms whose bound is about counts that are too high alone
    discovery: Callable[[Any, float, int], Discovery | None] | None = None  # of (mechanism, beta, tick)
    # Of (column, its type in [events]): what a plan tells the writer of a spec beside the errors.
    advice: Callable[[str | None, str | None], str] | None = None
    no_discovery: str = ""  # what a plan says where a discovery has no numbers
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", kind_name(self.statistic))

    @property
    def spellings(self) -> tuple[str, ...]:
        """What a spec may write."""
        return self.name, *self.also

    @property
    def digest_word(self) -> str:
        """What the digest of a spec says: the spelling that a kind had first, so that all of them mean one stream."""
        return self.also[0] if self.also else self.name

    def columns(self, column: str | None, parameters: Parameters) -> tuple[Column, ...]:
        """The columns that a query reads."""
        reads = self.reads if self.reads_as is None else self.reads_as(parameters)
        return columns_read(column, parameters, reads, self.records_of(parameters))

    def records_of(self, parameters: Parameters) -> Records | None:
        """What a query makes of events of several columns; None where an event is one column."""
        option = None if self.records is None else self.records.only_with
        return self.records if option is None or option in parameters else None

    def result_of(self, parameters: Parameters) -> Result:
        """The shape of a query's releases."""
        return self.result if self.gives_as is None else self.gives_as(parameters)

    def user_rule(self, parameters: Parameters) -> str:
        """How a query bounds what one user may do, in words that follow "of each user"; empty where the cap of the
        stream has to do it."""
        rule = getattr(self.statistic, "user_rule", None)
        return "" if rule is None else rule(self.arguments(parameters))

    def rests_on_rate(self, mechanism: str | None) -> bool:
        """Whether an error bound, or the choice of a mechanism, rests on the declared `max_events_per_tick`."""
        return self.rate_with is None or mechanism in self.rate_with

    def mechanism_proof(self, mechanism: str, neighbours: str) -> str:
        """That this noise hides a change of the given size."""
        foreign, proof = proof_elsewhere(mechanism), self.proofs.get(mechanism)
        if foreign is None and proof is not None:
            return proof.under(neighbours)
        return f"not ours: {foreign or 'nobody said where it is proved'}"

    def proof_of_change(self, neighbours: str, unit: str) -> str:
        """By how much one protected unit can change what is counted."""
        if neighbours == "independent":
            return INDEPENDENT_COLUMNS
        # What bounds a user by itself is proved as such, and not as a group of events.
        capped = unit == "user" and not _rule_of(self.statistic)
        parts = [self.change_proof, CHANGE_OF_USERS, self.user_proof] if capped else [self.change_proof]
        return ", ".join(part for part in parts if part)


def _rule_of(statistic: type[Any]) -> str:
    rule = getattr(statistic, "user_rule", None)
    return "" if rule is None else str(rule({}))
