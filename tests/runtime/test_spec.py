"""Every mistake in a spec is refused before anything else happens, at its line, with a remedy."""

from __future__ import annotations

import datetime as dt
import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from visit_stream import COLUMN_QUERIES, SPEC, WITH_COLUMN_QUERIES, WriteSpec

from evertally.errors import ConfigurationError
from evertally.kinds import OURS
from evertally.kinds.fields import Section
from evertally.privacy import ZCDP, ApproxDP, PureDP
from evertally.runtime import load_spec, plan, run
from evertally.runtime.spec import Retention, check_runnable, check_servable
from evertally.runtime.spec.sections import (
    GuaranteeSection,
    KeySection,
    OutputSection,
    RetentionSection,
    ServeSection,
    SinkSection,
    StateSection,
    StreamSection,
)


def test_a_good_spec(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = load_spec(write_spec())
    assert spec.name == "visits"
    assert spec.horizon == 48
    assert spec.guarantee == ZCDP(rho=0.5)
    assert spec.key_file == tmp_path / "visits.key"
    assert [query.share for query in spec.queries] == [Fraction(1, 4), Fraction(3, 4)]
    assert spec.queries[1].parameters == {"categories": ["north", "south"], "other": "elsewhere"}
    assert spec.columns() == ["time", "ward"]
    assert (spec.neighbours, spec.unit, spec.beta) == ("add_remove", "event", 0.05)


def test_forms_of_the_guarantee(write_spec: WriteSpec) -> None:
    assert load_spec(write_spec(("rho = 0.5", "epsilon = 2"))).guarantee == PureDP(epsilon=2)
    both = load_spec(write_spec(("rho = 0.5", "epsilon = 1.0\ndelta = 1e-9")))
    assert both.guarantee == ApproxDP(epsilon=1.0, delta=1e-9)


def test_shares_are_read_as_written_and_are_equal_when_left_out(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(("share = 0.25", "share = 0.1"), ("share = 0.75", 'share = "9/10"')))
    assert [query.share for query in spec.queries] == [Fraction(1, 10), Fraction(9, 10)]
    spec = load_spec(write_spec(("share = 0.25\n", ""), ("share = 0.75\n", "")))
    assert [query.share for query in spec.queries] == [Fraction(1, 2), Fraction(1, 2)]


def test_end_gives_the_horizon(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(("horizon = 48\n", ""), ('tick = "1h"', 'tick = "1h"\nend = 2013-01-02')))
    assert spec.horizon == spec.clock.ticks == 24
    assert load_spec(write_spec(("horizon = 48\n", ""))).horizon is None


def test_the_digest_covers_what_is_public_and_not_the_places(write_spec: WriteSpec) -> None:
    digest = load_spec(write_spec()).digest
    same = [
        ("visits.key", "other.key"),
        ("visits.state", "other.state"),
        ("visits.jsonl", "other.csv"),
        ("# ", "# "),
    ][:3]
    for change in [*same, ("[stream]", "# a remark\n[stream]"), ('tick = "1h"', "tick = '60m'")]:
        assert load_spec(write_spec(change)).digest == digest
    different = [
        ('name = "visits"', 'name = "calls"'),
        ("horizon = 48", "horizon = 49"),
        ("rho = 0.5", "rho = 0.6"),
        ("2013-01-01T00:00:00Z", "2013-01-01T01:00:00Z"),
        ('"north", "south"', '"south", "north"'),
        ('column = "ward"', 'column = "room"'),
        ("share = 0.25", "share = 0.2"),
        ('file = "visits.jsonl"', 'file = "visits.jsonl"\nbeta = 0.1'),
        ("horizon = 48", "horizon = 48\nmax_events_per_tick = 7"),
        ("horizon = 48", "horizon = 48\nmax_events_per_tick = 8"),
    ]
    digests = {load_spec(write_spec(change)).digest for change in different}
    assert len(digests) == len(different)
    assert digest not in digests


LINE_OF = {line: number for number, line in reversed(list(enumerate(SPEC.splitlines(), 1)))}

MISTAKES = [
    # (text, its replacement, the line that is blamed, words of the message)
    ("horizon = 48", "horizon = 0", "horizon = 48", "at least 1"),
    ("horizon = 48", 'horizon = "48"', "horizon = 48", "integer"),
    ("horizon = 48", "horizn = 48", "horizon = 48", "Did you mean 'horizon'"),
    ("horizon = 48", "colour = 1", "horizon = 48", "It has: name, horizon"),
    ('name = "visits"\n', "", "[stream]", "needs 'name'"),
    ('name = "visits"', 'name = "a b"', 'name = "visits"', "letters"),
    ("horizon = 48", 'neighbours = "all"', "horizon = 48", "'add_remove'"),
    ("horizon = 48", 'unit = "user"', "horizon = 48", "needs user_column"),
    ("horizon = 48", 'unit = "user"\nuser_column = "who"', "horizon = 48", "needs max_events_per_user"),
    ("horizon = 48", 'user_column = "who"', "horizon = 48", "or a query that counts users"),
    ("horizon = 48", "period = 7", "horizon = 48", 'needs unit = "user-period"'),
    ("horizon = 48", 'unit = "user-period"\nuser_column = "who"', "horizon = 48", "needs period"),
    ("horizon = 48", "max_events_per_user = 3", "horizon = 48", 'needs unit = "user"'),
    ("rho = 0.5", "rho = -1", "rho = 0.5", "rho"),
    ("rho = 0.5", "rho = true", "rho = 0.5", "number"),
    ("rho = 0.5", "rho = 0.5\nepsilon = 1", "[guarantee]", "exactly one of"),
    ("rho = 0.5", "delta = 1e-9", "[guarantee]", "exactly one of"),
    ("rho = 0.5", "epsilon = 1\ndelta = 2", "rho = 0.5", "delta"),
    ("rho = 0.5\n", "", "[guarantee]", "exactly one of"),
    ('tick = "1h"', 'tick = "1 hour"', 'tick = "1h"', '"15m"'),
    ('tick = "1h"', "tick = 3600", 'tick = "1h"', '"15m"'),
    ("start = 2013-01-01T00:00:00Z", "start = 0", 'tick = "1h"', "positive integer"),
    ("start = 2013-01-01T00:00:00Z", "start = 1.5", "start = 2013-01-01T00:00:00Z", "a time such as"),
    ("start = 2013-01-01T00:00:00Z", 'start = "today"', "start = 2013-01-01T00:00:00Z", "a time such as"),
    ('tick = "1h"', 'tick = "1h"\nend = 2013-01-01T00:30:00Z', "", "tick boundary"),
    ('tick = "1h"', 'tick = "1h"\nend = 2012-01-01', "", "after start"),
    ('tick = "1h"', 'tick = "1h"\nend = 2013-02-01', "", "raise the horizon"),
    ('column = "time"\n', 'close = "request"\n', 'column = "time"', "needs a column"),
    ('tick = "1h"', 'tick = "1h"\nclose = "later"', "", "'wall', 'request'"),
    ("start = 2013-01-01T00:00:00Z", 'start = "first"', "start = 2013-01-01T00:00:00Z", 'or "first serve"'),
    ('tick = "1h"', 'tick = "1h"\nsnapshot_every = 3', "", "no option 'snapshot_every'"),
    ('file = "visits.state"', 'file = "visits.state"\nsnapshot_every = 0', "", "at least 1"),
    ('file = "visits.state"', 'file = "visits.state"\nbatch_ids = "many"', "", "an integer"),
    ('file = "visits.jsonl"', 'file = "visits.key"', 'file = "visits.jsonl"', ".csv"),
    ('file = "visits.state"', 'file = "visits.key.bound"', 'file = "visits.state"', "different files"),
    ('file = "visits.state"', 'file = "./visits.jsonl"', 'file = "visits.jsonl"', "used as the state already"),
    ('file = "visits.key"', "file = 7", 'file = "visits.key"', "text"),
    ('file = "visits.jsonl"', 'file = "visits.xlsx"', 'file = "visits.jsonl"', ".csv"),
    ('file = "visits.jsonl"', 'file = "visits.jsonl"\nbeta = 1', "", "between 0 and 1"),
    ('file = "visits.state"', 'file = "visits.key"', 'file = "visits.state"', "different files"),
    ('kind = "counter"', 'kind = "summ"', 'kind = "counter"', "'counter', 'histogram', 'running_mean'"),
    ('kind = "counter"', 'kind = "Countr"', 'kind = "counter"', "names no kind. Did you mean 'counter'?"),
    ('kind = "counter"', "kind = 7", 'kind = "counter"', "'counter', 'histogram', 'running_mean'"),
    ('kind = "counter"\n', "", "[[query]]", "needs 'kind'"),
    ("share = 0.25", "share = 0", "share = 0.25", "above 0"),
    ("share = 0.25", 'share = "a third"', "share = 0.25", "fraction"),
    ("share = 0.25", "share = inf", "share = 0.25", "fraction"),
    ("share = 0.25", "share = true", "share = 0.25", "number"),
    ("share = 0.25", "shre = 0.25", "share = 0.25", "Did you mean 'share'"),
    ('kind = "counter"', 'knd = "counter"', 'kind = "counter"', "Did you mean 'kind'"),
    ("share = 0.25", "share = 0.26", "share = 0.75", "add up to 1.01"),
    ("share = 0.75\n", "", 'name = "ward"', "needs 'share'"),
    ("share = 0.25", "share = 0.25\nmax_weight = 5", "", "needs a column"),
    ("share = 0.25", 'categories = ["a"]', "share = 0.25", "no option 'categories'"),
    ('column = "ward"\n', "", 'name = "ward"', "needs 'column' for a histogram"),
    ('categories = ["north", "south"]\n', "", 'name = "ward"', "needs 'categories'"),
    (
        'categories = ["north", "south"]',
        "categories = []",
        'categories = ["north", "south"]',
        "list of labels",
    ),
    ('other = "elsewhere"', "other = 1.5", 'other = "elsewhere"', "label"),
    ('name = "ward"', 'name = "all"', 'name = "ward"', "is taken"),
    ('kind = "histogram"', 'kind = "mean"', 'categories = ["north", "south"]', "no option 'categories'"),
    ("share = 0.25", "share = 0.25\nlargest = 9", "", 'goes with mechanism = "sparse"'),
    ('column = "ward"', 'column = "ward"\nsplit = ["1/3", "1/3", "1/3"]', "", 'goes with mechanism = "sparse"'),
    ('other = "elsewhere"', 'signed = true\nmechanism = "sparse"', 'other = "elsewhere"', "only grow"),
    ('kind = "histogram"', 'kind = "top"', 'name = "ward"', "needs 'k' for a top"),
    ('kind = "histogram"', 'kind = "leaders"\nk = 0', "", "at least 1"),
    ('kind = "histogram"', 'kind = "quantile"\nq = 0', "", "above 0"),
    ('kind = "histogram"', 'kind = "quantile"\nq = "half"', "", "fraction"),
    ('kind = "histogram"', 'kind = "max"\nsplit = ["1/3", "1/3"]', "", "three shares"),
    ('kind = "histogram"', 'kind = "max"\nsplit = ["1/3", "1/3", "1/2"]', "", "add up to 1"),
    ('kind = "histogram"', 'kind = "max"\nbeta = 1', "", "between 0 and 1"),
    ('kind = "histogram"', 'kind = "max"\nsigned = true', "", "no option 'signed'"),
    ('kind = "histogram"', 'kind = "max"', "[stream]", "needs 'max_events_per_tick' for a max"),
    ('kind = "histogram"', 'kind = "query"', 'name = "ward"', "either 'expression' (one) or 'expressions'"),
    ('kind = "histogram"', 'kind = "query"\nexpression = "max"', "", "must be a table"),
    ('kind = "histogram"', 'kind = "query"\nexpression = {columm = 1}', "", "not the JSON form"),
    ('kind = "histogram"', 'kind = "query"\nexpression = {column = 1.5}', "", "not the JSON form"),
    ('kind = "histogram"', 'kind = "query"\nexpression = {column = -1}', "", "from 0 on"),
    ('kind = "histogram"', 'kind = "query"\nexpression = {constant = "0", plus = [1]}', "", "not the JSON form"),
    ('kind = "histogram"', 'kind = "query"\nexpression = {ranks = [5, 5], of = [{column = 0}]}', "", "do not exist"),
    ('kind = "histogram"', 'kind = "query"\nexpressions = {}', "", "table of names"),
    ('kind = "histogram"', 'kind = "query"\nexpressions = {"a b" = {column = 0}}', "", "letters"),
    ("rho = 0.5", 'rho = 0.5\nadversary = "nobody"', "", "'adaptive', 'oblivious'"),
    ("rho = 0.5", 'adversary = "oblivious"', "[guarantee]", "exactly one of"),
    ('kind = "histogram"', 'kind = "unknown-histogram"', 'categories = ["north", "south"]', "no option 'categories'"),
    ('kind = "counter"', 'kind = "unknown-histogram"', "[[query]]", "needs 'column' for an unknown-histogram"),
    ('kind = "counter"', 'kind = "unknown-histogram"\ncolumn = "ward"', 'kind = "counter"', "epsilon and delta"),
    ('kind = "counter"', 'kind = "unknown-top"\ncolumn = "ward"', "[[query]]", "needs 'k'"),
    ('kind = "counter"', 'kind = "unknown-histogram"\nthreshold = "low"', "", "'sum', 'per_tick', 'paper'"),
    ('kind = "counter"', 'kind = "unknown-histogram"\nsticky = 1', "", "true or false"),
    ('kind = "counter"', 'kind = "unknown-histogram"\ncolumn = "a"\nkbar = 5', "+2", 'goes with mechanism = "meta"'),
    (
        'kind = "counter"',
        'kind = "unknown-histogram"\ncolumn = "a"\nsticky = true\nmechanism = "meta"',
        "+2",
        'goes with another mechanism than "meta"',
    ),
    (
        'kind = "counter"',
        'kind = "unknown-histogram"\ncolumn = "a"\nmax_labels = 10000\nmechanism = "meta"',
        "+2",
        'goes with another mechanism than "meta"',
    ),
    ('kind = "counter"', 'kind = "unknown-histogram"\nmax_labels = 0', "", "at least 1"),
    ('kind = "histogram"', 'kind = "streaming-top"', 'name = "ward"', "needs 'k'"),
    ('kind = "histogram"', 'kind = "streaming-top"\nswitches = -1', "", "at least 0"),
    ('kind = "histogram"', 'kind = "streaming-top"\naccounting = "best"', "", "'adaptive', 'paper'"),
    ('kind = "histogram"', 'kind = "streaming-top"\nk = 1\nmechanism = "meta"', "[stream]", "'max_events_per_tick'"),
    ('kind = "histogram"', 'kind = "streaming-top"\nk = 1\neta = 3\nmechanism = "meta"', "+2", "another mechanism"),
    ("[state]", "[sate]", "[state]", "there is no section [sate]. Did you mean 'state'?"),
    ("[stream]", "[stream", "[stream]", "TOML"),
    ('kind = "counter"', "kind = counter", 'kind = "counter"', 'write kind = "counter"'),
    ('kind = "counter"', "kind: counter", 'kind = "counter"', "kind = ..."),
    ("share = 0.25", "share = 0.25\nmax_weight = 1,000", "", "max_weight = 1_000"),
    ('other = "elsewhere"', "signed = True", 'other = "elsewhere"', "signed = true"),
    ('categories = ["north", "south"]', "categories = [north]", 'categories = ["north", "south"]', "in a list too"),
]


def test_a_missing_section_is_named(write_spec: WriteSpec) -> None:
    path = write_spec(("[state]\n", ""))
    text = path.read_text().replace('file = "visits.state"\n', "")
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"the section \[state\] is missing; it needs file"):
        load_spec(path)


