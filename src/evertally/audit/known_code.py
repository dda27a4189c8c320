"""What was found out about a part of the program, kept for as long as the part is the same."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator
from types import FunctionType
from typing import Any

_right: set[Hashable] = set()


def once(package: str | tuple[str, ...], subject: Hashable, wrong: Callable[[], str]) -> str:
    """What is wrong with a subject, by a look that depends on it and on the code of some packages alone. What was right
    is not looked at again in this process, unless a function, a class or a constant of them has changed since: the many
    queries of an audit share their samplers.

    >>> looked = []
    >>> [once("evertally.noise", "doctest", lambda: looked.append("once") or "") for _ in range(2)], looked
    (['', ''], ['once'])
    """
    packages = (package,) if isinstance(package, str) else package
    known = (packages, subject, tuple(part for name in packages for part in _code(name)))
    if known in _right:
        return ""
    found = wrong()
    if not found:
        _right.add(known)
    return found


def _code(package: str) -> Iterator[Hashable]:
    """All that a look may depend on, by what it is, not by its name."""
    for name, module in sorted(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            for value in list(vars(module).values()):
                yield from _parts(value)


def _parts(value: Any) -> Iterator[Hashable]:
    if isinstance(value, FunctionType):
        yield value.__code__
        yield from (repr(default) for default in value.__defaults__ or ())
    elif isinstance(value, type):
        # Annotations come to be when somebody looks at them, and decide nothing.
        for part in (part for name, part in vars(value).items() if name != "__annotations__"):
            inner = (
                getattr(part, "fget", None) or getattr(part, "__func__", None) or getattr(part, "func", None) or part
            )
            yield inner.__code__ if isinstance(inner, FunctionType) else id(inner)
    else:
        yield id(value)
