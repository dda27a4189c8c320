"""Which kinds there are: ours, and those that a program or an installed package has made known."""

from __future__ import annotations

from importlib.metadata import entry_points

from evertally.errors import ConfigurationError
from evertally.kinds.active import KINDS as ACTIVE
from evertally.kinds.column_sums import KINDS as COLUMN_SUMS
from evertally.kinds.counts import KINDS as COUNTS
from evertally.kinds.dashboards import KINDS as DASHBOARDS
from evertally.kinds.distinct import KINDS as DISTINCT
from evertally.kinds.dynamic import KINDS as DYNAMIC
from evertally.kinds.found_items import KINDS as FOUND_ITEMS
from evertally.kinds.graphs import KINDS as GRAPHS
from evertally.kinds.joins import KINDS as JOINS
from evertally.kinds.kind import Kind
from evertally.kinds.means import KINDS as MEANS
from evertally.kinds.query_table import Query
from evertally.kinds.retention import KINDS as RETENTION
from evertally.kinds.sketches import KINDS as SKETCHES
from evertally.kinds.strings import KINDS as STRINGS
from evertally.kinds.value_quantiles import KINDS as VALUE_QUANTILES
from evertally.kinds.values import KINDS as VALUES
from evertally.kinds.vector_counts import KINDS as VECTOR_COUNTS

OURS: tuple[Kind, ...] = (
    *COUNTS,
    *MEANS,
    *VECTOR_COUNTS,
    *COLUMN_SUMS,
    *FOUND_ITEMS,
    *DYNAMIC,
    *GRAPHS,
    *STRINGS,
    *ACTIVE,
    *DASHBOARDS,
    *DISTINCT,
    *JOINS,
    *RETENTION,
    *SKETCHES,
    *VALUES,
    *VALUE_QUANTILES,
)

PACKAGES = "evertally.kinds"  # the entry points of packages that bring kinds
_known: dict[str, Kind] = {spelling: kind for kind in OURS for spelling in kind.spellings}
_asked: list[bool] = []  # whether installed packages were asked


def register_kind(kind: Kind) -> Kind:
    """Makes a kind of one's own known: specs, plans, certificates, runs, the service and its page take it from there.

    Its class keeps the contract of a mechanism (`evertally.checks` plays it); whatever it promises, certificates and
    the page say that it is not ours. A package that names its module under the entry point "evertally.kinds" is
    imported when a spec asks for a kind that nobody knows.

    >>> import evertally as et
    >>> class Admissions(et.Counter):
    ...     '''Admissions so far.'''
    >>> made = register_kind(Kind(
    ...     statistic=Admissions, options=et.kinds.Query, reads=et.kinds.AMOUNTS, result=et.kinds.Result(),
    ...     card=et.kinds.Card("figure", "Admissions so far"), proofs={}, change_proof="our handbook, page 3"))
    >>> made.name, is_ours(made)
    ('admissions', False)
    >>> forget_kind(made)
    """
    if not isinstance(kind, Kind) or not issubclass(kind.options, Query):
        raise ConfigurationError("a kind is a record `Kind` whose options inherit from `Query`")
    for spelling in kind.spellings:
        if spelling in _known:
            raise ConfigurationError(f"there is a kind {spelling!r} already; give the class another name")
    _known.update(dict.fromkeys(kind.spellings, kind))
    return kind


def forget_kind(kind: Kind) -> None:
    """Takes back `register_kind`."""
    if is_ours(kind):
        raise ConfigurationError(f"{kind.name!r} is ours, and stays")
    for spelling in kind.spellings:
        if _known.get(spelling) is kind:  # a record that looks like another one takes nothing from it
            del _known[spelling]


def is_ours(kind: Kind) -> bool:
    """Whether this library answers for it."""
    return kind in OURS


def find(spelling: object) -> Kind | None:
    """The kind that a spec names in one of its spellings."""
    if not isinstance(spelling, str):
        return None
    if spelling not in _known and not _asked:
        _asked.append(True)
        _ask_packages()
    return _known.get(spelling)


def known() -> tuple[Kind, ...]:
    """All kinds, each once, ours first."""
    return tuple(dict.fromkeys(_known.values()))


def _ask_packages() -> None:
    for point in entry_points(group=PACKAGES):
        try:
            point.load()
        except ImportError:
            raise ConfigurationError(
                f"the entry point {point.name!r} of {PACKAGES!r} cannot be imported; mend or remove its package"
            ) from None
