"""One tree by one block of threads: the traversal ``frontier`` of the kernel body, spread over lanes.

The nodes of a batch stand in slots in shared memory. In every wave each lane takes one step for one active
slot; children go behind the nodes found so far in the order of the lanes, whose numbers are counted in a
mask of bits. Nothing depends on how threads are scheduled: the same tree gives the same bits every time. A
lane of its own (a block of one thread) is the serial traversal.

All nodes of weight ``theta`` or more are found, whatever the order; among nodes of equal weight the one
found earlier comes first, and that order may differ from the CPU's.
"""

from __future__ import annotations

import math

import numpy as np

from brwsim.kernels.cuda_order import DIGITS, largest_over, places, prefix_sums, sort, sum_over, tighten
from brwsim.kernels.cuda_shim import kernel_body, numba_cuda, on_device
from brwsim.kernels.device.context import ALONE
from brwsim.kernels.device.grow import BATCH
from brwsim.kernels.device.laws import KIND_LOGITS
from brwsim.kernels.device.philox import PURPOSE_LOGITS, ROOT_KEY

cuda = numba_cuda()
_body = kernel_body()
enter, bequeath = _body["context"].enter, _body["context"].bequeath
exp_of, log_of, sin_cos_of_turn = (
    _body["elementary"].exp_of,
    _body["elementary"].log_of,
    _body["elementary"].sin_cos_of_turn,
)
choose_row, step, close_node = _body["laws"].choose_row, _body["laws"].step, _body["laws"].close_node
two_uniforms, child_key = _body["philox"].two_uniforms, _body["philox"].child_key

