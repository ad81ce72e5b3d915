"""What every figure shares: style, colours, labels at the ends of curves, and files that come out the same."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import FileError, InvalidInput, missing
from brwsim.theory.bounds import BOUNDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
LINES: dict[str, Any] = {"upper": "-", "lower": (0, (5, 2)), "estimate": (0, (1, 1.4))}
# Okabe & Ito's colours, which the colour-blind can tell apart, less the yellow; two darker ones added.
_COLOURS = ("#D55E00", "#8C6BB1", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#44729D", "#E69F00")
SIZE = (6.6, 4.0)  # inches: the width of a page of text
_LABEL_HEIGHT = 0.042  # of the axes


@contextmanager
def style() -> Iterator[None]:
    """The look of every figure, whatever a person's own settings are; raises InvalidInput without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        raise InvalidInput(f"figures need matplotlib; {missing('matplotlib', 'plot')}") from None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a person's own settings do not change the figure
        matplotlib.rcParams.update(_STYLE)
        yield


def check_target(path: Path) -> Path:
    """The path, if a figure can be written there."""
    if path.suffix.lower() not in _METADATA:
        raise InvalidInput(f"{path}: a figure's name ends in one of {', '.join(_METADATA)}")
    if path.is_dir():
        raise FileError(f"{path} is a directory; give a file name")
    if not path.parent.is_dir():
        raise FileError(f"the folder {path.parent} does not exist; create it first")
    return path


def colour_of(name: str) -> str:
    """A bound's colour, the same in every figure; its form for Markov chains shares it."""
    return _COLOURS[list(BOUNDS).index(name.removesuffix("_markov")) % len(_COLOURS)]


def scale_capacity(axes: Axes, P: NDArray[np.int64]) -> None:
    """A logarithmic axis of P with round numbers, and a light grid; the other axis starts at 0."""
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


def label_ends(axes: Axes, labels: list[tuple[float, str, str]]) -> None:
    """Name every curve at its right end, moved apart where the ends are close."""
    labels = sorted(labels)
    top = axes.get_ylim()[1]
    ends = np.array([value for value, _, _ in labels]) / top
    for end, place, (_, text, colour) in zip(ends, apart(ends, _LABEL_HEIGHT), labels, strict=True):
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


def apart(ends: Floats, gap: float) -> Floats:
    """The places nearest to increasing ``ends`` that are at least ``gap`` apart: averages of clusters."""
    clusters: list[list[float]] = []
    for end in ends - gap * np.arange(ends.size):  # in these terms: non-decreasing places
        clusters.append([float(end)])
        while len(clusters) > 1 and np.mean(clusters[-2]) > np.mean(clusters[-1]):
            last = clusters.pop()
            clusters[-1] += last
    places = np.concatenate([np.full(len(cluster), np.mean(cluster)) for cluster in clusters])
    return np.asarray(places + gap * np.arange(ends.size), dtype=np.float64)


def write(figure: Figure, path: Path) -> None:
    """Write the figure, the same bytes for the same figure; raises FileError where that fails."""
    suffix = path.suffix.lower()
    buffer = io.BytesIO()
    figure.savefig(buffer, format=suffix[1:], dpi=200, metadata=_METADATA[suffix])
    try:
        path.write_bytes(buffer.getvalue())
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from error
