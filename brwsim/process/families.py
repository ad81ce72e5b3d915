"""Families of Dirichlet laws by entropy: the short way to say what a process's states differ in."""

from __future__ import annotations

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.process.base import Law
from brwsim.process.laws.checks import check_real
from brwsim.process.laws.sticks import Dirichlet

# Their mean is Llama-3-8B's mean entropy in arXiv 2512.11718.
LOW, HIGH = 0.2, 1.166
VOCAB = 32000


def two_laws(name: str, low: float | None, high: float | None, vocab: int | None) -> list[Law]:
    """A Dirichlet law of low and one of high entropy."""
    return spread_laws(name, low, high, 2, vocab)


def spread_laws(
    name: str, low: float | None, high: float | None, levels: int, vocab: int | None
) -> list[Law]:
    """Dirichlet laws whose entropies run evenly from ``low`` to ``high``."""
    bottom = LOW if low is None else check_real(name, "low", low)
    top = HIGH if high is None else check_real(name, "high", high)
    if not 0.0 < bottom <= top:
        raise InvalidInput(f"{name}: low must be above 0 and at most high, got low={bottom:g}, high={top:g}")
    size = VOCAB if vocab is None else vocab
    return [Dirichlet(size, entropy=float(entropy)) for entropy in np.linspace(bottom, top, levels)]
