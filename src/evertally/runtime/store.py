"""What survives a crash: one state file, a small sidecar beside the key, and the output, kept in step.

A tick is released once. The noise is a function of the key, so a tick computed twice from the same input
gives the same bytes; computed from another input it would reveal the difference exactly. Hence the order of a
commit:

    1. the state, with the releases of the batch in it as bytes, replaces the old state (write, fsync, rename,
    fsync directory); 2. the sidecar moves to the same generation; 3. the bytes are written to the output at
    the offset that the state names, and fsynced.

Whatever is interrupted, the next start finds the bytes in the state and writes them again at the same place.
The sidecar lives with the key: a state restored from a backup is behind it and is refused, and so is a second
state that forked from the first. (A machine rolled back as a whole, sidecar included, cannot be told from
inside.)
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evertally.errors import StateError
from evertally.noise import Key

_MAGIC = b"evertally-state-1\n"
_MAC_BYTES = 32
_NO_CHAIN = "0" * 64


@dataclass(frozen=True)
class RunInProgress:
    """The input that is being read: its hash, the first tick it may enter, the last tick it is released to."""

    input_sha256: str
    first: int
    last: int


@dataclass(frozen=True)
class State:
    """All that a stream is between two ticks. Secret: the snapshots hold exact sums."""

    released: int = 0  # ticks released so far
    snapshots: Mapping[str, bytes] = field(default_factory=dict)  # by query
    consumed: tuple[str, ...] = ()  # hashes of inputs that are done
    run: RunInProgress | None = None
    offset: int = 0  # length of the output before `pending`
    pending: bytes = b""  # the releases of the last commit
    generation: int = 0
    chain: str = _NO_CHAIN  # of the generation before this one


@contextmanager
def fence(key_file: Path) -> Iterator[None]:
    """Holds the stream for this process: two live copies of one stream would release one tick twice."""
    lock = Path(f"{key_file}.lock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StateError(f"cannot lock the stream: {lock}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StateError(f"another process is running this stream (it holds {lock}); wait for it") from None
        yield
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces a file by new content so that every crash leaves either the old or the new one. Mode 0600."""
    temporary = Path(f"{path}.new")
    try:
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_directory(path)
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror}; the stream stops") from None


def sync_directory(path: Path) -> None:
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def obtain_key(key_file: Path, state_file: Path) -> tuple[Key, bool]:
    """The stream's key, and whether it is new. A key is only ever made for a stream that has never run."""
    if key_file.exists():
        key = Key.load(key_file)
        if not key.private:
            raise StateError(f"the key {key_file} is a simulation key; what it releases is not private")
        return key, False
    for left in (_sidecar_path(key_file), state_file):
        if left.exists():
            raise StateError(
                f"the key file {key_file} is missing but {left} is there: this stream has run before. "
                "Bring the key back; without it the stream cannot go on. A new stream needs new files"
            )
    return Key.generate(), True


def keep_key(key: Key, key_file: Path) -> None:
    """Saves a new key so that a crash leaves a whole key file or none."""
    temporary = Path(f"{key_file}.new")
    try:
        temporary.unlink(missing_ok=True)
        key.save(temporary)
        os.link(temporary, key_file)  # unlike a rename, never overwrites
        temporary.unlink()
        sync_directory(key_file)
    except OSError as error:
        raise StateError(f"cannot write the key file {key_file}: {error.strerror}") from None


def _sidecar_path(key_file: Path) -> Path:
    return Path(f"{key_file}.bound")


