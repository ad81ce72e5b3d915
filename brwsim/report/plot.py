"""The figure of a sweep: E[X] with its error band against every bound."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import InvalidInput
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
from brwsim.report.tables import informative, process_name
from brwsim.theory.bounds import Bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from brwsim.results.result import Result

Floats = NDArray[np.float64]

_POINTS = 240


def plot(result: Result, path: str | Path | None = None, bounds: Iterable[str] | None = None) -> Figure:
    """Draw E[X] with a band of two standard errors against the bounds, over log P.

    Parameters
    ----------
    result : Result
        From ``sweep`` or ``load``.
    path : path, optional
        Also write the figure there; the suffix says how: ``.png``, ``.svg`` or ``.pdf``.
    bounds : iterable of str, optional
        Names of the bounds to draw; if not given, all that apply but leading terms.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    InvalidInput
        For an unknown bound or suffix, or without matplotlib.
    FileError
        When ``path`` cannot be written.
    """
    target = None if path is None else _checked(Path(path), result)
    drawn = _chosen(result, bounds)
    with style():
        figure = _figure(result, drawn)
        if target is not None:
            write(figure, target)
    return figure


def _checked(path: Path, result: Result) -> Path:
    """The path, if a figure can be written there."""
    check_target(path)
    if result.path is not None and path.exists() and path.samefile(result.path):
        raise InvalidInput(f"{path} is the result itself; choose another name for the figure")
    return path


def _chosen(result: Result, names: Iterable[str] | None) -> list[Bound]:
    applying = {bound.name: bound for bound in result.bound_objects}
    if names is None:
        return [bound for bound in applying.values() if not bound.leading_term]
    wanted = list(names)
    for name in wanted:
        if name not in applying:
            raise InvalidInput(f"no bound {name!r} for this sweep; it has {', '.join(applying)}")
    return [applying[name] for name in wanted]


def _figure(result: Result, bounds: list[Bound]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    shown = _thinned(result.P)
    P = result.P[shown]
    values = result.bounds_in_domain()
    labels = []
    for bound in bounds:
        curve = informative(bound, values[bound.name], result.P)[shown]
        colour, line = colour_of(bound.name), LINES[bound.kind.removeprefix("iid-")]
        axes.plot(P, curve, linestyle=line, color=colour, linewidth=1.3, zorder=3)
        if np.isfinite(curve[-1]):
            labels.append((float(curve[-1]), f"{bound.name} ({bound.kind})", colour))
    labels.append((float(result.mean[-1]), _draw_mean(axes, result, shown), "black"))
    axes.set_title(process_name(result, 84), fontsize=9.5, loc="left", parse_math=False)
    axes.set_xlabel("tree capacity P (nodes per verifier call, root included)")
    axes.set_ylabel("expected tokens per verifier call, E[X]")
    scale_capacity(axes, P)
    label_ends(axes, labels)
    return figure


def _draw_mean(axes: Axes, result: Result, shown: NDArray[np.intp]) -> str:
    """Draw the simulated curve; returns its label."""
    P, mean, stderr = result.P[shown], result.mean[shown], result.stderr[shown]
    marker = "o" if P.size <= 20 else ""
    axes.plot(P, mean, color="black", linewidth=2.2, marker=marker, markersize=4.5)
    if not np.any(stderr > 0.0):
        return "E[X], exact"
    axes.fill_between(P, mean - 2 * stderr, mean + 2 * stderr, color="black", alpha=0.22, linewidth=0)
    return "E[X] \N{PLUS-MINUS SIGN} 2 s.e."


def _thinned(P: NDArray[np.int64]) -> NDArray[np.intp]:
    """Indices of at most a few hundred points, evenly spread over log P."""
    if P.size <= _POINTS:
        return np.arange(P.size)
    return np.unique(np.searchsorted(P, np.geomspace(P[0], P[-1], _POINTS).round(6)).clip(max=P.size - 1))