@pytest.mark.parametrize(("old", "new", "blamed", "words"), MISTAKES)
def test_mistakes_are_refused_at_their_line(write_spec: WriteSpec, old: str, new: str, blamed: str, words: str) -> None:
    path = write_spec((old, new))
    with pytest.raises(ConfigurationError) as refusal:
        load_spec(path)
    text = str(refusal.value)
    assert words in text
    assert str(path) in text
    line = int(re.match(rf"{re.escape(str(path))}:(\d+): ", text)[1])  # type: ignore[index]
    added = blamed.startswith("+") or not blamed  # a line below the old one
    expected = LINE_OF[old] + int(blamed or 1) if added else LINE_OF[blamed]
    if blamed == 'name = "ward"' and old != blamed:
        expected = [n for n, text_line in enumerate(path.read_text().splitlines(), 1) if text_line == "[[query]]"][1]
    elif not added and LINE_OF[blamed] > LINE_OF.get(old.rstrip("\n"), 99):
        expected += new.count("\n") - old.count("\n")
    if new.startswith("epsilon = 1\ndelta"):
        expected += 1
    assert line == expected


LIVE = """
[events]
time = "time"
ward = "text"

[[sink]]
file = "visits.csv"

[[sink]]
webhook = "https://hooks.example/visits"
timeout = 2

[[sink]]
file = "parts/visits.parquet"

[retention]
full = 500
every = 0
keep = 9000

[serve]
host = "0.0.0.0"
port = 9000
tokens = "who.tokens"
public = true
certificate = "tls.pem"
private_key = "tls.key"
max_batch_bytes = 1000
max_waiting_bytes = 5000
requests_per_second = 0.5
publish_after = 1.5
"""
LIVE_LINES = {line: number for number, line in reversed(list(enumerate(LIVE.splitlines(), 0)))}


