"""The history as a picture: each quantity's median relative to its first, section by section."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.record import Record


def plot(records: Sequence[Record], path: Path) -> bool:
    """Draw into ``path`` (PNG, SVG, ... by its suffix); False where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    names = [name for name, measured in records[-1].measurements.items() if measured.better]
    sections = list(dict.fromkeys(name.split("/")[0] for name in names)) or [""]
    figure = Figure(figsize=(9, 2.4 * len(sections)), layout="constrained")
    all_axes = figure.subplots(len(sections), 1, sharex=True, squeeze=False)[:, 0]
    for section, axes in zip(sections, all_axes, strict=True):
        for name in (name for name in names if name.split("/")[0] == section):
            runs = [(i, r.measurements[name]) for i, r in enumerate(records) if name in r.measurements]
            first = runs[0][1].median
            worse = [m.median / first if m.better == "lower" else first / m.median for _, m in runs]
            axes.plot([i for i, _ in runs], worse, marker=".", linewidth=0.8)
        axes.axhline(1.0, color="grey", linewidth=0.5)
        axes.set_yscale("log")
        axes.set_ylabel("times slower")
        axes.set_title(section, loc="left", fontsize="medium")
    all_axes[-1].set_xticks(range(len(records)), [r.date[:10] for r in records], rotation=45, ha="right")
    figure.savefig(path)
    return True
