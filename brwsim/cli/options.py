"""Options and arguments that several commands share, and the one way they print."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object instead of a table."
)
result_argument = click.argument("file", type=PATH)


class Printable(Protocol):
    """What commands print: a table as text, or JSON-ready data."""

    def __str__(self) -> str: ...

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON-ready data."""


def grid_option(default: str | None, help: str) -> Callable[[Command], Command]:
    """``--P GRID``; the grammar is the same everywhere."""
    grammar = "16,64,256 or 1..4096 or 1..4096:64 (step) or 1..4096@64 (log-spaced)"
    shown = f"  [default: {default}]" if default else ""
    return click.option("--P", "grid", metavar="GRID", default=default, help=f"{help}: {grammar}.{shown}")


def program() -> str:
    """How to start brwsim again: by its name, or as it was started where the shell would not find it."""
    import shutil

    started = Path(sys.argv[0])
    if started.parent.name == "brwsim" and started.name == "__main__.py":
        return "brwsim" if shutil.which("brwsim") else "python -m brwsim"
    if started.stem != "brwsim":  # called from Python
        return "brwsim"
    found = shutil.which("brwsim")
    return "brwsim" if found and started.exists() and started.samefile(found) else str(started)


def print_data(data: Printable, as_json: bool) -> None:
    """Print on stdout; characters the terminal does not know are escaped."""
    text = json.dumps(data.to_dict(), allow_nan=False) if as_json else str(data)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))
