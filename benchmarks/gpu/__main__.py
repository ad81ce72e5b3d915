"""Nodes a second on a GPU and on all processors of its host, in one command of under eight minutes:

    python -m benchmarks.gpu [--device N] [--out FILE.json]

Needs an NVIDIA GPU. A GPU's time is taken by its own events, around the kernels alone; a warm-up compiles;
figures are medians. The processors run right after, on the same laws.
"""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.gpu.measure import compare, describe_device
from benchmarks.gpu.table import markdown
from benchmarks.record import Record
from brwsim.errors import BrwsimError
from brwsim.kernels import cuda_shim


@click.command()
@click.option("--device", type=int, default=0, show_default=True, help="Which GPU.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE.json", help="Keep all samples in FILE.")
def main(device: int, out: Path | None) -> None:
    """Measure and print a table."""
    if reason := cuda_shim.missing(device):
        raise click.ClickException(reason)
    try:
        measurements = compare(device, lambda line: click.echo(line, err=True))
    except BrwsimError as error:
        raise click.ClickException(str(error)) from None
    facts = describe_device(device)
    record = Record.of("gpu", measurements)
    record = Record(
        record.scale,
        record.date,
        {**record.machine, "gpu": facts},
        record.versions,
        record.commit,
        record.measurements,
    )
    if out is not None:
        record.save(out)
    click.echo(markdown(record))


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.gpu")
