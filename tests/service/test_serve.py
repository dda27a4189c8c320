"""The command: it starts, says where it is, stops cleanly, goes on where it was, and says why if it cannot."""

from __future__ import annotations

import contextlib
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from served import SPEC, Served, hour, lines, served, visits

from evertally.errors import ConfigurationError
from evertally.runtime import load_spec
from evertally.service import connections, serve
from waiting import PATIENCE


def _refused(folder: Path, spec: str, *arguments: str) -> str:
    """The one line that a serve says that does not start."""
    path = folder / "visits.toml"
    path.write_text(spec)
    command = [sys.executable, "-m", "evertally.cli", "serve", str(path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_cleanly_and_it_goes_on(tmp_path: Path, number: int) -> None:
    exact = SPEC.replace("rho = 0.5", "rho = 50000")
    service = Served(tmp_path, exact, fresh=True)
    assert service.send("one", lines(visits(5, 1))).status_code == 202
    assert service.close_until(1).status_code == 200
    assert service.send("two", lines(visits(6, 2))).status_code == 202
    first = service.get("/v1/releases").json()
    status, said = service.stop(number)
    assert status == 0
    assert said.endswith("visits: stopped; everything that was acknowledged is on disk\n")
    assert service.stderr() == ""
    with contextlib.closing(sqlite3.connect(tmp_path / "visits.state")) as state:
        # A clean end takes a snapshot: of the events only those of the open tick are left.
        assert state.execute("SELECT DISTINCT tick FROM journal").fetchall() == [(2,)]

    service.start()
    try:
        assert service.get("/v1/releases").json() == first
        assert service.send("two", lines(visits(6, 2))).json()["duplicate"] is True
        assert service.close_until(2).json() == {"released": 2}
        assert service.get("/v1/releases/latest").json()["queries"]["all"]["value"] == 11
    finally:
        service.stop()


def test_it_is_killed_and_goes_on(tmp_path: Path) -> None:
    service = Served(tmp_path, SPEC.replace("rho = 0.5", "rho = 50000"))
    assert service.send("one", lines(visits(5, 1))).status_code == 202
    service.process.kill()
    service.stop()
    service.start()
    try:
        assert service.send("one", lines(visits(5, 1))).json() == {"batch": "one", "tick": 1, "duplicate": True}
        assert service.close_until(1).json() == {"released": 1}
        assert service.get("/v1/releases/latest").json()["queries"]["all"]["value"] == 5
    finally:
        service.stop()


def test_what_it_says_at_the_start(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        assert service.first_line == f"visits: {service.url} (Ctrl-C stops it, the same command continues)\n"
        assert service.url.startswith("http://127.0.0.1:")
        _, said = service.stop()
        assert f"Tokens: {tmp_path / 'visits.tokens'}\n" in said


def test_it_stops_with_a_reason_when_the_stream_cannot_go_on(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        assert service.close_until(2).status_code == 200
        (tmp_path / "visits.jsonl").write_bytes(b"")  # somebody has emptied the output
        with contextlib.suppress(httpx.HTTPError):
            assert service.close_until(3).status_code == 503
        assert service.process.wait(PATIENCE) == 2
        assert "Bring it back; releases are written once" in service.stderr()
        assert "Traceback" not in service.stderr()


def test_what_it_refuses_to_start_with(tmp_path: Path) -> None:
    def refusal(spec: str, **options: Any) -> str:
        (tmp_path / "visits.toml").write_text(spec)
        with pytest.raises(ConfigurationError) as caught:
            serve(load_spec(tmp_path / "visits.toml"), **options)
        return str(caught.value)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert "choose another with --port" in refusal(SPEC, port=port)
        assert "choose another with --port" in _refused(tmp_path, SPEC, "--port", str(port))
    assert "travel in the clear" in refusal(SPEC, host="0.0.0.0")
    proxied = SPEC.replace("port = 0", "port = 0\nbehind_proxy = true")
    assert "cannot serve on host" in refusal(proxied, host="nowhere.invalid")
    tls = SPEC.replace("port = 0", 'port = 0\ncertificate = "tls.pem"\nprivate_key = "tls.key"')
    assert "No such file" in refusal(tls)
    for name in ("tls.pem", "tls.key"):
        (tmp_path / name).write_text("not a certificate")
    assert "not a PEM certificate" in refusal(tls)
    (tmp_path / "visits.tokens").write_text("{}")
    (tmp_path / "visits.tokens").chmod(0o644)
    assert "chmod 600" in refusal(SPEC)
    (tmp_path / "visits.tokens").chmod(0o600)
    assert "not a file of tokens" in refusal(SPEC)
    # Nothing of this has made a key or a state.
    assert not (tmp_path / "visits.key").exists()
    assert not (tmp_path / "visits.state").exists()


def test_two_services_of_one_stream(tmp_path: Path) -> None:
    with served(tmp_path):
        assert "another process is running this stream" in _refused(tmp_path, SPEC)


def test_a_state_from_a_backup_needs_a_replay(tmp_path: Path) -> None:
    service = Served(tmp_path, SPEC)
    batches = [("one", lines(visits(5, 1))), ("two", lines(visits(6, 2)))]
    try:
        assert service.send(*batches[0]).status_code == 202
        assert service.close_until(1).status_code == 200
        service.stop()
        backup = {file: file.read_bytes() for file in tmp_path.glob("visits.state*")}
        service.start()
        assert service.send(*batches[1]).status_code == 202
        assert service.close_until(2).status_code == 200
        released = service.get("/v1/releases").json()
        service.stop()
        for file in tmp_path.glob("visits.state*"):
            file.unlink()
        for file, content in backup.items():
            file.write_bytes(content)
            file.chmod(0o600)
        assert "--replay" in _refused(tmp_path, SPEC)
        service._arguments = ["--replay"]
        service.start()
        assert service.send(*batches[1]).status_code == 202
        answer = service.client.post("/v1/ticks", json={"until": hour(2)}, headers=service.bearer("admin"))
        assert answer.json() == {"released": 2}
        assert service.get("/v1/releases").json() == released
    finally:
        service.stop()


def test_a_request_that_never_comes_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol by itself: a head that arrives byte by byte, or not at all, ends the connection."""
    import asyncio

    import uvicorn

    monkeypatch.setattr(connections, "_SECONDS_FOR_A_HEAD", 1.0)

    async def app(scope: object, receive: object, send: object) -> None:
        await asyncio.sleep(1.2)  # an answer may take as long as it wants
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def exchange(port: int) -> None:
        async def closes(pieces: list[bytes]) -> bool:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                for piece in pieces:
                    writer.write(piece)
                    await asyncio.sleep(0.1)
                return await asyncio.wait_for(reader.read(), PATIENCE) == b""
            except ConnectionError:
                return True
            finally:
                writer.close()

        assert await closes([])
        assert await closes([b"G", b"E", b"T", b" ", b"/", b" ", b"H", b"T", b"T", b"P", b"/", b"1"])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\nok"), PATIENCE)).startswith(b"HTTP/1.1 200")
        assert await asyncio.wait_for(reader.read(), PATIENCE) == b""  # nothing more was asked
        writer.close()
        # A body that nobody wants to read, byte by byte, after the answer.
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\nok"), PATIENCE)).startswith(b"HTTP/1.1 200")
        ended = asyncio.create_task(reader.read())
        while not ended.done():
            writer.write(b"x")
            await asyncio.sleep(0.05)
        assert ended.exception() is not None or ended.result() == b""
        writer.close()

    async def main() -> None:
        config = uvicorn.Config(
            app,
            http=connections.PunctualProtocol,
            log_config=None,
            lifespan="off",
            ws="none",
            timeout_keep_alive=2,
        )
        server = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            task = asyncio.create_task(server._serve([listener]))
            while not server.started:
                assert not task.done()
                await asyncio.sleep(0.01)
            await exchange(listener.getsockname()[1])
            server.should_exit = True
            await task

    asyncio.run(main())
