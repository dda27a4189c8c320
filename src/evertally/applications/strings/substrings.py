"""How often each word occurs in a stream of letters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from evertally.applications.encoder import Encoder
from evertally.applications.refuter import Pair, Stream, removed
from evertally.applications.strings.neighbours import (
    nulled,
)
from evertally.applications.strings.options import CertifiedUnit, StringStatistic
from evertally.applications.strings.rows import Counted, Kind, Row
from evertally.applications.strings.sequences import WordEnds
from evertally.applications.strings.words import LONGEST_WORD
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint
from evertally.contract.ticks import LONGEST_HORIZON
from evertally.errors import ConfigurationError
from evertally.integers import whole
from evertally.privacy import Change, Neighbours

_SECTION = "factorization-counting 6.6"


@statistic
class SubstringCounts(StringStatistic):
    """How often each word of up to `longest` letters has occurred, overlapping occurrences included.

    >>> import evertally as et
    >>> moves = et.strings.SubstringCounts(
    ...     alphabet="abc", longest=3, sequence="stream", guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1)
    ... )
    >>> release = moves.step(["a", "b", "a", "b", "?", "a"])
    >>> len(release.value), release.value["ab"] == release.count("ab").value
    (39, True)
    >>> moves.sensitivity.l2_squared, moves.sensitivity.l1  # joined: the letter is there or not, the rest closes up
    (11, 9)

    Theorem: factorization-counting 6.6 and 6.0, exact tier; the table of docs/strings.md has the sensitivities. Error:
    that of a counter times Gamma, about ell^1.5/sqrt(3), whatever the alphabet; `error_bound` covers every word
    that can be asked. Time: `longest` hash increments a letter, O(1) a shown word and tick; a question O(log t) draws
    for trees, O(t log t) for square roots. Memory: what occurred, the last letters of each sequence, the noise shown.
    """

    only_longest: bool = option("Counts words of exactly `longest` letters, and no shorter ones.", default=False)
    removal: Literal["joined", "null"] = option(
        'What is left where a letter is not there (neighbours="add_remove"): nothing, the rest is "joined", or a '
        '"null" that stays in its place.',
        default="joined",
    )
    gap: int | None = option("Letters more than this many ticks apart make no word; None: any gap.", default=None)
    once_per_user: bool = option(
        'Counts the users who have a word: each word once; needs sequence="user".', default=False
    )
    max_words: int | None = option(
        "How many different words of a user count, the first ones; goes with once_per_user.", default=None
    )

    @property
    def protected_unit(self) -> str:
        # A record that becomes null is less than one that is not there.
        if self.removal == "null" and (self.unit == "event" or self.sequence == "stream"):
            return "nulled letter" if self.unit == "event" else "nulled user"
        return super().protected_unit

    def certified(self) -> CertifiedUnit:
        l1, l2_squared = self._row()
        return CertifiedUnit(Change(l1, l2_squared, l1), _SECTION)

    def _without_one(self, stream: Stream) -> Iterator[Pair]:
        return nulled(stream) if self.removal == "null" else removed(stream)

    def encoder(self) -> Encoder:
        return WordEnds(self._domain, gap=self.gap, once=self.once_per_user, most=self.max_words)

    def _blueprint(self) -> Blueprint:
        alphabet = self._alphabet()
        only = None
        if self.only_longest:
            if self.words is not None or self.longest is None:
                raise ConfigurationError("only_longest goes with longest, and not with a list of words")
            only = whole("longest", self.longest, 1, LONGEST_WORD)
        words = self._words(alphabet, only)
        self.gap = None if self.gap is None else whole("gap", self.gap, 0, LONGEST_HORIZON)
        self.max_words = None if self.max_words is None else whole("max_words", self.max_words, 1, 2**31)
        self._check_relation()
        return self._string_blueprint(
            "SubstringCounts",
            words,
            self._given("only_longest", "removal", "replaces", "gap", "once_per_user", "max_words"),
        )

    def _check_relation(self) -> None:
        relation, by_user = self._relation(), self.unit == "user"
        if self.removal not in ("joined", "null"):
            raise ConfigurationError('removal is "joined" or "null"')
        self._settle_replaced()
        if self.replaces not in ("letter", "record"):
            raise ConfigurationError('replaces is "letter" or "record"')
        if self.removal == "null" and self.other is not None:
            raise ConfigurationError('with other=... nothing is null at the door: removal="null" goes with other=None')
        if self.removal == "null" and relation is Neighbours.REPLACE:
            raise ConfigurationError('removal says what is left of a letter; it goes with neighbours="add_remove"')
        if self.replaces == "record" and (relation is not Neighbours.REPLACE or by_user or self.sequence != "user"):
            raise ConfigurationError(
                'replaces="record" moves a letter to another user: it goes with neighbours="replace", unit="event" and '
                'sequence="user"'
            )
        if self.max_words is not None and not (self.once_per_user and by_user):
            raise ConfigurationError(
                'max_words goes with once_per_user=True and unit="user": under unit="event" it is not proved'
            )
        if self.once_per_user and self.sequence != "user":
            raise ConfigurationError('once_per_user needs a sequence for each user: sequence="user"')
        plain = relation is Neighbours.ADD_REMOVE and self.removal == "joined" and self.gap is None
        if self.once_per_user and not by_user and not plain:
            raise ConfigurationError(
                'once_per_user with unit="event" is proved for neighbours="add_remove", removal="joined" without a '
                'gap; protect users, unit="user"'
            )

    def _row(self) -> Row:
        """The row of the table that these options are."""
        words, replaced = self._domain, self._relation() is Neighbours.REPLACE
        listed = None
        if words.listed is not None:
            listed = {j: [word for word in words.listed.values() if len(word) == j] for j in words.lengths}
        counted = Counted(words.lengths, listed)
        closes: Kind = "joined" if self.gap is None else "gap"
        w = self.max_events_per_user if self.unit == "user" else None
        if w is not None and self.sequence == "user":
            l1, squared = counted.of_user(w, once=self.once_per_user, most=self.max_words)
            return (2 * l1, 2 * squared) if replaced else (l1, squared)
        if w is not None:
            # A user's letters lie anywhere in the one sequence: they go one by one, and those of another one come.
            l1, squared = counted.of_letter("null" if self.removal == "null" else closes)
            steps = 2 * w if replaced else w
            return steps * l1, steps**2 * squared
        if self.once_per_user:
            return counted.of_letter_once()
        if not replaced:
            return counted.of_letter("null" if self.removal == "null" else closes)
        if self.replaces == "letter":
            return counted.of_letter("letter")
        l1, squared = counted.of_letter(closes)
        return 2 * l1, 4 * squared
