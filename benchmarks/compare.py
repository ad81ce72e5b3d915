#!/usr/bin/env python3
"""What got slower, and what faster, between two files of results.

    python -m benchmarks compare OLD NEW [--threshold 1.15]      (or: benchmarks/compare.py OLD NEW)

Of every quantity in both files: how many times worse its median is in NEW, with a 95 % bootstrap interval
(each run's samples resampled with replacement, medians divided). It is *slower* when that ratio exceeds the
threshold and the whole interval lies above 1; *faster* the other way round; *same* otherwise. A single
sample has no spread of its own, only the threshold then speaks. Exit code: 0 nothing is slower, 1 something
is, 2 a file cannot be read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click
import numpy as np
from numpy.typing import NDArray

if not __package__:  # run as a script: Python knows this folder, not the one that holds the package
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.measure import Measurement
from benchmarks.record import Record, load

Verdict = Literal["slower", "faster", "same"]
DEFAULT_THRESHOLD = 1.15
_RESAMPLES = 4000


@dataclass(frozen=True)
class Change:
    """How many times worse one quantity became: ``ratio`` of medians, within ``low`` to ``high``."""

    name: str
    ratio: float
    low: float
    high: float
    verdict: Verdict


def changes(old: Record, new: Record, threshold: float = DEFAULT_THRESHOLD) -> list[Change]:
    """The changes of all judged quantities that both records hold in the same unit, worst first."""
    found = [
        _change(before, after, threshold)
        for name, after in new.measurements.items()
        if (before := old.measurements.get(name)) and before.unit == after.unit and after.better
    ]
    return sorted(found, key=lambda change: -change.ratio)


def _change(old: Measurement, new: Measurement, threshold: float) -> Change:
    before, after = np.array(old.samples), np.array(new.samples)
    worse, better = (after, before) if new.better == "lower" else (before, after)
    ratio = float(np.median(worse) / np.median(better))
    rng = np.random.default_rng(0)
    low, high = np.quantile(_resampled(worse, rng) / _resampled(better, rng), [0.025, 0.975])
    verdict: Verdict = "same"
    if ratio > threshold and low > 1.0:
        verdict = "slower"
    elif ratio < 1.0 / threshold and high < 1.0:
        verdict = "faster"
    return Change(new.name, ratio, float(low), float(high), verdict)


def _resampled(samples: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Medians of bootstrap resamples."""
    picked = samples[rng.integers(samples.size, size=(_RESAMPLES, samples.size))]
    return np.asarray(np.median(picked, axis=1))


def report(found: Sequence[Change], is_full: bool = False) -> str:
    """One line for each change, and a count; what stayed the same only when asked for."""
    shown = [change for change in found if is_full or change.verdict != "same"]
    width = max((len(change.name) for change in shown), default=0)
    lines = [
        f"{change.verdict:6}  {change.name:{width}}  x{change.ratio:.3f}  ({change.low:.3f} to {change.high:.3f})"
        for change in shown
    ]
    counts = [sum(change.verdict == verdict for change in found) for verdict in ("slower", "faster", "same")]
    return "\n".join([*lines, "{} slower, {} faster, {} the same".format(*counts)])


def differences(old: Record, new: Record) -> Iterable[str]:
    """Reasons why the two records may not be comparable."""
    for what, before, after in (
        ("processor", old.machine.get("cpu"), new.machine.get("cpu")),
        ("number of cores", old.machine.get("cores"), new.machine.get("cores")),
        ("Python", old.versions.get("python"), new.versions.get("python")),
        ("size of run", old.scale, new.scale),
    ):
        if before != after:
            yield f"warning: another {what}: {before}, now {after}"


@click.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--threshold",
    type=click.FloatRange(min=1.0),
    default=DEFAULT_THRESHOLD,
    show_default=True,
    help="Smallest ratio of medians that counts.",
)
@click.option("--all", "is_full", is_flag=True, help="Also list what stayed the same.")
def compare(old: Path, new: Path, threshold: float, is_full: bool) -> None:
    """Say what got slower or faster from OLD to NEW; exit 1 when something got slower."""
    before, after = load(old), load(new)
    for warning in differences(before, after):
        click.echo(warning, err=True)
    found = changes(before, after, threshold)
    click.echo(report(found, is_full))
    sys.exit(1 if any(change.verdict == "slower" for change in found) else 0)


if __name__ == "__main__":
    compare()