def test_a_live_spec(write_spec: WriteSpec, tmp_path: Path) -> None:
    state = 'file = "visits.state"'
    spec = load_spec(write_spec((state, f"{state}\nsnapshot_every = 8\nbatch_ids = 50"), append=LIVE))
    assert spec.events == {"time": "time", "ward": "text"}
    assert (spec.snapshot_every, spec.batch_ids) == (8, 50)
    assert [(sink.name, sink.file, sink.webhook) for sink in spec.sinks] == [
        ("output", tmp_path / "visits.jsonl", None),
        ("visits.csv", tmp_path / "visits.csv", None),
        ("webhook-1", None, "https://hooks.example/visits"),
        ("visits.parquet", tmp_path / "parts/visits.parquet", None),
    ]
    assert spec.sinks[2].timeout == 2.0
    assert spec.retention == Retention(full=500, every=0, keep=9000)
    serve = spec.serve
    assert (serve.host, serve.port, serve.public, serve.behind_proxy) == ("0.0.0.0", 9000, True, False)
    assert (serve.tokens, serve.certificate) == (tmp_path / "who.tokens", tmp_path / "tls.pem")
    assert (serve.max_batch_bytes, serve.max_waiting_bytes, serve.requests_per_second) == (1000, 5000, 0.5)
    assert serve.publish_after == 1.5


