"""A certificate says what the objects say, cites what exists, and its plain words are true."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner
from visit_stream import COLUMN_QUERIES, UNKNOWN_QUERIES, WITH_UNKNOWN_QUERIES, WriteSpec

import evertally
from evertally.cli.app import app
from evertally.errors import ConfigurationError
from evertally.privacy import ZCDP, ApproxDP, PureDP
from evertally.privacy.conversions import epsilon_of_mu, gaussian_mu
from evertally.runtime import StreamSpec, load_spec, plan
from evertally.runtime.certificate import certificate, plain_words
from evertally.runtime.mechanisms import build
from evertally.runtime.sinks.parquet import ABOUT, release_schema
from spec_text import spec_text


@pytest.fixture
def everything(write_spec: WriteSpec) -> StreamSpec:
    return load_spec(write_spec(*WITH_UNKNOWN_QUERIES, append=COLUMN_QUERIES + UNKNOWN_QUERIES))


def test_it_is_json_and_says_what_the_objects_say(everything: StreamSpec) -> None:
    filed = json.loads(json.dumps(certificate(everything), allow_nan=False))
    assert (filed["format"], filed["evertally"]) == (1, evertally.__version__)
    assert (filed["stream"], filed["spec_digest"]) == ("visits", everything.digest)
    guarantee = everything.guarantee
    assert isinstance(guarantee, ApproxDP)
    assert filed["guarantee"]["kind"] == "ApproxDP"
    assert Fraction(filed["guarantee"]["exact"]["epsilon"]) == guarantee.exact_epsilon
    assert Fraction(filed["guarantee"]["exact"]["delta"]) == guarantee.exact_delta
    planned = plan(everything)
    assert filed["error_bounds"] == {"beta": 0.05, "at_tick": planned.ticks, "about": planned.about}
    mechanisms = build(everything, key=None)
    for query, row, said in zip(everything.queries, planned.queries, filed["queries"], strict=True):
        assert (said["name"], said["kind"], said["share"]["exact"]) == (query.name, query.kind, str(query.share))
        assert said["made_by"] == "evertally"
        assert said["in_plain_words"] == query.record.card.shown(query.column, query.parameters)
        assert (said["mechanism"], said["exactness"]) == (row.mechanism, row.exactness)
        assert said["class"] == type(mechanisms[query.name]).__name__
        assert said["error_bound"] == (row.error_bound if math.isfinite(row.error_bound or 0) else None)
        assert said["no_error_bound_because"] == row.unbounded_because
        for name, value in said["charge"]["exact"].items():
            assert Fraction(value) == getattr(mechanisms[query.name].charge, f"exact_{name}")


def test_the_sum_is_the_sum_and_is_within_the_guarantee(everything: StreamSpec) -> None:
    filed = certificate(everything)
    charges = [mechanism.charge for mechanism in build(everything, key=None).values()]
    total = filed["composition"]
    assert Fraction(total["sum"]["rho"]) == sum(charge.cost.rho for charge in charges)
    assert Fraction(total["sum"]["delta"]) == sum(charge.cost.delta for charge in charges) > 0
    assert total["within_guarantee"] is True
    assert "streaming-selection 2.3" in total["theorem"].replace("2.1 and ", "")


def test_conversions_follow_from_the_guarantee(write_spec: WriteSpec) -> None:
    filed = certificate(load_spec(write_spec()))
    pairs = {Fraction(pair["exact"]["delta"]): Fraction(pair["exact"]["epsilon"]) for pair in filed["epsilon_delta"]}
    assert len(pairs) > 5
    for delta, epsilon in pairs.items():
        assert epsilon == ZCDP(0.5).to_approx(delta).exact_epsilon, "all of rho is spent"
    pure = certificate(load_spec(write_spec(("rho = 0.5", "epsilon = 0.5"))))
    assert all(Fraction(pair["exact"]["epsilon"]) <= Fraction(1, 2) for pair in pure["epsilon_delta"])
    assert pure["composition"]["total"]["exact"] == {"epsilon": "1/2"}
    assert "epsilons add up" in pure["composition"]["theorem"]
    both = certificate(load_spec(write_spec(("rho = 0.5", "epsilon = 1\ndelta = 1e-6"))))
    for pair in both["epsilon_delta"]:
        if Fraction(pair["exact"]["delta"]) >= Fraction(1e-6):
            assert pair["epsilon"] <= 1
    assert {pair["epsilon"] > 1 for pair in both["epsilon_delta"]} == {True, False}, "and what a smaller delta costs"


@pytest.mark.parametrize("horizon", [48, None])
@pytest.mark.parametrize("delta", ["1e-6", "1e-9", "3e-8"])
def test_one_bank_has_the_whole_promise_by_the_exact_curve(
    write_spec: WriteSpec, horizon: int | None, delta: str
) -> None:
    name = "bank-open" if horizon is None else "bank"
    filed = certificate(load_spec(alone(write_spec, delta, horizon, mechanism=name)))
    assert filed["queries"][0]["mechanism"] == name
    promise = ApproxDP(1.0, float(delta))
    mu = gaussian_mu(promise.exact_epsilon, promise.exact_delta)
    composed = filed["composition"]
    assert "nothing is added up" in composed["theorem"]
    assert composed["theorem"].endswith("optimal-counting 2.2")
    assert composed["sum"] == {"epsilon": "1", "rho": None, "delta": str(promise.exact_delta)}
    assert Fraction(composed["mu"]["exact"]) == mu <= Fraction(composed["mu"]["value"])
    assert composed["total"]["exact"] == filed["guarantee"]["exact"]
    pairs = pairs_of(filed)
    assert pairs.pop(promise.exact_delta) == 1, "exactly the promise"
    assert len(pairs) >= 8
    for at, epsilon in pairs.items():
        assert epsilon == epsilon_of_mu(mu, at), "neither more nor less than the noise gives"
        assert (epsilon < 1) == (at > promise.exact_delta)
        assert epsilon < ZCDP(mu**2 / 2).to_approx(at).exact_epsilon
    printed = [pair["delta"] for pair in filed["epsilon_delta"]]
    assert printed == sorted(printed, reverse=True)
    assert printed.count(float(delta)) == 1


def test_what_shares_a_promise_or_is_no_bank_is_added_up(write_spec: WriteSpec) -> None:
    for path in (
        write_spec(("rho = 0.5", "epsilon = 1\ndelta = 1e-9")),
        alone(write_spec, "1e-9", 48, mechanism="tree"),
        alone(write_spec, "1e-9", 48, share=0.5),
    ):
        filed = certificate(load_spec(path))
        assert "rho adds up" in filed["composition"]["theorem"]
        assert filed["composition"]["mu"] is None
        assert Fraction(filed["composition"]["sum"]["rho"]) > 0
        at_promise = pairs_of(filed)[Fraction(1e-9)]
        spent = sum(Fraction(query["share"]["exact"]) for query in filed["queries"])
        assert at_promise == 1 if spent == 1 else at_promise < Fraction(3, 4), "what is not spent is not lost"


def test_a_bank_under_a_construction_pays_by_the_curve_too(write_spec: WriteSpec) -> None:
    path = alone(write_spec, "1e-6", 48)
    query = '[[query]]\nname = "beds"\nkind = "dynamic_count"\nprocess = "bank"\nid = "visit"\naction = "what"\n'
    path.write_text(path.read_text().partition("[[query]]")[0] + query)
    filed = certificate(load_spec(path))
    assert filed["queries"][0]["charge"]["kind"] == "ApproxDP"
    assert "nothing is added up" in filed["composition"]["theorem"]
    assert pairs_of(filed)[Fraction(1, 1000)] == epsilon_of_mu(gaussian_mu(1, 1e-6), Fraction(1, 1000))


def test_of_what_others_made_only_the_charge_is_known(write_spec: WriteSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = load_spec(alone(write_spec, "1e-6", 48, mechanism="bank"))
    monkeypatch.setattr(type(spec.queries[0]), "ours", False)
    filed = certificate(spec)
    assert filed["composition"]["mu"] is None
    assert {pair["epsilon"] for pair in filed["epsilon_delta"]} == {1.0}


def alone(write_spec: WriteSpec, delta: str, horizon: int | None, **options: Any) -> Path:
    """A spec of one counter under epsilon = 1."""
    path = write_spec(("rho = 0.5", f"epsilon = 1\ndelta = {delta}"))
    text = path.read_text()
    first, second = (found.start() for found in re.finditer(r"\[\[query\]\]", text))
    kept = text[:first] + text[first:second].replace("share = 0.25", f"share = {options.get('share', 1)}")
    kept += f'mechanism = "{options["mechanism"]}"\n' if "mechanism" in options else ""
    path.write_text(kept if horizon else kept.replace("horizon = 48\n", ""))
    return path


def pairs_of(filed: dict[str, Any]) -> dict[Fraction, Fraction]:
    return {Fraction(pair["exact"]["delta"]): Fraction(pair["exact"]["epsilon"]) for pair in filed["epsilon_delta"]}


def test_the_whole_guarantee_for_one_query(write_spec: WriteSpec) -> None:
    path = write_spec(("rho = 0.5", "epsilon = 1\ndelta = 1e-6"))
    text = path.read_text()
    path.write_text(
        text[: text.index("[[query]]")]
        + '[[query]]\nname = "w"\nkind = "streaming-top"\nk = 1\nswitches = 2\ncolumn = "w"\ncategories = ["a", "b"]\n'
    )
    filed = certificate(load_spec(path))
    assert filed["queries"][0]["charge"]["kind"] == "ApproxDP"
    assert filed["composition"]["within_guarantee"] is True
    assert filed["queries"][0]["proved_in"]["mechanism"].endswith("additions 3")
    assert filed["composition"]["total"]["epsilon"] <= 1
    assert "bad events add up" in filed["composition"]["theorem"], "it has no mu"
    assert filed["composition"]["mu"] is None
    assert pairs_of(filed)[Fraction(1e-6)] == filed["composition"]["total"]["epsilon"]


def test_a_constant_pays_nothing(write_spec: WriteSpec) -> None:
    change = (
        ('kind = "histogram"', 'kind = "max"\nmechanism = "trivial"'),
        ("horizon = 48", "horizon = 48\nmax_events_per_tick = 9"),
    )
    filed = certificate(load_spec(write_spec(*change)))
    assert filed["queries"][1]["charge"] is None
    assert filed["composition"]["sum"]["rho"] == "1/8"
    assert filed["composition"]["within_guarantee"] is True


def test_what_rests_on_a_guess_has_no_bound_and_says_why(write_spec: WriteSpec) -> None:
    change = (
        ('kind = "histogram"', 'kind = "max"\nmechanism = "bounded"\nlargest = 5'),
        ("horizon = 48", "horizon = 48\nmax_events_per_tick = 9"),
        ("rho = 0.5", "rho = 50"),
    )
    spec = load_spec(write_spec(*change))
    row, said = plan(spec).queries[1], certificate(spec)["queries"][1]
    assert math.isinf(row.error_bound or 0)
    assert said["error_bound"] is None
    assert "largest=5 is a guess" in said["no_error_bound_because"] == row.unbounded_because
    assert 0 < said["error_bound_if_answers_stay_below_largest"] == row.guessed_bound
    assert "No tick has more than 9 events" in " ".join(certificate(spec)["assumptions"])
    assert "additions 7" in said["proved_in"]["mechanism"]
    replaced = load_spec(write_spec(*change, ("horizon = 48", 'horizon = 48\nneighbours = "replace"')))
    assert "additions 7" not in certificate(replaced)["queries"][1]["proved_in"]["mechanism"]
    enough = (('kind = "histogram"', 'kind = "max"\nmechanism = "bounded"\nlargest = 432'), *change[1:])
    sure = certificate(load_spec(write_spec(*enough)))["queries"][1]
    assert sure["error_bound"] > 0
    assert sure["no_error_bound_because"] is sure["error_bound_if_answers_stay_below_largest"] is None


def test_what_is_assumed_and_who_is_protected(write_spec: WriteSpec) -> None:
    users = 'horizon = 48\nunit = "user"\nuser_column = "patient"\nmax_events_per_user = 7'
    filed = certificate(
        load_spec(write_spec(("horizon = 48", users), ("rho = 0.5", 'rho = 0.5\nadversary = "oblivious"')))
    )
    assert filed["unit"] == {"protects": "user", "max_events_per_user": 7, "user_column": "patient"}
    assert "at most 7" in filed["neighbours"]["meaning"]
    assert filed["adversary"]["kind"] == "oblivious"
    assert "price-of-continual-release 9.5" in filed["queries"][0]["proved_in"]["change_of_one_unit"]
    assumed = " ".join(filed["assumptions"])
    for words in ("AES-256", "key and the state file are secret", "declared", "outside the promise"):
        assert words in assumed
    assert "do not depend on what this stream released" in assumed
    assert filed["clock"] == {
        "start": "2013-01-01T00:00:00Z",
        "tick": 3600.0,
        "unit": "seconds",
        "column": "time",
        "close": "wall",
    }
    floating = certificate(load_spec(write_spec(("2013-01-01T00:00:00Z", '"first serve"'))))
    assert floating["clock"]["start"] == "first serve"
    assert "1970" not in json.dumps(floating)
    request = certificate(load_spec(write_spec(('tick = "1h"', 'tick = "1h"\nclose = "request"'))))
    assert "administrator" in " ".join(request["assumptions"])


def test_no_place_and_no_secret_is_in_it(write_spec: WriteSpec, tmp_path: Path) -> None:
    text = json.dumps(certificate(load_spec(write_spec(append='\n[[sink]]\nwebhook = "https://x/secret"\n'))))
    for hidden in (str(tmp_path), "visits.key", "visits.state", "secret-", "https://x"):
        assert hidden not in text


@pytest.mark.parametrize(
    ("promise", "guarantee"),
    [
        ("epsilon = 0.1", PureDP(0.1)),
        ("epsilon = 1", PureDP(1)),
        ("epsilon = 1\ndelta = 1e-9", ApproxDP(1, 1e-9)),
        ("rho = 0.01", ZCDP(0.01)),
        ("rho = 0.5", ZCDP(0.5)),
    ],
)
def test_plain_words_bound_the_best_guess(write_spec: WriteSpec, promise: str, guarantee: Any) -> None:
    words = plain_words(load_spec(write_spec(("rho = 0.5", promise))))
    said = int(re.search(r"at most (\d+) of 100", words)[1])  # type: ignore[index]
    # What a mechanism that uses the whole promise really allows: randomised response, or two normal laws.
    if isinstance(guarantee, ZCDP):
        allowed = 0.5 * (1 + math.erf(math.sqrt(2 * guarantee.rho) / 2 / math.sqrt(2)))
    else:
        delta = getattr(guarantee, "delta", 0.0)
        allowed = (math.exp(guarantee.epsilon) + delta) / (1 + math.exp(guarantee.epsilon))
    assert 100 * allowed <= said <= 100 * allowed + 16
    assert 3 <= len(re.findall(r"\.(?= [A-Z]|$)", words)) <= 6


def test_plain_words_tell_who_is_hidden(write_spec: WriteSpec) -> None:
    words = plain_words(load_spec(write_spec()))
    assert "once for every hour" in words
    assert "whether any one event happened" in words
    assert "A person with many events is protected less" in words
    weak = plain_words(load_spec(write_spec(("rho = 0.5", "epsilon = 20"))))
    assert "says little" in weak
    replaced = plain_words(load_spec(write_spec(("horizon = 48", 'horizon = 48\nneighbours = "replace"'))))
    assert "not that it happened" in replaced
    blind = plain_words(load_spec(write_spec(("rho = 0.5", 'rho = 0.5\nadversary = "oblivious"'))))
    assert "if events do not depend" in blind


def test_a_large_delta_is_refused_or_told_everywhere(write_spec: WriteSpec) -> None:
    large = ("rho = 0.5", "epsilon = 1.0\ndelta = 0.1")
    with pytest.raises(ConfigurationError, match="force = true"):
        load_spec(write_spec(large))
    spec = load_spec(write_spec(("rho = 0.5", "epsilon = 1.0\ndelta = 0.1\nforce = true")))
    filed = certificate(spec)
    assert "one in 10 people" in filed["warnings"][0]
    assert "WARNING" in filed["in_plain_words"]
    assert plan(spec).warnings == tuple(filed["warnings"])
    assert "WARNING" in str(spec.guarantee)
    with pytest.raises(ConfigurationError, match="force"):
        load_spec(write_spec(("rho = 0.5", "rho = 0.5\nforce = true")))


def test_a_delta_is_measured_by_the_declared_number_of_events(write_spec: WriteSpec) -> None:
    small = ("rho = 0.5", "epsilon = 1.0\ndelta = 1e-6")
    assert certificate(load_spec(write_spec(small)))["warnings"] == []
    few, many = (("horizon = 48", f"horizon = 48\nmax_events_per_tick = {n}") for n in (100, 10**6))
    assert certificate(load_spec(write_spec(small, few)))["warnings"] == []
    assert "about 48 of them" in certificate(load_spec(write_spec(small, many)))["warnings"][0]


def test_forcing_decides_nothing_that_is_released(write_spec: WriteSpec) -> None:
    plain = load_spec(write_spec(("rho = 0.5", "epsilon = 1.0\ndelta = 1e-6"))).digest
    assert load_spec(write_spec(("rho = 0.5", "epsilon = 1.0\ndelta = 1e-6\nforce = true"))).digest == plain


def test_under_a_cap_the_intervals_are_about_what_it_kept(write_spec: WriteSpec) -> None:
    users = 'horizon = 48\nunit = "user"\nuser_column = "patient"\nmax_events_per_user = 7'
    capped, plain = load_spec(write_spec(("horizon = 48", users))), load_spec(write_spec())
    for text in (
        certificate(capped)["error_bounds"]["about"],
        certificate(capped)["in_plain_words"],
        plan(capped).about,
        release_schema(capped).metadata[ABOUT].decode(),
    ):
        assert "that the cap kept, at most 7 of each 'patient'" in text
    assert "cap" not in certificate(plain)["in_plain_words"]
    assert "all events" in release_schema(plain).metadata[ABOUT].decode()


_OF_USERS = {"unit": "user", "user_column": "who"}
_CAPPED = {**_OF_USERS, "max_events_per_user": 2}
_FOLLOWED = "one user: the first 2 items that are followed when they come, each once"
_EVENTS = "one user: the first 2 events that bear a name"
_LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "events": ({}, {"kind": "unknown-histogram"}, "one event"),
    "users by a cap": (_CAPPED, {"kind": "unknown-histogram"}, _EVENTS),
    "replaced users": ({**_CAPPED, "neighbours": "replace"}, {"kind": "unknown-top", "k": 3}, _EVENTS),
    "users of pages": (_OF_USERS, {"kind": "unknown-distinct", "max_categories": 2}, _FOLLOWED),
    "replaced users of pages": (
        {**_OF_USERS, "neighbours": "replace"},
        {"kind": "unknown-distinct", "max_categories": 2},
        _FOLLOWED,
    ),
}


@pytest.mark.parametrize("case", _LIMITS)
@pytest.mark.parametrize("most", [None, 500_000])
def test_what_is_said_of_a_limit_on_labels(tmp_path: Path, case: str, most: int | None) -> None:
    """What is proved (streaming-selection 7.5) where there is one, and nothing of it elsewhere. Which items of a user
    take the places depends on what is followed; which events a cap keeps does not."""
    stream, options, protects = _LIMITS[case]
    query = {"name": "found", "column": "page", **options} | ({} if most is None else {"max_labels": most})
    promise = {"epsilon": 1.0, "delta": 1e-6}
    path = tmp_path / "visits.toml"
    path.write_text(spec_text(query, stream={"name": "v", "horizon": 500, **stream}, guarantee=promise))
    spec = load_spec(path)
    filed = certificate(spec)
    said = filed["queries"][0]
    assert said["protects"] == (protects if most else protects.replace(" that are followed when they come", ""))
    assert "max_labels" not in said["proved_in"]["mechanism"]
    assert ("7.5" in said["proved_in"].get("built_on", "")) == bool(most)
    assert ("followed" in filed["in_plain_words"]) == bool(most and protects == _FOLLOWED)
    shown = CliRunner().invoke(app, ["plan", str(path)], env={"COLUMNS": "500"}).output
    assert ("The rest is never shown" in " ".join(shown.split())) == bool(most), shown
    made = spec.queries[0].record.card.making("page", spec.queries[0].parameters, "visit") or ""
    assert ("At most about 500000 names are followed" in made) == bool(most and options["kind"] != "unknown-distinct")
