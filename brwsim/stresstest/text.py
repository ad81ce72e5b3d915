"""A stress test as plain text: tables, and a sentence for every formula."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from brwsim.report.compare import TOLERATED_ERRORS
from brwsim.report.tables import few, format_table, mean_and_error, number
from brwsim.stresstest.axes import Axis
from brwsim.stresstest.case import Start, kind_of

if TYPE_CHECKING:
    from brwsim.stresstest.report import Break, StressReport

Floats = NDArray[np.float64]

_ROWS = 8
_START_ROWS = 3
_BREAK_ROWS = 3
_WIDTH = 84

_LEGEND = (
    f"*: the process exceeds the formula by more than {TOLERATED_ERRORS:g} standard errors",
    "iid-upper: a bound for independent laws, proved nothing here; iid-estimate: sharp for independent laws",
)
_ROOT = "root included in P and in E[X]"


def text(report: StressReport) -> str:
    """Everything a person wants to see first; ``to_dict`` has the rest."""
    shown = json.loads(report.process_json)
    title = f"stress test of the i.i.d. assumption: {_process_name(shown)}"
    parts = {0: _of_one, 1: _of_curve, 2: _of_map}[len(report.axes)](report)
    return "\n\n".join([title, *parts, _footer(report)])


def _process_name(spec: dict[str, Any]) -> str:
    keys = ",".join(
        f"{key}={json.dumps(value, separators=(',', ':'))}" for key, value in spec.items() if key != "name"
    )
    name = f"{spec['name']}:{keys}" if keys else str(spec["name"])
    return name if len(name) <= _WIDTH else name[: _WIDTH - 3] + "..."


def _of_one(report: StressReport) -> list[str]:
    shown = few(report.P, _ROWS)
    rows = [
        [
            str(report.P[i]),
            *_measured(report, (i,)),
            *(_formula(report, name, (i,)) for name in report.formulas),
        ]
        for i in shown.tolist()
    ]
    table = format_table(["P", *_MEASURED, *_headings(report)], rows)
    parts = ["\n".join([table, *_LEGEND]), "\n".join(_verdicts(report))]
    theory = _starts(report)
    return [*parts, theory] if theory else parts


_MEASURED = ("process\nE[X]", "stderr", "surrogate\nE[X]", "stderr", "ratio", "stderr")


def _measured(report: StressReport, at: tuple[int, ...]) -> list[str]:
    """Process, surrogate and their ratio, each with its standard error."""
    pairs = (
        (report.mean, report.stderr),
        (report.surrogate, report.surrogate_stderr),
        (report.ratio, report.ratio_stderr),
    )
    return [cell for mean, stderr in pairs for cell in mean_and_error(float(mean[at]), float(stderr[at]))]


def _headings(report: StressReport) -> list[str]:
    return [f"{name}\n{kind_of(name, iid=True)}" for name in report.formulas]


def _formula(report: StressReport, name: str, at: tuple[int, ...]) -> str:
    """A formula's value, marked where it is broken."""
    return number(float(report.formula(name)[at])) + ("*" if report.is_broken(name)[at] else " ")


def _verdicts(report: StressReport) -> list[str]:
    """A line for every formula: whether it is exceeded, from which P to which, and where most clearly."""
    lines = []
    for name in report.formulas:
        broken = np.flatnonzero(report.is_broken(name))
        if not broken.size:
            lines.append(f"{name} is not exceeded at any P")
            continue
        worst = int(broken[np.argmax(report.errors(name)[broken])])
        lines.append(
            f"{name} is exceeded at {broken.size} of {report.P.size} P, from {report.P[broken[0]]} to "
            f"{report.P[broken[-1]]}; most clearly at P={report.P[worst]}, by "
            f"{number(float(report.excess(name)[worst]), 4)} tokens, {_errors(float(report.errors(name)[worst]))}"
        )
    lines += [
        f"PROVED BOUND VIOLATED: {found.formula} from {found.start} at P={found.P}, {_errors(found.errors)}"
        for found in report.violations
        if not found.kind.startswith("iid-")
    ]
    return lines


def _errors(errors: float) -> str:
    return f"{errors:.1f} standard errors" if math.isfinite(errors) else "exactly"


