"""Bearer tokens: hashed at rest, private file, rotation without a restart, the commands."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path

import pytest
from served import SPEC
from typer.testing import CliRunner

from evertally.cli.app import app
from evertally.errors import ConfigurationError
from evertally.service.tokens import TokenFile


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "visits.tokens")


def test_the_file_holds_hashes_and_is_private(tokens: TokenFile) -> None:
    secrets = [tokens.add(role, role) for role in ("read", "ingest", "admin")]
    text = tokens.path.read_text()
    assert stat.S_IMODE(tokens.path.stat().st_mode) == 0o600
    for secret in secrets:
        random_part = secret.split("_", 2)[2]
        assert len(random_part) == 43
        assert random_part not in text
        assert random_part[:8] not in text
    assert [tokens.identify(secret).role for secret in secrets] == ["read", "ingest", "admin"]


def test_no_other_text_is_a_token(tokens: TokenFile) -> None:
    secret = tokens.add("dashboard", "read")
    stored = json.loads(tokens.path.read_text())["tokens"][0]
    for guess in ("", secret[:-1], secret + "a", secret.upper(), stored["sha256"], stored["id"], "evt_read_", "\udcff"):
        assert tokens.identify(guess) is None
    assert tokens.identify(secret) is not None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o777])
def test_a_file_open_to_others_is_refused(tokens: TokenFile, mode: int) -> None:
    secret = tokens.add("dashboard", "read")
    tokens.path.chmod(mode)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        tokens.identify(secret)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        TokenFile(tokens.path).add("other", "read")


def test_another_process_adds_and_removes(tokens: TokenFile) -> None:
    first = tokens.add("sensor", "ingest")
    elsewhere = TokenFile(tokens.path)
    second = elsewhere.add("sensor", "ingest")
    assert tokens.identify(first).name == tokens.identify(second).name == "sensor"
    elsewhere.remove("sensor", tokens.identify(first).id)
    assert tokens.identify(first) is None
    assert tokens.identify(second).name == "sensor"
    tokens.path.unlink()
    assert tokens.identify(second) is None


def test_a_name_has_one_role(tokens: TokenFile) -> None:
    tokens.add("sensor", "ingest")
    with pytest.raises(ConfigurationError, match="another role"):
        tokens.add("sensor", "admin")
    assert len(tokens.tokens()) == 1


@pytest.mark.parametrize("name", ["", " ", "a b", "a/b", "../x", "x" * 65, "naïve", "-x", "a\n"])
def test_names_that_cannot_be_part_of_a_batch_id_are_refused(tokens: TokenFile, name: str) -> None:
    with pytest.raises(ConfigurationError, match="name"):
        tokens.add(name, "read")
    assert not tokens.path.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"format": 2, "tokens": []}',
        b'{"format": 1}',
        b'{"format": 1, "tokens": [{"id": "1"}]}',
        b'{"format": 1, "tokens": [{"id":"1","name":"a","role":"root","created":"","sha256":"' + b"0" * 64 + b'"}]}',
        b'{"format": 1, "tokens": [{"id":"1","name":"a","role":"read","created":"","sha256":"short"}]}',
        b"\xff\xfe",
    ],
)
def test_a_broken_file_lets_nobody_in(tokens: TokenFile, content: bytes) -> None:
    secret = tokens.add("dashboard", "read")
    tokens.path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="not a file of tokens"):
        tokens.identify(secret)


def test_tokens_that_are_added_at_once_are_all_kept(tokens: TokenFile) -> None:
    def add(number: int) -> None:
        TokenFile(tokens.path).add(f"sensor-{number}", "ingest")

    threads = [threading.Thread(target=add, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {token.name for token in tokens.tokens()} == {f"sensor-{number}" for number in range(12)}


def test_the_commands(tmp_path: Path) -> None:
    spec = tmp_path / "visits.toml"
    spec.write_text(SPEC)
    run = CliRunner().invoke

    added = run(app, ["token", "add", str(spec), "--role", "read", "--name", "dashboard"])
    assert added.exit_code == 0
    secret = added.stdout.strip()
    assert secret.startswith("evt_read_")

    listed = run(app, ["token", "list", str(spec)])
    identity, role, _, name = listed.stdout.split()
    assert (role, name) == ("read", "dashboard")
    assert secret.removeprefix("evt_read_") not in listed.output

    assert TokenFile(tmp_path / "visits.tokens").identify(secret).id == identity
    assert run(app, ["token", "remove", str(spec), "--name", "dashboard", "--id", "ffffffff"]).exit_code == 2
    assert run(app, ["token", "remove", str(spec), "--name", "dashboard", "--id", identity]).exit_code == 0
    assert run(app, ["token", "list", str(spec)]).stdout == ""
    assert run(app, ["token", "add", str(spec), "--role", "root", "--name", "x"]).exit_code == 2
