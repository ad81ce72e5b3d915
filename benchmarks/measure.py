"""Timing: interleaved rounds, raw samples kept, warm-up left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median, quantiles
from typing import Any, Literal

Better = Literal["higher", "lower", ""]


@dataclass(frozen=True)
class Measurement:
    """One measured quantity with all its raw samples.

    ``better`` says which way is an improvement; "" marks what is shown but not judged, as a scaling
    exponent. ``facts`` holds what else a reader should know: sizes, counts, a remark.
    """

    name: str
    unit: str
    better: Better
    samples: tuple[float, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """The median of the samples."""
        return median(self.samples)

    @property
    def quartiles(self) -> tuple[float, float]:
        """First and third quartile of the samples (both the sample itself when it is the only one)."""
        if len(self.samples) == 1:
            return self.samples[0], self.samples[0]
        first, _, third = quantiles(self.samples, n=4, method="inclusive")
        return first, third

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, with the spread beside the samples for those who read the file."""
        low, high = self.quartiles
        return {
            "name": self.name,
            "unit": self.unit,
            "better": self.better,
            "median": self.median,
            "quartiles": [low, high],
            "range": [min(self.samples), max(self.samples)],
            "samples": list(self.samples),
            "facts": dict(self.facts),
        }


def seconds(call: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def interleaved(
    calls: Mapping[str, Callable[[], object]], rounds: int, warm_up: bool = True
) -> dict[str, tuple[float, ...]]:
    """Seconds of each call in ``rounds`` rounds A, B, ..., A, B, ...: a slow spell of the machine hits all alike."""
    if warm_up:
        for call in calls.values():
            call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call))
    return {name: tuple(values) for name, values in times.items()}


def count_for(grow: Callable[[int], object], wanted_seconds: float, most: int = 2**20) -> int:
    """How many trees take about ``wanted_seconds`` to grow, found by doubling."""
    grow(1)  # compiles, or loads what was compiled
    count = 1
    while (taken := seconds(partial(grow, count))) < wanted_seconds / 8 and count < most:
        count *= 2
    return max(1, min(most, round(count * wanted_seconds / taken)))


def ratios(slow: Sequence[float], fast: Sequence[float]) -> tuple[float, ...]:
    """Round by round, how many times faster the second is."""
    return tuple(a / b for a, b in zip(slow, fast, strict=True))
