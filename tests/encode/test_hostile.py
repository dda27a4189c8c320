"""Records that lie about themselves: they are bounded by what they are, raise nothing, and nobody hears of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import evertally as et
from conformance.hostile import (
    Explosive,
    LyingBytes,
    LyingDict,
    LyingFloat,
    LyingInt,
    LyingList,
    LyingText,
    OfLyingType,
    Pretender,
    liars,
    signalling_nan,
)
from evertally import oneshot
from evertally.contract.inputs import as_integers, keep_events
from evertally.contract.rows import SparseRows
from evertally.encode import AmountDoor, CategoryDoor, ItemDoor, UserCap, ValueDoor
from evertally.encode.labels import canonical, coded
from evertally.encode.plain import only, plain, real, whole
from evertally.errors import ConfigurationError
from evertally.histogram.expressions import exact_number
from evertally.noise import ZeroNoise
from evertally.privacy import Neighbours

OWN = (type(None), bool, int, float, str, bytes, Decimal, Fraction)
# By number: a test runner, too, looks at what it is given.
EACH = pytest.mark.parametrize("which", range(len(liars())), ids=[type(record).__name__ for record in liars()])


def order(message: bytes) -> bytes:
    return blake2b(message, key=b"secret").digest()


class Endless(Sequence[Any]):
    """A sequence without an end."""

    def __getitem__(self, index: Any) -> Any:
        return "a"

    def __len__(self) -> int:
        return 2


class EndlessMapping(Mapping[Any, Any]):
    """A mapping without an end."""

    def __getitem__(self, key: Any) -> Any:
        return 10**6

    def __iter__(self) -> Iterator[Any]:
        return count()

    def __len__(self) -> int:
        return 1


def as_objects(entries: list[Any]) -> Any:
    column = np.empty(len(entries), dtype=object)  # numpy.array would read the entries
    for i, entry in enumerate(entries):
        column[i] = entry
    return column


@pytest.fixture(autouse=True)
def no_warning_is_heard() -> Iterator[None]:
    # Noted, not raised: numpy crashes if a warning of a conversion is turned into an error.
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    assert not heard


@EACH
def test_what_leaves_is_of_a_built_in_type(which: int) -> None:
    record = liars()[which]
    value = plain(record)
    assert any(type(value) is own for own in OWN)
    assert type(canonical(record)) in (str, type(None))
    assert type(whole(record, 3)) is int
    assert -3 <= whole(record, 3) <= 3
    assert type(real(record)) is float
    assert canonical(record) == canonical(record), "one record, one name"


def test_a_liar_is_what_it_is() -> None:
    assert [whole(record, 10**9) for record in liars()[:5]] == [10**6] * 5
    assert [canonical(record) for record in (LyingInt(7), LyingFloat(7), LyingText("a"), LyingBytes(b"a"))] == [
        "7",
        "7",
        "a",
        "a",
    ]
    assert [whole(Decimal(text), 5) for text in ("sNaN", "-Infinity", "1e999999", "-2.9", "1e-999999")] == [
        0,
        0,
        5,
        -2,
        0,
    ]
    assert whole(np.longdouble("1e4000"), 5) == 5
    assert whole(np.longdouble("nan"), 5) == 0


@EACH
@pytest.mark.parametrize("column", [list, tuple, as_objects])
def test_no_door_lets_more_through_than_it_says(which: int, column: Any) -> None:
    record = liars()[which]
    events = column([record])
    assert 0 <= AmountDoor(max_weight=1).totals(events, 1) <= 1
    assert -3 <= AmountDoor(max_weight=3, signed=True).totals(events, 1) <= 3
    for weight in (1, 2):
        row = CategoryDoor(["a", "b"], "rest", 1, weight, order=order).totals(events, 1)
        assert np.abs(row).sum() <= weight
        totals = ItemDoor(1, weight, order=order).totals(events, 1)
        assert totals.counts.sum() <= weight
    value, number = ValueDoor(0, 10, 1).totals(events, 1).tolist()
    assert abs(value) <= 5
    assert number in (0, 5)


@EACH
def test_the_order_of_events_and_what_stands_beside_them_do_not_matter(which: int) -> None:
    record = liars()[which]
    door, items = CategoryDoor(["a", "b"], "rest", 2, 2, order=order), ItemDoor(2, 2, order=order)
    beside: list[Any] = ["a", ["b", "c"], 7, {"a": 9}]
    alone = door.totals(beside, 1), items.totals(beside, 1).mapping()
    one = door.totals([record], 1), items.totals([record], 1).mapping()
    both = door.totals([*beside, record], 1), items.totals([record, *beside], 1).mapping()
    assert (both[0] == alone[0] + one[0]).all()
    assert both[1] == {label: alone[1].get(label, 0) + one[1].get(label, 0) for label in {**alone[1], **one[1]}}


@EACH
def test_a_user_has_one_name(which: int) -> None:
    record = liars()[which]
    cap = UserCap(1)
    assert sum(int(cap.keep([record, "bob"], tick).sum()) for tick in range(1, 20)) <= 2
    assert sum(UserCap(1).keep([record] * 20, 1)) <= 1


def test_lists_and_mappings_are_read_by_what_they_hold() -> None:
    door = CategoryDoor(["a", "b", "0"], max_per_event=3, max_weight=2, order=order)
    assert door.totals([LyingList(["a", "b"])], 1).tolist() == [1, 1, 0]
    assert door.totals([LyingDict({"a": 10**6})], 1).tolist() == [2, 0, 0]


def test_events_without_an_end_are_read_up_to_a_limit() -> None:
    assert CategoryDoor(["a", "b"], order=order).totals([Endless(), "b"], 1).tolist() == [1, 1]
    totals = ItemDoor(1, 2, order=order).totals([EndlessMapping(), "b"], 1)
    assert sorted(totals.counts.tolist()) == [1, 2]


def test_types_that_say_they_are_others_take_no_fast_path() -> None:
    assert not only([OfLyingType(), 7], int)
    assert coded([OfLyingType(), 7]) is None
    assert coded([LyingInt(7), 7]) is None
    assert ItemDoor(order=order).totals([OfLyingType(), "a"], 1).mapping() == {"a": 1}


def test_a_masked_entry_stays_masked() -> None:
    masked = np.ma.masked_array([1, 1, 1], mask=[False, True, True])
    assert AmountDoor().totals(masked, 1) == 1
    assert ValueDoor(0, 2, 1).totals(masked, 1).tolist() == [0, 1]


# -- parameters of the caller ------------------------------------------------------------------------------------------


def test_parameters_are_read_before_they_are_bounded() -> None:
    for make in (lambda x: AmountDoor(max_weight=x), UserCap):
        with pytest.raises(ConfigurationError):
            make(LyingInt(2**41))
        assert make(LyingInt(5)).__dict__["max_weight" if make is not UserCap else "max_events"] == 5
    with pytest.raises(ConfigurationError):
        et.Counter(guarantee=et.PureDP(1), horizon=9, max_weight=LyingInt(0), key=et.simulation(1))


@pytest.mark.parametrize(
    ("lower", "upper", "resolution"),
    [
        (0, 5e-324, None),
        (0, 1e-310, None),
        (-5e-324, 5e-324, 5e-324),
        (0, 1e-305, 1e-309),
        (1e16, 1e16 + 2, None),
        (0, 1, Fraction(10) ** 400),
        (0, float("inf"), None),
        (float("nan"), 1, None),
        (Decimal("sNaN"), 1, None),
        (1, 0, None),
        (0, "1", None),
        (0, 1, 0),
        (0, 1, -1),
        (0, 1, float("nan")),
        (False, True, None),
    ],
)
def test_ranges_that_floats_cannot_cut_are_refused(lower: Any, upper: Any, resolution: Any) -> None:
    with pytest.raises(ConfigurationError):
        ValueDoor(lower, upper, resolution)


@pytest.mark.parametrize(
    ("lower", "upper"), [(0, 1e-300), (-1e308, 1e308), (-1.7e308, 1.7e308), (1e15, 1e15 + 4), (0.1, 0.3)]
)
def test_ranges_at_the_edge_are_bounded(lower: float, upper: float) -> None:
    door = ValueDoor(lower, upper)
    extreme = [lower, upper, (lower / 2 + upper / 2), 1.7e308, -1.7e308, np.inf, -np.inf, 5e-324, 10**400, 0]
    for values in (extreme, np.array([float(real(x)) for x in extreme])):
        for value in values:
            total, number = door.totals([value], 1).tolist()
            assert number == door.steps
            assert abs(total) <= door.steps
    assert door.totals([lower], 1)[0] == -door.steps
    assert door.totals([upper], 1)[0] == door.steps


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_signalling_nan_is_not_heard(kind: Any) -> None:
    column = np.array([signalling_nan(kind), kind(1)])
    for events in (column, list(column), pa.array(column)):
        assert AmountDoor().totals(events, 1) == 1
        assert ValueDoor(0, 2, 1).totals(events, 1).tolist() == [0, 1]
        assert CategoryDoor(["1"], order=order).totals(events, 1).tolist() == [1]
        assert ItemDoor(order=order).totals(events, 1).mapping() == {"1": 1}
        assert UserCap(1).keep(events, 1).tolist() == [False, True]
    half = np.array([0x7C01], dtype=np.uint16).view(np.float16)
    for events in (half, list(half), np.array([np.longdouble("nan")])):
        assert AmountDoor().totals(events, 1) == 0
        assert ValueDoor(0, 2, 1).totals(events, 1).tolist() == [0, 0]


# -- totals, tables and single histograms ------------------------------------------------------------------------------


def test_totals_are_copied_before_they_are_clipped() -> None:
    assert as_integers([LyingInt(10**30), LyingInt(-(10**30)), 3]).tolist() == [2**62, -(2**62), 3]
    for pretender in (Pretender(), OfLyingType()):
        with pytest.raises(TypeError):
            as_integers([pretender, 10**30])
    counter = et.Counter(guarantee=et.PureDP(1), horizon=4, key=ZeroNoise())
    assert counter.step(LyingInt(10**30)).value == counter._tick_limit
    for wrong in (-1, 1.5, True, "3", None):
        with pytest.raises(TypeError):
            SparseRows([0], [0], length=wrong, width=1)
    rows = SparseRows([0], [0], [7], length=LyingInt(2), width=LyingInt(1))
    assert rows.dense().tolist() == [[7], [0]]
    assert rows.shape == (2, 1)
    assert all(type(n) is int for n in rows.shape)


def test_tables_cannot_be_changed_after_they_were_checked() -> None:
    rows = SparseRows([0], [0], length=2, width=1)
    for part in (rows.ticks, rows.columns, rows.weights):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 9


def test_a_single_histogram_reads_liars() -> None:
    histogram = {LyingText("a"): LyingInt(10**6), OfLyingType(): 7, "b": Decimal("sNaN"), "c": LyingFloat(3)}
    value = oneshot.known_histogram(histogram, ["a", "b", "c"], guarantee=et.ZCDP(0.5), key=ZeroNoise()).value
    assert value == {"a": 10**6, "b": 0, "c": 3}


def test_a_mapping_of_totals_reads_liars() -> None:
    histogram = et.Histogram(categories=["a", "b"], guarantee=et.PureDP(1), horizon=4, key=ZeroNoise())
    assert histogram.step({LyingText("a"): 5, OfLyingType(): 3, "b": 10**30}).value["a"] == 5


def test_explosive_records_beside_others_count_nothing() -> None:
    counter = et.Counter(guarantee=et.PureDP(1), horizon=4, key=ZeroNoise(), unit="user", max_events_per_user=1)
    users = [Explosive(), "ann", ["bob"], LyingInt(3), LyingInt(3)]
    assert counter.step_events([1] * 5, users=users).value == 2


class SomeFraction(Fraction):
    """A fraction that is another one whenever it is asked."""

    numerator = property(lambda self: LyingInt(7))
    denominator = property(lambda self: LyingInt(2))


class SomeWord(LyingText):
    """A word that is equal to every other."""


def test_numbers_of_a_promise_are_read_once() -> None:
    for made in (et.PureDP(SomeFraction(7, 2)), et.PureDP(LyingFloat(3.5))):
        assert type(made.exact_epsilon) is Fraction
        assert made.exact_epsilon == Fraction(7, 2)
        assert type(made.exact_epsilon.numerator) is int
    assert et.PureDP(LyingInt(3)).exact_epsilon == 3
    for value in (SomeFraction(7, 2), LyingFloat(3.5), LyingText("7/2")):
        number = exact_number(value)
        assert type(number) is Fraction
        assert number == Fraction(7, 2)
        assert type(number.numerator) is int
    with pytest.raises(ConfigurationError):
        et.MaxSum(3, guarantee=et.PureDP(1), horizon=9, split=[SomeFraction(7, 2)] * 3, key=ZeroNoise())


def test_a_relation_is_what_it_is_called() -> None:
    assert Neighbours.parse(SomeWord("replace")) is Neighbours.REPLACE
    with pytest.raises(ConfigurationError):
        Neighbours.parse(SomeWord("some other"))


def test_a_column_is_what_it_holds() -> None:
    """Columns of the caller's own making: read by the code of lists, as long as they are and no longer."""
    column = LyingList(["a", "a", "b"])
    assert CategoryDoor(["a", "b"], order=order).totals(column, 1).tolist() == [2, 1]
    assert ItemDoor(order=order).totals(column, 1).mapping() == {"a": 2, "b": 1}
    assert AmountDoor(9).totals(LyingList([1, 2]), 1) == 3
    assert UserCap(1).keep(column, 1).tolist() == [True, False, True]
    assert keep_events(column, np.array([True, False, True])) == ["a", "b"]
