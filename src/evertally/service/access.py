"""Which token opens which door, and how often it may knock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from evertally.errors import ConfigurationError
from evertally.service.limits import RateLimit
from evertally.service.logs import log
from evertally.service.places import Place, owner_of
from evertally.service.problems import Refused
from evertally.service.tokens import Role, Token, TokenFile

_bearer = HTTPBearer(auto_error=False, scheme_name="token", description="A token made by `evertally token add`.")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]

_CHALLENGE = {"WWW-Authenticate": "Bearer"}

# Of two, whoever passes a request on and whoever answers it may each take another one.
_ONCE = ("Authorization", "Idempotency-Key", "Content-Type")
_STRANGER = "address "  # no token is called so: a name has no space in it

Door = Callable[..., Awaitable[str]]


def too_many() -> Refused:
    return Refused(429, "too many requests; slow down", {"Retry-After": "1"})


def is_stranger(caller: str) -> bool:
    """Whether a caller that a door let in has shown no token."""
    return caller.startswith(_STRANGER)


def stranger_of(request: Request) -> str:
    """Who asks, as long as no token says so."""
    return f"{_STRANGER}{owner_of(request.client.host) if request.client else 'unknown'}"


class Doorman:
    """Makes a FastAPI dependency for each role. It gives the caller's name: that of the token, or its address."""

    def __init__(self, tokens: TokenFile, *, public: bool, requests_per_second: float) -> None:
        self._tokens, self._public = tokens, public
        self._rate = RateLimit(requests_per_second)

    def door(self, role: Role) -> Door:
        async def enter(request: Request, credentials: Credentials) -> str:
            token = self._identify(credentials)
            # Strangers are counted by address, also when they try tokens that do not exist.
            stranger = stranger_of(request)
            if not self._rate.allows(f"token {token.name}" if token else stranger):
                raise too_many()
            place: Place | None = request.scope.get("state", {}).get("place")
            if token is not None and place is not None and not place.vouch(token.name):
                raise Refused(503, "too many connections under this token", {"Retry-After": "5", "Connection": "close"})
            if token is None and credentials is None and role == "read" and self._public:
                return stranger
            if token is None:
                raise Refused(401, "this needs a valid token: Authorization: Bearer ...", _CHALLENGE)
            if any(len(request.headers.getlist(name)) > 1 for name in _ONCE):
                raise Refused(400, f"each of these headers may come once: {', '.join(_ONCE)}")
            if not token.may(role):
                raise Refused(403, f"this needs a token of the role {role}; yours has the role {token.role}")
            return token.name

        return enter

    def welcomes(self, credentials: HTTPAuthorizationCredentials | None, role: Role) -> bool:
        """Whether the door would still open."""
        token = self._identify(credentials)
        if token is None:
            return credentials is None and role == "read" and self._public
        return token.may(role)

    def _identify(self, credentials: HTTPAuthorizationCredentials | None) -> Token | None:
        if credentials is None:
            return None
        try:
            return self._tokens.identify(credentials.credentials)
        except ConfigurationError as error:  # the file was broken or opened to others meanwhile: nobody gets in
            log.error("no token is accepted: %s", error)
            return None
