"""The fixture that the tests of the runtime share."""

from __future__ import annotations

from pathlib import Path

import pytest
from visit_stream import SPEC, WriteSpec


@pytest.fixture
def write_spec(tmp_path: Path) -> WriteSpec:
    """Writes SPEC with some texts replaced and some appended."""

    def write(*changes: tuple[str, str], append: str = "", folder: str = ".") -> Path:
        text = SPEC
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        path = tmp_path / folder / "visits.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + append)
        return path

    return write
