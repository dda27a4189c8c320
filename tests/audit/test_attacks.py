"""Attacks on the system: they find nothing in the product, and they bite where there is something to find."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.sampler_timing import time_sampler

import evertally as et
from audit import copies, more_attacks
from conformance import MECHANISMS
from conformance.hostile import NONSENSE
from evertally import checks
from evertally.audit import attacks
from evertally.audit.attacks import Finding
from evertally.noise import DiscreteGaussian, DiscreteLaplace, NoiseKey
from evertally.runtime import load_spec, run
from evertally.runtime.state.fence import fence
from long import LONG

EVERY = pytest.mark.parametrize("subject", MECHANISMS, ids=lambda subject: subject.name)


def counter(**options: Any) -> Any:
    options = {"guarantee": et.PureDP(1.0), "horizon": 8, "mechanism": "tree"} | options
    return lambda key: et.Counter(key=key, **options)


# -- the same tick again ---------------------------------------------------------------------------------------------


@EVERY
def test_replay_restore_and_horizon_attacks_find_nothing(subject: checks.Subject) -> None:
    inputs = subject.feed(min(5, subject.length(subject.make(et.simulation(0)))))
    other = next((x for x in subject.feed(10) if not np.array_equal(x, inputs[0])), inputs[0])
    for finding in (
        attacks.replay_attack(subject.make, inputs[0], other),
        attacks.restore_attack(subject.make, inputs, copies=3),
    ):
        assert not finding.leaked, finding
    if (subject.make(et.simulation(0)).horizon or 0) <= 30:
        finding = attacks.horizon_attack(subject.make, inputs[0])
        assert not finding.leaked, finding


def test_copies_are_refused_in_every_way() -> None:
    for found in (
        copies.copies_attack(counter(name="visits")),
        copies.copies_attack(
            lambda key: et.VectorCounter(2, guarantee=et.ZCDP(0.5), horizon=8, name="visits", key=key), [1, 0], [0, 0]
        ),
    ):
        assert [finding for finding in found if finding.leaked] == []


def test_copies_on_other_data_would_reveal_the_difference() -> None:
    """What the refusals are for: said to see the same data, two copies that do not publish the exact difference."""
    key = et.Key.generate()
    first = counter(name="visits")(key)
    second = et.restore(first.snapshot(), key=key, allow_copy=True)
    assert first.step(7).value - second.step(3).value == 4


SPEC = """
stream = {name = "visits"}
guarantee = {rho = 0.5}
clock = {column = "time", start = 2013-01-01, tick = "1h", end = 2013-01-02}
key = {file = "visits.key"}
state = {file = "visits.state"}
output = {file = "visits.jsonl"}
query = [{name = "all", kind = "counter"}]
"""


def test_the_runtime_refuses_a_fork(tmp_path: Path) -> None:
    (tmp_path / "visits.toml").write_text(SPEC)
    for name, hours in (("morning", [7, 9]), ("evening", [14, 15]), ("forged", [13])):
        lines = "".join(f"2013-01-01T{hour:02d}:30:00Z\n" for hour in hours)
        (tmp_path / f"{name}.csv").write_text("time\n" + lines)
    spec = load_spec(tmp_path / "visits.toml")
    run(spec, tmp_path / "morning.csv", until="2013-01-01T12:00")
    state = (tmp_path / "visits.state").read_bytes()
    # One live copy: the lock. (Its holder may be another process; kill -9 is tested in tests/runtime/test_crash.py.)
    with fence(tmp_path / "visits.key"), pytest.raises(et.StateError, match="another process"):
        run(spec, tmp_path / "evening.csv")
    run(spec, tmp_path / "evening.csv")
    released = (tmp_path / "visits.jsonl").read_bytes()
    # A second life from the same state: the generation beside the key.
    (tmp_path / "visits.state").write_bytes(state)
    with pytest.raises(et.StateError, match="knows of tick 24"):
        run(spec, tmp_path / "forged.csv")
    assert (tmp_path / "visits.jsonl").read_bytes() == released


# -- the same noise elsewhere ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        counter(stream="other"),
        counter(name="other"),
        counter(guarantee=et.PureDP(0.5)),
        counter(guarantee=et.ZCDP(0.5)),
        counter(horizon=9),
        counter(mechanism="honaker"),
        counter(max_weight=2),
        counter(max_window=3),
        counter(memory_limit=8),
        counter(neighbours="replace"),
        counter(unit="user", max_events_per_user=1),
    ],
)
def test_any_other_name_or_parameter_is_other_noise(other: Any) -> None:
    finding = more_attacks.second_stream_attack(counter(), other)
    assert not finding.leaked, finding


def test_the_same_names_and_parameters_are_the_same_noise_on_purpose() -> None:
    finding = more_attacks.second_stream_attack(counter(), counter())
    assert finding.leaked
    assert "+1.00" in finding.evidence


def test_ranks_see_the_same_bits_at_two_scales() -> None:
    class Scaled:
        """The counter's own noise, seven times as large and cubed: another law, the same bits."""

        def __init__(self, key: NoiseKey) -> None:
            self.inner = counter()(key)

        def step_events(self, events: Any) -> float:
            return float((7 * self.inner.step_events(events).value) ** 3)

    assert more_attacks.second_stream_attack(counter(), Scaled).leaked


