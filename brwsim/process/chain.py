"""Processes whose states form a finite Markov chain: what Markov and regime switching share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.process.base import Floats, Law, Layout, Moves, Process, Row, State
from brwsim.process.laws.mixture import Mixture
from brwsim.process.ranks import rank_moments
from brwsim.theory.markov import MarkovFacts


class ChainProcess(Process):
    """A node's state picks its law; a child's state follows from its parent's and perhaps its rank."""

    @property
    @abstractmethod
    def state_laws(self) -> list[Law]:
        """The law of each state, S of them."""

    @abstractmethod
    def matrices(self) -> list[Floats]:
        """(S, S) transition matrices for children of rank 1, 2, ...; the last for all further ranks."""

    @property
    @abstractmethod
    def start_state(self) -> int | None:
        """The root's state; None draws it from the stationary law of the spine."""

    @property
    def mu(self) -> float:
        return self.chain.mu

    @property
    def mu2(self) -> float:
        return self.chain.mu2

    @property
    def vocab(self) -> int | None:
        sizes = [law.vocab for law in self.state_laws]
        return None if None in sizes else max(size for size in sizes if size is not None)

    @cached_property
    def chain(self) -> MarkovFacts:
        """The chain of states along the spine, with what theory asks of it."""
        laws, matrices = self.state_laws, self.matrices()
        Q = np.zeros_like(matrices[0])
        B = np.zeros_like(matrices[0])
        for state, law in enumerate(laws):
            shares, entropies = rank_moments(law, len(matrices))
            for share, entropy, matrix in zip(shares, entropies, matrices, strict=True):
                Q[state] += share * matrix[state]
                B[state] += entropy * matrix[state]
        Q /= Q.sum(axis=1, keepdims=True)
        h, s2 = [law.mu for law in laws], [law.mu2 for law in laws]
        if len(matrices) == 1:
            steps: Any = [law.step_cdf for law in laws]
            return MarkovFacts(Q, h, s2, steps=steps, start=self.start_state)
        return MarkovFacts(Q, h, s2, B, _ranked_steps(laws, matrices, Q), self.start_state)

    @property
    def is_fixed(self) -> bool:
        return (
            self.start_state is not None
            and all(law.is_fixed for law in self.state_laws)
            and all(np.all((matrix == 0.0) | (matrix == 1.0)) for matrix in self.matrices())
        )

    def layout(self) -> Layout:
        phi = self.chain.phi
        states = [
            State(law.rows(), law.mu, float(value)) for law, value in zip(self.state_laws, phi, strict=True)
        ]
        start = self.chain.pi
        if self.start_state is not None:
            start = np.zeros(len(states))
            start[self.start_state] = 1.0
        return Layout(states, Moves(self.matrices(), start))

    def facts(self) -> dict[str, Any]:
        return {
            "iid": False,
            "mu": self.mu,
            "mu2": self.mu2,
            "vocab": self.vocab,
            "step_cdf": None,
            "markov": self.chain,
        }

    def surrogate(self) -> Law:
        """The i.i.d. process with the same laws in the same proportions along the spine."""
        weights: dict[Law, float] = {}
        for law, weight in zip(self.state_laws, self.chain.pi, strict=True):
            weights[law] = weights.get(law, 0.0) + float(weight)
        return Mixture(list(weights), [weight / sum(weights.values()) for weight in weights.values()])


def check_rank_dependence(name: str, laws: list[Law], classes: int) -> None:
    """Refuse moves by rank for laws whose children come in no particular order."""
    if classes == 1:
        return
    for law in laws:
        if law.name == "softmax-normal":
            raise InvalidInput(f"{name}: the children of a softmax-normal law have no ranks; give one matrix")


def _ranked_steps(
    laws: list[Law], matrices: list[Floats], Q: Floats
) -> list[tuple[Callable[[Floats], Floats] | None, ...]] | None:
    """Step functions per pair of states where every law is a fixed row; None where they are not known."""
    if not all(law.is_fixed for law in laws):
        return None
    found = []
    for state, law in enumerate(laws):
        row = law.rows()[0][1]
        assert isinstance(row, Row)
        probs = np.concatenate([row.probs, np.full(row.tail_count, row.tail_prob)])
        ranks = np.minimum(np.arange(probs.size), len(matrices) - 1)
        to = np.array([matrix[state] for matrix in matrices])[ranks]
        found.append(
            tuple(
                _atoms(-np.log(probs), probs * to[:, other]) if Q[state, other] > 0.0 else None
                for other in range(len(laws))
            )
        )
    return found


def _atoms(steps: Floats, masses: Floats) -> Callable[[Floats], Floats]:
    """The right-continuous function that jumps by each mass at each step."""
    order = np.argsort(steps, kind="stable")
    positions = steps[order]
    cumulative = np.concatenate([[0.0], np.cumsum(masses[order])])

    def cdf(y: Floats) -> Floats:
        return np.asarray(cumulative[np.searchsorted(positions, y, side="right")])

    return cdf
