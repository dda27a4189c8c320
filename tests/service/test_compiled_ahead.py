"""Before a service says that it is ready, the reader of large bodies is there: no client waits for a compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from evertally.runtime import load_spec
from evertally.runtime.input.ahead import read_made_up

SPEC = """
[stream]
name = "ahead"
horizon = 100
[guarantee]
rho = 0.5
[clock]
start = "first serve"
tick = "1h"
[key]
file = "ahead.key"
[state]
file = "ahead.state"
[serve]
port = 0
{serve}
[[query]]
name = "ward"
kind = "histogram"
column = "ward"
categories = ["north", "south"]
"""

# What was compiled when it said that it was ready, and whether a large body compiles anything more.
SERVED = """
import os, signal, sys
from pathlib import Path
from evertally.runtime import load_spec
from evertally.service.server import serve

spec = load_spec(Path(sys.argv[1]))

def ready(address):
    scanner = sys.modules["evertally.runtime.input.json_scan"].scan
    before = len(scanner.signatures)
    from evertally.runtime.input.encoded import received
    received(b'{"ward": "north", "age": 7}\\n' * 1000, "application/x-ndjson", spec, 1, "")
    print(before, len(scanner.signatures))
    os.kill(os.getpid(), signal.SIGTERM)

serve(spec, ready=ready)
"""


def _written(folder: Path, serve: str = "") -> Path:
    spec = folder / "ahead.toml"
    spec.write_text(SPEC.format(serve=serve))
    return spec


def test_what_reads_large_bodies_is_compiled_before_a_service_is_ready(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("")
    command = [sys.executable, "-c", SERVED, str(_written(tmp_path))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.stdout.split() == ["1", "1"], done.stderr


def test_where_no_client_may_send_as_much_nothing_is_compiled(tmp_path: Path) -> None:
    for serve in ("max_batch_rows = 100", "max_batch_bytes = 1000"):
        read_made_up(load_spec(_written(tmp_path, serve)))
