"""What the demo does: starts the service, replays the year through it, leaves a report.

Nothing here is special to a demo but the speed: the flights go in over HTTP, tick after tick is closed, the page shows
what is released. Anybody could have written the spec.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import webbrowser
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from evertally.cli.demo.client import Client, service
from evertally.cli.demo.flights import Exact, departures, in_days
from evertally.cli.demo.picture import draw
from evertally.cli.demo.report import write_report
from evertally.runtime import StreamSpec, certificate, load_spec
from evertally.service import TokenFile

EDGES = [*range(-30, 60, 2), *range(60, 180, 10), *range(180, 601, 60)]  # minutes
CARRIERS = ("UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX", "FL", "AS", "F9", "YV", "HA", "OO")
SPEC = f"""\
# A year of departures from New York. `evertally plan departures.toml` explains it.

[stream]
name = "departures"
title = "Departures from New York"
noun = "departure"
neighbours = "add_remove"     # what is hidden: whether one departure took place
user_column = "plane"         # whose an event is, for those who count different ones

[guarantee]                   # for the whole year and all queries together
epsilon = 1.0
delta = 1e-6

[clock]                       # declared, never read off the data; 05:00 UTC is midnight in New York
column = "time"
start = 2013-01-01T05:00:00Z
tick = "6h"
end = 2014-01-01T05:00:00Z
close = "request"             # this is a replay: ticks are closed by whoever replays. "wall" for life as it happens

[key]
file = "secret/departures.key" # made at the first start. Never beside the state: one copy must not hold both

[state]
file = "departures.state"     # sealed with the key

[output]
file = "releases.jsonl"

[serve]
port = 0                      # any free one
public = true                 # releases may be read by everybody

[[query]]
name = "all"
kind = "counter"
title = "Departures"
window = "7d"                 # what the page begins with; 7-day numbers are written beside the totals
per = "1d"
share = 0.15

[[query]]
name = "by-origin"
kind = "histogram"
title = "By airport"
share = 0.2
column = "origin"
categories = ["EWR", "JFK", "LGA"]

[[query]]
name = "by-carrier"
kind = "histogram"
title = "By airline"
share = 0.2
column = "carrier"
categories = {json.dumps(CARRIERS)}

[[query]]
name = "mean-delay"
kind = "running_mean"         # minutes; early departures have negative ones
title = "Mean delay"
unit = "min"
share = 0.05
column = "delay"
lower = -30
upper = 180
resolution = 1

[[query]]
name = "delays"               # half of all departures, and nine of ten, were late by this or less
kind = "value_quantile"
title = "Delays"
description = "half, 9 in 10 and 99 in 100 leave within"
unit = "min"
share = 0.1
column = "delay"
q = [0.5, 0.9, 0.99]
edges = {json.dumps(EDGES)}

[[query]]
name = "aircraft"             # different ones in the last day, week and month
kind = "active_users"
title = "Active aircraft"
noun = "aircraft"
share = 0.15
windows = ["1d", "7d", "30d"]

[[query]]
name = "top-destinations"     # nobody declared them: they are found
kind = "unknown_top_k"
title = "Top destinations"
k = 10
share = 0.15
column = "destination"
"""
_LEFT_BY_A_DEMO = ("departures.*", "secret/departures.*", "releases.jsonl", "report.md", "certificate.json")
_DAYS_A_SECOND = 15


def demo(folder: Path, stay: bool | None = None) -> None:
    """Runs the demo in a folder. `stay` keeps the page up until Ctrl-C; by default if somebody is there to see it."""
    attended = sys.stdout.isatty() and "CI" not in os.environ
    stay = attended if stay is None else stay
    folder.mkdir(parents=True, exist_ok=True)
    flights = departures()
    # A second demo is a second stream with a new key: on public data that is nobody's loss.
    for pattern in _LEFT_BY_A_DEMO:
        for left in folder.glob(pattern):
            left.unlink()
    spec_file = folder / "departures.toml"
    spec_file.write_text(SPEC)
    spec = load_spec(spec_file)
    exact = Exact(flights, spec)
    token = TokenFile(spec.serve.tokens).add("replay", "admin")
    print(f"{exact.departures:,} departures, {spec.horizon} ticks of six hours, {spec.guarantee} for the whole year.")
    with service(spec_file) as address:
        print(f"Live page: {address}", flush=True)
        if attended:
            webbrowser.open(address)
        client = Client(address, token)
        started = time.perf_counter()
        _replay(client, spec, list(in_days(flights, spec)), _DAYS_A_SECOND if stay else None)
        seconds = time.perf_counter() - started
        latest = client.get("/v1/releases/latest")
        (folder / "certificate.json").write_text(json.dumps(certificate(spec), indent=2) + "\n")
        draw(spec, folder / "releases.jsonl", exact.counts, folder / "departures.png")
        write_report(folder / "report.md", spec, latest, exact, seconds)
        _say_what_is_where(folder, exact.departures, seconds)
        if stay:
            print(f"The page stays at {address} until Ctrl-C.", flush=True)
            _wait_for_interrupt()


def _replay(client: Client, spec: StreamSpec, days: list[tuple[int, bytes]], days_a_second: int | None) -> None:
    shown = TextColumn("replaying 2013, day by day"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*shown) as progress:
        for number, (tick, lines) in enumerate(progress.track(days), 1):
            moment = time.perf_counter()
            client.send(f"day-{number}", lines)
            client.close_until(spec.clock.end_of(tick))
            if days_a_second is not None:
                time.sleep(max(0.0, 1 / days_a_second - (time.perf_counter() - moment)))


def _say_what_is_where(folder: Path, departures_replayed: int, seconds: float) -> None:
    print(f"{departures_replayed:,} departures replayed in {seconds:.0f} s. In {folder}:")
    print("  report.md           what was released, how far it is from the truth, what was measured")
    print("  departures.png      released counts, their error bands and the true error")
    print("  releases.jsonl      every release: value, standard deviation, 95 % interval")
    print("  certificate.json    what is promised, to whom, by which theorems")
    print("  departures.toml     the spec; `evertally plan` explains it, `evertally serve` runs it")


def _wait_for_interrupt() -> None:
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print("\nstopping")
