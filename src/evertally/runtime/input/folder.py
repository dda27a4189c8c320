"""A folder that others write files of events into.

A file is complete when it has its name: writers use a name that starts with "." or ends in ".tmp" or ".part" while they
write, and rename the file at the end. From then on it must not change.

The folder itself remembers nothing that matters. How many records of a file were accepted is a mark in the state of the
stream, moved in the same transaction as the events, and so is a fingerprint of the file: a file that has changed since
is refused, for nobody can say which of its records were counted.

A file that cannot be read is reported, and holds up no other. One that fails where nothing should is set aside
(quarantine.py), and not looked at again before the operator says so.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from evertally.errors import ConfigurationError, StateError, described
from evertally.runtime.input.arrow_columns import clean
from evertally.runtime.input.batches import Mark, Piece
from evertally.runtime.input.encoded import BatchFailed
from evertally.runtime.input.envelope import BatchRefused, check_type, known, needed
from evertally.runtime.input.quarantine import Quarantine
from evertally.runtime.input.sources import ROWS, Batch, CannotRead, InputFile, identity
from evertally.runtime.input.tick_events import length
from evertally.runtime.spec import StreamSpec

_UNFINISHED = (".tmp", ".part")
_ROWS = 65536  # of one piece
_ALL = -1  # the mark of a file that was accepted to its end


class Unread(ConfigurationError):
    """Some files of a folder cannot be read: a sentence about each."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Folder:
    """The complete files of a folder, in the order of their names, cut into pieces.

    >>> import pathlib, tempfile
    >>> from evertally.runtime import load_spec
    >>> home = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (home / "visits.toml").write_text('''
    ... stream = {name = "visits", horizon = 100}
    ... guarantee = {rho = 0.5}
    ... clock = {start = "first serve", tick = "1m"}
    ... key = {file = "secret/visits.key"}
    ... state = {file = "visits.state"}
    ... query = [{name = "ward", kind = "histogram", column = "ward", categories = ["north", "south"]}]
    ... ''')
    >>> (home / "incoming").mkdir()
    >>> _ = (home / "incoming" / "monday.csv").write_text("ward\\nnorth\\nsouth\\nnorth\\n")
    >>> marks = {}
    >>> folder = Folder(home / "incoming", load_spec(home / "visits.toml"), marks.get)
    >>> for piece in folder.new():  # here a live stream accepts the batch, and keeps the marks with it
    ...     print(length(piece.batch))
    ...     marks |= piece.marks
    3
    >>> list(folder.new())
    []
    """

    def __init__(self, path: str | os.PathLike[str], spec: StreamSpec, mark: Mark) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise ConfigurationError(f"{self.path} is not a folder")
        self._spec, self._mark = spec, mark
        # Save reading old files again and again: those that were accepted, and what was wrong with others.
        self._accepted: dict[str, tuple[int, int, int]] = {}
        self._refused: dict[str, tuple[tuple[int, int, int], str]] = {}
        self._quarantine = Quarantine.beside(spec.state_file)

    def new(self) -> Generator[Piece]:
        """What has come since: every piece must be accepted before the next one is asked for. What cannot be accepted
        is thrown back.

        Files that cannot be read are named at the end.
        """
        problems = []
        for path in sorted(self.path.iterdir()):
            if path.is_file() and not path.name.startswith(".") and not path.name.endswith(_UNFINISHED):
                # Whatever it is, it is of this file alone: the others are read all the same.
                problem = yield from self._read(path)
                if problem is not None:
                    problems.append(problem)
        if problems:
            raise Unread(problems)

    def _read(self, path: Path) -> Generator[Piece, None, str | None]:
        """The new pieces of a file, and what is wrong with it."""
        # Quoted: a name may be any bytes, and marks are text.
        name = f"file:{quote(os.fsencode(path.name))}"
        wish = self._quarantine.wish(name)
        if wish == "drop":
            return None
        if wish == "hold":
            return f"{path} was set aside: see `evertally quarantine list`"
        try:
            yield from self._new_in(path, name)
        except BatchFailed as error:
            self._quarantine.hold(name, error.place)
        except ConfigurationError as error:
            return str(error)
        except StateError:
            raise
        except Exception as error:
            self._quarantine.hold(name, described(error))
        else:
            if wish is not None:
                self._quarantine.forget(name)
            return None
        return f"{path} was set aside: see `evertally quarantine list`"

    def _new_in(self, path: Path, name: str) -> Iterator[Piece]:
        if self._accepted.get(path.name) == identity(path):
            return
        as_it_was, problem = self._refused.get(path.name, (None, ""))
        if as_it_was == identity(path):
            raise ConfigurationError(problem)
        source = InputFile(path)
        try:
            yield from self._rest_of(source, name)
        except (CannotRead, BatchFailed):  # it may be another time: the disk's matter, or the operator's
            raise
        except ConfigurationError as error:
            self._refused[path.name] = source.identity, str(error)
            raise
        self._accepted[path.name] = source.identity

    def _rest_of(self, source: InputFile, name: str) -> Iterator[Piece]:
        fingerprint = int(source.sha256[:15], 16)
        if self._mark(name) not in (None, fingerprint):
            raise self._changed(source.path)
        accepted = self._mark(f"{name}:records") or 0
        if accepted != _ALL:
            for first, batch, more in _pieces(self._batches(source), accepted):
                marks = {name: fingerprint, f"{name}:records": first + length(batch) if more else _ALL}
                yield Piece(f"{name}:{source.sha256}:{first}", batch, marks)

    def _batches(self, source: InputFile) -> Iterator[Batch]:
        try:
            for batch in source.batches(needed(self._spec), known(self._spec)):
                taken = {name: self._taken(name, column, source.format) for name, column in batch.items()}
                # Before it is offered: what was read must be what was hashed.
                source.check()
                yield taken
        except BatchRefused as problem:
            raise ConfigurationError(f"{source.path}: {problem}") from None
        except pa.ArrowException:
            # Arrow's own text may quote values of the file.
            raise ConfigurationError(f"{source.path} is not a readable {source.format} file") from None
        except StateError:
            raise self._changed(source.path) from None

    def _taken(self, name: str, column: Any, form: str) -> Any:
        # Cells of JSON and CSV are read one by one: only a column that has a type can have a wrong one.
        if form in ("csv", "jsonl") or name == ROWS:
            return column
        check_type(self._spec, name, column.type)
        return clean(column)

    def _changed(self, path: Path) -> ConfigurationError:
        return ConfigurationError(
            f"{path} has changed after it was read. Part of it may be counted, so that no more of it is; put the file "
            "back as it was, and new events into a new file"
        )


def _pieces(batches: Iterator[Batch], accepted: int) -> Iterator[tuple[int, Batch, bool]]:
    """What follows the accepted records: the number of a piece's first record, the piece, and whether there are more.

    There is always a last piece, be it empty: with it the file is marked as done.
    """
    position = 0
    held: tuple[int, Batch] | None = None
    for batch in batches:
        rows = length(batch)
        for first in range(max(0, accepted - position), rows, _ROWS):
            if held is not None:
                yield *held, True
            held = position + first, {name: column[first : first + _ROWS] for name, column in batch.items()}
        position += rows
    yield *(held or (position, {ROWS: pa.nulls(0)})), False
