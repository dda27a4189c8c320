"""The spec of the runtime's tests, for tests of kinds."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in ("runtime", "service"):
    sys.path.append(str(HERE.parent / folder))
