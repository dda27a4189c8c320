"""Who gets in: every endpoint with every role, with none, and with what is no token."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from served import ROLES, SPEC, Served, served

from evertally.service.routes_open import page_files
from spec_text import ALL, HOURLY, WARD, spec_text

READ = [
    "/v1/stream",
    "/v1/plan",
    "/v1/certificate",
    "/v1/ledger",
    "/v1/spec",
    "/v1/releases",
    "/v1/releases/latest",
    "/v1/head",
    "/v1/windows?query=all",
    "/v1/labels?query=ward",
    "/v1/exactness?query=all",
    "/metrics",
]
LIVE = "/v1/releases/live"
ADMIN = ["/v1/admin/figures", "/v1/admin/metrics"]
OPEN = ["/", "/static/{name}", "/healthz", "/readyz"]
POST = {"/v1/events": "ingest", "/v1/ticks": "admin"}
NEEDS = {**dict.fromkeys([*READ, LIVE], "read"), **dict.fromkeys(ADMIN, "admin"), **POST}


def _status(service: Served, path: str, headers: dict[str, str]) -> int:
    """Of a request that would be refused with 400 or 411 if the caller were let in, or that is harmless."""
    if path == LIVE:
        with service.client.stream("GET", path, headers=headers) as response:
            return response.status_code
    if path in POST:
        return service.client.post(path, headers=headers).status_code
    return service.client.get(path, headers=headers).status_code


def test_the_table_is_complete(service: Served) -> None:
    paths = service.client.get("/openapi.json").json()["paths"]
    needs = {path.partition("?")[0] for path in NEEDS}
    assert set(paths) == {*needs, *OPEN}
    for path, operations in paths.items():
        assert list(operations) == ["post" if path in POST else "get"]
        assert ("security" in operations[next(iter(operations))]) == (path in needs)


@pytest.mark.parametrize("twice", ["Authorization", "Idempotency-Key", "Content-Type"])
def test_who_or_what_it_is_may_not_be_said_twice(service: Served, twice: str) -> None:
    headers = {**service.bearer("ingest"), "Idempotency-Key": "one", "Content-Type": "application/x-ndjson"}
    answer = service.client.post("/v1/events", headers=[*headers.items(), (twice, headers[twice])], content=b"{}\n")
    assert (answer.status_code, twice in answer.text) == (400, True)


@pytest.mark.parametrize("path", NEEDS)
@pytest.mark.parametrize("role", ROLES)
def test_roles(service: Served, path: str, role: str) -> None:
    status = _status(service, path, service.bearer(role))
    if role not in (NEEDS[path], "admin"):
        assert status == 403
    else:
        assert status in ({200} if path not in POST else {400, 411})


@pytest.mark.parametrize("path", NEEDS)
@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer  x",
        "Bearer evt_admin_" + "A" * 43,
        "Basic YWRtaW46YWRtaW4=",
        "Bearer \xe9",
        "evt_admin_x",
    ],
)
def test_what_is_no_token(service: Served, path: str, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization.encode("latin-1")}
    assert _status(service, path, headers) == 401


@pytest.mark.parametrize("path", NEEDS)
def test_tokens_are_taken_from_the_header_only(service: Served, path: str) -> None:
    admin = service.tokens["admin"]
    service.client.cookies.clear()
    if path not in (*POST, LIVE):
        answer = service.client.get(
            path, params={"token": admin, "access_token": admin}, headers={"Cookie": f"token={admin}"}
        )
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/", "/static/index.html", "/healthz", "/readyz", "/openapi.json"])
def test_open_to_all(service: Served, path: str) -> None:
    assert service.client.get(path).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        *("/docs", "/redoc", "/v1", "/v1/", "/v1/stream/", "//healthz", "/static/", "/static/../tokens.py"),
        *(
            "/static/%2e%2e%2ftokens.py",
            "/static/tokens.py",
            "/static/charts",
            "/static/charts/../../tokens.py",
            "/static//etc/passwd",
        ),
        "/static/..%5ctokens.py",
    ],
)
def test_nothing_else_is_there(service: Served, path: str) -> None:
    answer = service.client.send(httpx.Request("GET", service.url.rstrip("/") + path))
    assert answer.status_code == 404
    assert answer.json() == {"error": "not found"}


@pytest.mark.parametrize(
    "path", [*READ, *ADMIN, LIVE, "/", "/static/index.html", "/healthz", "/readyz", "/openapi.json"]
)
def test_head_is_the_head_of_get(service: Served, path: str) -> None:
    for headers in (service.bearer("admin"), {}):
        with service.client.stream("GET", path, headers=headers) as whole:
            head = service.client.head(path, headers=headers)
            assert (head.status_code, head.content) == (whole.status_code, b"")
            assert head.headers == whole.headers


def test_other_methods_are_refused(service: Served) -> None:
    for path in (*NEEDS, "/", "/healthz"):
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", *(["HEAD"] if path in POST else [])):
            answer = service.client.request(method, path, headers=service.bearer("admin"))
            assert answer.status_code == 405
            assert answer.headers["Allow"] == ("POST" if path in POST else "GET")


def test_rotation_without_a_restart(service: Served) -> None:
    tokens = service.token_file
    old = tokens.add("dashboard", "read")
    new = tokens.add("dashboard", "read")

    def status(token: str) -> int:
        return service.client.get("/v1/stream", headers={"Authorization": f"Bearer {token}"}).status_code

    assert (status(old), status(new)) == (200, 200)
    tokens.remove("dashboard", tokens.identify(old).id)
    assert (status(old), status(new)) == (401, 200)
    tokens.remove("dashboard")
    assert (status(old), status(new)) == (401, 401)


def test_a_token_file_that_is_opened_to_others_lets_nobody_in(service: Served) -> None:
    service.token_file.path.chmod(0o644)
    try:
        assert service.get("/v1/stream").status_code == 401
    finally:
        service.token_file.path.chmod(0o600)
    assert service.get("/v1/stream").status_code == 200
    assert "chmod 600" in service.stderr()


def test_public_reading(tmp_path: Path) -> None:
    with served(tmp_path, SPEC.replace("port = 0", "port = 0\npublic = true")) as service:
        assert service.close_until(1).status_code == 200
        for path in (*READ, LIVE):
            assert _status(service, path, {}) == 200
            assert _status(service, path, {"Authorization": "Bearer evt_read_wrong"}) == 401
            assert _status(service, path, service.bearer("ingest")) == 403
        for path in (*POST, *ADMIN):
            assert _status(service, path, {}) == 401


def test_rates_are_limited_for_each_token_and_for_strangers(tmp_path: Path) -> None:
    spec = SPEC.replace("port = 0", "port = 0\nrequests_per_second = 0.05")  # so slow that one request is a burst
    with served(tmp_path, spec) as service:
        for role, path in (("read", "/v1/plan"), (None, "/v1/plan"), ("admin", "/v1/admin/figures")):
            answers = [service.get(path, role) for _ in range(4)]
            assert [answer.status_code for answer in answers] == [401 if role is None else 200, 429, 429, 429]
            assert answers[-1].headers["Retry-After"] == "1"
        assert service.client.get("/healthz").status_code == 200


def test_strangers_may_load_the_page_so_often(tmp_path: Path) -> None:
    """Files that a browser has are not sent again. Too many requests of one address are refused, for no one else."""
    files = page_files()
    slow = spec_text(ALL, WARD, clock={**HOURLY, "close": "request"}, serve={"port": 0, "requests_per_second": 0.1})
    with served(tmp_path, slow) as service:
        for path in ("/", "/static/charts/line.js", "/openapi.json"):
            first = service.client.get(path)
            assert (first.status_code, len(first.headers["etag"])) == (200, 34)
            for known in (first.headers["etag"], f'"x", W/{first.headers["etag"]}'):
                again = service.client.get(path, headers={"If-None-Match": known})
                assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
            assert service.client.get(path, headers={"If-None-Match": '"x"'}).status_code == 200
        asked = 12
        while service.client.get("/static/mark.svg").status_code != 429:
            asked += 1
            assert asked < 100 * len(files)
        assert asked >= 4 * len(files), "a page is loaded at once, whatever the limit is"
        refused = [service.client.get(path) for path in ("/", "/static/nothing", "/openapi.json")]
        assert 429 in {answer.status_code for answer in refused}
        assert {answer.status_code for answer in refused} <= {429, 200, 404}  # one may be free again meanwhile
        for path in ("/healthz", "/readyz"):
            assert service.client.get(path).status_code == 200
        assert service.client.get("/v1/stream", headers=service.bearer("read")).status_code == 200
        with httpx.Client(base_url=service.url, transport=httpx.HTTPTransport(local_address="127.0.0.2")) as other:
            assert other.get("/").status_code == 200
