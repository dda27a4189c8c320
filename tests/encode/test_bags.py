"""Collections and mappings, laid out flat: the same totals as event by event, bit for bit, whatever lies in them."""

from __future__ import annotations

import random
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evertally.encode import CategoryDoor, ItemDoor, name_kernels
from evertally.encode.bags import bags, whole_weights
from evertally.encode.plain import whole

# Two spellings of one label, halves of surrogate pairs, the longest label and one that is too long, numbers and texts
# that are one label, "" that is a label, names that sort otherwise by bytes of UTF-16.
LABELS: list[Any] = [
    "a",
    "b",
    "7",
    7,
    -0,
    "-0",
    "",
    "é",
    "e\u0301",
    "\ud800",
    "\uffff",
    "\U00010000",
    "x" * 1024,
    "x" * 1025,
]
LABELS += [None, 10**399, 10**400, *range(100, 120), *(f"label {i}" for i in range(30))]
WEIGHTS: list[Any] = [
    1,
    2,
    0,
    -3,
    2**40,
    2**62,
    -(2**62),
    10**30,
    2.9,
    -2.9,
    float("nan"),
    float("inf"),
    True,
    "3",
    None,
]


def secret_order(message: bytes) -> bytes:
    return blake2b(message, key=b"only for tests", digest_size=16).digest()


def an_event(pick: random.Random, kind: str, labels: list[Any], weights: list[Any]) -> Any:
    some = [pick.choice(labels) for _ in range(pick.choice((0, 1, 2, 3, 5, 8, 12)))]
    if kind == "mixed":
        kind = pick.choice(("list", "tuple", "set", "dict", "label"))
    if kind == "label":
        return pick.choice(labels)
    if kind == "dict":
        return {label: pick.choice(weights) for label in some}
    return {"list": list, "tuple": tuple, "set": set}[kind](some)


def doors(pick: random.Random) -> tuple[ItemDoor, CategoryDoor]:
    most, heaviest = pick.choice((1, 2, 3, 7)), pick.choice((1, 2, 1000, 2**40))
    declared = ["b", "a", "é", "7", "0", *range(100, 112), ""]
    pick.shuffle(declared)
    categories = CategoryDoor(
        declared,
        pick.choice((None, "rest")),
        min(most, len(declared)),
        heaviest,
        pick.random() < 0.5,
        order=secret_order,
        rank_by_label=pick.random() < 0.3,
    )
    return ItemDoor(most, heaviest, order=secret_order), categories


@pytest.mark.parametrize("kind", ["list", "tuple", "set", "dict", "mixed"])
@pytest.mark.parametrize("compiled", [True, False])
def test_flat_totals_are_those_of_the_events_one_by_one(
    kind: str, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_kernels, "_COMPILE_FROM", 0 if compiled else 10**9)
    monkeypatch.setattr(name_kernels, "_compiled", set())
    pick = random.Random(f"{kind} {compiled}")
    flat = 0
    for _ in range(150):
        weights = pick.choice((WEIGHTS[:8], WEIGHTS, [0.5, 2.9, float("nan"), 1e300], [1, 2, 3]))
        events = [an_event(pick, kind, LABELS, weights) for _ in range(pick.choice((1, 3, 20)))]
        tick = pick.choice((1, 9, 10, 10**12))
        items, categories = doors(pick)
        flat += bags(events) is not None
        assert items.totals(events, tick).mapping() == items._one_by_one(events, tick).mapping()
        assert categories.totals(events, tick).tolist() == categories._one_by_one(events, tick).tolist()
    assert flat == 150


