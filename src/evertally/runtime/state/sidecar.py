"""What lives beside the key: a small file that knows how far the stream has come.

The noise is a function of the key. A tick computed twice from the same input gives the same bytes; computed from
another input it would reveal the difference exactly. The store alone cannot tell that it is yesterday's copy, so the
sidecar keeps a generation, the last released tick and a hash chain over all ticks, and is made durable before anything
is published. A machine that is rolled back as a whole, sidecar included, cannot be told from inside.
"""

from __future__ import annotations

import dataclasses
import hmac
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from evertally.errors import StateError
from evertally.noise import Key
from evertally.runtime.state.database import Unreadable
from evertally.secret import Secret

NO_CHAIN = "0" * 64


class AnotherSpec(StateError):
    """Key or state belong to another spec."""


@dataclass(frozen=True)
class Mark:
    """How far a stream has come: the number of times it was opened, its last tick, the hash of all it released.

    What is settled once is here too, for a state that is rebuilt by replay: whether payloads keep rows, the tick since
    which the public log is a chain. `ended`: for good, by its operator.
    """

    generation: int = 0
    tick: int = 0
    chain: str = NO_CHAIN
    rows: bool = False
    since: int | None = None  # of versions before there was a chain: nobody knows yet
    ended: bool = False


_MARK = tuple(field.name for field in dataclasses.fields(Mark))


class Sidecar(Secret):
    """The file beside the key that binds it to one spec and keeps the last mark."""

    def __init__(
        self, key: Key, key_file: Path, spec_digest: str, stream: str, parts: Mapping[str, str] | None = None
    ) -> None:
        self.path = sidecar_path(key_file)
        self._key, self._key_file, self._spec_digest, self._stream = key, key_file, spec_digest, stream
        self._parts = dict(parts or {})

    def read(self) -> Mark | None:
        """The last mark, None if the key has never been used."""
        if not self.path.exists():
            return None
        try:
            fields = json.loads(self.path.read_bytes())
            mac = fields.pop("mac")
            genuine = hmac.compare_digest(self._mac(fields), mac)
        except OSError as error:
            raise StateError(f"cannot read {self.path}: {error.strerror}") from None
        except (ValueError, KeyError, AttributeError, TypeError):
            genuine = False
        if not genuine:
            raise Unreadable(f"{self.path} is damaged or belongs to another key; bring the right one back")
        if fields["spec"] != self._spec_digest:
            raise AnotherSpec(
                f"the key {self._key_file} is bound to another spec (stream {fields['stream']!r}"
                f"{_changed(fields.get('parts'), self._parts)}). One key serves one spec: the same noise under two "
                "would cancel out. Undo the change of the spec, or start a new stream with new key, state and output "
                "files"
            )
        return Mark(**{name: fields[name] for name in _MARK if name in fields})

    def write(self, mark: Mark) -> None:
        """Makes a mark durable."""
        fields = {"spec": self._spec_digest, "stream": self._stream, "parts": self._parts, **asdict(mark)}
        text = json.dumps({**fields, "mac": self._mac(fields)}, indent=1) + "\n"
        write_atomically(self.path, text.encode())

    def _mac(self, fields: dict[str, object]) -> str:
        return self._key.mac("runtime sidecar", json.dumps(fields, sort_keys=True).encode()).hex()


def _changed(before: Mapping[str, str] | None, now: Mapping[str, str]) -> str:
    """What is not as it was when the key was bound; nothing, where an earlier version has bound it.

    >>> _changed({"[clock]": "a", "query 'x'": "b"}, {"[clock]": "c", "query 'y'": "b"})
    "; changed: [clock], query 'x' (gone), query 'y' (new)"
    """
    if not before:
        return ""
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    how = {name: " (gone)" if name not in now else " (new)" if name not in before else "" for name in names}
    return "; changed: " + ", ".join(name + how[name] for name in names)


def sidecar_path(key_file: Path) -> Path:
    return Path(f"{key_file}.bound")


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces a file by new content so that every crash leaves either the old or the new one. Mode 0600."""
    try:
        replace_file(path, Path(f"{path}.new"), data, 0o600)
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror}; the stream stops") from None


def replace_file(path: Path, temporary: Path, data: bytes, mode: int) -> None:
    """Writes beside a file, and puts it in its place as a whole."""
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_directory(path)


def sync_directory(path: Path) -> None:
    """Makes durable that there is something under this name."""
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
