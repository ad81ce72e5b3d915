"""``brwsim doctor``."""

from __future__ import annotations

import click

from brwsim.cli.options import json_option, print_data


@click.command
@json_option
def doctor(as_json: bool) -> None:
    """Tell what is installed and what a sweep will use."""
    from brwsim.report.installation import installation

    print_data(installation(), as_json)
