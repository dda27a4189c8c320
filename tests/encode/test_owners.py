"""Long columns of users, read in one piece, say what they say when they are read value by value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evertally.encode import owners as room
from evertally.encode.labels import as_list, canonical
from evertally.encode.owned import owned_tick
from evertally.encode.owners import decimals, owners, rank_within_code

RNG = np.random.default_rng(7)
NUMBERS = [
    *RNG.integers(-(2**63), 2**63 - 1, 200).tolist(),
    *RNG.integers(-50, 50, 200).tolist(),
    0,
    -(2**63),
    2**63 - 1,
]
WORDS = [f"user {i}" for i in RNG.integers(0, 90, 400)]
HOLES = [None if i % 5 == 0 else word for i, word in enumerate(WORDS)]
TEXT = pa.array(WORDS)
PLACES = pa.array([2, None, 0, 2, 0] * 80, pa.int8())
DICTIONARY = pa.DictionaryArray.from_arrays(PLACES, pa.array(["a", "unused", "c", "7"]))
SPELLINGS = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3] * 80), pa.array(["é", "e\u0301", "b", None]))

COLUMNS: dict[str, Any] = {
    "words": WORDS,
    "tuple": tuple(WORDS),
    "words with holes": HOLES,
    "objects": np.array(HOLES, object),
    "fixed width": np.array(WORDS),
    "mixed": [7, "7", 7.0, None, True, "true", b"7", "x"] * 40,
    "accents": ["é", "e\u0301", "b"] * 100,
    "lone surrogates": ["\ud83d", "\ude00", "\U0001f600"] * 100,
    "several owners": [["ann"], "ann", ("bob", "ann"), "bob"] * 80,
    "nobody": [None] * 300,
    "int64": np.array(NUMBERS),
    "int8": np.arange(-128, 128, dtype=np.int8).repeat(2),
    "uint64": np.array([2**64 - 1, 3, 2**63, 3] * 80, np.uint64),
    "floats": np.array([7.0, 2.5, np.nan, -0.0] * 80),
    "truth": np.array([True, False, True] * 100),
    "times": np.arange(300).astype("datetime64[ns]"),
    "arrow text": TEXT,
    "arrow large text": TEXT.cast(pa.large_string()),
    "arrow holes": pa.array(HOLES),
    "arrow slice": pa.array(HOLES)[37:350],
    "arrow chunks": pa.chunked_array([pa.array(HOLES)[:100], pa.array(HOLES)[100:]]),
    "arrow dictionary": pa.array(HOLES).dictionary_encode(),
    "arrow chunks of a dictionary": pa.chunked_array([TEXT[:200].dictionary_encode(), TEXT[200:].dictionary_encode()]),
    "arrow dictionary in another order": DICTIONARY,
    "arrow dictionary with two spellings": SPELLINGS,
    "arrow accents": pa.array(["é", "e\u0301", "b"] * 100),
    "arrow ids": pa.array(NUMBERS),
    "arrow ids with holes": pa.array([None if i % 3 else n for i, n in enumerate(NUMBERS)]),
    "arrow unsigned ids": pa.array([2**64 - 1, None, 3] * 100, pa.uint64()),
    "arrow ids in a dictionary": pa.array([5, -5, 5] * 100).dictionary_encode(),
    "arrow floats": pa.array([7.0, 2.5, None] * 100),
    "arrow bytes": pa.array([b"ann", b"\xff", None] * 100),
    "arrow text as bytes": TEXT.cast(pa.binary()),
    "arrow text as bytes, with holes": pa.array(HOLES).cast(pa.large_binary())[37:350],
    "arrow dictionary of bytes": pa.array(HOLES).cast(pa.binary()).dictionary_encode(),
    "arrow accents as bytes": pa.array(["é".encode(), "e\u0301".encode(), b"b", b""] * 80),
    "arrow normalised accents as bytes": pa.array(["é".encode(), "ü".encode(), b"b", b""] * 80),
    "arrow surrogates as bytes": pa.array([b"\xed\xa0\xbd", b"\xed\xb8\x80", "\U0001f600".encode()] * 100),
    "arrow bytes of one width": pa.array([b"ann", b"bob"] * 150, pa.binary(3)),
    "arrow nulls": pa.nulls(300),
    "long names": ["x" * 2000, "x" * 1999 + "y"] * 150,
    "arrow long names": pa.array(["x" * 2000, "x" * 1999 + "y"] * 150),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("count", [None, 9])
def test_a_column_says_what_its_values_say(name: str, count: int | None) -> None:
    column = COLUMNS[name][:count]
    codes, names = owners(column)
    expected = [canonical(value) for value in as_list(column)]
    known = list(dict.fromkeys(name for name in expected if name is not None))
    assert names.list() == known, "each user with an event once, in the order of their first events"
    assert codes.tolist() == [-1 if value is None else known.index(value) for value in expected]


@pytest.mark.parametrize(
    "name",
    [
        "words",
        "int64",
        "arrow text",
        "arrow ids with holes",
        "arrow dictionary",
        "objects",
        "arrow text as bytes",
        "arrow text as bytes, with holes",
        "arrow dictionary of bytes",
        "arrow normalised accents as bytes",
    ],
)
def test_common_columns_are_read_in_one_piece(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_one_by_one", None)
    owners(COLUMNS[name])


def test_a_column_of_several_users_for_each_event_is_refused() -> None:
    for column in (pa.array([["ann"]] * 300), pa.array([{"a": 1}] * 300)):
        with pytest.raises(TypeError, match="one user per event"):
            owners(column)


def test_the_same_tick_has_the_same_digest_in_every_form() -> None:
    ticks = [owned_tick(column, None, 1) for column in (HOLES, pa.array(HOLES), np.array(HOLES, object), HOLES[:])]
    assert len({tick.digest() for tick in ticks}) == 1
    first, second = (HOLES.index(word) for word in list(dict.fromkeys(WORDS))[:2])
    swapped = list(HOLES)
    swapped[first], swapped[second] = swapped[second], swapped[first]
    assert owned_tick(swapped, None, 1).digest() != ticks[0].digest()
    assert owned_tick(DICTIONARY, None, 1).names.list() == ["c", "a"]


def test_decimals_and_ranks_are_the_same_compiled_or_not() -> None:
    assert decimals(np.array(NUMBERS)).list() == [str(n) for n in NUMBERS]
    assert [decimals(np.array([n])).list() for n in NUMBERS[-9:]] == [[str(n)] for n in NUMBERS[-9:]]
    codes = RNG.integers(0, 9, 400)
    ranks = [int((codes[:i] == code).sum()) for i, code in enumerate(codes)]
    assert rank_within_code(codes, 9).tolist() == ranks
    assert rank_within_code(codes[:20], 9).tolist() == ranks[:20]


ODD_NAMES: dict[str, Any] = {
    "not normalised": pa.array([*WORDS, "cafe\u0301", "\u00e9"]),
    "not UTF-8": pa.array([*(word.encode() for word in WORDS), b"\xff", b"\xed\xa0\xbd"], pa.binary()),
    "too long for an item": pa.array([*WORDS, "n" * 1025, "e\u0301" * 600]),
    "in a dictionary": pa.array([*WORDS, "cafe\u0301", None]).dictionary_encode(),
    "in a list": [*WORDS, "cafe\u0301", None, "\ud800", "\u00e9"],
    "with holes": pa.array([*HOLES, "cafe\u0301"]),
}


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_odd_name_costs_its_own_time_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    column = ODD_NAMES[name]
    expected = [canonical(value) for value in as_list(column)]
    looked_at: list[object] = []
    monkeypatch.setattr(room, "canonical", lambda value: looked_at.append(value) or canonical(value))
    codes, names = owners(column)
    assert [None if code < 0 else names[code] for code in codes.tolist()] == expected
    assert len(set(names.list())) == len(names)
    assert len(looked_at) <= 3
