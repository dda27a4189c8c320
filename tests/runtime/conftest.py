"""The fixture that the tests of the runtime share."""

from __future__ import annotations

from pathlib import Path

import pytest
from visit_stream import WriteSpec, spec_writer


@pytest.fixture
def write_spec(tmp_path: Path) -> WriteSpec:
    """Writes SPEC with some texts replaced and some appended."""
    return spec_writer(tmp_path)
