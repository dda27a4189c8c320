"""Compiled code is kept on disk where there is a safe place for it; where there is none, it is compiled again."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from evertally.noise.jit import own_folder

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import lonely
from evertally.noise.jit import jit
double = jit(lonely.double)
print(double(21), sum(double.stats.cache_hits.values()))
from numba.core import config
assert not config.CACHE_DIR
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def run(package: Path, temporary: Path) -> tuple[str, str]:
    environment = {"HOME": "/dev/null", "PATH": "", "NUMBA_CACHE_DIR": "", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", SCRIPT, str(package)]
    environment |= {"TMPDIR": str(temporary), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_where_neither_package_nor_home_can_be_written(tmp_path: Path, temporary: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "lonely.py").write_text("def double(x):\n    return 2 * x\n")
    (package / "__pycache__").write_text("a file where numba would make a folder")
    assert [run(package, temporary) for _ in range(2)] == [("42 0\n", ""), ("42 1\n", "")]  # compiled once
    (kept,) = temporary.iterdir()
    kept.chmod(0o777)  # anybody could have put code there
    said, warned = run(package, temporary)
    assert (said, "every process compiles anew" in warned) == ("42 0\n", True)


def test_a_folder_that_somebody_else_could_write_is_not_taken(temporary: Path) -> None:
    mine = own_folder()
    assert mine is not None
    assert mine == own_folder()
    assert mine.parent == temporary
    assert mine.stat().st_mode & 0o777 == 0o700
    temporary.chmod(0o777)  # mine could be renamed, and another one put in its place
    assert own_folder() is None
    temporary.chmod(0o1777)  # as /tmp is
    assert own_folder() == mine
    mine.chmod(0o720)
    assert own_folder() is None
    mine.rmdir()
    (temporary / "elsewhere").mkdir(mode=0o700)
    mine.symlink_to(temporary / "elsewhere")
    assert own_folder() is None
    mine.unlink()
    mine.write_text("a file")
    assert own_folder() is None
