"""The container file: linted, read, and carried out on this machine. Needs root, for mounts and another user."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from containerfile import FILE, PROJECT, only, steps
from packaging.requirements import Requirement

from long import LONG

SMOKE = Path(__file__).with_name("smoke.py")


def test_the_linter_has_nothing_to_say() -> None:
    said = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), "--no-color", FILE], capture_output=True, text=True
    )
    assert (said.returncode, said.stdout) == (0, ""), said.stdout + said.stderr


def test_what_it_says() -> None:
    before, build, last = steps()
    assert not re.search(r"://(?!127\.0\.0\.1)|--(extra-)?index-url", FILE.read_text()), (
        "it names no place to fetch from"
    )
    assert "/" not in only(before, "ARG").rest, "nor does its base"
    user, group = map(int, only(last, "USER").rest.split(":"))
    assert min(user, group) >= 1000
    assert [step.word for step in last].index("USER") > max(n for n, step in enumerate(last) if step.word == "RUN")
    volumes = only(last, "VOLUME").listed
    assert {"/var/lib/evertally", "/var/lib/evertally-key"} < set(volumes)
    (made,) = [step.rest for step in last if step.word == "RUN"]
    assert all(f" {volume} " in f"{made} " for volume in volumes)
    assert only(last, "HEALTHCHECK").listed
    copied = [source for step in build if step.word == "COPY" for source in step.rest.split()[:-1]]
    assert all((PROJECT / source).exists() for source in copied)


def test_what_only_builds_does_not_come_along() -> None:
    """All that the group `build` asks for, and nothing that the service needs."""
    group = tomllib.loads((PROJECT / "pyproject.toml").read_text())["dependency-groups"]["build"]
    removed = re.findall(r"pip uninstall --yes (.*)", FILE.read_text())[0].split()
    asked = {re.split(r"[<>=]", name)[0] for name in group}
    assert asked | {"pip", "setuptools"} <= set(removed)
    assert needed("evertally", "serve") & set(removed) == set()


def needed(name: str, extra: str = "", known: frozenset[str] = frozenset()) -> set[str]:
    """The packages that one needs, and that these need."""
    found = {name}
    for requirement in map(Requirement, metadata.requires(name) or []):
        asked = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
        if asked and requirement.name not in known:
            for own in requirement.extras or {""}:
                found |= needed(requirement.name, own, known | found)
    return found


def test_the_image_serves(tmp_path: Path) -> None:
    """At length with the pinned packages, as the file says; otherwise with those of the tests."""
    command = [sys.executable, SMOKE, tmp_path, *(["--packages"] if LONG else [])]
    done = subprocess.run(["unshare", "--mount", "--propagation", "private", *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["health"], found["taken"], found["closed"], found["released"]) == (0, 202, 200, 2), found
    assert found["user"] == only(steps()[2], "USER").rest.partition(":")[0]
    assert found["status"] == 0
    assert "everything that was acknowledged is on disk" in found["last"]
    assert found["health afterwards"] == 1, "nobody answers, and the check says so"
    allowed = ("/tmp", *only(steps()[2], "VOLUME").listed)
    assert set(allowed) <= set(found["writable"])
    assert all(place.startswith(allowed) for place in found["writable"]), found["writable"]
