"""kill -9 of a service under load, then the comparison with one that nobody killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from clients import World, close, host
from crash_stream import body, events, everything, on_the_wall, plain
from driver import AIMS, Campaign, compared
from nursery import Nursery
from one_service import ROLES

from evertally.noise import Key
from evertally.runtime import load_spec
from evertally.runtime.input.batches import parse
from evertally.runtime.live import Live
from evertally.service.tokens import TokenFile
from made_keys import save_bound
from waiting import PATIENCE


def test_killed_under_load(nursery: Nursery, tmp_path: Path) -> None:
    campaign = Campaign(nursery, tmp_path, everything, seed=11)
    campaign.begin()
    for aim in (*AIMS, *AIMS, "log"):
        campaign.kill(aim)
    report = campaign.finish()
    assert report.differences == []
    assert report.kills >= 15
    assert report.ticks > 10
    assert report.batches > 20
    assert len(report.phases) > 1


def test_killed_while_ticks_close_on_the_wall_clock(nursery: Nursery, tmp_path: Path) -> None:
    campaign = Campaign(nursery, tmp_path, on_the_wall, seed=12)
    campaign.begin()
    for aim in ("log", "output", "sidecar", "start", "random"):
        campaign.kill(aim)
    report = campaign.finish()
    assert report.differences == []
    assert report.kills >= 6
    assert report.ticks > 5
    assert report.batches > 20


def test_the_command_itself(tmp_path: Path) -> None:
    """Without a nursery: started from nothing, killed, started again, stopped."""
    killed, calm = tmp_path / "killed", tmp_path / "calm"
    for folder in (killed, calm):
        folder.mkdir()
        (folder / "visits.toml").write_text(plain())
    spec = load_spec(killed / "visits.toml")
    tokens = TokenFile(spec.serve.tokens)
    world = World({role: tokens.add(role, role) for role in ROLES})
    for number in range(2):
        process = subprocess.Popen(
            [sys.executable, "-m", "evertally.cli", "serve", str(killed / "visits.toml")],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        said = process.stdout.readline()
        world.serves(host(next(word for word in said.split() if word.startswith("http"))))
        for earlier in range(number + 1):
            content, media_type = body(events(0, 8 + earlier, 1), 0)
            headers = {"Idempotency-Key": f"canary-{earlier}", "Content-Type": media_type}
            answer = json.loads(world.insist("POST", "/v1/events", "ingest", content, headers))
            assert answer["duplicate"] == (earlier < number)
        close(world, 2 * number + 2)
        if number == 0:
            process.kill()
            assert process.wait(PATIENCE) == -signal.SIGKILL
        else:
            process.send_signal(signal.SIGTERM)
            assert "everything that was acknowledged is on disk" in process.stdout.read()
            assert process.wait(PATIENCE) == 0
        process.stdout.close()
    assert world.problems == []
    save_bound(Key.load(spec.key_file), calm / "visits.toml")
    with Live(load_spec(calm / "visits.toml")) as live:
        for number in range(2):
            live.accept([(f"ingest/canary-{number}", parse(*body(events(0, 8 + number, 1), 0), live.spec))])
            live.publish(live.release_through(2 * number + 2))
    assert compared(killed, calm, spec) == []
