"""The Python that a document prints, run as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def python_blocks(document: str) -> list[str]:
    """The Python of a document of the project."""
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), flags=re.S)


def run_as_printed(document: str) -> dict[str, Any]:
    """All names that exist after the blocks ran one after the other."""
    names: dict[str, Any] = {}
    for block in python_blocks(document):
        exec(compile(block, document, "exec"), names)
    return names
