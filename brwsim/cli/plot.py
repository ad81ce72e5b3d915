"""``brwsim plot``."""

from __future__ import annotations

from pathlib import Path

import click

from brwsim.cli.options import PATH, result_argument


@click.command
@result_argument
@click.option(
    "--out", type=PATH, metavar="FIGURE", help="A .png, .svg or .pdf file.  [default: FILE with .png]"
)
def plot(file: Path, out: Path | None) -> None:
    """Draw E[X] with its error band against every bound."""
    from brwsim.report.plot import plot as plot_result
    from brwsim.results.store import load

    target = file.with_suffix(".png") if out is None else out
    plot_result(load(file), target)
    click.echo(f"figure in {target}", err=True)
