"""What a stress test sweeps over: a numeric key of the process and its values, read from a short text."""

from __future__ import annotations

import inspect
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brwsim.errors import InvalidInput
from brwsim.parse import parse_dist
from brwsim.process import PROCESSES, process_from_spec
from brwsim.process.base import Process
from brwsim.process.families import HIGH, LOW

Floats = NDArray[np.float64]
Sweep = str | Sequence[str] | Mapping[str, Iterable[float] | str] | None

SPREAD = "spread"
"""A key of the stress test's own: high - low, the entropy rate held fixed."""

DEFAULT_COUNT = 12
MAX_COUNT = 256
MAX_POINTS = 2048

_FORMS = "write KEY=0..0.999 or KEY=0..0.999@24 (so many values) or KEY=0,0.5,0.9"


@dataclass(frozen=True)
class Axis:
    """A key and its values, increasing.

    Distances along an axis are taken on the scale of ``scaled``: 1 - persistence and 1 - |rho| by their
    logarithm, as what happens near 1 takes as much room as what happens near 0; all other keys as they are.

    >>> axis = Axis("persistence", (0.0, 0.9, 0.99))
    >>> axis.scaled(axis.values).round(3).tolist()
    [0.0, 2.303, 4.605]
    >>> round(float(axis.unscaled(3.45)), 3)
    0.968
    """

    key: str
    values: tuple[float, ...]

    def scaled(self, values: ArrayLike) -> Floats:
        """Values on the scale in which distances are taken."""
        return _scale(self.key)[0](np.asarray(values, dtype=np.float64))

    def unscaled(self, positions: ArrayLike) -> Floats:
        """The inverse of ``scaled``."""
        return _scale(self.key)[1](np.asarray(positions, dtype=np.float64))


def _scale(key: str) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    if key == "persistence":
        return (lambda x: -np.log1p(-x)), (lambda y: -np.expm1(-y))
    if key == "rho":
        return np.arctanh, np.tanh
    return np.asarray, np.asarray


def spec_of(dist: str | Mapping[str, Any] | Process) -> dict[str, Any]:
    """The keys a process is built from, with its name."""
    if isinstance(dist, Process):
        return dist.to_spec()
    return parse_dist(dist) if isinstance(dist, str) else dict(dist)


def process_at(spec: Mapping[str, Any], point: Mapping[str, float]) -> Process:
    """The process with some of its keys set; raises InvalidInput for what it refuses."""
    keys = {**spec, **{key: value for key, value in point.items() if key != SPREAD}}
    if SPREAD in point:
        keys.update(_spread_apart(keys, point[SPREAD]))
    return process_from_spec(keys)


def _spread_apart(keys: Mapping[str, Any], spread: float) -> dict[str, float]:
    """``low`` and ``high`` that lie ``spread`` apart and leave the entropy rate where it is."""
    low, high, share = keys.get("low", LOW), keys.get("high", HIGH), keys.get("share", 0.5)
    if not all(isinstance(value, int | float) for value in (low, high, share)):
        raise InvalidInput(f"{keys['name']}: low, high and share must be numbers where spread is swept")
    mean = (1.0 - share) * low + share * high
    if not 0.0 <= spread * share < mean:
        raise InvalidInput(
            f"{keys['name']}: spread must be at least 0 and below {mean / share:g}, where low reaches 0,"
            f" not {spread:g}"
        )
    return {"low": mean - share * spread, "high": mean + (1.0 - share) * spread}


