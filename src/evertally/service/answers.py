"""The answers of the service as models: what clients may rely on, and what the OpenAPI document says."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from evertally.kinds.kind import View
from evertally.runtime.certificate import finite

Finite = Annotated[float | None, BeforeValidator(finite)]
Shown = Annotated[str, BeforeValidator(str)]  # an exact value, as it is written


class Answer(BaseModel):
    """An answer has these fields and no others."""

    model_config = ConfigDict(extra="forbid", from_attributes=True)


class Problem(Answer):
    error: str


class Status(Answer):
    status: str


class Accepted(Answer):
    """The batch is durable. Says nothing about its records: what is not legal is bounded or dropped silently."""

    batch: str
    tick: int = Field(description="The tick that was open when the batch arrived.")
    duplicate: bool = Field(description="This batch had been accepted before and was not counted again.")


class Amounts(Answer):
    """A privacy loss in the currencies that it is stated in."""

    epsilon: float | None = None
    rho: float | None = None
    delta: float | None = None


class PublicClock(Answer):
    start: str | int
    tick_seconds: float | None = Field(description="None where time stamps are integers of the user's own unit.")
    tick_length: int = Field(description="In microseconds, or in the user's own unit.")
    close: Literal["wall", "request"]
    column: str | None
    end: str | int | None


class Budget(Amounts):
    spent_share: float = Field(description="The whole guarantee is promised before the first tick, never more.")
    ticks_left: int | None = Field(description="None on a stream without a horizon.")


class CardPeriod(Answer):
    ticks: int
    words: str


class CardInStream(Answer):
    """How a page shows a query."""

    view: View
    words: str = Field(description="What is released, in plain language.")
    together: str | None = Field(description="The words for several queries of one column that share a card.")
    order: float | None = Field(description="The place of a query among those that it shares a card with.")
    values: Literal["numbers", "labels"]
    places: bool = Field(description="Whether the categories are ranks.")
    vertices: list[str] | None = Field(
        description="The vertices whose pairs (0, 1), (0, 2), ... the categories are, of a graph."
    )
    names: list[str] | None = Field(description="What readers call the categories, in the order of `labels`.")
    scale: Literal["linear", "log"] = Field(description="The axis of the values.")
    apart: bool = Field(description="Whether the numbers have different units, and need an axis each.")
    nested: bool = Field(description="Whether the categories are prefixes.")
    period: CardPeriod | None = Field(description="The blocks of ticks that users are counted in.")
    made: str | None = Field(description="What one event adds, in plain language.")


class PlannedNoise(Answer):
    """A query's mechanism and error, known before any data."""

    name: str
    kind: str
    mechanism: str
    exactness: str
    charge: Amounts
    stddev: Finite
    worst_stddev: Finite
    error_bound: Finite = Field(description="Holds for all ticks at once with probability 1 - beta.")
    unbounded_because: str | None = Field(description="Why a query has no error bound, and what to declare.")


class QueryInStream(PlannedNoise):
    column: str | None
    labels: list[str] | None = Field(description="The categories of every release; None if it is one value or found.")
    share: str
    ours: bool = Field(description="False for a kind that whoever runs the stream has registered.")
    card: CardInStream
    title: str | None
    noun: str | None = Field(description="What is counted, one of it; None: as in the stream.")
    unit: str | None = Field(description="Of the values.")
    description: str | None
    differences: bool = Field(description="Whether v1/windows has windows of it, and not only levels.")
    running: bool = Field(
        description="Whether it finds its labels and counts all that came: v1/labels has windows of those found before."
    )
    window: int | None = Field(description="The window that the spec names, in ticks.")
    per: int | None = Field(description="The rate that the spec names: per so many ticks.")
    edges: list[float] | None = Field(description="Of bins of numbers; one more than there are bins.")
    range: list[float] | None = Field(description="Declared for a mean: its smallest and its largest value.")


class Length(Answer):
    """So many ticks."""

    ticks: int
    seconds: float | None = Field(description="None where time stamps are integers of the user's own unit.")
    words: str


class PublicStream(Answer):
    name: str
    guarantee: Shown
    unit: Literal["event", "item", "node", "user", "user-period"]
    neighbours: str
    horizon: int | None
    beta: float
    clock: PublicClock


