"""A library that another thread is just importing is not there yet."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path

import pytest

from evertally.encode.imported import imported

_SLOW = """
import threading
begun, go_on = threading.Event(), threading.Event()
begun.set()
go_on.wait()
late = 1
"""


def test_half_a_library_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that starts compiles in one thread, which imports pandas, and makes mechanisms in another."""
    (tmp_path / "slow_library.py").write_text(_SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    thread = threading.Thread(target=importlib.import_module, args=("slow_library",))
    thread.start()
    while not hasattr(sys.modules.get("slow_library"), "go_on"):
        pass
    half = sys.modules["slow_library"]
    assert imported("slow_library") is None
    half.go_on.set()
    thread.join()
    assert imported("slow_library") is half
    assert imported("slow_library").late == 1
