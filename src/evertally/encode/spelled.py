"""Columns of labels in their one spelling: different ones once, in one piece of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from evertally.encode.labels import Coded, Codes
from evertally.encode.name_index import distinct, taken
from evertally.encode.texts import Texts


class Spelled(Coded):
    """A column of labels in the spelling of `canonical`, each of them once, whoever wrote it how; -1 for none. Secret.

    >>> column = Spelled(np.array([1, 0, -1, 1]), Texts.of(["fig", "pear"]))
    >>> list(column), list(column[2:]), column[2:].compact().names.list()
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

    @staticmethod
    def joined(parts: Sequence[Spelled]) -> Spelled:
        """One column of several.

        >>> fig, both = Texts.of(["fig"]), Texts.of(["fig", "pear"])
        >>> list(Spelled.joined([Spelled(np.array([0]), fig), Spelled(np.array([1, 0, -1]), both)]))
        ['fig', 'pear', 'fig', None]
        """
        data = np.concatenate([part.names.data for part in parts])
        before = np.cumsum([0, *(len(part.names.data) for part in parts)])
        starts = np.concatenate([part.names.offsets[:-1] + at for part, at in zip(parts, before, strict=False)])
        numbers, names = distinct(taken(data, starts, np.concatenate([part.names.lengths for part in parts])))
        first = np.cumsum([0, *(len(part.names) for part in parts)])
        places = [np.append(numbers[at : at + len(part.names)], -1) for part, at in zip(parts, first, strict=False)]
        return Spelled(np.concatenate([place[part.codes] for part, place in zip(parts, places, strict=True)]), names)
