"""The image of the container file, made and used: `unshare --mount python tests/deploy/smoke.py FOLDER [--packages]`.

Prints what it found as JSON. `--packages` installs the pinned packages as the file says; otherwise those of the tests
are seen. Needs root, for mounts and another user.
"""

from __future__ import annotations

import http.client
import json
import signal
import socket
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # what all tests share

from containerfile import Image, only, steps

from spec_text import ALL, spec_text

PLACE = "/var/lib/evertally"


def main(folder: Path, packages: bool) -> None:
    image = Image(folder / "root")
    image.build(packages=packages)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    image.path("/etc/evertally/stream.toml").write_text(spec(port))
    last = steps()[2]
    image.close(only(last, "VOLUME").listed)
    print(json.dumps(used(image, port)))


def spec(port: int) -> str:
    return spec_text(
        ALL,
        clock={"column": "time", "start": "2013-01-01T00:00:00Z", "tick": "1h", "close": "request"},
        key={"file": "/var/lib/evertally-key/visits.key"},
        state={"file": f"{PLACE}/visits.state"},
        output={"file": f"{PLACE}/visits.jsonl"},
        serve={"port": port, "tokens": f"{PLACE}/visits.tokens"},
    )


def used(image: Image, port: int) -> dict[str, object]:
    last = steps()[2]
    begin = only(last, "ENTRYPOINT").listed
    made = image.start([*begin, "token", "add", "/etc/evertally/stream.toml", "--role", "admin", "--name", "me"])
    token = next(word for word in made.communicate()[0].split() if word.startswith("evt_admin_"))
    service = image.start([*begin, *only(last, "CMD").listed])
    assert service.stdout is not None
    found: dict[str, object] = {"said": service.stdout.readline()}
    found["health"] = health(image, port)
    found["taken"] = ask(port, token, "/v1/events", b'{"time": "2013-01-01T00:30:00Z"}\n')
    found["closed"] = ask(port, token, "/v1/ticks", b'{"until": "2013-01-01T02:00:00Z"}')
    found["writable"] = writable(image)
    found["user"] = Path(f"/proc/{service.pid}/status").read_text().split("Uid:")[1].split()[0]
    service.send_signal(getattr(signal, only(last, "STOPSIGNAL").rest))
    found["last"], found["status"] = service.stdout.read(), service.wait()
    found["released"] = len((image.path(PLACE) / "visits.jsonl").read_text().splitlines())
    found["health afterwards"] = health(image, port)
    return found


def ask(port: int, token: str, path: str, content: bytes) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "one", "Content-Type": "application/x-ndjson"}
    if path == "/v1/ticks":
        headers["Content-Type"] = "application/json"
    connection.request("POST", path, content, headers)
    return connection.getresponse().status


def health(image: Image, port: int) -> int:
    """The exit status of the health check."""
    check = image.start(only(steps()[2], "HEALTHCHECK").listed, EVERTALLY_HEALTH=f"http://127.0.0.1:{port}/healthz")
    check.communicate()
    return check.returncode


def writable(image: Image) -> list[str]:
    """Which folders its user can write."""
    find = "find / -path /proc -prune -o -type d -writable -print 2> /dev/null"
    return image.start(["/bin/sh", "-c", find]).communicate()[0].splitlines()


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--packages" in sys.argv)
