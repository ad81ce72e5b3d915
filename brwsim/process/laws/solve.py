"""Solving a law's parameter from its entropy."""

from __future__ import annotations

import math
from collections.abc import Callable


def solve_increasing(function: Callable[[float], float], target: float, low: float, high: float) -> float:
    """The double in ``(low, high)`` whose image under an increasing function is nearest to ``target``.

    Plain bisection down to neighbouring doubles, on the ratio scale first because the answer may lie
    anywhere between 1e-110 and 1e20; only for functions that are cheap to evaluate.
    """
    while True:
        middle = math.sqrt(low) * math.sqrt(high) if high > 2 * low else low + (high - low) / 2
        if not low < middle < high:
            break
        if function(middle) < target:
            low = middle
        else:
            high = middle
    return min(low, high, key=lambda x: abs(function(x) - target))
