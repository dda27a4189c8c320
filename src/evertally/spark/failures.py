"""Exceptions of tasks and of Spark, without their texts: those quote records, and Spark logs and carries them."""

from __future__ import annotations

import builtins
import inspect
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import GeneratorType
from typing import Any, TypeVar, get_type_hints

import evertally.errors as own
from evertally.errors import EvertallyError, StateError

Task = TypeVar("Task", bound=Callable[..., Any])


class TaskFailed(EvertallyError):
    """A task stopped: where ("slice 3"), and by what kind of exception. Nothing of its content.

    >>> print(TaskFailed("slice 3", "ValueError at slices.py:120"))
    slice 3: ValueError at slices.py:120
    """

    def __init__(self, place: str, kind: str) -> None:
        super().__init__(f"{place}: {kind}")
        self.place, self.kind = place, kind

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.place, self.kind)


class SparkFailed(StateError):
    """Spark gave up. `kinds` names what it met, outermost first; texts are withheld, they may quote records."""

    def __init__(self, message: str, kinds: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.kinds = kinds


def kind_of(error: BaseException) -> str:
    """What may be said of an exception: its type, and the line that raised it.

    >>> try:
    ...     int("a secret")
    ... except ValueError as error:
    ...     kind_of(error).partition(" at ")[0]
    'ValueError'
    """
    if isinstance(error, TaskFailed):
        return error.kind
    frames = traceback.extract_tb(error.__traceback__)
    return type(error).__name__ + (f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "")


def guarded(task: Task, place: str | Callable[..., str] = "task") -> Task:
    """A function for `mapInArrow` or `applyInArrow` whose exceptions say nothing but place and kind.

    `place`: a text, or a function of the task's arguments that reads no content. Generators are watched to their end.

    >>> def broken(table):
    ...     raise ValueError(f"cannot read {table}")
    >>> guarded(broken, "slice 7")("a record")
    Traceback (most recent call last):
    evertally.spark.failures.TaskFailed: slice 7: ValueError at ...
    """

    def at(arguments: tuple[Any, ...]) -> str:
        try:
            return place if isinstance(place, str) else place(*arguments)
        except Exception:
            return "task"

    def watched(results: Iterator[Any], arguments: tuple[Any, ...]) -> Iterator[Any]:
        failed = None
        try:
            yield from results
        except Exception as error:
            failed = TaskFailed(at(arguments), kind_of(error))
        if failed is not None:  # outside the handler: it has no context that somebody could print
            raise failed

    def called(*arguments: Any) -> Any:
        try:
            result = task(*arguments)
        except Exception as error:
            failed = TaskFailed(at(arguments), kind_of(error))
        else:
            return watched(result, arguments) if isinstance(result, GeneratorType) else result
        raise failed

    # Spark counts the parameters of what it is given, and reads their annotations.
    def of_one(first: Any) -> Any:
        return called(first)

    def of_two(first: Any, second: Any) -> Any:
        return called(first, second)

    def of_none() -> Any:
        return called()

    wrapper: Any = (of_none, of_one, of_two)[len(inspect.signature(task).parameters)]
    given = list(inspect.signature(task).parameters)
    names = dict(zip(given, ("first", "second"), strict=False)) | {"return": "return"}
    hints = get_type_hints(task) if getattr(task, "__annotations__", None) else {}
    wrapper.__annotations__ = {names[name]: hint for name, hint in hints.items()}
    wrapper.__name__ = getattr(task, "__name__", "task")
    return wrapper  # type: ignore[no-any-return]


_TASK_FAILED = re.compile(
    r"^(?:evertally\.spark\.failures\.)?TaskFailed: "
    r"(?P<place>[a-z]+(?: \d+)?): (?P<kind>\w+)(?P<line> at [\w.]+:\d+)?\s*$",
    re.M,
)
_KNOWN = {
    name for room in (builtins, own) for name, value in vars(room).items()
    if isinstance(value, type) and issubclass(value, BaseException)
} | {"ArrowInvalid", "ArrowTypeError", "ArrowKeyError", "ArrowNotImplementedError", "ArrowCapacityError"}  # fmt: skip


# What a StateError of a task advises, by the file that raises it. Words of our own: those of the exception come through
# Spark, where a record that looks like a failure would be taken for one.
_ADVICE = {
    "job.py": "the root, or the worker key of a machine, is not the one of this stream: bring the root back, and copy "
    "the key file that the driver has written to all machines",
    "worker_key.py": "the worker key of a machine, or a state under the root, is missing, open to others, damaged or "
    "of another stream: copy the key file that the driver has written, mode 0600, and bring the root back",
    "parquet_files.py": "a file of the input was replaced, is damaged or cannot be read on the machine of the task: "
    "bring it back as it was, and run it again",
    "packing.py": "a column has another type than in the batch before, and events of that batch are waiting: give it "
    "the type that it had",
    "tasks.py": "a machine was lost, and what was read again was not what it had been: run it again with the input as "
    "it was",
    "shelf.py": "a file of the root cannot be read or written on the machine of the task: look for a full disk, a "
    "missing mount and rights, and run it again",
}


def failure_of(error: BaseException, place: str = "Spark") -> SparkFailed:
    """The same failure as one of ours: types of exceptions, and which task of ours it was; no text of theirs.

    >>> str(failure_of(RuntimeError("the record of Ada"), "batch 3")).partition(".")[0]
    'batch 3: Spark stopped with RuntimeError'
    """
    kinds = list(dict.fromkeys([*_python_kinds(error), *_java_kinds(error)]))
    task = _TASK_FAILED.search(_text(error))
    where = ""
    if task is not None:
        kind = task["kind"] if task["kind"] in _KNOWN else "an exception of a library"
        where = f", in {task['place']}: {kind}{task['line'] or ''}"
        file = (task["line"] or "").removeprefix(" at ").partition(":")[0]
        if kind == StateError.__name__ and file in _ADVICE:
            where += f" ({_ADVICE[file]})"
    said = f"{place}: Spark stopped with {', '.join(kinds)}{where}. Texts are withheld, they may quote records"
    return SparkFailed(said, tuple(kinds))


@contextmanager
def withheld(place: str = "Spark") -> Iterator[None]:
    """Around everything on the driver that runs a job: what Spark raises comes out as `SparkFailed`.

    >>> with withheld("batch 3"):
    ...     raise KeyError("a label")
    Traceback (most recent call last):
    evertally.spark.failures.SparkFailed: batch 3: Spark stopped with KeyError. ...
    """
    silence_pyspark()
    failed = None
    try:
        yield
    except EvertallyError:
        raise
    except Exception as error:
        failed = failure_of(error, place)
    if failed is not None:
        try:
            raise failed from None
        finally:
            failed.__context__ = None  # Python puts there what is being handled; whoever prints contexts has its text


def silence_pyspark() -> None:
    """PySpark writes texts of exceptions to stderr by itself, as it makes them; in this process no more."""
    with suppress(ImportError):  # of a version without it, or where there is no PySpark to be silenced
        from pyspark.logger import PySparkLogger

        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            PySparkLogger.getLogger(name).disabled = True  # made by its own class: it is called with words of its own


def _text(error: BaseException) -> str:
    """Only to look for our own line in it."""
    try:
        return str(error)
    except Exception:
        return ""


def _python_kinds(error: BaseException | None) -> Iterator[str]:
    for _ in range(10):
        if error is None:
            return
        yield type(error).__name__
        error = error.__cause__


def _java_kinds(error: BaseException) -> list[str]:
    """Classes of Java's exceptions, and Spark's own names for conditions: both are words of programs, not of data."""
    found: list[str] = []
    condition = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    try:
        name = condition() if condition is not None else None
        if isinstance(name, str) and re.fullmatch(r"[A-Z][A-Z0-9_.]*", name):
            found.append(name)
        java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        for _ in range(10):
            if java is None:
                break
            found.append(java.getClass().getSimpleName())
            java = java.getCause()
    except Exception:  # the JVM may be gone
        return found
    return found
