"""The OpenAPI document against a real server: every answer is as documented, whatever is sent, and none is a 500."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from served import SPEC, Served, lines, served, visits

from waiting import PATIENCE

# A schema of JSON cannot say what an Arrow stream is; a wrong record is not refused, on purpose; and a time to close at
# must be a tick boundary.
_EXCLUDED = {
    "/v1/events": [positive_data_acceptance, negative_data_rejection],
    "/v1/ticks": [positive_data_acceptance],
}


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.arrow.stream")
def _as_it_is(ctx: object, value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module", params=["running", "ended"])
def documented(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A stream in its middle, and one after its end: there the live releases come to an end too."""
    spec = SPEC.replace("port = 0", "port = 0\nrequests_per_second = 100000\nmax_batch_bytes = 5000")
    with served(tmp_path_factory.mktemp("documented"), spec) as service:
        assert service.send("one", lines(visits(3))).status_code == 202
        assert service.close_until(48 if request.param == "ended" else 7).status_code == 200
        service.ended = request.param == "ended"
        yield service


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_documented(documented: Served, mode: GenerationMode) -> None:
    document = documented.client.get("/openapi.json").json()
    for operations in document["paths"].values():
        for operation in operations.values():
            operation.pop("security", None)  # every case has a token here; for those without see test_access
    schema = schemathesis.openapi.from_dict(document)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == 21
    for operation in operations:
        if operation.path == "/v1/releases/live" and not documented.ended:
            continue  # never ends; see test_live_events
        parameters = [*operation.body, *operation.query, *operation.headers]
        if mode == GenerationMode.NEGATIVE and not parameters:
            continue  # there is nothing to get wrong

        _check(documented, operation, mode, examples=50 if parameters else 2)
    assert documented.stderr() == ""


def _check(service: Served, operation: Any, mode: GenerationMode, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode))
    def check(case: Case) -> None:
        response = case.call_and_validate(
            service.url,
            headers=service.bearer("admin"),
            timeout=PATIENCE,
            excluded_checks=_EXCLUDED.get(operation.path, []),
        )
        assert response.status_code < 500

    check()
