"""What all tests share: how they are timed, which of them take long, and which keys they make."""

import gc
import hashlib
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import one_thread  # noqa: F401  before numpy is
from evertally.noise import Key

# A shell lets what runs in its background ignore Ctrl-C, and whatever that starts: commands that tests interrupt too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nor one that a shell left alone for good (nohup)

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("no deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no deadline")

# What `make quick` leaves out: audits, crashes, real processes, errors measured over many runs. By the beginning of the
# place of a test, or by a word in its name.
_LONG_PLACES = (
    "audit/",
    "benchmarks/",
    "bounds/",
    "browser/",
    "checks/",
    "crash/",
    "dynamic/test_additive.py",
    "dynamic/test_static_conformance.py",
    "dynamic/test_weights_update.py",
    "planner/",
    "service/",
    "counting/test_counting_accuracy.py",
    "counting/test_counting_calibration.py",
    "counting/test_counting_exact_privacy.py",
    "counting/test_counting_function_of_y.py",
    "docs/test_bounds_of_examples.py",
    "dynamic/test_interval_door.py",
    "dynamic/test_interval_privacy.py",
    "dynamic/test_interval_tree.py",
    "dynamic/test_model.py",
    "dynamic/test_model_budgets.py",
    "docs/test_tutorial.py",
    "dynamic/test_insertions.py",
    "dynamic/test_partitioners.py",
    "dynamic/test_tolls.py",
    "histogram/test_calibration_is_kept.py",
    "histogram/test_expressions.py",
    "histogram/test_planner.py",
    "histogram/test_truth_of_bounds.py",
    "kinds/test_toy_kind.py",
    "noise/test_noise_fast_path.py",
    "noise/test_noise_laws.py",
    "noise/test_precision.py",
    "partition/test_partition_accuracy.py",
    "partition/test_partition_exact.py",
    "partition/test_partition_ledger.py",
    "partition/test_partition_literal.py",
    "partition/test_partition_tightness.py",
    "runtime/input/test_batches.py",
    "runtime/input/test_kafka.py",
    "runtime/test_crash.py",
    "runtime/test_commands.py",
    "runtime/test_live.py",
    "runtime/test_pump.py",
    "runtime/test_runner.py",
    "selection/test_meta.py",
    "selection/test_one_shot_histograms.py",
    "selection/test_selection.py",
    "selection/test_sparse_gumbel.py",
    "statistics/test_column_queries.py",
    "statistics/test_sparse.py",
    "statistics/test_streaming.py",
)
_LONG_WORDS = (
    "check_error_formula",
    "check_interrupted",
    "check_snapshot_at_every_tick",
    "check_secrets",
    "test_as_a_process",
    "test_audit",
    "test_certificates_are_true_and_values_exact",
    "test_demo",
    "test_no_warning_shows_a_record",
    "test_run_of_column_queries_on_a_terminal",
    "test_selections_have_the_law",
    "test_the_contract_as_printed",
    "test_the_documented_queries_on_column_sums_run",
    "test_the_example_runs_on_real_flights",
    "test_the_streams_outgrow",
    "test_unknown.py::test_conformance",
)
_TESTS = Path(__file__).parent


# `make test` gives whole files to each core, so that what the tests of a file share is made once. These take longest,
# and come first: of short ones little is left to one core when the other has nothing to do.
_FIRST = (
    "checks/",
    "audit/test_suite.py",
    "audit/test_own_mechanisms.py",
    "audit/test_spec_down.py",
    "runtime/test_crash.py",
    "audit/",
    "benchmarks/",
    "crash/",
    "runtime/",
    "service/",
    "cli/",
    "docs/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = _place(item)
        if place.startswith(_LONG_PLACES) or any(word in item.nodeid for word in _LONG_WORDS):
            item.add_marker(pytest.mark.long)
    items.sort(key=_turn)


def _place(item: pytest.Item) -> str:
    return item.path.relative_to(_TESTS).as_posix() if item.path.is_relative_to(_TESTS) else ""


def _turn(item: pytest.Item) -> int:
    place = _place(item)
    return next((turn for turn, first in enumerate(_FIRST) if place.startswith(first)), len(_FIRST))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Iterator[None]:
    """Twenty thousand tests and all modules stay till the end. Whoever looks for garbage need not look through them
    again and again: nobody looks while they are collected, and afterwards only through what tests make."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class _Keys:
    """The keys that a test generates follow from its name. An interval misses now and then, by its law; with these keys
    it misses in no run of the suite or in every one. (What a process of its own generates is as random as ever.)"""

    def __init__(self) -> None:
        self.made_by("the suite")

    def made_by(self, name: str) -> None:
        self.name, self._numbers = name, count()

    def generate(self) -> Key:
        secret = hashlib.sha256(f"{self.name} {next(self._numbers)}".encode()).digest()
        return Key._made(secret, private=True)


_keys = _Keys()


@pytest.fixture(scope="session", autouse=True)
def _keys_of_tests() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Key, "generate", staticmethod(_keys.generate))
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _keys.made_by(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    """What many tests share is made for whichever of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    before = _keys.name, _keys._numbers
    _keys.made_by(f"{request.node.nodeid} {fixturedef.argname}")
    try:
        return (yield)
    finally:
        _keys.name, _keys._numbers = before
