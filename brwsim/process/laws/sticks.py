"""Random laws drawn by breaking a stick: symmetric Dirichlet and Poisson-Dirichlet (Pitman-Yor).

Both share one fact: a child picked with its own probability has W ~ Beta(1 - d, theta + d), where
d = -alpha and theta = vocab alpha for the Dirichlet law. Every moment below is one of ln W.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.process.base import Floats, KernelRow, Law, Sticks
from brwsim.process.laws.checks import (
    DEFAULT_ENTROPY,
    MIN_ENTROPY,
    check_entropy,
    check_only_one,
    check_real,
    check_vocab,
    shown,
)
from brwsim.process.laws.solve import solve_increasing

MAX_VOCAB = 2**31 - 1
_MAX_STRENGTH = 1e200

# Bernoulli numbers B_2, B_4, ... of the asymptotic series of digamma, and where that series takes over.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
_SHIFT = 16


def polygamma_steps(a: float, gap: float) -> tuple[float, float]:
    """Return psi(a + gap) - psi(a) and psi'(a) - psi'(a + gap), both to full relative precision.

    Subtracting library values would lose every digit when the gap is tiny (alpha = 1e-8). Here each
    difference is a sum of positive terms, apart from negligible ones: the recurrence up to a + 16, then
    the asymptotic series with x^-k - y^-k = -x^-k expm1(-k ln(y/x)).
    """
    first: list[float] = []
    second: list[float] = []
    for n in range(_SHIFT):
        x, y = a + n, a + gap + n
        first.append(gap / x / y)
        second.append(gap / x / y * (1 / x + 1 / y))

    x = a + _SHIFT
    log_ratio = math.log1p(gap / x)

    def difference(k: int) -> float:
        return float(-(x**-k) * math.expm1(-k * log_ratio))

    first += [log_ratio, difference(1) / 2]
    second += [difference(1), difference(2) / 2]
    for k, bernoulli in enumerate(_BERNOULLI, start=1):
        first.append(bernoulli / (2 * k) * difference(2 * k))
        second.append(bernoulli * difference(2 * k + 1))
    return math.fsum(first), math.fsum(second)


class _StickLaw(Law):
    """What the two laws share: everything follows from their ``_sticks``."""

    def _sticks(self) -> Sticks:
        raise NotImplementedError

    def _gap(self) -> float:
        """``strength + discount``, the second parameter of the size-biased Beta."""
        sticks = self._sticks()
        return sticks.strength + sticks.discount

    @property
    def mu(self) -> float:
        return polygamma_steps(1 - self._sticks().discount, self._gap())[0]

    @property
    def mu2(self) -> float:
        mean, variance = polygamma_steps(1 - self._sticks().discount, self._gap())
        return mean * mean + variance

    def rows(self) -> list[tuple[float, KernelRow]]:
        return [(1.0, self._sticks())]

    def step_cdf(self, y: Floats) -> Floats:
        from scipy.special import betainc

        y = np.asarray(y, dtype=np.float64)
        a, b = 1 - self._sticks().discount, self._gap()
        # Pr(W >= e^-y). Near y = 0 the variable is 1 - W, beyond ln 2 it is W: neither is ever rounded to 1.
        near = betainc(b, a, -np.expm1(-np.clip(y, 0.0, 1.0)))
        far = 1 - betainc(a, b, np.exp(-np.maximum(y, 0.5)))
        return np.asarray(np.where(y < math.log(2), near, far), dtype=np.float64)


@dataclass(frozen=True, init=False)
class Dirichlet(_StickLaw):
    """Symmetric Dirichlet law: ``vocab`` exchangeable probabilities with density prod p_i^(alpha - 1).

    A small alpha puts most of the mass on a few children, as a language model does. With neither alpha
    nor entropy the law is LLM-like: alpha is solved for a mean entropy of 0.683 nats.

    Parameters
    ----------
    vocab : int, 2..2147483647
        Number of children of every node.
    alpha : float, above 0, optional
        Concentration; alpha = 1 is uniform on the simplex, infinity would be the uniform law.
    entropy : float, in (0, ln vocab), optional
        Mean entropy mu in nats, solved for alpha to full double precision. Only alpha is kept.

    Raises
    ------
    InvalidInput
        If a value is outside its range, or both alpha and entropy are given.

    Notes
    -----
    mu = psi(V alpha + 1) - psi(alpha + 1); mu2 = mu^2 + psi'(alpha + 1) - psi'(V alpha + 1).
    Source: derived, docs/theory.md; 0.683 nats is Llama-3-8B's mean in Pankratov & Alistarh,
    arXiv 2512.11718.

    Examples
    --------
    >>> law = Dirichlet(vocab=50, alpha=0.02)
    >>> print(f"{law.mu:.3f} {law.mu2:.3f}")
    0.968 1.889
    >>> print(f"{Dirichlet(entropy=0.683).mu:.12f}")
    0.683000000000
    """

    name: ClassVar[str] = "dirichlet"
    either: ClassVar[tuple[tuple[str, ...], ...]] = (("alpha",), ("entropy",))

    vocab: int = 32000
    alpha: float = math.nan

    def __init__(self, vocab: int = 32000, alpha: float | None = None, entropy: float | None = None) -> None:
        vocab = check_vocab(self.name, vocab, 2, MAX_VOCAB)
        check_only_one(self.name, "alpha", alpha, entropy)
        if alpha is None:
            alpha = _alpha_for(vocab, DEFAULT_ENTROPY if entropy is None else entropy)
        alpha = check_real(self.name, "alpha", alpha)
        limit = _MAX_STRENGTH / vocab
        if not 0 < alpha <= limit:
            raise InvalidInput(
                f"dirichlet: alpha must be above 0 and at most {limit:.3g}, got {shown(alpha)}"
            )
        object.__setattr__(self, "vocab", vocab)
        object.__setattr__(self, "alpha", alpha)

    def _sticks(self) -> Sticks:
        return Sticks(discount=-self.alpha, strength=self.vocab * self.alpha, vocab=self.vocab)

    def _gap(self) -> float:
        return (self.vocab - 1) * self.alpha


def _alpha_for(vocab: int, entropy: float) -> float:
    entropy = check_entropy("dirichlet", entropy, math.log(vocab), f" (ln {vocab})")

    def mu(alpha: float) -> float:
        return polygamma_steps(1 + alpha, (vocab - 1) * alpha)[0]

    # mu <= (V - 1) alpha pi^2/6, so alpha is at least this; and ln V - mu is about 1/(2 alpha).
    return solve_increasing(mu, entropy, entropy / vocab / 2, 1e17)


@dataclass(frozen=True, init=False)
class PoissonDirichlet(_StickLaw):
    """Two-parameter Poisson-Dirichlet (Pitman-Yor) law: infinitely many children.

    With discount 0 it is the limit of the Dirichlet law as vocab grows with vocab alpha = theta. A
    discount d > 0 gives a heavy tail, the j-th largest probability falling like j^(-1/d).

    Parameters
    ----------
    theta : float, above -discount, optional
        Strength.
    discount : float, in [0, 1)
        Tail exponent.
    entropy : float, above 0, optional
        Mean entropy mu in nats, solved for theta at the given discount. With neither theta nor
        entropy it is 0.683. Only theta and discount are kept.

    Raises
    ------
    InvalidInput
        If a value is outside its range, or both theta and entropy are given.

    Notes
    -----
    mu = psi(theta + 1) - psi(1 - d); mu2 = mu^2 + psi'(1 - d) - psi'(theta + 1).
    Source: derived, docs/theory.md.

    Examples
    --------
    >>> print(f"{PoissonDirichlet(theta=1.0).mu:.6f}")
    1.000000
    >>> print(f"{PoissonDirichlet(theta=0.0, discount=0.5).mu:.6f}")  # 2 ln 2
    1.386294
    """

    name: ClassVar[str] = "poisson-dirichlet"
    either: ClassVar[tuple[tuple[str, ...], ...]] = (("theta",), ("entropy",))

    theta: float = math.nan
    discount: float = 0.0

    def __init__(
        self, theta: float | None = None, discount: float = 0.0, entropy: float | None = None
    ) -> None:
        discount = check_real(self.name, "discount", discount)
        if not 0 <= discount < 1:
            raise InvalidInput(
                f"poisson-dirichlet: discount must lie in [0, 1), got {shown(discount)};"
                " for a finite vocabulary use dirichlet"
            )
        check_only_one(self.name, "theta", theta, entropy)
        if theta is None:
            theta = _theta_for(discount, DEFAULT_ENTROPY if entropy is None else entropy)
        theta = check_real(self.name, "theta", theta)
        if not -discount < theta <= _MAX_STRENGTH:
            raise InvalidInput(
                f"poisson-dirichlet: theta must be above -discount ({shown(-discount)})"
                f" and at most {_MAX_STRENGTH:.3g}, got {shown(theta)}"
            )
        object.__setattr__(self, "theta", theta)
        object.__setattr__(self, "discount", discount)

    @property
    def vocab(self) -> None:
        return None

    def _sticks(self) -> Sticks:
        return Sticks(discount=self.discount, strength=self.theta, vocab=None)


def _theta_for(discount: float, entropy: float) -> float:
    # Beyond 100 nats theta = e^entropy leaves the doubles soon after; nothing a tree could resolve.
    entropy = check_entropy("poisson-dirichlet", entropy, 100.0)

    def mu(gap: float) -> float:
        return polygamma_steps(1 - discount, gap)[0]

    theta = solve_increasing(mu, entropy, MIN_ENTROPY * 1e-40, 1e60) - discount
    if theta <= -discount:
        raise InvalidInput(
            f"poisson-dirichlet: entropy {shown(entropy)} is too small to be reached with"
            f" discount {shown(discount)}; raise entropy or lower discount"
        )
    return theta
