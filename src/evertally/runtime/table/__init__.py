"""One call for a whole table: `et.release`. No files, no state; a live stream is something else."""

from evertally.runtime.table.released import Released
from evertally.runtime.table.whole import query, release

__all__ = ["Released", "query", "release"]
