"""Kinds of queries: one record each, one file a family. Everything above reads the record and asks for no kind by name.

>>> from evertally import kinds
>>> [kind.name for kind in kinds.OURS][:3]
['counter', 'histogram', 'running_mean']
>>> kinds.find("mean") is kinds.find("running_mean")
True
"""

from evertally.kinds.kind import Card, Discovery, Items, Kind, Result, Undivided, kind_name
from evertally.kinds.proofs import Proof
from evertally.kinds.query_table import GoesWith, Query
from evertally.kinds.reads import AMOUNTS, ITEMS, LABELS, NAMES, Reads, Records
from evertally.kinds.registry import OURS, find, forget_kind, is_ours, known, register_kind

__all__ = [
    "AMOUNTS",
    "ITEMS",
    "LABELS",
    "NAMES",
    "OURS",
    "Card",
    "Discovery",
    "GoesWith",
    "Items",
    "Kind",
    "Proof",
    "Query",
    "Reads",
    "Records",
    "Result",
    "Undivided",
    "find",
    "forget_kind",
    "is_ours",
    "kind_name",
    "known",
    "register_kind",
]
