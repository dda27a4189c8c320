"""What somebody else does to the files of a stream, and what the command line says to it; not a test."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

from typer.testing import CliRunner

from evertally.cli.app import app


def change(state: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(state)) as connection:
        connection.execute(statement, values)
        connection.commit()


def forge_release(state: Path, tick: int) -> None:
    """A million more, in the form that the store has."""
    with closing(sqlite3.connect(state)) as connection:
        (kept,) = connection.execute("SELECT payload FROM release WHERE tick = ? AND query = 'all'", (tick,)).fetchone()
        content = json.loads(zlib.decompress(kept))
        content["value"] += 1_000_000
        forged = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 1)
        connection.execute("UPDATE release SET payload = ? WHERE tick = ? AND query = 'all'", (forged, tick))
        connection.commit()


def command(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.exit_code, done.output
