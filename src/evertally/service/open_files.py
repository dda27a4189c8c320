"""How many files a process may have open, and how many of them may be connections."""

from __future__ import annotations

import resource

from evertally.errors import ConfigurationError

FOR_HEALTH = 16  # connections beside all others, that may only ask whether the service is well
_KEPT_BACK = 128  # for the store, its readers, outputs, folders, brokers and webhooks: they must never find none left
_LEAST = 32
_ENOUGH = 2**16  # a limit without an end is not asked for


def connections_within(wanted: int) -> int:
    """Raises the soft limit of open files as far as it goes, and says how many of `wanted` connections fit below it.

    >>> connections_within(40)
    40
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    fit = wanted if soft == resource.RLIM_INFINITY else min(wanted, soft - _KEPT_BACK - FOR_HEALTH)
    if fit < min(wanted, _LEAST):
        needed = min(wanted, _LEAST) + _KEPT_BACK + FOR_HEALTH
        raise ConfigurationError(
            f"this process may have {soft} files open and needs at least {needed}: raise the limit (ulimit -n, or "
            "LimitNOFILE in a unit of systemd)"
        )
    return fit
