"""Windows, totals and levels from the release log, for whoever reads: the service, the command line, outputs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evertally.encode.range_door import NumberedLabels
from evertally.errors import ConfigurationError
from evertally.runtime.releases import TickRelease, listed, unpack
from evertally.runtime.spec import QuerySpec, StreamSpec
from evertally.runtime.windows.law import Cells, Law, Numbers, apart, between
from evertally.runtime.windows.question import FEW_LABELS, Question, check_work

Read = Callable[[Sequence[int], Sequence[str]], Sequence[TickRelease]]
_AT_ONCE = 64  # ticks whose payloads are in memory together


@dataclass
class Answer:
    """The answer to a `Question`: one entry for each window, oldest first; `numbers` has all labels of a window.

    `measure`: "window" (the ticks between), "total" (all ticks so far), or "level": what the query itself releases at
    the end of each window, where differences mean nothing.
    """

    query: QuerySpec
    measure: str
    window: int | None
    per: int | None
    labels: list[str] | None
    since: list[int] = field(default_factory=list)
    tick: list[int] = field(default_factory=list)
    numbers: list[Numbers] = field(default_factory=list)
    beta: float = 0.05  # with which an interval may fail
    changes: list[tuple[Numbers, Sequence[bool | None]] | None] = field(default_factory=list)

    def by_label(self, name: str) -> list[Cells]:
        """The values, lower or upper ends: a list for each label."""
        return transposed([getattr(numbers, name) for numbers in self.numbers], _width(self.labels))


def transposed(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    return [[row[place] for row in rows] for place in range(width)]


def _width(labels: Sequence[str] | None) -> int:
    """How many numbers a window has: none where labels are found, and none has been."""
    return 1 if labels is None else len(labels)


class Windows:
    """Answers about the windows of a stream. Nothing here knows more than the release log and public numbers.

    `mechanisms`: twins of those that run. `read`: some published ticks of some queries; those not kept are left out.
    """

    def __init__(self, spec: StreamSpec, mechanisms: Mapping[str, Any], keeps_rows: bool, read: Read) -> None:
        self._spec, self._read = spec, read
        self.laws = {query.name: Law(query, mechanisms[query.name], keeps_rows, spec.beta) for query in spec.queries}
        self.lock = threading.Lock()  # a mechanism is for one thread at a time

    @property
    def windowed(self) -> frozenset[str]:
        """The queries that have windows."""
        return frozenset(name for name, law in self.laws.items() if law.differences)

    def payloads(self, query: str, ticks: Sequence[int]) -> dict[int, bytes]:
        """What the log keeps of some ticks."""
        return {release.tick: release.payloads[query] for release in self._read(ticks, [query])}

    def answer(self, question: Question, published: int) -> Answer:
        """Raises ConfigurationError for what cannot be asked."""
        law = self.laws[question.query]
        ends = question.ends(published)
        with self.lock:
            if not law.differences:
                return _Levels(law, question, self._read).answer(ends)
            return _Differences(law, question, self._read).answer(ends)


class _Asked:
    """What both kinds of answers do: read the log in pieces, keep what is wanted of it."""

    def __init__(self, law: Law, question: Question, read: Read) -> None:
        self.law, self.query, self.question = law, law.query, question
        self._read = read
        self.labels = self.query.categories
        # Rates are made of counts and sums; a mean, a percentile or a level stays what it is.
        adds_up = law.additive or self.query.record.result.running
        self.per = question.per if adds_up and question.window is not None else None

    def payloads(self, ticks: Sequence[int]) -> Any:
        """(tick, payload) of what is kept."""
        for start in range(0, len(ticks), _AT_ONCE):
            for release in self._read(ticks[start : start + _AT_ONCE], [self.query.name]):
                if self.query.name in release.payloads:
                    yield release.tick, release.payloads[self.query.name]

    def begun(self, measure: str, labels: list[str] | None, both: int = 1) -> Answer:
        return Answer(self.query, measure, self.question.window, self.per, labels, beta=self.law.beta * both)


class _Differences(_Asked):
    def answer(self, ends: Sequence[int]) -> Answer:
        law, window = self.law, self.question.window
        back = (0,) if window is None else (0, window, 2 * window)
        ticks = sorted({end - age for end in ends for age in back if end > age})
        shown = len(self.labels or [""])
        named = self.question.labels
        check_work(
            len(ticks), max(law.width, shown), len(ends), min(shown, FEW_LABELS) if named is None else len(named)
        )
        wanted = self._wanted(ends)
        rows = {0: law.first(wanted)}
        for tick, payload in self.payloads(ticks):
            row = law.row(payload, wanted)
            if row is not None:
                rows[tick] = row
        labels = None if self.labels is None else [self.labels[place] for place in wanted or []]
        answer = self.begun("total" if window is None else "window", labels)
        for end in ends:
            since = 0 if window is None else end - window
            if end in rows and since in rows:
                self._add(answer, rows, end, since, wanted)
        return answer

    def _add(self, answer: Answer, rows: Mapping[int, Any], end: int, since: int, wanted: Any) -> None:
        law, window, per = self.law, self.question.window, self.per
        if window is None:
            numbers, change = law.window(rows[end], None, (end, 0), wanted), None
        else:
            numbers = law.window(rows[end], rows[since], (end, since), wanted)
            change = self._change(numbers, rows, (end, since, since - window), wanted)
            if per is not None:
                numbers = numbers.scaled(per, window)
                change = None if change is None else (change[0].scaled(per, window), change[1])
        answer.since.append(since)
        answer.tick.append(end)
        answer.numbers.append(numbers)
        answer.changes.append(change)

    def _change(self, now: Numbers, rows: Mapping[int, Any], ticks: tuple[int, int, int], wanted: Any) -> Any:
        end, since, before = ticks
        if before < 0 or before not in rows:
            return None
        if self.law.additive:
            return self.law.change((rows[end], rows[since], rows[before]), ticks, wanted)
        return apart(now, self.law.window(rows[since], rows[before], (since, before), wanted))

    def _wanted(self, ends: Sequence[int]) -> list[int] | None:
        """The places of the labels: those that were named, all if they are few, or the largest of the last window."""
        labels, named = self.labels, self.question.labels
        if labels is None:
            if named:
                raise ConfigurationError(f"{self.query.name!r} releases one number, without labels")
            return None
        if named is not None:
            places: NumberedLabels | dict[str, int]
            places = labels if isinstance(labels, NumberedLabels) else {label: n for n, label in enumerate(labels)}
            found = [place for place in map(places.get, named) if place is not None]
            if len(found) < len(named):
                raise _no_label()
            return found
        if len(labels) <= FEW_LABELS:
            return list(range(len(labels)))
        values = self.newest(ends)
        return sorted(range(len(labels)), key=lambda place: (-(values[place] or 0), place))[:FEW_LABELS]

    def newest(self, ends: Sequence[int]) -> Cells:
        """All labels of the last window, as far as it is kept."""
        window, count = self.question.window, len(self.labels or [""])
        if ends:
            end, since = ends[-1], 0 if window is None else ends[-1] - window
            kept = {tick: self.law.row(payload, None) for tick, payload in self.payloads([since, end])}
            kept |= {0: None if window is None else self.law.first(None)}
            now = kept.get(end)
            if now is not None and since in kept:
                return self.law.window(now, kept[since], (end, since), None).value
        return [0] * count


class _Levels(_Asked):
    """What a query releases by itself: users of the last days, places, labels that were found.

    Where found labels have running totals, a window is the difference of two of them, as far as the label was released
    at both ends. These have no common law: both errors are added up, and the interval may fail for either of them.
    """

    def answer(self, ends: Sequence[int]) -> Answer:
        window = self.question.window
        running = window is not None and self.query.result.running
        ages = (0,) if window is None else (0, window, 2 * window) if running else (0, window)
        ticks = sorted({end - age for end in ends for age in ages if end > age})
        named = self.question.labels
        shown = min(self.query.rows, FEW_LABELS) if named is None else len(named)
        check_work(len(ticks), self.query.rows, len(ends), shown)
        labels = self._labels(ends)
        kept = {tick: self._numbers(payload, labels) for tick, payload in self.payloads(ticks)}
        if running:
            zeros: Cells = [0] * _width(labels)
            kept[0] = Numbers(zeros, zeros, zeros, None)
        answer = self.begun("window" if running else "level", labels, both=2 if running else 1)
        for end in ends:
            self._add(answer, kept, end, running)
        return answer

    def _add(self, answer: Answer, kept: Mapping[int, Numbers], end: int, running: bool) -> None:
        window = self.question.window or 0
        now, before = kept.get(end), kept.get(end - window) if window else None
        if now is None or (running and before is None):
            return
        if running and before is not None:
            now, earlier = between(now, before), kept.get(end - 2 * window)
            before = None if earlier is None else between(before, earlier)
            if self.per is not None:
                now = now.scaled(self.per, window)
                before = None if before is None else before.scaled(self.per, window)
        answer.since.append(end - window if running else 0)
        answer.tick.append(end)
        answer.numbers.append(now)
        answer.changes.append(None if before is None else apart(now, before))

    def _labels(self, ends: Sequence[int]) -> list[str] | None:
        named, found = self.question.labels, self.query.result.brings_labels
        if named is not None:
            if not found and any(label not in (self.labels or ()) for label in named):
                raise _no_label()
            return list(named)
        if not found and (self.labels is None or len(self.labels) <= FEW_LABELS):
            return listed(self.labels)
        last = next((unpack(self.query, payload) for _, payload in self.payloads(list(ends[-1:]))), None)
        if last is None:
            return [] if found else list((self.labels or ())[:FEW_LABELS])
        if found:
            return list(last["category"][:FEW_LABELS])  # the best come first
        best = sorted(zip(last["value"], last["category"], strict=True), key=lambda cell: -cell[0])
        return [label for _, label in best[:FEW_LABELS]]

    def _numbers(self, payload: bytes, labels: list[str] | None) -> Numbers:
        columns = unpack(self.query, payload)
        parts = [columns[name] for name in ("value", "lower", "upper")]
        if labels is None:
            value, lower, upper = ([part] for part in parts)
            return Numbers(value, lower, upper, columns["stddev"])
        found = {label: cells for label, *cells in zip(columns["category"], *parts, strict=True)}
        cells = [found.get(label, (None, None, None)) for label in labels]
        value, lower, upper = transposed(cells, 3)
        return Numbers(value, lower, upper, columns["stddev"])


def _no_label() -> ConfigurationError:
    return ConfigurationError("there is no such label in the query; v1/labels finds those that there are")
