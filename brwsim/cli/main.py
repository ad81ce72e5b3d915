"""``brwsim``: the group of commands, and what an error looks like and exits with."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from brwsim.errors import BrwsimError, FileError
from brwsim.version import __version__

COMMANDS = ("sweep", "stress", "show", "compare", "plot", "merge", "bound", "profile", "doctor")
"""In the order one would use them; each lives in the module of its name."""

INTERRUPTED = 130

_EPILOG = """\b
Exit codes:
    0  success
    1  out of memory, or the reader of a pipe went away
    2  a wrong option or value
    3  a proved bound is violated (compare --fail-on-violation)
    4  the asked-for device cannot do the work
    5  a file cannot be read or written, or is not what it should be
  130  interrupted
"""


class CommandLine(click.Group):
    """Commands imported when they are used; errors as one line on stderr, never a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's module."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"brwsim.cli.{cmd_name}"), cmd_name)
        return command

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run, then exit with the documented code."""
        kwargs["standalone_mode"] = False
        sys.exit(self._run(*args, **kwargs))

    def _run(self, *args: Any, **kwargs: Any) -> int:
        try:
            code = super().main(*args, **kwargs)
            return code if isinstance(code, int) else 0
        except click.UsageError as error:
            return _fail(_in_our_style(error) + _see_help(error), error.exit_code)
        except click.ClickException as error:
            return _fail(_in_our_style(error), error.exit_code)
        except click.Abort as error:
            return _say(f"brwsim: interrupted{f'; {error}' if str(error) else ''}", INTERRUPTED)
        except BrwsimError as error:
            return _fail(str(error), error.exit_code)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            return _fail(f"{where}{error.strerror or error}", FileError.exit_code)
        except MemoryError:
            return _fail("not enough memory; ask for a smaller largest P or fewer threads", 1)


def _in_our_style(error: click.ClickException) -> str:
    """Click's own sentences as ours are: no capital at the start, no full stop at the end."""
    message = error.format_message().removesuffix(".")
    return message[:1].lower() + message[1:]


def _see_help(error: click.UsageError) -> str:
    return f" (see {error.ctx.command_path} --help)" if error.ctx else ""


def _fail(message: str, code: int) -> int:
    return _say(f"brwsim: error: {message}", code)


def _say(message: str, code: int) -> int:
    click.echo(" ".join(message.split("\n")), err=True)
    return code


@click.group(cls=CommandLine, invoke_without_command=True, epilog=_EPILOG)
@click.version_option(__version__, message="brwsim %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """How many tokens can a speculative decoder expect per verifier call?

    brwsim simulates the best draft tree of P nodes and sets it beside closed-form bounds.
    Start with: brwsim sweep --out run.h5
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
