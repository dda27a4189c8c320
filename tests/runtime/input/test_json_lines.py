"""The scanner of JSON lines and the careful reader give the same events, whatever the lines are."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from json_examples import CELLS, LINES

from evertally.encode import CategoryDoor, ItemDoor, UserCap
from evertally.encode.labels import as_list
from evertally.encode.name_index import fixed
from evertally.encode.owners import owners
from evertally.encode.texts import Texts
from evertally.errors import StateError
from evertally.runtime.input import json_cells, json_lines, token_kernels, tokens
from evertally.runtime.input.batches import decode, encode
from evertally.runtime.input.json_lines import Lines, read
from evertally.runtime.input.tick_events import joined, length, prepared
from evertally.runtime.input.times import instants
from long import LONG

BLOCKS = 4000 if LONG else 300
NAMES = ["time", "user", "x"]
KNOWN = frozenset([*NAMES, "declared"])
CAREFULLY = 2**60  # more bytes than any body has: the scanner reads nothing


def random_line(draw: random.Random, plain: bool) -> bytes:
    if not plain and draw.random() < 0.2:
        return draw.choice(LINES)
    blank = draw.choice(["", "", " ", "\t", " \r "])
    names = draw.sample([*NAMES, "declared", "other", "", "time "], draw.randrange(6)) + draw.sample(
        NAMES, draw.randrange(2)
    )
    cells = [f'"u{draw.randrange(9)}"' if plain and draw.random() < 0.9 else draw.choice(CELLS) for _ in names]
    inner = f",{blank}".join(f'{blank}"{name}"{blank}:{blank}{cell}' for name, cell in zip(names, cells, strict=True))
    line = f"{blank}{{{inner}{blank}}}{blank}".encode()
    if not plain and draw.random() < 0.1:
        place = draw.randrange(len(line) + 1)
        line = line[:place] + bytes([draw.randrange(256)]).replace(b"\n", b"") + line[place + draw.randrange(2) :]
    return line


def random_block(draw: random.Random) -> bytes:
    plain = draw.random() < 0.3  # so that some blocks are UTF-8, and some ticks are without collections
    lines = b"\n".join(random_line(draw, plain) for _ in range(draw.randrange(12)))
    return lines + b"\n" * draw.randrange(3)


def exactly(column: Any) -> list[tuple[type, str]]:
    return [(type(cell), repr(cell)) for cell in as_list(column)]


def both(block: bytes) -> tuple[Lines, Lines]:
    return read(block, NAMES, KNOWN, 0), read(block, NAMES, KNOWN, CAREFULLY)


def counted(lines: Lines) -> tuple[int, int, int]:
    return lines.rows, lines.others, lines.broken


@pytest.mark.parametrize("seed", range(4))
def test_the_scanner_reads_what_the_careful_reader_reads(seed: int) -> None:
    draw = random.Random(seed)
    rows = 0
    for _ in range(BLOCKS):
        block = random_block(draw)
        scanned, careful = both(block)
        assert counted(scanned) == counted(careful), block
        for name in NAMES:
            assert exactly(scanned.columns[name]) == exactly(careful.columns[name]), block
        rows += scanned.rows
    assert rows > BLOCKS


def secret_order(message: bytes) -> bytes:
    return hashlib.blake2b(message, key=b"secret").digest()


DECLARED = CategoryDoor(["7", "a", "u1", "caf\u00e9", "true", ""], "rest", 2, 10, order=secret_order)
ITEMS = ItemDoor(2, 10, order=secret_order)


def moments(integer: bool, column: Any) -> Any:
    values, valid = instants(column, SimpleNamespace(integer=integer, column="x"))  # type: ignore[arg-type]
    return values[valid].tolist(), valid.tolist()


def bits(column: Any) -> Any:
    found = prepared(column, "amounts")
    return np.where(np.isnan(found), np.float64("nan"), found).tobytes()


def named(column: Any) -> Any:
    codes, names = owners(prepared(column, "users"))
    return codes.tolist(), names.list()


USES: dict[str, Callable[[Any], Any]] = {
    "times": partial(moments, False),
    "whole times": partial(moments, True),
    "amounts": bits,
    "users": named,
    "declared labels": lambda column: DECLARED.totals(prepared(column, "labels"), 1).tolist(),
    "items": lambda column: sorted(ITEMS.totals(prepared(column, "items"), 1).mapping().items()),
    "kept": lambda column: UserCap(1).keep(prepared(column, "users"), 1).tolist(),
}


def small_column(draw: random.Random) -> bytes:
    odd = draw.random() < 0.5
    scalars = [cell for cell in CELLS if cell[0] not in "[{"]
    cells = draw.choices(CELLS if odd else scalars, k=draw.randrange(1, 9))
    return "".join(f'{{"x":{cell}}}\n' for cell in cells).encode()


@pytest.mark.parametrize("seed", range(4))
def test_cells_mean_the_same_to_every_use(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(BLOCKS // 3):
        block = small_column(draw)
        scanned, careful = (lines.columns["x"] for lines in both(block))
        for use, meaning in USES.items():
            assert meaning(scanned) == meaning(careful), (use, block)


def test_compiled_loops_agree_with_interpreted_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    block = "".join(f'{{"x":{cell}}}\n' for cell in CELLS * 5).encode()
    column = read(block, NAMES, KNOWN, 0).columns["x"]
    assert len(column) > 256  # of so many cells the loops are compiled
    compiled = {use: meaning(column) for use, meaning in USES.items()}
    monkeypatch.setattr(tokens, "kernel", lambda function, *_work: function)
    assert {use: meaning(column) for use, meaning in USES.items()} == compiled
    carefully = read(block, NAMES, KNOWN, CAREFULLY).columns["x"]
    assert {use: meaning(carefully) for use, meaning in USES.items()} == compiled


@pytest.mark.parametrize("seed", range(2))
def test_batches_of_both_forms_make_one_tick(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(BLOCKS // 4):
        blocks = [small_column(draw) for _ in range(3)]
        forms = [read(block, NAMES, KNOWN, draw.choice([0, CAREFULLY])).columns["x"] for block in blocks]
        whole = read(b"".join(blocks), NAMES, KNOWN, CAREFULLY).columns["x"]
        for use, door in (("labels", DECLARED), ("items", ITEMS)):
            column = joined([prepared(form, use) for form in forms])
            found, expected = door.totals(column, 1), door.totals(prepared(whole, use), 1)  # type: ignore[attr-defined]
            if use == "items":
                assert found.mapping() == expected.mapping()
            else:
                assert found.tolist() == expected.tolist()
        users = joined([prepared(form, "users") for form in forms])
        assert named(whole) == (owners(users)[0].tolist(), owners(users)[1].list())


def test_lines_keep_their_place_over_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "_PART", 100)
    lines = [
        json.dumps({"x": i, "user": "caf\u00e9" if i % 3 else "plain"}, ensure_ascii=i % 5 > 0) for i in range(300)
    ]
    lines[7::20] = ['{"x": NaN}'] * len(lines[7::20])
    lines[9::20] = ['{"x": 1,}'] * len(lines[9::20])
    lines[11] = '{"x": "' + "long" * 200 + '"}'
    scanned, careful = both("\n".join(lines).encode())
    assert counted(scanned) == counted(careful)
    for name in NAMES:
        assert exactly(scanned.columns[name]) == exactly(careful.columns[name])


def test_the_journal_keeps_cells_as_they_were_written() -> None:
    block = "".join(f'{{"x":{cell},"user":"u"}}\n' for cell in CELLS).encode()
    batch = read(block, NAMES, KNOWN, 0).columns
    again = decode(encode(batch))
    assert length(again) == length(batch)
    assert all(exactly(again[name]) == exactly(batch[name]) for name in NAMES)
    assert encode(again) == encode(batch)
    some = {name: column[3:9] for name, column in again.items()}
    assert all(exactly(decode(encode(some))[name]) == exactly(batch[name])[3:9] for name in NAMES)


def test_a_damaged_cell_is_a_matter_of_the_state() -> None:
    payload = encode(read(b'{"x": ["secret"]}\n', NAMES, KNOWN, 0).columns)
    damaged = decode(payload.replace(b'"secret"', b'"secret:'))
    with pytest.raises(StateError, match="cannot be read") as problem:
        as_list(damaged["x"])
    assert "secret" not in str(problem.value)


def test_simple_cells_are_read_by_the_loops_alone() -> None:
    """Otherwise every one of them would cost microseconds."""
    texts = tokens.Texts.of(["7", "12.50", '"3"', "-2.5", ""])
    how = np.empty(5, np.uint8)
    token_kernels.read_amounts(texts.data, texts.offsets, token_kernels.POWERS, np.empty(5), how)
    assert how.tolist() == [0, 0, 0, 0, 1]
    times = tokens.Texts.of(['"2013-01-28T10:20:30Z"', '"2013-01-28 10:20:30"', '"2013-01-28T10:20:30.25Z"'])
    token_kernels.read_moments(times.data, times.offsets, np.empty(3, np.int64), how[:3])
    assert how[:3].tolist() == [0, 0, 0]


def test_a_doubtful_line_costs_its_own_time_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    block = "".join(f'{{"x":{i},"user":"u{i}"}}\n' for i in range(400)).encode()
    odd = b'{"x":NaN,"user":"cafe\xcc\x81"}\n'
    by_the_careful_reader: list[bytes] = []
    spelled_by_itself: list[object] = []
    record, canonical = json_cells.record, tokens.canonical
    monkeypatch.setattr(json_cells, "records", None)
    monkeypatch.setattr(json_cells, "record", lambda line: by_the_careful_reader.append(line) or record(line))
    monkeypatch.setattr(tokens, "canonical", lambda cell: spelled_by_itself.append(cell) or canonical(cell))
    lines = read(block + odd + block, NAMES, KNOWN, 0)
    assert by_the_careful_reader == [odd.strip()]
    users = prepared(lines.columns["user"], "users")
    assert len(users) == lines.rows == 801
    assert list(users)[400] == "caf\u00e9"
    assert spelled_by_itself == ["cafe\u0301"]


def test_interpreted_loops_are_silent_about_long_cells() -> None:
    """A warning of numpy's would be a line in the log that one record decides about."""
    cells = ["9999999999999999999", '"9999999999999999999"', "0." + "9" * 25, '"' + "\u00e9" * 9 + '"', "z" * 18]
    data, offsets = fixed(Texts.of(cells))
    numbers, how = np.zeros(len(cells), np.int64), np.empty(len(cells), np.uint8)
    with np.errstate(all="raise"):
        token_kernels.read_integers(data, offsets, numbers, how)
        assert (how == token_kernels.UNKNOWN).all()
        token_kernels.read_amounts(data, offsets, token_kernels.POWERS, numbers.astype(np.float64), how)
        assert (how == token_kernels.UNKNOWN).all()
