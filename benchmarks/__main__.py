"""How fast brwsim is, in one command from the root of the repository:

    python -m benchmarks run [--quick] [--out FILE.json] [--only SECTION]

``table FILE`` prints a kept file as Markdown; ``compare OLD NEW`` says what got slower; ``nightly
--history DIR`` measures, keeps, judges against the last runs and plots the trend.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks import suite
from benchmarks.compare import compare
from benchmarks.nightly import nightly
from benchmarks.record import load
from benchmarks.scale import FULL, QUICK
from benchmarks.table import markdown


@click.group()
def main() -> None:
    """Measure how fast brwsim is on this machine, and watch it."""


@main.command()
@click.option("--quick", is_flag=True, help="Small sizes, rough figures, a minute or two.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE.json", help="Keep all samples in FILE.")
@click.option(
    "--only", multiple=True, type=click.Choice(list(suite.SECTIONS)), help="This section; repeatable."
)
def run(quick: bool, out: Path | None, only: Sequence[str]) -> None:
    """Measure, print tables, and keep the results.

    On a quiet machine: everything is timed on one core or two, and in turn with what it is compared to.
    """
    record = suite.run(QUICK if quick else FULL, only, lambda line: click.echo(line, err=True))
    if out is not None:
        record.save(out)
    click.echo(markdown(record))


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
def table(file: Path) -> None:
    """Print a results FILE as Markdown tables."""
    click.echo(markdown(load(file)))


main.add_command(compare)
main.add_command(nightly)

if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
