"""The key: 32 secret bytes on disk and in memory."""

from __future__ import annotations

import copy
import os
import pickle
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertally.errors import ConfigurationError, StateError
from evertally.noise import DiscreteLaplace, Key, Recording, ZeroNoise, simulation
from evertally.noise.key import encode_path

SECRET = bytes(range(32))


def test_generated_keys_are_private_and_differ():
    keys = [Key.generate() for _ in range(20)]
    assert all(key.private for key in keys)
    assert len({key.fingerprint() for key in keys}) == 20


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_key_has_32_bytes(length):
    with pytest.raises(ConfigurationError, match="32 bytes"):
        Key(bytes(length))


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_saved_with_mode_0600_under_any_umask_and_loaded_again(tmp_path, umask):
    path = tmp_path / "stream.key"
    before = os.umask(umask)
    try:
        Key(SECRET).save(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == SECRET
    loaded = Key.load(path)
    assert loaded.private
    assert loaded.fingerprint() == Key(SECRET).fingerprint()


def test_a_path_given_as_text_works_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Key(SECRET).save("stream.key")
    assert Key.load("stream.key").fingerprint() == Key(SECRET).fingerprint()


def test_never_overwrites(tmp_path):
    path = tmp_path / "stream.key"
    path.write_bytes(b"precious")
    with pytest.raises(StateError, match="never overwritten"):
        Key(SECRET).save(path)
    assert path.read_bytes() == b"precious"


def test_never_writes_through_a_link(tmp_path):
    target = tmp_path / "elsewhere"
    (tmp_path / "stream.key").symlink_to(target)
    with pytest.raises(StateError):
        Key(SECRET).save(tmp_path / "stream.key")
    assert not target.exists()


def test_a_missing_folder_is_a_state_error(tmp_path):
    with pytest.raises(StateError, match="cannot write"):
        Key(SECRET).save(tmp_path / "nowhere" / "stream.key")
    with pytest.raises(StateError, match="cannot read"):
        Key.load(tmp_path / "nowhere" / "stream.key")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610, 0o601])
def test_a_file_open_to_others_is_refused(tmp_path, mode):
    path = tmp_path / "stream.key"
    Key(SECRET).save(path)
    path.chmod(mode)
    with pytest.raises(StateError, match="chmod 600"):
        Key.load(path)


@pytest.mark.parametrize("content", [b"", SECRET[:31], SECRET + b"\n"])
def test_a_file_of_another_length_is_refused(tmp_path, content):
    path = tmp_path / "stream.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(StateError, match="exactly 32 bytes"):
        Key.load(path)


def test_wiped_keys_are_dead():
    key = Key(SECRET)
    buffer = key._secret
    key.wipe()
    assert bytes(buffer) == bytes(32), "the old buffer must be overwritten, not only dropped"
    for use in (
        key.fingerprint,
        lambda: key.source("x"),
        lambda: key.derive("x"),
        lambda: key.mac("x", b""),
        lambda: key.save("never-written"),
    ):
        with pytest.raises(StateError, match="wiped"):
            use()
    assert "wiped" in repr(key)
    assert not os.path.exists("never-written")


def test_derived_keys_are_keys_of_their_own():
    key = Key(SECRET)
    names = ["orders", "visits", "", "orders "]
    prints = {key.derive(name).fingerprint() for name in names} | {key.fingerprint()}
    assert len(prints) == len(names) + 1
    assert key.derive("orders").private
    assert key.derive("orders").fingerprint() == Key(SECRET).derive("orders").fingerprint()
    assert key.derive("a").derive("b").fingerprint() != key.derive("b").derive("a").fingerprint()


def test_simulation_keys_are_labelled_and_never_saved(tmp_path):
    for key in (simulation(1), simulation(1).derive("orders")):
        assert not key.private
        assert "not private" in repr(key)
        with pytest.raises(StateError, match="never saved"):
            key.save(tmp_path / "stream.key")
    assert not (tmp_path / "stream.key").exists()
    assert simulation(1).fingerprint() != simulation(2).fingerprint()


@pytest.mark.parametrize("copier", [pickle.dumps, copy.copy, copy.deepcopy])
def test_keys_are_not_pickled_or_copied(copier):
    with pytest.raises(TypeError, match="secret"):
        copier(Key(SECRET))


def test_no_text_shows_the_secret():
    key = Key(SECRET)
    texts = [repr(key), str(key), f"{key}", repr(key.source("x")), key.fingerprint()]
    for text in texts:
        for shown in (SECRET.hex(), SECRET.hex()[:8], repr(SECRET)[2:20], key._hash("noise", b"").hex()[:8]):
            assert shown not in text
    assert not hasattr(key, "__dict__")


def test_uses_of_one_key_are_separate():
    """The same message under two uses gives unrelated bytes: no published value is a subkey of the noise."""
    key = Key(SECRET)
    message = encode_path("x")
    hashes = {key._hash(use, message) for use in ("derive", "noise", "mac", "fingerprint")}
    assert len(hashes) == 4
    assert key.mac("a", b"bc") != key.mac("ab", b"c")
    assert len(key.mac("snapshot", b"data")) == 32


@given(st.lists(st.text(max_size=4) | st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
def test_paths_are_encoded_injectively(left, right):
    def plain(parts):
        return [part.encode() if isinstance(part, str) else part for part in parts]

    assert (encode_path(*left) == encode_path(*right)) == (plain(left) == plain(right))


def test_zero_noise():
    key = ZeroNoise()
    assert not key.private
    source = key.source("any", "path")
    draws = source.draws("lane", DiscreteLaplace(1000), range(5), 3)
    assert draws.shape == (5, 3)
    assert draws.dtype == "int64"
    assert not draws.any()
    assert key.mac("a", b"b") == ZeroNoise().mac("a", b"b")


def test_recording_passes_draws_on_and_notes_them():
    key = simulation(3)
    recording = Recording(key)
    assert not recording.private
    law = DiscreteLaplace(10)
    noted = recording.source("s", "c").draws("tree", law, [4, 9], 2)
    assert (noted == key.source("s", "c").draws("tree", law, [4, 9], 2)).all()
    (entry,) = recording.draws
    assert (entry.lane, entry.law, entry.nodes, entry.coordinates) == ("tree", law, (4, 9), 2)
    assert recording.source("s", "c").order(b"event") == key.source("s", "c").order(b"event")


def test_recording_of_a_real_key_is_still_not_private():
    assert not Recording(Key(SECRET)).private
