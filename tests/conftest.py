"""What all tests share: how they are timed, and which of them take long."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("no deadline", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no deadline")

# What `make quick` leaves out: audits, crashes, real processes, errors measured over many runs. By the beginning of the
# place of a test, or by a word in its name.
_LONG_PLACES = (
    "audit/",
    "benchmarks/",
    "browser/",
    "crash/",
    "service/",
    "docs/test_bounds_of_examples.py",
    "docs/test_tutorial.py",
    "histogram/test_calibration_is_kept.py",
    "histogram/test_truth_of_bounds.py",
    "partition/test_partition_accuracy.py",
    "partition/test_partition_literal.py",
    "partition/test_partition_tightness.py",
    "runtime/test_crash.py",
    "runtime/test_commands.py",
)
_LONG_WORDS = (
    "check_error_formula",
    "check_interrupted",
    "check_snapshot_at_every_tick",
    "check_secrets",
    "test_a_bound_for_one_tick_is_not_above",
    "test_as_a_process",
    "test_audit",
    "test_auto_takes_the_smallest",
    "test_bounds_are_above_predictions",
    "test_certificates_are_true_and_values_exact",
    "test_demo",
    "test_digit_sums",
    "test_error_bounds_of_tuned",
    "test_gaussian_margins",
    "test_integer_thresholds_are_the_smallest",
    "test_laplace_margins_are_exact",
    "test_mathias_beyond_the_sum",
    "test_no_warning_shows_a_record",
    "test_predictions_are_what_happens",
    "test_recurrence_closed_form",
    "test_run_of_column_queries_on_a_terminal",
    "test_selections_have_the_law",
    "test_the_contract_as_printed",
    "test_the_documented_queries_on_column_sums_run",
    "test_the_streams_outgrow",
    "test_the_tree_is_better_at_exactly_five_ticks",
    "test_they_hold_and_are_tight",
    "test_two_ticks_against_the_best",
    "test_unknown.py::test_conformance",
)
_TESTS = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        place = item.path.relative_to(_TESTS).as_posix() if item.path.is_relative_to(_TESTS) else ""
        if place.startswith(_LONG_PLACES) or any(word in item.nodeid for word in _LONG_WORDS):
            item.add_marker(pytest.mark.long)
