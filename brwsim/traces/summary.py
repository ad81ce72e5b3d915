"""What log-probabilities say of the law of the next token: mean entropy and second log-moment, as ranges."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from brwsim.traces.dependence import Dependence, Tests, no_tests
from brwsim.traces.text import finite


@dataclass(frozen=True)
class Range:
    """A mean known to lie between two values, each with its standard error (nan: unknown)."""

    lower: float
    lower_stderr: float
    upper: float
    upper_stderr: float

    def to_dict(self) -> dict[str, float | None]:
        """JSON-ready: None where a value is infinite or unknown."""
        return {
            "lower": finite(self.lower),
            "lower_stderr": finite(self.lower_stderr),
            "upper": finite(self.upper),
            "upper_stderr": finite(self.upper_stderr),
        }


@dataclass(frozen=True)
class Summary:
    """What one file (or all of them) says about the law of the next token.

    Attributes
    ----------
    source : str
        The file, or ``pooled``.
    contexts, responses : int
        Next-token distributions read, and responses they come from.
    k : tuple of (int, int)
        Least and greatest number of tokens listed per context.
    covered : float, in (0, 1]
        Mean mass of the listed tokens.
    mu, mu2 : Range
        Mean entropy (nats) and second log-moment (nats squared): least and greatest values that the listed
        probabilities allow. ``upper`` is ``inf`` when mass is missing and the vocabulary size is unknown.
    unbounded : int
        Contexts that make it so.
    stderr_method : str
        How the standard errors allow for correlation along a response.
    skipped : int
        Failed requests left out.
    """

    source: str
    contexts: int
    responses: int
    k: tuple[int, int]
    covered: float
    mu: Range
    mu2: Range
    unbounded: int
    stderr_method: str
    skipped: int
    _tests: Tests = field(default=no_tests, repr=False, compare=False)

    @cached_property
    def dependence(self) -> Dependence | None:
        """Tests of independence of the entropies (of the least that the listed probabilities allow).

        None where the longest response has fewer than 20 contexts or all entropies are equal, and for all
        files pooled.
        """
        return self._tests()

    @property
    def inverse_mu(self) -> tuple[float, float]:
        """Least and greatest 1/mu: the optimal growth of E[X] per unit of ln P."""
        return _inverse(self.mu.upper), _inverse(self.mu.lower)

    @property
    def theorem1_slope(self) -> tuple[float, float]:
        """Least and greatest (mu + mu2)/mu^2 = 1/mu + mu2/mu^2, Theorem 1's slope; ``inf`` when unbounded.

        It falls with mu and rises with mu2, so these are its values at opposite corners; the least is 0 when
        the upper mu is infinite.
        """
        return _slope(self.mu.upper, self.mu2.lower), _slope(self.mu.lower, self.mu2.upper)

    def to_dict(self, dependence: bool = True) -> dict[str, Any]:
        """JSON-ready: None where a value is infinite or unknown. The tests take a while and may be left out."""
        found = {
            "source": self.source,
            "contexts": self.contexts,
            "responses": self.responses,
            "k": list(self.k),
            "covered": self.covered,
            "mu": self.mu.to_dict(),
            "mu2": self.mu2.to_dict(),
            "inverse_mu": {"lower": finite(self.inverse_mu[0]), "upper": finite(self.inverse_mu[1])},
            "theorem1_slope": {
                "lower": finite(self.theorem1_slope[0]),
                "upper": finite(self.theorem1_slope[1]),
            },
            "unbounded": self.unbounded,
            "stderr_method": self.stderr_method,
            "skipped": self.skipped,
        }
        if dependence:
            found["dependence"] = self.dependence.to_dict() if self.dependence else None
        return found


def _inverse(mu: float) -> float:
    return 1.0 / mu if mu > 0.0 else math.inf


def _slope(mu: float, mu2: float) -> float:
    if math.isinf(mu):
        return 0.0
    if math.isinf(mu2) or mu <= 0.0:
        return math.inf
    return (mu + mu2) / mu**2
