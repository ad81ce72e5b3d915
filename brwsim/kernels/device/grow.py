"""One tree: find its ``limit`` heaviest nodes, in order, and take prefix sums.

Two ways that give the same numbers. ``best_first`` is the reference: a heap, popped ``limit`` times.
``frontier`` visits every node above a threshold a batch at a time, raises the threshold when its
arrays fill up, and sorts at the end; it touches memory in order and needs no heap.

Nodes are rows of caller-owned arrays: ``weights`` (path probability), ``keys`` (randomness) and
``states`` (what the node inherits, then its state) and ``terms`` (the control variate: weight times
entropy less its expectation, and what ``context`` books). Among nodes of equal weight the one
found earlier comes first, so a node always comes after its ancestors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .context import ALONE, bequeath, enter
from .heap import sift_down, sift_up
from .laws import choose_row, close_node, open_node, step
from .order import kth_largest, sort_descending
from .philox import ROOT_KEY, child_key
from .target import jit


class Tables(NamedTuple):
    """A process laid out flat."""

    rows: NDArray[np.void]  # of dtype ROW
    shares: NDArray[np.float64]  # probabilities of table and backoff rows, one row after the other
    tokens: NDArray[np.int32]  # backoff rows: (2, n), tokens in the order of ``shares``, and increasing
    nexts: NDArray[np.int64]  # backoff rows: the context after each token
    context: NDArray[np.void]  # one entry of dtype CONTEXT
    groups: NDArray[np.void]  # of dtype GROUP: the rows of each state
    codes: NDArray[np.void]  # of dtype CODE: the law of a node's state, given what it inherits
    cumulative: NDArray[np.float64]  # those laws' distribution functions, one after the other
    targets: NDArray[np.int64]  # and the states they lead to
    levels: NDArray[np.float64]  # where groups end on the scale of a continuous state
    polynomials: NDArray[np.float64]  # (2, n): phi and its expectation a step ahead, of a Gaussian state


BATCH = 256
# A batch of nodes at work: per slot its state, and the list of slots that still look for children.
SLOT = np.dtype(
    [
        ("row", np.int64),
        ("rank", np.int64),
        ("draw", np.int64),
        ("mass", np.float64),
        ("total", np.float64),
        ("active", np.int64),
    ]
)

_NEXT_UP = 1.0 + 2.0**-52


@jit
def best_first(
    tables, seed, tree, limit, theta, weights, keys, states, terms, order, heap_weights, heap_nodes
):
    """Pop the ``limit`` heaviest nodes from a heap; ``order`` receives their numbers.

    Nodes lighter than ``theta`` are not generated. Returns the number of nodes popped: fewer than
    ``limit`` when ``theta`` was too high, -1 when the arrays are too small.
    """
    rows, shares, tokens, nexts = tables.rows, tables.shares, tables.tokens, tables.nexts
    context, groups = tables.context[0], tables.groups
    has_memory = context.kind != ALONE
    capacity = weights.shape[0]
    weights[0] = 1.0
    keys[0] = ROOT_KEY
    states[0] = 0.0
    heap_weights[0] = 1.0
    heap_nodes[0] = 0
    size = 1
    waiting = 1
    popped = 0
    while waiting > 0 and popped < limit:
        node = heap_nodes[0]
        order[popped] = node
        popped += 1
        waiting -= 1
        if waiting > 0:
            heap_weights[0] = heap_weights[waiting]
            heap_nodes[0] = heap_nodes[waiting]
            sift_down(heap_weights, heap_nodes, waiting)
        weight = weights[node]
        key = keys[node]
        state, group, gain = 0.0, 0, 0.0
        if has_memory:
            state, group, gain = enter(tables, seed, tree, key, states[node], node == 0)
        index = choose_row(rows, groups[group], seed, tree, key)
        row = rows[index]
        mass, total = open_node(row, seed, tree, key, weight)
        rank = 0
        draw = 0
        more = True
        while more:
            child, mass, rank, draw, total, more = step(
                rows, index, shares, tokens, seed, tree, key, weight, theta, mass, rank, draw, total
            )
            if child >= theta:
                if size == capacity:
                    return -1
                weights[size] = child
                keys[size] = child_key(key, rank)
                if has_memory:
                    states[size] = bequeath(context, rows, index, nexts, state, rank, draw)
                heap_weights[waiting] = child
                heap_nodes[waiting] = size
                sift_up(heap_weights, heap_nodes, waiting)
                size += 1
                waiting += 1
        terms[node] = close_node(row, weight, mass, rank, total) + weight * (gain - groups[group].entropy)
    return popped


def frontier_capacity(limit):
    """Length of the arrays ``frontier`` needs to find the ``limit`` heaviest nodes."""
    return 3 * limit + 4 * BATCH


@jit
def frontier(tables, seed, tree, limit, theta, weights, keys, states, terms, order, scratch, slots):
    """Visit all nodes of weight >= ``theta``, then sort; ``order`` receives their numbers.

    Returns the number of nodes sorted, fewer than ``limit`` when ``theta`` was too high.
    The nodes of a batch take their steps in turn, and nothing a step does depends on the step before
    it, nor is any decision a jump: the processor works on several nodes at once.
    """
    rows, shares, tokens, nexts = tables.rows, tables.shares, tables.tokens, tables.nexts
    context, groups = tables.context[0], tables.groups
    has_memory = context.kind != ALONE
    capacity = weights.shape[0]
    weights[0] = 1.0
    keys[0] = ROOT_KEY
    states[0] = 0.0
    size = 1
    head = 0
    while head < size:
        if size > 2 * (limit + BATCH):
            theta, size, head = _tighten(limit, weights, keys, states, terms, scratch, size, head, 0)
        stop = head + BATCH if size > head + BATCH else size
        for slot in range(stop - head):
            node = head + slot
            key = keys[node]
            state, group, gain = 0.0, 0, 0.0
            if has_memory:
                state, group, gain = enter(tables, seed, tree, key, states[node], node == 0)
            states[node] = state
            terms[node] = weights[node] * (gain - groups[group].entropy)
            index = choose_row(rows, groups[group], seed, tree, key)
            slots[slot].row = index
            slots[slot].mass, slots[slot].total = open_node(rows[index], seed, tree, key, weights[node])
            slots[slot].rank = 0
            slots[slot].draw = 0
            slots[slot].active = slot
        active = stop - head
        while active > 0:
            if size + active > capacity:
                theta, size, _ = _tighten(limit, weights, keys, states, terms, scratch, size, head, stop)
            still_active = 0
            for i in range(active):
                slot = slots[i].active
                node = head + slot
                key = keys[node]
                index = slots[slot].row
                child, mass, rank, draw, total, more = step(
                    rows,
                    index,
                    shares,
                    tokens,
                    seed,
                    tree,
                    key,
                    weights[node],
                    theta,
                    slots[slot].mass,
                    slots[slot].rank,
                    slots[slot].draw,
                    slots[slot].total,
                )
                weights[size] = child
                keys[size] = child_key(key, rank)
                if has_memory:
                    states[size] = bequeath(context, rows, index, nexts, states[node], rank, draw)
                size += child >= theta
                slots[slot].mass = mass
                slots[slot].rank = rank
                slots[slot].draw = draw
                slots[slot].total = total
                slots[still_active].active = slot
                still_active += more
            active = still_active
        for slot in range(stop - head):
            node = head + slot
            at = slots[slot]
            terms[node] += close_node(rows[at.row], weights[node], at.mass, at.rank, at.total)
        head = stop
    sort_descending(weights, size, order, scratch)
    return size


@jit
def prefix_sums(weights, terms, order, grid, sums, term_sums):
    """Sums of the P heaviest weights, and of their terms, at every P of the increasing ``grid``."""
    weight_sum = 0.0
    term_sum = 0.0
    done = 0
    for i in range(grid.shape[0]):
        while done < grid[i]:
            weight_sum += weights[order[done]]
            term_sum += terms[order[done]]
            done += 1
        sums[i] = weight_sum
        term_sums[i] = term_sum


@jit
def _tighten(limit, weights, keys, states, terms, scratch, size, head, fixed):
    """Drop nodes that cannot be among the ``limit`` best, and accept only heavier ones from now on.

    The first ``fixed`` nodes stay where they are. Of nodes as heavy as the last one kept the earlier
    stay, which is the order of the final sort. Returns (new theta, new size, new position of ``head``).
    """
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
