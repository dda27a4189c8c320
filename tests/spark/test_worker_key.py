"""What workers get of a key: the same noise, seals of their own, and nothing that could say that something counts."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from by_hand import play

import evertally as et
from evertally.encode.content_order import order_key
from evertally.errors import StateError
from evertally.noise import Key, WorkerKey
from evertally.runtime import load_spec
from streams import begun, place, write

__all__ = ["place"]


def counters(key: Any, **options: Any) -> list[Any]:
    return [
        et.VectorCounter(5, guarantee=et.ZCDP(0.5), horizon=40, key=key, mechanism="tree", name="tree", **options),
        et.VectorCounter(5, guarantee=et.ZCDP(0.5), horizon=40, key=key, mechanism="bank", name="bank", **options),
        et.Counter(guarantee=et.PureDP(1.0), horizon=40, key=key, name="pure", **options),
        et.UnknownHistogram(guarantee=et.ApproxDP(2.0, 1e-5), horizon=40, key=key, name="found", **options),
    ]


def worker_of(key: Key, stream: str = "visits") -> WorkerKey:
    return WorkerKey.of(key, stream, [one._path for one in counters(key, allow_copy=True)])


def test_its_noise_is_that_of_the_key() -> None:
    key = Key.generate()
    first, second = counters(key), counters(worker_of(key), allow_copy=True)
    for tick in range(1, 4):
        row = [tick, 0, 2, 0, 9]
        inputs: list[Any] = [row, row, tick, ["tea"] * 90 + ["milk"] * tick]
        for one, other, given in zip(first, second, inputs, strict=True):
            assert one.noise_fingerprint == other.noise_fingerprint
            assert np.array_equal(list(_flat(one.step(given).value)), list(_flat(other.step(given).value)))


def _flat(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else np.ravel(value)


def test_it_draws_for_no_other_mechanism() -> None:
    key = Key.generate()
    with pytest.raises(StateError, match="this worker key has no noise for such a mechanism"):
        et.Counter(guarantee=et.PureDP(1.0), horizon=41, key=worker_of(key), name="pure", allow_copy=True).step(1)


def test_it_signs_nothing_and_makes_no_mark() -> None:
    key = Key.generate()
    worker = worker_of(key)
    assert not {"sign", "public_key", "for_workers", "save", "generate"} & set(dir(worker))
    assert worker.mac("spark genesis", b"x") != key.mac("spark genesis", b"x")
    assert worker.fingerprint() != key.fingerprint()
    assert worker.order_key == order_key(key)
    sealed = worker.seal("a place", b"sums")
    with pytest.raises(StateError):
        key.unseal("a place", sealed)
    assert worker_of(key).unseal("a place", sealed) == b"sums"
    for other in (worker_of(key, "another stream"), worker_of(Key.generate())):
        with pytest.raises(StateError, match="damaged, or belong to another key, batch or place"):
            other.unseal("a place", sealed)
    for purpose, data in (("another place", sealed), ("a place", sealed[:-1]), ("a place", b"")):
        with pytest.raises(StateError, match="damaged, or belong to another key, batch or place"):
            worker.unseal(purpose, data)


def test_seals_are_the_same_for_all_attempts() -> None:
    key = Key.generate()
    assert worker_of(key).seal("state", b"sums") == worker_of(key).seal("state", b"sums")


def test_it_is_not_pickled_nor_shown() -> None:
    worker = worker_of(Key.generate())
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="a key is a secret and is not pickled"):
            way(worker)
    assert repr(worker) == f"WorkerKey({worker.fingerprint()})"
    assert worker.order_key.hex() not in repr(worker)


def test_files(tmp_path: Path) -> None:
    worker, file = worker_of(Key.generate()), tmp_path / "visits.key.worker"
    file.write_bytes(worker.to_bytes())
    file.chmod(0o600)
    again = WorkerKey.load(file)
    assert again.fingerprint() == worker.fingerprint()
    assert again.to_bytes() == worker.to_bytes()
    for mode in (0o640, 0o604, 0o644):
        file.chmod(mode)
        with pytest.raises(StateError, match=rf"is open to others \(mode {mode:04o}\); chmod 600 it"):
            WorkerKey.load(file)
    file.chmod(0o600)
    content = json.loads(worker.to_bytes())
    for damaged in ({**content, "format": "else"}, {**content, "own": "zz"}, {**content, "sources": []}, [], 7):
        file.write_text(json.dumps(damaged))
        with pytest.raises(StateError, match="is no worker key, or is damaged"):
            WorkerKey.load(file)
    for half in (worker.to_bytes()[:-20], b"\xff" + worker.to_bytes()):
        file.write_bytes(half)
        with pytest.raises(StateError, match="is no worker key, or is damaged") as caught:
            WorkerKey.load(file)
        assert caught.value.__context__ is None  # errors of JSON have the document in them, and that is the key
    with pytest.raises(StateError, match=r"cannot read the worker key .*: No such file"):
        WorkerKey.load(tmp_path / "nowhere")


def test_the_file_of_a_stream_is_for_its_owner_and_has_no_key_in_it(place: Path) -> None:
    spec = begun(write(place / "spark", {"name": "all", "kind": "counter"}))
    settled = load_spec(spec)
    file = settled.engine.worker_key
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_bytes()
    secret = settled.key_file.read_bytes()[-32:]
    assert secret not in before
    assert secret.hex().encode() not in before
    play(spec, [([], 1)])
    assert file.read_bytes() == before
