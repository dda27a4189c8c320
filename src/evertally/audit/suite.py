"""The plan of an audit: which adversaries, which methods, how many games.

It depends on what is known about the mechanism:

* Linear mechanisms with Laplace noise: the exact law of a tiny instance of the same configuration, and events of the
  log-likelihood ratio in games of the real one.
* Linear mechanisms with real Laplace noise: what hiding a change costs, read off the program (`audit.laplace`).
* Linear mechanisms with Gaussian noise: the closed form read off the program, the measured separation of the most
  powerful score, and the exact Renyi divergences of a tiny instance where that can be enumerated.
* Queries on column sums: the exact audit of their engine (`audit.columns`), and games of the pair that is worst for it.
* What is present now: all short neighbouring streams through the real door, the exact input of every release
  (`audit.dynamic`), and games of a pair that shows much.
* Graphs, strings, stacks: the worst neighbours that a search finds, through the real door and encoder, against the
  noise of the program (`audit.applications`), games of that pair, and questions about what nobody listed.
* Active users: all streams of one user through the real mechanism and its restarts, against the noise that is read off
  it (`audit.active`), and games of somebody who is there while releases are high.
* Distinct users: neighbours through the real door and rule, restored in between, against the noise of the program
  (`audit.owned`), and games of the worst pair.
* Users of periods, retention, items that come and go: all streams of one unit through the real mechanism, against the
  noise that is read off it (`audit.presence`), and games of somebody who is there while releases are high.
* Sketches: labels that meet as they must not, in events and users through the real door and table (`audit.sketches`).
* Messages of clients: every two values against the noise of the message (`audit.local_messages`).
* Sums with an allowance of each user: two users through the real door and rule, against the noise of the program.
* Amounts by category: what is counted, and the coins that round amounts, one event taken from among many.
* Sums with epochs: what an event moves against the noise of each counter, and what happens at a boundary.
* Sums that begin anew: one block as above, and whether blocks share noise.
* Counts with a workload: the closed form of their noise and sums, both read off the program, and games of one change.
* Mechanisms that release labels: the laws and thresholds that they really use, exact small copies (`audit.laws`),
  games, and the closed form of their counts.
* Linear mechanisms with a long horizon, or none: their noise there, at telling ticks (`audit.laws.full_horizon`).
* Every mechanism: faults of its state as moves of the adversary, against an undisturbed play (`audit.faults`).
* Any other object with `step` and a `guarantee`: random streams, changes of single ticks, the adaptive adversaries and
  streams that a search finds, in a hunt that bets on whatever games show (`audit.hunt`).

Adversaries are those of the claimed class: none that is adaptive against a promise for oblivious streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from evertally.applications.encoded import Encoded
from evertally.audit import adversaries, questions, whitebox
from evertally.audit.active import ActiveSearch, is_active
from evertally.audit.amounts import coins_report, tosses_coins
from evertally.audit.application_games import WorstNeighbours
from evertally.audit.applications import Search, is_encoded
from evertally.audit.blocks import blocks_attack
from evertally.audit.columns import close_pair_of, column_audits, counters_behind, replicas, worker_of
from evertally.audit.dynamic import dynamic_audits, game_of, is_dynamic
from evertally.audit.faults import fault_audits
from evertally.audit.game import Adversary, Factory, width
from evertally.audit.gaussian import node_form
from evertally.audit.hunt import Hunt, hunt
from evertally.audit.labels import counts_report, has_counts, labelled, releases_labels
from evertally.audit.laplace import shift_form, telling_ticks
from evertally.audit.laws.intervals import interval_rows
from evertally.audit.laws.steps import horizon_rows, law_rows
from evertally.audit.local_messages import (
    LocalMessage,
    is_local,
    message_attack,
    message_report,
    with_cells,
    worst_cells,
)
from evertally.audit.owned import OwnedSearch, is_owned
from evertally.audit.presence import PathSearch, is_presence
from evertally.audit.promises import modest
from evertally.audit.report import Progress, Report, hash_seed, measure_mu, measure_rho, play
from evertally.audit.shown import shown_attack
from evertally.audit.sketches import SketchSearch, descent_attack, is_sketch, walkable
from evertally.audit.state_steps import (
    attack_steps,
    column_steps,
    inputs_of,
    linear_state_steps,
    not_here,
    state_steps,
)
from evertally.audit.steps import Step, of_aspect, run
from evertally.audit.user_ticks import has_user_ticks, user_ticks_report
from evertally.audit.values import (
    allowance_report,
    boundary_attack,
    epochs_report,
    game_of_amounts,
    has_allowance,
    has_epochs,
)
from evertally.audit.wandering import telling_streams
from evertally.audit.weighed import is_weighed, weighed_report
from evertally.audit.whitebox import again, of_values, smaller
from evertally.counting.linear import JointSums
from evertally.counting.process import Remembering
from evertally.errors import ConfigurationError
from evertally.histogram.in_place import Constant
from evertally.noise import simulation
from evertally.privacy import ZCDP, ApproxDP, PureDP
from evertally.ranking import choosing_once
from evertally.sketches.options import LabelSketch
from evertally.statistics import RunningMean
from evertally.statistics.column_options import Guessing, is_question
from evertally.statistics.dynamic_options import Dynamic
from evertally.statistics.linear_options import Linear, is_linear
from evertally.users.active import ActiveUsers
from evertally.values.quantiles import ValueQuantile
from evertally.values.tumbling import Tumbling

__all__ = ["SIZES", "Effort", "Sizes", "Step", "audit_mechanism", "best", "hunted", "plan", "run"]

Effort = Literal["short", "long"]


@dataclass(frozen=True)
class Sizes:
    """How much of everything. The number of games follows from how many numbers (games x ticks x columns) are drawn."""

    horizon: int  # longer ones are audited on a copy of this length
    numbers: int  # drawn on each side by the strongest adversary; each of the others draws a tenth
    trials: int  # of the strongest, at most
    combinations: int  # enumerated by an exact law
    objects: int  # games with one Python object each; ten times as many by the most promising adversary
    least: int = 2000  # games of the strongest adversary, and of the others where there are few columns
    wait: int = 30  # ticks for which an interval of a partition waits
    streams: int = 4  # ticks of streams of insertions and deletions, records of edges and letters, that are all tried
    telling: int = 300  # ticks of a long horizon that are looked at together
    pairs: int = 300  # of neighbours that are tried, for graphs and strings

    def games(self, ticks: int, columns: int, main: bool) -> int:
        """Of the strongest adversary, or of one of the others; of hundreds of columns these play less: what they could
        find, the strongest finds, and the noise is computed."""
        games = min(self.trials, self.numbers // (ticks * columns))
        if main:
            return max(self.least, games)
        least = max(self.least // 8, min(self.least, 4 * self.numbers // (ticks * columns)))
        return max(least, games // 10)


_FEW_TICKS = 6  # of a game with one object for each trial
_FIRST_EPOCH = 32
_FEWEST_GAMES = 100
_TELLING = 3  # streams that a search finds, played against a mechanism of which nothing is known

SIZES: dict[str, Sizes] = {
    "short": Sizes(64, 1_000_000, 40_000, 30_000, 2_000),
    "long": Sizes(1024, 60_000_000, 400_000, 100_000, 20_000, wait=300, streams=5, telling=2100, pairs=8000),
}


@dataclass(frozen=True)
class _Rules:
    """What all games of an audit share; `ticks` if somebody gave them."""

    sizes: Sizes
    ticks: int | None
    seed: int
    confidence: float

    def options(self, number: int, ticks: int) -> dict[str, Any]:
        """Of one game: the number makes its seed."""
        return {"ticks": ticks, "seed": hash_seed(self.seed, number), "confidence": self.confidence}


def audit_mechanism(
    factory: Factory,
    effort: Effort = "short",
    *,
    ticks: int | None = None,
    seed: int = 0,
    confidence: float = 1 - 1e-6,
    progress: Progress | None = None,
) -> list[Report]:
    """Audits a mechanism in every way that applies to it; one report for each. `overall(reports)` is what they say
    together, `best(reports)` the strongest of them.

    `factory(key)` makes the mechanism: one of this library, or any object with `step(x)`, a `guarantee` and a `horizon`
    (otherwise give `ticks`). It must take all its randomness from the key, or from a generator that the key seeds.

    >>> import evertally as et
    >>> reports = audit_mechanism(lambda key: et.Counter(guarantee=et.ZCDP(0.5), horizon=16, mechanism="tree", key=key))
    >>> from evertally.audit import overall
    >>> overall(reports), round(best(reports).fraction, 2)
    ('holds (tight)', 1.0)
    """
    reports = []
    with choosing_once():
        steps = plan(factory, effort, ticks=ticks, seed=seed, confidence=confidence)
        for number, step in enumerate(steps):
            if progress:
                progress(step.name, number, len(steps))
            reports.append(run(step))
    return reports


def best(reports: Iterable[Report]) -> Report:
    """The report that decides: a broken promise if there is one, otherwise the largest part of the claimed loss."""
    return max(reports, key=lambda report: (not report.passed, report.is_loss, report.fraction))


def plan(
    factory: Factory, effort: Effort = "short", *, ticks: int | None = None, seed: int = 0, confidence: float = 1 - 1e-6
) -> list[Step]:
    """The parts of an audit, in the order in which they are run."""
    if effort not in SIZES:
        raise ConfigurationError('effort is "short" or "long"')
    rules, model = _Rules(SIZES[effort], ticks, seed, confidence), factory(simulation(0))
    faults = [Step(name, run) for name, run in fault_audits(factory, model, effort)]
    return [*_steps_without_faults(factory, model, rules), *faults]


def _steps_without_faults(factory: Factory, model: Any, rules: _Rules) -> list[Step]:
    if is_question(model):
        return _column_steps(factory, model, rules)
    if is_dynamic(model):
        return _dynamic_steps(factory, model, rules)
    if is_encoded(model):
        return _application_steps(factory, model, rules)
    if is_active(model):
        return _active_steps(factory, model, rules)
    if has_allowance(model):
        allowed = Step("users with an allowance", lambda: allowance_report(model))
        return [allowed, *_amount_steps(model, rules), *state_steps(factory, model)]
    if is_sketch(model):
        return _sketch_steps(factory, model, rules)
    if is_owned(model):
        return _owned_steps(factory, model, rules)
    if is_presence(model):
        return _presence_steps(factory, model, rules)
    if is_local(model):
        return _message_steps(model, rules)
    if releases_labels(model):
        return _label_steps(factory, model, rules)
    if has_epochs(model):
        return [
            Step("epochs", lambda: epochs_report(model)),
            *([Step("coins", lambda: coins_report(model))] if tosses_coins(model) else []),
            *attack_steps(model, [("boundary", lambda: boundary_attack(model))]),
            *_amount_steps(model, rules),
            *state_steps(factory, model),
        ]
    if is_weighed(model):
        return _weighed_steps(factory, model, rules)
    if isinstance(model, ValueQuantile) and not is_linear(model):
        return _value_steps(factory, model, rules)
    if isinstance(model, Tumbling) and model.every is not None:
        return _tumbling_steps(factory, model, rules)
    if not is_linear(model):
        return _unknown_steps(factory, model, rules)
    return _linear_parts(factory, model, rules) + linear_state_steps(factory, model)


def _linear_parts(factory: Factory, model: Linear, rules: _Rules) -> list[Step]:
    steps = _door_steps(factory, model)
    if tosses_coins(model):
        steps.append(Step("coins", lambda: coins_report(model)))
    return steps + _counting_steps(factory, model, rules)


def _tumbling_steps(factory: Factory, model: Tumbling, rules: _Rules) -> list[Step]:
    """Sums that begin anew: one block, which is all that an event is in; and whether blocks share noise."""
    assert model.every is not None
    block = smaller(model, model.every, every=None)
    short = smaller(model, 4, every=2)
    event, nothing = inputs_of(short)[:2]
    blocks = ("blocks", lambda: shown_attack(again(short), [event, nothing, nothing, nothing], [nothing] * 4))
    attacks = attack_steps(short, [blocks]) + attack_steps(model, [("blocks far apart", lambda: blocks_attack(model))])
    return _linear_parts(again(block), block, rules) + attacks + state_steps(factory, model)


def _door_steps(factory: Factory, model: Any) -> list[Step]:
    """What events change, where the other audits take that for granted."""
    if not whitebox.has_telling_events(model):
        return [not_here(model, "the door", "no list of telling events is known for this door")]

    def door() -> Report:
        report = whitebox.door_report(model, factory)
        assert report is not None
        return report

    steps = [Step("the door", door)]
    if model.contribution.separated and is_linear(model):
        steps.append(Step("kept ticks", lambda: whitebox.kept_ticks_report(model)))
    return steps


def _counting_steps(factory: Factory, model: Linear, rules: _Rules) -> list[Step]:
    """The noise and its games, for the real horizon or for a copy that is short enough."""
    longest = rules.sizes.horizon
    whole_epochs = longest - 1  # 2^k - 1 ticks are k epochs
    length = rules.ticks or model.horizon or whole_epochs
    if model.horizon is None:
        length = min(length, whole_epochs)
    laws = _rows(horizon_rows(model, longest))
    if model.horizon is not None and length > longest:
        # Nothing about a longer stream is different in kind, and the closed form of T ticks is a matrix of T^2 numbers.
        small = smaller(model, longest)
        return laws + _linear_steps(again(small), small, rules, longest) + _first_ticks_steps(factory, model, rules)
    return laws + _linear_steps(factory, model, rules, length)


def _rows(rows: Iterable[tuple[str, Callable[[], Report]]]) -> list[Step]:
    return [Step(name, run) for name, run in rows]


def _linear_steps(factory: Factory, model: Linear, rules: _Rules, ticks: int) -> list[Step]:
    sizes, columns = rules.sizes, model._setting.columns
    gaussian = not isinstance(model.charge, PureDP)
    steps: list[Step] = []
    enumerable = whitebox.tiny(model, sizes.combinations)
    if enumerable is not None:
        steps.append(Step("exact law", lambda: whitebox.exact_report(*enumerable)))
    real = not gaussian and shift_form(model, 1) is not None
    # Half an epoch of blocks shows half of what hides there.
    at_least = max(ticks, _FIRST_EPOCH) if real and model.horizon is None else ticks
    if has_user_ticks(model):
        steps.append(Step("closed form", lambda: user_ticks_report(model, ticks)))
    elif gaussian or real:
        steps.append(Step("closed form", lambda: whitebox.closed_form_report(model, at_least)))
    if gaussian and ticks > 1 and isinstance(model.noise, Remembering):
        steps.append(Step("restored", lambda: whitebox.closed_form_report(model, ticks, ticks // 2)))
    linear_measure, measure = _measures(model)

    # A score that must be trained needs all releases of all games in memory.
    trained = not gaussian and not real and node_form(model, min(ticks, 4)) is None
    costly = 4 if trained else 1

    def game(adversary: Adversary, main: bool = False, ticks: int = ticks, how: Any = None) -> None:
        trials, options = sizes.games(ticks * costly, columns, main), rules.options(len(steps), ticks)
        how = how or (measure if adversary.adaptive else linear_measure)
        if how is measure_mu:
            trials = min(trials, sizes.trials // 3)  # a mean needs fewer games than an event of small probability
        steps.append(Step(adversary.name, lambda: how(factory, adversary, trials, **options), "noise"))

    worst, enough = whitebox.worst_tick(model, ticks)
    game(adversaries.FirstTick(model, tick=worst), True, enough)
    for tick in sorted({1, 2, ticks // 2, ticks - 1, ticks} - {worst}):
        if 1 <= tick <= ticks:
            game(adversaries.FirstTick(model, tick=tick))
    game(adversaries.Differencing(model))
    if model.contribution.signed and not of_values(model):
        game(adversaries.DeleteAndReinsert(model))
    if model.guarantee.adversary == "adaptive":
        for adversary in (adversaries.LateTrigger(model), adversaries.Feedback(model), adversaries.EdgeStream(model)):
            game(adversary)
    if isinstance(model.guarantee, ApproxDP) and gaussian:
        game(adversaries.FirstTick(model, tick=worst), how=play)  # at the promised delta
    if isinstance(model, RunningMean):
        seen = adversaries.FirstTick()
        seen.name = "change of tick 1, the mean alone"
        options = rules.options(len(steps), min(ticks, 4))
        steps.append(Step(seen.name, lambda: hunted(lambda k: _ShownMean(factory(k)), seen, sizes.objects, **options)))
    return steps


def hunted(factory: Factory, adversary: Adversary, trials: int, **options: Any) -> Report:
    """One adversary, and bets on all that its games show: numbers, labels, forms, failures."""
    return hunt(factory, [adversary], trials, **options)[0]


def _measures(model: Linear) -> tuple[Any, Any]:
    """How to judge scores that are linear in the noise, and others."""
    if isinstance(model.charge, PureDP):
        return play, play
    linear = measure_mu if whitebox.nearly_normal(model) else measure_rho
    return linear, measure_mu if whitebox.nearly_continuous(model) else measure_rho


def _first_ticks_steps(factory: Factory, model: Linear, rules: _Rules) -> list[Step]:
    """The real, long configuration for its first ticks: less is seen of it, so less is found."""
    ticks, (measure, _) = rules.sizes.horizon, _measures(model)
    adversary = adversaries.FirstTick(model)
    adversary.name += ", first ticks of the full horizon"
    trials, options = rules.sizes.games(ticks, model._setting.columns, False), rules.options(98, ticks)
    steps = [Step(adversary.name, lambda: measure(factory, adversary, trials, **options), "noise")]
    if telling_ticks(model.noise):
        steps.append(Step("levels", lambda: whitebox.levels_report(model, rules.sizes.telling)))
    return steps


class _ShownMean:
    """A running mean as its users see it: x values at the upper end go in, one number comes out."""

    def __init__(self, mean: RunningMean) -> None:
        self._mean = mean
        self.guarantee, self.horizon, self.mechanism = mean.guarantee, mean.horizon, mean.mechanism

    def step(self, x: int) -> Any:
        return _fed(self._mean, [self._mean.upper] * x)


def _fed(mechanism: Any, values: list[Any]) -> Any:
    """A tick of values, each of a user who comes once where users are protected: no rule leaves one out."""
    if not mechanism.takes_users:
        return mechanism.step(values)
    return mechanism.step_events(values, users=[f"{mechanism.tick}/{i}" for i in range(len(values))])


def _column_steps(factory: Factory, model: Guessing, rules: _Rules) -> list[Step]:
    steps = _door_steps(factory, model)
    steps += _rows([*column_audits(model, rules.sizes.wait), *interval_rows(model)])
    if isinstance(model._engine, JointSums):
        counters = counters_behind(model)
        steps += _counting_steps(again(counters), counters, rules)
    if not isinstance(worker_of(model), Constant):
        made = replicas(model)
        played: list[Adversary] = [adversaries.Scripted("worst pair", *close_pair_of(model))]
        if model.guarantee.adversary == "adaptive":
            played.append(adversaries.Feedback(made(simulation(0))))
        steps += of_aspect(_object_steps(made, played, rules.sizes.objects // 2, rules), "noise")
    return steps + state_steps(factory, model)


def _dynamic_steps(factory: Factory, model: Dynamic, rules: _Rules) -> list[Step]:
    steps = _rows([*dynamic_audits(model, rules.sizes.streams), *law_rows(model)])
    pair = adversaries.Scripted("one lifetime", np.array([[1]]), np.array([[0]]))
    steps += _object_steps(game_of(model), [pair], rules.sizes.objects, rules)
    return steps + state_steps(factory, model)


def _application_steps(factory: Factory, model: Encoded, rules: _Rules) -> list[Step]:
    search = Search(model, rules.sizes.streams, rules.sizes.pairs)
    steps = [Step("neighbours", search.report), Step("restarts", search.whole)]
    steps.append(_game_of_neighbours(search, rules))
    if questions.is_askable(model):
        copied: Any = search.model
        noisy = smaller(copied, copied.horizon, guarantee=modest(model.guarantee))
        steps += attack_steps(model, [("questions", lambda: questions.question_attack(again(noisy)))])
    if questions.finds_words(model):
        steps += attack_steps(model, [("found", lambda: questions.found_attack(again(search.model)))])
    return steps + state_steps(factory, model)


def _owned_steps(factory: Factory, model: Linear, rules: _Rules) -> list[Step]:
    search = OwnedSearch(model, rules.sizes.pairs // 3, rules.seed)
    steps = [Step("neighbours", search.report), Step("whole", search.whole), _game_of_neighbours(search, rules)]
    return steps + state_steps(factory, model)


def _game_of_neighbours(search: Search | OwnedSearch | SketchSearch, rules: _Rules) -> Step:
    def game() -> Report:
        # Made when it is played: the search comes before it.
        played, trials = search.game(), max(_FEWEST_GAMES, rules.sizes.objects // 8)
        weak = played.model.guarantee
        judged = measure_mu if isinstance(weak, ZCDP) and played.gaussian else hunted
        options = rules.options(50, len(played.left)) | ({} if judged is measure_mu else {"claim": weak})
        return judged(played.mechanism, WorstNeighbours(played), trials, **options)

    return Step("the worst neighbours", game)


def _presence_steps(factory: Factory, model: Any, rules: _Rules) -> list[Step]:
    search = PathSearch(model)
    steps = [Step("all short streams", search.report), Step("restarts", search.whole)]
    pair = adversaries.Scripted("there while the last number is high", np.array([[1]]), np.array([[0]]))
    steps += _object_steps(search.game(), [pair], max(_FEWEST_GAMES, rules.sizes.objects // 8), rules)
    return steps + state_steps(factory, model)


def _sketch_steps(factory: Factory, model: LabelSketch, rules: _Rules) -> list[Step]:
    search = SketchSearch(model)
    steps = [Step("neighbours", search.report), _game_of_neighbours(search, rules)]
    if walkable(model):
        steps += attack_steps(model, [("found", lambda: descent_attack(again(search.alone)))])
    return steps + state_steps(factory, model)


def _active_steps(factory: Factory, model: ActiveUsers, rules: _Rules) -> list[Step]:
    search = ActiveSearch(model)
    steps = [Step("all short streams", search.report), Step("restarts", search.whole), Step("crowd", search.returning)]
    if model.unit == "user" and not isinstance(model.charge, PureDP):
        steps.append(Step("comes and goes", search.habits))
    few = max(_FEWEST_GAMES, rules.sizes.objects // 16)
    for name, feedback in (("there all the time", False), ("there while the last number is high", True)):
        if feedback or model.unit == "user":
            pair = adversaries.Scripted(name, np.array([[1]]), np.array([[0]]))
            steps += _object_steps(search.game(feedback), [pair], few, rules)
    return steps + state_steps(factory, model)


def _message_steps(model: LocalMessage, rules: _Rules) -> list[Step]:
    steps = [Step("all cells", lambda: message_report(model))]
    small = with_cells(model.protocol, 16)
    one, other = worst_cells(small)
    pair = adversaries.Scripted("two values far apart", np.array([[one]]), np.array([[other]]))
    few = max(_FEWEST_GAMES, rules.sizes.objects // 8)
    steps += _object_steps(lambda key: LocalMessage(small, key), [pair], few, rules)
    return steps + attack_steps(model, [("second message", lambda: message_attack(model))])


def _weighed_steps(factory: Factory, model: Any, rules: _Rules) -> list[Step]:
    ticks = min(rules.ticks or model.horizon or rules.sizes.horizon, rules.sizes.horizon)
    if model.horizon is not None and model.horizon > ticks:
        model = smaller(model, ticks)
        factory = again(model)
    steps = _door_steps(factory, model)
    steps.append(Step("closed form", lambda: weighed_report(factory, model, ticks)))
    games = _object_steps(factory, [adversaries.FirstTick(model)], rules.sizes.objects, rules)
    steps += of_aspect(games, "noise")
    return steps + state_steps(factory, model) + column_steps(factory, model)


def _label_steps(factory: Factory, model: Any, rules: _Rules) -> list[Step]:
    steps = _door_steps(factory, model)
    if has_counts(model):
        steps.append(Step("closed form", lambda: counts_report(factory, model)))
    steps += _rows(law_rows(model))
    made = labelled(factory)
    played = [adversaries.FirstTick(made(simulation(0)))]
    steps += of_aspect(_object_steps(made, played, rules.sizes.objects // 4, rules), "noise")
    return [*steps, *state_steps(factory, model)]


def _amount_steps(model: Any, rules: _Rules) -> list[Step]:
    pair = adversaries.Scripted("the largest amount", np.array([[1]]), np.array([[0]]))
    return _object_steps(game_of_amounts(model), [pair], max(_FEWEST_GAMES, rules.sizes.objects // 8), rules)


def _value_steps(factory: Factory, model: ValueQuantile, rules: _Rules) -> list[Step]:
    """Quantiles that are no plain columns: one block of those that begin anew, and games of what is shown."""
    steps = _door_steps(factory, model)
    if model.every is not None:  # an event lies in one block, and blocks share no noise
        block = smaller(model, model.every, every=None)
        steps += _counting_steps(again(block), block, rules)
        steps += attack_steps(model, [("blocks far apart", lambda: blocks_attack(model))])
    else:
        note = "what two values of a large domain differ by is tried for all pairs of small ones in the tests"
        steps.append(not_here(model, "two values", note))

    def shown(key: Any) -> _ShownValues:
        return _ShownValues(factory(key))

    played = [adversaries.FirstTick(shown(simulation(0)))]
    return steps + _object_steps(shown, played, rules.sizes.objects // 4, rules) + state_steps(factory, model)


class _ShownValues:
    """Quantiles as their users see them: x values in the first cell go in, quantiles come out."""

    def __init__(self, quantiles: ValueQuantile) -> None:
        self._quantiles = quantiles
        self.guarantee, self.horizon, self.mechanism = quantiles.guarantee, quantiles.horizon, quantiles.mechanism

    def step(self, x: int) -> Any:
        return _fed(self._quantiles, [whitebox.largest_value(self._quantiles)] * x)


def _object_steps(factory: Factory, adversaries: Iterable[Adversary], trials: int, rules: _Rules) -> list[Step]:
    """Games with one object each, over a few ticks."""
    model = factory(simulation(0))
    ticks = min(model.horizon or _FEW_TICKS, _FEW_TICKS)

    def step(number: int, adversary: Adversary) -> Step:
        options = rules.options(50 + number, ticks) | {"claim": model.guarantee}
        return Step(adversary.name, lambda: hunted(factory, adversary, trials, **options))

    return [step(number, adversary) for number, adversary in enumerate(adversaries)]


def _unknown_steps(factory: Factory, model: Any, rules: _Rules) -> list[Step]:
    horizon: int | None = getattr(model, "horizon", None)
    length = rules.ticks or min(horizon or 0, rules.sizes.horizon)
    if not length:
        raise ConfigurationError("a mechanism without a horizon is audited for a number of ticks: give ticks=...")
    guarantee = getattr(model, "guarantee", None)
    if guarantee is None:
        raise ConfigurationError("the mechanism makes no promise: give it a guarantee, e.g. et.PureDP(1.0)")
    ticks = sorted({1, (length + 1) // 2, length})
    known: list[Adversary] = [adversaries.FirstTick(model, tick=tick) for tick in ticks]
    known += [adversaries.RandomSearch(number) for number in range(1, 5)]
    if guarantee.adversary == "adaptive":
        known += [adversaries.LateTrigger(model), adversaries.Feedback(model), adversaries.EdgeStream(model)]
    sizes, numbers = rules.sizes, length * width(model)
    trials = max(sizes.objects, min(10 * sizes.objects, 200 * sizes.objects // numbers))

    def everybody() -> list[Adversary]:
        # Found when they are played: the search comes before it.
        tried = max(_TELLING, sizes.objects // max(20, numbers))
        return [*known, *telling_streams(factory, model, length, _TELLING, tried, hash_seed(rules.seed, 77))]

    hunt = Hunt(factory, everybody, trials, length, seed=hash_seed(rules.seed, 7), confidence=rules.confidence)
    steps = [Step(adversary.name, partial(hunt.report, adversary.name)) for adversary in known]
    for number in range(_TELLING):
        steps.append(Step(f"telling stream {number + 1}", partial(hunt.number, len(known) + number)))
    return [*steps, Step("all together", hunt.together)]
