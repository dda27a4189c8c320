"""Columns of labels in their one spelling: different ones once, in one piece of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.labels import Coded, Codes
from evertally.encode.name_index import distinct, taken
from evertally.encode.texts import Texts


class Named(Coded):
    """A column of labels in the spelling of `canonical`, event by event. Secret.

    `rows`: for each event the place of its label, which is that of the next event that has one, or -1; None: all have.

    >>> column = Named(Texts.of(["pear", "fig"]), np.array([0, -1, 1]))
    >>> list(column), list(column[np.array([2, 1])])
    (['pear', None, 'fig'], ['fig', None])
    """

    def __init__(self, texts: Texts, rows: Codes | None = None) -> None:
        self.texts, self.rows = texts, rows

    def __len__(self) -> int:
        return len(self.texts if self.rows is None else self.rows)

    def __getitem__(self, which: Any) -> Any:
        rows = np.arange(len(self.texts)) if self.rows is None else self.rows
        if isinstance(which, int):
            return None if rows[which] < 0 else self.texts[rows[which]]
        found = rows[which]
        here = found >= 0
        which = found[here]
        texts = taken(self.texts.data, self.texts.offsets[which], self.texts.lengths[which])
        return Named(texts, None if here.all() else places(here))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.compact())

    def compact(self) -> Spelled:
        """The same column, each label once."""
        codes, names = distinct(self.texts)
        return Spelled(codes if self.rows is None else np.append(codes, -1)[self.rows], names)


class Spelled(Coded):
    """A column of labels in the spelling of `canonical`, each of them once, whoever wrote it how; -1 for none. Secret.

    >>> column = Spelled(np.array([1, 0, -1, 1]), Texts.of(["fig", "pear"]))
    >>> list(column), list(column[2:]), column[3:].compact().names.list()
    (['pear', 'fig', None, 'pear'], [None, 'pear'], ['pear'])
    """

    def __init__(self, codes: Codes, names: Texts) -> None:
        self.codes, self.names = codes, names

    @property
    def values(self) -> list[object]:  # type: ignore[override]
        return list(self.names.list())

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, int):
            code = self.codes[which]
            return None if code < 0 else self.names[code]
        return Spelled(self.codes[which], self.names)

    def __iter__(self) -> Iterator[Any]:
        values = [*self.values, None]  # the last one is where code -1 points
        return iter([values[code] for code in self.codes.tolist()])

    def compact(self) -> Spelled:
        """The same column without most labels that do not occur: a slice carries those of the whole column."""
        if len(self.names) <= len(self.codes):
            return self
        used, codes = np.unique(self.codes, return_inverse=True)
        missing = int(used.size > 0 and used[0] < 0)
        used = used[missing:]
        names = taken(self.names.data, self.names.offsets[used], self.names.lengths[used])
        return Spelled(codes.astype(np.int64, copy=False) - missing, names)


def joined(parts: Sequence[Named | Spelled]) -> Named | Spelled:
    """One column of several.

    >>> fig, both = Texts.of(["fig"]), Texts.of(["fig", "pear"])
    >>> list(joined([Spelled(np.array([0]), fig), Spelled(np.array([1, 0, -1]), both)]))
    ['fig', 'pear', 'fig', None]
    >>> list(joined([Named(fig), Named(both, np.array([-1, 0, 1]))]))
    ['fig', None, 'fig', 'pear']
    """
    named = [part for part in parts if isinstance(part, Named)]
    if len(named) == len(parts):
        rows = [np.arange(len(part)) if part.rows is None else part.rows for part in named]
        return Named(_chained([part.texts for part in named]), _shifted(rows, [len(part.texts) for part in named]))
    coded = [part.compact() for part in parts]
    numbers, names = distinct(_chained([part.names for part in coded]))
    codes = _shifted([part.codes for part in coded], [len(part.names) for part in coded])
    return Spelled(np.append(numbers, -1)[codes], names)


def places(here: NDArray[np.bool_]) -> Codes:
    """For each event its place among those that are here, -1 for the others."""
    return np.where(here, np.cumsum(here) - 1, -1)


def _chained(texts: Sequence[Texts]) -> Texts:
    data = [each.data[each.offsets[0] : each.offsets[-1]] for each in texts]
    lengths = np.concatenate([np.zeros(1, np.int64), *(each.lengths for each in texts)])
    return Texts(np.concatenate(data), np.cumsum(lengths))


def _shifted(columns: Sequence[Codes], sizes: Sequence[int]) -> Codes:
    """Places in columns as places in the one that has them one behind the other; -1 stays."""
    before = np.cumsum([0, *sizes])
    return np.concatenate([np.where(each < 0, -1, each + at) for each, at in zip(columns, before, strict=False)])
