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
from brwsim.process import process_from_spec
from brwsim.process.base import Process

MAX_SEED = 2**64 - 1


@dataclass(frozen=True)
class SweepSpec:
    """The question a sweep answers: which process, at which P.

    Two sweeps with the same ``spec_id`` and the same seed grow the same trees, so their blocks can be
    shared, resumed and merged.

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
        """First 16 hex digits of the SHA-256 of ``to_json()``."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    @functools.cached_property
    def process(self) -> Process:
        """The process itself."""
        return process_from_spec(json.loads(self.process_json))

    @functools.cached_property
    def P(self) -> NDArray[np.int64]:
        """The grid, increasing."""
        return parse_grid(self.grid)

    def __str__(self) -> str:
        process = json.loads(self.process_json)
        keys = ",".join(f"{key}={json.dumps(value)}" for key, value in process.items() if key != "name")
        return f"{process['name']}:{keys}" if keys else str(process["name"])


def as_process(dist: str | Mapping[str, Any] | Process) -> Process:
    """The process a user means by text, mapping or the object itself."""
    if isinstance(dist, Process):
        return dist
    return process_from_spec(parse_dist(dist) if isinstance(dist, str) else dict(dist))


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