def _starts(report: StressReport) -> str:
    """The process from each start beside what holds for it; empty where there is nothing to show."""
    case = report.cases[0]
    starts = (case.stationary, *case.starts)
    names = list(case.stationary.theory)
    if len(starts) == 1 and not names:
        return ""
    slopes = report.slopes()
    rows = []
    for i in few(report.P, _START_ROWS).tolist():
        rows += [_start_row(report, start, i, names, not j, slopes) for j, start in enumerate(starts)]
    heading = ["P", "start", "E[X]", "stderr", *(f"{name}\n{kind_of(name)}" for name in names)]
    table = format_table(heading + (["slope\nper ln P", "stderr"] if slopes else []), rows, "><")
    lines = [
        "from each start, with what is known of the process itself" if names else "from each start",
        table,
    ]
    if case.starts:
        lines.append(
            f"spread over the starts: {number(float(case.spread[-1]), 4)} tokens at P={report.P[-1]}"
        )
    if slopes:
        lines.append(
            f"slope per ln P: of the surrogate {slopes['surrogate'][0]:.4g}, one over the entropy rate "
            f"{1.0 / case.process.mu:.4g}"
        )
    return "\n".join(lines)


def _start_row(
    report: StressReport,
    start: Start,
    i: int,
    names: list[str],
    first: bool,
    slopes: dict[str, tuple[float, float]],
) -> list[str]:
    found = start.simulated
    cells = [str(report.P[i]) if first else "", start.label]
    cells += mean_and_error(float(found.mean[i]), float(found.stderr[i]))
    cells += [number(float(start.theory[name][i])) if name in start.theory else "-" for name in names]
    if not slopes:
        return cells
    last = i == report.P.size - 1
    return cells + (list(mean_and_error(*slopes[start.label])) if last else ["", ""])


def _of_curve(report: StressReport) -> list[str]:
    last = report.P.size - 1
    values = report.axes[0].values
    rows = [
        [
            f"{value:.6g}",
            *_measured(report, (i, last)),
            *(_excess(report, name, (i, last)) for name in report.formulas),
        ]
        for i, value in enumerate(values)
    ]
    headings = [f"excess over\n{name}" for name in report.formulas]
    table = format_table([report.axes[0].key, *_MEASURED, *headings], rows)
    return [f"at P={report.P[-1]}:\n{table}\n{_LEGEND[0]}", _breaks(report)]


def _excess(report: StressReport, name: str, at: tuple[int, ...]) -> str:
    value = float(report.excess(name)[at])
    shown = f"{value:+.3f}" if math.isfinite(value) else "-"
    return shown + ("*" if report.is_broken(name)[at] else " ")


def _breaks(report: StressReport) -> str:
    """Where each formula breaks along the sweep, at a few P."""
    axis = report.axes[0]
    found = {(item.formula, item.P): item for item in report.breaks}
    rows = [
        [name, kind_of(name, iid=True), str(P), *_break_cells(found.get((name, P)), axis)]
        for name in report.formulas
        for P in report.P[few(report.P, _BREAK_ROWS)].tolist()
    ]
    header = [
        "formula",
        "kind",
        "P",
        f"breaks at\n{axis.key}",
        "bracket",
        "standard errors\nat its upper end",
    ]
    note = f"the least {axis.key} at which the process exceeds a formula by more than {TOLERATED_ERRORS:g} standard errors"
    return f"{note}:\n{format_table(header, rows, '<<>><>')}"


def _break_cells(found: Break | None, axis: Axis) -> list[str]:
    if found is None:
        return ["never", f"up to {axis.values[-1]:.6g}", "-"]
    if math.isnan(found.below):
        return [f"{found.value:.4g}", "from the first value on", _short(found.errors)]
    return [f"{found.value:.4g}", f"{found.below:.5g} .. {found.above:.5g}", _short(found.errors)]


def _short(errors: float) -> str:
    return f"{errors:.1f}" if math.isfinite(errors) else "exact"


def _of_map(report: StressReport) -> list[str]:
    rows_axis, columns_axis = report.axes
    broken = [report.is_broken(name)[..., -1] for name in ("renewal", "theorem1")]
    marks = np.sum(broken, axis=0)
    rows = [
        [f"{value:.5g}", *(f"{ratio:.3f}{'*' * mark:<2}" for ratio, mark in zip(line, stars, strict=True))]
        for value, line, stars in zip(rows_axis.values, report.ratio[..., -1], marks.tolist(), strict=True)
    ]
    corner = f"{rows_axis.key} \\ {columns_axis.key}"
    table = format_table([corner, *(f"{value:.4g}  " for value in columns_axis.values)], rows)
    legend = "*: the process exceeds renewal by more than 4 standard errors; **: theorem1 as well"
    error = float(np.max(report.ratio_stderr[..., -1]))
    return [
        f"process over surrogate at P={report.P[-1]} (standard errors up to {error:.1g}):\n{table}\n{legend}"
    ]


def _footer(report: StressReport) -> str:
    how = f"{report.trees} trees" if report.trees is not None else f"relative error {report.rel_err:g}"
    counts = sum(case.stationary.simulated.trees for case in report.cases)
    return f"{how} in every simulation, {counts} trees of the process in all, seed {report.seed}; {_ROOT}"
