"""How often each episode occurs in a stream of letters: as a subsequence, with anything in between."""

from __future__ import annotations

from evertally.applications.encoder import Encoder
from evertally.applications.strings import episode_bounds as bounds
from evertally.applications.strings.detector import EpisodeDetector
from evertally.applications.strings.options import CertifiedUnit, StringStatistic
from evertally.applications.strings.words import Words
from evertally.contract.options import option, statistic
from evertally.contract.parts import Blueprint
from evertally.errors import ConfigurationError
from evertally.privacy import Change, Neighbours

MOST_EPISODES = 2**16  # without a list; a letter costs as many steps as episodes end in it
_SECTION = "factorization-counting 6.7"


@statistic
class EpisodeCounts(StringStatistic):
    """How often each episode has occurred: at how many letters a minimal occurrence of it ended.

    An episode is a word whose letters come in this order, whatever lies between; an occurrence is minimal if no other
    one lies strictly inside it. Letters outside the alphabet are nothing, unless `other` takes them.

    >>> import evertally as et
    >>> visits = et.strings.EpisodeCounts(
    ...     alphabet="abc", longest=2, sequence="stream", guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1)
    ... )
    >>> release = visits.step(["a", "c", "b", "?", "a", "b"])
    >>> len(release.value), release.value["ab"] == release.count("ab").value
    (12, True)
    >>> visits.sensitivity.l2_squared, visits.sensitivity.l1
    (11, 11)
    >>> funnel = et.strings.EpisodeCounts(
    ...     alphabet=["search", "view", "buy"], words=["search buy", "search view buy"], sequence="user",
    ...     guarantee=et.ZCDP(0.5), horizon=100, key=et.simulation(1)
    ... )
    >>> funnel.step([("ann", "search"), ("bob", "buy"), ("ann", "view"), ("ann", "buy")]).tick
    1

    Theorem: factorization-counting 6.7 and A.3 (sign split, S3), exact tier; docs/strings.md has the sensitivities.
    They grow with the alphabet, those of a list of `words` do not: a list is needed beyond 65536 episodes, and for
    sequences by user. Error: that of a counter times Gamma; `error_bound` covers every episode that can be asked. Time
    a letter: O(prefixes of episodes that end in it), |U|^(ell-1) without a list. Memory: one number for each prefix
    that occurred, in each sequence, and the noise shown.
    """

    once_per_user: bool = option(
        'Counts the users who have an episode: each episode once; needs sequence="user" and unit="user".', default=False
    )

    def certified(self) -> CertifiedUnit:
        return CertifiedUnit(self._moved_by_unit(), _SECTION)

    def encoder(self) -> Encoder:
        words = self._domain
        return EpisodeDetector(
            words.listed or {number: words.word(number) for number in words.all()}, once=self.once_per_user
        )

    def _blueprint(self) -> Blueprint:
        self._check_relation()
        alphabet = self._alphabet()
        words = self._words(alphabet)
        if words.listed is None:
            self._check_all(words)
        return self._string_blueprint("EpisodeCounts", words, self._given("replaces", "once_per_user"))

    def _check_all(self, words: Words) -> None:
        if self.sequence == "user":
            raise ConfigurationError(
                "sequences by user keep a number for each user and each prefix of an episode: list the episodes, "
                "words=[...]"
            )
        if words.size > MOST_EPISODES:
            raise ConfigurationError(
                f"there are {words.size} episodes, and each letter would look at all that end in it; list those that "
                f"matter, words=[...], or stay below {MOST_EPISODES}"
            )

    def _check_relation(self) -> None:
        by_user = self.unit == "user"
        self._settle_replaced()
        if self.replaces not in ("letter", "record"):
            raise ConfigurationError('replaces is "letter" or "record"')
        moved = self._relation() is Neighbours.REPLACE and not by_user and self.sequence == "user"
        if self.replaces == "record" and not moved:
            raise ConfigurationError(
                'replaces="record" moves a letter to another user: it goes with neighbours="replace", unit="event" and '
                'sequence="user"'
            )
        if self.once_per_user and not (by_user and self.sequence == "user"):
            raise ConfigurationError(
                'once_per_user needs unit="user" and sequence="user": what one letter does to first occurrences is not '
                "proved"
            )

    def _moved_by_unit(self) -> Change:
        words, replaced = self._domain, self._relation() is Neighbours.REPLACE
        listed = None if words.listed is None else list(words.listed.values())
        letters, longest = len(words.alphabet), words.lengths[-1]
        w = self.max_events_per_user if self.unit == "user" else None
        if w is not None and self.sequence == "user":
            assert listed is not None
            one = bounds.users_once(w, listed) if self.once_per_user else bounds.users_listed(w, listed)
            # One user's occurrences go, another's come: one sign each (S3).
            return Change(2 * one.l1, 2 * one.l2_squared, 2 * one.linf) if replaced else one
        gone = bounds.removed_letter(letters, longest) if listed is None else bounds.removed_listed(listed)
        if w is not None:
            # A user's letters lie anywhere in the one sequence: they go one by one, and those of another one come.
            return gone.group(2 * w if replaced else w)
        if not replaced:
            return gone
        if self.replaces == "record":
            return gone.group(2)  # it goes from one sequence and comes into another
        return bounds.replaced_letter(letters, longest) if listed is None else bounds.replaced_listed(listed)