def test_what_a_live_spec_leaves_out(write_spec: WriteSpec, tmp_path: Path) -> None:
    spec = load_spec(write_spec(('[output]\nfile = "visits.jsonl"\n', "")))
    assert (spec.output_file, spec.sinks, spec.events, spec.beta) == (None, (), None, 0.05)
    assert (spec.snapshot_every, spec.batch_ids) == (64, 100_000)
    assert spec.retention == Retention(full=100_000, every=60, keep=None)
    serve = spec.serve
    assert (serve.host, serve.port, serve.public, serve.certificate) == ("127.0.0.1", 8321, False, None)
    assert serve.tokens == tmp_path / f"{spec.path.stem}.tokens"
    assert (serve.max_batch_bytes, serve.max_waiting_bytes, serve.requests_per_second) == (2**24, 2**30, 200)
    assert serve.publish_after == 0.5
    second = load_spec(write_spec(('tick = "1h"', 'tick = "1s"')))
    assert second.serve.publish_after == 0.5
    assert (spec.clock.close, spec.clock.floating) == ("wall", False)


def test_the_digest_covers_no_service(write_spec: WriteSpec) -> None:
    digest = load_spec(write_spec()).digest
    same = (
        ('file = "visits.state"', 'file = "visits.state"\nsnapshot_every = 2\nbatch_ids = 3'),
        ('tick = "1h"', 'tick = "1h"\nclose = "request"'),
        ('file = "visits.jsonl"\n', ""),
    )
    for change in same:
        assert load_spec(write_spec(change)).digest == digest
    assert load_spec(write_spec(append=LIVE)).digest == digest
    floating = load_spec(write_spec(("2013-01-01T00:00:00Z", '"first serve"')))
    zero = load_spec(write_spec(("2013-01-01T00:00:00Z", "1970-01-01")))
    bare = load_spec(write_spec(('column = "time"\n', "")))
    assert len({digest, floating.digest, zero.digest, bare.digest}) == 4


