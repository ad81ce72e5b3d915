"""The result of a sweep as a Python object."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from brwsim.engine.rules import BlockKey
from brwsim.estimate import BlockStats, Estimate, Estimator, estimate
from brwsim.results.theory import Theory, theory_of
from brwsim.spec import SweepSpec
from brwsim.theory.bounds import Bound

if TYPE_CHECKING:
    import xarray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Expected tokens per verifier call, E[X], at every P of a sweep.

    Attributes
    ----------
    spec : SweepSpec
        What was asked.
    blocks : mapping of BlockKey to BlockStats
        What was computed; everything else follows from it.
    estimator : {"control", "crude"}
        How blocks are turned into ``mean`` and ``stderr``.
    path : Path or None
        The file it was saved to or loaded from.
    stored_theory : Theory or None
        Moments and bounds as its file holds them; computed from the process where there is none.
    """

    spec: SweepSpec
    blocks: Mapping[BlockKey, BlockStats]
    estimator: Estimator = "control"
    path: Path | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    stored_theory: Theory | None = None

    @property
    def P(self) -> NDArray[np.int64]:
        """Verifier capacities, root included, increasing; shape (n,)."""
        return self.spec.P

    @property
    def mean(self) -> Floats:
        """Estimated E[X] in tokens per verifier call, bonus token included; shape (n,)."""
        return self._estimate.mean

    @property
    def stderr(self) -> Floats:
        """Standard error of ``mean``; 0 where the answer is exact; shape (n,)."""
        return self._estimate.stderr

    @property
    def variance_ratio(self) -> Floats:
        """Variance of the crude mean over that of ``mean``, from the same trees; shape (n,)."""
        return self._estimate.variance_ratio

    @property
    def trees(self) -> int:
        """Number of trees grown."""
        return sum(block.trees for block in self.blocks.values())

    @property
    def trees_per_P(self) -> NDArray[np.int64]:
        """Number of trees that reach each P; shape (n,)."""
        return self._estimate.trees

    @property
    def seed(self) -> int | list[int]:
        """The seed, or the seeds of a merged result."""
        seeds = sorted({key.seed for key in self.blocks})
        return seeds[0] if len(seeds) == 1 else seeds

    @property
    def theory(self) -> Theory:
        """What is known without simulation: moments and bounds."""
        return self.stored_theory or theory_of(self.spec)

    @property
    def moments(self) -> dict[str, float]:
        """``mu`` (expected entropy, nats) and ``mu2`` (second log-moment, nats squared), exact."""
        if self.stored_theory:
            return dict(self.stored_theory.moments)
        return {"mu": self.spec.process.mu, "mu2": self.spec.process.mu2}  # no need of the bounds

    @functools.cached_property
    def bounds(self) -> dict[str, Floats]:
        """Every bound and estimate that applies, by name, at ``P``; the trivial bound outside its domain."""
        found = {}
        for bound in self.bound_objects:
            values = self.theory.values[bound.name]
            trivial = self.P if bound.kind.endswith("upper") else 1.0
            found[bound.name] = np.where(np.isnan(values), trivial, values)
        return found

    @property
    def bound_objects(self) -> list[Bound]:
        """The bounds behind ``bounds``, each with its kind, domain and source."""
        return list(self.theory.bounds)

    def bounds_in_domain(self) -> dict[str, Floats]:
        """``bounds`` with NaN outside each bound's domain."""
        return dict(self.theory.values)

    def with_estimator(self, estimator: Estimator) -> Result:
        """The same trees, summarised another way."""
        return replace(self, estimator=estimator)

    def save(self, path: str | Path) -> Result:
        """Write the HDF5 file (whole or not at all); returns the result with its ``path`` set."""
        from brwsim.results.store import write

        saved = replace(self, path=Path(path))
        write(saved, Path(path))
        return saved

    def to_xarray(self) -> xarray.Dataset:
        """The curve and its bounds as a labelled dataset (needs xarray)."""
        from brwsim.results.labelled import to_xarray

        return to_xarray(self)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready summary, as ``brwsim show --json`` prints it; None outside a bound's domain."""
        return {
            "spec": {"process": self.spec.process_spec, "P": self.spec.grid},
            "spec_id": self.spec.spec_id,
            "seed": self.seed,
            "trees": self.trees,
            "estimator": self.estimator,
            "P": self.P.tolist(),
            "mean": _jsonable(self.mean),
            "stderr": _jsonable(self.stderr),
            "variance_ratio": _jsonable(self.variance_ratio),
            "trees_per_P": self.trees_per_P.tolist(),
            "moments": self.moments,
            "bounds": {name: _jsonable(values) for name, values in self.bounds_in_domain().items()},
        }

    def __repr__(self) -> str:
        return (
            f"Result({str(self.spec)!r}, P={self.spec.grid!r}, trees={self.trees}, "
            f"E[X] at P={self.P[-1]}: {self.mean[-1]:.6g} +- {self.stderr[-1]:.2g})"
        )

    def __str__(self) -> str:
        from brwsim.report.tables import result_table

        return result_table(self)

    @functools.cached_property
    def _estimate(self) -> Estimate:
        ordered = [self.blocks[key] for key in sorted(self.blocks)]
        is_fixed = self.stored_theory.is_fixed if self.stored_theory else self.spec.process.is_fixed
        if is_fixed:  # one tree, and no error: it is not random
            found = estimate(ordered, self.P, self.moments["mu"], "crude")
            return replace(found, stderr=np.zeros(self.P.size))
        return estimate(ordered, self.P, self.moments["mu"], self.estimator)


def _jsonable(values: Floats) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]
