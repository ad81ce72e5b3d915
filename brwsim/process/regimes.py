"""Regime switching with heavy-tailed holding times: a semi-Markov chain, unrolled by age."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.process.base import Floats, Law
from brwsim.process.chain import ChainProcess
from brwsim.process.families import two_laws
from brwsim.process.laws import as_law
from brwsim.process.laws.checks import check_real, check_vocab

MAX_STATES = 2048


@dataclass(frozen=True, init=False)
class Regimes(ChainProcess):
    """Regime switching with heavy-tailed holding times: Pr(a regime lasts at least n) = n^-tail.

    Parameters
    ----------
    laws : sequence of Law, dict or str, optional
        The law of each regime; two Dirichlet laws by ``low`` and ``high`` when left out.
    tail : float
        Exponent of the holding times, above 0; below 2 their variance grows without bound in ``longest``.
    longest : int
        A regime ends after this many levels at the latest, 2 to 1024.
    low, high, vocab : optional
        Mean entropies (nats) and vocabulary of the two laws, as for ``markov``.

    Raises
    ------
    InvalidInput
        For a value outside its range, fewer than two laws, or keys of both forms.

    Notes
    -----
    A path leaves a regime of age n for one of the others, all alike, with the hazard of n^-tail. The pair
    (regime, age) is a Markov chain, so everything proved for those holds. Source: docs/theory.md, "markov".

    Examples
    --------
    >>> process = Regimes(tail=1.5, longest=100)
    >>> print(f"{process.mu:.3f}", len(process.state_laws))
    0.683 200
    """

    name: ClassVar[str] = "regimes"
    either: ClassVar[tuple[tuple[str, ...], ...]] = (("laws",), ("low", "high", "vocab"))

    laws: tuple[Law, ...]
    tail: float
    longest: int

    def __init__(
        self,
        laws: Sequence[Law | Mapping[str, Any] | str] | None = None,
        tail: float = 1.5,
        longest: int = 100,
        low: float | None = None,
        high: float | None = None,
        vocab: int | None = None,
    ) -> None:
        if laws is None:
            laws = two_laws(self.name, low, high, vocab)
        elif any(value is not None for value in (low, high, vocab)):
            raise InvalidInput("regimes: give laws, or low, high and vocab, not both forms")
        if isinstance(laws, str | bytes) or not isinstance(laws, Sequence) or len(laws) < 2:
            raise InvalidInput("regimes: laws must be a list of at least two laws, one per regime")
        object.__setattr__(self, "laws", tuple(as_law(law) for law in laws))
        object.__setattr__(self, "tail", check_real(self.name, "tail", tail))
        if self.tail <= 0.0:
            raise InvalidInput(f"regimes: tail must be above 0, not {self.tail:g}")
        most = MAX_STATES // len(self.laws)
        object.__setattr__(self, "longest", check_vocab(self.name, longest, 2, most, key="longest"))

    @property
    def state_laws(self) -> list[Law]:
        return [law for law in self.laws for _ in range(self.longest)]

    def matrices(self) -> list[Floats]:
        regimes, ages = len(self.laws), self.longest
        survival = np.arange(1, ages + 1, dtype=np.float64) ** -self.tail
        stay = np.append(survival[1:] / survival[:-1], 0.0)
        matrix = np.zeros((regimes, ages, regimes, ages))
        for regime in range(regimes):
            for age in range(ages):
                if age + 1 < ages:
                    matrix[regime, age, regime, age + 1] = stay[age]
                for other in range(regimes):
                    if other != regime:
                        matrix[regime, age, other, 0] = (1.0 - stay[age]) / (regimes - 1)
        return [matrix.reshape(regimes * ages, regimes * ages)]

    @property
    def start_state(self) -> int | None:
        return None

    def to_spec(self) -> dict[str, Any]:
        return {**super().to_spec(), "laws": [law.to_spec() for law in self.laws]}
