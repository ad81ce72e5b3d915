"""Stationary ergodic environments that pick a law by level: an AR(1) value, an irrational rotation.

A mixture of laws is sorted by entropy; the environment's value, uniform in distribution, picks from it
by quantile. The laws and their proportions stay the same whatever the memory of the environment.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.process.base import Floats, Gaussian, Law, Layout, Process, Rotation, State
from brwsim.process.families import spread_laws
from brwsim.process.laws.checks import check_real, check_vocab
from brwsim.process.laws.mixture import Mixture

_LEVELS = 16
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_HERMITE_DEGREE = 8
_MAX_START = 10.0


@dataclass(frozen=True, init=False)
class _LevelProcess(Process):
    """Laws sorted by entropy, with the proportions in which a stationary environment picks them."""

    either: ClassVar[tuple[tuple[str, ...], ...]] = (("laws",), ("low", "high", "levels", "vocab"))

    laws: tuple[Law, ...]
    weights: tuple[float, ...]

    def _set_laws(
        self,
        laws: Sequence[Law | Mapping[str, Any] | str] | None,
        weights: Sequence[float] | None,
        low: float | None,
        high: float | None,
        levels: int | None,
        vocab: int | None,
    ) -> None:
        if laws is None:
            count = _LEVELS if levels is None else check_vocab(self.name, levels, 2, 1024, key="levels")
            laws = spread_laws(self.name, low, high, count, vocab)
        elif any(value is not None for value in (low, high, levels, vocab)):
            raise InvalidInput(f"{self.name}: give laws, or low, high, levels and vocab, not both forms")
        mixture = Mixture(laws, weights)
        ranked = sorted(zip(mixture.laws, mixture.weights, strict=True), key=lambda pair: pair[0].mu)
        object.__setattr__(self, "laws", tuple(law for law, _ in ranked))
        object.__setattr__(self, "weights", tuple(weight for _, weight in ranked))

    @property
    def mu(self) -> float:
        return self.surrogate().mu

    @property
    def mu2(self) -> float:
        return self.surrogate().mu2

    @property
    def vocab(self) -> int | None:
        return self.surrogate().vocab

    def facts(self) -> dict[str, Any]:
        return {
            "iid": False,
            "mu": self.mu,
            "mu2": self.mu2,
            "vocab": self.vocab,
            "step_cdf": None,
            "markov": None,
        }

    def surrogate(self) -> Law:
        """The i.i.d. process with the same laws in the same proportions."""
        return Mixture(self.laws, self.weights)

    def to_spec(self) -> dict[str, Any]:
        spec = super().to_spec()
        return {**spec, "laws": [law.to_spec() for law in self.laws], "weights": list(self.weights)}

    def _states(self) -> list[State]:
        return [State(law.rows(), law.mu) for law in self.laws]

    def _quantiles(self) -> Floats:
        """Where one law ends and the next begins, on the scale of a uniform value."""
        return np.cumsum(self.weights)[:-1]


@dataclass(frozen=True, init=False)
class Ar1(_LevelProcess):
    """AR(1) environment: a Gaussian value along each path picks a node's law by quantile (Gaussian copula).

    Parameters
    ----------
    rho : float
        Correlation of a node's value with its child's, strictly between -1 and 1; 0 is i.i.d.
    laws, weights : optional
        The laws to pick from and their proportions, as for ``mixture``; sorted by entropy.
    low, high, levels, vocab : optional
        Instead of laws: Dirichlet laws with entropies evenly from low to high nats.
    start : float, optional
        The root's value in standard deviations; stationary when left out.

    Raises
    ------
    InvalidInput
        For rho outside (-1, 1), or keys of both forms.

    Notes
    -----
    Two children have independent innovations. The entropy rate is the weighted mean of the laws'
    entropies, whatever rho is. Source: docs/theory.md, "context-control-variate" (derived).

    Examples
    --------
    >>> process = Ar1(rho=0.9, laws=["uniform:vocab=2", "uniform:vocab=8"])
    >>> print(f"{process.mu / math.log(2):.6f}")
    2.000000
    """

    name: ClassVar[str] = "ar1"

    rho: float
    start: float | None

    def __init__(
        self,
        rho: float = 0.9,
        laws: Sequence[Law | Mapping[str, Any] | str] | None = None,
        weights: Sequence[float] | None = None,
        low: float | None = None,
        high: float | None = None,
        levels: int | None = None,
        vocab: int | None = None,
        start: float | None = None,
    ) -> None:
        self._set_laws(laws, weights, low, high, levels, vocab)
        object.__setattr__(self, "rho", check_real(self.name, "rho", rho))
        if not -1.0 < self.rho < 1.0:
            raise InvalidInput(f"ar1: rho must lie strictly between -1 and 1, not {self.rho:g}")
        object.__setattr__(self, "start", None if start is None else check_real(self.name, "start", start))
        if self.start is not None and abs(self.start) > _MAX_START:
            raise InvalidInput(
                f"ar1: start must lie within {_MAX_START:g} standard deviations, not {self.start:g}"
            )

    def layout(self) -> Layout:
        phi, expected = self._poisson
        return Layout(self._states(), Gaussian(self.rho, self._thresholds, phi, expected, self.start))

    def starts(self) -> dict[str, Process]:
        """From one standard deviation below, at, and above the mean."""
        return {
            f"value {value:+g}": Ar1(self.rho, self.laws, self.weights, start=value)
            for value in (-1.0, 0.0, 1.0)
        }

    @cached_property
    def _thresholds(self) -> Floats:
        from scipy.special import ndtri

        return np.asarray(ndtri(self._quantiles()))

    @cached_property
    def _poisson(self) -> tuple[Floats, Floats]:
        """Phi and its expectation a step ahead as polynomials: Poisson's equation in Hermite's basis.

        The step multiplies the k-th Hermite polynomial by rho^k, so phi_k = h_k / (1 - rho^k), h_k the
        coefficients of the entropy as a step function of the value. Cutting the series short costs
        variance only: the expectation of what is kept is exact.
        """
        from numpy.polynomial import hermite_e

        jumps = np.diff([law.mu for law in self.laws])
        density = np.exp(-0.5 * self._thresholds**2) / math.sqrt(2.0 * math.pi)
        degrees = np.arange(1, _HERMITE_DEGREE + 1)
        phi = np.zeros(_HERMITE_DEGREE + 1)
        for k in degrees:
            basis = np.zeros(k)
            basis[k - 1] = 1.0  # the integral of He_k above t is He_{k-1}(t) times the density
            coefficient = np.sum(
                jumps * hermite_e.hermeval(self._thresholds, basis) * density
            ) / math.factorial(k)
            phi[k] = coefficient / (1.0 - self.rho**k)
        expected = phi * self.rho ** np.arange(_HERMITE_DEGREE + 1)
        return _powers(np.asarray(hermite_e.herme2poly(phi), float)), _powers(
            np.asarray(hermite_e.herme2poly(expected), float)
        )


@dataclass(frozen=True, init=False)
class CircleRotation(_LevelProcess):
    """Irrational rotation: a point on a circle moves by a fixed angle a level; ergodic, not mixing.

    Parameters
    ----------
    move : float
        Share of the circle moved at every level, strictly between 0 and 1; the golden section by default.
    laws, weights, low, high, levels, vocab : optional
        As for ``ar1``; the circle is cut into arcs as long as the weights, by increasing entropy.
    start : float, optional
        The root's point in [0, 1); uniform when left out.

    Raises
    ------
    InvalidInput
        For a move or a start outside its range, or keys of both forms.

    Notes
    -----
    All nodes of a level share the environment, so it never averages out between branches. A rational
    move visits finitely many points: then the process is periodic, and its slope depends on the start.

    Examples
    --------
    >>> CircleRotation(laws=["uniform:vocab=2", "uniform:vocab=4"]).laws[0].vocab
    2
    """

    name: ClassVar[str] = "rotation"

    move: float
    start: float | None

    def __init__(
        self,
        move: float = _GOLDEN,
        laws: Sequence[Law | Mapping[str, Any] | str] | None = None,
        weights: Sequence[float] | None = None,
        low: float | None = None,
        high: float | None = None,
        levels: int | None = None,
        vocab: int | None = None,
        start: float | None = None,
    ) -> None:
        self._set_laws(laws, weights, low, high, levels, vocab)
        object.__setattr__(self, "move", check_real(self.name, "move", move))
        if not 0.0 < self.move < 1.0:
            raise InvalidInput(f"rotation: move must lie strictly between 0 and 1, not {self.move:g}")
        object.__setattr__(self, "start", None if start is None else check_real(self.name, "start", start))
        if self.start is not None and not 0.0 <= self.start < 1.0:
            raise InvalidInput(f"rotation: start must be at least 0 and below 1, not {self.start:g}")

    def layout(self) -> Layout:
        return Layout(self._states(), Rotation(self.move, self._quantiles(), self.start))

    @property
    def is_fixed(self) -> bool:
        return self.start is not None and all(law.is_fixed for law in self.laws)

    def starts(self) -> dict[str, Process]:
        """From four points around the circle."""
        return {
            f"point {point:g}": CircleRotation(self.move, self.laws, self.weights, start=point)
            for point in (0.0, 0.25, 0.5, 0.75)
        }


def _powers(coefficients: Floats) -> Floats:
    """Highest power first, up to the degree in use."""
    padded = np.zeros(_HERMITE_DEGREE + 1)
    padded[: coefficients.size] = coefficients
    return np.ascontiguousarray(padded[::-1])
