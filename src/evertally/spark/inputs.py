"""What the input of a batch is told by: names, sizes and times of files, and what its owner says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from evertally.errors import ConfigurationError, StateError
from evertally.spark.failures import withheld
from evertally.spark.plans import CONSTANT, files_of, sources_of
from evertally.spark.root import Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def input_of(events: DataFrame, clock: str | None, snapshot: str | None) -> Record:
    """Files of the events, files that they are looked up in, and a snapshot: that of rows which lie in none."""
    with withheld("the input"):
        sources = sources_of(events, clock)
        own, beside = ([files_of(step) for step in steps] for steps in (sources.events, sources.beside))
        loose = [
            step.kind
            for step, files in zip(sources.events + sources.beside, own + beside, strict=True)
            if files is None and step.kind not in CONSTANT
        ]
    if loose and snapshot is None:
        part = "this data frame" if not any(own + beside) else "a part of this data frame"
        raise ConfigurationError(
            f"{part} is read from no files ({', '.join(sorted(set(loose)))}): say what it holds with snapshot=..., a "
            "text that changes when its rows do, such as the version of a table"
        )
    found = {
        part: [told(name, snapshot) for name in sorted({name for names in files for name in names or []})]
        for part, files in (("files", own), ("beside", beside))
    }
    if not found["files"] and snapshot is None:
        raise ConfigurationError(
            "this data frame has no files, and no row: say what it holds with snapshot=..., a text that changes when "
            "its rows do"
        )
    return {part: files for part, files in found.items() if files} | (
        {} if snapshot is None else {"snapshot": snapshot}
    )


def names_of(given: Record) -> set[str]:
    """What the events of an input are told by, whatever has become of them."""
    files = {str(name) for name, *_ in given.get("files", [])}
    return files | ({f"snapshot {given['snapshot']!r}"} if "snapshot" in given else set())


def told(name: str, snapshot: str | None = None) -> list[Any]:
    """What can be said about a file without reading it: name, size and time. Of one in a store the name, beside a
    snapshot; of one that has several names by links, that behind them."""
    address = urlparse(name)
    if address.scheme not in ("", "file"):
        if snapshot is not None:
            return [name]
        raise ConfigurationError(
            f'sizes and versions of files of "{address.scheme}" are not known here: give snapshot=..., a text that '
            "changes when they do"
        )
    path = Path(unquote(address.path))
    try:
        found = path.stat()
    except OSError as error:
        raise StateError(f"cannot look at {path}: {error.strerror}") from None
    return [os.path.realpath(path), found.st_size, found.st_mtime_ns]
