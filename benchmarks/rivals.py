"""brwsim's kernel against the naive twin and against a C++ program, each pair timed in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.cases import DISTS, Kernel, grid_to, law
from benchmarks.compiled import Program, compiler, supports
from benchmarks.measure import Measurement, count_for, interleaved, ratios
from benchmarks.naive import children_of, grow_tree
from benchmarks.scale import Scale
from brwsim.process.base import Law
from brwsim.process.laws.sticks import Dirichlet

Grow = Callable[[int], object]

_VERIFIED_TREES = 5


def against_naive(scale: Scale) -> list[Measurement]:
    """Trees/s of brwsim over those of the naive twin, at the same law and P."""
    found = []
    for name, P in scale.naive_cases:
        growers: dict[str, Grow] = {"brwsim": Kernel.of(law(name), grid_to(P)).grow}
        growers |= naive_growers(law(name), P)
        found += _pairs(growers, P, f"naive/{name}/P={P}", scale, scale.naive_rounds)
    return found


def naive_growers(process: Law, P: int) -> dict[str, Grow]:
    """The naive twin's variants: of a Dirichlet law, with ``rng.dirichlet`` and with gammas."""
    rng = np.random.default_rng(0)
    drawers = {"naive": children_of(process, rng)}
    if isinstance(process, Dirichlet):
        drawers["naive, gammas"] = children_of(process, rng, gammas=True)

    def grow(children: Callable[[], np.ndarray], trees: int) -> None:
        for _ in range(trees):
            grow_tree(children, P)

    return {variant: partial(grow, children) for variant, children in drawers.items()}


def against_cpp(scale: Scale) -> list[Measurement]:
    """Nodes/s of brwsim over those of the C++ program, where both grow the very same trees.

    Nothing is measured where there is no compiler. Raises BenchmarkError when the trees differ.
    """
    if compiler() is None:
        return []
    found = []
    with tempfile.TemporaryDirectory() as folder:
        program = Program.build(Path(folder))
        for name in (name for name in DISTS if supports(law(name))):
            every_P = np.arange(1, scale.cpp_verified_size + 1)
            program.check_same_trees(Kernel.of(law(name), every_P), _VERIFIED_TREES)
            for P in scale.cpp_sizes:
                kernel = Kernel.of(law(name), grid_to(P))
                growers: dict[str, Grow] = {"brwsim": kernel.grow, "C++": partial(program.grow, kernel)}
                found += _pairs(growers, P, f"cpp/{name}/P={P}", scale, scale.rounds)
    return found


def _pairs(growers: dict[str, Grow], P: int, case: str, scale: Scale, rounds: int) -> list[Measurement]:
    """How many times faster brwsim is than each of the others, round by round."""
    counts = {who: count_for(grow, scale.sample_seconds) for who, grow in growers.items()}
    times = interleaved({who: partial(grow, counts[who]) for who, grow in growers.items()}, rounds, False)
    per_tree = {who: [t / counts[who] for t in times[who]] for who in growers}
    ours = per_tree.pop("brwsim")
    return [
        Measurement(
            f"{case}/{who}",
            "times faster",
            "higher",
            ratios(theirs, ours),
            {"brwsim nodes/s": P / median(ours), "rival nodes/s": P / median(theirs)},
        )
        for who, theirs in per_tree.items()
    ]
