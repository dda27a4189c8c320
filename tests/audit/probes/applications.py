"""Probes of graphs, strings, stacks and messages: the rows of their short audit that play no games."""

from __future__ import annotations

from typing import Any

from audit.probes.probing import Verdict, first_leak, probe
from evertally.applications import graph, strings
from evertally.applications.dashboard import Dashboard
from evertally.applications.stacked import Stacked
from evertally.applications.stacking import part
from evertally.audit import attacks
from evertally.audit.applications import Search
from evertally.audit.local_messages import LocalMessage, message_attack, message_report
from evertally.audit.questions import found_attack, question_attack
from evertally.audit.report import Report
from evertally.audit.suite import SIZES
from evertally.audit.weighed import weighed_report
from evertally.audit.whitebox import door_report
from evertally.counting import workloads
from evertally.errors import ConfigurationError
from evertally.local import Protocol
from evertally.noise import simulation
from evertally.privacy import ZCDP, PureDP
from evertally.statistics import Counter, Histogram

PURE, CONCENTRATED = PureDP(1.0), ZCDP(0.5)
_TREE: dict[str, Any] = {"guarantee": CONCENTRATED, "mechanism": "epoch-tree"}
_PURE: dict[str, Any] = {"guarantee": PURE}
_LETTERS: dict[str, Any] = {"alphabet": "abcd", "longest": 4, "sequence": "stream"}
_USER: dict[str, Any] = {"unit": "user", "max_events_per_user": 4}


def row(kind: Any, *first: Any, horizon: int | None = None, **options: Any) -> Report:
    """The row of the short audit that searches for neighbours."""
    model = kind(*first, horizon=horizon, key=simulation(0), **options)
    return Search(model, SIZES["short"].streams, SIZES["short"].pairs).report()


def verdict(report: Report) -> Verdict:
    text = f"{report.adversary} loses {report.unit} {report.audited:.5g}, claimed {report.claimed:.5g}"
    return not report.passed, text


@probe("closed form", "an edge, and its copies")
def edge() -> Verdict:
    return verdict(row(graph.EdgeCount, **_PURE))


@probe("closed form", "edges of a projected graph")
def projected() -> Verdict:
    return verdict(row(graph.EdgeCount, max_degree=20, **_TREE))


@probe("closed form", "edges of a user")
def edges_of_a_user() -> Verdict:
    return verdict(row(graph.EdgeCount, **_PURE, **_USER))


@probe("closed form", "edges that come and go")
def presence() -> Verdict:
    return verdict(row(graph.DegreeVector, vertices=20, updates="both", **_PURE))


@probe("closed form", "a weighted edge in the place of another")
def weights() -> Verdict:
    model: dict[str, Any] = {"vertices": 9, "copies": "counted", "max_weight": 60, "neighbours": "replace"}
    return verdict(row(graph.CutGraph, horizon=100, guarantee=CONCENTRATED, **model))


@probe("closed form", "an edge in the place of another, at thresholds")
def thresholds() -> Verdict:
    return verdict(row(graph.HighDegree, threshold=10, neighbours="replace", **_TREE))


@probe("closed form", "triangles of a projected graph")
def triangles() -> Verdict:
    return verdict(row(graph.Triangles, max_degree=50, **_PURE))


@probe("closed form", "bins of degrees")
def bins() -> Verdict:
    return verdict(row(graph.DegreeHistogram, vertices=40, max_degree=9, **_TREE))


@probe("closed form", "the cost of a forest")
def forest() -> Verdict:
    return verdict(row(graph.SpanningForestCost, max_weight=10, **_TREE))


@probe("closed form", "a node whose degree is cut")
def node() -> Verdict:
    try:
        report = row(graph.EdgeCount, copies="absent", protects="node", max_degree=1, **_TREE)
    except ConfigurationError:
        return False, "it is refused"
    return verdict(report)


@probe("closed form", "a letter that is there or not")
def joined() -> Verdict:
    return verdict(row(strings.SubstringCounts, horizon=365, guarantee=CONCENTRATED, **_LETTERS))


@probe("closed form", "a letter that is there or not, pure")
def joined_pure() -> Verdict:
    return verdict(row(strings.SubstringCounts, **_PURE, **_LETTERS))


@probe("closed form", "a letter in the place of another")
def replaced_letter() -> Verdict:
    return verdict(row(strings.SubstringCounts, horizon=365, guarantee=CONCENTRATED, neighbours="replace", **_LETTERS))


@probe("closed form", "letters of a user")
def letters_of_a_user() -> Verdict:
    own = _LETTERS | {"sequence": "user"}
    return verdict(row(strings.SubstringCounts, horizon=100, guarantee=CONCENTRATED, **own, **_USER))


@probe("closed form", "episodes of a list")
def episodes() -> Verdict:
    return verdict(row(strings.EpisodeCounts, alphabet="abc", words=["ab", "bc"], sequence="stream", **_PURE))


@probe("closed form", "statistics side by side")
def stacked() -> Verdict:
    parts = {
        "letters": part(Histogram, categories=["a", "b", "c"]),
        "orders": part(strings.EpisodeCounts, alphabet="abc", words=["ab", "bc"], sequence="stream"),
    }
    return verdict(row(Stacked, parts, **_TREE))


@probe("closed form", "a change that decays")
def decay() -> Verdict:
    def make(key: Any) -> Counter:
        decaying = workloads.Decay("0.9")
        return Counter(guarantee=CONCENTRATED, horizon=64, mechanism="root", workload=decaying, key=key)

    return verdict(weighed_report(make, make(simulation(0)), 64))


@probe("closed form", "messages of two values")
def messages() -> Verdict:
    return verdict(message_report(_client()))


def _client() -> LocalMessage:
    return LocalMessage(Protocol(guarantee=CONCENTRATED, clients=100, low=0, high=1, cells=32), simulation(0))


@probe("attack", "a second message")
def second_message() -> Verdict:
    return first_leak(message_attack(_client()))


def _words(key: Any) -> Any:
    return strings.SubstringCounts(
        alphabet="ab", longest=2, sequence="stream", guarantee=CONCENTRATED, horizon=8, key=key
    )


@probe("attack", "questions about words")
def questions() -> Verdict:
    return first_leak(question_attack(_words))


@probe("attack", "questions about labels")
def labels() -> Verdict:
    return first_leak(question_attack(lambda key: graph.DegreeVector(horizon=8, key=key, **_PURE)))


@probe("attack", "which words are shown")
def shown() -> Verdict:
    return first_leak(attacks.metadata_attack(_words, [["a", "b"], ["a"]], [[], ["a"]]))


@probe("attack", "which words are found")
def found() -> Verdict:
    def make(key: Any) -> Any:
        counted: dict[str, Any] = {"alphabet": "ab", "longest": 2, "sequence": "stream", "above": 3}
        return strings.FrequentSubstrings(guarantee=ZCDP(4), horizon=8, key=key, **counted)

    return first_leak(found_attack(make))


@probe("closed form", "events with two types")
def two_types() -> Verdict:
    types = ["click", "order", "refund"]
    metrics: dict[str, Any] = {"total": "all"} | {one: [one] for one in types}
    report = door_report(
        Dashboard(
            types=types,
            metrics=metrics,
            multipliers=dict.fromkeys(metrics, 1),
            guarantee=CONCENTRATED,
            horizon=8,
            key=simulation(0),
        )
    )
    assert report is not None
    return verdict(report)
