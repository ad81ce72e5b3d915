"""What a bound may be computed from, and the checks that reject impossible values by name."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.theory.markov import MarkovFacts
from brwsim.theory.renewal import Floats, StepCdf

FACTS = {
    "mu": "the expected entropy in nats",
    "mu2": "the expected second log-moment in nats squared",
    "vocab": "the finite number of children of a node",
    "step_cdf": "the distribution function of the spine's step",
    "markov": "the chain of a Markov-modulated process",
}
_P_LIMIT = 1e15
ROUNDING = 1e-9  # rounding allowed in the facts before they are called impossible


def capacity_array(P: Any) -> Floats:
    """P as an array of capacities, each from 1 to 1e15."""
    try:
        capacity = np.asarray(P, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"P must be a number or an array of numbers, got {P!r}") from None
    if not capacity.size:
        raise InvalidInput("P is empty")
    if not np.all((capacity >= 1) & (capacity <= _P_LIMIT)):
        raise InvalidInput("P must lie between 1 (the root alone) and 1e15")
    return capacity


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise InvalidInput(f"{name} must be a positive finite number, got {value!r}")
    return number


def _vocab(value: Any) -> int:
    try:
        vocab = operator.index(value)
    except TypeError:
        vocab = 0
    if vocab < 2:
        raise InvalidInput(f"vocab must be an integer of at least 2, got {value!r}")
    return vocab


def _step_cdf(value: Any) -> StepCdf:
    if not callable(value):
        raise InvalidInput(f"step_cdf must be a function of an array of steps, got {value!r}")
    return value  # type: ignore[no-any-return]


def _markov(value: Any) -> MarkovFacts:
    if not isinstance(value, MarkovFacts):
        raise InvalidInput(f"markov must be a MarkovFacts, got {value!r}")
    return value


CHECKS: dict[str, Callable[[Any], Any]] = {
    "mu": lambda value: _number("mu", value),
    "mu2": lambda value: _number("mu2", value),
    "vocab": _vocab,
    "step_cdf": _step_cdf,
    "markov": _markov,
}


def check_entropy(mu: float, vocab: int) -> None:
    """Reject a mean entropy above that of the uniform law."""
    if mu > math.log(vocab) * (1 + ROUNDING):
        raise InvalidInput(
            f"mu = {mu:g} exceeds ln(vocab) = {math.log(vocab):g}, the largest entropy of a law"
        )


def check_jensen(mu: float, mu2: float) -> float:
    """mu2 checked against Jensen's inequality mu2 >= mu^2, and lifted to it within rounding."""
    if mu2 < mu * mu * (1 - ROUNDING):
        raise InvalidInput(f"mu2 = {mu2:g} is below mu^2 = {mu * mu:g}, which no offspring law allows")
    if not math.isfinite(mu2 / mu / mu):
        raise InvalidInput(f"mu = {mu:g} is too small for mu2 = {mu2:g}: mu2/mu^2 overflows")
    return max(mu2, mu * mu)
