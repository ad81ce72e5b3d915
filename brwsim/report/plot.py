"""The figure of a sweep: E[X] with its error band against every bound."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import FileError, InvalidInput
from brwsim.report.tables import informative, process_name
from brwsim.theory.bounds import BOUNDS, Bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from brwsim.results.result import Result

Floats = NDArray[np.float64]

# What keeps two renderings of the same figure equal, byte for byte.
_METADATA: dict[str, dict[str, Any]] = {
    ".png": {"Software": "brwsim"},
    ".svg": {"Date": None, "Creator": "brwsim"},
    ".pdf": {"CreationDate": None, "Creator": "brwsim"},
}
_STYLE: Any = {
    "font.size": 9.0,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "brwsim",
    "pdf.fonttype": 42,
}
_LINES: dict[str, Any] = {"upper": "-", "lower": (0, (5, 2)), "estimate": (0, (1, 1.4))}
# Okabe & Ito's colours, which the colour-blind can tell apart, less the yellow; two darker ones added.
_COLOURS = ("#D55E00", "#8C6BB1", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#44729D", "#E69F00")
_POINTS = 240
_SIZE = (6.6, 4.0)  # inches: the width of a page of text
_LABEL_HEIGHT = 0.042  # of the axes


def plot(result: Result, path: str | Path | None = None, bounds: Iterable[str] | None = None) -> Figure:
    """Draw E[X] with a band of two standard errors against the bounds, over log P.

    Parameters
    ----------
    result : Result
        From ``sweep`` or ``load``.
    path : path, optional
        Also write the figure there; the suffix says how: ``.png``, ``.svg`` or ``.pdf``.
    bounds : iterable of str, optional
        Names of the bounds to draw; all that apply if not given.

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
    with _style():
        figure = _figure(result, drawn)
        if target is not None:
            _write(figure, target)
    return figure


@contextmanager
def _style() -> Iterator[None]:
    try:
        import matplotlib
    except ImportError:
        raise InvalidInput("plots need matplotlib: pip install 'brwsim[plot]'") from None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a person's own settings do not change the figure
        matplotlib.rcParams.update(_STYLE)
        yield


def _checked(path: Path, result: Result) -> Path:
    """The path, if a figure can be written there."""
    if path.suffix.lower() not in _METADATA:
        raise InvalidInput(f"{path}: a figure's name ends in one of {', '.join(_METADATA)}")
    if path.is_dir():
        raise FileError(f"{path} is a directory; give a file name")
    if not path.parent.is_dir():
        raise FileError(f"the folder {path.parent} does not exist; create it first")
    if result.path is not None and path.exists() and path.samefile(result.path):
        raise InvalidInput(f"{path} is the result itself; choose another name for the figure")
    return path


def _chosen(result: Result, names: Iterable[str] | None) -> list[Bound]:
    applying = {bound.name: bound for bound in result.bound_objects}
    if names is None:
        return list(applying.values())
    wanted = list(names)
    for name in wanted:
        if name not in applying:
            raise InvalidInput(f"no bound {name!r} for this sweep; it has {', '.join(applying)}")
    return [applying[name] for name in wanted]


def _figure(result: Result, bounds: list[Bound]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    shown = _thinned(result.P)
    P = result.P[shown]
    values = result.bounds_in_domain()
    labels = []
    for bound in bounds:
        curve = informative(bound, values[bound.name], result.P)[shown]
        colour = _COLOURS[list(BOUNDS).index(bound.name.removesuffix("_markov")) % len(_COLOURS)]
        axes.plot(
            P, curve, linestyle=_LINES[bound.kind.removeprefix("iid-")], color=colour, linewidth=1.3, zorder=3
        )
        if np.isfinite(curve[-1]):
            labels.append((float(curve[-1]), f"{bound.name} ({bound.kind})", colour))
    labels.append((float(result.mean[-1]), _draw_mean(axes, result, shown), "black"))
    axes.set_title(process_name(result, 84), fontsize=9.5, loc="left", parse_math=False)
    axes.set_xlabel("tree capacity P (nodes per verifier call, root included)")
    axes.set_ylabel("expected tokens per verifier call, E[X]")
    _scale(axes, P)
    _label_ends(axes, labels)
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


def _scale(axes: Axes, P: NDArray[np.int64]) -> None:
    from matplotlib.ticker import FixedLocator, LogLocator, NullLocator, StrMethodFormatter

    axes.set_xscale("log")
    if P.size == 1:
        axes.xaxis.set_major_locator(FixedLocator([int(P[0])]))
    else:
        axes.set_xlim(P[0], P[-1])
        octaves = np.log2(P[-1] / P[0])
        base = next(base for base in (2, 4, 16, 64) if octaves / np.log2(base) <= 8 or base == 64)
        axes.xaxis.set_major_locator(LogLocator(base=base))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
    axes.set_ylim(bottom=0.0)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def _label_ends(axes: Axes, labels: list[tuple[float, str, str]]) -> None:
    """Name every curve at its right end, moved apart where the ends are close."""
    labels = sorted(labels)
    top = axes.get_ylim()[1]
    ends = np.array([value for value, _, _ in labels]) / top
    for end, place, (_, text, colour) in zip(ends, _apart(ends, _LABEL_HEIGHT), labels, strict=True):
        axes.plot(
            [1.005, 1.03], [end, place], color=colour, linewidth=0.6, transform=axes.transAxes, clip_on=False
        )
        weight = "bold" if colour == "black" else "normal"
        axes.text(
            1.035,
            place,
            text,
            color=colour,
            fontsize=8.5,
            fontweight=weight,
            va="center",
            transform=axes.transAxes,
        )


def _apart(ends: Floats, gap: float) -> Floats:
    """The places nearest to increasing ``ends`` that are at least ``gap`` apart: averages of clusters."""
    clusters: list[list[float]] = []
    for end in ends - gap * np.arange(ends.size):  # in these terms: non-decreasing places
        clusters.append([float(end)])
        while len(clusters) > 1 and np.mean(clusters[-2]) > np.mean(clusters[-1]):
            last = clusters.pop()
            clusters[-1] += last
    places = np.concatenate([np.full(len(cluster), np.mean(cluster)) for cluster in clusters])
    return np.asarray(places + gap * np.arange(ends.size), dtype=np.float64)


def _write(figure: Figure, path: Path) -> None:
    suffix = path.suffix.lower()
    buffer = io.BytesIO()
    figure.savefig(buffer, format=suffix[1:], dpi=200, metadata=_METADATA[suffix])
    try:
        path.write_bytes(buffer.getvalue())
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from error
