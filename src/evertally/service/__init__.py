"""A live stream over HTTP: events in, releases out, a page that shows them. Needs: pip install 'evertally[serve]'.

Sees releases, batches and what is public about a stream, and never its exact state.
"""

from evertally.service.app import create_app
from evertally.service.server import serve
from evertally.service.tokens import Token, TokenFile

__all__ = ["Token", "TokenFile", "create_app", "serve"]
