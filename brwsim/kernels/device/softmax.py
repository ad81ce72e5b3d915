"""A whole vocabulary of normal logits at once, as loops that vectorise."""

from __future__ import annotations

import math

from .elementary import exp_of, log_of, sin_cos_of_turn
from .philox import PURPOSE_LOGITS, two_uniforms
from .target import jit


@jit
def fill_shares(row, seed, tree, key, shares):
    """Fill ``shares`` with the children's probabilities, in no particular order; returns the entropy.

    ``shares`` has room for an even number of at least ``row.vocab`` values.
    """
    pairs = (row.vocab + 1) >> 1
    for i in range(pairs):
        shares[i], shares[pairs + i] = two_uniforms(seed, tree, key, PURPOSE_LOGITS, i)
    for i in range(pairs):
        radius = row.sigma * math.sqrt(-2.0 * log_of(shares[i]))
        sine, cosine = sin_cos_of_turn(shares[pairs + i])
        shares[i] = radius * cosine
        shares[pairs + i] = radius * sine
    top = -math.inf
    for i in range(row.vocab):  # of an odd number the last pair's second half is not used
        if shares[i] > top:
            top = shares[i]
    mass = 0.0
    moment = 0.0
    for i in range(row.vocab):
        x = shares[i] - top
        part = exp_of(x)
        mass += part
        moment += part * x
        shares[i] = part
    scale = 1.0 / mass
    for i in range(row.vocab):
        shares[i] *= scale
    return log_of(mass) - moment * scale
