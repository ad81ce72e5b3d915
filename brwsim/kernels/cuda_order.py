"""What the threads of a block do together: count, add up, select the heaviest nodes, put them in order.

Sums are added up in a fixed order, never by atomic operations, so the same tree gives the same bits every
time. All threads of the block call these together; shared arrays for the purpose are handed in.
"""

from __future__ import annotations

import numpy as np

from brwsim.kernels.cuda_shim import kernel_body, numba_cuda, on_device
from brwsim.kernels.device.philox import ROOT_KEY

cuda = numba_cuda()
_body = kernel_body()
bits_of, float_of = _body["elementary"].bits_of, _body["elementary"].float_of
before = _body["heap"].before

DIGITS = 256
_INSERTION_LIMIT = 32
_NEXT_UP = 1.0 + 2.0**-52
_ONE = np.uint32(1)


@on_device
def places(masks, lane, width, first, second):
    """(lanes below this one for which ``first`` holds, all for which it does, and the same of ``second``)."""
    words = (width + 31) >> 5
    for i in range(lane, 2 * words, width):
        masks[i] = 0
    cuda.syncthreads()
    word = lane >> 5
    bit = _ONE << np.uint32(lane & 31)
    if first:
        cuda.atomic.or_(masks, word, bit)
    if second:
        cuda.atomic.or_(masks, words + word, bit)
    cuda.syncthreads()
    below, total, second_below, second_total = 0, 0, 0, 0
    for i in range(words):
        ones = np.int64(cuda.popc(masks[i]))
        second_ones = np.int64(cuda.popc(masks[words + i]))
        total += ones
        second_total += second_ones
        if i < word:
            below += ones
            second_below += second_ones
    lower = np.uint32(bit - _ONE)
    below += np.int64(cuda.popc(np.uint32(masks[word] & lower)))
    second_below += np.int64(cuda.popc(np.uint32(masks[words + word] & lower)))
    cuda.syncthreads()
    return below, total, second_below, second_total


@on_device
def sum_over(floats, value):
    """The sum of every lane's value, added up in the order of the lanes."""
    floats[cuda.threadIdx.x] = value
    cuda.syncthreads()
    total = 0.0
    for i in range(cuda.blockDim.x):
        total += floats[i]
    cuda.syncthreads()
    return total


@on_device
def largest_over(floats, value):
    """The largest of all lanes' values."""
    floats[cuda.threadIdx.x] = value
    cuda.syncthreads()
    largest = floats[0]
    for i in range(1, cuda.blockDim.x):
        if floats[i] > largest:
            largest = floats[i]
    cuda.syncthreads()
    return largest


@on_device
def tighten(limit, nodes, size, head, fixed, masks, digits):
    """Drop nodes that cannot be among the ``limit`` best; see ``tighten`` of the kernel body."""
    lane = cuda.threadIdx.x
    width = cuda.blockDim.x
    weights, keys, states, terms = nodes
    threshold, ties = _kth_largest(weights, size, limit, digits)
    for first in range(0, fixed, width):
        i = first + lane
        _, _, _, equal = places(masks, lane, width, False, i < fixed and weights[i] == threshold)
        ties -= equal
    kept = fixed
    new_head = 0
    for first in range(fixed, size, width):
        i = first + lane
        weight, key, state, term = 0.0, ROOT_KEY, 0.0, 0.0
        if i < size:
            weight, key, state, term = weights[i], keys[i], states[i], terms[i]
        heavier, all_heavier, equals, all_equals = places(
            masks, lane, width, weight > threshold, weight == threshold
        )
        kept_equals = equals if equals < ties else ties
        at = kept + heavier + (kept_equals if ties > 0 else 0)
        if i == head:
            digits[0] = at
        if weight > threshold or (weight == threshold and equals < ties):
            weights[at] = weight
            keys[at] = key
            states[at] = state
            terms[at] = term
        all_kept = all_equals if all_equals < ties else ties
        kept += all_heavier + (all_kept if ties > 0 else 0)
        ties -= all_equals
        cuda.syncthreads()
    new_head = digits[0]
    cuda.syncthreads()
    return threshold * _NEXT_UP, kept, np.int64(new_head)


@on_device
def _kth_largest(values, size, k, digits):
    """(the k-th largest of positive values, how many equal to it are among the k largest).

    Digit by digit: the bits of positive floats are in the order of the floats.
    """
    lane = cuda.threadIdx.x
    width = cuda.blockDim.x
    prefix = np.int64(0)
    for place in range(8):
        shift = np.int64(56 - 8 * place)
        for digit in range(lane, DIGITS, width):
            digits[digit] = 0
        cuda.syncthreads()
        for i in range(lane, size, width):
            bits = np.int64(bits_of(values[i])) >> shift
            if bits >> np.int64(8) == prefix:
                cuda.atomic.add(digits, bits & np.int64(255), 1)
        cuda.syncthreads()
        digit = np.int64(DIGITS - 1)
        while digits[digit] < k:
            k -= digits[digit]
            digit -= 1
        prefix = (prefix << np.int64(8)) | digit
        cuda.syncthreads()
    return float_of(prefix), k


