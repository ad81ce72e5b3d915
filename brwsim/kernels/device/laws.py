"""Drawing one node's children, a few at a time and only those that can matter.

A cursor walks a node's children: ``first`` starts it, ``advance`` returns the next child whose share
is at least ``floor`` (or a negative number when none is left), ``entropy`` closes it with the node's
entropy, in conditional expectation given the shares that were drawn. A cursor is the tuple
(rest, rank, draw, total): mass not yet handed out, children passed, random draws used, and a running sum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .draws import beta_cheng, beta_near_one, beta_small, digamma
from .philox import PURPOSE_LOGITS, PURPOSE_ROW, PURPOSE_STICKS, two_uniforms
from .target import inlined, jit

KIND_STICKS = 0
KIND_TABLE = 1
KIND_LOGITS = 2

_TWO_PI = 2.0 * math.pi


# One row of a law: what a kernel needs to draw a node's children.
ROW = np.dtype(
    [
        ("kind", np.int64),
        ("vocab", np.int64),  # sticks and logits: number of children, 0 for infinitely many
        ("discount", np.float64),  # sticks
        ("strength", np.float64),  # sticks
        ("thinning_limit", np.float64),  # sticks: beta_near_one up to this second parameter
        ("digamma", np.float64),  # sticks: psi(1 - discount)
        ("sigma", np.float64),  # logits
        ("entropy", np.float64),  # table: the row's entropy
        ("start", np.int64),  # table: the row's slice of ``shares``
        ("stop", np.int64),
        ("tail_share", np.float64),  # table: ``tail_count`` more children of this share each
        ("tail_count", np.int64),
        ("alias_prob", np.float64),  # Walker's alias table of the rows' weights
        ("alias_row", np.int64),
        ("mu", np.float64),  # the whole law's expected entropy, the same in every row
    ],
    align=True,
)


class Tables(NamedTuple):
    """A law laid out flat."""

    rows: NDArray[np.void]  # of dtype ROW
    shares: NDArray[np.float64]  # the table rows' probabilities, one row after the other


@inlined
def choose_row(tables, seed, tree, key):
    """The row of the law a node draws its children from, picked by Walker's alias method."""
    count = tables.rows.shape[0]
    index = 0
    if count > 1:
        u, v = two_uniforms(seed, tree, key, PURPOSE_ROW, 0)
        index = int(u * count)
        if v >= tables.rows[index].alias_prob:
            index = tables.rows[index].alias_row
    return tables.rows[index]


@jit
def first(row, seed, tree, key):
    """A cursor before the node's first child."""
    if row.kind == KIND_LOGITS:
        log_total, entropy = _logits_summary(row, seed, tree, key)
        return log_total, 0, 0, entropy
    return 1.0, 0, 0, 0.0


@inlined
def advance(row, shares, seed, tree, key, floor, rest, rank, draw, total):
    """(share, rest, rank, draw, total) of the next child with share >= floor; share -1 when none is left."""
    share = -1.0
    if row.kind == KIND_STICKS:
        share, rest, rank, draw, total = _advance_sticks(row, seed, tree, key, floor, rest, rank, draw, total)
    elif row.kind == KIND_LOGITS:
        share, rank = _advance_logits(row, seed, tree, key, floor, rest, rank)
    else:
        length = row.stop - row.start
        if rank < length:
            share = shares[row.start + rank]
        elif rank < length + row.tail_count:
            share = row.tail_share
        rank += 1
        if share < floor:  # rows are sorted: nothing further can matter
            share = -1.0
    return share, rest, rank, draw, total


@jit
def entropy(row, rest, rank, total):
    """The node's entropy in nats: its conditional expectation given the shares drawn so far."""
    if row.kind == KIND_TABLE:
        return row.entropy
    if row.kind == KIND_LOGITS or rest <= 0.0:
        return total
    # what is left is a stick-breaking law of its own, scaled by ``rest`` and independent of the past
    remaining = digamma(row.strength + rank * row.discount + 1.0) - row.digamma
    return total + rest * (remaining - math.log(rest))


@jit
def _advance_sticks(row, seed, tree, key, floor, rest, rank, draw, total):
    discount = row.discount
    a = 1.0 - discount
    while rest >= floor and rest > 0.0:
        rank += 1
        b = row.strength + rank * discount
        if rank == row.vocab:
            taken, left = 1.0, 0.0
        elif b <= row.thinning_limit:
            taken, left, draw = beta_near_one(seed, tree, key, PURPOSE_STICKS, draw, a, b)
        elif a < 1.0 and b < 1.0:
            taken, left, draw = beta_small(seed, tree, key, PURPOSE_STICKS, draw, a, b)
        else:
            taken, left, draw = beta_cheng(seed, tree, key, PURPOSE_STICKS, draw, a, b)
        share = rest * taken
        rest *= left
        if share > 0.0:
            total -= share * math.log(share)
        if share >= floor:
            return share, rest, rank, draw, total
    return -1.0, rest, rank, draw, total


@jit
def _advance_logits(row, seed, tree, key, floor, log_total, rank):
    while rank < row.vocab:
        share = math.exp(row.sigma * _normal(seed, tree, key, rank) - log_total)
        rank += 1
        if share >= floor:
            return share, rank
    return -1.0, rank


@jit
def _logits_summary(row, seed, tree, key):
    """(ln sum e^x, entropy) of the node's logits, in one pass with a running maximum."""
    top = -math.inf
    mass = 0.0
    moment = 0.0
    for i in range(row.vocab):
        x = row.sigma * _normal(seed, tree, key, i)
        if x > top:
            shrink = math.exp(top - x)
            mass *= shrink
            moment *= shrink
            top = x
        part = math.exp(x - top)
        mass += part
        moment += part * x
    log_total = top + math.log(mass)
    return log_total, log_total - moment / mass


@jit
def _normal(seed, tree, key, index):
    """The node's standard normal number ``index``, by Box and Muller (1958), two to a Philox block."""
    u, v = two_uniforms(seed, tree, key, PURPOSE_LOGITS, index >> 1)
    radius = math.sqrt(-2.0 * math.log(u))
    if index & 1:
        return radius * math.sin(_TWO_PI * v)
    return radius * math.cos(_TWO_PI * v)
