"""``brwsim sweep``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from brwsim.cli.options import PATH, grid_option, json_option, print_data, program
from brwsim.cli.progress import shown_progress

DEFAULT_DIST = "dirichlet"

_EXAMPLES = """\b
Examples:
  brwsim sweep --out run.h5
  brwsim sweep --P 16,64,256 --dist dirichlet:vocab=50,alpha=0.02 --trees 2000
  brwsim sweep --P 1..1024@64 --dist 'table:p=[0.6,0.25,0.1,0.05]'
  brwsim sweep --dist 'mixture:laws=["uniform:vocab=4","dirichlet:entropy=0.5"],weights=[0.2,0.8]'
"""


class SweepCommand(click.Command):
    """Lists the laws below its help; they are imported only then."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one entry for every law: its keys, then what it is."""
        from brwsim.cli.laws import law_entries

        with formatter.section("Laws for --dist, with their keys and defaults; of (a | b) give one side"):
            formatter.write_dl(law_entries(), col_max=20)
        super().format_epilog(ctx, formatter)


@click.command(cls=SweepCommand, epilog=_EXAMPLES)
@grid_option("1..4096", "Tree capacities, root included")
@click.option(
    "--dist",
    metavar="NAME[:KEY=VALUE,...]",
    help=f"The law of a node's children; values are JSON. Listed below.  [default: {DEFAULT_DIST}]",
)
@click.option(
    "--spec",
    type=PATH,
    metavar="FILE.toml",
    help="The law as a TOML file (name and keys), instead of --dist.",
)
@click.option("--trees", type=int, metavar="N", help="Grow N trees.")
@click.option(
    "--rel-err",
    type=float,
    metavar="R",
    help="Grow trees until every relative standard error is at most R.  [default: 0.001]",
)
@click.option("--seed", type=int, default=0, show_default=True, help="0 to 2^64 - 1.")
@click.option("--threads", type=int, metavar="N", help="Worker threads.  [default: all processors]")
@click.option(
    "--backend",
    type=click.Choice(["cpu", "cuda", "auto"]),
    default="cpu",
    show_default=True,
    help="Processors, an NVIDIA GPU, or a GPU where there is one and it pays.",
)
@click.option("--device", type=int, default=0, metavar="N", help="Which GPU, from 0.  [default: 0]")
@click.option(
    "--estimator",
    type=click.Choice(["control", "crude"]),
    default="control",
    show_default=True,
    help="With or without the entropy control variate.",
)
@click.option(
    "--out", type=PATH, metavar="FILE", help="Keep the result in this HDF5 file; run again to go on."
)
@json_option
def sweep(
    grid: str,
    dist: str | None,
    spec: Path | None,
    trees: int | None,
    rel_err: float | None,
    seed: int,
    threads: int | None,
    backend: str,
    device: int,
    estimator: Any,
    out: Path | None,
    as_json: bool,
) -> None:
    """Simulate E[X], the expected tokens per verifier call, at every P.

    The same seed gives the same answer to the last bit, for any number of threads. Killed? Run the same
    command again: what is in --out is kept, and a finished sweep is not repeated.
    """
    process = _process(dist, spec)

    from brwsim.engine.backend import resolve
    from brwsim.simulate import sweep as run_sweep

    if note := resolve(backend, device).note:
        click.echo(f"brwsim: {note}", err=True)
        backend, device = "cpu", 0
    try:
        with shown_progress(seed, out) as report:
            result = run_sweep(
                process,
                grid,
                trees=trees,
                rel_err=rel_err,
                seed=seed,
                estimator=estimator,
                threads=threads,
                backend=backend,
                device=device,
                out=out,
                progress=report,
            )
    except KeyboardInterrupt:
        raise click.Abort(_kept(out)) from None
    print_data(result, as_json)
    click.echo(_next_steps(out), err=True)


def _process(dist: str | None, spec: Path | None) -> str | Mapping[str, Any]:
    if spec is None:
        return DEFAULT_DIST if dist is None else dist
    if dist is not None:
        raise click.UsageError("give either --dist or --spec, not both", click.get_current_context())
    return _read_toml(spec)


def _read_toml(path: Path) -> Mapping[str, Any]:
    import tomllib

    from brwsim.errors import FileError

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FileError(f"{path} is not a TOML file: {error}") from None


def _kept(out: Path | None) -> str:
    if out is None:
        return "nothing was kept; with --out FILE, what is done is kept and the next run goes on from there"
    if not out.exists():
        return f"nothing was finished yet, so {out} was not written"
    from brwsim.results.store import load

    return f"{load(out).trees} trees are kept in {out}; run the same command again to go on"


def _next_steps(out: Path | None) -> str:
    if out is None:
        return "\nnot kept: add --out run.h5 to keep, compare and plot the result"
    steps = ["compare", "plot"] if find_spec("matplotlib") else ["compare"]
    lines = [f"{program()} {step} {out}" for step in steps]
    return f"\nresult in {out}\nnext: " + "\n      ".join(lines)
