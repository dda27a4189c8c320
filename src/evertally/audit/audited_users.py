"""Statistics that bound a user by themselves, in configurations of realistic size, to be audited: a part of the list.

Some have no horizon and the noise of epoch trees: ticks in different epochs share no noise, so whatever neighbours
differ by can be shown entirely.
"""

from __future__ import annotations

from evertally.audit.entries import Audited, made
from evertally.privacy import ZCDP, ApproxDP, PureDP
from evertally.users.distinct import DistinctUsers
from evertally.users.distinct_unknown import UnknownDistinctUsers
from evertally.users.joins import JoinedEvents

PURE, CONCENTRATED, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)

_SHARED = "charged for any factor (S3), and two ticks of one tree share nodes"
_UNTRIED = "which categories a user moves is tried in tests/users, not here"
_ONCE, _BY_CATEGORY, _BOUNDED = "users-and-domains 2.1", "users-and-domains 2.2", "users-and-domains 2.6"
_JOINED = "users-and-domains 7"
_WARDS = ["north", "south", "west"]


USERS: tuple[Audited, ...] = (
    made(DistinctUsers, CONCENTRATED, 365, _ONCE),
    made(DistinctUsers, PURE, 100, _ONCE, neighbours="replace", mechanism="tree"),
    made(DistinctUsers, PURE, None, _ONCE, unit="event", mechanism="epoch-tree"),
    made(DistinctUsers, APPROXIMATE, 100, _ONCE, unit="user-period", period=7),
    made(DistinctUsers, CONCENTRATED, None, _ONCE, max_users=1000, mechanism="epoch-tree"),
    made(DistinctUsers, CONCENTRATED, 100, _BOUNDED, why=_SHARED, bits=2**12, mechanism="tree"),
    made(DistinctUsers, CONCENTRATED, 100, _BOUNDED, sample="1/4", mechanism="sqrt"),
    made(DistinctUsers, CONCENTRATED, 100, _BY_CATEGORY, by=_WARDS, max_categories=2, other="rest"),
    made(
        JoinedEvents, CONCENTRATED, 100, _JOINED, after=["shown"], then=["order", "call"], max_pairs=3, mechanism="tree"
    ),
    made(
        JoinedEvents, PURE, None, _JOINED, after=["shown"], then=["order", "call"], max_pairs=2, mechanism="epoch-tree"
    ),
    made(UnknownDistinctUsers, APPROXIMATE, 365, _BY_CATEGORY, why=_UNTRIED, max_categories=3),
)
