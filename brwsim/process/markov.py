"""Markov-modulated trees: finitely many states, a law per state, a matrix between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.process.base import Floats, Law, Process
from brwsim.process.chain import ChainProcess, check_rank_dependence
from brwsim.process.families import two_laws
from brwsim.process.laws import as_law
from brwsim.process.laws.checks import check_real
from brwsim.theory.markov_chain import check_matrix

MAX_LISTED_STARTS = 8


@dataclass(frozen=True, init=False)
class Markov(ChainProcess):
    """Markov-modulated process: a node's state picks its law, a matrix moves from state to state.

    Give ``laws`` and ``transition``, or the two-state shorthand ``low``, ``high``, ``persistence``.

    Parameters
    ----------
    laws : sequence of Law, dict or str, optional
        The law of each state.
    transition : nested sequence of float, optional
        A stochastic matrix from a node's state to its child's, or a list of them for children of rank
        1, 2, ...: the last holds for all further ranks. Rank is by probability for fixed laws, and
        size-biased (rank 1 is a token sampled from the law) for random ones.
    start : int, optional
        State of the root; drawn from the stationary law of the spine when left out.
    low, high : float, optional
        Mean entropies of two symmetric Dirichlet laws, in nats; 0.2 and 1.166 when left out.
    persistence : float, optional
        0 <= persistence < 1: how much of a state survives a step, the second eigenvalue of the two-state
        chain; 0 is the i.i.d. mixture. 0.9 when left out.
    share : float, optional
        Stationary share of the high state, in (0, 1); 0.5 when left out.
    vocab : int, optional
        Vocabulary of the two laws; 32000 when left out.

    Raises
    ------
    InvalidInput
        For a matrix that is not stochastic, a reducible or periodic chain (the states are named), or keys
        of both forms.

    Notes
    -----
    Source: Markov-modulated branching random walk, docs/theory.md, "markov" (derived).

    Examples
    --------
    >>> process = Markov(low=0.2, high=1.166, persistence=0.5)
    >>> print(process.transition, f"{process.mu:.3f}")
    ((0.75, 0.25), (0.25, 0.75)) 0.683
    """

    name: ClassVar[str] = "markov"
    either: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("laws", "transition"),
        ("low", "high", "persistence", "share", "vocab"),
    )

    laws: tuple[Law, ...]
    transition: tuple[Any, ...]
    start: int | None

    def __init__(
        self,
        laws: Sequence[Law | Mapping[str, Any] | str] | None = None,
        transition: Sequence[Any] | None = None,
        start: int | None = None,
        low: float | None = None,
        high: float | None = None,
        persistence: float | None = None,
        share: float | None = None,
        vocab: int | None = None,
    ) -> None:
        short = (low, high, persistence, share, vocab)
        if laws is None and transition is None:
            laws = two_laws(self.name, low, high, vocab)
            transition = _two_states(persistence, share)
        elif laws is None or transition is None:
            missing = "laws" if laws is None else "transition"
            raise InvalidInput(f"markov: {missing} is missing; give both laws and transition")
        elif any(value is not None for value in short):
            raise InvalidInput(
                "markov: give laws and transition, or low, high and persistence, not both forms"
            )
        if isinstance(laws, str | bytes) or not isinstance(laws, Sequence) or not laws:
            raise InvalidInput("markov: laws must be a list of laws, one per state")
        object.__setattr__(self, "laws", tuple(as_law(law) for law in laws))
        matrices = _matrices(transition, len(self.laws))
        object.__setattr__(self, "transition", _as_tuples(matrices))
        if start is not None and not (type(start) is int and 0 <= start < len(self.laws)):
            raise InvalidInput(f"markov: start must be a state from 0 to {len(self.laws) - 1}, not {start!r}")
        object.__setattr__(self, "start", start)
        check_rank_dependence(self.name, list(self.laws), len(matrices))
        _ = self.chain  # refuses chains without a stationary law now, not in mid-run

    @property
    def state_laws(self) -> list[Law]:
        return list(self.laws)

    def matrices(self) -> list[Floats]:
        array = np.array(self.transition)
        return [array] if array.ndim == 2 else list(array)

    @property
    def start_state(self) -> int | None:
        return self.start

    def starts(self) -> dict[str, Process]:
        if len(self.laws) > MAX_LISTED_STARTS:
            return {}
        return {f"state {state}": self._started(state) for state in range(len(self.laws))}

    def _started(self, state: int) -> Markov:
        return Markov(laws=self.laws, transition=self.transition, start=state)

    def to_spec(self) -> dict[str, Any]:
        spec = super().to_spec()
        return {**spec, "laws": [law.to_spec() for law in self.laws]}


def _two_states(persistence: float | None, share: float | None) -> list[list[float]]:
    keep = 0.9 if persistence is None else check_real("markov", "persistence", persistence)
    if not 0.0 <= keep < 1.0:
        raise InvalidInput(f"markov: persistence must be at least 0 and below 1, not {keep:g}")
    high = 0.5 if share is None else check_real("markov", "share", share)
    if not 0.0 < high < 1.0:
        raise InvalidInput(f"markov: share must lie strictly between 0 and 1, not {high:g}")
    to_high, to_low = (1.0 - keep) * high, (1.0 - keep) * (1.0 - high)
    return [[1.0 - to_high, to_high], [to_low, 1.0 - to_low]]


def _matrices(transition: Any, states: int) -> list[Floats]:
    try:
        array = np.array(transition, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            "markov: transition must be a square matrix of numbers, or a list of them"
        ) from None
    matrices = [array] if array.ndim == 2 else list(array)
    if array.ndim not in (2, 3) or not matrices or any(m.shape != (states, states) for m in matrices):
        raise InvalidInput(
            f"markov: transition must be a {states} x {states} matrix, one row and column per law, or a list of "
            f"such matrices by rank; its shape is {array.shape}"
        )
    return [check_matrix(matrix) for matrix in matrices]


def _as_tuples(matrices: list[Floats]) -> tuple[Any, ...]:
    nested = tuple(tuple(tuple(row) for row in matrix.tolist()) for matrix in matrices)
    return nested[0] if len(nested) == 1 else nested