def test_columns_and_ticks_have_their_own_noise() -> None:
    for guarantee, mechanism in ((et.PureDP(1.0), "tree"), (et.ZCDP(0.5), "sqrt"), (et.ZCDP(0.5), "honaker")):

        def make(key: NoiseKey, guarantee: Any = guarantee, mechanism: str = mechanism) -> Any:
            return et.VectorCounter(3, guarantee=guarantee, horizon=4, mechanism=mechanism, key=key)

        assert not attacks.column_attack(make).leaked
    for mechanism in ("tree", "honaker"):
        finding = more_attacks.repeat_attack(counter(guarantee=et.PureDP(0.01), horizon=600, mechanism=mechanism))
        assert not finding.leaked, finding


class Wide:
    """Noise in many columns, of which one may have that of another."""

    def __init__(self, key: NoiseKey, columns: int, shared: bool) -> None:
        self._random = np.random.default_rng(int.from_bytes(key.mac("wide", b""), "little"))
        self._columns, self._shared = columns, shared

    def step_events(self, events: Any) -> Any:
        noise = self._random.integers(-1000, 1000, self._columns)
        if self._shared:
            noise[-2] = -noise[3]
        return noise


@pytest.mark.parametrize("columns", [6, 1500])
def test_two_columns_with_the_same_noise_are_found_among_thousands(columns: int) -> None:
    assert not attacks.column_attack(lambda key: Wide(key, columns, shared=False)).leaked
    found = attacks.column_attack(lambda key: Wide(key, columns, shared=True))
    assert found.leaked
    assert "-1.00" in found.evidence
    assert f"column {columns - 1})" in found.evidence


# -- what a release looks like ---------------------------------------------------------------------------------------


@EVERY
def test_no_record_changes_the_form_of_a_release(subject: checks.Subject) -> None:
    # Where the form follows what was released before, records that count may change it.
    follows = subject.labels is not None or subject.noise == "transcript"
    plays_bad_records(subject, NONSENSE if follows else subject.garbage)


def plays_bad_records(subject: checks.Subject, batches: list[Any]) -> None:
    model = subject.make(et.simulation(0))
    batches = batches[: model.horizon or 100]
    if isinstance(model, et.StreamingTopK):
        # Which columns are named, and in which order, is the answer: only its form must not depend on a record.
        for events in batches:
            release = attacks.through_door(model, events)
            assert len(release.value) == model.k
            assert all(type(count) is int for count in release.value.values())
        return
    if isinstance(model, et.strings.FrequentSubstrings):
        # A letter is a letter, whatever its object says: which words are found may depend on it, their form may not.
        for events in batches:
            value = attacks.through_door(model, events).value
            assert all(type(word) is str and type(count) is int for word, count in value.items())
        return
    # How wide an interval around an estimate is follows what was released: bits that are set, buckets that are full.
    estimated = isinstance(model, et.CountSketch) or bool(
        getattr(model, "bits", None) or getattr(model, "sample", None)
    )
    finding = attacks.bad_record_attack(subject.make, batches, radii=not estimated)
    assert not finding.leaked, finding


class NoClass:
    """An object that does not even tell its class."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise RuntimeError


class OwnHash(str):
    """Text that is never found where it was put."""

    def __hash__(self) -> int:
        raise RuntimeError


class NotItself(str):
    """Text that equals nothing: as a user it would be a new one in every event."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


class OwnFloat(float):
    def is_integer(self) -> bool:
        raise RuntimeError


HOSTILE = [[NoClass()], [OwnHash("a")], [NotItself("a")], [OwnFloat(2)], np.array([1, np.finfo(np.longdouble).max])]


@EVERY
def test_hostile_objects_are_records_like_any_other(subject: checks.Subject) -> None:
    # Warnings are errors here: a line on the terminal that depends on a record is a release, too.
    plays_bad_records(subject, HOSTILE)


