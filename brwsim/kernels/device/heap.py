"""A binary max-heap on parallel arrays: priority first, node number (smaller wins) on ties."""

from __future__ import annotations

from .target import jit


@jit
def before(priority, number, other_priority, other_number):
    """Whether the first pair comes out of the heap before the second."""
    return priority > other_priority or (priority == other_priority and number < other_number)


@jit
def sift_up(priorities, numbers, position):
    """Move the entry at ``position`` up to its place."""
    priority = priorities[position]
    number = numbers[position]
    while position > 0:
        parent = (position - 1) >> 1
        if not before(priority, number, priorities[parent], numbers[parent]):
            break
        priorities[position] = priorities[parent]
        numbers[position] = numbers[parent]
        position = parent
    priorities[position] = priority
    numbers[position] = number


@jit
def sift_down(priorities, numbers, size):
    """Move the entry at the top down to its place among the first ``size``."""
    priority = priorities[0]
    number = numbers[0]
    position = 0
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        right = child + 1
        if right < size and before(priorities[right], numbers[right], priorities[child], numbers[child]):
            child = right
        if not before(priorities[child], numbers[child], priority, number):
            break
        priorities[position] = priorities[child]
        numbers[position] = numbers[child]
        position = child
    priorities[position] = priority
    numbers[position] = number
