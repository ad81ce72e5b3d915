"""Drawing one node's children, a step at a time and only those that can matter.

Each ``step`` finds at most one child, ``close_node`` gives the node's entropy, in conditional expectation
given the children that were drawn. Between steps a node is five numbers: mass (weight not yet handed out)
and its logarithm, rank (children passed), draw (random draws used) and total (entropy so far). All weights
are absolute, so that nothing is divided by the node's own.
"""

from __future__ import annotations

import numpy as np

from .draws import beta_cheng, beta_near_one, beta_small, digamma
from .elementary import log_of
from .philox import PURPOSE_ROW, PURPOSE_STICKS, two_uniforms
from .target import jit

KIND_STICKS = 0
KIND_TABLE = 1
KIND_LOGITS = 2
KIND_BACKOFF = 3

# Entropy that the rest of a stick-breaking law has left, tabulated for this many children passed.
RANKS_TABULATED = 16

# One row of a law: what a kernel needs to draw a node's children.
ROW = np.dtype(
    [
        ("kind", np.int64),
        ("vocab", np.int64),  # sticks and logits: number of children, 0 for infinitely many
        ("discount", np.float64),  # sticks
        ("strength", np.float64),  # sticks
        ("thinning_limit", np.float64),  # sticks: beta_near_one up to this second parameter
        ("digamma", np.float64),  # sticks: psi(1 - discount)
        ("remaining", np.int64),  # sticks: where ``remaining`` holds the entropy of what rank children leave
        ("sigma", np.float64),  # logits
        ("entropy", np.float64),  # table and backoff: the row's entropy
        ("start", np.int64),  # table and backoff: the row's slice of ``shares``
        ("stop", np.int64),
        ("tail_share", np.float64),  # table: ``tail_count`` more children of this share each
        ("tail_count", np.int64),
        ("backoff", np.int64),  # backoff: the row of the shorter context, -1 for the empty one
        ("scale", np.float64),  # backoff: its weight for tokens not listed here
        ("alias_prob", np.float64),  # Walker's alias table of the weights within a group of rows
        ("alias_row", np.int64),
    ],
    align=True,
)


@jit
def choose_row(rows, group, seed, tree, key):
    """The row a node draws its children from, picked in its group by Walker's alias method."""
    index = group.first_row
    if group.row_count > 1:
        u, v = two_uniforms(seed, tree, key, PURPOSE_ROW, 0)
        index += int(u * group.row_count)
        if v >= rows[index].alias_prob:
            index = rows[index].alias_row
    return index


@jit
def step(
    rows, index, shares, logits, tokens, seed, tree, key, weight, theta, mass, log_mass, rank, draw, total
):
    """Look for one more child: (its weight, mass, log_mass, rank, draw, total, whether to look further).

    A weight below ``theta`` means that this step found none.
    """
    row = rows[index]
    child = 0.0
    more = False
    if row.kind == KIND_STICKS:
        child, mass, log_mass, rank, draw, total = break_stick(
            row, seed, tree, key, mass, log_mass, rank, draw, total
        )
        more = mass >= theta
    elif row.kind == KIND_LOGITS:
        child = weight * logits[rank]
        rank += 1
        more = rank < row.vocab
    elif row.kind == KIND_TABLE:
        length = row.stop - row.start
        child = weight * (shares[row.start + rank] if rank < length else row.tail_share)
        rank += 1
        more = child >= theta and rank < length + row.tail_count  # rows are sorted
    else:
        # ``draw`` counts contexts given up so far, ``mass`` is the weight times their scales
        level = index
        longer = index
        for _ in range(draw):
            longer = level
            level = rows[level].backoff
        if rank < rows[level].stop - rows[level].start:
            entry = rows[level].start + rank
            child = mass * shares[entry]
            rank += 1
            more = True
            if child < theta:  # rows are sorted: on to the shorter context
                rank = rows[level].stop - rows[level].start
            elif draw > 0 and _is_listed(tokens, rows[longer].start, rows[longer].stop, tokens[entry]):
                child = 0.0
        else:
            mass *= rows[level].scale
            rank = 0
            draw += 1
            more = rows[level].backoff >= 0 and mass >= theta
    return child, mass, log_mass, rank, draw, total, more


@jit
def close_node(row, remaining, weight, log_weight, mass, log_mass, rank, total):
    """Weight times entropy of a node, in expectation over the children not drawn."""
    entropy = total
    if row.kind == KIND_STICKS:
        # total is -sum w_i ln w_i over the children drawn; what is left is a stick-breaking law of its
        # own, scaled by ``mass`` and independent of the past
        entropy += weight * log_weight
        if mass > 0.0:
            left = remaining[row.remaining + rank] if rank < RANKS_TABULATED else entropy_after(row, rank)
            entropy += mass * (left - log_mass)
    elif row.kind != KIND_LOGITS:
        entropy = weight * row.entropy
    return entropy


@jit
def entropy_after(row, rank):
    """Expected entropy of a stick-breaking law once ``rank`` children are taken away, rescaled."""
    return digamma(row.strength + rank * row.discount + 1.0) - row.digamma


@jit
def _is_listed(tokens, start, stop, token):
    """Whether ``token`` is among a row's: a binary search of the second half of ``tokens``."""
    half = tokens.shape[0] >> 1
    low = half + start
    high = half + stop
    while low < high:
        middle = (low + high) >> 1
        if tokens[middle] < token:
            low = middle + 1
        else:
            high = middle
    return low < half + stop and tokens[low] == token


@jit
def break_stick(row, seed, tree, key, mass, log_mass, rank, draw, total):
    """Try to draw the next size-biased child; a rejected attempt returns child 0 and counts a draw."""
    if rank + 1 == row.vocab:
        return mass, 0.0, 0.0, rank + 1, draw, total - mass * log_mass
    u, v = two_uniforms(seed, tree, key, PURPOSE_STICKS, draw)
    a = 1.0 - row.discount
    b = row.strength + (rank + 1) * row.discount
    if b <= row.thinning_limit:
        accepted, taken, left, log_left = beta_near_one(u, v, a, b)
    elif a < 1.0 and b < 1.0:
        accepted, taken, left, log_left = beta_small(u, v, a, b)
    else:
        accepted, taken, left, log_left = beta_cheng(u, v, a, b)
    if not accepted:
        return 0.0, mass, log_mass, rank, draw + 1, total
    child = mass * taken
    if child > 0.0:
        total -= child * log_of(child)
    return child, mass * left, log_mass + log_left, rank + 1, draw + 1, total
