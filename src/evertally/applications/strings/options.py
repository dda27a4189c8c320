"""What all statistics of strings share: alphabet, whose sequence it is, which words are shown, questions."""

from __future__ import annotations

import math
import weakref
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from evertally.applications.encoded import Certified, Encoded
from evertally.applications.lazy import LazyEngine, Sums
from evertally.applications.records import Record, RecordDoor, with_owners
from evertally.applications.refuter import Pair, Stream, Worst, removed, replaced, search
from evertally.applications.strings.exploration import explore
from evertally.applications.strings.letters import Alphabet, reader
from evertally.applications.strings.neighbours import first_of_users, letter_replaced, user_removed, user_replaced
from evertally.applications.strings.release import MOST_ASKED, StringRelease
from evertally.applications.strings.words import LONGEST_WORD, Words
from evertally.contract.forms import LabelledForm
from evertally.contract.guarded import exclusive
from evertally.contract.mechanism import Mechanism
from evertally.contract.options import option, statistic
from evertally.contract.parts import Accuracy, Blueprint, Options
from evertally.contract.release import Release
from evertally.contract.ticks import last_tick
from evertally.contract.windows import Windowed
from evertally.counting.choose import rank
from evertally.counting.process import NoiseProcess
from evertally.counting.processes import PROCESSES, Gram, proved_of
from evertally.dynamic.answers import Answer
from evertally.encode.frames import Table, check_same_index, column
from evertally.encode.named import columns_of, records
from evertally.errors import ConfigurationError, StateError
from evertally.integers import whole
from evertally.noise import ItemSource
from evertally.privacy import Change, Neighbours
from evertally.ranking import Ranking
from evertally.statistics.own_engines import ENGINES

MOST_SHOWN = 4096


class CertifiedUnit(Certified):
    """The change by what is protected, a user's letters included: there is no group to be made of it."""

    def of_unit(self, relation: Neighbours, contribution: Any) -> Change:
        return self.change


