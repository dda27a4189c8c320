"""Rows of the release log are proved one by one, when they are read: also those that change while the stream runs."""

from __future__ import annotations

from typing import Any

import pytest
from visit_stream import WriteSpec

from evertally.noise import Key
from evertally.runtime.spec import load_spec
from evertally.runtime.state.log import DamagedLog, Proof


@pytest.fixture
def proof(write_spec: WriteSpec) -> Proof:
    return Proof(Key.generate(), load_spec(write_spec()))


def test_rows_as_they_were_committed(proof: Proof) -> None:
    rows = [proof.row(3, "ward", b"some payload"), proof.row(4, "all", b"another")]
    assert proof.genuine(rows) == rows
    assert proof.chain(proof.link(3, "ab" * 32)) == "ab" * 32


@pytest.mark.parametrize(
    ("place", "other"), [(0, 4), (1, "all"), (2, b"other"), (3, b"0" * 16), (3, None), (3, "text")]
)
def test_one_row_that_was_changed_is_not_shown(proof: Proof, place: int, other: Any) -> None:
    good, changed = proof.row(3, "ward", b"some payload"), list(proof.row(3, "ward", b"some payload"))
    changed[place] = other
    with pytest.raises(DamagedLog, match="not shown"):
        proof.genuine([good, tuple(changed)])  # type: ignore[list-item]


@pytest.mark.parametrize(("place", "other"), [(0, 4), (1, bytes(32)), (2, b"0" * 16)])
def test_a_link_that_was_changed_vouches_for_nothing(proof: Proof, place: int, other: Any) -> None:
    changed = list(proof.link(3, "ab" * 32))
    changed[place] = other
    with pytest.raises(DamagedLog, match="link"):
        proof.chain(tuple(changed))  # type: ignore[arg-type]
