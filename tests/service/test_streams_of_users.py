"""Streams that protect users, against a live service: what it says about them, and what the page is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from served import hour, lines, served

from spec_text import HOURLY, spec_text

ACTIVE = {"name": "active", "kind": "active_users", "windows": ["1h", "1d"]}
DISTINCT = {"name": "people", "kind": "distinct_users"}
COHORTS = {"name": "days", "kind": "retention", "period": "2h", "ages": 2}
PREFIXES = {
    "name": "begins",
    "kind": "heavy_prefixes",
    "column": "ward",
    "symbols": 2,
    "width": 256,
    "threshold": 2,
    "show": "prefixes",
    "max_labels_per_user": 1,
}


def spec(stream: dict[str, Any], *queries: dict[str, Any]) -> str:
    return spec_text(
        *queries,
        stream={"name": "visits", "horizon": 48, "user_column": "who", **stream},
        guarantee={"rho": 1e9},  # the noise of one user is zero then, all but surely
        clock={**HOURLY, "close": "request"},
        serve={"port": 0},
    )


def test_users_without_a_cap(tmp_path: Path) -> None:
    with served(tmp_path, spec({"unit": "user"}, ACTIVE, DISTINCT, COHORTS, PREFIXES)) as service:
        came = [{"time": hour(0), "who": who, "ward": "ab"} for who in ("ann", "bob", "ann", None)]
        assert service.send("one", lines([*came, {"time": hour(2), "who": "ann", "ward": "x"}])).status_code == 202
        assert service.close_until(4).json() == {"released": 4}
        released = service.get("/v1/releases/latest").json()["queries"]
        assert released["active"]["value"] == [0, 2]
        assert released["people"]["value"] == 2
        assert released["days"]["category"] == ["cohort 1, age 0", "cohort 1, age 1", "cohort 2, age 0"]
        assert released["days"]["value"] == [2, 1, 0]

        about = service.get("/v1/stream").json()
        assert about["unit"] == "user"
        assert "Of each person this is counted: active: whether there was an event" in about["plain_words"]
        cards = {query["name"]: query["card"] for query in about["queries"]}
        assert (cards["active"]["view"], cards["active"]["names"]) == ("figure", ["last hour", "last day"])
        assert (cards["people"]["view"], cards["people"]["names"]) == ("figure", None)
        assert (cards["days"]["view"], cards["days"]["period"]) == ("triangle", {"ticks": 2, "words": "2 hours"})
        assert cards["days"]["words"].endswith("by age in periods of 2 hours")
        assert cards["begins"]["nested"] is True

        answer = service.get("/v1/spec").json()
        assert (answer["unit"], answer["max_events_per_user"], answer["user_column"]) == ("user", None, "who")
        certificate = service.get("/v1/certificate").json()
        assert certificate["unit"] == {"protects": "user", "max_events_per_user": None, "user_column": "who"}
        assert certificate["queries"][1]["protects"] == "one user: the first event"


def test_users_in_blocks_of_time(tmp_path: Path) -> None:
    with served(tmp_path, spec({"unit": "user-period", "period": "1d"}, DISTINCT)) as service:
        answers = {path: service.get(f"/v1/{path}") for path in ("stream", "spec", "certificate", "plan", "ledger")}
        assert {path: answer.status_code for path, answer in answers.items()} == dict.fromkeys(answers, 200)
        about, written, certificate = (answers[path].json() for path in ("stream", "spec", "certificate"))
        assert about["unit"] == written["unit"] == certificate["unit"]["protects"] == "user-period"
        assert written["period"] == certificate["unit"]["period"] == 24
        assert "in any one block of 24 ticks" in about["plain_words"]
        for query in certificate["queries"]:
            assert query["protects"].startswith("one user in any one block of 24 ticks")
