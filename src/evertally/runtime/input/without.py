"""Batches without the events of users who are erased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evertally.encode.labels import as_list, canonical
from evertally.runtime.input.sources import Batch


def without(batch: Batch, column: str, users: Sequence[str]) -> Batch | None:
    """The events of a batch without those of some users; None if there are no others.

    >>> batch = {"patient": np.array(["ann", 7, "7"], object), "ward": pa.array(["n", "s", "n"])}
    >>> {name: as_list(cells) for name, cells in without(batch, "patient", ["7", "bob"]).items()}
    {'patient': ['ann'], 'ward': ['n']}
    """
    gone = {canonical(user) for user in users}
    kept = np.array([canonical(user) not in gone for user in as_list(batch[column])], np.bool_)
    if not kept.any():
        return None
    return {name: _taken(cells, np.flatnonzero(kept)) for name, cells in batch.items()}


def _taken(cells: Any, rows: NDArray[np.intp]) -> Any:
    if isinstance(cells, np.ndarray):
        return cells[rows]
    found = cells.take(pa.array(rows))
    # A dictionary would go on naming those who are gone.
    return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found