# The digest binds keys to specs: a stream that runs must not be stopped by a newer version of this program.
def test_the_digest_stays_what_it_was(write_spec: WriteSpec) -> None:
    assert load_spec(write_spec()).digest == "820858d5fa274c840f2c8cfa6d03e279b9ca9e5d6006fffa9be4da63c6dc8e0d"


LIVE_MISTAKES = [
    # (text, its replacement, the line that is blamed, words of the message)
    ('ward = "text"', 'ward = "string"', 'ward = "text"', "must be one of 'time', 'integer', 'number', 'text'"),
    ('ward = "text"', 'ward = "number"', 'ward = "text"', 'the histogram \'ward\' reads "text" or "integer"'),
    ('ward = "text"', 'room = "text"', "[events]", "needs the column 'ward'"),
    ('time = "time"', 'time = "text"', 'time = "time"', '[clock] column reads "time"'),
    ('file = "visits.csv"', 'file = "visits.txt"', 'file = "visits.csv"', "[[sink]] file must end in .jsonl"),
    ('file = "visits.csv"', 'file = "visits.jsonl"', 'file = "visits.csv"', "different files"),
    ('file = "visits.csv"', 'file = "a/visits.parquet"', 'file = "parts/visits.parquet"', "sink 'visits.parquet'"),
    ('file = "visits.csv"', 'file = "visits.csv"\ntimeout = 3', "+1", "goes with webhook"),
    ('file = "visits.csv"', "", "[[sink]]", "exactly one of: file; webhook"),
    ("timeout = 2", 'file = "a.csv"', 'webhook = "https://hooks.example/visits"', "exactly one of"),
    ("timeout = 2", "timeout = 0", "timeout = 2", "above 0"),
    ("https://hooks", "http://hooks", 'webhook = "https://hooks.example/visits"', "https://"),
    ("https://hooks.example", "https://[::1", 'webhook = "https://hooks.example/visits"', "https://"),
    ("hooks.example/visits", "hooks.example/visits\\r\\nX: y", 'webhook = "https://hooks.example/visits"', "control"),
    ("hooks.example/visits", "hooks.example/\\tvisits", 'webhook = "https://hooks.example/visits"', "control"),
    ("hooks.example/visits", "hooks.example/a b", 'webhook = "https://hooks.example/visits"', "control"),
    ("hooks.example/visits", "hooks.example/\\u0085", 'webhook = "https://hooks.example/visits"', "control"),
    ("hooks.example/visits", "hooks.example/\\u202e", 'webhook = "https://hooks.example/visits"', "control"),
    ('file = "visits.csv"', 'file = "more.jsonl"\nspreadsheet = true', "+1", "goes with a file that ends in .csv"),
    ('tokens = "who.tokens"', 'hosts = ["a:80"]', 'tokens = "who.tokens"', "without a port"),
    ('tokens = "who.tokens"', "hosts = []", 'tokens = "who.tokens"', "without a port"),
    ('tokens = "who.tokens"', "connections = 0", 'tokens = "who.tokens"', "at least 1"),
    ("https://hooks.example", "ftp://localhost", 'webhook = "https://hooks.example/visits"', "https://"),
    ('tokens = "who.tokens"', 'tokens = "visits.key"', 'tokens = "who.tokens"', "different files"),
    ('tokens = "who.tokens"', 'tokens = "parts/visits.parquet/t"', 'tokens = "who.tokens"', "put it elsewhere"),
    ("full = 500", "full = 0", "full = 500", "at least 1"),
    ("every = 0", "every = -1", "every = 0", "at least 0"),
    ("keep = 9000", "keep = 499", "keep = 9000", "at least full, which is 500"),
    ("port = 9000", "port = 65536", "port = 9000", "1 to 65535"),
    ("port = 9000", 'port = "http"', "port = 9000", "a port"),
    ("port = 9000", "prot = 9000", "port = 9000", "Did you mean 'port'"),
    ("public = true", "public = 1", "public = true", "true or false"),
    ('certificate = "tls.pem"\n', "", 'private_key = "tls.key"', "private_key needs certificate"),
    ('private_key = "tls.key"\n', "", 'certificate = "tls.pem"', "certificate needs private_key"),
    ('certificate = "tls.pem"\nprivate_key = "tls.key"\n', "", 'host = "0.0.0.0"', "behind_proxy = true"),
    ("max_batch_bytes = 1000", "max_batch_bytes = 5001", "max_batch_bytes = 1000", "at most max_waiting_bytes"),
    ("requests_per_second = 0.5", "requests_per_second = inf", "requests_per_second = 0.5", "above 0"),
    ("publish_after = 1.5", "publish_after = 3600", "publish_after = 1.5", "below the length of a tick, 3600 s"),
    ("publish_after = 1.5", "publish_after = -1", "publish_after = 1.5", "0 or more"),
]


