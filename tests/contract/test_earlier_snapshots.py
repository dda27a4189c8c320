"""Streams that an earlier version began go on with the noise that they began with.

The file holds snapshots of statistics with `mechanism="auto"` as they were taken before "auto" took the optimal
counters, with what that version released after them. A version that chose again would publish the same data under
fresh noise.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import evertally as et

SNAPSHOTS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "earlier_snapshots.json").read_text())
# Streams without a horizon with mechanism="epoch-hybrid", which an earlier version had.
GONE: dict[str, str] = json.loads((Path(__file__).parent / "gone_snapshots.json").read_text())


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_stream_goes_on_with_the_noise_that_it_began_with(name: str) -> None:
    kept = SNAPSHOTS[name]
    mechanism = et.restore(base64.b64decode(kept["snapshot"]), key=et.simulation(2026))
    assert mechanism.mechanism == kept["mechanism"]
    released = [mechanism.step(x).value for x in kept["inputs"]]
    assert json.loads(json.dumps(released)) == kept["released"]


@pytest.mark.parametrize("name", GONE)
def test_a_stream_whose_process_is_gone_is_refused_and_sent_back(name: str) -> None:
    with pytest.raises(
        et.ConfigurationError, match=r"'epoch-hybrid' any more: continue .* with the version that began it"
    ):
        et.restore(base64.b64decode(GONE[name]), key=et.simulation(1))


# Streams in which users are replaced, by the version that charged 2w replaced events (users-and-domains 1.2).
REPLACED: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "replaced_users_snapshots.json").read_text())


@pytest.mark.parametrize("name", REPLACED)
def test_a_stream_with_replaced_users_goes_on_with_the_larger_charge_that_it_began_with(name: str) -> None:
    kept, key = REPLACED[name], et.simulation(2026)
    mechanism = et.restore(base64.b64decode(kept["snapshot"]), key=key)
    assert (mechanism.mechanism, mechanism.charging) == (kept["mechanism"], "events")
    assert mechanism.sensitivity.l2_squared == kept["l2_squared"]
    released = []
    for events, users in kept["inputs"]:
        value = mechanism.step_events(events, users=users).value
        released.append(value.tolist() if hasattr(value, "tolist") else value)
        mechanism = et.restore(mechanism.snapshot(), key=key, allow_copy=True)  # and so does what this version keeps
    assert json.loads(json.dumps(released)) == kept["released"]


def test_a_new_stream_with_replaced_users_pays_less_from_other_addresses() -> None:
    options: dict[str, Any] = {"unit": "user", "max_events_per_user": 2, "neighbours": "replace"}
    new, old = (
        et.Counter(guarantee=et.ZCDP(0.5), horizon=20, key=et.simulation(1), charging=how, **options)
        for how in ("users", "events")
    )
    assert (new.sensitivity.l2_squared, old.sensitivity.l2_squared) == (8, 16)
    assert new.noise_fingerprint != old.noise_fingerprint
    with pytest.raises(et.ConfigurationError, match="an earlier version began"):
        et.Counter(guarantee=et.ZCDP(0.5), horizon=20, key=et.simulation(1), charging="half", **options)


# Streams whose events are cut, by the version with the first secret order (additions 13).
CUT: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "cut_snapshots.json").read_text())


@pytest.mark.parametrize("name", CUT)
def test_a_stream_goes_on_with_the_secret_order_that_it_began_with(name: str) -> None:
    kept, key = CUT[name], et.simulation(2026)
    mechanism = et.restore(base64.b64decode(kept["snapshot"]), key=key)
    assert mechanism.cutting == 1
    released = []
    for events in kept["inputs"]:
        value = mechanism.step_events(events).value
        released.append(value.tolist() if hasattr(value, "tolist") else value)
        mechanism = et.restore(mechanism.snapshot(), key=key, allow_copy=True)  # and so does what this version keeps
        assert mechanism.cutting == 1
    assert json.loads(json.dumps(released)) == kept["released"]


def test_a_new_stream_whose_events_may_be_cut_has_noise_of_its_own() -> None:
    """The order is part of what is released: the same noise under another order would publish the difference."""

    def fingerprint(most: int, cutting: int) -> str:
        options: dict[str, Any] = {"guarantee": et.ZCDP(0.5), "horizon": 20, "key": et.simulation(1)}
        return et.Histogram(
            categories=["a", "b", "c"], max_per_event=most, cutting=cutting, **options
        ).noise_fingerprint

    assert fingerprint(2, 1) != fingerprint(2, 2)
    assert fingerprint(3, 1) == fingerprint(3, 2)  # nothing is ever cut: the same stream as ever
    with pytest.raises(et.ConfigurationError, match="an earlier version began"):
        fingerprint(2, 3)
