"""Windows, rates and changes from the release log: what happened between two releases, which costs no privacy."""

from evertally.runtime.windows.answers import Answer, Windows
from evertally.runtime.windows.question import Question

__all__ = ["Answer", "Question", "Windows"]
