"""A plugin of pytest that runs a given list of tests, in the order in which they are most likely to be done soon.

`pytest -p mutation.picking`, with EVERTALLY_PICKED naming a JSON file: test -> seconds.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seconds: dict[str, float] = json.loads(Path(os.environ["EVERTALLY_PICKED"]).read_text(encoding="utf-8"))
    picked = [item for item in items if item.nodeid in seconds]
    whole: dict[str, float] = {}
    for item in picked:
        file = item.nodeid.partition("::")[0]
        whole[file] = whole.get(file, 0.0) + seconds[item.nodeid]
    # File by file, for tests of one file share what they make.
    picked.sort(
        key=lambda item: (whole[item.nodeid.partition("::")[0]], item.nodeid.partition("::")[0], seconds[item.nodeid])
    )
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in seconds])
    items[:] = picked