@statistic
class StringStatistic(Encoded):
    """Counts of words in sequences of letters. Not used directly; see `et.strings`.

    A record is a letter, or (user, letter) where `sequence="user"`; with `unit="user"` records are letters, and whose
    they are is said once, in `users`. Whatever is not in the alphabet becomes `other`, or null, which ends a word.
    """

    alphabet: Sequence[Any] = option('The letters, all of them: a list of labels, or a text such as "abcd". Public.')
    sequence: Literal["stream", "user"] = option(
        'Whose sequence letters are in: one "stream" of all records, or one for each "user".'
    )
    longest: int | None = option(
        "How many letters a word has at most; needed, unless `words` are listed.", default=None
    )
    other: Any = option(
        "The letter of the alphabet that undeclared letters become; None: null, which matches nothing and ends a word.",
        default=None,
    )
    words: Sequence[Any] | None = option(
        "A public list of words, fixed for good: nothing else is counted, or can be asked for.", default=None
    )
    show: Sequence[Any] | None = option(
        f"The words that every release shows. None: all of them, up to {MOST_SHOWN}; otherwise all letters. The others "
        "are there for the asking (`count`).",
        default=None,
    )

    replaces: Literal["letter", "record"] | None = option(
        'What is another one with neighbours="replace": the "letter", in its place in its sequence, or the "record", '
        "its user included. None: all of a record.",
        default=None,
    )

    @exclusive
    def step_events(self, events: Any, *, users: Any = None, tick: int | None = None) -> Release:
        """One tick from raw records, in their order. With `unit="user"`: letters, and the user of each."""
        if self.unit == "user" and self.sequence == "user" and users is not None:
            check_same_index(events, users)
            events, users = with_owners(self._own_events(events), column(users))
        plain: Any = Mechanism.step_events
        release: Release = plain.__wrapped__(self, events, users=users, tick=tick)
        return release

    def _of_table(self, found: Table) -> Any:
        if self.sequence != "user" or self.unit == "user":
            return super()._of_table(found)
        return records(found, columns_of(found, ["user", "letter"]))

    @exclusive
    def last(self, window: int) -> Release:
        plain: Any = Windowed.last
        made: Release = plain.__wrapped__(self, window)
        # A difference of releases: words that it does not show cannot be asked of it.
        return Release(made.tick, made.value, made.stddev, made.private, made.bounds, made.about)

    @exclusive
    def count(self, word: Any) -> Answer:
        """How often a word occurred up to the last tick, with noise; the same answer however often it is asked.

        A word is a text, or a list of letters. Costs nothing: its noise is that of its name, occurred or not.
        """
        return self._answer(word)

    @exclusive
    def frequent(self, threshold: float, most: int = MOST_ASKED) -> dict[str, int]:
        """Words whose noisy count is at least `threshold`, largest first: all letters are asked, then all words that
        are one letter longer than a word that was large enough, at most `most` of them, the largest first.

        Looks at answers alone, so it costs nothing. `threshold` must not come from the data: well above
        `error_bound()` nearly everything that is found occurred.
        """
        return self._explore(threshold, most)

    @property
    def protected_unit(self) -> str:
        # Another letter of the same user is less than a record that may be any other.
        fixed = self._relation() is Neighbours.REPLACE and self.sequence == "user" and self.replaces == "letter"
        return "letter of a user" if fixed and self.unit == "event" else self.unit

    def refute(self, records: Sequence[Record], some: Iterable[Stream]) -> Worst:
        """As for every statistic, by the relation that is promised. Letters of users beyond their cap are left out."""
        return search(self.encoder, self._pairs(records, some), self.certified().change)

    def _pairs(self, records: Sequence[Record], some: Iterable[Stream]) -> Iterator[Pair]:
        replaces = self._relation() is Neighbours.REPLACE
        w = self.max_events_per_user if self.unit == "user" else None
        for stream in some:
            if w is not None:
                legal = first_of_users(stream, w)
                yield from user_replaced(legal, records) if replaces else user_removed(legal)
            elif replaces:
                yield from (letter_replaced if self.replaces == "letter" else replaced)(stream, records)
            else:
                yield from self._without_one(stream)

    def _without_one(self, stream: Stream) -> Iterator[Pair]:
        """Pairs of a stream and it without one of its letters."""
        return removed(stream)

    def ways(self) -> Ranking:
        """The ranked table of processes; bounds are for all words that can be asked, with probability 95 %."""
        shown, askable = self._setting.columns, self._domain.size
        return rank(self.guarantee, self._setting, beta=-math.expm1(math.log1p(-0.05) * (shown / askable)))

    @property
    def noise(self) -> NoiseProcess:
        return self._lazy().noise

    @abstractmethod
    def certified(self) -> CertifiedUnit:
        """The certified sensitivity of what is protected, by public options alone."""

    def _settle_replaced(self) -> None:
        """By default a record is replaced as a whole, which is more than its letter only where it names its user."""
        if self.replaces is None:
            moved = self._relation() is Neighbours.REPLACE and self.unit == "event" and self.sequence == "user"
            self.replaces = "record" if moved else "letter"

    def _alphabet(self) -> Alphabet:
        """The declared letters; settles the options."""
        if self.sequence not in ("stream", "user"):
            raise ConfigurationError('sequence is "stream" (one sequence of all records) or "user" (one for each user)')
        alphabet = Alphabet(self.alphabet, self.other)
        self.alphabet, self.other = alphabet.letters, alphabet.other
        return alphabet

    def _words(self, alphabet: Alphabet, only: int | None = None) -> Words:
        """The words that are counted: those of a list, those of one length `only`, or all up to `longest`; settles the
        options."""
        if self.words is None:
            if self.longest is None:
                raise ConfigurationError("longest says how many letters a word has at most; or list the words")
            longest = self.longest = whole("longest", self.longest, 1, LONGEST_WORD)
            return Words(alphabet, range(1, longest + 1) if only is None else [only])
        listed = _listed("words", self.words, alphabet)
        most = max(len(word) for word in listed)
        longest = self.longest = whole("longest", most if self.longest is None else self.longest, most, LONGEST_WORD)
        self.words = [alphabet.letters_of(word) for word in listed]
        return Words(alphabet, sorted({len(word) for word in listed}), listed)

    def _shown(self, words: Words) -> list[int]:
        if self.show is not None:
            listed = _listed("show", self.show, words.alphabet)
            self.show = [words.alphabet.letters_of(word) for word in listed]
            numbers = [words.asked(word) for word in self.show]
        elif words.size <= MOST_SHOWN:
            numbers = list(words.all())
        elif 1 in words.lengths and words.listed is None and len(words.alphabet) <= MOST_SHOWN:
            numbers = list(range(len(words.alphabet)))
        else:
            numbers = []
        if not 0 < len(numbers) <= MOST_SHOWN:
            raise ConfigurationError(
                f"a release shows up to {MOST_SHOWN} words: say which in show=[...], and ask for the others with count"
            )
        return numbers

    def _string_blueprint(self, word: str, words: Words, address: Options) -> Blueprint:
        """`address`: every public option of the statistic that says what is counted, besides those of this class."""
        if self.mechanism in (*ENGINES, *PROCESSES) and proved_of(self.mechanism) is Gram.UNKNOWN:
            raise ConfigurationError(
                "words are charged for noise processes whose Gram matrix is nowhere negative (S3), which is proved of "
                "ours alone, and words on demand need noise with an address: choose a process of this library"
            )
        self._domain = words
        shown = self._shown(words)
        contribution = self._contributing()
        change = self.certified().change
        if change.l2_squared <= 0:
            raise ConfigurationError("no word can occur within these bounds, so nothing is to be counted")
        read = reader(words.alphabet, self.sequence)
        settled = self._given("alphabet", "other", "longest", "words", "show")
        plan = self._linear(
            word,
            len(shown),
            change,
            contribution,
            address | settled | self._given("sequence", "unit", "max_events_per_user"),
            lambda source, limit: RecordDoor(read, len(shown)),
            LabelledForm([words.text(number) for number in shown]),
            settled=settled,
        )
        limit = 2**61 // last_tick(self.horizon)

        def engine(source: ItemSource) -> LazyEngine:
            sums = Sums(self.encoder(), limit)
            return LazyEngine(sums, self._choice, self._setting, source, shown, limit=words.limit, askable=words.size)

        return replace(plan, engine=engine)

    def _lazy(self) -> LazyEngine:
        assert isinstance(self._engine, LazyEngine)
        return self._engine

    def _release(self, row: Any, accuracy: Accuracy) -> Release:
        made = super()._release(row, accuracy)
        # A release does not keep the secrets behind it alive.
        behind, tick = weakref.ref(self), made.tick

        def statistic() -> StringStatistic:
            found = behind()
            if found is None or found.tick != tick:
                raise StateError(f"words can be asked of tick {tick} until the next one only; declare them in `show`")
            return found

        return StringRelease(
            made.tick,
            made.value,
            made.stddev,
            made.private,
            made.bounds,
            made.about,
            lambda word: statistic().count(word),
            lambda threshold, most: statistic().frequent(threshold, most),
        )

    def _answer(self, word: Any) -> Answer:
        number = self._domain.asked(word)
        value = int(self._values([number])[0])
        accuracy = self._engine.accuracy(self.tick)
        return Answer(value, accuracy.stddev, accuracy.radius)

    def _values(self, numbers: Sequence[int]) -> Any:
        if not self.tick:
            raise ConfigurationError("there is nothing to be asked before the first tick: take a step first")
        return self._lazy().answers(numbers, self.tick)

    def _explore(self, threshold: Any, most: Any) -> dict[str, int]:
        return explore(self._domain, lambda numbers: self._values(numbers).tolist(), threshold, most)


def _listed(name: str, words: Any, alphabet: Alphabet) -> list[tuple[int, ...]]:
    """Different words, one or more."""
    if isinstance(words, str) or not isinstance(words, Sequence) or not words:
        raise ConfigurationError(f"{name} is a list of words, each a text or a list of letters")
    listed = [alphabet.word(word) for word in words]
    if len(set(listed)) != len(listed):
        raise ConfigurationError(f"{name} has a word twice; list each word once")
    return listed
