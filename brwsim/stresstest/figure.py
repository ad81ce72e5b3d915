"""Figures of a stress test: curves over P, curves over a swept key, a map of two."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from brwsim.report.drawing import (
    LINES,
    SIZE,
    check_target,
    colour_of,
    label_ends,
    scale_capacity,
    style,
    write,
)
from brwsim.stresstest.axes import Axis
from brwsim.stresstest.case import Simulated, kind_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from brwsim.stresstest.report import StressReport

Floats = NDArray[np.float64]
_Label = tuple[float, str, str]

_TOKENS = "expected tokens per verifier call, E[X]"
_PROCESS, _SURROGATE, _STARTS = "black", "#8C6BB1", "0.55"
_OWN = ("annealed_markov", "sharp_markov")
_TICKS = {  # the most wanted first
    "persistence": (0.0, 0.9, 0.99, 0.999, 0.9999, 0.5, 0.7, 0.8, 0.95, 0.98, 0.995, 0.998, 0.6, 0.3),
    "rho": (0.0, 0.9, -0.9, 0.99, -0.99, 0.999, 0.5, -0.5, 0.7, -0.7, 0.95, -0.95, 0.98, -0.98, 0.3, -0.3),
}
_TICK_DISTANCE = 0.055  # of the axis
_RATIOS = (0.5, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 50.0)
_MAP_FORMULAS = ("renewal", "leaf_count", "theorem1")


def plot(report: StressReport, path: str | Path | None = None) -> Figure:
    """Draw a report; the suffix of ``path`` (.png, .svg or .pdf) says how it is written."""
    target = None if path is None else check_target(Path(path))
    with style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.add_subplot()
        (_draw_case, _draw_curve, _draw_map)[len(report.axes)](axes, report)
        if target is not None:
            write(figure, target)
    return figure


def _draw_case(axes: Axes, report: StressReport) -> None:
    """E[X] over P: the process, its starts and its surrogate among the formulas."""
    case, P = report.cases[0], report.P
    labels = []
    for name in report.formulas:
        labels += _formula(axes, P, report.formula(name), f"{name} ({kind_of(name, iid=True)})", name)
    for start in case.starts:
        axes.plot(P, start.simulated.mean, color=_STARTS, linewidth=1.0, zorder=4)
        labels.append((float(start.simulated.mean[-1]), f"from {start.label}", _STARTS))
    for name in _OWN:
        if name in case.stationary.theory:
            labels += _formula(
                axes, P, case.stationary.theory[name], f"{name} ({kind_of(name)})", name, dashed=True
            )
    labels += _simulated(axes, P, case.surrogate, "i.i.d. surrogate", _SURROGATE)
    labels += _simulated(axes, P, case.stationary.simulated, "process", _PROCESS)
    axes.set_title(_title(report), fontsize=9.5, loc="left", parse_math=False)
    axes.set_xlabel("tree capacity P (nodes per verifier call, root included)")
    axes.set_ylabel(_TOKENS)
    scale_capacity(axes, P)
    _limit_height(axes, [case.stationary.simulated.mean, *(report.formula(name) for name in ("theorem1",))])
    label_ends(axes, [label for label in labels if label[0] <= axes.get_ylim()[1]])


def _draw_curve(axes: Axes, report: StressReport) -> None:
    """E[X] at the largest P over a swept key, with a mark where each formula breaks."""
    axis = report.axes[0]
    x = axis.scaled(axis.values)
    labels = []
    for name in report.formulas:
        labels += _formula(axes, x, report.formula(name)[:, -1], f"{name} ({kind_of(name, iid=True)})", name)
    own = report.stack(
        lambda case: case.stationary.theory.get("annealed_markov", np.full(report.P.size, np.nan))
    )
    if np.isfinite(own[:, -1]).any():
        labels += _formula(axes, x, own[:, -1], "annealed_markov (upper)", "annealed_markov", dashed=True)
    marker = "o" if x.size <= 40 else ""
    surrogate = Simulated(report.surrogate[:, -1], report.surrogate_stderr[:, -1], 0)
    labels += _simulated(axes, x, surrogate, "i.i.d. surrogate", _SURROGATE, marker)
    process = Simulated(report.mean[:, -1], report.stderr[:, -1], 0)
    labels += _simulated(axes, x, process, "process", _PROCESS, marker)
    _mark_breaks(axes, report, x, process.mean)
    axes.set_title(f"{_title(report)}, P={report.P[-1]}", fontsize=9.5, loc="left", parse_math=False)
    axes.set_ylabel(_TOKENS)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(bottom=0.0)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    _ticks(axes, axis, "x")
    label_ends(axes, labels)


def _mark_breaks(axes: Axes, report: StressReport, x: Floats, mean: Floats) -> None:
    for found in report.breaks:
        if report.P[-1] == found.P and math.isfinite(found.below) and kind_of(found.formula) == "upper":
            at = float(report.axes[0].scaled(found.value))
            axes.plot(
                at,
                np.interp(at, x, mean),
                marker="o",
                markersize=7.5,
                markerfacecolor="white",
                markeredgecolor=colour_of(found.formula),
                markeredgewidth=1.6,
                zorder=7,
            )


def _draw_map(axes: Axes, report: StressReport) -> None:
    """The ratio over two swept keys at the largest P, with the lines beyond which formulas are broken."""
    from matplotlib.colors import LogNorm

    first, second = report.axes
    x, y = first.scaled(first.values), second.scaled(second.values)
    ratio = report.ratio[..., -1].T
    low, high = min(1.0, float(ratio.min())), max(1.05, float(ratio.max()))
    colours = axes.pcolormesh(_edges(x), _edges(y), ratio, cmap="YlGnBu", norm=LogNorm(low, high))
    bar = axes.figure.colorbar(colours, ax=axes, pad=0.02)
    bar.set_label("E[X], process over i.i.d. surrogate")
    bar.outline.set_linewidth(0.5)
    shown = [value for value in _RATIOS if low <= value <= high]
    bar.set_ticks(shown, labels=[f"{value:g}" for value in shown])
    bar.minorticks_off()
    handles = [
        handle for name in _MAP_FORMULAS if (handle := _boundary(axes, report, name, x, y)) is not None
    ]
    if handles:
        axes.legend(
            handles=handles,
            loc="lower left",
            title="broken right of the line:",
            alignment="left",
            frameon=False,
        )
    axes.set_title(f"{_title(report)}, P={report.P[-1]}", fontsize=9.5, loc="left", parse_math=False)
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])
    _ticks(axes, first, "x")
    _ticks(axes, second, "y")


def _boundary(axes: Axes, report: StressReport, name: str, x: Floats, y: Floats) -> Any:
    """The line on which the process meets a formula; None where it does nowhere."""
    from matplotlib.lines import Line2D

    if name not in report.formulas:
        return None
    excess = np.nan_to_num(report.excess(name)[..., -1].T, nan=-np.inf)
    finite = np.where(
        np.isfinite(excess), excess, min(-1.0, float(np.min(excess[np.isfinite(excess)], initial=0.0)))
    )
    if not (finite.min() < 0.0 < finite.max()):
        return None
    colour = {"renewal": "black", "leaf_count": "#CC79A7"}.get(name, colour_of(name))
    axes.contour(x, y, finite, levels=[0.0], colors=[colour], linewidths=1.8)
    return Line2D([], [], color=colour, linewidth=1.8, label=f"{name} ({kind_of(name, iid=True)})")


def _edges(centres: Floats) -> Floats:
    """Boundaries of cells around increasing points: half way between them, the outer ones cut off."""
    return np.concatenate([centres[:1], 0.5 * (centres[1:] + centres[:-1]), centres[-1:]])


def _formula(
    axes: Axes, x: NDArray[Any], values: Floats, text: str, name: str, dashed: bool = False
) -> list[_Label]:
    """Draw a formula's curve; its label, if it reaches the right end."""
    colour = colour_of(name)
    line = LINES[kind_of(name)]
    axes.plot(
        x, values, linestyle=(0, (6, 2)) if dashed and line == "-" else line, color=colour, linewidth=1.3
    )
    return [(float(values[-1]), text, colour)] if np.isfinite(values[-1]) else []