def test_hostile_users_are_users_like_any_other() -> None:
    def make(key: NoiseKey) -> Any:
        return et.Counter(guarantee=et.PureDP(1.0), horizon=9, unit="user", max_events_per_user=2, key=key)

    plain, hostile = make(et.simulation(0)), make(et.simulation(0))
    users = [NotItself("ann"), OwnHash("ann"), NotItself("ann"), NoClass(), OwnFloat(2)]
    same = plain.step_events([1, 1, 1], users=["ann", "ann", 2.0])  # what they are, whatever they say
    assert hostile.step_events([1] * 5, users=users).value == same.value


def test_unknown_items_and_neighbours_look_alike() -> None:
    for other in (None, "rest"):

        def make(key: NoiseKey, other: str | None = other) -> Any:
            return et.Histogram(categories=["b", "a"], other=other, guarantee=et.PureDP(1.0), horizon=9, key=key)

        for finding in (
            attacks.unknown_item_attack(make),
            attacks.metadata_attack(make, [["a"], ["b", "c"], []], [[], ["b", "c"], []]),
        ):
            assert not finding.leaked, finding


def test_forms_differ_where_labels_types_or_error_bars_do() -> None:
    def release(value: Any, stddev: float = 1.0, radius: float = 2.0) -> et.Release:
        numbers = value if isinstance(value, dict) else {"": value}
        low, high = ({k: v + s for k, v in numbers.items()} for s in (-radius, radius))
        return et.Release(1, value, stddev, True, lambda beta: (low, high))

    same = attacks.form(release({"a": 1, "b": 2}))
    assert same == attacks.form(release({"a": 7, "b": -2}))
    for changed in (
        release({"b": 1, "a": 2}),
        release({"a": 1}),
        release({"a": 1, "b": 2.5}),
        release({"a": 1, "b": 2}, stddev=1.5),
        release({"a": 1, "b": 2}, radius=3.0),
    ):
        assert attacks.form(changed) != same


# -- the bits of a release -------------------------------------------------------------------------------------------


class FloatCounter:
    """What not to do: a count plus Laplace noise in float64."""

    guarantee = et.PureDP(1.0)

    def __init__(self, key: NoiseKey, scale: float = 1.0) -> None:
        bits = key.mac("uniform", b"")
        self.noise = scale * math.log(self.uniform(bits[:8]) / self.uniform(bits[8:16]))
        self.count = 0

    @staticmethod
    def uniform(bits: bytes) -> float:
        return ((int.from_bytes(bits, "little") >> 11) + 1) / 2.0**53

    def step(self, x: int) -> float:
        self.count += x
        return self.count + self.noise


def test_float_noise_gives_itself_away_by_its_bits() -> None:
    finding = more_attacks.float_support_attack(FloatCounter)
    assert finding.leaked, finding
    assert "and 0.000 on 1" in finding.evidence, "some doubles are reachable from one side only"


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_even_where_the_noise_is_larger_than_promised(scale: float) -> None:
    # The law is within epsilon = 1 (0.5 at scale 2) in exact arithmetic: only the bits leak.
    assert more_attacks.float_support_attack(lambda key: FloatCounter(key, scale)).leaked


def test_integer_releases_have_no_such_bits() -> None:
    for make in (counter(horizon=1), counter(guarantee=et.ZCDP(0.5), mechanism="sqrt")):
        finding = more_attacks.float_support_attack(make, trials=2000 if LONG else 400)
        assert not finding.leaked, finding
        assert "all releases are integers" in finding.evidence


@EVERY
def test_releases_lie_on_the_declared_grid(subject: checks.Subject) -> None:
    mechanism = subject.make(et.simulation(3))
    for x in subject.feed(subject.length(mechanism)):
        release = subject.step(mechanism, x)
        if isinstance(mechanism, et.UnknownHistogram | et.UnknownTopK | et.UnknownDistinctUsers):
            assert all(type(count) is int for count in release.value.values())
        else:
            # What leaves is this row or a function of it alone.
            assert mechanism._kept.played.recent.dtype == np.int64


# -- timing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", [DiscreteGaussian(16), DiscreteGaussian(2**40), DiscreteLaplace(10)])
def test_timing_is_measured_and_said(law: Any) -> None:
    timing = time_sampler(law, draws=60)
    print(timing)
    assert timing.fast > 0
    assert timing.slow > 0
    text = str(timing)
    assert "ns on the fast path" in text
    assert "slow path" in text
    assert sum(draws for draws, _ in timing.walks.values()) == (60 if law == DiscreteGaussian(16) else 0)


def test_findings_are_values() -> None:
    assert Finding("a", True, "b") == Finding("a", True, "b")
    assert isinstance(hash(Finding("a", True, "b")), int)
