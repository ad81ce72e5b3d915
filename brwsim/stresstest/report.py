"""What a stress test found: ratios, violations, and where along a sweep each formula breaks."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from brwsim.report.compare import TOLERATED_ERRORS
from brwsim.stresstest.axes import Axis
from brwsim.stresstest.case import IID_FORMULAS, STATIONARY, Case, Start, excess, in_errors, kind_of

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Violation:
    """E[X] beyond an upper formula (or, of the process's own bounds, on the forbidden side of one).

    Attributes
    ----------
    formula, kind : str
        ``iid-upper`` for a formula for independent laws, which promises nothing here; ``upper`` and
        ``lower`` for what is proved of the process itself, where a violation means an error of ours.
    start : str
        ``stationary``, or the label of a start.
    at : tuple of float
        Values of the swept keys; empty without a sweep.
    P : int
    excess : float
        Mean less formula, tokens per call.
    errors : float
        ``|excess|`` in standard errors; infinite for an exact mean.
    """

    formula: str
    kind: str
    start: str
    at: tuple[float, ...]
    P: int
    excess: float
    errors: float


@dataclass(frozen=True)
class Break:
    """The least value of the first swept key at which the stationary process breaks a formula.

    Attributes
    ----------
    formula, kind : str
    P : int
    at : tuple of float
        The value of the second swept key, if there is one.
    value : float
        Where the excess reaches 4 standard errors, by linear interpolation in the bracket on the key's scale.
    below : float
        The largest simulated value below at which it is not broken; NaN where it is broken from the first on.
    above : float
        The least simulated value at which it is.
    errors : float
        Standard errors of the excess at ``above``.
    """

    formula: str
    kind: str
    P: int
    at: tuple[float, ...]
    value: float
    below: float
    above: float
    errors: float


@dataclass(frozen=True, eq=False, repr=False)
class StressReport:
    """A process under the stress test, at every P and every value of what was swept.

    All arrays have shape (values of the first swept key, values of the second, number of P), without the
    parts that were not swept.

    Attributes
    ----------
    process_json : str
        The process as it was given.
    P : NDArray[np.int64]
        Capacities, root included.
    axes : tuple of Axis
        What was swept: none, one or two keys.
    cases : tuple of Case
        One for each point of the sweep, the last key running fastest.
    seed : int
    trees, rel_err : optional
        How much was simulated.
    """

    process_json: str
    P: NDArray[np.int64]
    axes: tuple[Axis, ...]
    cases: tuple[Case, ...]
    seed: int
    trees: int | None
    rel_err: float | None

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each swept key."""
        return tuple(len(axis.values) for axis in self.axes)

    def stack(self, value: Callable[[Case], Floats]) -> Floats:
        """An array over the cases, in the shape of the sweep."""
        found = np.array([value(case) for case in self.cases])
        return found.reshape(*self.shape, *found.shape[1:])

    @cached_property
    def mean(self) -> Floats:
        """E[X] of the stationary process."""
        return self.stack(lambda case: case.stationary.simulated.mean)

    @cached_property
    def stderr(self) -> Floats:
        """Standard error of ``mean``."""
        return self.stack(lambda case: case.stationary.simulated.stderr)

    @cached_property
    def surrogate(self) -> Floats:
        """E[X] of the i.i.d. surrogate."""
        return self.stack(lambda case: case.surrogate.mean)

    @cached_property
    def surrogate_stderr(self) -> Floats:
        """Standard error of ``surrogate``."""
        return self.stack(lambda case: case.surrogate.stderr)

    @cached_property
    def ratio(self) -> Floats:
        """``mean`` over ``surrogate``: what context does to the expected tokens per call."""
        return self.stack(lambda case: case.ratio)

    @cached_property
    def ratio_stderr(self) -> Floats:
        """Standard error of ``ratio``."""
        return self.stack(lambda case: case.ratio_stderr)

    @cached_property
    def formulas(self) -> tuple[str, ...]:
        """The formulas for independent laws that apply."""
        return tuple(name for name in IID_FORMULAS if any(name in case.iid for case in self.cases))

    def formula(self, name: str) -> Floats:
        """A formula's values; NaN outside its domain and where it is trivial."""
        return self.stack(lambda case: case.iid.get(name, np.full(self.P.size, np.nan)))

    def excess(self, name: str) -> Floats:
        """``mean`` less a formula for independent laws, tokens per call."""
        return self.stack(
            lambda case: case.excess(name) if name in case.iid else np.full(self.P.size, np.nan)
        )

    def errors(self, name: str) -> Floats:
        """``excess`` in standard errors of ``mean``."""
        return self.stack(
            lambda case: case.errors(name) if name in case.iid else np.full(self.P.size, np.nan)
        )

    def is_broken(self, name: str) -> NDArray[np.bool_]:
        """Where ``mean`` exceeds a formula by more than 4 standard errors."""
        return np.asarray(self.errors(name) > TOLERATED_ERRORS)

    @property
    def starts(self) -> tuple[str, ...]:
        """The labels of the starts that were simulated."""
        return tuple(start.label for start in self.cases[0].starts)

    @cached_property
    def violations(self) -> list[Violation]:
        """Every bound broken by more than 4 standard errors, or by an exact mean at all.

        Upper bounds for independent laws by the stationary process; the process's own by any start.
        """
        found = []
        for at, case in self._points():
            found += [
                Violation(name, kind, STATIONARY, at, *numbers)
                for name in self.formulas
                if name in case.iid and (kind := kind_of(name, iid=True)) == "iid-upper"
                for numbers in _beyond(case, case.stationary, case.iid[name], 1.0)
            ]
            for start in (case.stationary, *case.starts):
                for name, values in start.theory.items():
                    side = {"upper": 1.0, "lower": -1.0}.get(kind_of(name))
                    if side is not None:
                        found += [
                            Violation(name, kind_of(name), start.label, at, *numbers)
                            for numbers in _beyond(case, start, values, side)
                        ]
        return found

    @cached_property
    def breaks(self) -> list[Break]:
        """Where along the first swept key each formula is exceeded first; those that never are do not appear."""
        if not self.axes:
            return []
        found = []
        for name in self.formulas:
            table = self.errors(name).reshape(len(self.axes[0].values), -1, self.P.size)
            slack = (self.excess(name) - TOLERATED_ERRORS * self.stderr).reshape(table.shape)
            for j, at in enumerate(self._others()):
                for k, capacity in enumerate(self.P.tolist()):
                    located = _first_break(self.axes[0], table[:, j, k], slack[:, j, k])
                    if located is not None:
                        found.append(Break(name, kind_of(name, iid=True), capacity, at, *located))
        return found

    def slopes(self) -> dict[str, tuple[float, float]]:
        """Growth of E[X] per unit of ln P over the upper half of the range of ln P, with its standard error.

        Of the stationary process, every start and the surrogate. The two ends share their trees, so the
        error is an upper limit: as if they did not. Empty with a sweep or a single P.
        """
        if self.axes or self.P.size == 1:
            return {}
        case = self.cases[0]
        first = min(int(np.searchsorted(self.P, math.sqrt(self.P[0] * self.P[-1]))), self.P.size - 2)
        width = math.log(self.P[-1] / self.P[first])
        parts = {start.label: start.simulated for start in (case.stationary, *case.starts)}
        return {
            label: (
                float(found.mean[-1] - found.mean[first]) / width,
                math.hypot(found.stderr[-1], found.stderr[first]) / width,
            )
            for label, found in {**parts, "surrogate": case.surrogate}.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; None for what is not finite or does not apply."""
        from brwsim.stresstest.variables import to_dict

        return to_dict(self)

    def to_xarray(self) -> xarray.Dataset:
        """The arrays as a labelled dataset (needs ``brwsim[xarray]``)."""
        from brwsim.stresstest.variables import to_xarray

        return to_xarray(self)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw curves over P, over a swept key, or a map of two; write the figure where ``path`` says."""
        from brwsim.stresstest.figure import plot

        return plot(self, path)

    def save(self, path: str | Path) -> StressReport:
        """Write an HDF5 file (whole or not at all) with the same content as ``to_xarray``."""
        from brwsim.stresstest.store import write

        write(self, Path(path))
        return self

    def __str__(self) -> str:
        from brwsim.stresstest.text import text

        return text(self)

    def __repr__(self) -> str:
        name = json.loads(self.process_json)["name"]
        swept = ", ".join(f"{axis.key}: {len(axis.values)} values" for axis in self.axes)
        return f"StressReport({name!r}, P={self.P[0]}..{self.P[-1]}{', ' if swept else ''}{swept})"

    def _points(self) -> Iterator[tuple[tuple[float, ...], Case]]:
        """The cases with the values of the swept keys."""
        for position, case in zip(np.ndindex(*self.shape), self.cases, strict=True):
            yield tuple(axis.values[i] for axis, i in zip(self.axes, position, strict=True)), case

    def _others(self) -> list[tuple[float, ...]]:
        """The values of the second swept key; one empty tuple without it."""
        return [(value,) for value in self.axes[1].values] if len(self.axes) > 1 else [()]


def _beyond(case: Case, start: Start, values: Floats, side: float) -> Iterator[tuple[int, float, float]]:
    """(P, excess, standard errors) where a mean lies beyond ``values`` on the side of the sign."""
    difference = excess(start.simulated, values)
    errors = side * in_errors(difference, start.simulated)
    for i in np.flatnonzero(errors > TOLERATED_ERRORS):
        yield int(case.P[i]), float(difference[i]), float(errors[i])


def _first_break(axis: Axis, errors: Floats, slack: Floats) -> tuple[float, float, float, float] | None:
    """(value, below, above, errors at above) of the least value that breaks, if one does."""
    broken = np.flatnonzero(errors > TOLERATED_ERRORS)
    if not broken.size:
        return None
    i = int(broken[0])
    above, significance = axis.values[i], float(errors[i])
    if i == 0 or not np.isfinite(slack[i - 1]):
        return above, axis.values[i - 1] if i else math.nan, above, significance
    below = axis.values[i - 1]
    low, high = axis.scaled([below, above])
    share = -slack[i - 1] / (slack[i] - slack[i - 1])
    return float(axis.unscaled(low + share * (high - low))), below, above, significance
