"""What a part of the program is called with, told by the part itself while it works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def watched(kind: Any, method: str, note: Callable[..., None]) -> Iterator[None]:
    """A method of a class tells what it is called with, for the time of a `with` block.

    >>> class Part:
    ...     def fit(self, data):
    ...         return sum(data)
    >>> seen = []
    >>> with watched(Part, "fit", lambda part, data: seen.append(data)):
    ...     answer = Part().fit([1, 2])
    >>> answer, Part().fit([3]), seen
    (3, 3, [[1, 2]])
    """
    real, own = getattr(kind, method), method in vars(kind)

    def telling(self: Any, *arguments: Any, **more: Any) -> Any:
        note(self, *arguments, *more.values())
        return real(self, *arguments, **more)

    setattr(kind, method, telling)
    try:
        yield
    finally:
        if own:
            setattr(kind, method, real)
        else:
            delattr(kind, method)
