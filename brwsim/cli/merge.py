"""``brwsim merge``."""

from __future__ import annotations

from pathlib import Path

import click

from brwsim.cli.options import PATH, json_option, print_data


@click.command
@click.argument("files", type=PATH, nargs=-1, required=True)
@click.option("--out", type=PATH, required=True, metavar="FILE", help="The file to write.")
@json_option
def merge(files: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Combine results of the same sweep.

    They may come from different seeds and machines; a block of trees that is in several files counts
    once. If --out exists, it has to hold the same sweep, and what is in it is kept.
    """
    from brwsim.errors import FileError
    from brwsim.results.merge import merge as merge_results
    from brwsim.results.store import check_writable, load

    check_writable(out)
    results = [load(file) for file in files]
    if out.exists():
        known = load(out)
        if known.spec.spec_id != results[0].spec.spec_id:
            raise FileError(f"{out} holds another sweep, {known.spec}; choose another file")
        results.append(known)
    merged = merge_results(results).save(out)
    print_data(merged, as_json)
    click.echo(f"\nresult in {out}", err=True)
