"""The reference way to the heaviest nodes of a tree: a heap, popped one node at a time."""

from __future__ import annotations

from .context import ALONE, bequeath, enter
from .elementary import log_of
from .grow import plant
from .heap import sift_down, sift_up
from .laws import KIND_LOGITS, choose_row, close_node, step
from .philox import child_key
from .softmax import fill_shares
from .target import jit


@jit
def best_first(
    tables, seed, tree, limit, theta, nodes, best_weights, best_terms, heap_weights, heap_nodes, logits
):
    """Pop the ``limit`` heaviest nodes from a heap, their weights and terms into ``best_...``.

    Nodes lighter than ``theta`` are not generated. Returns the number of nodes popped: fewer than
    ``limit`` when ``theta`` was too high, -1 when the arrays are too small.
    """
    rows, shares, tokens, nexts = tables.rows, tables.shares, tables.tokens, tables.nexts
    context, groups, remaining = tables.context[0], tables.groups, tables.remaining
    weights, keys, states, terms = nodes
    has_memory = context.kind != ALONE
    capacity = weights.shape[0]
    plant(nodes)
    heap_weights[0] = 1.0
    heap_nodes[0] = 0
    size = 1
    waiting = 1
    popped = 0
    while waiting > 0 and popped < limit:
        node = heap_nodes[0]
        waiting -= 1
        if waiting > 0:
            heap_weights[0] = heap_weights[waiting]
            heap_nodes[0] = heap_nodes[waiting]
            sift_down(heap_weights, heap_nodes, waiting)
        weight = weights[node]
        log_weight = terms[node]
        key = keys[node]
        state, group, gain = 0.0, 0, 0.0
        if has_memory:
            state, group, gain = enter(tables, seed, tree, key, states[node], node == 0)
        index = choose_row(rows, groups[group], seed, tree, key)
        total = 0.0
        if rows[index].kind == KIND_LOGITS:
            total = weight * fill_shares(rows[index], seed, tree, key, logits)
        mass = weight
        log_mass = log_weight
        rank = 0
        draw = 0
        more = True
        while more:
            child, mass, log_mass, rank, draw, total, more = step(
                rows,
                index,
                shares,
                logits,
                tokens,
                seed,
                tree,
                key,
                weight,
                theta,
                mass,
                log_mass,
                rank,
                draw,
                total,
            )
            if child >= theta:
                if size == capacity:
                    return -1
                weights[size] = child
                terms[size] = log_of(child)
                keys[size] = child_key(key, rank)
                if has_memory:
                    states[size] = bequeath(context, rows, index, nexts, state, rank, draw)
                heap_weights[waiting] = child
                heap_nodes[waiting] = size
                sift_up(heap_weights, heap_nodes, waiting)
                size += 1
                waiting += 1
        best_weights[popped] = weight
        best_terms[popped] = weight * (gain - groups[group].entropy) + close_node(
            rows[index], remaining, weight, log_weight, mass, log_mass, rank, total
        )
        popped += 1
    return popped
