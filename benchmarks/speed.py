"""Trees and nodes per second of the kernel alone, one core, for every law at several P."""

from __future__ import annotations

from functools import partial

from benchmarks.cases import DISTS, Kernel, grid_to, law
from benchmarks.measure import Measurement, count_for, interleaved
from benchmarks.scale import Scale


def measure(scale: Scale) -> list[Measurement]:
    """One measurement of nodes/s per law and P; a tree counts as P nodes, whatever was visited."""
    cases = [(name, P, Kernel.of(law(name), grid_to(P))) for name in DISTS for P in scale.speed_sizes]
    counts = {
        f"speed/{name}/P={P}": count_for(kernel.grow, scale.sample_seconds) for name, P, kernel in cases
    }
    calls = {
        case: partial(kernel.grow, count)
        for (case, count), (_, _, kernel) in zip(counts.items(), cases, strict=True)
    }
    times = interleaved(calls, scale.rounds)
    found = []
    for (name, P, kernel), (case, count) in zip(cases, counts.items(), strict=True):
        few = min(count, 16)
        found.append(
            Measurement(
                case,
                "nodes/s",
                "higher",
                tuple(count * P / t for t in times[case]),
                {
                    "law": name,
                    "P": P,
                    "trees": count,
                    "visited for each kept": kernel.grow(few)[2] / (few * P),
                },
            )
        )
    return found
