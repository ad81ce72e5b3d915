"""What goes wrong with benchmarks, said in one sentence."""

from __future__ import annotations

import click


class BenchmarkError(click.ClickException):
    """A measurement that cannot be made or trusted."""

    exit_code = 1


class BadFile(click.ClickException):
    """A results file that cannot be read, or is not one."""

    exit_code = 2
