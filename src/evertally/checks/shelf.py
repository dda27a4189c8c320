"""What a store must do that keeps two drivers of one stream apart: of all who put a name where there is none, one wins.

To ask whether a name is taken and then to write lets several win; a store that has no such operation of its own cannot
hold a stream (docs/theory/distributed.md 3).
"""

from __future__ import annotations

import multiprocessing
import warnings
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, Protocol

_FOLDER = "evertally-check"
_PATIENCE = 60.0  # seconds that writers wait for each other


class Shelf(Protocol):
    """As in `evertally.runtime.state.shelf`."""

    def read(self, name: str) -> bytes | None: ...

    def put_new(self, name: str, data: bytes) -> bytes: ...

    def clear(self, folder: str) -> None: ...

    def names(self, folder: str) -> list[str]: ...


def check_shelf(shelf: Shelf, *, writers: int = 8, names: int = 100, processes: bool = False) -> int:
    """Plays writers against each other on a shelf; AssertionError says what it did that it must not. Returns how many
    names were fought over. What it writes lies under "evertally-check", and is taken away again.

    A race may be won by luck: more `names` see more. `processes`: writers are processes of their own, as drivers are;
    otherwise threads.

    >>> import tempfile
    >>> from evertally.runtime.state.shelf import DiskShelf
    >>> check_shelf(DiskShelf(tempfile.mkdtemp()), names=20)
    20
    """
    assert shelf.names(_FOLDER) == [], f'something is in "{_FOLDER}": take it away, or give another shelf'
    try:
        _check_one(shelf)
        _check_race(shelf, writers, names, processes)
    finally:
        shelf.clear(_FOLDER)
    assert shelf.names(_FOLDER) == [], "what was taken away is still there"
    return names


def _check_one(shelf: Shelf) -> None:
    """What a single writer sees."""
    one, other = f"{_FOLDER}/one", f"{_FOLDER}/other"
    assert shelf.read(one) is None, "a name that nobody has put has bytes: it must be None"
    shelf.clear(_FOLDER)  # what is not there can be taken away
    large = bytes(range(256)) * 4096
    for data in (b"", b"first", large):
        assert shelf.put_new(one, data) == data, "a name that was free did not take what was put"
        assert shelf.put_new(one, b"second") == data, "a name that was taken did not keep what it had"
        assert shelf.read(one) == data, "what is read is not what was put"
        shelf.put_new(other, b"")
        assert shelf.names(_FOLDER) == ["one", "other"], "names of a folder are not all that was put, sorted"
        shelf.clear(_FOLDER)
        assert shelf.read(one) is None, "what was taken away can still be read"
        assert shelf.names(_FOLDER) == [], "what was taken away is still listed"


def _check_race(shelf: Shelf, writers: int, names: int, processes: bool) -> None:
    if processes:
        context = multiprocessing.get_context("fork")  # nothing is imported anew, and a shelf need not be pickled
        gate: Any = context.Barrier(writers)
        answers: Any = context.Queue()
        started = [
            context.Process(target=_answer, args=(answers, shelf, gate, writer, names)) for writer in range(writers)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads: writers touch files alone
            for process in started:
                process.start()
        found = dict(answers.get(timeout=2 * _PATIENCE) for _ in started)
        for process in started:
            process.join()
        got = [found[writer] for writer in range(writers)]
    else:
        gate = Barrier(writers)
        with ThreadPoolExecutor(writers) as pool:
            got = list(pool.map(lambda writer: _write(shelf, gate, writer, names), range(writers)))
    failed = [answer for answer in got if isinstance(answer, str)]
    assert not failed, f"a writer that came at the same time as others stopped with {failed[0]}"
    for number in range(names):
        said = [answer[number] for answer in got]
        winners = [writer for writer in range(writers) if said[writer] == _data(writer, number)]
        assert len(winners) == 1, f"{len(winners)} of {writers} writers of one name believe that they have won"
        assert set(said) == {_data(winners[0], number)}, "those who lost did not get what the winner has put"
        kept = shelf.read(f"{_FOLDER}/{number:06d}")
        assert kept == said[0], "what is there is not what writers were told"
    assert shelf.names(_FOLDER) == [f"{number:06d}" for number in range(names)], (
        "names are not sorted, or not all there"
    )


def _answer(answers: Any, shelf: Shelf, gate: Any, writer: int, names: int) -> None:
    answers.put((writer, _write(shelf, gate, writer, names)))


def _write(shelf: Shelf, gate: Any, writer: int, names: int) -> list[bytes] | str:
    """What a writer got for each name, or the kind of exception that stopped it."""
    got = []
    try:
        for number in range(names):
            gate.wait(_PATIENCE)  # all of them at once
            got.append(shelf.put_new(f"{_FOLDER}/{number:06d}", _data(writer, number)))
    except Exception as error:
        gate.abort()
        return type(error).__name__
    return got


def _data(writer: int, number: int) -> bytes:
    return f"{writer} at {number}; ".encode() * (1 + 40 * writer)
