"""What can go wrong, by kind. No message may contain the content of a record."""

from __future__ import annotations

import traceback
from pathlib import Path

_HOME = Path(__file__).parent


class EvertallyError(Exception):
    """Base of every error that evertally raises on purpose."""


class ConfigurationError(EvertallyError, ValueError):
    """A parameter is refused before the stream starts."""


class HorizonExceeded(EvertallyError):
    """The stream has used all its ticks; noise is calibrated for the horizon, so going on would break the promise."""


class BudgetExceeded(EvertallyError):
    """A mechanism asks for more privacy loss than the ledger has left."""


class StateError(EvertallyError):
    """A key, a snapshot or a state file is missing, damaged, or belongs to something else. The stream stops."""


class InternalError(StateError):
    """A stream stopped for a reason that nobody foresaw. Its text is withheld: it may hold data."""


class ReplayRefused(EvertallyError):
    """A tick that was already released is asked for again with another input: answering would leak the difference."""


class InterruptedCall(EvertallyError):
    """A mechanism is inside another call, or one ended half-way and cannot be taken back: restore its last snapshot."""


class NoiseReused(EvertallyError):
    """Two mechanisms would put the same noise on data that may differ: together they would publish the difference."""


class MessageRefused(EvertallyError, ValueError):
    """Bytes that are no message of this protocol. The server is as it was."""


def described(error: BaseException) -> str:
    """What may be said about an exception: of one that is not ours, its type and its place only, and from which line of
    evertally that place was reached.

    >>> try:
    ...     int("a secret")
    ... except ValueError as error:
    ...     described(error).partition(" at ")[0]
    'ValueError'
    """
    if isinstance(error, EvertallyError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return type(error).__name__
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(_HOME)]
    place = f"{type(error).__name__} at {Path(frames[-1].filename).name}:{frames[-1].lineno}"
    if not own or own[-1] is frames[-1]:
        return place
    return f"{place}, from evertally/{Path(own[-1].filename).relative_to(_HOME)}:{own[-1].lineno}"