@pytest.mark.parametrize(("old", "new", "blamed", "words"), LIVE_MISTAKES)
def test_mistakes_of_live_specs(write_spec: WriteSpec, old: str, new: str, blamed: str, words: str) -> None:
    assert LIVE.count(old) == 1
    path = write_spec(append=LIVE.replace(old, new))
    with pytest.raises(ConfigurationError) as refusal:
        load_spec(path)
    assert words in str(refusal.value)
    line = int(re.match(rf"{re.escape(str(path))}:(\d+): ", str(refusal.value))[1])  # type: ignore[index]
    above = len(SPEC.splitlines()) + 1
    if blamed == "+1":
        assert line == above + LIVE_LINES[old] + 1
    elif LIVE_LINES[blamed] > LIVE_LINES.get(old.splitlines()[0], 99):
        assert line == above + LIVE_LINES[blamed] + new.count("\n") - old.count("\n")
    else:
        assert line == above + LIVE_LINES[blamed]


def test_what_may_be_reached_from_elsewhere_is_encrypted(write_spec: WriteSpec) -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.8.9.1"):
        load_spec(write_spec(append=f'\n[serve]\nhost = "{host}"\n'))
    for host in ("0.0.0.0", "::", "example.org", "10.0.0.1", "127.0.0.1.example.org"):
        text = f'\n[serve]\nhost = "{host}"\n'
        with pytest.raises(ConfigurationError, match="in the clear"):
            load_spec(write_spec(append=text))
        assert load_spec(write_spec(append=text + "behind_proxy = true\n")).serve.behind_proxy
    load_spec(write_spec(append='\n[[sink]]\nwebhook = "http://127.0.0.1:8000/x"\n'))
    one = load_spec(write_spec(append='\n[serve]\ncertificate = "tls.pem"\nprivate_key = "tls.pem"\n'))
    assert one.serve.certificate == one.serve.private_key


def test_which_column_types_fit_which_use(write_spec: WriteSpec) -> None:
    query = '\n[[query]]\nname = "x"\nkind = "{}"\ncolumn = "x"\n{}[events]\ntime = "time"\nward = "text"\nx = "{}"\n'
    cut = ("share = 0.25\n", ""), ("share = 0.75\n", "")
    kinds = {
        "counter": ("", {"number", "integer"}),
        "running_mean": ("lower = 0\nupper = 1\n", {"number", "integer"}),
        "histogram": ('categories = ["a"]\n', {"text", "integer", "list of text", "counts"}),
        "max_sum": ('categories = ["a"]\n', {"text", "integer", "list of text", "counts"}),
    }
    for kind, (options, fitting) in kinds.items():
        for name in ("time", "integer", "number", "text", "list of text", "counts"):
            text = query.format(kind, options, name)
            path = write_spec(*cut, ("horizon = 48", "horizon = 48\nmax_events_per_tick = 5"), append=text)
            if name in fitting:
                assert load_spec(path).events == {"time": "time", "ward": "text", "x": name}
            else:
                with pytest.raises(ConfigurationError, match=f"the {kind} 'x' reads"):
                    load_spec(path)
    users = ("horizon = 48", 'horizon = 48\nunit = "user"\nuser_column = "who"\nmax_events_per_user = 2')
    schema = '\n[events]\ntime = "time"\nward = "text"\nwho = "{}"\n'
    load_spec(write_spec(users, append=schema.format("integer")))
    with pytest.raises(ConfigurationError, match="user_column reads"):
        load_spec(write_spec(users, append=schema.format("counts")))
    numbers = ("start = 2013-01-01T00:00:00Z", "start = 0"), ('tick = "1h"', "tick = 10")
    load_spec(write_spec(*numbers, append='\n[events]\ntime = "integer"\nward = "text"\n'))
    with pytest.raises(ConfigurationError, match='column reads "integer"'):
        load_spec(write_spec(*numbers, append='\n[events]\ntime = "time"\nward = "text"\n'))


