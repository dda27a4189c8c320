"""The events of one tick with those whose they are, for statistics that bound a user by themselves."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evertally.encode.owners import owners
from evertally.encode.texts import Texts
from evertally.secret import Secret

IntArray = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class OwnedTick(Secret):
    """The events of a tick that have a user, in their order of arrival. Secret.

    `names`: the users of this tick, each once. `codes`: for each event the place of its user among `names`. `cells`:
    for each event what its statistic reads of it, a row of whole numbers; no columns where it reads nothing.
    """

    tick: int
    names: Texts
    codes: IntArray
    cells: IntArray

    def __len__(self) -> int:
        return len(self.codes)

    def digest(self) -> bytes:
        """A hash that says whether two ticks had the same input, order included: what a cap keeps depends on it."""
        found = hashlib.sha256()
        for part in (self.codes, self.cells, self.names.lengths):
            found.update(len(part).to_bytes(8, "little") + np.ascontiguousarray(part).astype("<i8").tobytes())
        names = self.names
        found.update(names.data[names.offsets[0] : names.offsets[-1]].tobytes())
        return found.digest()


def owned_tick(users: Any, cells: IntArray | None, tick: int) -> OwnedTick:
    """The tick of these events. Events without a user, or with several, are left out (see `UserCap`).

    >>> tick = owned_tick(["ann", None, "bob", "ann"], None, tick=1)
    >>> tick.names.list(), tick.codes.tolist(), tick.cells.shape
    (['ann', 'bob'], [0, 1, 0], (3, 0))
    """
    codes, names = owners(users)
    if cells is None:
        cells = np.empty((len(codes), 0), dtype=np.int64)
    known = codes >= 0
    if not known.all():
        codes, cells = codes[known], cells[known]
    return OwnedTick(tick, names, codes, cells)