class AboutStream(PublicStream):
    title: str | None
    noun: str = Field(description="What an event is called.")
    description: str | None
    guesses: int = Field(
        description="Of 100 guesses about one protected unit with even odds, how many are right at most, by whoever "
        "has read everything. Rounded up."
    )
    windows: list[Length] = Field(
        description="Windows worth offering: a tick, a day, 7 and 30 days, those of the spec."
    )
    ranges: list[Length] = Field(description="Stretches of time worth offering.")
    plain_words: str
    adversary: Literal["adaptive", "oblivious"]
    ended: bool
    released: int = Field(description="The last released tick; 0 before the first.")
    released_time: str | int | None
    next_release: str | None = Field(description="None if an administrator closes the ticks, or the stream is over.")
    budget: Budget
    queries: list[QueryInStream]


class PlannedDiscovery(Answer):
    threshold: int
    surely: int


class PlannedAnswer(PlannedNoise):
    numbers: int | None
    guessed_bound: Finite = Field(description="While answers stay below `largest`, a guess; None if no smaller.")
    discovery: PlannedDiscovery | None
    known: str = Field(description="Of an error that depends on data: how large it is under assumptions, in words.")


class PlanAnswer(Answer):
    ticks: int = Field(description="The horizon, or the tick at which errors are quoted.")
    beta: float
    queries: list[PlannedAnswer]
    warnings: list[str] = Field(description="What whoever relies on the guarantee must be told.")
    about: str = Field(description="What the intervals and bounds are about: under a cap, what it kept.")


class LedgerEntry(Answer):
    query: str
    share: str
    promised: str
    charge: str
    amounts: Amounts


class LedgerAnswer(Answer):
    guarantee: str
    entries: list[LedgerEntry]
    spent: float
    left: float


class SpecQuery(Answer):
    name: str
    kind: str
    share: Shown
    column: str | None
    parameters: dict[str, Any]


class SpecAnswer(PublicStream):
    """The public part of the spec. No file, address or path is in it."""

    digest: str
    max_events_per_user: int | None
    user_column: str | None
    period: int | None
    max_events_per_tick: int | None
    events: dict[str, str] | None
    columns: list[str]
    queries: list[SpecQuery]
    max_batch_bytes: int
    max_batch_rows: int
    requests_per_second: float
    rows_per_second: float
    publish_after: float


Cell = float | int | str | None


class Columns(Answer):
    """One query's release: single values where `category` is None, else lists of one length."""

    category: list[str] | None
    value: Cell | list[Cell]
    lower: Cell | list[Cell]
    upper: Cell | list[Cell]
    stddev: float | None


class TickAnswer(Answer):
    tick: int
    time: str | int
    queries: dict[str, Columns]


class ReleasesAnswer(Answer):
    releases: list[TickAnswer]


class Change(Answer):
    """Against the window before, with its own error."""

    value: list[list[Cell]]
    stddev: list[float | None]
    clear: list[list[bool | None]] = Field(
        description="Whether the change exceeds its own error; of levels, means and percentiles, whether the two "
        "intervals do not touch (then up to 2 beta)."
    )


class WindowsAnswer(Answer):
    """Windows, one entry for each, oldest first; values have a list for each label, or one list without labels."""

    query: str
    measure: Literal["window", "total", "level"] = Field(
        description="`level`: what the query releases by itself at the end of each window, where differences of "
        "releases mean nothing."
    )
    window: Length | None
    per: Length | None
    beta: float
    labels: list[str] | None
    since: list[int]
    tick: list[int]
    start: list[str | int]
    end: list[str | int]
    stddev: list[float | None] = Field(description="The same for all labels of a window.")
    value: list[list[Cell]]
    lower: list[list[Cell]]
    upper: list[list[Cell]]
    change: Change | None


