"""A record as Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from benchmarks.measure import Measurement
from benchmarks.record import Record

_TITLES = {
    "speed": "Speed of the kernel, one core: nodes/s (trees/s), median",
    "naive": "Against the naive twin (heapq and NumPy), one core",
    "cpp": "Against the C++ program growing the same trees, one core",
    "precision": "Time to a relative standard error",
    "startup": "Command line",
    "memory": "Peak memory",
    "scaling": "Scaling of the time per tree",
}


def markdown(record: Record) -> str:
    """Where it was measured, then one table per section."""
    parts = [_heading(record)]
    for section, group in groupby(record.measurements.values(), lambda m: m.name.split("/")[0]):
        measured = list(group)
        parts.append(f"### {_TITLES.get(section, section)}")
        parts.append(_speed_table(measured) if section == "speed" else _table(measured))
        parts += _remarks(measured)
    return "\n\n".join(parts)


def _heading(record: Record) -> str:
    memory = record.machine.get("memory_bytes")
    where = [
        str(record.machine.get("cpu")),
        f"{record.machine.get('cores')} cores",
        f"{memory / 2**30:.0f} GiB" if memory else "memory unknown",
        f"load average {record.machine.get('load_average')}",  # should be that of one or two busy cores
        *(
            f"{name} {record.versions[name]}"
            for name in ("python", "numba", "numpy")
            if name in record.versions
        ),
    ]
    commit = str(record.commit.get("hash") or "unknown")[:12] + (
        " (changed)" if record.commit.get("dirty") else ""
    )
    return f"Measured {record.date}, commit {commit}, {record.scale} run: {', '.join(where)}."


def _speed_table(measured: Sequence[Measurement]) -> str:
    """Laws down, P across."""
    by_case = {(m.facts["law"], m.facts["P"]): m for m in measured}
    all_P = sorted({P for _, P in by_case})
    rows = [
        [law, *(_speed_cell(by_case.get((law, P)), P) for P in all_P)]
        for law in dict.fromkeys(law for law, _ in by_case)
    ]
    return _layout(["law", *(f"P = {P}" for P in all_P)], rows)


def _speed_cell(measured: Measurement | None, P: int) -> str:
    return "" if measured is None else f"{number(measured.median)} ({number(measured.median / P)})"


def _table(measured: Sequence[Measurement]) -> str:
    fact_names = list(dict.fromkeys(name for m in measured for name in m.facts if name != "remark"))
    rows = []
    for m in measured:
        low, high = m.quartiles
        spread = [f"{number(low)} – {number(high)}", f"{number(min(m.samples))} – {number(max(m.samples))}"]
        facts = [_shown(m.facts.get(name, "")) for name in fact_names]
        rows.append(
            [m.name.split("/", 1)[-1], number(m.median), m.unit, *spread, str(len(m.samples)), *facts]
        )
    head = ["what", "median", "unit", "quartiles", "range", "samples", *fact_names]
    return _layout(head, rows)


def _remarks(measured: Iterable[Measurement]) -> list[str]:
    return list(dict.fromkeys(f"{m.facts['remark']}." for m in measured if "remark" in m.facts))


def _layout(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table that is also readable as it is; figures to the right."""
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    is_figure = [index > 0 and head[index] != "unit" for index in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, is_figure, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    rule = [
        ("-" * (width - 1) + (":" if right else "-")) for width, right in zip(widths, is_figure, strict=True)
    ]
    return "\n".join([line(head), line(rule), *map(line, rows)])


def _shown(value: object) -> str:
    return number(value) if isinstance(value, int | float) else str(value)


def number(value: float) -> str:
    """Three significant digits; thousands with thin separators, very large and small with an exponent.

    >>> number(1234567.0), number(0.0123456), number(3.0), number(2.5e-7)
    ('1 230 000', '0.0123', '3', '2.5e-07')
    """
    if value == 0 or 1e-4 <= abs(value) < 1e9:
        rounded = float(f"{value:.3g}")
        return f"{rounded:,.10g}".replace(",", " ")
    return f"{value:.3g}"
