"""From a spec file and files of events to released ticks, exactly once. Needs pyarrow: pip install 'evertally[cli]'.

>>> import json, pathlib, tempfile
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> _ = (folder / "visits.toml").write_text('''
... stream = {name = "visits"}
... guarantee = {rho = 0.5}
... clock = {column = "time", start = 2013-01-01, tick = "1h", end = 2013-01-02}
... key = {file = "visits.key"}
... state = {file = "visits.state"}
... output = {file = "visits.jsonl"}
... query = [{name = "all", kind = "counter"}]
... ''')
>>> _ = (folder / "events.csv").write_text("time\\n2013-01-01T07:30:00Z\\n2013-01-01T09:00:00Z\\n")
>>> spec = load_spec(folder / "visits.toml")
>>> plan(spec).ticks
24
>>> report = run(spec, folder / "events.csv", until="2013-01-01T12:00")
>>> report.first, report.last, len(report.output.read_text().splitlines())
(1, 12, 12)
"""

from evertally.runtime.certificate import certificate, plain_words
from evertally.runtime.input.outside import Asked
from evertally.runtime.plan import Plan, PlannedQuery, plan
from evertally.runtime.runner import Report, Step, run
from evertally.runtime.spec import QuerySpec, StreamSpec, load_spec

__all__ = [
    "Asked",
    "Plan",
    "PlannedQuery",
    "QuerySpec",
    "Report",
    "Step",
    "StreamSpec",
    "certificate",
    "load_spec",
    "plain_words",
    "plan",
    "run",
]
