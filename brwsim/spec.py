"""What a sweep is: a process and a grid of P, written canonically so that equal sweeps have equal ids."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import InvalidInput
from brwsim.parse import parse_dist, parse_grid
from brwsim.process import PROCESSES, process_from_spec
from brwsim.process.base import Process
from brwsim.process.laws.build import keys_of

MAX_SEED = 2**64 - 1


@dataclass(frozen=True)
class SweepSpec:
    """The question a sweep answers: which process, at which P.

    Two sweeps with the same ``spec_id`` and the same seed grow the same trees, so their blocks can be
    shared, resumed and merged. Where a pool of distributions is kept (``Process.hint_keys``) is stored but
    no part of the identity: its hash is.

    Parameters
    ----------
    process_json : str
        Canonical JSON of the process.
    grid : str
        Canonical text of the P grid.
    """

    process_json: str
    grid: str

    @classmethod
    def of(cls, dist: str | Mapping[str, Any] | Process, P: Any) -> SweepSpec:
        """Build from what a user writes: ``"name:key=value"``, a mapping or a law, and a grid."""
        process = as_process(dist)
        return cls(canonical_json(process.to_spec()), format_grid(parse_grid(P)))

    @classmethod
    def from_json(cls, text: str) -> SweepSpec:
        """Read back ``to_json``."""
        data = json.loads(text)
        return cls(canonical_json(data["process"]), data["P"])

    def to_json(self) -> str:
        """Canonical JSON: ``{"P": grid text, "process": {...}}``."""
        return canonical_json({"process": json.loads(self.process_json), "P": self.grid})

    @property
    def spec_id(self) -> str:
        """First 16 hex digits of the SHA-256 of ``to_json()`` without hint keys."""
        identity = canonical_json({"process": _without_hints(self.process_spec), "P": self.grid})
        return hashlib.sha256(identity.encode()).hexdigest()[:16]

    @functools.cached_property
    def process_spec(self) -> dict[str, Any]:
        """The process as JSON-ready data: its name, then its keys in the order of its constructor."""
        spec: dict[str, Any] = _in_order(json.loads(self.process_json))
        return spec

    @property
    def process_class(self) -> type[Process]:
        """What the process is an instance of, known without building it."""
        return _named(self.process_spec) or Process

    @functools.cached_property
    def process(self) -> Process:
        """The process itself; raises FileError where a file that it reads is missing."""
        return process_from_spec(self.process_spec)

    @functools.cached_property
    def P(self) -> NDArray[np.int64]:
        """The grid, increasing."""
        return parse_grid(self.grid)

    def __str__(self) -> str:
        keys = ",".join(
            f"{key}={json.dumps(value)}" for key, value in self.process_spec.items() if key != "name"
        )
        return f"{self.process_spec['name']}:{keys}" if keys else str(self.process_spec["name"])


def as_process(dist: str | Mapping[str, Any] | Process) -> Process:
    """The process a user means by text, mapping or the object itself."""
    if isinstance(dist, Process):
        return dist
    return process_from_spec(parse_dist(dist) if isinstance(dist, str) else dict(dist))


def _in_order(spec: Any) -> Any:
    """The same data, the keys of every process in it in the order of its constructor."""
    if isinstance(spec, list):
        return [_in_order(item) for item in spec]
    if not isinstance(spec, dict):
        return spec
    known = ["name", *keys_of(process)] if (process := _named(spec)) else []
    ordered = [key for key in known if key in spec] + [key for key in spec if key not in known]
    return {key: _in_order(spec[key]) for key in ordered}


def _without_hints(spec: Any) -> Any:
    """The same data without the hint keys of any process in it."""
    if isinstance(spec, list):
        return [_without_hints(item) for item in spec]
    if not isinstance(spec, dict):
        return spec
    hints = process.hint_keys if (process := _named(spec)) else ()
    return {key: _without_hints(value) for key, value in spec.items() if key not in hints}


def _named(spec: Mapping[str, Any]) -> type[Process] | None:
    name = spec.get("name")
    return PROCESSES.get(name) if isinstance(name, str) else None


def check_seed(seed: int) -> int:
    """The seed, if it is a whole number from 0 to 2^64 - 1."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed <= MAX_SEED:
        raise InvalidInput(f"seed must be a whole number from 0 to 2^64 - 1, not {seed!r}")
    return int(seed)


def canonical_json(data: Any) -> str:
    """JSON with sorted keys and no white space."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def format_grid(P: NDArray[np.int64]) -> str:
    """The shortest grid text made of runs: consecutive values as ``a..b``, others with commas.

    >>> format_grid(np.array([1, 2, 3, 8, 16]))
    '1..3,8,16'
    """
    breaks = np.flatnonzero(np.diff(P) != 1) + 1
    runs = np.split(P, breaks)
    return ",".join(str(run[0]) if run.size == 1 else f"{run[0]}..{run[-1]}" for run in runs)
