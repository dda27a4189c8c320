"""The door: raw events become one bounded integer row per tick, by a fixed function of each event alone.

Every sensitivity that the library claims rests on two properties of these classes, which the tests check:

* *per event*: the row of a tick is the sum of the rows of its events. Removing one event changes the tick's
  row by exactly that event's own row; it never changes how another event is bounded. So no rule here may look
  at arrival positions, at other events or at exact counts.
* *bounded*: an event's row has at most `max_per_event` non-zero entries, each at most `max_weight` in absolute value.

Records are never refused: an error, a log line or a status that depends on a record would itself be a
release. What cannot be used contributes nothing. Only mistakes of the caller (a wrong container, a bad
parameter) raise. A record is copied into Python's own types before anything is compared (encode/plain.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from evertally.encode.bag_kernels import add_kept, merge_events
from evertally.encode.bags import Bag, bags
from evertally.encode.cutting import CUTTING, SecretOrder, weight_words
from evertally.encode.labels import Codes, as_list, canonical, coded, is_text, label_bytes, require_column
from evertally.encode.name_kernels import kernel
from evertally.encode.numbers import floats
from evertally.encode.plain import UNREADABLE, pairs, whole
from evertally.encode.texts import Texts
from evertally.errors import ConfigurationError
from evertally.integers import whole as whole_option
from evertally.secret import Secret

_MAX_WEIGHT_LIMIT = 2**40
# Tick totals are clipped here so that they fit int64. Clipping moves a total by no more than the total moved,
# so the sensitivity stands; no real tick comes near it.
_TOTAL_LIMIT = 2**62
_NO_WEIGHTS = np.empty(0, np.int64)

Row = NDArray[np.int64]
Order = Callable[[bytes], bytes]
Item = TypeVar("Item", int, str)
Weight = TypeVar("Weight", int, float)


class AmountDoor(Secret):
    """The sum of one number per event, each number bounded on its own to [0, max_weight] ([-max_weight,
    max_weight] if signed).

    Missing and infinite amounts count 0, and so does what is no number; fractions are cut towards zero, True counts 1.

    >>> AmountDoor(max_weight=10).totals([3, 250, -4, 2.9, None, float("nan"), "7", "seven"], tick=1)
    22
    """

    def __init__(self, max_weight: int = 1, signed: bool = False) -> None:
        self.max_weight = whole_option("max_weight", max_weight, 1, _MAX_WEIGHT_LIMIT)
        self.signed = bool(signed)

    def totals(self, events: Any, tick: int) -> int:
        """The bounded total of one tick's events. The tick plays no part; all doors have the same shape."""
        require_column(events, "events")
        numbers = floats(events)
        low, high = -self.max_weight if self.signed else 0, self.max_weight
        with np.errstate(all="ignore"):  # a signalling NaN must not be heard
            finite = np.where(np.isfinite(numbers), numbers, 0.0)
        # Floats hold all integers up to the largest max_weight.
        clipped: Row = np.clip(np.trunc(finite), low, high).astype(np.int64)
        return max(-_TOTAL_LIMIT, min(_TOTAL_LIMIT, _exact_sum(clipped, self.max_weight)))


