"""A tick of one number is played with Python's own integers; whatever else it may be given as, the releases, states and
snapshots are the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evertally as et
from evertally.contract.mechanism import CommittedNumber
from evertally.contract.parts import plays_numbers
from evertally.counting.linear import LinearEngine
from evertally.errors import ReplayRefused

KEY = et.simulation(5)


def counter(**options):
    given = {"guarantee": et.ZCDP(0.5), "horizon": 40, "name": "one", "key": KEY, "allow_copy": True}
    return et.Counter(**(given | options))


def said(release):
    return release.tick, release.value, release.stddev, release.private, release.row.tolist(), release.interval()


TOTALS = st.lists(st.one_of(st.integers(-3, 9), st.sampled_from([2**70, -(2**70), 2**61])), min_size=1, max_size=6)


@pytest.mark.parametrize("options", [{}, {"guarantee": et.PureDP(1.0)}, {"signed": True}, {"max_window": 3}], ids=str)
@settings(max_examples=8, deadline=None)
@given(totals=TOTALS, data=st.data())
def test_numbers_and_arrays_of_one_are_the_same(options, totals, data) -> None:
    plain, other = counter(**options), counter(**options)
    for tick, total in enumerate(totals, 1):
        within = max(-(2**63), min(2**63 - 1, total))
        way = data.draw(st.sampled_from(["array", "number", "run", "restored"]))
        released = plain.step(total)
        if way == "run":
            assert other.run([within]).tolist() == [released.value]
        else:
            if way == "restored":
                other = et.restore(other.snapshot(), key=KEY, allow_copy=True)
            assert said(other.step(np.array(within) if way == "array" else total)) == said(released)
        assert said(plain.step(total, tick=tick)) == said(released) == said(other.step(within, tick=tick))
        assert plain._kept.played.recent[-1].tolist() == other._kept.played.recent[-1].tolist()
        assert plain._kept.played.state.tolist() == other._kept.played.state.tolist()
        with pytest.raises(ReplayRefused):
            plain.step(5 if total != 5 else 6, tick=tick)
    assert plain.snapshot() == other.snapshot()


def test_an_engine_that_plays_otherwise_is_not_asked_for_numbers() -> None:
    class Twice(LinearEngine):
        def play(self, batch, state):
            return super().play(2 * batch, state)

    engine = counter()._engine
    assert plays_numbers(engine)
    assert not plays_numbers(Twice(engine._make))
    assert type(counter()._kept.played) is not CommittedNumber
    assert not counter(workload={"decay": "1/2"})._plays_numbers


def test_what_is_committed_is_not_shown() -> None:
    mechanism = counter()
    mechanism.step(7)
    assert type(mechanism._kept.played) is CommittedNumber
    assert "7" not in repr(mechanism._kept.played)
