"""The conformance suite: what every mechanism must do, as a list of checks.

To test your own mechanism, describe it as a `Subject` and call `check`:

>>> import evertally as et
>>> from itertools import accumulate
>>> subject = Subject(
...     name="my counter",
...     make=lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=8, key=key),
...     feed=lambda n: [t % 3 for t in range(n)],
...     truth=lambda inputs: list(accumulate(inputs)),
...     garbage=[[None, "x"], []],
...     wrong_calls=["seven", 1.5],
...     ticks=8,
... )
>>> check(subject)
19
"""

from evertally.checks.checks import CHECKS, Check, check_interrupted_calls, check_one_call_at_a_time
from evertally.checks.shelf import check_shelf
from evertally.checks.static_mechanisms import STATIC_CHECKS, StaticSubject, check_static
from evertally.checks.subject import Subject


def check(subject: Subject) -> int:
    """Runs every check on a mechanism; raises AssertionError at the first that fails; returns how many passed."""
    for one in CHECKS:
        try:
            one(subject)
        except AssertionError as error:
            raise AssertionError(f"{subject.name}: {one.__name__}: {error}") from error
    return len(CHECKS)


__all__ = [
    "CHECKS",
    "STATIC_CHECKS",
    "Check",
    "StaticSubject",
    "Subject",
    "check",
    "check_interrupted_calls",
    "check_one_call_at_a_time",
    "check_shelf",
    "check_static",
]
