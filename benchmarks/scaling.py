"""How the time of one tree grows with P and with the vocabulary: exponents of log-log fits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from benchmarks.cases import Kernel, grid_to, law
from benchmarks.measure import Measurement, count_for, interleaved
from benchmarks.scale import Scale
from brwsim.process.laws import as_law

_ENTROPY = 0.683
_P_OF_VOCAB = 1024


def measure(scale: Scale) -> list[Measurement]:
    """Seconds per tree along both axes, and the slope of each."""
    along_P = {P: Kernel.of(law("dirichlet"), grid_to(P)) for P in scale.scaling_sizes}
    along_vocab = {
        vocab: Kernel.of(as_law(f"dirichlet:vocab={vocab},entropy={_ENTROPY}"), grid_to(_P_OF_VOCAB))
        for vocab in scale.scaling_vocabs
    }
    return _along("P", along_P, scale) + _along("vocab", along_vocab, scale)


def _along(axis: str, kernels: Mapping[int, Kernel], scale: Scale) -> list[Measurement]:
    counts = {x: count_for(kernel.grow, scale.sample_seconds) for x, kernel in kernels.items()}
    calls = {str(x): partial(kernel.grow, counts[x]) for x, kernel in kernels.items()}
    times = interleaved(calls, scale.rounds)
    per_tree = np.array([[t / counts[x] for t in times[str(x)]] for x in kernels])
    slopes = np.polyfit(np.log(list(kernels)), np.log(per_tree), 1)[0]
    found = [
        Measurement(f"scaling/{axis}={x}", "s/tree", "lower", tuple(samples.tolist()))
        for x, samples in zip(kernels, per_tree, strict=True)
    ]
    remark = {"remark": f"slope of ln(s/tree) against ln({axis}), one fit per round"}
    return [*found, Measurement(f"scaling/{axis} exponent", "", "", tuple(slopes.tolist()), remark)]
