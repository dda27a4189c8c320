"""A text may have megabytes: no loop over its bytes is interpreted, and nothing takes a multiple of its memory."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np

from evertally.encode.name_index import distinct
from evertally.encode.texts import Texts

# In a process of its own: which loops are compiled already is a matter of the process.
_FEW_LONG = """
import numpy as np
from evertally.encode import name_index
from evertally.encode.name_index import NameIndex, distinct, taken
from evertally.encode.texts import Texts
from evertally.runtime.input import tokens
from evertally.runtime.input.tokens import column_of, spelled

long = "a" * 100_000
interpreted = set()
for module in (name_index, tokens):
    def noted(function, *work, chosen=module.kernel):
        found = chosen(function, *work)
        if found is function:
            interpreted.add(function.__name__)
        return found
    module.kernel = noted
names = Texts.of([long, "b", long])
index = NameIndex()
found = index.find(names, np.zeros(3, np.uint8))
assert index.enter(names, found).tolist() == [0, 1, 0]
assert index.find(names, np.zeros(3, np.uint8)).tolist() == [0, 1, 0]
codes, different = distinct(names)
assert codes.tolist() == [0, 1, 0] and len(different) == 2
assert taken(names.data, names.offsets[:-1], names.lengths).size == names.size
assert list(spelled(column_of(Texts.of([f'"{long}"', '"b"'])))) == [long, "b"]
print(sorted(interpreted))
"""


def test_few_long_names_are_not_gone_through_byte_by_byte() -> None:
    run = subprocess.run([sys.executable, "-c", _FEW_LONG], capture_output=True, text=True, check=False)
    # The first looks at hashes alone, the second was asked for the names of an empty index.
    assert (run.returncode, run.stdout) == (0, "['fill_slots', 'hash_names']\n"), run.stderr


def test_taking_long_texts() -> None:
    texts = Texts.of(["x" * 1000, "", "yz" * 3000, "z"])
    assert texts.take(np.array([2, 0, 1, 2])).list() == [texts[2], texts[0], "", texts[2]]
    assert texts.take(np.array([], np.int64)).list() == []
    assert distinct(texts.take(np.array([2, 2])))[0].tolist() == [0, 0]


def test_a_few_long_names_take_little_more_memory_than_they_are() -> None:
    """A tick is computed again after a restart: one that takes all memory once does so for ever."""
    names = Texts.of(["x" * 1_000_000, "y" * 1_000_000, "x" * 1_000_000, "z", "x" * 1024, "x" * 1025])
    distinct(Texts.of(["w" * 100_000, "w"]))  # whatever has to be compiled is not counted
    tracemalloc.start()
    try:
        codes, found = distinct(names)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert codes.tolist() == [0, 1, 0, 2, 3, 4]
    assert [len(name) for name in found.list()] == [1_000_000, 1_000_000, 1, 1024, 1025]
    assert peak < 3 * len(names.data)
