"""Specs that together use every family of the library, and which of them an audit of a mutant should look at.

`python -m mutation.audits NAME FILE` runs the short audit of one spec with every line of the rooms watched.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

from mutation.choose import ROOT, Mutant
from mutation.covering import cache_folder
from spec_text import spec_text

_WARD: dict[str, Any] = {"column": "ward", "categories": ["north", "south", "attic"]}
_UPDATES = {"action": "ward", "insert": "north", "delete": "south", "id": "patient", "protects": "event"}
_EDGES = {"columns": ["patient", "ward"]}
_SMALL = {"name": "visits", "horizon": 16}
_MOST = 2  # specs for one mutant


def _users(**more: Any) -> dict[str, Any]:
    return {"name": "visits", "horizon": 16, "unit": "user", "user_column": "patient", **more}


def _query(name: str, kind: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, **options}


SPECS: dict[str, str] = {
    "pure": spec_text(
        _query("all", "counter", share=0.3),
        _query("ward", "histogram", share=0.7, max_per_event=2, **_WARD),
        stream=_SMALL,
        guarantee={"epsilon": 1},
    ),
    "concentrated": spec_text(
        _query("all", "counter", share=0.5, mechanism="honaker"),
        _query("ward", "histogram", share=0.5, mechanism="sqrt", **_WARD),
        stream=_SMALL,
    ),
    "replaced": spec_text(
        _query("all", "counter", share=0.4, mechanism="tree"),
        _query("ward", "histogram", share=0.6, max_per_event=2, **_WARD),
        stream={**_SMALL, "neighbours": "replace"},
    ),
    "capped-users": spec_text(
        _query("all", "counter", share=0.4),
        _query("ward", "histogram", share=0.6, **_WARD),
        stream=_users(max_events_per_user=3),
    ),
    "replaced-users": spec_text(
        _query("all", "counter"), stream=_users(max_events_per_user=2, neighbours="replace"), guarantee={"epsilon": 2}
    ),
    "columns": spec_text(
        _query("busiest", "max", share=0.3, mechanism="rebased", largest=60, **_WARD),
        _query("order", "leaders", k=2, share=0.3, mechanism="intervals", **_WARD),
        _query("rare", "counter", share=0.2, mechanism="sparse"),
        _query("half", "quantile", q=0.5, share=0.2, **_WARD),
        stream={**_SMALL, "max_events_per_tick": 4},
        guarantee={"rho": 50},
    ),
    "labels": spec_text(
        _query("found", "unknown-histogram", share=0.5, column="ward"),
        _query("most", "unknown-top", k=2, share=0.3, column="ward", mechanism="meta"),
        _query("ahead", "streaming-top", k=2, share=0.2, mechanism="meta", **_WARD),
        stream={**_SMALL, "max_events_per_tick": 4},
        guarantee={"epsilon": 2, "delta": 1e-6},
    ),
    "values": spec_text(
        _query("sum", "sum", share=0.3, column="minutes", upper=50, resolution=0.5),
        _query("mean", "mean", share=0.3, column="minutes", lower=0, upper=50, resolution=1),
        _query("stays", "value-quantile", share=0.4, column="minutes", edges=[0, 7, 20.5, 60], q=[0.5]),
        stream=_SMALL,
    ),
    "present": spec_text(
        _query("inside", "dynamic_count", share=0.5, lifetimes=9, **_UPDATES),
        _query("again", "present_items", share=0.5, **_UPDATES),
        stream=_SMALL,
    ),
    "people": spec_text(
        _query("people", "distinct_users", share=0.5),
        _query("active", "active_users", share=0.3, windows=[1, 4]),
        _query("daily", "period_users", share=0.2, period=4),
        stream=_users(),
        guarantee={"rho": 0.5},
    ),
    "graphs": spec_text(
        _query("edges", "edge_count", share=0.5, **_EDGES),
        _query("degrees", "degree_vector", share=0.5, vertices=["north", "south", "p1"], **_EDGES),
        stream=_SMALL,
    ),
    "sketches": spec_text(
        _query("some", "sketch", share=0.5, column="patient", watch=["p1", "p2"], width=64),
        _query("board", "dashboard", share=0.5, column="ward", types=["north", "south"], metrics={"both": "all"}),
        stream=_SMALL,
    ),
}


def written(name: str) -> Path:
    """A spec as a file."""
    folder = cache_folder() / "specs"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.toml"
    if not path.is_file() or path.read_text(encoding="utf-8") != SPECS[name]:
        path.write_text(SPECS[name], encoding="utf-8")
    return path


def trace_audits(seconds: float) -> None:
    """Runs the short audit of every spec on the product, and keeps which lines it executes."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])}
    for name in SPECS:
        if not _lines(name).is_file():
            call = [sys.executable, "-m", "mutation.audits", name, str(_lines(name))]
            subprocess.run(call, env=environment, cwd=ROOT, timeout=seconds, check=True, stdout=subprocess.DEVNULL)


def affected_specs(mutant: Mutant) -> list[Path]:
    """The specs whose audit executes the line of the mutant, the fastest first."""
    found = []
    for name in SPECS:
        if _lines(name).is_file():
            said = json.loads(zlib.decompress(_lines(name).read_bytes()))
            if mutant.line in said["lines"].get(mutant.file, ()):
                found.append((said["seconds"], name))
    return [written(name) for _, name in sorted(found)[:_MOST]]


def _lines(name: str) -> Path:
    folder = cache_folder() / "audits"
    folder.mkdir(exist_ok=True)
    return folder / f"{name}.z"


def _watched(name: str, target: Path) -> None:
    import evertally
    from evertally.cli.audit import command
    from mutation.tracing import Tracer

    assert evertally.__file__ is not None
    tracer = Tracer(Path(evertally.__file__).parent)
    start = time.perf_counter()
    tracer.begin()
    try:
        command(str(written(name)), (None, None, None), None, {}, "short", 0, None, None, 1)
    finally:
        found = tracer.end()
    lines = {file: sorted(numbers) for file, numbers in found.items()}
    said = {"seconds": round(time.perf_counter() - start, 1), "lines": lines}
    target.write_bytes(zlib.compress(json.dumps(said).encode()))


if __name__ == "__main__":
    _watched(sys.argv[1], Path(sys.argv[2]))
