"""What every running statistic has in common: a door, an engine and a form, put together by one contract."""

from evertally.contract.release import Release
from evertally.contract.rows import SparseRows
from evertally.contract.snapshot import restore

__all__ = ["Release", "SparseRows", "restore"]
