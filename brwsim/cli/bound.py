"""``brwsim bound``."""

from __future__ import annotations

from typing import Any

import click

from brwsim.cli.options import grid_option, json_option, print_data

DEFAULT_GRID = "1,2,4,8,16,32,64,128,256,512,1024,2048,4096"

_EXAMPLES = """\b
Examples:
  brwsim bound --mu 0.683 --mu2 1.2
  brwsim bound --dist dirichlet --P 1..4096 --json
"""


@click.command(epilog=_EXAMPLES)
@click.option("--mu", type=float, help="Expected entropy, nats.")
@click.option("--mu2", type=float, help="Expected second log-moment, nats squared.")
@click.option(
    "--vocab-size", "--vocab", "vocab", type=int, metavar="N", help="Number of children of a node, if finite."
)
@click.option(
    "--dist", metavar="NAME[:KEY=VALUE,...]", help="A law, instead of --mu and --mu2; it allows more bounds."
)
@grid_option(DEFAULT_GRID, "Tree capacities, root included")
@json_option
def bound(
    mu: float | None, mu2: float | None, vocab: int | None, dist: str | None, grid: str, as_json: bool
) -> None:
    """Compute the bounds from moments, without simulating."""
    from brwsim.parse import parse_grid
    from brwsim.report.tables import bound_table

    facts = _facts(mu, mu2, vocab, dist)
    print_data(bound_table(parse_grid(grid), facts), as_json)


def _facts(mu: float | None, mu2: float | None, vocab: int | None, dist: str | None) -> dict[str, Any]:
    context = click.get_current_context()
    if dist is None:
        if mu is None or mu2 is None:
            raise click.UsageError("give --mu and --mu2, or --dist", context)
        return {"mu": mu, "mu2": mu2, "vocab": vocab}
    if (mu, mu2, vocab) != (None, None, None):
        raise click.UsageError("give either --dist or --mu, --mu2 and --vocab-size, not both", context)
    from brwsim.parse import parse_dist
    from brwsim.process import process_from_spec

    return process_from_spec(parse_dist(dist)).facts()
