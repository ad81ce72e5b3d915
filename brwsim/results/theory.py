"""What theory says of a sweep, before any tree is grown: moments and bounds."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brwsim.spec import SweepSpec
from brwsim.theory.bounds import Bound, available

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Theory:
    """Moments of a process and the bounds that apply, with their values on a sweep's grid.

    A result file holds it, so that reading one needs nothing that the process was made from.

    Attributes
    ----------
    moments : mapping of str to float
        ``mu`` (nats) and ``mu2`` (nats squared).
    is_fixed : bool
        Whether every tree is the same tree.
    bounds : tuple of Bound
    values : mapping of str to NDArray[np.float64]
        By the bound's name, one value for each P; NaN outside the bound's domain.
    """

    moments: Mapping[str, float]
    is_fixed: bool
    bounds: tuple[Bound, ...]
    values: Mapping[str, Floats]


@functools.lru_cache(maxsize=4)
def theory_of(spec: SweepSpec) -> Theory:
    """Compute it from the process; kept, since every commit of a sweep asks."""
    process, P = spec.process, spec.P
    facts = process.facts()
    bounds = tuple(available(facts))
    values = {
        bound.name: np.where(bound.in_domain(P, **facts), bound(P, **facts), np.nan) for bound in bounds
    }
    return Theory({"mu": process.mu, "mu2": process.mu2}, process.is_fixed, bounds, values)
