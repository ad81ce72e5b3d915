"""The sections of the benchmarks, and one run of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from benchmarks import memory, precision, rivals, scaling, speed, startup
from benchmarks.errors import BenchmarkError
from benchmarks.measure import Measurement
from benchmarks.record import Record
from benchmarks.scale import Scale

SECTIONS: dict[str, Callable[[Scale], list[Measurement]]] = {
    "speed": speed.measure,
    "naive": rivals.against_naive,
    "cpp": rivals.against_cpp,
    "precision": precision.measure,
    "startup": startup.measure,
    "memory": memory.measure,
    "scaling": scaling.measure,
}
"""Section by name; a measurement's name starts with its section's."""


def run(scale: Scale, only: Collection[str] = (), say: Callable[[str], None] = lambda _: None) -> Record:
    """Measure all sections, or those named."""
    found: list[Measurement] = []
    for name, measure in SECTIONS.items():
        if only and name not in only:
            continue
        start = time.monotonic()
        part = measure(scale)
        say(
            f"{name}: {len(part)} measurements in {time.monotonic() - start:.0f} s"
            if part
            else f"{name}: left out"
        )
        found += part
    if not found:
        raise BenchmarkError(
            "nothing was measured: the sections asked for need what this machine does not have"
        )
    return Record.of(scale.name, found)
