"""Libraries that are known by name and never imported for their own sake: who has an object of one has imported it."""

from __future__ import annotations

import sys
from typing import Any


def imported(name: str) -> Any:
    """A library that somebody has imported to its end, None otherwise.

    Another thread may be in the middle of it: then half of its names are missing, and nobody has an object of it yet.

    >>> imported("sys").__name__, imported("nobody.has.this")
    ('sys', None)
    """
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module