@on_device
def sort(weights, size, counts, order, digits, floats):
    """Fill ``order`` with the numbers of the first ``size`` weights, heaviest first, ties by number.

    The counting sort of the kernel body; within a bucket numbers arrive in any order and are sorted.
    """
    lane = cuda.threadIdx.x
    width = cuda.blockDim.x
    lightest = 1.0
    for i in range(lane, size, width):
        if weights[i] < lightest:
            lightest = weights[i]
        counts[i] = 0
    scale = -largest_over(floats, -lightest) * (size - 1)
    for i in range(lane, size, width):
        cuda.atomic.add(counts, int(scale / weights[i]), 1)
    cuda.syncthreads()
    carry = 0
    for first in range(0, size, width):
        i = first + lane
        count = counts[i] if i < size else 0
        digits[lane] = count
        cuda.syncthreads()
        reach = 1
        while reach < width:
            other = digits[lane - reach] if lane >= reach else 0
            cuda.syncthreads()
            digits[lane] += other
            cuda.syncthreads()
            reach *= 2
        if i < size:
            counts[i] = carry + digits[lane] - count
        carry += digits[width - 1]
        cuda.syncthreads()
    for i in range(lane, size, width):
        order[cuda.atomic.add(counts, int(scale / weights[i]), 1)] = i
    cuda.syncthreads()
    for bucket in range(lane, size, width):  # counts now holds where each bucket stops
        _sort_slice(weights, order, counts[bucket - 1] if bucket > 0 else 0, counts[bucket])
    cuda.syncthreads()


@on_device
def _sort_slice(weights, order, start, stop):
    if stop - start > _INSERTION_LIMIT:
        _heap_sort(weights, order, start, stop - start)
        return
    for i in range(start + 1, stop):
        node = order[i]
        j = i
        while j > start and before(weights[node], node, weights[order[j - 1]], order[j - 1]):
            order[j] = order[j - 1]
            j -= 1
        order[j] = node


@on_device
def _heap_sort(weights, order, start, count):
    """Heapsort of one slice: for laws whose weights pile up on few values."""
    for root in range(count // 2 - 1, -1, -1):
        _sink(weights, order, start, root, count)
    for end in range(count - 1, 0, -1):
        node = order[start]
        order[start] = order[start + end]
        order[start + end] = node
        _sink(weights, order, start, 0, end)


@on_device
def _sink(weights, order, start, position, count):
    """Restore the heap whose top is the node that comes last."""
    node = order[start + position]
    while True:
        child = 2 * position + 1
        if child >= count:
            break
        other = order[start + child]
        if child + 1 < count:
            right = order[start + child + 1]
            if before(weights[other], other, weights[right], right):
                child += 1
                other = right
        if not before(weights[node], node, weights[other], other):
            break
        order[start + position] = other
        position = child
    order[start + position] = node


@on_device
def prefix_sums(limit, nodes, order, grid, sums, term_sums, floats, term_floats):
    """Sums of the P heaviest weights, and of their terms, at every P of ``grid``.

    ``states`` and the bits of ``keys`` are no longer needed and hold the running sums.
    """
    lane = cuda.threadIdx.x
    width = cuda.blockDim.x
    weights, keys, states, terms = nodes
    weight_sum = 0.0
    term_sum = 0.0
    for first in range(0, limit, width):
        i = first + lane
        floats[lane] = weights[order[i]] if i < limit else 0.0
        term_floats[lane] = terms[order[i]] if i < limit else 0.0
        cuda.syncthreads()
        reach = 1
        while reach < width:
            weight = floats[lane - reach] if lane >= reach else 0.0
            term = term_floats[lane - reach] if lane >= reach else 0.0
            cuda.syncthreads()
            floats[lane] += weight
            term_floats[lane] += term
            cuda.syncthreads()
            reach *= 2
        if i < limit:
            states[i] = weight_sum + floats[lane]
            keys[i] = np.uint64(bits_of(term_sum + term_floats[lane]))
        weight_sum += floats[width - 1]
        term_sum += term_floats[width - 1]
        cuda.syncthreads()
    for i in range(lane, grid.shape[0], width):
        sums[i] = states[grid[i] - 1]
        term_sums[i] = float_of(np.int64(keys[grid[i] - 1]))
    cuda.syncthreads()
