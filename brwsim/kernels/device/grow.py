"""One tree: find its ``limit`` heaviest nodes, in order, and take prefix sums.

``frontier`` visits every node above a threshold a batch at a time, raises the threshold when its arrays
fill up, and sorts at the end. ``best_first`` (in its own module) is the reference: a heap, popped
``limit`` times. Both give the same numbers.

Nodes are rows of caller-owned arrays: ``weights`` (path probability), ``keys`` (randomness) and
``states`` (what the node inherits, then its state) and ``terms`` (the control variate: weight times
entropy less its expectation, and what ``context`` books). Among nodes of equal weight the one
found earlier comes first, so a node always comes after its ancestors. While a node waits to be
opened, ``terms`` holds the logarithm of its weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .context import ALONE, NGRAM, bequeath, enter_batch
from .draws import is_kept_in_thinning
from .elementary import log_of
from .lanes import (
    ACTIVE,
    CHILD,
    DRAW,
    GROUP_OF,
    IS_THINNED,
    KEPT,
    LOG_CHILD,
    LOG_KEPT,
    RANK,
    ROW,
    SLOT_BIAS,
    SLOT_LOG_MASS,
    SLOT_MASS,
    SLOT_TOTAL,
    V,
    break_sticks,
)
from .laws import KIND_BACKOFF, KIND_LOGITS, KIND_STICKS, KIND_TABLE, choose_row, close_node, step
from .order import kth_largest, sort_descending
from .philox import ROOT_KEY, child_key
from .softmax import fill_shares
from .target import jit


class Tables(NamedTuple):
    """A process laid out flat."""

    rows: NDArray[np.void]  # of dtype ROW
    shares: NDArray[np.float64]  # probabilities of table and backoff rows, one row after the other
    tokens: NDArray[
        np.int32
    ]  # backoff rows: tokens in the order of ``shares``; then all again, each row's increasing
    nexts: NDArray[np.int64]  # backoff rows: the context after each token
    context: NDArray[np.void]  # one entry of dtype CONTEXT
    groups: NDArray[np.void]  # of dtype GROUP: the rows of each state
    codes: NDArray[np.void]  # of dtype CODE: the law of a node's state, given what it inherits
    cumulative: NDArray[np.float64]  # those laws' distribution functions, one after the other
    targets: NDArray[np.int64]  # and the states they lead to
    levels: NDArray[np.float64]  # where groups end on the scale of a continuous state
    polynomials: NDArray[np.float64]  # (2, n): phi and its expectation a step ahead, of a Gaussian state
    remaining: NDArray[np.float64]  # entropy a stick-breaking law has left after 0, 1, ... children


BATCH = 256  # nodes at work together

_NEXT_UP = 1.0 + 2.0**-52


def frontier_capacity(limit):
    """Length of the arrays ``frontier`` needs to find the ``limit`` heaviest nodes."""
    return 3 * limit + 4 * BATCH


@jit
def frontier(
    tables, seed, tree, limit, theta, nodes, best_weights, best_terms, counts, lanes, lane_keys, slots, logits
):
    """Visit all nodes of weight >= ``theta``, then sort their weights and terms into ``best_...``.

    Returns the number of nodes sorted, fewer than ``limit`` when ``theta`` was too high.
    The nodes of a batch take their steps together, in waves: what is heavy runs as loops that vectorise,
    and nothing in a wave waits for anything else in it.
    """
    rows, shares, tokens, nexts = tables.rows, tables.shares, tables.tokens, tables.nexts
    context, groups, remaining = tables.context[0], tables.groups, tables.remaining
    weights, keys, states, terms = nodes
    has_memory = context.kind != ALONE
    knows_child = context.kind == NGRAM or context.rank_classes > 1  # what is left depends on which child
    has_sticks = remaining.shape[0] > 0
    capacity = weights.shape[0]
    plant(nodes)
    size, head = np.int64(1), np.int64(0)  # typed, or callees are compiled for literals as well
    while head < size:
        if size > 2 * (limit + BATCH):
            theta, size, head = _tighten(limit, nodes, best_weights, size, head, np.int64(0))
        stop = head + BATCH if size > head + BATCH else size
        if has_memory:
            enter_batch(tables, seed, tree, nodes, head, stop, lanes, slots)
        active = np.int64(0)
        for slot in range(stop - head):
            node = head + slot
            key = keys[node]
            group = slots[GROUP_OF, slot] if has_memory else 0
            index = choose_row(rows, groups[group], seed, tree, key)
            slots[ROW, slot] = index
            slots[RANK, slot] = 0
            slots[DRAW, slot] = 0
            if not has_memory:
                lanes[SLOT_BIAS, slot] = -weights[node] * groups[0].entropy
            lanes[SLOT_MASS, slot] = weights[node]
            lanes[SLOT_LOG_MASS, slot] = terms[node]
            lanes[SLOT_TOTAL, slot] = 0.0
            row = rows[index]
            if row.kind == KIND_STICKS or row.kind == KIND_BACKOFF:
                slots[ACTIVE, active] = slot
                active += 1
                continue
            # a law whose shares are all at hand: append its children here and now
            if row.kind == KIND_LOGITS:
                lanes[SLOT_TOTAL, slot] = weights[node] * fill_shares(row, seed, tree, key, logits)
                count = row.vocab
            else:
                listed = row.stop - row.start
                count = listed + row.tail_count
            for i in range(count):
                if row.kind == KIND_LOGITS:
                    child = weights[node] * logits[i]
                else:
                    child = weights[node] * (shares[row.start + i] if i < listed else row.tail_share)
                if child < theta:
                    if row.kind == KIND_TABLE:
                        break  # rows are sorted
                    continue
                if size == capacity:
                    theta, size, _ = _tighten(limit, nodes, best_weights, size, head, stop)
                    if child < theta:
                        continue
                weights[size] = child
                terms[size] = log_of(child) if has_sticks else 0.0
                keys[size] = child_key(key, i + 1)
                states[size] = states[node]
                if knows_child:
                    states[size] = bequeath(context, rows, index, nexts, states[node], i + 1, 0)
                size += 1
        while active > 0:
            if size + active > capacity:
                theta, size, _ = _tighten(limit, nodes, best_weights, size, head, stop)
            if has_sticks:
                break_sticks(rows, seed, tree, keys, head, active, lanes, lane_keys, slots)
            still_active = 0
            for i in range(active):
                slot = slots[ACTIVE, i]
                node = head + slot
                index = slots[ROW, slot]
                mass = lanes[SLOT_MASS, slot]
                log_mass = lanes[SLOT_LOG_MASS, slot]
                rank = slots[RANK, slot]
                draw = slots[DRAW, slot]
                total = lanes[SLOT_TOTAL, slot]
                if has_sticks and lanes[IS_THINNED, i] > 0.0:
                    child = 0.0
                    log_child = 0.0
                    draw += 1
                    kept = lanes[KEPT, i]
                    if is_kept_in_thinning(lanes[V, i], 1.0 - kept, kept, -rows[index].discount):
                        child = lanes[CHILD, i]
                        log_child = lanes[LOG_CHILD, i]
                        if child > 0.0:
                            total -= child * log_child
                        mass *= kept
                        log_mass += lanes[LOG_KEPT, i]
                        rank += 1
                    more = mass >= theta
                else:
                    child, mass, log_mass, rank, draw, total, more = step(
                        rows,
                        index,
                        shares,
                        logits,
                        tokens,
                        seed,
                        tree,
                        keys[node],
                        weights[node],
                        theta,
                        mass,
                        log_mass,
                        rank,
                        draw,
                        total,
                    )
                    log_child = log_of(child) if has_sticks else 0.0
                weights[size] = child
                terms[size] = log_child
                keys[size] = child_key(keys[node], rank)
                states[size] = states[node]
                if knows_child:
                    states[size] = bequeath(context, rows, index, nexts, states[node], rank, draw)
                size += child >= theta
                lanes[SLOT_MASS, slot] = mass
                lanes[SLOT_LOG_MASS, slot] = log_mass
                lanes[SLOT_TOTAL, slot] = total
                slots[RANK, slot] = rank
                slots[DRAW, slot] = draw
                slots[ACTIVE, still_active] = slot
                still_active += more
            active = still_active
        for slot in range(stop - head):
            node = head + slot
            terms[node] = lanes[SLOT_BIAS, slot] + close_node(
                rows[slots[ROW, slot]],
                remaining,
                weights[node],
                terms[node],
                lanes[SLOT_MASS, slot],
                lanes[SLOT_LOG_MASS, slot],
                slots[RANK, slot],
                lanes[SLOT_TOTAL, slot],
            )
        head = stop
    sort_descending(weights, terms, size, best_weights, best_terms, counts)
    return size


@jit
def prefix_sums(weights, terms, grid, sums, term_sums):
    """Sums of the first P weights, and of their terms, at every P of the increasing ``grid``."""
    weight_sum = 0.0
    term_sum = 0.0
    done = 0
    for i in range(grid.shape[0]):
        while done < grid[i]:
            weight_sum += weights[done]
            term_sum += terms[done]
            done += 1
        sums[i] = weight_sum
        term_sums[i] = term_sum


@jit
def plant(nodes):
    """The root: weight 1, nothing inherited."""
    weights, keys, states, terms = nodes
    weights[0] = 1.0
    keys[0] = ROOT_KEY
    states[0] = 0.0
    terms[0] = 0.0


@jit
def _tighten(limit, nodes, scratch, size, head, fixed):
    """Drop nodes that cannot be among the ``limit`` best, and accept only heavier ones from now on.

    The first ``fixed`` nodes stay where they are. Of nodes as heavy as the last one kept the earlier
    stay, which is the order of the final sort. Returns (new theta, new size, new position of ``head``).
    """
    weights, keys, states, terms = nodes
    for i in range(size):
        scratch[i] = weights[i]
    threshold = kth_largest(scratch, size, limit)
    ties = limit
    for i in range(size):
        if weights[i] > threshold:
            ties -= 1
    kept = fixed
    new_head = head
    for i in range(size):
        keep = weights[i] > threshold
        if weights[i] == threshold:
            keep = ties > 0
            ties -= 1
        if i >= fixed:
            if i == head:
                new_head = kept
            if keep:
                weights[kept] = weights[i]
                keys[kept] = keys[i]
                states[kept] = states[i]
                terms[kept] = terms[i]
                kept += 1
    return threshold * _NEXT_UP, kept, new_head