def test_arrow_lists_and_maps_are_those_of_their_events_one_by_one() -> None:
    pick = random.Random(3)
    texts = [label for label in LABELS if isinstance(label, str) and label != "\ud800"]
    numbers = [7, -3, 0, *range(100, 120)]
    for _ in range(150):
        labels, kind = pick.choice(((texts, pa.string()), (texts, pa.large_string()), (numbers, pa.int32())))
        weights, of = pick.choice(
            (([1, -2, 2**40, None], pa.int64()), ([2**64 - 1, 5], pa.uint64()), ([0.5, 3.7], pa.float64()))
        )
        count = pick.choice((1, 4, 20))
        if pick.random() < 0.5:
            made = [pick.choice((None, an_event(pick, "list", [*labels, None], weights))) for _ in range(count)]
            column = pa.array(made, pick.choice((pa.list_, pa.large_list))(kind))
        else:  # a key may come twice: then the last one counts, as in a dictionary
            pairs = [
                [(pick.choice(labels), pick.choice(weights)) for _ in range(pick.randrange(7))] for _ in range(count)
            ]
            made = [None if pick.random() < 0.2 else entry for entry in pairs]
            column = pa.array(made, pa.map_(kind, of))
        start, cut = pick.randrange(count), pick.randrange(count)
        for form in (column, column[start:], pa.chunked_array([column[:cut], column[cut:]])):
            items, categories = doors(pick)
            one_by_one = _python_forms(form)
            assert items.totals(form, 5).mapping() == items._one_by_one(one_by_one, 5).mapping()
            assert categories.totals(form, 5).tolist() == categories._one_by_one(one_by_one, 5).tolist()


def _python_forms(column: Any) -> list[Any]:
    plain = column.to_pylist()
    return [None if entry is None else dict(entry) for entry in plain] if pa.types.is_map(column.type) else plain


def test_what_lies_under_a_null_is_no_item_and_a_key_that_is_no_text_spoils_its_event_alone() -> None:
    offsets, keys = pa.array([0, 2, 3, 5], pa.int32()), pa.array(["a", "b", "c", "a", "d"])
    under = pa.MapArray.from_arrays(offsets, keys, pa.array([1, 1, 1, 1, 1]))
    bits = pa.py_buffer(bytes([0b101]))
    hidden = pa.Array.from_buffers(under.type, 3, [bits, under.buffers()[1]], children=[_entries(keys)])
    assert hidden.null_count == 1
    items = ItemDoor(5, 1, order=secret_order)
    assert items.totals(hidden, 1).mapping() == {"a": 2, "b": 1, "d": 1}
    broken = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(np.array([0, 1, 2, 3], np.int32)), pa.py_buffer(b"a\xffb")]
    )
    maps = pa.MapArray.from_arrays(pa.array([0, 2, 3], pa.int32()), broken, pa.array([1, 1, 1]))
    assert items.totals(maps, 1).mapping() == {"b": 1}


def _entries(keys: Any) -> Any:
    fields = [pa.field("key", pa.string(), nullable=False), pa.field("value", pa.int64())]
    return pa.StructArray.from_arrays([keys, pa.array([1] * len(keys))], fields=fields)


def test_weights_are_what_single_cells_mean() -> None:
    for column in (
        WEIGHTS[:7],
        WEIGHTS[:8],
        WEIGHTS,
        [0.5, -7.9, 1e300, -1e300, float("inf")],
        [],
        [np.int8(3), b"4", [1]],
    ):
        assert whole_weights(column).tolist() == [whole(value, 2**62) for value in column]
    for column in (
        pa.array([2**64 - 1, 3], pa.uint64()),
        pa.array([1.5, None]),
        pa.array([-(2**63), None]),
        pa.array(["3"]),
    ):
        assert whole_weights(column).tolist() == [whole(value, 2**62) for value in column.to_pylist()]


def test_sums_that_64_bits_do_not_hold_are_exact() -> None:
    signed = CategoryDoor(["7"], None, 1, 2**40, True, order=secret_order)
    events = [{7: 2**62, "7": 2**62}, {7: -(2**62), "7": 2**62 - 5}, {7: -(2**70), "7": -(2**62)}]
    assert [signed.totals([event], 1).tolist() for event in events] == [[2**40], [-5], [-(2**40)]]
    assert signed.totals(events, 1).tolist() == [-5]


def test_objects_that_only_look_like_collections_are_looked_at_one_by_one() -> None:
    class Many(list):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 0

    class Other(dict):  # type: ignore[type-arg]
        def values(self) -> Any:
            return [10**9]

    for event in (Many(["a", "b"]), Other(a=1), [["a"]], {"a": 1, 2.5: 1}):
        items = ItemDoor(5, 3, order=secret_order)
        assert items.totals([event], 1).mapping() == items.row(event, 1)
    assert bags([Many(["a"])]) is None
    assert bags([Other(a=1)]) is None
