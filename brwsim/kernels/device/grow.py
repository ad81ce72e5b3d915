"""One tree: find its ``limit`` heaviest nodes, in order, and take prefix sums.

Two ways that give the same numbers. ``best_first`` is the reference: a heap, popped ``limit`` times.
``frontier`` visits every node above a threshold in breadth-first order, raises the threshold when its
arrays fill up, and sorts at the end; it touches memory in order and needs no heap.

Both order nodes by weight, then breadth-first. Nodes are rows of caller-owned arrays: ``weights``
(path probability), ``keys`` (randomness) and ``terms`` (weight times (entropy - mu), the control variate).
"""

from __future__ import annotations

from .heap import sift_down, sift_up
from .laws import advance, choose_row, entropy, first
from .order import kth_largest, sort_descending
from .philox import ROOT_KEY, child_key
from .target import inlined, jit

_NEXT_UP = 1.0 + 2.0**-52


@jit
def best_first(tables, seed, tree, limit, theta, weights, keys, terms, order, heap_weights, heap_nodes):
    """Pop the ``limit`` heaviest nodes from a heap; ``order`` receives their numbers.

    Nodes lighter than ``theta`` are not generated. Returns the number of nodes popped: fewer than
    ``limit`` when ``theta`` was too high, -1 when the arrays are too small.
    """
    capacity = weights.shape[0]
    weights[0] = 1.0
    keys[0] = ROOT_KEY
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
        row = choose_row(tables, seed, tree, keys[node])
        rest, rank, draw, total = first(row, seed, tree, keys[node])
        before = size
        size, rest, rank, draw, total = _append_children(
            tables.shares, row, seed, tree, node, theta, weights, keys, size, rest, rank, draw, total
        )
        if size == capacity:
            return -1
        terms[node] = weights[node] * (entropy(row, rest, rank, total) - row.mu)
        for child in range(before, size):
            heap_weights[waiting] = weights[child]
            heap_nodes[waiting] = child
            sift_up(heap_weights, heap_nodes, waiting)
            waiting += 1
    return popped


@jit
def frontier(tables, seed, tree, limit, theta, weights, keys, terms, order, scratch):
    """Visit all nodes of weight >= ``theta`` breadth-first, then sort; ``order`` receives their numbers.

    Returns the number of nodes sorted, fewer than ``limit`` when ``theta`` was too high. The arrays
    must hold more than ``limit`` nodes; more room means fewer rounds of tightening.
    """
    capacity = weights.shape[0]
    weights[0] = 1.0
    keys[0] = ROOT_KEY
    size = 1
    head = 0
    while head < size:
        row = choose_row(tables, seed, tree, keys[head])
        rest, rank, draw, total = first(row, seed, tree, keys[head])
        is_kept = True
        while True:
            size, rest, rank, draw, total = _append_children(
                tables.shares, row, seed, tree, head, theta, weights, keys, size, rest, rank, draw, total
            )
            if size < capacity:
                break
            theta, size, head, is_kept = _tighten(limit, weights, keys, terms, scratch, head)
            if not is_kept:  # its children weigh no more than it did
                break
        if is_kept:
            terms[head] = weights[head] * (entropy(row, rest, rank, total) - row.mu)
            head += 1
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


@inlined
def _append_children(shares, row, seed, tree, node, theta, weights, keys, size, rest, rank, draw, total):
    """Append the node's children of weight >= theta, as far as the arrays hold; returns size and cursor."""
    capacity = weights.shape[0]
    weight = weights[node]
    key = keys[node]
    floor = theta / weight
    while size < capacity:
        share, rest, rank, draw, total = advance(row, shares, seed, tree, key, floor, rest, rank, draw, total)
        if share < 0.0:
            break
        if weight * share >= theta:
            weights[size] = weight * share
            keys[size] = child_key(key, rank)
            size += 1
    return size, rest, rank, draw, total


@jit
def _tighten(limit, weights, keys, terms, scratch, head):
    """Keep the ``limit`` best of the full arrays, in their order, and accept only heavier nodes from now on.

    Among nodes as heavy as the last one kept the earlier stay, which is the order of the final sort.
    Returns (new theta, nodes kept, new position of the node at ``head``, whether that node was kept).
    """
    capacity = weights.shape[0]
    for i in range(capacity):
        scratch[i] = weights[i]
    threshold = kth_largest(scratch, capacity, limit)
    ties = limit
    for i in range(capacity):
        if weights[i] > threshold:
            ties -= 1
    size = 0
    new_head = 0
    is_kept = False
    for i in range(capacity):
        if weights[i] < threshold:
            keep = False
        elif weights[i] > threshold:
            keep = True
        else:
            keep = ties > 0
            ties -= 1
        if i == head:
            new_head = size
            is_kept = keep
        if keep:
            weights[size] = weights[i]
            keys[size] = keys[i]
            terms[size] = terms[i]
            size += 1
    return threshold * _NEXT_UP, size, new_head, is_kept
