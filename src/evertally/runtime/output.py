"""What a release consists of, for whoever shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def entries(release: Any, beta: float) -> Iterator[tuple[str | None, Any, Any, Any]]:
    """(category, value, lower, upper), in an order that is public.

    A histogram has an entry per category, in the declared order: the order of arrival is private. Where labels are
    found or chosen, there is one for each released label, best first, and none for any other. A list has one per
    rank. A value is a number or a label; of a label, lower and upper bound how far its sum is from the right one.
    """
    value, (lower, upper) = release.value, release.interval(beta=beta)
    if isinstance(value, Mapping):
        yield from ((label, number, lower[label], upper[label]) for label, number in value.items())
    elif isinstance(value, list | np.ndarray):
        for rank, one in enumerate(zip(*map(_plain, (value, lower, upper)), strict=True), start=1):
            yield str(rank), *one
    else:
        yield None, value, lower, upper


def _plain(values: Any) -> list[Any]:
    return list(values.tolist() if isinstance(values, np.ndarray) else values)