def _simulated(
    axes: Axes, x: NDArray[Any], found: Simulated, text: str, colour: str, marker: str | None = None
) -> list[_Label]:
    """Draw a simulated curve with a band of two standard errors; its label."""
    if marker is None:
        marker = "o" if x.size <= 20 else ""
    axes.plot(x, found.mean, color=colour, linewidth=2.0, marker=marker, markersize=4.0, zorder=5)
    low, high = found.mean - 2.0 * found.stderr, found.mean + 2.0 * found.stderr
    axes.fill_between(x, low, high, color=colour, alpha=0.22, linewidth=0, zorder=5)
    return [(float(found.mean[-1]), text, colour)]


def _limit_height(axes: Axes, curves: Sequence[Floats]) -> None:
    """Let the process and ``theorem1`` fill the height, not an estimate far outside its reach."""
    top = max((float(np.nanmax(curve)) for curve in curves if np.isfinite(curve).any()), default=1.0)
    axes.set_ylim(0.0, 1.06 * top)


def _ticks(axes: Axes, axis: Axis, side: str) -> None:
    """Round values at their places on the key's scale."""
    target = axes.xaxis if side == "x" else axes.yaxis
    target.set_label_text({"spread": "spread of the entropies, high - low (nats)"}.get(axis.key, axis.key))
    if axis.key in _TICKS:
        shown = _far_apart(axis, [v for v in _TICKS[axis.key] if axis.values[0] <= v <= axis.values[-1]])
        target.set_ticks(axis.scaled(shown).tolist(), [f"{value:g}" for value in shown])


def _far_apart(axis: Axis, wanted: list[float]) -> list[float]:
    """The values that have room beside those before them."""
    first, last = axis.scaled([axis.values[0], axis.values[-1]]).tolist()
    kept: list[float] = []
    for value in wanted:
        distances = np.abs(axis.scaled(kept) - axis.scaled(value)) if kept else np.array([np.inf])
        if distances.min() >= _TICK_DISTANCE * (last - first):
            kept.append(value)
    return sorted(kept)


def _title(report: StressReport) -> str:
    spec = json.loads(report.process_json)
    keys = ",".join(f"{key}={json.dumps(value)}" for key, value in spec.items() if key != "name")
    text = f"{spec['name']}:{keys}" if keys else str(spec["name"])
    return text if len(text) <= 70 else text[:67] + "..."
