"""Sorting and selecting weights, in place and without allocation."""

from __future__ import annotations

from .heap import before
from .target import inlined, jit

_INSERTION_LIMIT = 32


@jit
def kth_largest(values, size, k):
    """The k-th largest of the first ``size`` values (k from 1), by Hoare's quickselect; reorders them."""
    low = 0
    high = size - 1
    target = k - 1
    while low < high:
        middle = (low + high) >> 1
        pivot = _median_of_three(values[low], values[middle], values[high])
        i = low
        j = high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if target <= j:
            high = j
        elif target >= i:
            low = i
        else:
            return values[target]
    return values[target]


@jit
def sort_descending(weights, size, order, bounds):
    """Fill ``order`` with the numbers of the first ``size`` weights, heaviest first, ties by number.

    A tree has about 1/(mu w) nodes heavier than w, so lightest/w is nearly uniform on (0, 1]: a
    counting sort on it leaves about one node to a bucket. ``bounds`` is scratch of at least ``size``.
    """
    lightest = weights[0]
    for i in range(size):
        if weights[i] < lightest:
            lightest = weights[i]
    scale = lightest * (size - 1)
    for bucket in range(size):
        bounds[bucket] = 0.0
    for i in range(size):
        bounds[int(scale / weights[i])] += 1.0
    total = 0.0
    for bucket in range(size):
        total += bounds[bucket]
        bounds[bucket] = total
    for i in range(size - 1, -1, -1):  # backwards, so that equal weights keep their order
        bucket = int(scale / weights[i])
        bounds[bucket] -= 1.0
        order[int(bounds[bucket])] = i
    start = 0
    for bucket in range(size):
        stop = size if bucket == size - 1 else int(bounds[bucket + 1])
        _sort_slice(weights, order, start, stop)
        start = stop


@inlined
def _sort_slice(weights, order, start, stop):
    if stop - start <= _INSERTION_LIMIT:
        for i in range(start + 1, stop):
            node = order[i]
            j = i
            while j > start and before(weights[node], node, weights[order[j - 1]], order[j - 1]):
                order[j] = order[j - 1]
                j -= 1
            order[j] = node
    else:
        _heap_sort(weights, order, start, stop)


@jit
def _heap_sort(weights, order, start, stop):
    """Heapsort of one slice: for laws whose weights pile up on few values."""
    count = stop - start
    for root in range(count // 2 - 1, -1, -1):
        _sink(weights, order, start, root, count)
    for end in range(count - 1, 0, -1):
        order[start], order[start + end] = order[start + end], order[start]
        _sink(weights, order, start, 0, end)


@jit
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


@jit
def _median_of_three(x, y, z):
    if x > y:
        x, y = y, x
    if y > z:
        y = z if x <= z else x
    return y
