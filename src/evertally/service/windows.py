"""Answers about windows as JSON, CSV or Arrow, made in worker threads and kept until the next release."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from evertally.errors import ConfigurationError
from evertally.runtime.spec import StreamSpec
from evertally.runtime.windows import Question, Windows
from evertally.runtime.windows.exactness import exactness, level
from evertally.runtime.windows.listing import Listing, listing
from evertally.runtime.windows.question import each
from evertally.runtime.windows.written import as_arrow, as_csv, as_json, length
from evertally.service.pages import Format, encoded
from evertally.service.problems import Refused

_KEPT = 64  # answers
_KEPT_BYTES = 2**25


class Kept:
    """The last answers by what was asked and how far the stream was then: the same question gets the same bytes."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, asked: Hashable, make: Callable[[], bytes]) -> bytes:
        """The answer; what cannot be asked is refused."""
        with self._lock:
            if asked in self._answers:
                self._answers.move_to_end(asked)
                return self._answers[asked]
        try:
            made = make()
        except ConfigurationError as error:
            raise Refused(400, str(error)) from None
        with self._lock:
            if asked not in self._answers:
                self._answers[asked] = made
                self._size += len(made)
            while len(self._answers) > 1 and (len(self._answers) > _KEPT or self._size > _KEPT_BYTES):
                self._size -= len(self._answers.popitem(last=False)[1])
        return made


class WindowPages:
    """Windows of a stream as they are sent."""

    def __init__(self, spec: StreamSpec, windows: Windows) -> None:
        self._spec, self._windows, self._kept = spec, windows, Kept()

    def page(self, question: Question, published: int, form: Format) -> bytes:
        return self._kept.get((published, question, form), lambda: self._made(question, published, form))

    def _made(self, question: Question, published: int, form: Format) -> bytes:
        answer = self._windows.answer(question, published)
        if form == "json":
            return encoded(as_json(self._spec, answer))
        return as_csv(self._spec, answer) if form == "csv" else as_arrow(self._spec, answer)

    def labels(self, asked: Listing, published: int) -> bytes:
        """A page of labels."""

        def made() -> bytes:
            found, clock = listing(self._windows, asked, published), self._spec.clock
            times = {"start": clock.end_of(found["since"]), "end": clock.end_of(found["tick"])}
            found["rows"] = [
                row | {"start": None if row["since"] is None else clock.end_of(row["since"])} for row in found["rows"]
            ]
            return encoded(found | times | {"per": length(clock, found["per"], lambda ticks: each(clock, ticks))})

        return self._kept.get((published, asked), made)

    def exactness(self, query: str) -> bytes:
        """Errors by window, which depend on no data."""

        def made() -> bytes:
            last = self._spec.last_tick
            known = {"query": query, "beta": self._spec.beta, "level": level(self._windows, query, last)}
            because = self._windows.laws[query].query.record.error_later or None
            rows = exactness(self._windows, query, self._spec.clock, last)
            return encoded(known | {"windows": rows, "because": because})

        return self._kept.get(("exactness", query), made)
