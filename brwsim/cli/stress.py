"""``brwsim stress``."""

from __future__ import annotations

from pathlib import Path

import click

from brwsim.cli.options import PATH, grid_option, json_option, print_data
from brwsim.cli.progress import shown_progress

DEFAULT_DIST = "markov"
DEFAULT_GRID = "1..1024@11"

_EXAMPLES = """\b
Examples:
  brwsim stress --dist markov:low=0.2,high=1.166,persistence=0.9 --P 1..4096@13
  brwsim stress --dist markov --P 1024 --sweep persistence=0..0.999@12 --plot curve.png
  brwsim stress --dist markov --P 1024 --sweep persistence=0..0.999 --sweep spread=0..1.3 --plot map.png
  brwsim stress --dist ar1:levels=8 --P 64,256 --sweep rho=-0.9,0,0.9
"""


@click.command(epilog=_EXAMPLES)
@click.option(
    "--dist",
    metavar="NAME[:KEY=VALUE,...]",
    default=DEFAULT_DIST,
    help=f"A process with context, as for brwsim sweep.  [default: {DEFAULT_DIST}]",
)
@grid_option(DEFAULT_GRID, "Tree capacities, root included")
@click.option(
    "--sweep",
    "sweeps",
    metavar="KEY=VALUES",
    multiple=True,
    help="Vary a numeric key of the process: KEY=0..0.999 or KEY=0..0.999@24 (so many values) or KEY=0,0.5,0.9;"
    " twice for a map. spread is high - low at a fixed entropy rate.",
)
@click.option("--trees", type=int, metavar="N", help="Grow N trees in every simulation.")
@click.option(
    "--rel-err",
    type=float,
    metavar="R",
    help="Grow trees until every relative standard error is at most R.  [default: 0.003]",
)
@click.option("--seed", type=int, default=0, show_default=True, help="0 to 2^64 - 1.")
@click.option("--threads", type=int, metavar="N", help="Worker threads.  [default: all processors]")
@click.option("--out", type=PATH, metavar="FILE", help="Write everything to this HDF5 file at the end.")
@click.option("--plot", "figure", type=PATH, metavar="FIGURE", help="Draw a .png, .svg or .pdf file.")
@json_option
def stress(
    dist: str,
    grid: str,
    sweeps: tuple[str, ...],
    trees: int | None,
    rel_err: float | None,
    seed: int,
    threads: int | None,
    out: Path | None,
    figure: Path | None,
    as_json: bool,
) -> None:
    """Test what assuming independent laws does to E[X] when the laws depend on context.

    Simulates a process and its i.i.d. surrogate (the same laws in the same proportions, drawn independently
    at every node), sets the formulas for independent laws beside them and says where those break.
    """
    from brwsim.report.drawing import check_target
    from brwsim.results.store import check_writable
    from brwsim.stresstest.run import stress as run_stress

    if out is not None:
        check_writable(out)
    if figure is not None:
        check_target(figure)
    with shown_progress(seed) as report:
        found = run_stress(
            dist,
            grid,
            sweep=sweeps or None,
            trees=trees,
            rel_err=rel_err,
            seed=seed,
            threads=threads,
            progress=report,
        )
    if out is not None:
        found.save(out)
    if figure is not None:
        found.plot(figure)
    print_data(found, as_json)
    for what, path in (("report", out), ("figure", figure)):
        if path is not None:
            click.echo(f"{what} in {path}", err=True)
