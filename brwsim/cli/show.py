"""``brwsim show``."""

from __future__ import annotations

from pathlib import Path

import click

from brwsim.cli.options import json_option, print_data, result_argument


@click.command
@result_argument
@json_option
def show(file: Path, as_json: bool) -> None:
    """Print a result: E[X] beside the bounds."""
    from brwsim.results.store import load

    print_data(load(file), as_json)
