"""What a node inherits from its parent: the state that decides its law.

A child is born with a code, all that its parent leaves it. ``enter`` turns the code into the node's
state when the node is opened, with the node's own randomness, so whether the node is among the best
never depends on it. Along the way it books phi(state) - E[phi(state) | code], which has mean 0 for any
function phi and, for the right one, takes the memory of the process out of the control variate.
"""

from __future__ import annotations

import math

import numpy as np

from .draws import normal
from .lanes import GROUP_OF, SLOT_BIAS
from .philox import PURPOSE_STATE, two_uniforms
from .target import jit

ALONE = 0  # no state: every node's law is drawn alike
MARKOV = 1  # finitely many states; the code is state * rank_classes + rank class
GAUSSIAN = 2  # a stationary AR(1) value, cut into groups at the levels; the code is the parent's value
ROTATION = 3  # a point on the circle of length 1, moved by ``move`` a level; the code is the parent's point
NGRAM = 4  # the state is a context of tokens and one row of its own; so is the code

CONTEXT = np.dtype(
    [
        ("kind", np.int64),
        ("rank_classes", np.int64),
        ("root_code", np.int64),  # Markov and n-gram: the code whose law is the start's
        ("rho", np.float64),
        ("noise", np.float64),  # sqrt(1 - rho^2)
        ("move", np.float64),
        ("start", np.float64),  # Gaussian and rotation: the root's value; nan for a stationary one
    ],
    align=True,
)
GROUP = np.dtype(
    [("first_row", np.int64), ("row_count", np.int64), ("entropy", np.float64), ("phi", np.float64)],
    align=True,
)
CODE = np.dtype([("start", np.int64), ("stop", np.int64), ("expected_phi", np.float64)], align=True)


@jit
def enter_batch(tables, seed, tree, nodes, head, stop, lanes, slots):
    """Enter nodes ``head`` to ``stop - 1``: their states, groups, and what is booked, into slots."""
    context = tables.context[0]
    groups, codes, cumulative, targets = tables.groups, tables.codes, tables.cumulative, tables.targets
    levels, phi, expected_phi = tables.levels, tables.polynomials[0], tables.polynomials[1]
    weights, keys, states, _ = nodes
    for slot in range(stop - head):
        node = head + slot
        state, group, gain = _enter(
            context,
            groups,
            codes,
            cumulative,
            targets,
            levels,
            phi,
            expected_phi,
            seed,
            tree,
            keys[node],
            states[node],
            node == 0,
        )
        states[node] = state
        slots[GROUP_OF, slot] = group
        lanes[SLOT_BIAS, slot] = weights[node] * (gain - groups[group].entropy)


@jit
def enter(tables, seed, tree, key, code, is_root):
    """(state, group, phi(state) - E[phi(state) | code]) of one node."""
    return _enter(
        tables.context[0],
        tables.groups,
        tables.codes,
        tables.cumulative,
        tables.targets,
        tables.levels,
        tables.polynomials[0],
        tables.polynomials[1],
        seed,
        tree,
        key,
        code,
        is_root,
    )


@jit
def _enter(
    context, groups, codes, cumulative, targets, levels, phi, expected_phi, seed, tree, key, code, is_root
):
    state = code
    index = 0
    gain = 0.0
    if context.kind == MARKOV or context.kind == NGRAM:
        index = np.int64(code)
        if is_root or context.kind == MARKOV:
            u, _ = two_uniforms(seed, tree, key, PURPOSE_STATE, 0)
            law = codes[context.root_code if is_root else index]
            index = targets[_first_above(cumulative, law.start, law.stop - 1, u)]
            gain = groups[index].phi - law.expected_phi
        state = np.float64(index)
    elif context.kind == GAUSSIAN:
        if not is_root:
            state = context.rho * code + context.noise * normal(seed, tree, key, PURPOSE_STATE, 0)
            gain = _polynomial(phi, state) - _polynomial(expected_phi, code)
        elif math.isnan(context.start):
            state = normal(seed, tree, key, PURPOSE_STATE, 0)
            gain = _polynomial(phi, state)
        else:
            state = context.start
        index = _first_above(levels, 0, levels.shape[0], state)
    elif context.kind == ROTATION:
        if not is_root:
            state = code + context.move
        elif math.isnan(context.start):
            state = two_uniforms(seed, tree, key, PURPOSE_STATE, 0)[0]
        else:
            state = context.start
        state -= math.floor(state)
        index = _first_above(levels, 0, levels.shape[0], state)
    return state, index, gain


@jit
def bequeath(context, rows, index, nexts, state, rank, draw):
    """The code of the child that the last step found."""
    if context.kind == MARKOV:
        last = context.rank_classes - 1
        return state * context.rank_classes + np.float64(rank - 1 if rank - 1 < last else last)
    if context.kind == NGRAM:
        level = index
        for _ in range(draw):
            level = rows[level].backoff
        return np.float64(nexts[rows[level].start + rank - 1])
    return state


@jit
def _first_above(values, start, stop, x):
    """The first position in an increasing slice whose value exceeds x; ``stop`` when none does."""
    while start < stop:
        middle = (start + stop) >> 1
        if values[middle] > x:
            stop = middle
        else:
            start = middle + 1
    return start


@jit
def _polynomial(coefficients, x):
    """Horner's rule, highest power first."""
    value = 0.0
    for i in range(coefficients.shape[0]):
        value = value * x + coefficients[i]
    return value
