"""The nightly run: measure, keep, compare with the last runs on the same machine, plot the trend."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks import history, suite, trend
from benchmarks.compare import DEFAULT_THRESHOLD, report
from benchmarks.errors import BadFile
from benchmarks.record import Record
from benchmarks.scale import FULL, QUICK


@click.command()
@click.option(
    "--history",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder of all runs; made if missing.",
)
@click.option("--quick", is_flag=True, help="Small sizes; judged against quick runs only.")
@click.option(
    "--only", multiple=True, type=click.Choice(list(suite.SECTIONS)), help="This section; repeatable."
)
@click.option("--threshold", type=click.FloatRange(min=1.0), default=DEFAULT_THRESHOLD, show_default=True)
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="[default: DIR/trend.png]")
@click.option("--no-run", is_flag=True, help="Measure nothing, judge the newest run again.")
def nightly(
    folder: Path, quick: bool, only: Sequence[str], threshold: float, plot: Path | None, no_run: bool
) -> None:
    """Measure and judge; exit 1 on a slowdown that the previous run showed as well.

    A run is compared with the median of the last five on the same processor, cores and Python.
    """
    if not no_run:
        record = suite.run(QUICK if quick else FULL, only, lambda line: click.echo(line, err=True))
        click.echo(f"kept in {history.append(folder, record)}")
    if not any(folder.glob("*.json")):
        raise BadFile(f"{folder} holds no runs")
    records = history.comparable_to_newest(folder)
    _draw(records, plot or folder / "trend.png")
    sys.exit(judge(records, threshold))


def judge(records: Sequence[Record], threshold: float) -> int:
    """Print the verdicts on the last record; the exit code."""
    if len(records) == 1:
        click.echo("the first run of its kind: nothing to compare it with")
        return 0
    click.echo(f"against the median of the last {min(len(records) - 1, history.WINDOW)} runs:")
    click.echo(report(history.judged(records, threshold)))
    twice = history.confirmed(records, threshold)
    for change in twice:
        click.echo(f"slower twice in a row: {change.name}, {change.ratio:.2f} times")
    return 1 if twice else 0


def _draw(records: Sequence[Record], path: Path) -> None:
    try:
        if not trend.plot(records, path):
            click.echo("no trend drawn: matplotlib is not installed", err=True)
    except (OSError, ValueError) as error:
        raise BadFile(f"{path} cannot be drawn: {error}") from None
