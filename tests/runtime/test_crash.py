"""kill -9 of real processes at every kind of moment: nothing lost, counted twice or released differently."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from visit_stream import COLUMN_QUERIES, UNKNOWN_QUERIES, WITH_UNKNOWN_QUERIES, WriteSpec, save, visits

from evertally.noise import Key
from evertally.runtime import load_spec, run
from made_keys import save_bound

USER = ("horizon = 48", 'horizon = 300\nunit = "user"\nmax_events_per_user = 9\nuser_column = "patient"')
NINEFOLD = ("epsilon = 340", "epsilon = 21000")  # in rho as much for nine events of a user as for one

# Forks runs of one stream; each child kills itself at its n-th call that moves bytes to the disk, before or
# after it.
DRIVER = """
import os, random, signal, sys
from evertally.runtime import load_spec, run
from evertally.runtime.mechanisms import build

def deadly(call, left):
    def wrapper(*args, **options):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        result = call(*args, **options)
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return wrapper

spec, events, rounds = load_spec(sys.argv[1]), sys.argv[2], random.Random(int(sys.argv[3]))
for mechanism in build(spec, None).values():  # compiles the kernels once, for all children
    mechanism.step_events([1], users=[1])
killed = 0
while True:
    child = os.fork()
    if child == 0:
        left = [killed + 1 if killed < 40 else rounds.randint(1, 200) if killed < 55 else 10**9]
        for name in ("fsync", "replace", "open", "link", "ftruncate"):
            setattr(os, name, deadly(getattr(os, name), left))
        run(spec, events)
        os._exit(0)
    rounds.random()
    status = os.waitpid(child, 0)[1]
    if status == 0:
        break
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
    killed += 1
print(killed)
"""


def twins(write_spec: WriteSpec) -> tuple[Path, Path]:
    """Counters, a histogram, partitions, selections and unknown items, under one key."""
    calm, killed = (
        write_spec(*WITH_UNKNOWN_QUERIES, USER, NINEFOLD, append=COLUMN_QUERIES + UNKNOWN_QUERIES, folder=folder)
        for folder in ("calm", "killed")
    )
    key = Key.generate()
    for path in (calm, killed):
        save_bound(key, path)
    return calm, killed


def same_output(calm: Path, killed: Path) -> bool:
    return (calm.parent / "visits.jsonl").read_bytes() == (killed.parent / "visits.jsonl").read_bytes()


def test_killed_at_every_step_of_the_first_commits_and_at_random_later(write_spec: WriteSpec, tmp_path: Path) -> None:
    calm, killed = twins(write_spec)
    events = save(visits(0, 200), tmp_path / "v.csv")
    run(load_spec(calm), events)
    done = subprocess.run([sys.executable, "-c", DRIVER, killed, events, "5"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 40
    assert same_output(calm, killed)
    released = [json.loads(line) for line in (calm.parent / "visits.jsonl").read_text().splitlines()]
    # partitions that closed, items that were found: there was something to lose
    for query in ("busiest", "order", "middle", "rare", "found", "most", "ahead"):
        assert len({(row["category"], row["value"]) for row in released if row["query"] == query}) > 1, query


def test_killed_from_outside_at_random_moments(write_spec: WriteSpec, tmp_path: Path) -> None:
    calm, killed = twins(write_spec)
    events = save(visits(0, 200), tmp_path / "v.parquet")
    run(load_spec(calm), events)
    size = (calm.parent / "visits.jsonl").stat().st_size
    command = [sys.executable, "-m", "evertally.cli", "run", str(killed), "--input", str(events), "--until", "end"]
    moments = sorted(random.Random(7).randrange(size) for _ in range(3))
    for moment in moments:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None and _size(killed.parent / "visits.jsonl") < moment:
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        assert process.returncode in (-signal.SIGKILL, 0)
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0 or "nothing to release" in finished.stderr
    assert same_output(calm, killed)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
