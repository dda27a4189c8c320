"""Attacks on coordinates that are there for the asking: words, degrees, weights that nobody listed.

The noise of a coordinate is that of its name: whether it occurred, who asked before, how often, and whether it is shown
must make no difference (factorization-counting 6.0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from evertally.applications.encoded import Encoded
from evertally.applications.graph import CutGraph, DegreeVector
from evertally.applications.graph.on_demand import AskableGraphStatistic
from evertally.applications.graph.options import GraphStatistic
from evertally.applications.lazy import LazyEngine
from evertally.applications.strings import FrequentSubstrings
from evertally.applications.strings.options import StringStatistic
from evertally.audit.attacks import Finding
from evertally.audit.game import Factory
from evertally.contract import restore
from evertally.noise import simulation

_KEYS = 12
_NAME = "questions"

Ask = Callable[[Any, Any, Any], int]  # mechanism, release, what is asked for


def is_askable(model: Encoded) -> bool:
    """Whether there is something to ask for."""
    return isinstance(model._engine, LazyEngine) and model.unit == "event"


def finds_words(model: Encoded) -> TypeGuard[FrequentSubstrings]:
    """Whether what is shown is a matter of noisy counts, and not of options."""
    return isinstance(model, FrequentSubstrings)


def questions_of(model: Encoded) -> tuple[list[Any], Ask]:
    """What may be asked: something that occurs where `records` arrive, then two that do not; and how."""
    if isinstance(model, StringStatistic):
        words = [model._domain.word(number) for number in _some_words(model)]
        asked = [model._domain.alphabet.letters_of(word) for word in words]
        return asked, lambda made, release, word: made.count(word).value
    if isinstance(model, CutGraph):
        return [("0", "1"), ("2", "3"), ("4", "5")], lambda made, release, pair: release.weight(*pair).value
    assert isinstance(model, DegreeVector)
    return ["0", "2", "3"], lambda made, release, label: release.degree(label).value


def _some_words(model: StringStatistic) -> list[int]:
    domain = model._domain
    every = list(domain.listed) if domain.listed is not None else list(domain.all())[:3]
    return (every * 3)[:3]


def records_of(model: Encoded, wanted: Any) -> list[Any]:
    """A tick in which the first question occurs."""
    if isinstance(model, StringStatistic):
        return [("ann", letter) if model.sequence == "user" else letter for letter in wanted]
    assert isinstance(model, GraphStatistic)
    edge = wanted if isinstance(model, CutGraph) else (wanted, "1")
    return [("insert", *edge) if model.updates == "both" else edge]


def exact_counts(model: Encoded, records: list[Any], wanted: Sequence[Any]) -> list[int]:
    """How often each question occurs in these records, by door and encoder."""
    changes: Any = model.encoder().changes(model._door.events(records, 1))
    if isinstance(model, StringStatistic):
        return [changes.get(model._domain.asked(word), 0) for word in wanted]
    assert isinstance(model, AskableGraphStatistic)
    return [changes.get(model._name_of(query), 0) for query in wanted]


def found_attack(make: Factory) -> Finding:
    """Compares the words that a release shows, because they occur often, with the answers to all questions: what is
    found must follow from them alone."""
    for number in range(_KEYS):
        made = make(simulation(number))
        asked = [made._domain.alphabet.letters_of(made._domain.word(n)) for n in _some_words(made)]
        for records in (records_of(made, asked[0]) * 3, []):
            everybody = [f"user {i}" for i in range(len(records))]  # each once, as every cap allows
            release = made.step_events(records, users=everybody) if made.takes_users else made.step(records)
            shown = release.value
            texts = {made._domain.text(n): made._domain.word(n) for n in made._domain.all()}
            answers = {text: made.count(made._domain.alphabet.letters_of(word)).value for text, word in texts.items()}
            if shown != {text: value for text, value in answers.items() if value >= made.above}:
                return Finding("found", True, "words are shown for another reason than their noisy count")
    return Finding("found", False, f"under {_KEYS} keys all words above the threshold are shown, and no others")


def question_attack(make: Factory) -> Finding:
    """Asks twice, asks a restored copy, asks on a stream where it occurred and where it did not.

    >>> import evertally as et
    >>> words = lambda key: et.strings.SubstringCounts(
    ...     alphabet="ab", longest=2, sequence="stream", guarantee=et.PureDP(1.0), horizon=4, key=key)
    >>> question_attack(words).leaked
    False
    """
    model = make(simulation(0))
    wanted, ask = questions_of(model)
    first, second, third = wanted
    exact = exact_counts(model, records_of(model, first), wanted)
    seen: list[Sequence[int]] = []
    for number in range(_KEYS):
        key = simulation(number)
        answers = []
        for records in (records_of(model, first), []):
            made = make(key)
            release = made.step(records)
            try:
                answers.append([ask(made, release, one) for one in (first, second, third)])
                again = [ask(made, release, one) for one in (third, second, first)][::-1]
            except Exception as error:  # whatever it is, who asks sees that it happened
                return Finding(_NAME, True, f"a question raised {type(error).__name__}")
            if again != answers[-1]:
                return Finding(_NAME, True, "the same question has two answers: their average has less noise")
            copy = restore(made.snapshot(), key=key)
            if isinstance(model, StringStatistic) and [copy.count(one).value for one in wanted] != again:
                return Finding(_NAME, True, "a restored copy has another answer")
        if [one - other for one, other in zip(*answers, strict=True)] != exact:
            return Finding(_NAME, True, "the noise of a question follows from whether it occurred")
        seen.append(answers[1])
    noise = np.array(seen)
    if not noise.any(axis=0).all():
        return Finding(_NAME, True, f"what never occurred is answered with 0 under {_KEYS} keys: there is no noise")
    if second != third and (noise[:, 1] == noise[:, 2]).all():
        return Finding(_NAME, True, f"two questions have the same noise under {_KEYS} keys")
    return Finding(_NAME, False, f"{len(wanted)} questions have noise of their own, occurred or not, asked or shown")