def _exact_sum(numbers: Row, largest: int) -> int:
    # int64 sums wrap silently; add in pieces that cannot.
    piece = max(1, _TOTAL_LIMIT // largest)
    return sum(int(numbers[i : i + piece].sum()) for i in range(0, len(numbers), piece))


class EventDoor(Secret, ABC, Generic[Item]):
    """One event that names items becomes a bounded set of items with weights. Not used directly; see its subclasses.

    An event is a label, a collection of labels, or a mapping from labels to integer weights. It is bounded in this
    order, which matters (a rule applied earlier or later has another sensitivity): labels are canonicalised, what is
    no item is dropped, duplicates are merged by adding, weights are clipped to `max_weight`, and the event is cut to
    `max_per_event` distinct items.

    Which items survive the cut is decided by `order`, a secret keyed hash, of the tick, the event's own
    content and the label (encode/cutting.py; with `cutting=1` as in streams of earlier versions): not by arrival, so
    that removing one event cannot re-cut another, and not by popularity, which is private. With `rank_by_label` the
    event's content plays no part: where single items are protected, one item more must not re-rank the others
    (privacy.neighbours, `Contribution`).
    """

    def __init__(
        self,
        max_per_event: int,
        max_weight: int,
        signed: bool,
        *,
        order: Order,
        rank_by_label: bool = False,
        cutting: int = CUTTING,
    ) -> None:
        self.max_per_event = whole_option("max_per_event", max_per_event, 1, 2**31)
        self.max_weight = whole_option("max_weight", max_weight, 1, _MAX_WEIGHT_LIMIT)
        self.signed = bool(signed)
        self._order = order
        self._rank_by_label = rank_by_label
        self._secret_order = SecretOrder(order, rank_by_label) if cutting == CUTTING else None

    @property
    @abstractmethod
    def may_cut(self) -> bool:
        """Whether an event may have more items than `max_per_event`."""

    @abstractmethod
    def _item(self, value: object) -> Item | None:
        """The item that a label names, None if it names none."""

    @abstractmethod
    def _label_bytes(self, item: Item) -> bytes:
        """The canonical label of an item."""

    def row(self, event: object, tick: int) -> dict[Item, int]:
        """What one single event contributes: item -> weight, at most `max_per_event` of them."""
        try:
            items = self._items(event)
        except UNREADABLE:
            return {}
        return self._cut(items, tick)

    def _items(self, event: object) -> dict[Item, int]:
        items: dict[Item, int] = {}
        for value, count in pairs(event):
            item, weight = self._item(value), whole(count, _TOTAL_LIMIT)
            if item is not None and (weight > 0 or self.signed):
                items[item] = items.get(item, 0) + weight
        low, high = -self.max_weight, self.max_weight
        return {item: max(low, min(high, weight)) for item, weight in items.items() if weight}

    def _bags(self, events: Any) -> list[Bag] | None:
        """The events laid out flat; None where they must be looked at one by one, or 64 bits might not hold a sum."""
        made = bags(events)
        if made is None or sum(len(bag.values) for bag in made) * self.max_weight > _TOTAL_LIMIT:
            return None
        return made

    def _counts(self, bag: Bag, items: Codes, labels: Texts, tick: int) -> Codes:
        """How much each label counts, of events that are laid out flat; `items` are numbers of labels, -1 for none. The
        same as the sum of `row`."""
        counts, starts, code, weight = self._merged(bag, items, len(labels))
        if len(code):
            self._add_kept(counts, code, weight, self._kept(starts, code, weight, labels, tick))
        return counts

    def _merged(self, bag: Bag, items: Codes, room: int) -> tuple[Codes, Codes, Codes, Codes]:
        """How much each of `room` items counts, of the events that are short enough; and the others: where each begins,
        what is in them, and the weights."""
        counts, place = (np.zeros(room, np.int64) for _ in range(2))
        code, low, high = (np.empty(len(items) + 1, np.int64) for _ in range(3))
        starts = np.empty(len(bag.lengths) + 1, np.int64)
        given = bag.lengths, items, _NO_WEIGHTS if bag.weights is None else bag.weights
        bounds = self.max_per_event, self.max_weight, self.signed
        cut = int(kernel(merge_events, len(items))(*given, *bounds, place, counts, code, low, high, starts))
        return counts, starts[: cut + 1], code[: starts[cut]], low[: starts[cut]]

    @staticmethod
    def _add_kept(counts: Codes, code: Codes, weight: Codes, kept: NDArray[np.bool_]) -> None:
        kernel(add_kept, len(code))(code, weight, kept, counts)

    def _kept(self, starts: Codes, code: Codes, weight: Codes, labels: Texts, tick: int) -> NDArray[np.bool_]:
        """Which items of events that are too long survive. Event i has those from starts[i] up to starts[i + 1]."""
        if self._secret_order is not None:
            return self._secret_order.kept(starts, code, weight, labels, tick, self.max_per_event)
        kept = np.zeros(len(code), np.bool_)
        names, codes = labels.take(code).names(), code.tolist()
        for start, stop in pairwise(starts.tolist()):
            numbers = {self._item_of(codes[j], names[j]): j for j in range(start, stop)}
            row = {item: int(weight[j]) for item, j in numbers.items()}
            kept[[numbers[item] for item in self._cut(row, tick)]] = True
        return kept

    @abstractmethod
    def _item_of(self, number: int, name: bytes) -> Item:
        """The item of a label, by its number among labels and by its bytes."""

    def _cut(self, items: dict[Item, Weight], tick: int) -> dict[Item, Weight]:
        if len(items) <= self.max_per_event:
            return items
        if self._secret_order is not None:
            names = Texts.of_bytes([self._label_bytes(item) for item in items])
            weights = weight_words(list(items.values()))
            bounds, numbers = np.array([0, len(items)]), np.arange(len(items))
            kept = self._secret_order.kept(bounds, numbers, weights, names, tick, self.max_per_event)
            return {item: items[item] for item, stays in zip(items, kept.tolist(), strict=True) if stays}
        content = b"".join(_framed(self._label_bytes(item), items[item]) for item in sorted(items))
        event = self._order(b"event" + _framed(b"" if self._rank_by_label else content, tick))
        ranked = sorted(items, key=lambda item: (self._order(b"item" + event + self._label_bytes(item)), item))
        return {item: items[item] for item in ranked[: self.max_per_event]}


class CategoryDoor(EventDoor[int]):
    """Events that name categories become integer rows with one column per declared category (and one for `other`).

    Events are bounded as `EventDoor` says; undeclared labels are dropped, or go to `other` if there is one.

    >>> from hashlib import blake2b
    >>> secret_order = lambda message: blake2b(message, key=b"secret").digest()
    >>> door = CategoryDoor(["a", "b"], other="rest", max_per_event=2, order=secret_order)
    >>> door.totals(["a", ["a", "b", "b"], {"b": 5}, "zebra", None, 3.5], tick=1).tolist()
    [2, 2, 1]
    >>> door.labels
    ('a', 'b', 'rest')
    """

    def __init__(
        self,
        categories: Iterable[object],
        other: object | None = None,
        max_per_event: int = 1,
        max_weight: int = 1,
        signed: bool = False,
        *,
        order: Order,
        rank_by_label: bool = False,
        cutting: int = CUTTING,
    ) -> None:
        super().__init__(max_per_event, max_weight, signed, order=order, rank_by_label=rank_by_label, cutting=cutting)
        self.numbered = isinstance(categories, range)  # columns that nobody gave a name
        self._declare(categories, other)

    def _declare(self, categories: Iterable[object], other: object | None) -> None:
        self.labels = declared_labels(categories, other)
        self.names: Sequence[str] = self.labels
        self._other = len(self.labels) - 1 if other is not None else -1
        self._index = {label: i for i, label in enumerate(self.labels)}
        self._names = Texts.of(self.labels)

    @property
    def may_cut(self) -> bool:
        return self.max_per_event < self.width

    @property
    def other(self) -> int | None:
        """The column of what was not declared, None if there is none."""
        return None if self._other < 0 else self._other

    @property
    def width(self) -> int:
        """Number of columns: the declared categories, and one more for `other`."""
        return len(self.names)

    def totals(self, events: Any, tick: int) -> Row:
        """The row of one tick: the sum of the bounded rows of its events."""
        require_column(events, "events")
        plain = coded(events)
        if plain is not None:
            return self._totals_of_labels(*plain)
        row = self._totals_of_bags(events, tick)
        return self._one_by_one(as_list(events), tick) if row is None else row

    def places(self, events: Any) -> Codes | None:
        """The column of each event, -1 for those that count nowhere; None where some are no plain labels."""
        plain = coded(events)
        if plain is None:
            return None
        found = [self.column(value) for value in plain[1]]
        columns = np.array([-1 if column is None else column for column in [*found, None]], np.int64)
        return columns[plain[0]]  # code -1 is the last one

    def _totals_of_bags(self, events: Any, tick: int) -> Row | None:
        """Events that are collections or mappings of plain labels; None for others."""
        row = np.zeros(self.width, np.int64)
        made = self._bags(events)
        if made is None:
            return None
        for bag in made:
            places = self.places(bag.values)
            if places is None:
                return None
            row += self._counts(bag, places, self._names, tick)
        return row

    def _one_by_one(self, events: list[object], tick: int) -> Row:
        totals: dict[int, int] = {}
        for event in events:
            for column, weight in self.row(event, tick).items():
                totals[column] = totals.get(column, 0) + weight
        row = np.zeros(self.width, np.int64)
        for column, total in totals.items():
            row[column] = max(-_TOTAL_LIMIT, min(_TOTAL_LIMIT, total))
        return row

    def column(self, value: object) -> int | None:
        """The column that a label counts in, None if it counts nowhere."""
        column = self._place(value) if type(value) is str else None  # as it stands, like most
        if column is None and not (type(value) is str and value.isascii()):  # such a text has no other spelling
            label = canonical(value)
            if label is None:
                return None
            column = self._place(label)
        if column is None:
            column = self._other
        return None if column < 0 else column

    def _place(self, label: str) -> int | None:
        """The column of a declared label."""
        return self._index.get(label)

    _item = column

    def _item_of(self, number: int, name: bytes) -> int:
        return number

    def _label_bytes(self, item: int) -> bytes:
        return label_bytes(self.labels[item])

    def _totals_of_labels(self, codes: NDArray[np.int64], values: list[object]) -> Row:
        # A plain label is one item of weight 1, which no bound touches: counting each distinct label once is
        # the whole job.
        row = np.zeros(self.width, np.int64)
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        for value, count in zip(values, counts.tolist(), strict=True):
            column = self.column(value)
            if column is not None:
                row[column] += count
        return row


def declared_labels(categories: Iterable[object], other: object | None = None) -> tuple[str, ...]:
    """The categories of a declaration in their one spelling, `other` last; refuses what is no label or comes twice."""
    if isinstance(categories, str | bytes):
        raise ConfigurationError("categories must be a list of labels, not one text")
    labels: list[str] = []
    for position, value in enumerate([*categories, *([] if other is None else [other])]):
        label = canonical(value)
        if label is None:
            raise ConfigurationError(f"category {position + 1} is not a label; use text or whole numbers")
        if not is_text(label):
            raise ConfigurationError(f"category {position + 1} is not valid Unicode (it has half a surrogate pair)")
        labels.append(label)
    if len(labels) == (other is not None):
        raise ConfigurationError("at least one category is needed")
    if len(set(labels)) != len(labels):
        twice = next(label for i, label in enumerate(labels) if label in labels[:i])
        raise ConfigurationError(f"category {twice!r} is declared twice (after Unicode normalisation, with `other`)")
    return tuple(labels)


def _framed(content: bytes, number: float) -> bytes:
    """An injective encoding of (content, number): two different events must never hash as one."""
    digits = str(number).encode()
    return len(digits).to_bytes(4, "big") + digits + len(content).to_bytes(8, "big") + content
