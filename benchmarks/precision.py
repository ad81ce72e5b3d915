"""Time to a given relative standard error at every P of a range: brwsim measured, naive extrapolated."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np

import brwsim
from benchmarks.cases import law
from benchmarks.measure import Measurement, interleaved, ratios
from benchmarks.rivals import naive_growers
from benchmarks.scale import Scale

_DIST = "dirichlet"


@dataclass(frozen=True)
class NaiveWork:
    """What a naive simulation would have to grow."""

    trees: int
    thrifty_nodes: float

    @classmethod
    def needed(cls, P: np.ndarray, mean: np.ndarray, variance: np.ndarray, rel_err: float) -> NaiveWork:
        """From the crude variance at each P: trees to the largest P, as many as the worst P needs.

        ``thrifty_nodes`` are those of the cheapest schedule: every tree grown only as far as some P at
        or beyond still needs it.
        """
        needed = variance / (mean * rel_err) ** 2
        still = np.maximum.accumulate(needed[::-1])[::-1]  # by this P or any larger one
        steps = np.diff(P, prepend=0)
        return cls(int(np.ceil(needed.max())), float((steps * still).sum()))


def measure(scale: Scale) -> list[Measurement]:
    """Wall time of brwsim on one thread and on all, a naive tree's time, and the ratios."""
    low, high = scale.precision_range
    grid = f"{low}..{high}"
    work, crude_trees = _naive_work(scale, grid)
    seeds = count()
    ours = partial(brwsim.sweep, _DIST, grid, rel_err=scale.rel_err)
    calls = {
        "brwsim, 1 thread": lambda: ours(seed=next(seeds), threads=1),
        "brwsim, all threads": lambda: ours(seed=next(seeds)),
    }
    naive = naive_growers(law(_DIST), high)
    times = interleaved(calls | {who: partial(grow, 1) for who, grow in naive.items()}, scale.naive_rounds)
    case = f"precision/{_DIST}/P={grid}"
    facts = {
        "rel_err": scale.rel_err,
        "naive trees needed": work.trees,
        "thriftiest naive trees": work.thrifty_nodes / high,
        "remark": "naive is extrapolated: measured seconds per tree times the trees needed by the crude "
        f"variance of {crude_trees} trees; thriftiest: every tree grown only as far as needed",
    }
    found = [
        Measurement(f"{case}/{who}", "s", "lower", samples, facts if who in naive else {})
        for who, samples in times.items()
    ]
    for who in naive:
        for schedule, trees in (("", work.trees), (", thriftiest", work.thrifty_nodes / high)):
            extrapolated = [t * trees for t in times[who]]
            samples = ratios(extrapolated, times["brwsim, 1 thread"])
            found.append(Measurement(f"{case}/ratio to {who}{schedule}", "times faster", "higher", samples))
    return found


def _naive_work(scale: Scale, grid: str) -> tuple[NaiveWork, int]:
    """The variance of X is the same whoever grows the trees: brwsim's own crude estimator measures it."""
    crude = brwsim.sweep(_DIST, grid, trees=scale.variance_trees, estimator="crude", seed=2**32)
    work = NaiveWork.needed(crude.P, crude.mean, crude.stderr**2 * crude.trees, scale.rel_err)
    return work, scale.variance_trees