MAX_LANES = 256
_MASKS = 2 * (MAX_LANES // 32)
_THETA_STEP = 0.5


@cuda.jit
def grow_kernel(tables, seed, trees, grid, theta, nodes, counts, order, logits, sums, terms, visited):
    """Grow every tree of ``trees`` to the largest P of the grid; a block takes every so-manieth tree."""
    floats = cuda.shared.array(MAX_LANES, np.float64)
    term_floats = cuda.shared.array(MAX_LANES, np.float64)
    weights, keys, states, node_terms = nodes
    block = cuda.blockIdx.x
    own = (weights[block], keys[block], states[block], node_terms[block])
    limit = grid[grid.shape[0] - 1]
    for i in range(block, trees.shape[0], cuda.gridDim.x):
        floor = theta
        size = 0
        total = 0
        while size < limit:  # when too few nodes are that heavy: the same tree, further down
            size = _grow(
                tables, seed, trees[i], limit, floor, own, counts[block], order[block], logits[block]
            )
            total += size
            floor *= _THETA_STEP
        prefix_sums(limit, own, order[block], grid, sums[i], terms[i], floats, term_floats)
        if cuda.threadIdx.x == 0:
            visited[i] = total


@cuda.jit
def summarise_kernel(sums, terms, starts, stats):
    """Means and centred second moments (the order of ``BlockStats``) of every run of trees, a thread per P."""
    column = cuda.grid(1)
    if column < sums.shape[1]:
        for part in range(cuda.blockIdx.y, starts.shape[0] - 1, cuda.gridDim.y):
            start, stop = starts[part], starts[part + 1]
            mean_x = 0.0
            mean_c = 0.0
            for i in range(start, stop):
                mean_x += sums[i, column]
                mean_c += terms[i, column]
            mean_x /= stop - start
            mean_c /= stop - start
            m_xx = 0.0
            m_xc = 0.0
            m_cc = 0.0
            for i in range(start, stop):
                dx = sums[i, column] - mean_x
                dc = terms[i, column] - mean_c
                m_xx += dx * dx
                m_xc += dx * dc
                m_cc += dc * dc
            stats[part, 0, column] = mean_x
            stats[part, 1, column] = mean_c
            stats[part, 2, column] = m_xx
            stats[part, 3, column] = m_xc
            stats[part, 4, column] = m_cc


@on_device
def _grow(tables, seed, tree, limit, theta, nodes, counts, order, logits):
    """Find all nodes of weight >= ``theta``, of too many the ``limit`` heaviest, and put them in order.

    Returns their number, fewer than ``limit`` when ``theta`` was too high.
    """
    masks = cuda.shared.array(_MASKS, np.uint32)
    floats = cuda.shared.array(MAX_LANES, np.float64)
    digits = cuda.shared.array(DIGITS, np.int32)
    masses = cuda.shared.array(BATCH, np.float64)
    log_masses = cuda.shared.array(BATCH, np.float64)
    totals = cuda.shared.array(BATCH, np.float64)
    biases = cuda.shared.array(BATCH, np.float64)
    indices = cuda.shared.array(BATCH, np.int32)
    ranks = cuda.shared.array(BATCH, np.int32)
    draws = cuda.shared.array(BATCH, np.int32)
    waiting = cuda.shared.array(BATCH, np.int32)
    lane = cuda.threadIdx.x
    width = cuda.blockDim.x
    rows = tables.rows
    context = tables.context[0]
    weights, keys, states, terms = nodes
    has_memory = context.kind != ALONE
    has_sticks = tables.remaining.shape[0] > 0
    capacity = weights.shape[0]
    if lane == 0:
        weights[0] = 1.0
        keys[0] = ROOT_KEY
        states[0] = 0.0
        terms[0] = 0.0
    cuda.syncthreads()
    size = 1
    head = 0
    while head < size:
        if size > 2 * (limit + BATCH):
            theta, size, head = tighten(limit, nodes, size, head, 0, masks, digits)
        batch = BATCH if size > head + BATCH else size - head
        active = 0
        has_logits = 0
        for first in range(0, batch, width):
            slot = first + lane
            is_stepped = False
            is_wide = False
            if slot < batch:
                node = head + slot
                key = keys[node]
                state, group, gain = 0.0, 0, 0.0
                if has_memory:
                    state, group, gain = enter(tables, seed, tree, key, states[node], node == 0)
                    states[node] = state
                index = choose_row(rows, tables.groups[group], seed, tree, key)
                indices[slot] = index
                ranks[slot] = 0
                draws[slot] = 0
                masses[slot] = weights[node]
                log_masses[slot] = terms[node]
                totals[slot] = 0.0
                biases[slot] = weights[node] * (gain - tables.groups[group].entropy)
                is_wide = rows[index].kind == KIND_LOGITS
                is_stepped = not is_wide
            place, count, _, wide = places(masks, lane, width, is_stepped, is_wide)
            if is_stepped:
                waiting[active + place] = slot
            active += count
            has_logits += wide
        cuda.syncthreads()
        if has_logits > 0:
            for slot in range(batch):
                if rows[indices[slot]].kind == KIND_LOGITS:
                    theta, size = _open_logits(
                        tables,
                        seed,
                        tree,
                        limit,
                        theta,
                        nodes,
                        size,
                        head,
                        batch,
                        slot,
                        indices[slot],
                        totals,
                        logits,
                        masks,
                        digits,
                        floats,
                    )
        while active > 0:
            if size + active > capacity:
                theta, size, _ = tighten(limit, nodes, size, head, head + batch, masks, digits)
            still_active = 0
            for first in range(0, active, width):
                is_found = False
                more = False
                slot, node, rank, draw, index = 0, 0, 0, 0, 0
                child = 0.0
                if first + lane < active:
                    slot = waiting[first + lane]
                    node = head + slot
                    index = indices[slot]
                    child, masses[slot], log_masses[slot], rank, draw, totals[slot], more = step(
                        rows,
                        index,
                        tables.shares,
                        logits,
                        tables.tokens,
                        seed,
                        tree,
                        keys[node],
                        weights[node],
                        theta,
                        masses[slot],
                        log_masses[slot],
                        ranks[slot],
                        draws[slot],
                        totals[slot],
                    )
                    ranks[slot] = rank
                    draws[slot] = draw
                    is_found = child >= theta
                place, found, still_place, still = places(masks, lane, width, is_found, more)
                if is_found:
                    at = size + place
                    weights[at] = child
                    terms[at] = log_of(child) if has_sticks else 0.0
                    keys[at] = child_key(keys[node], rank)
                    if has_memory:
                        states[at] = bequeath(context, rows, index, tables.nexts, states[node], rank, draw)
                if more:
                    waiting[still_active + still_place] = slot  # never ahead of what is still to be read
                size += found
                still_active += still
            active = still_active
            cuda.syncthreads()
        for slot in range(lane, batch, width):
            node = head + slot
            terms[node] = biases[slot] + close_node(
                rows[indices[slot]],
                tables.remaining,
                weights[node],
                terms[node],
                masses[slot],
                log_masses[slot],
                ranks[slot],
                totals[slot],
            )
        head += batch
        cuda.syncthreads()
    sort(weights, size, counts, order, digits, floats)
    return size


@on_device
def _open_logits(
    tables,
    seed,
    tree,
    limit,
    theta,
    nodes,
    size,
    head,
    batch,
    slot,
    index,
    totals,
    logits,
    masks,
    digits,
    floats,
):
    """All lanes draw one node's vocabulary of normal logits and append its children; (theta, size)."""
    lane = cuda.threadIdx.x
    width = cuda.blockDim.x
    weights, keys, states, terms = nodes
    context = tables.context[0]
    row = tables.rows[index]
    node = head + slot
    weight = weights[node]
    key = keys[node]
    vocab = row.vocab
    pairs = (vocab + 1) >> 1
    top = -math.inf
    for i in range(lane, pairs, width):
        u, v = two_uniforms(seed, tree, key, PURPOSE_LOGITS, i)
        radius = row.sigma * math.sqrt(-2.0 * log_of(u))
        sine, cosine = sin_cos_of_turn(v)
        logits[i] = radius * cosine
        if logits[i] > top:
            top = logits[i]
        if pairs + i < vocab:  # of an odd number the last pair's second half is not used
            logits[pairs + i] = radius * sine
            if logits[pairs + i] > top:
                top = logits[pairs + i]
    top = largest_over(floats, top)
    mass = 0.0
    moment = 0.0
    for i in range(lane, vocab, width):
        x = logits[i] - top
        part = exp_of(x)
        mass += part
        moment += part * x
        logits[i] = part
    mass = sum_over(floats, mass)
    moment = sum_over(floats, moment)
    if lane == 0:
        totals[slot] = weight * (log_of(mass) - moment / mass)
    for first in range(0, vocab, width):
        if size + width > weights.shape[0]:
            theta, size, _ = tighten(limit, nodes, size, head, head + batch, masks, digits)
        i = first + lane
        child = weight * (logits[i] / mass) if i < vocab else 0.0
        is_found = child >= theta
        place, found, _, _ = places(masks, lane, width, is_found, False)
        if is_found:
            at = size + place
            weights[at] = child
            terms[at] = log_of(child) if tables.remaining.shape[0] > 0 else 0.0
            keys[at] = child_key(key, i + 1)
            if context.kind != ALONE:
                states[at] = bequeath(context, tables.rows, index, tables.nexts, states[node], i + 1, 0)
        size += found
    cuda.syncthreads()
    return theta, size
