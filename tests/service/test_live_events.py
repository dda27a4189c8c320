"""Server-sent events: every tick once and in order, whoever comes, goes, falls behind or comes back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served import SPEC, Served, served

from evertally.runtime import load_spec
from evertally.runtime.live import Live
from evertally.runtime.pump import Pump
from evertally.runtime.state.history import History
from evertally.service import live_events
from evertally.service.live_events import EventStream, LiveEvents
from evertally.service.workers import Workers
from waiting import PATIENCE


def _releases(events: Iterator[dict[str, str]], last: int) -> list[dict[str, Any]]:
    found = []
    for event in events:
        if event.get("event") == "release":
            found.append(json.loads(event["data"]))
            assert event["id"] == str(found[-1]["tick"])
            if found[-1]["tick"] == last:
                return found
    return found


def test_listeners_who_come_and_go_miss_nothing(tmp_path: Path) -> None:
    with served(tmp_path, SPEC.replace("horizon = 48", "horizon = 600")) as service:
        seen: list[list[dict[str, Any]]] = [[] for _ in range(6)]

        def listen(number: int) -> None:
            # Each one leaves after some ticks and comes back where it was.
            while not seen[number] or seen[number][-1]["tick"] < 500:
                position = str(seen[number][-1]["tick"]) if seen[number] else "0"
                with service.listening({"Last-Event-ID": position}) as events:
                    for event in events:
                        if event.get("event") == "release":
                            seen[number].append(json.loads(event["data"]))
                            if seen[number][-1]["tick"] % (7 + 20 * number) == 0 or seen[number][-1]["tick"] == 500:
                                break

        listeners = [threading.Thread(target=listen, args=(number,)) for number in range(6)]
        for listener in listeners:
            listener.start()
        for hours in (1, 2, 3, 10, 11, 100, 101, 102, 300, 499, 500):
            until = {"until": f"2013-01-{1 + hours // 24:02d}T{hours % 24:02d}:00:00Z"}
            assert service.client.post("/v1/ticks", json=until, headers=service.bearer("admin")).status_code == 200
        for listener in listeners:
            listener.join(PATIENCE)
        kept = service.get("/v1/releases", limit=1000).json()["releases"]
        for releases in seen:
            assert releases == kept


def test_where_a_listener_begins(service: Served) -> None:
    with service.listening({"Last-Event-ID": "1"}, after=2) as events:
        assert [release["tick"] for release in _releases(events, 3)] == [2, 3]
    with service.listening(after=2) as events:
        assert [release["tick"] for release in _releases(events, 3)] == [3]
    with service.listening({"Last-Event-ID": ""}) as events:
        assert next(events) == {"retry": "2000"}
        service.close_until(4)
        assert [release["tick"] for release in _releases(events, 4)] == [4]


@pytest.mark.parametrize("position", ["x", "-1", "1.5", "9" * 17, "1 2"])
def test_positions_are_checked(service: Served, position: str) -> None:
    headers = {**service.bearer("read"), "Last-Event-ID": position}
    assert service.client.get("/v1/releases/live", headers=headers).status_code == 400


def test_a_stopping_service_ends_its_answers(tmp_path: Path) -> None:
    with served(tmp_path) as service, service.listening(after=0) as events:
        assert next(events) == {"retry": "2000"}
        service.process.terminate()
        assert list(events) == []
        assert service.process.wait(PATIENCE) == 0
        assert service.stderr() == ""  # otherwise it has waited for them, and broken them off


# -- the parts, without a server ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _pump(folder: Path, spec_text: str = SPEC) -> Iterator[tuple[Pump, History, Any]]:
    path = folder / "visits.toml"
    path.write_text(spec_text)
    spec = load_spec(path)
    live = Live(spec)
    pump = Pump(live)
    pump.start()
    try:
        yield pump, History(live.spec, lambda: pump.published, live.proof), live.spec
    finally:
        pump.stop()


def test_a_quiet_stream_gives_signs_of_life(tmp_path: Path) -> None:
    async def listen(events: LiveEvents) -> list[bytes]:
        events.open()
        frames = events._events(None)
        first = [await anext(frames) for _ in range(4)]
        events.close()
        assert [frame async for frame in frames] == []
        return first

    with _pump(tmp_path) as (pump, history, spec):
        workers = Workers()
        events = LiveEvents(spec, pump, history, workers, heartbeat=0.01)
        assert asyncio.run(listen(events)) == [b"retry: 2000\n\n"] + [b": still here\n\n"] * 3
        workers.close()


def test_places_for_listeners_are_limited(tmp_path: Path) -> None:
    async def sent(message: Any) -> None:
        pass

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def come_and_go(events: LiveEvents) -> None:
        answers = [events.answer(0), events.answer(0)]
        assert None not in answers
        assert events.answer(0) is None
        await answers[0]({}, gone, sent)
        assert events.answer(0) is not None
        assert events.answer(0) is None

    with _pump(tmp_path) as (pump, history, spec):
        workers = Workers()
        asyncio.run(come_and_go(LiveEvents(spec, pump, history, workers, most=2)))
        workers.close()


def test_ticks_that_the_log_has_thinned_out_are_passed_over(tmp_path: Path) -> None:
    thinned = SPEC.replace("horizon = 48", "horizon = 5000")
    thinned += "\n[retention]\nfull = 10\nevery = 1500\n"

    async def listen(events: LiveEvents, last: int) -> list[int]:
        ticks = []
        async for frame in events._events(0):
            if frame.startswith(b"event: release"):
                ticks.append(int(frame.split(b"\n")[1].removeprefix(b"id: ")))
                if ticks[-1] == last:
                    return ticks
        return ticks

    with _pump(tmp_path, thinned) as (pump, history, spec):
        released = pump.close_until(spec.clock.end_of(4000)).result(PATIENCE)
        workers = Workers()
        events = LiveEvents(spec, pump, history, workers)
        kept = history.ticks(1, released, limit=5000)
        assert kept == [1500, 3000, *range(kept[2], released + 1)]
        assert len(kept) < 300, "the log is thinned when a snapshot is taken, at the end of a transaction"
        assert asyncio.run(listen(events, released)) == kept
        workers.close()


def test_listeners_at_different_places_share_frames_without_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_events, "_PAGE_BYTES", 1000)  # pages of a few ticks, which do not meet each other

    async def look(events: LiveEvents, positions: list[tuple[int, int]]) -> None:
        for position, published in positions:
            ticks = [tick for tick, _ in await events._next(position, published)]
            assert ticks == list(range(position + 1, position + 1 + len(ticks)))
            assert ticks
            assert len(events._frames) <= 32

    with _pump(tmp_path, SPEC.replace("horizon = 48", "horizon = 200")) as (pump, history, spec):
        pump.close_until(spec.clock.end_of(120)).result(PATIENCE)
        workers = Workers()
        place = st.tuples(st.integers(0, 118), st.integers(1, 120)).filter(lambda pair: pair[0] < pair[1])

        @settings(max_examples=60, deadline=None)
        @given(st.lists(place, max_size=12))
        def check(positions: list[tuple[int, int]]) -> None:
            positions.sort(key=lambda pair: pair[1])  # what is published only grows
            asyncio.run(look(LiveEvents(spec, pump, history, workers), positions))

        check()
        workers.close()


def test_a_listener_who_takes_nothing_is_dropped() -> None:
    async def endless() -> Any:
        while True:
            yield b"x"

    async def stuck(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.sleep(PATIENCE)

    async def silent() -> dict[str, str]:
        await asyncio.sleep(PATIENCE)
        return {"type": "http.disconnect"}

    ended: list[bool] = []
    answer = EventStream(endless(), lambda: ended.append(True), patience=0.05)
    started = time.monotonic()
    asyncio.run(answer({}, silent, stuck))
    assert time.monotonic() - started < PATIENCE
    assert ended == [True]


def test_a_slow_listener_holds_up_nobody(tmp_path: Path) -> None:
    """It reads nothing for a while; the others are served meanwhile, and it then gets everything in order."""
    many = SPEC.replace('categories = ["north", "south"]', f"categories = {json.dumps([f'w{n}' for n in range(2000)])}")
    many = many.replace("horizon = 48", "horizon = 400").replace("[output]\nfile", "[output]\n# file")
    with served(tmp_path, many) as service:
        url = httpx.URL(service.url)
        bearer = f"Authorization: Bearer {service.tokens['read']}\r\n"
        with socket.create_connection((url.host, url.port), timeout=PATIENCE) as slow:
            slow.sendall(f"GET /v1/releases/live?after=0 HTTP/1.1\r\nHost: localhost\r\n{bearer}\r\n".encode())
            until = {"until": "2013-01-13T12:00:00Z"}
            closed = service.client.post("/v1/ticks", json=until, headers=service.bearer("admin"))
            assert closed.json() == {"released": 300}
            with service.listening(after=290) as events:
                assert [release["tick"] for release in _releases(events, 300)] == list(range(291, 301))
            received = b""
            while b"\nid: 300\n" not in received[-(2**18) :] or not received.endswith(b"\r\n"):
                received += slow.recv(2**20)
        ticks = [int(part.split(b"\n")[0]) for part in received.split(b"\nid: ")[1:]]
        assert ticks == list(range(1, 301))
        assert len(received) > 7e6


def test_a_page_is_bounded_in_bytes(tmp_path: Path) -> None:
    many = SPEC.replace('categories = ["north", "south"]', f"categories = {json.dumps([f'w{n}' for n in range(2000)])}")
    with _pump(tmp_path, many) as (pump, history, spec):
        pump.close_until(spec.clock.end_of(48)).result(PATIENCE)
        workers = Workers()
        pages, position = [], 0
        while position < 48:
            pages.append(LiveEvents(spec, pump, history, workers)._load(position, 48))
            position = pages[-1][-1][0]
        workers.close()
    assert [tick for page in pages for tick, _ in page] == list(range(1, 49))
    sizes = [sum(len(one) for _, one in page) for page in pages]
    assert len(pages) > 1
    assert max(sizes) < live_events._PAGE_BYTES + max(len(one) for page in pages for _, one in page)


def test_a_listener_whose_token_is_removed_is_dropped_at_the_next_tick(tmp_path: Path) -> None:
    with served(tmp_path) as service, service.listening() as events:
        service.close_until(1)
        assert [one["tick"] for one in _releases(events, 1)] == [1]
        assert service.token_file.remove("read") == 1
        service.close_until(3)
        assert _releases(events, 3) == []  # the answer has ended, without a tick
        assert service.get("/v1/stream").status_code == 401
        assert service.get("/v1/stream", "admin").json()["released"] == 3
