"""The sensitivity of a long bank, certified without a loop over its ticks.

optimal-counting 5, certificate by jumps [R, reviewed twice]. On a held segment M_(s+h) = (F^h)^T M_s F^h + W_h, counted
from the end of the stream, with powers of two h by squaring, in balls. After a jump M is replaced by the midpoints plus
the row sums of its radii on the diagonal, which is above it in Loewner's order. In between the corner f rises by at
most g a tick, g the maximum of a bilinear form at the corners of a simplex, because innovations of a unit step stay in
that simplex (the lemma of 2.3). So f <= target at all ticks is proved by the jumps that keep f + h g <= target.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, arb_mat

from evertally.balls import at_precision
from evertally.counting.bank_certificate import check
from evertally.counting.bank_schedule import Bank

_PRECISION = 400


def certify_by_jumps(bank: Bank, target: Fraction, last: int | None = None) -> int | None:
    """How many jumps prove max_j ||R e_j||^2 <= target, or None if it is not proved.

    `last`: only so many segments, counted from the end of the stream; what comes before them is then not looked at.

    >>> from evertally.counting.bank_schedule import build_bank
    >>> certify_by_jumps(build_bank(64), Fraction(12)) is not None, certify_by_jumps(build_bank(64), Fraction(11))
    (True, None)
    """
    check(bank)
    M = arb_mat(bank.states + 1, bank.states + 1)
    jumps = 0
    for i in range(len(bank.lengths) - 1, -1, -1)[:last]:
        made = at_precision(_PRECISION, lambda i=i, M=M: _through(bank, i, M, target))  # type: ignore[misc]
        if made is None:
            return None
        M, more = made
        jumps += more
    return jumps


def _through(bank: Bank, i: int, M: arb_mat, target: Fraction) -> tuple[arb_mat, int] | None:
    """M before a segment from M after it, and the jumps it took; None where the corner may be above the target."""
    Q, goal = bank.states, arb(target.numerator) / arb(target.denominator)
    F, W = _one_tick(bank, i)
    powers = [(F, F.transpose(), W)]  # of 1, 2, 4, ... ticks
    left, jumps = int(bank.lengths[i]), 0
    while left:
        first = _jumped(M, *powers[0])
        rise = _steepest(first - M, Q)
        j = 0
        # f + h g <= target at the far end of the jump, and so at every tick on the way
        while 2 << j <= left and (rise <= 0 or M[Q, Q] + (2 << j) * rise <= goal):
            j += 1
        while len(powers) <= j:
            F, transposed, W = powers[-1]
            powers.append((F * F, (F * F).transpose(), W + transposed * W * F))
        M = first if j == 0 else _jumped(M, *powers[j])
        if not M[Q, Q] <= goal:
            return None
        left -= 1 << j
        jumps += 1
    return M, jumps


def _one_tick(bank: Bank, i: int) -> tuple[arb_mat, arb_mat]:
    """F = [[diag a - K a^T, K], [0, 1]] and c c^T/r^2, c = (-a, 1)."""
    a, K = [arb(v) for v in bank.a[i].tolist()], [arb(v) for v in bank.K[i].tolist()]
    Q, r = bank.states, arb(float(bank.r[i]))
    rows = [[(a[x] if x == y else arb(0)) - K[x] * a[y] for y in range(Q)] + [K[x]] for x in range(Q)]
    c = [*(-v for v in a), arb(1)]
    return arb_mat([*rows, [arb(0)] * Q + [arb(1)]]), arb_mat([[p * q / r**2 for q in c] for p in c])


def _jumped(M: arb_mat, F: arb_mat, transposed: arb_mat, W: arb_mat) -> arb_mat:
    return _recentred(transposed * M * F + W)


def _recentred(M: arb_mat) -> arb_mat:
    """Exact numbers above M in Loewner's order: a symmetric matrix of entries at most e in absolute value is below the
    diagonal matrix of the row sums of e."""
    n = M.nrows()
    entries = [[M[max(x, y), min(x, y)] for y in range(n)] for x in range(n)]
    exact = [[entry.mid() for entry in row] for row in entries]
    for x, row in enumerate(entries):
        exact[x][x] = sum((entry.rad() for entry in row), exact[x][x]).upper()
    return arb_mat(exact)


def _steepest(D: arb_mat, Q: int) -> arb:
    """max of (v, 1)^T D (w, 1) over v, w in {0, e_1 .. e_Q}."""
    edge = [D[x, Q] for x in range(Q)]
    top = D[Q, Q].upper()
    for x in range(Q):
        top = max(top, (D[Q, Q] + edge[x]).upper())
        for y in range(x + 1):
            top = max(top, (D[x, y] + edge[x] + edge[y] + D[Q, Q]).upper())
    return top
