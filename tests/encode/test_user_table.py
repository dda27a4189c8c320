"""The table of users against a dictionary: every line interrupted, many names, long ones, forgotten and erased ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evertally.checks.interruptions import interrupted, lines_of
from evertally.encode import name_index, name_kernels
from evertally.encode.texts import LONGEST_LABEL, Texts
from evertally.encode.user_table import UserTable
from evertally.errors import StateError

NAMES = ["", "a", "b", "ab", "ba", "é", "x" * 1024, "x" * 1025, "x" * 1024 + "y", "\ud83d", "7"]
names = st.lists(st.sampled_from(NAMES), max_size=6)
steps = st.lists(
    st.tuples(st.sampled_from(["add", "add", "add", "forget", "begin", "undo", "load", "erase"]), names), max_size=25
)


def digest(name: bytes) -> bytes:
    return hashlib.blake2b(name, key=b"key of a test", digest_size=32).digest()


def add(table: UserTable, labels: list[str], amount: int = 1) -> None:
    """Every user of the tick has `amount` more in field 0, and the last amount in field 1."""
    numbers = table.enter(Texts.of(list(dict.fromkeys(labels))))
    table.write(0, numbers, table.read(0, numbers) + amount)
    table.write(1, numbers, np.full(len(numbers), amount))


def content(table: UserTable) -> dict[str, tuple[int, int]]:
    numbers = table.find(Texts.of(NAMES))
    rows = zip(table.read(0, numbers).tolist(), table.read(1, numbers).tolist(), strict=True)
    found = dict(zip(NAMES, rows, strict=True))
    return {name: row for (name, row), n in zip(found.items(), numbers, strict=True) if n >= 0}


@given(steps, st.integers(0, 3))
def test_it_does_what_a_dictionary_does(sequence: list[tuple[str, list[str]]], seed: int) -> None:
    table = UserTable(2, seed)
    model: dict[str, tuple[int, int]] = {}
    before, erased = dict(model), set[str]()
    for i, (what, labels) in enumerate(sequence, 1):
        if what == "add":
            add(table, labels, i)
            for name in dict.fromkeys(labels):
                model[name] = model.get(name, (0, 0))[0] + i, i
        elif what == "forget":
            table.forget(np.array([n for n in table.find(Texts.of(labels)) if n >= 0], np.int64))
            model = {name: row for name, row in model.items() if name not in labels or name in erased}
        elif what == "undo":
            table.undo()
            model = dict(before)
        else:
            if what == "begin":
                table.begin()
            elif what == "erase":
                table.erase(Texts.of(labels), digest)
                erased.update(labels)
                model |= {name: (0, 0) for name in labels if name not in model}
            else:
                saved = table.save()
                table = UserTable(2, seed + 1)
                table.recognise(digest)
                table.load(saved)
                assert table.save() == saved
            before = dict(model)
        assert content(table) == model
        assert len(table) == len(model)
        numbers = table.find(Texts.of(NAMES))
        assert {name for name, gone in zip(NAMES, table.erased(numbers), strict=True) if gone} == erased
        assert sorted(table.names(table.present()).list()) == sorted(set(model) - erased)


@pytest.mark.parametrize("forgotten", [False, True])
def test_a_call_that_is_interrupted_at_any_line_can_be_taken_back(forgotten: bool) -> None:
    many = [f"u{i}" for i in range(40)]  # more than there is room for: everything grows

    def begun() -> UserTable:
        table = UserTable(2)
        add(table, ["a", "b", "ab", "7"])
        table.forget(table.find(Texts.of(["ab", "7", "b"] if forgotten else ["ab"])))
        table.begin()
        return table

    def call(table: UserTable) -> None:
        add(table, ["b", "ba", "a"], 5)
        table.forget(table.find(Texts.of(["a", "ba"])))
        add(table, ["a", *many], 7)

    def check(table: UserTable, at: Any) -> None:
        assert (content(table), len(table), table.save()) == as_before, str(at)
        call(table)
        assert (content(table), table.save()) == after

    table = begun()
    as_before = content(table), len(table), table.save()
    call(table)
    after = content(table), table.save()
    fresh = begun()
    for line in lines_of(lambda: call(fresh))[1]:
        table = begun()
        assert interrupted(lambda: call(table), line)  # noqa: B023
        table.undo()
        check(table, line)

    def moved() -> UserTable:
        table = begun()
        call(table)
        return table

    for line in lines_of(moved().undo)[1]:
        table = moved()
        assert interrupted(table.undo, line)
        table.undo()
        check(table, line)
    for line in lines_of(begun().begin)[1]:
        table = begun()
        assert interrupted(table.begin, line)
        table.begin()
        check(table, line)


def test_an_interrupted_erasure_is_done_or_not() -> None:
    def made() -> UserTable:
        table = UserTable(2)
        add(table, ["a", "b"])
        return table

    erase: Callable[[UserTable], Any] = lambda table: table.erase(Texts.of(["a", "ba"]), digest)  # noqa: E731
    done = made()
    erase(done)
    fresh = made()
    for line in lines_of(lambda: erase(fresh))[1]:
        table = made()
        assert interrupted(lambda: erase(table), line)  # noqa: B023
        assert table.save() in (made().save(), done.save())
        erase(table)
        assert table.save() == done.save()


def test_many_names_are_found_again_by_compiled_loops_as_by_interpreted_ones() -> None:
    rng = np.random.default_rng(1)
    labels = [f"user {i}" for i in rng.permutation(700)]
    table = UserTable(1)
    numbers = table.enter(Texts.of([*labels, *labels[:50]]))
    assert numbers.tolist() == [*range(700), *range(50)]
    assert len(table) == 700
    few = [table.find(Texts.of(labels[i : i + 7])) for i in range(0, 700, 7)]
    assert np.concatenate(few).tolist() == list(range(700))
    table.begin()
    table.enter(Texts.of([f"other {i}" for i in range(5000)]))
    table.undo()
    assert table.find(Texts.of([*labels, "other 3"])).tolist() == [*range(700), -1]
    table.forget(np.arange(600))
    table.begin()
    assert len(table) == 100
    assert table.find(Texts.of(labels)).tolist() == [-1] * 600 + list(range(100))


def test_hashes_are_the_same_by_both_ways_and_depend_on_the_seed() -> None:
    texts = Texts.of([*NAMES, *(f"user {i}" * (i % 50) for i in range(600))])
    at_once = name_index._hashes(texts, 5)
    one_by_one = [name_index._hashes(texts.take(np.array([i])), 5)[0] for i in range(len(texts))]
    assert at_once.tolist() == one_by_one
    for other in (0, 6):
        assert (name_index._hashes(texts, other) != at_once)[texts.lengths > 0].all()


def test_names_with_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_index, "_hashes", lambda names, seed: np.full(len(names), 3))
    table = UserTable(1)
    assert table.enter(Texts.of(["a", "b", "a", "ab"])).tolist() == [0, 1, 0, 2]
    assert table.find(Texts.of(["ab", "ba", "b"])).tolist() == [2, -1, 1]
    table.forget(np.array([1]))
    assert table.enter(Texts.of(["b", "a", "ab"])).tolist() == [3, 0, 2]
    # Eight bytes are compared at once: a difference in each of them counts, and nothing that is behind a name.
    alike = [
        "".join("Y" if i == place else "x" for i in range(length)) for length in (8, 11) for place in range(length)
    ]
    numbers = table.enter(Texts.of(alike)).tolist()
    assert len(set(numbers)) == len(alike)
    assert table.find(Texts.of(alike)).tolist() == numbers
    assert table.find(Texts.of(["x" * 8, "x" * 11, *alike])).tolist() == [-1, -1, *numbers]


def test_an_erased_name_is_in_no_bytes_and_is_recognised_after_a_restart() -> None:
    table = UserTable(1)
    numbers = table.enter(Texts.of(["somebody", "bob", "planted name"]))
    table.write(0, numbers, np.array([1, 2, 3]))
    table.forget(table.find(Texts.of(["somebody"])))
    table.begin()
    table.enter(Texts.of(["somebody"]))
    table.erase(Texts.of(["planted name", "somebody", "never here"]), digest)
    for secret in (table.save(), table._now.index._data.tobytes()):
        assert not any(name in secret for name in (b"planted", b"somebody", b"never"))
    again = UserTable(1)
    again.load(table.save())
    with pytest.raises(StateError, match="recognise"):
        again.find(Texts.of(["new"]))
    again.recognise(digest)
    found = again.enter(Texts.of(["planted name", "bob", "never here", "new"]))
    assert again.erased(found).tolist() == [True, False, True, False]
    assert again.read(0, found).tolist() == [3, 2, 0, 0]
    again.forget(found)
    again.begin()
    assert again.erased(again.find(Texts.of(["planted name", "bob"]))).tolist() == [True, False]


def test_damaged_bytes_are_refused() -> None:
    table = UserTable(1)
    table.enter(Texts.of(["ann", "bob"]))
    saved = table.save()
    twice = saved.replace(b"bob", b"ann")
    for damaged in (b"", b"other", saved[:-1], saved + b"x", saved[:40], twice):
        with pytest.raises(StateError):
            UserTable(1).load(damaged)
    with pytest.raises(StateError):
        UserTable(2).load(saved)


def test_there_is_a_multiplier_for_each_byte_of_the_longest_name() -> None:
    """With one used twice, or one that is no number of ours, names that agree could be found."""
    found = name_index._multipliers(7)
    assert len(found) == LONGEST_LABEL == len(set(found.tolist()))


def test_of_many_names_none_is_left_out_of_the_slots() -> None:
    """They are entered in blocks of 1024; one that is not found again would be a stranger, with a cap of its own."""
    every = Texts.of([str(i) for i in range(3 * 1024 + 5)])
    slots = np.zeros(1 << 13, np.int64)
    which = np.arange(len(every))
    name_kernels.fill_slots(which, name_index._hashes(every, 5), slots)
    assert sorted((slots[slots != 0] & 0xFFFFFFFF).tolist()) == (which + 1).tolist()
    index = name_index.NameIndex(5, every)
    assert index.find(every, np.zeros(len(every), np.uint8)).tolist() == which.tolist()
