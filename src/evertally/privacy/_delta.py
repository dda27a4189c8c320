"""How large a delta may be. A promise with a delta may fail altogether, with that probability, for everybody's event.

The mechanism "publish each record in full with probability delta" is (0, delta)-private. So delta is not one more
epsilon: with n people in the data, n delta of them are published, as far as the promise goes. Below 1/n that is less
than one person; a fixed 1e-5 is asked for where nobody has said what n is. At 1e-3 one person in a thousand has no
protection at all, which no statement about epsilon makes good: beyond that a promise must be forced.
"""

from __future__ import annotations

from fractions import Fraction

from evertally.errors import ConfigurationError

# The floats of these decimals, a hair above them: `delta=1e-3` and `delta=Fraction(1, 1000)` are both within.
LARGEST_DELTA = Fraction(1e-3)
WARN_ABOVE = Fraction(1e-5)


def checked_delta(delta: Fraction, force: bool) -> Fraction:
    """The delta of a new promise; refused above the limit unless it is forced.

    >>> checked_delta(Fraction(1, 1000), force=False), checked_delta(Fraction(1, 2), force=True)
    (Fraction(1, 1000), Fraction(1, 2))
    """
    if not isinstance(force, bool):
        raise ConfigurationError("force is True or False")
    if delta > LARGEST_DELTA and not force:
        raise ConfigurationError(
            f"delta {float(delta):.6g} is above {_shown(LARGEST_DELTA)}: the promise may fail altogether for "
            f"{_one_in(delta)} people. Choose {_shown(WARN_ABOVE)} or less, and less than 1/(number of events); if "
            "this is meant, say so: force=True, in a spec force = true"
        )
    return delta


def delta_warning(delta: Fraction, events: int | None = None) -> str | None:
    """What to say about a delta, None if nothing. `events`: how many there may be at most, if that is declared.

    >>> delta_warning(Fraction(1, 10**6)), delta_warning(Fraction(1, 10**6), events=10**5)
    (None, None)
    >>> delta_warning(Fraction(1, 10))
    'delta 0.1 is large: the promise may fail altogether for one in 10 people'
    >>> delta_warning(Fraction(1, 10**6), events=5 * 10**6)
    'delta 1e-06 is above 1/(5000000 events): about 5 of them may have no protection at all'
    """
    if events is not None and delta * events > 1:
        return (
            f"delta {_shown(delta)} is above 1/({events} events): about {round(delta * events)} of them may have no "
            "protection at all"
        )
    if delta > WARN_ABOVE:
        return f"delta {_shown(delta)} is large: the promise may fail altogether for {_one_in(delta)} people"
    return None


def _one_in(delta: Fraction) -> str:
    return f"one in {max(1, int(1 / delta + Fraction(1, 100)))}"


def _shown(delta: Fraction) -> str:
    return f"{float(delta):.3g}"
