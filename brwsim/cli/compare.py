"""``brwsim compare``."""

from __future__ import annotations

from pathlib import Path

import click

from brwsim.cli.options import grid_option, json_option, print_data, result_argument


@click.command
@result_argument
@grid_option(None, "Only these P, out of the result's")
@click.option("--fail-on-violation", is_flag=True, help="Exit with 3 when a mean breaks a proved bound.")
@json_option
def compare(file: Path, grid: str | None, fail_on_violation: bool, as_json: bool) -> None:
    """Hold a result against every bound: value, gap and ratio.

    A proved bound counts as violated when the mean lies beyond it by more than 4 standard errors, or at
    all where the mean is exact. Every P of the result is checked, also those the table leaves out.
    """
    from brwsim.errors import BoundViolation
    from brwsim.report.compare import compare as compare_result
    from brwsim.results.store import load

    comparison = compare_result(load(file), grid)
    print_data(comparison, as_json)
    if fail_on_violation and comparison.violations:
        raise BoundViolation(comparison.summary())
