"""Plain-text tables of a sweep and of bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import InvalidInput
from brwsim.theory.bounds import Bound, available

if TYPE_CHECKING:
    from brwsim.results.result import Result

Floats = NDArray[np.float64]

ROWS = 13
"""About how many P a table shows."""

_KINDS = ("upper", "lower", "estimate", "iid-upper", "iid-lower", "iid-estimate")
_LEGEND = "upper, lower: proved bounds of E[X]; estimate: not a bound; -: trivial or outside its domain"
_IID_LEGEND = "iid-...: what the formula says of independent laws with the same moments, proved nothing here"
_ERRORS_LEGEND = (
    "a mean may lie beyond a bound by its standard error; brwsim compare tests whether it is more"
)
_WIDTH = 110  # columns
_LEFT_OUT = ("iid-lower",)  # of the table of a process with context, which has no room for them


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]], align: str = "") -> str:
    """Lay out cells in columns two spaces apart.

    Parameters
    ----------
    header : sequence of str
        One cell per column; a cell may have several lines.
    rows : sequence of sequence of str
        Cells of one line each.
    align : str
        ``<`` or ``>`` for each column; columns beyond its end are right-aligned.

    Examples
    --------
    >>> print(format_table(["name", "P"], [["a", "16"], ["bc", "4096"]], "<"))
    name     P
    a       16
    bc    4096
    """
    lines = [*_header_lines(header), *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    sides = align.ljust(len(header), ">")
    return "\n".join(
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(line, sides, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def _header_lines(header: Sequence[str]) -> list[list[str]]:
    """The lines of the header's cells, flush with the bottom."""
    cells = [cell.split("\n") for cell in header]
    height = max(len(cell) for cell in cells)
    return [list(line) for line in zip(*([""] * (height - len(cell)) + cell for cell in cells), strict=True)]


def few(P: NDArray[np.int64], count: int = ROWS) -> NDArray[np.intp]:
    """Indices of about ``count`` values of an increasing grid: its ends and log-spaced ones between.

    Examples
    --------
    >>> (few(np.arange(1, 4097)) + 1).tolist()
    [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
    >>> (few(np.arange(1, 4097), 7) + 1).tolist()
    [1, 4, 16, 64, 256, 1024, 4096]
    """
    if P.size <= count:
        return np.arange(P.size)
    first, last = math.ceil(math.log2(P[0])), math.floor(math.log2(P[-1]))
    stride = max(1, math.ceil((last - first) / (count - 1)))
    targets = 2.0 ** np.arange(last, first - 1, -stride)
    if targets.size < count // 2:
        targets = np.geomspace(P[0], P[-1], count)
    reached = np.searchsorted(P, targets.round(6)).clip(max=P.size - 1)
    return np.unique(np.concatenate([[0], reached, [P.size - 1]]))


def number(value: float, digits: int = 5) -> str:
    """A value to a few significant digits, or ``-`` when there is none.

    >>> number(8.13921), number(123456.7), number(math.nan)
    ('8.1392', '123457', '-')
    """
    if not math.isfinite(value):
        return "-"
    if 0.0 < abs(value) < 1e-3:
        return f"{value:.1e}"
    decimals = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{max(decimals, 0)}f}"


def plain(value: float) -> str:
    """A value to three significant digits at most, without an exponent.

    >>> plain(5053.1), plain(27.04), plain(0.98765), plain(1.0)
    ('5,050', '27', '0.988', '1')
    """
    decimals = 2 - math.floor(math.log10(value)) if value > 0.0 else 0
    text = f"{round(value, decimals):,.{max(decimals, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def mean_and_error(mean: float, stderr: float) -> tuple[str, str]:
    """A mean to the digits its standard error allows, and that error to two digits.

    >>> mean_and_error(8.139216, 0.000793), mean_and_error(3.0, 0.0), mean_and_error(3.0, math.inf)
    (('8.13922', '0.00079'), ('3.00000', 'exact'), ('3.00000', 'unknown'))
    """
    if stderr == 0.0:
        return f"{mean:.5f}", "exact"
    if not math.isfinite(stderr):
        return f"{mean:.5f}", "unknown"
    decimals = min(max(1 - math.floor(math.log10(stderr)), 0), 9)
    return f"{mean:.{decimals}f}", f"{stderr:.{decimals}f}"


def process_name(result: Result, width: int = 72) -> str:
    """The process as a short line for titles: numbers to four digits, the rest cut off."""
    text = _short(result.spec.process_spec)
    return text if len(text) <= width else text[: width - 3] + "..."


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(_short(item) for item in value)}]"
    if isinstance(value, Mapping):
        keys = ",".join(f"{key}={_short(item)}" for key, item in value.items() if key != "name")
        return f"{value['name']}:{keys}" if keys else str(value["name"])
    return str(value)


def informative(bound: Bound, values: Any, P: Any) -> Any:
    """Values of a bound with NaN where they say no more than 1 <= E[X] <= P."""
    trivial = {"upper": values >= P, "lower": values <= 1.0}.get(bound.kind.removeprefix("iid-"))
    return values if trivial is None else np.where(trivial, np.nan, values)


