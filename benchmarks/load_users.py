"""A stream about users for the load benchmark: who they are, what they spend, and four questions about them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

MOST = 500.0


def spec_text(publish_after: float) -> str:
    """Every query bounds a user by itself; only the quantiles need a rule of their own for that."""
    return (
        '[stream]\nname = "load"\nhorizon = 86400\nmax_events_per_tick = 2000000\nunit = "user"\nuser_column = "user"\n'
        "[guarantee]\nrho = 0.5\n"
        '[clock]\nstart = "first serve"\ntick = "1s"\n'
        '[key]\nfile = "load.key"\n[state]\nfile = "load.state"\n'
        f"[serve]\nport = 0\npublic = true\nrequests_per_second = 100000\nrows_per_second = 100000000\n"
        f"publish_after = {publish_after}\n"
        '[[query]]\nname = "different"\nkind = "distinct_users"\n'
        '[[query]]\nname = "active"\nkind = "active"\nwindows = ["10s", "60s"]\n'
        f'[[query]]\nname = "revenue"\nkind = "sum"\ncolumn = "amount"\nupper = {MOST:.0f}\nresolution = 0.01\n'
        "max_total_per_user = 2000\n"
        f'[[query]]\nname = "amounts"\nkind = "value-quantile"\ncolumn = "amount"\nq = [0.5, 0.95, 0.99]\n'
        f"edges = {{from = 1, to = {MOST:.0f}, ratio = 1.05}}\n"
        'max_ticks_per_user = 4\nmin_separation = "60s"\n'
    )


def body(events: int, media: str, seed: int, users: int) -> bytes:
    """Everybody is as likely as everybody else, which is the worst case for tables; amounts are log-normal cents."""
    rng = np.random.default_rng(seed)
    who = rng.integers(users, size=events)
    amounts = np.round(np.minimum(rng.lognormal(3.0, 1.0, size=events), 2 * MOST), 2)
    if media == "ndjson":
        rows = zip(who.tolist(), amounts.tolist(), strict=True)
        return "".join(json.dumps({"user": f"user-{u}", "amount": a}) + "\n" for u, a in rows).encode()
    table = pa.table({"user": [f"user-{u}" for u in who.tolist()], "amount": amounts})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
