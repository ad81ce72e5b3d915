"""A simulated curve held against every bound."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import InvalidInput
from brwsim.parse import parse_grid
from brwsim.report.tables import few, format_table, informative, jsonable, mean_and_error, number
from brwsim.theory.bounds import Bound

if TYPE_CHECKING:
    from brwsim.results.result import Result

Floats = NDArray[np.float64]

TOLERATED_ERRORS = 4.0
"""Standard errors a mean may lie beyond a proved bound before it counts as a violation."""

_ROUNDING = 1e-9
_SHOWN = 7


@dataclass(frozen=True)
class Violation:
    """A mean beyond a proved bound, by ``errors`` standard errors (infinite for an exact mean)."""

    bound: str
    P: int
    mean: float
    stderr: float
    value: float
    errors: float

    def __str__(self) -> str:
        by = f"{self.errors:.3g} standard errors" if math.isfinite(self.errors) else "an exact mean"
        return f"E[X] = {self.mean:.8g} at P={self.P} is beyond {self.bound} = {self.value:.8g} by {by}"


@dataclass(frozen=True, eq=False)
class Against:
    """One bound beside the means: all arrays of shape (n,), NaN outside the bound's domain.

    Attributes
    ----------
    bound : Bound
    value : NDArray[np.float64]
    gap : NDArray[np.float64]
        ``value - mean``, tokens per call.
    ratio : NDArray[np.float64]
        ``value / mean``.
    beyond : NDArray[np.float64]
        Standard errors by which the mean lies on the forbidden side; not positive where the bound
        holds, infinite where an exact mean breaks it, NaN for estimates.
    violated : NDArray[np.bool_]
        Where ``beyond`` exceeds ``TOLERATED_ERRORS`` by more than rounding.
    """

    bound: Bound
    value: Floats
    gap: Floats
    ratio: Floats
    beyond: Floats
    violated: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Comparison:
    """E[X] at some P against every bound that applies.

    Attributes
    ----------
    P : NDArray[np.int64]
    mean, stderr : NDArray[np.float64]
    against : tuple of Against
        One for each bound, in table order.
    """

    P: NDArray[np.int64]
    mean: Floats
    stderr: Floats
    against: tuple[Against, ...]

    @property
    def violations(self) -> list[Violation]:
        """Proved bounds that a mean breaks by more than 4 standard errors, or an exact mean at all."""
        return [
            Violation(
                item.bound.name,
                int(self.P[i]),
                float(self.mean[i]),
                float(self.stderr[i]),
                float(item.value[i]),
                float(item.beyond[i]),
            )
            for item in self.against
            for i in np.flatnonzero(item.violated)
        ]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; None where a bound does not apply or a number is not finite."""
        return {
            "P": self.P.tolist(),
            "mean": jsonable(self.mean),
            "stderr": jsonable(self.stderr),
            "bounds": {
                item.bound.name: {
                    "kind": item.bound.kind,
                    "value": jsonable(item.value),
                    "gap": jsonable(item.gap),
                    "ratio": jsonable(item.ratio),
                    "beyond": jsonable(item.beyond),
                }
                for item in self.against
            },
            "violations": [
                {**vars(found), "errors": found.errors if math.isfinite(found.errors) else None}
                for found in self.violations
            ],
        }

    def __str__(self) -> str:
        shown = few(self.P, _SHOWN)
        rows = [row for i in shown for row in self._rows(int(i))]
        header = ["P", "E[X]", "stderr", "bound", "kind", "value", "gap", "ratio", "violation"]
        table = format_table(header, rows, ">>><<")
        return "\n".join([table, "", self.summary(shown.size)])

    def _rows(self, i: int) -> list[list[str]]:
        """The lines of one P, its mean on the first only; bounds that say nothing there have none."""
        cells = [str(self.P[i]), *mean_and_error(self.mean[i], self.stderr[i])]
        rows = []
        for item in self.against:
            if not np.isfinite(informative(item.bound, item.value[i], self.P[i])):
                continue
            violation = f"{item.beyond[i]:.1f} stderr" if item.violated[i] else "-"
            numbers = [number(item.value[i]), number(item.gap[i]), number(item.ratio[i], 4)]
            rows.append([*cells, item.bound.name, item.bound.kind, *numbers, violation])
            cells = ["", "", ""]
        return rows or [[*cells, *"------"]]

    def summary(self, shown: int | None = None) -> str:
        """One line: what is violated, and the worst of it."""
        where = f"{self.P.size} values of P" + (f" ({shown} shown)" if shown and shown < self.P.size else "")
        found = self.violations
        if not found:
            return f"no proved bound is violated at {where}"
        worst = max(found, key=lambda violation: violation.errors)
        return f"{len(found)} violations at {where}; the worst: {worst}"


def compare(result: Result, P: str | int | Iterable[int] | None = None) -> Comparison:
    """Hold a result against every bound that applies to its process.

    Parameters
    ----------
    result : Result
        From ``sweep`` or ``load``.
    P : str, int or iterable of int, optional
        Some of the result's P, as for ``sweep``; all of them if not given.

    Raises
    ------
    InvalidInput
        For a bad grid, or a P the result does not have.
    """
    index = np.arange(result.P.size) if P is None else _index(result, parse_grid(P))
    mean, stderr = result.mean[index], result.stderr[index]
    values = result.bounds_in_domain()
    against = tuple(
        _against(bound, values[bound.name][index], mean, stderr) for bound in result.bound_objects
    )
    return Comparison(result.P[index], mean, stderr, against)


def _index(result: Result, P: NDArray[np.int64]) -> NDArray[np.intp]:
    missing = P[~np.isin(P, result.P)]
    if missing.size:
        raise InvalidInput(f"the sweep has no P={missing[0]}; its grid is {result.spec.grid:.80}")
    return np.searchsorted(result.P, P)


def _against(bound: Bound, value: Floats, mean: Floats, stderr: Floats) -> Against:
    gap = value - mean
    excess = {"upper": -gap, "lower": gap}.get(bound.kind) if bound.rigorous else None
    if excess is None:
        nowhere = np.zeros(mean.size, dtype=np.bool_)
        return Against(bound, value, gap, value / mean, np.full(mean.size, np.nan), nowhere)
    real = np.where(np.abs(excess) > _ROUNDING * mean, excess, np.copysign(0.0, excess))
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = np.where(real == 0.0, 0.0, real / stderr)
    beyond = np.where(np.isnan(value), np.nan, beyond)
    return Against(bound, value, gap, value / mean, beyond, beyond > TOLERATED_ERRORS)
