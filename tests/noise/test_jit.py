"""Compiled code is kept on disk where there is a place for it; where there is none, it is compiled all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import shutil, sys
sys.path.insert(0, sys.argv[1])
import lonely
from evertally.noise.jit import jit
print(jit(lonely.double)(21))
"""


def test_without_a_place_for_a_cache(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "lonely.py").write_text("def double(x):\n    return 2 * x\n")
    (folder / "__pycache__").write_text("a file where numba would make a folder")
    environment = {"HOME": "/dev/null", "PATH": "", "NUMBA_CACHE_DIR": "", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)], capture_output=True, text=True, env=environment, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "42\n"