def test_what_can_be_run_and_what_can_be_served(write_spec: WriteSpec) -> None:
    check_runnable(load_spec(write_spec()))
    check_servable(load_spec(write_spec()))
    floating = load_spec(write_spec(("2013-01-01T00:00:00Z", '"first serve"')))
    assert (floating.clock.floating, floating.horizon) == (True, 48)
    check_servable(floating)
    with pytest.raises(ConfigurationError, match=rf"{re.escape(str(floating.path))}:10: .*to run files write a time"):
        check_runnable(floating)
    bare = load_spec(write_spec(('column = "time"\n', "")))
    assert bare.columns() == ["ward"]
    check_servable(bare)
    with pytest.raises(ConfigurationError, match=r":8: .*needs 'column' to run files"):
        check_runnable(bare)
    numbers = [("start = 2013-01-01T00:00:00Z", "start = 0"), ('tick = "1h"', "tick = 10")]
    whole = load_spec(write_spec(*numbers))
    check_runnable(whole)
    with pytest.raises(ConfigurationError, match=r':10: .*close = "request"'):
        check_servable(whole)
    check_servable(load_spec(write_spec(*numbers, ("tick = 10", 'tick = 10\nclose = "request"'))))
    with pytest.raises(ConfigurationError, match="goes with close"):
        load_spec(write_spec(*numbers, append="\n[serve]\npublish_after = 0\n"))
    with pytest.raises(ConfigurationError, match="end needs a start"):
        load_spec(
            write_spec(("2013-01-01T00:00:00Z", '"first serve"'), ('tick = "1h"', 'tick = "1h"\nend = 2014-01-01'))
        )


def test_the_output_may_be_a_folder_that_holds_nothing_else(write_spec: WriteSpec) -> None:
    folder = ('file = "visits.jsonl"', 'file = "out.parquet"')
    assert load_spec(write_spec(folder)).sinks[0].file == load_spec(write_spec(folder)).output_file
    further = ('file = "visits.jsonl"', 'file = "out.parquet/a.csv"\n\n[[sink]]\nfile = "out.parquet"')
    with pytest.raises(ConfigurationError, match="put it elsewhere"):
        load_spec(write_spec(further))
    for change in (('file = "visits.key"', 'file = "out.parquet/k"'), ('"visits.state"', '"out.parquet/x/../s"')):
        with pytest.raises(ConfigurationError, match="put it elsewhere"):
            load_spec(write_spec(folder, change))


SECTION_MODELS = [StreamSection, GuaranteeSection, KeySection, StateSection, OutputSection]
SECTION_MODELS += [SinkSection, RetentionSection, ServeSection]
READ_AS_FRACTIONS = {"share", "q", "split", "sample"}


@pytest.mark.parametrize("model", [*SECTION_MODELS, *dict.fromkeys(kind.options for kind in OURS)])
def test_nothing_is_converted(model: type[Section]) -> None:
    values = ["3", "true", "0.5", True, False, 3, 0, 0.5, 3.0, ["a"], [True], ["1", 2], {"a": 1}, b"x", "https://x/y"]
    accepted = 0
    for option, field in model.model_fields.items():
        read = TypeAdapter(field.rebuild_annotation(), config=model.model_config)
        for value in values:
            try:
                result = read.validate_python(value)
            except ValidationError:
                continue
            accepted += 1
            if option in READ_AS_FRACTIONS:
                assert Fraction(result) == Fraction(str(value))
            elif type(value) is int and type(result) is float:
                assert result == value
            else:
                assert type(result) is type(value)
                assert str(result) == str(value)
    assert accepted


words = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.integers(-3, 2**70),
    st.booleans(),
    st.floats(),
    st.sampled_from(["1/3", "a.csv"]),
)
toml_values = st.one_of(words, st.lists(words, max_size=3), st.just(dt.date(2013, 1, 1)))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_written_a_spec_is_read_or_refused_at_a_line(write_spec: WriteSpec, data: st.DataObject) -> None:
    lines = (SPEC + LIVE).splitlines()
    options = [number for number, line in enumerate(lines) if " = " in line]
    number = data.draw(st.sampled_from(options))
    path = write_spec()
    lines[number] = lines[number].split(" = ")[0] + " = " + _toml(data.draw(toml_values))
    path.write_text("\n".join(lines) + "\n")
    refusal = ""
    try:
        load_spec(path)
    except ConfigurationError as error:
        refusal = str(error)
    assert not refusal or re.match(rf"{re.escape(str(path))}:\d+: ", refusal)


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(c):08x}" for c in value) + '"'
    return str(value).lower()


def test_sections_that_do_not_exist(write_spec: WriteSpec) -> None:
    path = write_spec(append='\n[outputs]\nfile = "x"\n')
    with pytest.raises(ConfigurationError, match=r"no section \[outputs\].*'output'"):
        load_spec(path)
    with pytest.raises(ConfigurationError, match="at least one"):
        load_spec(_without_queries(path))


def _without_queries(path: Path) -> Path:
    path.write_text(SPEC[: SPEC.index("[[query]]")])
    return path


