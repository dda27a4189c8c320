"""Statistics of strings whose letters arrive as a stream (factorization-counting 6.6, 6.7)."""

from evertally.applications.strings.episodes import EpisodeCounts
from evertally.applications.strings.frequent import FrequentSubstrings
from evertally.applications.strings.substrings import SubstringCounts

__all__ = ["EpisodeCounts", "FrequentSubstrings", "SubstringCounts"]
