"""The tutorial, as printed, by a newcomer with two terminals. Only ticks are shorter, and the port is a free one."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from waiting import PATIENCE

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "tutorial.md").read_text()
QUICKER = {
    'tick = "5s"': 'tick = "1s"',
    "time.sleep(2)": "time.sleep(0.05)",
    'window = "1m"': 'window = "3s"',
    "window=10s": "window=2s",
    "--window 10s": "--window 2s",
}
EVENTS = 3_000 + 300 + 10 * 1_000
SERVE = "evertally serve visits.toml\n"


def blocks() -> list[tuple[str, str]]:
    """What is printed in boxes: (language, content)."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, flags=re.S | re.M)


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


class Terminal:
    """A shell that stays open, so that variables last."""

    def __init__(self, folder: Path) -> None:
        self._shell = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def type(self, commands: str) -> str:
        """What the commands printed; all of them must succeed."""
        self._shell.stdin.write(f"set -e\n{commands}set +e\necho end-of-block\n")
        self._shell.stdin.flush()
        said = ""
        while not said.endswith("end-of-block\n"):
            line = self._shell.stdout.readline()
            assert line, f"the shell ended: {said}"
            said += line
        return said.removesuffix("end-of-block\n")

    def close(self) -> None:
        self._shell.stdin.close()
        self._shell.stdout.close()
        self._shell.wait(PATIENCE)


class Service:
    """The first terminal."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def start(self, command: str) -> str:
        self._process = subprocess.Popen(
            command.split(),
            cwd=self._folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said = ""
        while "Tokens: " not in said:
            line = self._process.stdout.readline()
            assert line, f"it ended: {said}"
            said += line
        return said

    def press_ctrl_c(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            said = self._process.communicate(timeout=PATIENCE)[0]
            assert self._process.returncode == 0
            assert said.endswith("everything that was acknowledged is on disk\n")
            self._process = None


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    first = Service(tmp_path)
    yield first
    first.press_ctrl_c()


def test_the_tutorial(tmp_path: Path, terminal: Terminal, service: Service) -> None:
    port = free_port()
    said: list[str] = []
    starts = 0
    for language, content in blocks():
        for printed, instead in {**QUICKER, "8321": str(port)}.items():
            content = content.replace(printed, instead)
        if language == "toml":
            (tmp_path / "visits.toml").write_text(content)
        elif language == "python":
            (tmp_path / "send.py").write_text(content)
        elif language == "text":
            assert same_form(content, said[-1]), f"printed: {content} seen: {said[-1]}"
        elif content == SERVE:
            service.press_ctrl_c()
            said.append(service.start(content))
            starts += 1
        elif "pip install" not in content:
            said.append(terminal.type(content.replace(". venv/bin/activate\n", "")))
    assert starts == 2
    assert json.loads((tmp_path / "certificate.json").read_text())["stream"] == "visits"
    service.press_ctrl_c()
    released = [json.loads(line) for line in (tmp_path / "visits.jsonl").read_text().splitlines()]
    assert {row["query"] for row in released} == {"all", "all/3s", "by-ward", "by-ward/3s", "stay"}
    windows = next(text[text.index("query,since,tick") :] for text in said if "query,since,tick" in text)
    seconds = list(csv.DictReader(io.StringIO(windows)))
    assert max(float(row["value"]) for row in seconds) > 1_000
    people = [json.loads(line) for line in (tmp_path / "people.jsonl").read_text().splitlines()]
    true = {("different", None): 600, ("active", "1"): 200, ("active", "7"): 600}
    last = {(row["query"], row["category"]): row for row in people if row["tick"] == 2}
    assert last.keys() == true.keys()
    assert all(abs(row["value"] - true[which]) < 10 * row["stddev"] for which, row in last.items())
    # Everything counted once, within ten standard deviations of the noise.
    total = [row for row in released if row["query"] == "all"][-1]
    assert abs(total["value"] - EVENTS) < 10 * total["stddev"]
    stay = [row for row in released if row["query"] == "stay"][-1]
    # Minutes are drawn anew in every run; by the law of all three batches their mean is 39.55, give or take 0.15.
    assert abs(stay["value"] - 39.55) < 5 * (stay["upper"] - stay["lower"]) / 2


def test_every_command_of_the_tutorial_was_run() -> None:
    languages = [language for language, _ in blocks()]
    assert languages.count("toml") == languages.count("python") == 1
    assert languages.count("sh") >= 8
    assert set(languages) == {"sh", "toml", "python", "text"}
    for printed in QUICKER:
        assert printed in TEXT


def test_what_is_installed_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"pip install '[\w.]*\[(\w+)\]'", TEXT)
    assert named
    assert set(named) <= set(extras)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def same_form(printed: str, seen: str) -> bool:
    """Alike but for numbers and places of files."""

    def form(text: str) -> str:
        return re.sub(r"/\S*/", "/", re.sub(r"\d+", "0", text)).strip()

    return form(printed) == form(seen)
