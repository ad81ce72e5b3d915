"""How a long computation shows how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from brwsim.engine.run import Progress

LONG_SECONDS = 30.0  # what takes longer says so
MEASURED_SECONDS = 1.0  # before that, the speed says little


@contextmanager
def shown_progress(seed: int, out: Path | None = None) -> Iterator[Callable[[Progress], None]]:
    """What to report progress to: notes on stderr and, if a person watches it, a bar with the time left."""
    notes = Notes(seed, out)
    if not sys.stderr.isatty():

        def report_notes(progress: Progress) -> None:
            for note in notes.of(progress):
                click.echo(note, err=True)

        yield report_notes
        return
    bar: Any
    with click.progressbar(length=1, label="growing trees", item_show_func=_trees, file=sys.stderr) as bar:

        def report(progress: Progress) -> None:
            for note in notes.of(progress):
                click.echo(f"\r\033[K{note}", err=True)
            bar.length = max(progress.wanted, 1) if progress.is_forecast else None  # no one knows yet
            bar.finished = False
            bar.update(progress.done - bar.pos, progress.trees)

        yield report
        bar.length = max(bar.pos, 1)
        bar.finish()
        bar.render_progress()


class Notes:
    """What is said once: that a file is continued, and how long a long sweep takes."""

    def __init__(self, seed: int, out: Path | None) -> None:
        self._seed = seed
        self._out = out
        self._is_first = True
        self._is_long = False

    def of(self, progress: Progress) -> Iterator[str]:
        """The notes there are now."""
        if self._is_first and progress.found:
            yield self._continued(progress.found)
        self._is_first = False
        measured = progress.seconds >= MEASURED_SECONDS
        if not self._is_long and measured and progress.seconds_left > LONG_SECONDS:
            self._is_long = True
            yield self._estimate(progress)

    def _continued(self, found: Mapping[int, int]) -> str:
        text = f"continued: {sum(found.values())} trees were in {self._out}"
        return (
            text if self._seed in found else f"{text}, of other seeds; those of seed {self._seed} are added"
        )

    def _estimate(self, progress: Progress) -> str:
        from brwsim.report.tables import plain

        kept = (
            "without --out FILE, nothing is kept if it is interrupted"
            if self._out is None
            else "Ctrl-C keeps what is done"
        )
        trees = plain(float(progress.wanted_trees))
        return f"about {trees} trees, {_duration(progress.seconds_left)}; {kept}"


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("min", 60.0), ("h", 3600.0)):
        if seconds < 120.0 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400.0:,.0f} days"


def _trees(count: int | None) -> str | None:
    return None if count is None else f"{count} trees"
