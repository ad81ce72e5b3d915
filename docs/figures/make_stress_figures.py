"""Make the figures of docs/stress.md and print its numbers: ``python docs/figures/make_stress_figures.py``.

Takes a few minutes on two processors; the same seeds give the same figures, byte for byte.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import brwsim
from brwsim.process import process_from_spec
from brwsim.process.chain import ChainProcess
from brwsim.report.drawing import SIZE, colour_of, style, write

HERE = Path(__file__).parent
CASE = "markov:low=0.05,high=1.316,persistence=0.98"
LLAMA = "markov:low=0.2,high=1.166"
TWO_STATES = {
    "name": "markov",
    "laws": ["dirichlet:vocab=20,alpha=0.02", "dirichlet:vocab=20,alpha=0.4"],
    "transition": [[0.9, 0.1], [0.3, 0.7]],
}

Floats = NDArray[np.float64]


def main() -> None:
    """Make all figures."""
    report = brwsim.stress(CASE, "1..4096@25", rel_err=5e-3)
    report.plot(HERE / "stress-case.svg")
    print(report, "\n")
    report = brwsim.stress("markov:low=0.05,high=1.316", 1024, sweep="persistence=0..0.999@14", rel_err=5e-3)
    report.plot(HERE / "stress-curve.svg")
    print(report, "\n")
    report = brwsim.stress(
        "markov", 1024, sweep=["persistence=0..0.999@10", "spread=0..1.3@14"], rel_err=2e-2
    )
    report.plot(HERE / "stress-phase.svg")
    print(report, "\n")
    report = brwsim.stress("rotation:low=0.2,high=1.166", "4..4096@21", rel_err=5e-3)
    report.plot(HERE / "stress-rotation.svg")
    print(report, "\n")
    for sweep in ("persistence=0.7..0.8@6", "persistence=0..0.1@6"):
        print(brwsim.stress(LLAMA, "1024,4096", sweep=sweep, rel_err=1e-3), "\n")
    convergence()


def convergence() -> None:
    """Error of ``sharp_markov`` against ln P, by simulation and by ``annealed_markov``, from both states."""
    process = process_from_spec(TWO_STATES)
    assert isinstance(process, ChainProcess)
    P = 2 ** np.arange(4, 15)
    fine = 2 ** np.arange(4, 18)
    rate = decay_rate(process, (0.02, 0.4), 20)
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.add_subplot()
        for (label, start), colour in zip(process.starts().items(), ("#0072B2", "#D55E00"), strict=True):
            found = brwsim.sweep(start, P, trees=1500, seed=1)
            gap = np.abs(found.mean - found.bounds["sharp_markov"])
            bars: Any = {"linestyle": "", "capsize": 2.5, "markersize": 4.5, "marker": "o", "zorder": 4}
            axes.errorbar(P, gap, 2.0 * found.stderr, color=colour, label=f"E[X] from {label}", **bars)
            own = np.abs(value(start, "annealed_markov", fine) - value(start, "sharp_markov", fine))
            text = f"annealed_markov from {label}"
            axes.plot(fine, own, color=colour, linewidth=1.2, label=text)
            print(label, "gaps", gap.round(4).tolist(), "stderr", found.stderr.round(4).tolist())
            shown = slice(6, None)
            fitted = -np.polyfit(np.log(fine[shown]), np.log(own[shown]), 1)[0]
            print(f"{label}: fitted power of P {fitted:.4f}, from the chain {rate:.4f}")
        guide = 0.75 * own[-1] * (fine / fine[-1]) ** -rate
        text = f"slope of P$^{{-{rate:.3f}}}$, from the chain"
        axes.plot(fine, guide, color=colour_of("annealed"), linestyle=(0, (6, 2)), linewidth=1.2, label=text)
        axes.set_xscale("log", base=4)
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.set_xlabel("tree capacity P (nodes per verifier call, root included)")
        axes.set_ylabel("distance from sharp_markov, tokens per call")
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, loc="lower left")
        write(figure, HERE / "stress-convergence.svg")


def value(process: Any, name: str, P: NDArray[np.int64]) -> Floats:
    """A bound's values."""
    return np.asarray(getattr(brwsim.bounds, name)(P, **process.facts()))


def decay_rate(process: ChainProcess, alphas: tuple[float, float], vocab: int) -> float:
    """The least z > 0 at which E_s[p^-z; next state s'] has the eigenvalue 1: errors fall like P^-z.

    For a Dirichlet law the size-biased share is Beta(1 + alpha, (V - 1) alpha), so E[p^-z] is a ratio of
    Beta functions.
    """
    from scipy.optimize import brentq
    from scipy.special import betaln

    def determinant(z: float) -> float:
        moments = [
            math.exp(betaln(1 + a - z, (vocab - 1) * a) - betaln(1 + a, (vocab - 1) * a)) for a in alphas
        ]
        return float(np.linalg.det(np.eye(2) - np.array(moments)[:, None] * process.chain.Q))

    grid = np.linspace(0.02, 1.0, 200)
    values = [determinant(z) for z in grid]
    first = next(i for i in range(len(grid) - 1) if values[i] * values[i + 1] < 0.0)
    return float(brentq(determinant, grid[first], grid[first + 1]))


if __name__ == "__main__":
    main()