class LabelRow(BaseModel):
    """One label of a window, with its place among all labels of the query."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    label: str
    value: float | int
    lower: float | int
    upper: float | int
    clear: bool = Field(description="Whether it can be told from zero, together with all the others.")
    from_: int | None = Field(alias="from", description="The best place that it may have.")
    to: int | None = Field(description="The last place that it may have.")
    tied: bool = Field(description="Whether it cannot be told from the next row.")
    since: int | None = Field(
        description="Of a label that was found in the window and not before: the tick after which it is counted. Such "
        "labels come last and have no place."
    )
    start: str | int | None = Field(description="The end of that tick.")


class LabelsAnswer(Answer):
    """The labels of one window, a page of them. Places and `clear` hold for all labels at once."""

    query: str
    measure: Literal["window", "total", "level"] = Field(
        description="`level`: what the query releases by itself at `tick`, whatever the window (then `since` is 0)."
    )
    since: int
    tick: int
    start: str | int
    end: str | int
    labels: int
    per: Length | None
    matching: int
    clear: int = Field(description="Of those that match.")
    bound: float | None = Field(
        description="No label is further off than this, with probability 1 - beta. None: not known; then places and "
        "`clear` rest on the interval of each label alone."
    )
    beta: float
    rows: list[LabelRow]


class RadiusPer(Answer):
    words: str
    radius: float
    usual: float


class ExactnessRow(Length):
    stddev: float | None
    radius: float = Field(description="Half the interval of a window, at worst.")
    usual: float = Field(description="Half the interval of most windows: the middle one of some, evenly spread.")
    per: RadiusPer = Field(description="The same for a rate.")


class LevelRadius(Answer):
    stddev: float
    radius: float


class ExactnessAnswer(Answer):
    """How exact windows are, by their length: known before any data. Empty for what is no sum."""

    query: str
    beta: float
    level: LevelRadius | None = Field(
        description="Of what has no windows, such as who is active now: how exact each release is."
    )
    because: str | None = Field(description="Why nothing is known before the data, where it depends on them.")
    windows: list[ExactnessRow] = Field(description="The largest of the first 2,048 windows and of some later ones.")


class TickDigest(Answer):
    tick: int
    digest: str


class HeadAnswer(Answer):
    """What vouches for the release log: signed with Ed25519, for `evertally verify` and everybody."""

    format: int
    stream: str
    spec_digest: str
    public_key: str = Field(description="Also in the certificate: compare it with one that you have from elsewhere.")
    since: int = Field(description="The tick after which the chain begins.")
    tick: int
    chain: str = Field(description="The hash of all ticks since then.")
    digests: list[TickDigest] = Field(description="Of single ticks, if asked for.")
    signature: str


class CloseRequest(BaseModel):
    """Ticks are closed up to here."""

    model_config = ConfigDict(extra="forbid", strict=True)

    until: Annotated[
        Annotated[str, Field(max_length=64)] | Annotated[int, Field(ge=-(2**61), le=2**61)],
        Field(description="A tick boundary: a time such as 2013-01-01T00:00:00Z, or an integer."),
    ]


class Closed(Answer):
    released: int


class ClientFiguresAnswer(Answer):
    """What one client has sent since the start, and what of it waits."""

    batches: int
    rows: int
    bytes: int
    refused_busy: int
    failed: int
    waiting_rows: int
    waiting_bytes: int


class FiguresAnswer(Answer):
    """For administrators: these numbers carry no noise."""

    batches: int
    bytes: int
    duplicates: int
    refused_busy: int = Field(description="Requests that were asked to come again because too much waited or came.")
    failed: int = Field(description="Batches that could not be taken, through no fault of their envelope.")
    quarantined: int = Field(description="Files and messages that were set aside and wait for the operator.")
    queued: int
    waiting_rows: int
    waiting_bytes: int
    tick_seconds: float
    late_seconds: float
    clock_behind_seconds: float
    memory: dict[str, int] = Field(description="Bytes that each query takes, about, at one of the last ticks.")
    problem: str | None = Field(description="With a folder or a broker that events come from.")
    webhooks: dict[str, str | None] = Field(description="Why each webhook fails; null while it delivers.")
    clients: dict[str, ClientFiguresAnswer] = Field(description="By the name of the token.")
    failure: str | None = Field(description="Why the stream has stopped.")


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of an endpoint, for its documentation."""
    return {status: {"model": Problem, "description": _MEANINGS[status]} for status in statuses}


_MEANINGS = {
    400: "The request is not of the documented form.",
    401: "No valid token.",
    403: "The token has another role.",
    404: "There is nothing here.",
    405: "Another method is needed.",
    408: "The body took too long.",
    409: "The batch id was used with another content, or ticks close on the wall clock.",
    410: "The stream has ended.",
    411: "A Content-Length is needed.",
    413: "The body is longer than allowed.",
    415: "The media type or encoding is not taken.",
    421: "The Host of the request is none of the service's names.",
    429: "Too many requests.",
    500: "Internal error; its text is in no answer and no log.",
    503: "Not now: too much is waiting, or the stream has stopped. See Retry-After.",
}
