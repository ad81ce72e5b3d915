"""A stress test's arrays with their names, dimensions and meanings: what files, datasets and JSON hold."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import InvalidInput, missing
from brwsim.stresstest.case import Start, kind_of

if TYPE_CHECKING:
    import xarray

    from brwsim.stresstest.report import StressReport

Floats = NDArray[np.float64]

CAPACITY, START = "P", "start"
_TOKENS = "tokens per call"


@dataclass(frozen=True, eq=False)
class Variable:
    """One array: its dimensions by name, and attributes such as ``long_name`` and ``units``."""

    name: str
    dims: tuple[str, ...]
    values: Floats
    attributes: dict[str, str]


def variables(report: StressReport) -> Iterator[Variable]:
    """All arrays of a report."""
    yield from _simulated(report)
    dims = (*(axis.key for axis in report.axes), CAPACITY)
    for name in report.formulas:
        kind = {"kind": kind_of(name, iid=True), "units": _TOKENS}
        yield Variable(f"iid_{name}", dims, report.formula(name), {"long_name": name, **kind})
        about = {"long_name": f"mean less {name}", "units": _TOKENS}
        yield Variable(f"excess_{name}", dims, report.excess(name), about)
        about = {"long_name": f"mean less {name}, in standard errors", "units": "1"}
        yield Variable(f"errors_{name}", dims, report.errors(name), about)
    for name in _own(report):
        values = report.stack(lambda case, name=name: _value(case.stationary, name))  # type: ignore[misc]
        yield Variable(name, dims, values, {"long_name": name, "kind": kind_of(name), "units": _TOKENS})
        if report.starts:
            started = _started(report, lambda start, name=name: _value(start, name))  # type: ignore[misc]
            about = {"long_name": f"{name} from each start", "kind": kind_of(name), "units": _TOKENS}
            yield Variable(f"start_{name}", _with_start(dims), started, about)


def _simulated(report: StressReport) -> Iterator[Variable]:
    dims = (*(axis.key for axis in report.axes), CAPACITY)
    for name, values, about, units in (
        ("mean", report.mean, "E[X] of the process, its root stationary", _TOKENS),
        ("stderr", report.stderr, "standard error of mean", _TOKENS),
        ("surrogate", report.surrogate, "E[X] of the i.i.d. surrogate", _TOKENS),
        ("surrogate_stderr", report.surrogate_stderr, "standard error of surrogate", _TOKENS),
        ("ratio", report.ratio, "mean over surrogate", "1"),
        ("ratio_stderr", report.ratio_stderr, "standard error of ratio", "1"),
    ):
        yield Variable(name, dims, values, {"long_name": about, "units": units})
    if report.starts:
        for name, get in (("mean", _mean), ("stderr", _stderr)):
            about = {"mean": "E[X] from each start", "stderr": "standard error of start_mean"}[name]
            yield Variable(
                f"start_{name}",
                _with_start(dims),
                _started(report, get),
                {"long_name": about, "units": _TOKENS},
            )


def _mean(start: Start) -> Floats:
    return start.simulated.mean


def _stderr(start: Start) -> Floats:
    return start.simulated.stderr


def _with_start(dims: tuple[str, ...]) -> tuple[str, ...]:
    return (*dims[:-1], START, dims[-1])


def _started(report: StressReport, get: Callable[[Start], Floats]) -> Floats:
    return report.stack(lambda case: np.array([get(start) for start in case.starts]))


def _own(report: StressReport) -> list[str]:
    """Names of what is known of the process itself in any case, in one order."""
    return list(dict.fromkeys(name for case in report.cases for name in case.stationary.theory))


def _value(start: Start, name: str) -> Floats:
    return start.theory.get(name, np.full(start.simulated.mean.size, np.nan))


def to_xarray(report: StressReport) -> xarray.Dataset:
    """The arrays as a dataset, labelled by P, the swept keys and the starts."""
    try:
        import xarray
    except ImportError:
        raise InvalidInput(f"to_xarray needs xarray; {missing('xarray', 'xarray')}") from None
    arrays = {
        variable.name: (variable.dims, variable.values, variable.attributes) for variable in variables(report)
    }
    coordinates: dict[str, Any] = {
        CAPACITY: report.P,
        **{axis.key: list(axis.values) for axis in report.axes},
    }
    if report.starts:
        coordinates[START] = list(report.starts)
    return xarray.Dataset(
        arrays, coords=coordinates, attrs={"process_json": report.process_json, "seed": report.seed}
    )


def to_dict(report: StressReport) -> dict[str, Any]:
    """Everything as JSON-ready data: arrays as nested lists, None for what is not finite."""
    return {
        "process": json.loads(report.process_json),
        "P": report.P.tolist(),
        "sweep": {axis.key: list(axis.values) for axis in report.axes},
        "starts": list(report.starts),
        "seed": report.seed,
        "trees": report.trees,
        "rel_err": report.rel_err,
        "arrays": {
            variable.name: {
                "dims": list(variable.dims),
                **variable.attributes,
                "values": _plain(variable.values),
            }
            for variable in variables(report)
        },
        "violations": [_fields(violation) for violation in report.violations],
        "breaks": [_fields(found) for found in report.breaks],
        "slopes": {
            name: {"slope": slope, "stderr": error} for name, (slope, error) in report.slopes().items()
        },
    }


def _plain(values: Any) -> Any:
    if isinstance(values, np.ndarray):
        return _plain(values.tolist())
    if isinstance(values, list):
        return [_plain(value) for value in values]
    return values if math.isfinite(values) else None


def _fields(record: Any) -> dict[str, Any]:
    """A dataclass as a mapping; None for numbers that are not finite."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in dataclasses.asdict(record).items()
    }
