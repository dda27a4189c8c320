"""From a spec file and files of events to released ticks, exactly once. Needs pyarrow: pip install 'evertally[cli]'."""

from evertally.runtime.plan import Plan, PlannedQuery, plan
from evertally.runtime.runner import Report, Step, run
from evertally.runtime.spec import QuerySpec, StreamSpec, load_spec

__all__ = ["Plan", "PlannedQuery", "QuerySpec", "Report", "Step", "StreamSpec", "load_spec", "plan", "run"]
