"""How large a run of the benchmarks is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Sizes and repetitions; ``FULL`` for figures to publish, ``QUICK`` to see that all is well."""

    name: str
    rounds: int
    sample_seconds: float  # a timed sample grows as many trees as take about this long
    speed_sizes: tuple[int, ...]
    naive_cases: tuple[tuple[str, int], ...]  # law, P
    naive_rounds: int
    cpp_sizes: tuple[int, ...]
    cpp_verified_size: int
    precision_range: tuple[int, int]
    rel_err: float
    variance_trees: int
    cold_starts: int
    warm_starts: int
    sweep_grid: str
    memory_sizes: tuple[int, ...]
    scaling_sizes: tuple[int, ...]
    scaling_vocabs: tuple[int, ...]


FULL = Scale(
    name="full",
    rounds=7,
    sample_seconds=0.25,
    speed_sizes=(64, 1024, 4096, 65536),
    naive_cases=(("dirichlet", 4096), ("dirichlet-50", 1024), ("softmax-normal", 1024), ("zipf", 1024)),
    naive_rounds=5,
    cpp_sizes=(64, 1024, 4096, 65536),
    cpp_verified_size=65536,
    precision_range=(64, 4096),
    rel_err=1e-3,
    variance_trees=4000,
    cold_starts=5,
    warm_starts=7,
    sweep_grid="1..4096",
    memory_sizes=(1, 10**4, 10**5, 10**6),
    scaling_sizes=(64, 256, 1024, 4096, 16384, 65536),
    scaling_vocabs=(50, 512, 4096, 32768, 262144),
)

QUICK = Scale(
    name="quick",
    rounds=5,
    sample_seconds=0.02,
    speed_sizes=(64, 1024),
    naive_cases=(("dirichlet", 256), ("dirichlet-50", 256)),
    naive_rounds=5,
    cpp_sizes=(64, 1024),
    cpp_verified_size=4096,
    precision_range=(64, 256),
    rel_err=1e-3,
    variance_trees=400,
    cold_starts=1,
    warm_starts=3,
    sweep_grid="1..1024",
    memory_sizes=(1, 10**4),
    scaling_sizes=(64, 256, 1024, 4096),
    scaling_vocabs=(50, 4096, 262144),
)
