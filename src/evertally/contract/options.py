"""Options of statistics: one list of fields, from which constructor, signature, help and snapshot come.

A statistic is a class with fields; `@statistic` makes its constructor, says what a misspelt option may have meant (or
what the `instead` of the class says of it), and writes the list of parameters under its docstring. Groups of options
(`Mechanism`, ...) are classes that others inherit from; an option has one meaning, one default and one description in
the whole library.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import textwrap
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar, cast, dataclass_transform

import numpy as np

from evertally.encode.frames import column, is_own
from evertally.encode.labels import as_list, is_arrow
from evertally.errors import ConfigurationError
from evertally.integers import own_integer
from evertally.privacy import ZCDP, ApproxDP, ApproxZCDP, Guarantee, Neighbours, PureDP

C = TypeVar("C", bound=type)
_MISSING: Any = dataclasses.MISSING


def option(about: str, *, default: Any = _MISSING, kw_only: bool = True) -> Any:
    """A field of a statistic. Without a default it must be given."""
    return dataclasses.field(default=default, kw_only=kw_only, metadata={"about": about})


@dataclass_transform(kw_only_default=True, field_specifiers=(option, dataclasses.field))
def statistic(cls: C) -> C:
    """The constructor and the list of parameters of a class, from its fields.

    >>> @statistic
    ... class Ruler:
    ...     '''Measures.'''
    ...     length: int = option("How long it is.", default=30)
    >>> Ruler(lenght=3)
    Traceback (most recent call last):
    ...
    TypeError: Ruler has no option 'lenght'; did you mean 'length'?
    >>> import inspect
    >>> list(inspect.signature(Ruler).parameters), "How long it is." in Ruler.__doc__
    (['length'], True)
    """
    made: Any = dataclasses.dataclass(kw_only=True, eq=False, repr=False)(cls)
    made.__init__ = _helpful(made)
    made.__doc__ = f"{made.__doc__}\n{_parameters(made)}"
    return cast(C, made)


def _helpful(cls: Any) -> Callable[..., None]:
    plain = cls.__init__
    names = [field.name for field in dataclasses.fields(cls)]

    @functools.wraps(plain)
    def init(self: Any, *positional: Any, **options: Any) -> None:
        for name in options:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(names)}"
                hint = getattr(cls, "instead", {}).get(name, hint)
                raise TypeError(f"{cls.__name__} has no option {name!r}; {hint}")
        plain(self, *positional, **options)

    return init


def _parameters(cls: Any) -> str:
    lines = ["    Parameters:"]
    for field in dataclasses.fields(cls):
        default = "" if field.default is _MISSING else f" Default: {field.default!r}."
        text = f"{field.name}: {field.metadata.get('about', '')}{default}"
        lines += _wrapped(text)
    return "\n".join(lines) + "\n"


@functools.cache
def _wrapped(text: str) -> list[str]:
    """Most options are those of many statistics, and all of this is done when the library is imported."""
    return textwrap.wrap(text, 112, initial_indent=" " * 8, subsequent_indent=" " * 12)


def own_option(field: Any, value: Any) -> Any:
    """The option in Python's own types: an object of the caller's may say one thing to the noise and another to the
    door. Switches are truth values and nothing else."""
    if isinstance(field.default, bool):
        if type(value) is not bool and type(value) is not np.bool_:
            raise ConfigurationError(f"{field.name} is True or False; got a {type(value).__name__}")
        return bool(value)
    if isinstance(value, str) and not isinstance(value, Enum):
        return str.__str__(value)
    if field.name == "mechanism":
        raise ConfigurationError('mechanism is a name, e.g. "auto"')
    if value is None or type(value) is int:  # most of them
        return value
    found = value if is_own(value) else column(value)
    if found is not value or is_arrow(value):
        return as_list(found)
    number = own_integer(value)
    return value if number is None else number


def check_guarantee(guarantee: Any) -> None:
    # Exactly: a subclass could say one number to the noise and another one to the reader.
    if type(guarantee) not in (PureDP, ZCDP, ApproxDP, ApproxZCDP):
        raise ConfigurationError("guarantee is a PureDP, ZCDP, ApproxDP or ApproxZCDP object, e.g. et.PureDP(1.0)")


def check_neighbours(neighbours: str | Neighbours, guarantee: Guarantee) -> Neighbours:
    """The relation, if it is proved against the guarantee's adversary."""
    relation = Neighbours.parse(neighbours)
    if relation is Neighbours.INDEPENDENT and guarantee.adversary != "oblivious":
        # parameterized-histograms 6: the claim is proved for streams fixed beforehand only (design decision 9)
        raise ConfigurationError(
            "independent neighbours are proved for oblivious streams only; say so in the guarantee, "
            'e.g. ZCDP(0.5, adversary="oblivious")'
        )
    return relation


def foreign(given: dict[str, Any], defaults: dict[str, Any], belongs: str) -> None:
    """Refuses options that were given though they belong to another mechanism."""
    for name, value in given.items():
        if value != defaults[name]:
            raise ConfigurationError(f"{name} belongs to {belongs}")
