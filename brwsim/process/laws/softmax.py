"""The law of a softmax over independent normal logits, with its moments by quadrature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.process.base import Floats, KernelRow, Law, Logits
from brwsim.process.laws.checks import (
    DEFAULT_ENTROPY,
    check_entropy,
    check_only_one,
    check_real,
    check_vocab,
    shown,
)

_MAX_VOCAB = 2**22
_MAX_SIGMA = 1e4
_TOLERANCE = 1e-11
_REACH = 12.0  # standard deviations kept of a normal variable: Pr(beyond) = 4e-33
_LOW, _HIGH = -60.0, 6.0  # outside, the kernels in z below are smaller than 1e-24


@dataclass(frozen=True, init=False)
class SoftmaxNormal(Law):
    """Softmax of ``vocab`` independent N(0, sigma^2) logits: LLM-like when sigma is large.

    With neither sigma nor entropy, sigma is solved for a mean entropy of 0.683 nats.

    Parameters
    ----------
    vocab : int, 2..4194304
        Number of children of every node.
    sigma : float, in (0, 10000], optional
        Standard deviation of a logit; dividing it by T is sampling at temperature T.
    entropy : float, in (0, ln vocab), optional
        Mean entropy mu in nats, solved for sigma to about 12 digits. Only sigma is kept.

    Raises
    ------
    InvalidInput
        If a value is outside its range, or both sigma and entropy are given.

    Notes
    -----
    With Z the sum of e^x over the logits, 1/Z = integral e^(-sZ) ds and its derivatives with respect to
    the power of Z make every moment one integral over s. Put s = e^u, z = u + x, phi(u) = E exp(-e^z),
    g the Euler constant, then

        mu  = V integral phi^(V-1) E[-(z + g) e^z exp(-e^z)] du
        mu2 = V integral phi^(V-1) E[((z + g)^2 - pi^2/6) e^z exp(-e^z)] du,

    evaluated by the trapezoid rule, which converges exponentially here, and refined until both change
    by less than 1e-11 relative. No closed form of the step law is known. Source: derived,
    docs/theory.md.

    Examples
    --------
    >>> law = SoftmaxNormal(vocab=100, sigma=3.0)
    >>> print(f"{law.mu:.6f}")
    2.041154
    """

    name: ClassVar[str] = "softmax-normal"
    either: ClassVar[tuple[tuple[str, ...], ...]] = (("sigma",), ("entropy",))

    vocab: int = 4096
    sigma: float = math.nan

    def __init__(self, vocab: int = 4096, sigma: float | None = None, entropy: float | None = None) -> None:
        vocab = check_vocab(self.name, vocab, 2, _MAX_VOCAB)
        check_only_one(self.name, "sigma", sigma, entropy)
        if sigma is None:
            entropy = DEFAULT_ENTROPY if entropy is None else entropy
            sigma = _sigma_for(vocab, check_entropy(self.name, entropy, math.log(vocab), f" (ln {vocab})"))
        sigma = check_real(self.name, "sigma", sigma)
        if not 0 < sigma <= _MAX_SIGMA:
            raise InvalidInput(
                f"softmax-normal: sigma must be above 0 and at most {_MAX_SIGMA:g}, got {shown(sigma)}"
            )
        object.__setattr__(self, "vocab", vocab)
        object.__setattr__(self, "sigma", sigma)

    @property
    def mu(self) -> float:
        return _moments(self.vocab, self.sigma)[0]

    @property
    def mu2(self) -> float:
        return _moments(self.vocab, self.sigma)[1]

    def rows(self) -> list[tuple[float, KernelRow]]:
        return [(1.0, Logits(sigma=self.sigma, vocab=self.vocab))]


@lru_cache(maxsize=256)
def _moments(vocab: int, sigma: float) -> tuple[float, float]:
    """Return mu and mu2, halving the step of both trapezoid rules until neither moves."""
    step = 0.5
    last = _quadrature(vocab, sigma, step)
    while step > 0.01:
        step /= 2
        new = _quadrature(vocab, sigma, step)
        if all(abs(a - b) <= _TOLERANCE * b for a, b in zip(last, new, strict=True)):
            return new
        last = new
    raise InvalidInput(
        f"softmax-normal: the moments at vocab={vocab}, sigma={shown(sigma)} do not converge;"
        " choose another sigma"
    )


def _quadrature(vocab: int, sigma: float, step: float) -> tuple[float, float]:
    """Return mu and mu2 by the trapezoid rule, ``step`` in units of each integrand's own width."""
    from scipy.special import ndtr

    # In u the integrand lives within _REACH sigma of 0, plus the kernel's own width. It is as smooth as
    # the wider of the kernel (scale 1) and of phi^(V-1) (scale sigma / sqrt(2 ln V), at most sigma / 6).
    step_u = step * max(1.0, sigma / 8)
    u = np.arange(-_REACH * sigma - 46 - math.log(vocab), _REACH * sigma + _HIGH + step_u, step_u)

    z, weights = _inner_nodes(u, sigma, step)
    decay = np.exp(z - np.exp(np.minimum(z, _HIGH + 1)))
    centred = z + np.euler_gamma
    first = _average(-centred * decay, weights)
    second = _average((centred**2 - math.pi**2 / 6) * decay, weights)
    # 1 - exp(-e^z) does not vanish for large z; less the normal distribution function, whose average
    # is known, it does.
    bump = -np.expm1(-np.exp(np.minimum(z, _HIGH + 1))) - ndtr(z)
    miss = ndtr(u / math.hypot(1.0, sigma)) + _average(bump, weights)
    # Where 1 - phi rounds to 1, phi^(V-1) is of no weight: only keep its logarithm finite.
    power = np.exp((vocab - 1) * np.log1p(-np.clip(miss, 0.0, 1.0 - 2.0**-53)))
    scale = vocab * step_u
    return scale * float((power * first).sum()), scale * float((power * second).sum())


def _inner_nodes(u: Floats, sigma: float, step: float) -> tuple[Floats, Floats]:
    """Nodes in z = u + x and weights for the average over x, along the last axis.

    A narrow normal is integrated over itself, a wide one over the kernel's width: either way a few
    hundred nodes resolve both factors.
    """
    if sigma < 1:
        t = np.arange(-_REACH, _REACH + step, step)
        return u[:, None] + sigma * t, _normal_density(t) * step
    z = np.arange(_LOW, _HIGH + 4 + step, step)
    return z, _normal_density((z - u[:, None]) / sigma) * (step / sigma)


def _normal_density(t: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * t * t) / math.sqrt(2 * math.pi), dtype=np.float64)


def _average(values: Floats, weights: Floats) -> Floats:
    """Sum ``values * weights`` over the last axis; one of the two is the same for every u."""
    return np.asarray(weights @ values if values.ndim == 1 else values @ weights, dtype=np.float64)


@lru_cache(maxsize=64)
def _sigma_for(vocab: int, entropy: float) -> float:
    from scipy.optimize import brentq

    def excess(log_sigma: float) -> float:
        return math.log(_moments(vocab, math.exp(log_sigma))[0] / entropy)

    low, high = math.log(1e-9), math.log(_MAX_SIGMA)
    if excess(low) <= 0:  # entropy equals ln vocab up to rounding
        return 1e-9
    if excess(high) > 0:
        raise InvalidInput(
            f"softmax-normal: entropy {shown(entropy)} needs a sigma above {_MAX_SIGMA:g}; raise entropy"
        )
    return math.exp(float(brentq(excess, low, high, xtol=1e-14, rtol=1e-15)))