class Store:
    """The durable side of one stream. Use it only inside `fence`."""

    def __init__(
        self, key: Key, key_file: Path, state_file: Path, output_file: Path, spec_digest: str, stream: str
    ) -> None:
        self._key = key
        self._key_file = key_file
        self._state_file = state_file
        self._output_file = output_file
        self._spec_digest = spec_digest
        self._stream = stream
        self._sidecar_file = _sidecar_path(key_file)
        self._chain = _NO_CHAIN  # of the last commit

    def open(self) -> State | None:
        """The state to go on from, with the output brought up to it; None for a stream that has released nothing."""
        sidecar = self._read_sidecar()
        if not self._state_file.exists():
            if sidecar is not None and sidecar["generation"] > 0:
                raise StateError(
                    f"the state file {self._state_file} is missing, but {self._sidecar_file} says that the stream has "
                    f"released {sidecar['tick']} ticks. Bring the state back; starting over would release them twice. "
                    "A new stream needs new key, state and output files"
                )
            self._refuse_foreign_output()
            return None
        state, mac = self._read_state()
        if sidecar is None:
            raise StateError(
                f"{self._sidecar_file} is missing beside the key; bring it back, it proves that the state is current"
            )
        self._check_current(state, mac, sidecar)
        self._publish(state)
        return state

    def bind(self) -> None:
        """Binds the key to this spec. From here on the key serves no other."""
        if not self._sidecar_file.exists():
            self._write_sidecar(generation=0, tick=0, chain=_NO_CHAIN)

    def commit(self, state: State) -> State:
        """Makes a state durable, then its pending bytes public. Returns the state as it was committed."""
        state = replace(state, generation=state.generation + 1, chain=self._chain)
        blob = self._encoded(state)
        mac = blob[-_MAC_BYTES:]
        write_atomically(self._state_file, blob)
        self._chain = _link(state.chain, mac)
        self._write_sidecar(state.generation, state.released, self._chain)
        self._publish(state)
        return state

    # Output

    def _refuse_foreign_output(self) -> None:
        if self._output_file.exists() and self._output_file.stat().st_size > 0:
            raise StateError(
                f"the output {self._output_file} holds something already, and this stream has released nothing; move it"
            )

    def _publish(self, state: State) -> None:
        try:
            descriptor = os.open(self._output_file, os.O_RDWR | os.O_CREAT, 0o644)
            with os.fdopen(descriptor, "r+b") as file:
                size = os.fstat(file.fileno()).st_size
                if size < state.offset:
                    raise StateError(
                        f"the output {self._output_file} has {size} bytes where the stream has written at least "
                        f"{state.offset}. Bring it back; releases are written once"
                    )
                file.seek(state.offset)
                file.write(state.pending)
                file.flush()
                file.truncate(state.offset + len(state.pending))
                os.fsync(file.fileno())
            if state.offset == 0:
                sync_directory(self._output_file)
        except OSError as error:
            raise StateError(
                f"cannot write the output {self._output_file}: {error.strerror}; run again to continue"
            ) from None

    # State file

    def _encoded(self, state: State) -> bytes:
        run = state.run
        header = {
            "spec": self._spec_digest,
            "key": self._key.fingerprint(),
            "released": state.released,
            "consumed": list(state.consumed),
            "run": None if run is None else [run.input_sha256, run.first, run.last],
            "offset": state.offset,
            "pending": len(state.pending),
            "snapshots": [[name, len(blob)] for name, blob in state.snapshots.items()],
            "generation": state.generation,
            "chain": state.chain,
        }
        text = json.dumps(header).encode()
        body = b"".join([_MAGIC, len(text).to_bytes(8, "big"), text, state.pending, *state.snapshots.values()])
        return body + self._key.mac("runtime state", body)

    def _read_state(self) -> tuple[State, bytes]:
        try:
            blob = self._state_file.read_bytes()
        except OSError as error:
            raise StateError(f"cannot read the state file {self._state_file}: {error.strerror}") from None
        body, mac = blob[:-_MAC_BYTES], blob[-_MAC_BYTES:]
        if not body.startswith(_MAGIC):
            raise StateError(f"{self._state_file} is not a state file of this version; bring the right one back")
        if not hmac.compare_digest(self._key.mac("runtime state", body), mac):
            raise StateError(
                f"{self._state_file} is damaged or was not written with the key {self._key_file}; the stream stops"
            )
        start = len(_MAGIC) + 8
        length = int.from_bytes(body[len(_MAGIC) : start], "big")
        header = json.loads(body[start : start + length])
        if header["spec"] != self._spec_digest:
            raise StateError(f"{self._state_file} belongs to another spec; a running stream's spec cannot be changed")
        position = start + length
        pieces = []
        for size in [header["pending"], *(size for _, size in header["snapshots"])]:
            pieces.append(body[position : position + size])
            position += size
        state = State(
            released=header["released"],
            snapshots=dict(zip((name for name, _ in header["snapshots"]), pieces[1:], strict=True)),
            consumed=tuple(header["consumed"]),
            run=None if header["run"] is None else RunInProgress(*header["run"]),
            offset=header["offset"],
            pending=pieces[0],
            generation=header["generation"],
            chain=header["chain"],
        )
        return state, mac

    # Sidecar

    def _check_current(self, state: State, mac: bytes, sidecar: dict[str, Any]) -> None:
        self._chain = _link(state.chain, mac)
        generation = sidecar["generation"]
        if state.generation == generation and self._chain == sidecar["chain"]:
            return
        if state.generation == generation + 1 and state.chain == sidecar["chain"]:
            # Interrupted between the two files: the state is one ahead and continues what the sidecar knows.
            self._write_sidecar(state.generation, state.released, self._chain)
            return
        raise StateError(
            f"{self._state_file} (tick {state.released}) is not the last state of this stream: {self._sidecar_file} "
            f"knows of tick {sidecar['tick']}. It was restored from a backup or copied; bring the last state back"
        )

    def _write_sidecar(self, generation: int, tick: int, chain: str) -> None:
        fields = {
            "spec": self._spec_digest,
            "stream": self._stream,
            "generation": generation,
            "tick": tick,
            "chain": chain,
        }
        text = json.dumps({**fields, "mac": self._sidecar_mac(fields)}, indent=1) + "\n"
        write_atomically(self._sidecar_file, text.encode())

    def _read_sidecar(self) -> dict[str, Any] | None:
        if not self._sidecar_file.exists():
            return None
        try:
            fields = json.loads(self._sidecar_file.read_bytes())
            mac = fields.pop("mac")
            genuine = hmac.compare_digest(self._sidecar_mac(fields), mac)
        except OSError as error:
            raise StateError(f"cannot read {self._sidecar_file}: {error.strerror}") from None
        except (ValueError, KeyError, AttributeError, TypeError):
            genuine = False
        if not genuine:
            raise StateError(f"{self._sidecar_file} is damaged or belongs to another key; bring the right one back")
        if fields["spec"] != self._spec_digest:
            raise StateError(
                f"the key {self._key_file} is bound to another spec (stream {fields['stream']!r}). One key serves one "
                "spec: the same noise under two would cancel out. Undo the change of the spec, or start a new stream "
                "with new key, state and output files"
            )
        return dict(fields)

    def _sidecar_mac(self, fields: Mapping[str, Any]) -> str:
        return self._key.mac("runtime sidecar", json.dumps(fields, sort_keys=True).encode()).hex()


def _link(chain: str, mac: bytes) -> str:
    return hashlib.sha256(chain.encode() + mac).hexdigest()
