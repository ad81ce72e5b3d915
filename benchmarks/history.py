"""A folder of records, one file per run, and what the newest says against those before it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.compare import Change, changes
from benchmarks.errors import BadFile
from benchmarks.measure import Measurement
from benchmarks.record import Record, load

WINDOW = 5


def append(folder: Path, record: Record) -> Path:
    """Save a record under its date and commit."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(f"{folder} cannot be written: {error.strerror}") from None
    stamp = record.date.replace(":", "").replace("+0000", "Z")
    path = folder / f"{stamp}-{str(record.commit.get('hash') or 'unknown')[:8]}.json"
    record.save(path)
    return path


def comparable_to_newest(folder: Path) -> list[Record]:
    """The newest record and all earlier ones of the same machine, Python and sizes; oldest first."""
    records = sorted((load(path) for path in folder.glob("*.json")), key=lambda record: record.date)
    return [record for record in records if record.comparable == records[-1].comparable]


def baseline(records: Sequence[Record]) -> Record:
    """The last runs as one: of every quantity the median of those runs' medians.

    One odd night among five moves it nowhere. It has no spread: what nights differ by is left to the
    threshold and to the rule of two in a row.
    """
    recent = records[-WINDOW:]
    names = dict.fromkeys(name for record in recent for name in record.measurements)
    return dataclasses.replace(
        recent[-1],
        measurements={
            name: _joined([record.measurements[name] for record in recent if name in record.measurements])
            for name in names
        },
    )


def _joined(runs: Sequence[Measurement]) -> Measurement:
    return dataclasses.replace(runs[-1], samples=(median(run.median for run in runs),))


def judged(records: Sequence[Record], threshold: float) -> list[Change]:
    """Changes of the last record against the median of those before it; none without any before."""
    return changes(baseline(records[:-1]), records[-1], threshold) if len(records) > 1 else []


def confirmed(records: Sequence[Record], threshold: float) -> list[Change]:
    """What is slower in the last record and was so in the one before: a busy night alone is no regression.

    The window moves on: a slowdown that is accepted raises no alarm once most of the window has it.
    """
    already = {change.name for change in judged(records[:-1], threshold) if change.verdict == "slower"}
    return [
        change
        for change in judged(records, threshold)
        if change.verdict == "slower" and change.name in already
    ]
