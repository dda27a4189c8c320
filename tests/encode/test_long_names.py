"""Names of megabytes: anybody may send them, and they cost what their bytes cost."""

from __future__ import annotations

import tracemalloc

from evertally.encode.name_index import distinct, work_on
from evertally.encode.name_kernels import gather, kernel
from evertally.encode.texts import Texts


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


def test_the_interpreter_reads_no_megabytes() -> None:
    """However few names they are. It takes a microsecond a byte, and compiled loops hardly anything."""
    assert work_on(Texts.of(["a", "b"])) == 2
    assert kernel(gather, work_on(Texts.of(["x" * 100_000]))) is not gather