def result_table(result: Result) -> str:
    """The table of a sweep: E[X] and the bounds at a few P, then moments and how it was computed."""
    shown = few(result.P)
    values = result.bounds_in_domain()
    bounds = [
        bound
        for bound in by_kind(result.bound_objects)
        if bound.kind not in _LEFT_OUT and not bound.leading_term
    ]
    columns = [informative(bound, values[bound.name], result.P) for bound in bounds]
    rows = [
        [
            str(result.P[i]),
            *mean_and_error(result.mean[i], result.stderr[i]),
            *(number(column[i]) for column in columns),
        ]
        for i in shown
    ]
    table = with_headings(["P", "E[X]", "stderr"], bounds, rows)
    title = f"E[X], expected tokens per verifier call, of {process_name(result)}"
    legend = [_LEGEND] if bounds else []
    if any(bound.kind.startswith("iid-") for bound in bounds):
        legend.append(_IID_LEGEND)
    if bounds and not result.theory.is_fixed:
        legend.append(_ERRORS_LEGEND)
    return "\n".join([title, "", table, *legend, _of_all(shown, result.P), "", _footer(result)])


def by_kind(bounds: Sequence[Bound]) -> list[Bound]:
    """Proved bounds first."""
    return sorted(bounds, key=lambda bound: _KINDS.index(bound.kind))


def with_headings(first: list[str], bounds: Sequence[Bound], rows: list[list[str]]) -> str:
    """A table with a column for each bound, its name over its kind; names are broken if it gets too wide."""
    table = format_table(first + [f"{bound.name}\n{bound.kind}" for bound in bounds], rows)
    if max(map(len, table.split("\n"))) <= _WIDTH:
        return table
    return format_table(
        first + [bound.name.replace("_", "_\n") + f"\n{bound.kind}" for bound in bounds], rows
    )


def _of_all(shown: NDArray[np.intp], P: NDArray[np.int64]) -> str:
    if shown.size == P.size:
        return "root included in P and in E[X]"
    return f"root included in P and in E[X]; {shown.size} of {P.size} values of P, --json prints all"


def _footer(result: Result) -> str:
    moments = result.moments
    known = result.spec.process_class.moments_are
    lines = [("moments", f"mu {moments['mu']:.6g} nats, mu2 {moments['mu2']:.6g} nats^2 ({known})")]
    if result.theory.is_fixed:
        lines.append(("trees", "1, and all are the same: the answer is exact"))
    else:
        lines.append(("trees", _trees(result)))
        lines.append(("estimator", _estimator(result)))
    return "\n".join(f"{name:<9}  {text}" for name, text in lines)


def _trees(result: Result) -> str:
    reach = int(result.trees_per_P[-1])
    if result.trees == 1:
        return f"1 grown, seed {result.seed}; one tree has no error estimate"
    which = "" if reach == result.trees else f", of which {reach} reach P={result.P[-1]}"
    return f"{result.trees} grown{which}, seed {result.seed}"


def _estimator(result: Result) -> str:
    if result.estimator == "crude" or result.trees == 1:
        return result.estimator
    ratio = plain(float(result.variance_ratio[-1]))
    return f"{result.estimator}, variance {ratio} times below crude at P={result.P[-1]}"


@dataclass(frozen=True, eq=False)
class BoundTable:
    """The bounds that some facts allow, at every P of a grid.

    Attributes
    ----------
    P : NDArray[np.int64]
        Capacities, root included; shape (n,).
    facts : mapping
        ``mu``, ``mu2`` and, where known, ``vocab`` and ``step_cdf``.
    """

    P: NDArray[np.int64]
    facts: Mapping[str, Any]

    @property
    def bounds(self) -> list[Bound]:
        """The bounds, those above first."""
        return by_kind(available(self.facts))

    def values(self) -> dict[str, Floats]:
        """Each bound's values at ``P``, NaN outside its domain."""
        return {
            bound.name: np.where(bound.in_domain(self.P, **self.facts), bound(self.P, **self.facts), np.nan)
            for bound in self.bounds
        }

    def __str__(self) -> str:
        values = self.values()
        columns = [informative(bound, values[bound.name], self.P) for bound in self.bounds]
        shown = few(self.P, max(ROWS, 50))
        rows = [[str(self.P[i]), *(number(column[i]) for column in columns)] for i in shown]
        table = with_headings(["P"], self.bounds, rows)
        formulas = [f"{bound.name} ({bound.domain})\n    {bound.formula}" for bound in self.bounds]
        return "\n".join([table, _LEGEND, _of_all(shown, self.P), "", *formulas])

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; None outside a bound's domain."""
        return {
            "P": self.P.tolist(),
            "moments": {name: self.facts[name] for name in ("mu", "mu2")},
            "vocab": self.facts.get("vocab"),
            "bounds": {name: jsonable(values) for name, values in self.values().items()},
            "kinds": {bound.name: bound.kind for bound in self.bounds},
        }


def bound_table(P: NDArray[np.int64], facts: Mapping[str, Any]) -> BoundTable:
    """Table the bounds that ``facts`` allow; raises InvalidInput when the facts are impossible."""
    table = BoundTable(P, facts)
    if not table.bounds:
        raise InvalidInput("no bound applies: mu is unknown, or it is 0 (a single chain, E[X] = P)")
    table.values()
    return table


def jsonable(values: Floats) -> list[float | None]:
    """A list with None for what is not finite."""
    return [float(value) if math.isfinite(value) else None for value in values]
