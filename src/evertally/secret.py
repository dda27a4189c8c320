"""What an object with secret state refuses: to be shown, copied or pickled.

A label or a count in a traceback, a log line or a debugger's hover is a release that nobody paid for; a copy draws the
noise of its original for other data, which publishes the difference; a pickle is a snapshot without a checksum. So
the classes that hold records, exact sums or noise inherit from `Secret`.
"""

from __future__ import annotations

from typing import Any, NoReturn


class Secret:
    """Shows its class and nothing else. Data classes that inherit from it say `repr=False`.

    >>> class Diary(Secret):
    ...     def __init__(self, line):
    ...         self.line = line
    >>> Diary("dear diary")
    <Diary, not shown>
    >>> import copy
    >>> copy.copy(Diary("dear diary"))
    Traceback (most recent call last):
    TypeError: a Diary is not copied: its copy would have the same noise for other data. Use snapshot and restore
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, not shown>"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, form: str) -> str:
        return format(repr(self), form)

    def __copy__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} is not copied: its copy would have the same noise for other data. "
            "Use snapshot and restore"
        )

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__copy__()

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} holds secret state and is not pickled; a mechanism has snapshot and restore, "
            "a key save and load"
        )

    def __reduce__(self) -> NoReturn:
        self.__reduce_ex__(None)

    def __getstate__(self) -> NoReturn:
        self.__reduce_ex__(None)