def test_a_missing_or_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read the spec"):
        load_spec(tmp_path / "nothing.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        load_spec(tmp_path / "binary.toml")


def test_the_documented_spec_is_a_good_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    (tmp_path / "documented.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    spec = load_spec(tmp_path / "documented.toml")
    assert [query.kind for query in spec.queries] == ["counter", "counter", "histogram", "running_mean"]
    assert sum(query.share for query in spec.queries) == 1


def test_the_documented_service_is_a_good_one(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    blocks = [block.split("```")[0] for block in page.split("```toml\n")[1:]]
    live = next(block for block in blocks if block.startswith("[events]"))
    (tmp_path / "documented.toml").write_text(blocks[0] + live)
    spec = load_spec(tmp_path / "documented.toml")
    assert spec.events is not None
    assert set(spec.events) == set(spec.columns())
    shown = (tmp_path / "documented.toml").read_text()
    for option in ServeSection.model_fields:  # every option is documented, with its default
        assert re.search(rf"(?m)^{option} = ", live)
    bare = tmp_path / "visits.toml"
    bare.write_text(re.sub(r"(?m)^(certificate|private_key|hosts) = .*$", "", blocks[0]))
    written = re.sub(r"(?m)^(certificate|private_key|hosts|keep) = .*$", "", shown)
    (tmp_path / "documented.toml").write_text(written)
    default, documented = load_spec(bare), load_spec(tmp_path / "documented.toml")
    assert documented.serve == default.serve
    assert documented.retention == default.retention
    assert (documented.snapshot_every, documented.batch_ids) == (default.snapshot_every, default.batch_ids)


def test_queries_on_column_sums(write_spec: WriteSpec) -> None:
    spec = load_spec(write_spec(*WITH_COLUMN_QUERIES, append=COLUMN_QUERIES))
    assert spec.max_events_per_tick == 4
    kinds = ["max_sum", "sum_select", "top_k_select", "monotone_query", "counter"]
    assert [query.kind for query in spec.queries[2:]] == kinds
    assert spec.queries[5].parameters["expressions"]["south"] == {"column": "south"}
    changed = COLUMN_QUERIES.replace('south = {column = "south"}', 'south = {column = "north"}')
    assert load_spec(write_spec(*WITH_COLUMN_QUERIES, append=changed)).digest != spec.digest


def test_the_order_of_named_expressions_is_part_of_the_digest(write_spec: WriteSpec) -> None:
    """Answers come in that order: under another one the counts of one name would go on under another."""
    old, new = (", ".join(f'{ward} = {{column = "{ward}"}}' for ward in wards) for wards in ("ab", "ba"))
    query = '\n[[query]]\nname = "two"\nkind = "query"\nshare = 0.01\ncolumn = "ward"\ncategories = ["a", "b"]\n'
    digests = {
        load_spec(
            write_spec(*WITH_COLUMN_QUERIES, append=COLUMN_QUERIES + query + f"expressions = {{{order}}}\n")
        ).digest
        for order in (old, new)
    }
    assert len(digests) == 2


def test_a_quantile_is_read_as_written(write_spec: WriteSpec) -> None:
    for q, read in (("0.07", "7/100"), ('"1/3"', "1/3"), ("1", "1")):
        change = ('kind = "histogram"', f'kind = "quantile"\nq = {q}')
        spec = load_spec(write_spec(change, ("horizon = 48", "max_events_per_tick = 1")))
        assert spec.queries[1].parameters["q"] == read


ELSEWHERE = ("histogram", "running_mean", "min_sum", "dashboard")
OTHER_PAGES = ("evertally.users.", "evertally.values.", "evertally.sketches.")  # have specs of their own


def test_the_documented_queries_on_column_sums_run(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    path = tmp_path / "wards.toml"
    path.write_text(page.split("```toml\n")[2].split("```")[0])
    spec = load_spec(path)
    assert {query.kind for query in spec.queries} == {
        kind.name
        for kind in OURS
        if not kind.result.brings_labels and kind.records is None and kind.name not in ELSEWHERE
        if not kind.statistic.__module__.startswith(OTHER_PAGES)
    }
    assert len(plan(spec).queries) == len(spec.queries)
    events = "".join(
        f"2013-01-0{1 + i // 40}T{i % 24:02d}:00:00Z,{('north', 'south')[i % 3 // 2]}\n" for i in range(200)
    )
    (tmp_path / "events.csv").write_text("time,ward\n" + events)
    run(spec, tmp_path / "events.csv")
    assert len((tmp_path / "wards.jsonl").read_text().splitlines()) == 168 * (1 + 1 + 2 + 1 + 2 + 3 + 1)


def test_the_documented_selections_run(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    path = tmp_path / "searches.toml"
    path.write_text(page.split("```toml\n")[3].split("```")[0])
    spec = load_spec(path)
    assert {query.kind for query in spec.queries} == {
        kind.name
        for kind in OURS
        if kind.result.labels in ("chosen", "found") and kind.records is None
        if not kind.statistic.__module__.startswith(OTHER_PAGES)
    }
    found = {query.name: query.discovery for query in plan(spec).queries}
    assert found["words"] is not None
    texts = ["the weather", "weather in Oslo", "cheap flights", "the news", "weather", "maps"]
    with open(tmp_path / "events.jsonl", "w") as file:
        for i in range(20_000):
            words = [*texts[i % 6].split(), f"word {i}"]
            record = {"time": f"2013-01-01T{i % 24:02d}:00:00Z", "words": words, "country": "no" if i % 3 else "se"}
            file.write(json.dumps(record) + "\n")
    run(spec, tmp_path / "events.jsonl", until="2013-01-02")
    rows = [json.loads(line) for line in (tmp_path / "searches.jsonl").read_text().splitlines()]
    last = {(row["query"], row["category"]) for row in rows if row["tick"] == 24}
    assert {("words", "weather"), ("words", "the"), ("tags", "weather"), ("countries", "no")} <= last
    assert not any("word " in row["category"] for row in rows)
