"""What the input of a batch is told by: names, sizes and times of files, and what its owner says; and that no file is
counted twice, or looked up where it was counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from evertally.errors import ConfigurationError, StateError
from evertally.spark.failures import withheld
from evertally.spark.plans import CONSTANT, Plan, Step
from evertally.spark.root import Log, Record
from evertally.spark.sources import files_of, identities, listing, path_of


def input_of(plan: Plan, snapshot: str | None) -> Record:
    """Files of the events, files that they are looked up in, and a snapshot: that of rows which lie in none."""
    with withheld("the input"):
        own, loose = _files(plan.events)
        beside, loose_beside = _files(plan.tables)
    if (loose or loose_beside) and snapshot is None:
        part = "this data frame" if not own and not beside else "a part of this data frame"
        raise ConfigurationError(
            f"{part} is read from no files ({', '.join(sorted({*loose, *loose_beside}))}): say what it holds with "
            "snapshot=..., a text that changes when its rows do, such as the version of a table"
        )
    _check_listed(plan.events + plan.tables)
    found = {part: [told(name, snapshot) for name in names] for part, names in (("files", own), ("beside", beside))}
    # A table of a catalog is told by its version. Its files are named: they may be counted, or looked up, elsewhere.
    found["of tables"] = _of_catalogs(plan.events)
    found["beside"] += _of_catalogs(plan.tables)
    if not own and snapshot is None:
        raise ConfigurationError(
            "this data frame has no files, and no row: say what it holds with snapshot=..., a text that changes when "
            "its rows do"
        )
    # Of tables that are looked up the same version may be so by many batches.
    whose = "snapshot beside" if loose_beside and not loose and own else "snapshot"
    return {part: files for part, files in found.items() if files} | ({} if snapshot is None else {whose: snapshot})


def _check_listed(sources: list[Step]) -> None:
    """Refuses files that are not what Spark saw when the data frame was made: it would read what was there then."""
    for step in sources:
        with withheld("the input"):
            seen = listing(step)
        now = [] if seen is None else [_seen(name) for name in files_of(step) or []]
        if seen is not None and sorted(seen) != sorted(now):
            raise StateError(
                "the files of this data frame are no longer those that Spark saw when it was made: make it anew "
                "(spark.read), after all files are in their places"
            )


def _seen(name: str) -> tuple[int, int]:
    _, size, time = told(name)
    return size, time // 1_000_000


def _files(sources: list[Step]) -> tuple[list[str], list[str]]:
    """All files of some sources, and the kinds of those that lie in none."""
    names: set[str] = set()
    loose = []
    for step in sources:
        files = files_of(step)
        if files is not None:
            names.update(files)
        elif step.kind not in CONSTANT:
            loose.append(step.kind)
    return sorted(names), loose


def _of_catalogs(sources: list[Step]) -> list[list[Any]]:
    with withheld("the input"):
        return [
            [name] for name in sorted({name for step in sources if files_of(step) is None for name in identities(step)})
        ]


def tables_of(plan: Plan) -> list[list[Any]]:
    """What the tables of a live stream are told by; of those that lie in no files, nothing."""
    _check_listed(plan.tables)
    with withheld("the input"):
        names, _ = _files(plan.tables)
    return [told(name) for name in names if path_of(name) is not None]


def counted_again(now: Record, before: Record, batch: object) -> str | None:
    """Why an input must not be counted, after that of an earlier batch; None if it may."""
    twice = _names(before, "files", "snapshot") & _names(now, "files", "snapshot", "of tables")
    if twice := twice | _names(before, "of tables") & _names(now, "files"):
        return (
            f"{min(twice)} was counted already, in batch {batch!r}: its events would count twice. Give a batch what is "
            "new, and new files new names"
        )
    counted = ("files", "of tables")
    if looked_up := _names(before, *counted) & _names(now, "beside") | _names(before, "beside") & _names(now, *counted):
        return (
            f"{min(looked_up)} holds events, and events are looked up in it, here or in batch {batch!r}: one event "
            "more would change others. Look events up in something else"
        )
    return None


def _names(given: Record, *parts: str) -> set[str]:
    """What parts of an input are told by, whatever has become of them."""
    files = {str(name) for part in parts for name, *_ in given.get(part, []) if part != "snapshot"}
    return files | ({f"snapshot {given['snapshot']!r}"} if "snapshot" in parts and "snapshot" in given else set())


class Known:
    """All files that a stream has counted, and those in which it has looked events up, over its whole life.

    The log of Spark's source is not sealed, to it a link is another file, and of tables it knows nothing.
    """

    def __init__(self, log: Log) -> None:
        self._counted: dict[str, int] = {}  # and in which batch
        self._tables: set[str] = set()
        for batch in range(log.last() + 2):
            closed = log.closes(batch)
            if closed is not None:
                self.add(batch, closed["envelope"])

    def add(self, batch: int, envelope: Record) -> None:
        """Refuses files that were counted, or are looked up, elsewhere."""
        files = [str(name) for name, *_ in envelope.get("files", [])]
        tables = {str(name) for name, *_ in envelope.get("beside", [])}
        again = [name for name, times in Counter(files).items() if times > 1 or self._counted.get(name, batch) != batch]
        if again:
            raise StateError(
                f"{min(again)} comes once more, by a link or since the checkpoint is damaged: it was counted in batch "
                f"{self._counted.get(min(again), batch)}, and its events would count twice. Bring the checkpoint back; "
                "put a file without events in the place of a link"
            )
        both = (self._tables | tables) & set(files) | tables & self._counted.keys()
        if both:
            raise StateError(
                f"{min(both)} holds events, and events are looked up in it, here or in another batch: one event more "
                "would change others. Look events up in something else"
            )
        self._counted.update(dict.fromkeys(files, batch))
        self._tables |= tables


def same_events(one: Record, other: Record) -> bool:
    """Whether two batches have the same events, in whatever they are looked up."""
    return _of_events(one) == _of_events(other)


def _of_events(envelope: Record) -> Record:
    beside = ("beside", "snapshot beside")
    found = {part: said for part, said in envelope.items() if part not in beside}
    if isinstance(found.get("input"), dict):
        found["input"] = {part: said for part, said in found["input"].items() if part not in beside}
    return found


def told(name: str, snapshot: str | None = None) -> list[Any]:
    """What can be said about a file without reading it: name, size and time. Of one in a store the name, beside a
    snapshot; of one that has several names by links, that behind them."""
    path = path_of(name)
    if path is None:
        if snapshot is not None:
            return [name]
        raise ConfigurationError(
            f'sizes and versions of files of "{name.partition(":")[0]}" are not known here: give snapshot=..., a text '
            "that changes when they do"
        )
    try:
        found = Path(path).stat()
    except OSError as error:
        raise StateError(f"cannot look at {path}: {error.strerror}") from None
    return [path, found.st_size, found.st_mtime_ns]
