"""Sorting and selecting weights, in place and without allocation."""

from __future__ import annotations

import numpy as np

from .target import jit

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
def sort_descending(weights, terms, size, sorted_weights, sorted_terms, counts):
    """Sort the first ``size`` weights, heaviest first, and carry their terms along; stable.

    A tree has about 1/(mu w) nodes heavier than w, so lightest/w is nearly uniform on (0, 1]: a
    counting sort on it leaves about one node to a bucket. ``counts`` is scratch of at least
    ``size`` integers; ``weights`` and ``terms`` serve as scratch in the end.
    """
    lightest = weights[0]
    for i in range(size):
        if weights[i] < lightest:
            lightest = weights[i]
    scale = lightest * (size - 1)
    for bucket in range(size):
        counts[bucket] = 0
    for i in range(size):
        counts[int(scale / weights[i])] += 1
    start = 0
    for bucket in range(size):
        count = counts[bucket]
        counts[bucket] = start
        start += count
    for i in range(size):
        bucket = int(scale / weights[i])
        place = counts[bucket]
        counts[bucket] = place + 1
        sorted_weights[place] = weights[i]
        sorted_terms[place] = terms[i]
    start = np.int64(0)
    for bucket in range(size):  # counts now holds where each bucket stops
        stop = counts[bucket]
        if stop - start > _INSERTION_LIMIT:
            _merge_sort(sorted_weights, sorted_terms, weights, terms, start, np.int64(stop))
        else:
            for i in range(start + 1, stop):
                weight = sorted_weights[i]
                term = sorted_terms[i]
                j = i
                while j > start and sorted_weights[j - 1] < weight:
                    sorted_weights[j] = sorted_weights[j - 1]
                    sorted_terms[j] = sorted_terms[j - 1]
                    j -= 1
                sorted_weights[j] = weight
                sorted_terms[j] = term
        start = np.int64(stop)


@jit
def _merge_sort(weights, terms, spare_weights, spare_terms, start, stop):
    """Stable bottom-up merge sort of one slice: for laws whose weights pile up on few values."""
    width = 1
    while width < stop - start:
        low = start
        while low < stop:
            middle = low + width if low + width < stop else stop
            high = middle + width if middle + width < stop else stop
            i = low
            j = middle
            for k in range(low, high):
                if i < middle and (j >= high or weights[i] >= weights[j]):
                    spare_weights[k] = weights[i]
                    spare_terms[k] = terms[i]
                    i += 1
                else:
                    spare_weights[k] = weights[j]
                    spare_terms[k] = terms[j]
                    j += 1
            low = high
        for k in range(start, stop):
            weights[k] = spare_weights[k]
            terms[k] = spare_terms[k]
        width *= 2


@jit
def _median_of_three(x, y, z):
    if x > y:
        x, y = y, x
    if y > z:
        y = z if x <= z else x
    return y
