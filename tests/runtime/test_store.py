"""The store: every interruption leaves a state to go on from, and nothing but the last state is gone on from."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evertally.errors import StateError
from evertally.noise import Key
from evertally.runtime.store import RunInProgress, State, Store, fence, keep_key, obtain_key


class Interrupted(BaseException):
    """Stands for kill -9 inside one process: nobody catches it."""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    keep_key(Key.generate(), tmp_path / "s.key")
    return {
        "key_file": tmp_path / "s.key",
        "state_file": tmp_path / "s.state",
        "output_file": tmp_path / "out.jsonl",
    }


def opened(files: dict[str, Path], spec: str = "digest") -> Store:
    return Store(Key.load(files["key_file"]), **files, spec_digest=spec, stream="visits")


def started(files: dict[str, Path]) -> Store:
    store = opened(files)
    assert store.open() is None
    store.bind()
    return store


def batch(state: State, number: int) -> State:
    text = f"tick {number}\n".encode() * number
    run = RunInProgress("hash", 1, 9)
    return replace(
        state,
        released=number,
        snapshots={"a": b"A" * number, "b": os.urandom(3)},
        run=run,
        offset=state.offset + len(state.pending),
        pending=text,
    )


def test_a_state_comes_back_as_it_was(files: dict[str, Path]) -> None:
    store = started(files)
    first = store.commit(batch(State(), 1))
    second = store.commit(replace(batch(first, 2), consumed=("x", "y")))
    assert opened(files).open() == second
    assert files["output_file"].read_bytes() == b"tick 1\ntick 2\ntick 2\n"
    assert files["state_file"].stat().st_mode & 0o777 == 0o600
    assert Path(f"{files['key_file']}.bound").stat().st_mode & 0o777 == 0o600


def interruptions(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Interrupts at the count-th call of anything that moves bytes to the disk."""
    left = [count]

    def guarded(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise Interrupted
            return call(*args, **options)

        return wrapper

    for name in ("open", "fsync", "replace", "fdopen", "close"):
        monkeypatch.setattr(os, name, guarded(getattr(os, name)))


def test_every_interruption_of_a_commit_leads_to_the_same_end(files: dict[str, Path], tmp_path: Path) -> None:
    store = started(files)
    before = store.commit(batch(State(), 1))
    after = batch(before, 2)
    saved = tmp_path.parent / f"{tmp_path.name}-saved"
    shutil.copytree(tmp_path, saved)
    for count in range(1, 100):
        shutil.rmtree(tmp_path)
        shutil.copytree(saved, tmp_path)
        store = opened(files)
        assert store.open() == before
        with pytest.MonkeyPatch.context() as patch:
            interruptions(patch, count)
            try:
                store.commit(after)
                finished = True
            except Interrupted:
                finished = False
        committed = files["state_file"].read_bytes() != (saved / "s.state").read_bytes()
        assert committed or files["output_file"].read_bytes() == b"tick 1\n"  # persisted before published
        again = opened(files)
        found = again.open()
        assert found is not None
        if found.released == 1:
            assert not finished
            assert files["output_file"].read_bytes() == b"tick 1\n"
            found = again.commit(after)
        assert found.released == 2
        assert files["output_file"].read_bytes() == b"tick 1\ntick 2\ntick 2\n"
        if finished:
            break
    assert 10 < count < 99
    shutil.rmtree(saved)


def test_half_written_output_is_written_again(files: dict[str, Path]) -> None:
    store = started(files)
    state = store.commit(batch(store.commit(batch(State(), 1)), 2))
    for left in (b"tick 1\n", b"tick 1\ntick", b"tick 1\nGARBAGE\nGARBAGE GARBAGE GARBAGE\n"):
        files["output_file"].write_bytes(left)
        assert opened(files).open() == state
        assert files["output_file"].read_bytes() == b"tick 1\ntick 2\ntick 2\n"


def test_an_output_that_lost_released_lines_stops_the_stream(files: dict[str, Path]) -> None:
    store = started(files)
    store.commit(batch(store.commit(batch(State(), 1)), 2))
    files["output_file"].write_bytes(b"tick")
    with pytest.raises(StateError, match="4 bytes where the stream has written at least 7"):
        opened(files).open()
    files["output_file"].unlink()
    with pytest.raises(StateError, match="0 bytes"):
        opened(files).open()


def test_a_lost_state_stops_the_stream_unless_nothing_was_released(files: dict[str, Path]) -> None:
    store = started(files)
    assert opened(files).open() is None  # bound, interrupted before the first commit
    store.commit(batch(State(), 1))
    files["state_file"].unlink()
    with pytest.raises(StateError, match="released 1 ticks"):
        opened(files).open()


def test_a_damaged_state_stops_the_stream(files: dict[str, Path]) -> None:
    started(files).commit(batch(State(), 1))
    blob = files["state_file"].read_bytes()
    for position in (0, 20, 40, len(blob) // 2, len(blob) - 1):
        files["state_file"].write_bytes(blob[:position] + bytes([blob[position] ^ 1]) + blob[position + 1 :])
        with pytest.raises(StateError):
            opened(files).open()
    for shorter in (b"", blob[:10], blob[:-1]):
        files["state_file"].write_bytes(shorter)
        with pytest.raises(StateError):
            opened(files).open()


def test_a_state_from_a_backup_is_refused_and_so_is_a_fork(files: dict[str, Path], tmp_path: Path) -> None:
    store = started(files)
    first = store.commit(batch(State(), 1))
    old = files["state_file"].read_bytes()
    side = Path(f"{files['key_file']}.bound")
    old_side = side.read_bytes()
    second = store.commit(batch(first, 2))
    files["state_file"].write_bytes(old)
    with pytest.raises(StateError, match=r"tick 1.*knows of tick 2"):
        opened(files).open()
    # A fork: go on from the backup with the old sidecar, then meet the true one.
    side_now = side.read_bytes()
    side.write_bytes(old_side)
    fork = opened(files)
    assert fork.open() == first
    fork.commit(batch(first, 2))
    side.write_bytes(side_now)
    with pytest.raises(StateError, match="not the last state"):
        opened(files).open()
    assert second.released == 2


def test_the_sidecar_binds_the_key_to_one_spec(files: dict[str, Path]) -> None:
    started(files)
    with pytest.raises(StateError, match="bound to another spec"):
        opened(files, spec="another").open()
    side = Path(f"{files['key_file']}.bound")
    fields = json.loads(side.read_text())
    assert fields["spec"] == "digest"
    side.write_text(json.dumps({**fields, "spec": "another"}))
    with pytest.raises(StateError, match="damaged"):
        opened(files, spec="another").open()
    side.write_text("{}")
    with pytest.raises(StateError, match="damaged"):
        opened(files).open()


def test_a_missing_sidecar_or_key_stops_the_stream(files: dict[str, Path]) -> None:
    started(files).commit(batch(State(), 1))
    side = Path(f"{files['key_file']}.bound")
    content = side.read_bytes()
    side.unlink()
    with pytest.raises(StateError, match="missing beside the key"):
        opened(files).open()
    files["key_file"].unlink()
    with pytest.raises(StateError, match="has run before"):
        obtain_key(files["key_file"], files["state_file"])
    side.write_bytes(content)
    with pytest.raises(StateError, match="has run before"):
        obtain_key(files["key_file"], files["state_file"])


def test_an_output_of_somebody_else_is_not_overwritten(files: dict[str, Path]) -> None:
    files["output_file"].write_text("precious\n")
    with pytest.raises(StateError, match="holds something already"):
        opened(files).open()
    assert files["output_file"].read_text() == "precious\n"


def test_keys_are_made_once(tmp_path: Path) -> None:
    path = tmp_path / "new.key"
    key, new = obtain_key(path, tmp_path / "none.state")
    assert new
    assert not path.exists()
    (tmp_path / "new.key.new").write_bytes(b"left by a crash")
    keep_key(key, path)
    again, new = obtain_key(path, tmp_path / "none.state")
    assert not new
    assert again.fingerprint() == key.fingerprint()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(StateError):
        keep_key(Key.generate(), path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new.key", "new.key.new"]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        fence(tmp_path / "s.key"),
        pytest.raises(StateError, match="another process"),
        fence(tmp_path / "s.key"),
    ):
        pass
    with fence(tmp_path / "s.key"):
        pass
    with pytest.raises(StateError, match="cannot lock"), fence(tmp_path / "missing" / "s.key"):
        pass


def test_a_disk_that_refuses_is_reported(files: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    store = started(files)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateError, match="No space left"):
        store.commit(batch(State(), 1))