def parse_sweep(sweep: Sweep, spec: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Read what to sweep over: no, one or two keys of a process.

    Parameters
    ----------
    sweep : str, sequence of str, mapping or None
        ``"persistence=0..0.999"`` (12 values), ``"rho=-0.9..0.9@7"``, ``"tail=0.5,1,2"``; two of them in a
        list for a map; or a mapping of keys to values. Values of a range are even on the key's own scale.
    spec : mapping
        The process with its name, as ``process_from_spec`` takes it.

    Raises
    ------
    InvalidInput
        For a text of another form, a key that the process does not have or that is no number, or a value
        that the process refuses.

    Examples
    --------
    >>> parse_sweep("tail=1..2@3", {"name": "regimes"})
    (Axis(key='tail', values=(1.0, 1.5, 2.0)),)
    """
    if sweep is None:
        return ()
    if isinstance(sweep, Mapping):
        items = list(sweep.items())
    else:
        items = [_key_and_text(text) for text in ([sweep] if isinstance(sweep, str) else sweep)]
    keys = [key for key, _ in items]
    if not 1 <= len(keys) <= 2:
        raise InvalidInput(f"sweep over one key or two, not {len(keys)}")
    if len(set(keys)) < len(keys):
        raise InvalidInput(f"the sweep over {keys[0]} is given twice; give it once")
    axes = tuple(_axis(key, values, spec) for key, values in items)
    if SPREAD in keys and {"low", "high"} & set(keys):
        raise InvalidInput("spread sets low and high; sweep over it or over those")
    count = math.prod(len(axis.values) for axis in axes)
    if count > MAX_POINTS:
        raise InvalidInput(f"the sweep has {count} points, and at most {MAX_POINTS} are simulated")
    return axes


def _key_and_text(text: Any) -> tuple[str, str]:
    if not isinstance(text, str):
        raise InvalidInput(f"a sweep is a text, not {reprlib.repr(text)}; {_FORMS}")
    key, equals, values = (part.strip() for part in text.partition("="))
    if not (key and equals):
        raise InvalidInput(f"the sweep {reprlib.repr(text)} is not KEY=VALUES; {_FORMS}")
    return key, values


def _axis(key: str, values: str | Iterable[float], spec: Mapping[str, Any]) -> Axis:
    whole = _is_whole(key, spec)
    if isinstance(values, str) and ".." in values:
        first, last, count = _range(key, values)
        for end in (first, last):  # refused by the process itself before a scale is taken of it
            process_at(spec, {key: int(end) if whole and end.is_integer() else end})
        listed = _spaced(key, first, last, count, whole)
    else:
        given = values.split(",") if isinstance(values, str) else list(values)
        listed = sorted({_number(key, value) for value in given})
    if not 2 <= len(listed) <= MAX_COUNT:
        raise InvalidInput(f"the sweep over {key} has {len(listed)} values; give 2 to {MAX_COUNT}")
    return Axis(key, tuple(int(value) if whole and value.is_integer() else value for value in listed))


def _is_whole(key: str, spec: Mapping[str, Any]) -> bool:
    """Whether a key takes whole numbers; raises InvalidInput if it is none of the process's numeric keys."""
    kind = PROCESSES.get(spec.get("name", ""))
    if kind is None:
        process_from_spec(spec)  # says what names there are
    types = {name: str(p.annotation) for name, p in inspect.signature(kind).parameters.items()}  # type: ignore[arg-type]
    if key == SPREAD and "laws" not in spec and {"low", "high"} <= types.keys():
        return False
    numeric = [name for name, text in types.items() if text.split(" | ")[0] in ("float", "int")]
    if key not in numeric or key == "start":
        allowed = [name for name in numeric if name != "start"]
        allowed += [SPREAD] if {"low", "high"} <= types.keys() else []
        raise InvalidInput(
            f"{spec['name']} has no key {reprlib.repr(key)} to sweep over; choose one of {', '.join(allowed)}"
        )
    return types[key].startswith("int")


def _range(key: str, text: str) -> tuple[float, float, int]:
    ends, at, number = text.partition("@")
    first, last = (_number(key, end) for end in ends.split("..", 1))
    if not first < last:
        raise InvalidInput(f"the sweep over {key} from {first:g} to {last:g} is empty or reversed; {_FORMS}")
    count = _number(key, number) if at else DEFAULT_COUNT
    if not (float(count).is_integer() and 2 <= count <= MAX_COUNT):
        raise InvalidInput(f"the sweep over {key} may have 2 to {MAX_COUNT} values, not {count:g}")
    return first, last, int(count)


def _number(key: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"the sweep over {key} holds {reprlib.repr(value)}, which is no number; {_FORMS}"
        ) from None
    if not math.isfinite(number):
        raise InvalidInput(f"the sweep over {key} holds {number}; its values must be finite")
    return number


def _spaced(key: str, first: float, last: float, count: int, whole: bool) -> list[float]:
    """``count`` values even on the key's scale, the ends exact; for whole numbers, the distinct nearest ones."""
    axis = Axis(key, ())
    low, high = axis.scaled([first, last]).tolist()
    inner = axis.unscaled(np.linspace(low, high, count)).tolist()[1:-1]
    values = [first, *inner, last]
    return sorted({float(round(value)) for value in values}) if whole else values
