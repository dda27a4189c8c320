"""Learning one number without a curator: every client adds noise to its own message before it leaves the device.

    et.local.Protocol   the public parameters, the same on every device and on the server
    et.local.Client     one person's half: a value, or a loss, becomes one private message
    et.local.Server     the other half: adds messages up, and finds the minimiser of the average loss

factorization-counting 6.9. The average loss may be any convex function with slopes between -1 and 1: the distance to
the value (its minimiser is the median), a quantile's, a hinge (`et.local.losses`). The server needs no key, holds
nothing that is not private, and need not be trusted; so there is no stream spec for it, which is about a curator's key.
"""

from evertally.local import losses
from evertally.local.client import Client
from evertally.local.losses import Loss
from evertally.local.protocol import Protocol
from evertally.local.result import Bound, Result
from evertally.local.server import Added, Server

__all__ = ["Added", "Bound", "Client", "Loss", "Protocol", "Result", "Server", "losses"]
