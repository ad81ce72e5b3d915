"""What an offspring law and a process are, and the flat rows a kernel can draw them from."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sticks:
    """Size-biased stick breaking: the j-th child takes a Beta(1 - discount, strength + j discount) share.

    ``discount = -alpha, strength = vocab * alpha`` is the symmetric Dirichlet law; ``vocab`` None
    means infinitely many children (Pitman-Yor; Poisson-Dirichlet when the discount is 0).
    """

    discount: float
    strength: float
    vocab: int | None = None


@dataclass(frozen=True, eq=False)
class Row:
    """A fixed law: ``probs`` in non-increasing order, then ``tail_count`` children of ``tail_prob`` each."""

    probs: Floats
    tail_prob: float = 0.0
    tail_count: int = 0


@dataclass(frozen=True, eq=False)
class Logits:
    """Softmax of ``vocab`` independent normal logits with mean 0 and standard deviation ``sigma``."""

    sigma: float
    vocab: int


KernelRow = Sticks | Row | Logits


@dataclass(frozen=True, eq=False)
class State:
    """A state of a process: weighted rows to draw a node's children from, and what the states are worth.

    ``entropy`` is the expected entropy of a node in this state (nats). ``phi`` solves Poisson's equation:
    how much entropy a path from here has in store beyond the average.
    """

    rows: list[tuple[float, KernelRow]]
    entropy: float
    phi: float = 0.0


@dataclass(frozen=True, eq=False)
class Alone:
    """No memory: every node is in the one state there is."""


@dataclass(frozen=True, eq=False)
class Moves:
    """A Markov chain: ``matrices[r]`` moves from a state to that of the child of rank r + 1 (the last, of all further).

    ``start`` is the law of the root's state.
    """

    matrices: list[Any]  # (S, S) arrays or sparse matrices
    start: Floats


@dataclass(frozen=True, eq=False)
class Gaussian:
    """A stationary AR(1) value of mean 0 and variance 1, cut into states at increasing ``levels``.

    phi is a polynomial of the value, and so is its expectation a step ahead; highest power first.
    ``start`` None means stationary.
    """

    rho: float
    levels: Floats
    phi: Floats
    expected_phi: Floats
    start: float | None = None


@dataclass(frozen=True, eq=False)
class Rotation:
    """A point on a circle of length 1, moved by ``move`` at every level, cut into states at ``levels``."""

    move: float
    levels: Floats
    start: float | None = None


@dataclass(frozen=True, eq=False)
class Layout:
    """A process as a kernel grows it: its states, and how a child's state follows from its parent's."""

    states: list[State]
    memory: Alone | Moves | Gaussian | Rotation


@dataclass(frozen=True, eq=False)
class NgramLayout:
    """An n-gram model as a kernel walks it: a state and a row per context.

    ``pi`` is the law of the root's context, ``phi`` any function of the context (its excess of stored
    entropy reduces the variance most). With ``is_iid`` every node draws its context from ``pi``.
    """

    model: Any  # an NgramTable
    pi: Floats
    entropy: Floats
    phi: Floats
    is_iid: bool


class Process(ABC):
    """A random token tree, with the moments that theory needs.

    Concrete processes are frozen dataclasses; the parameters of their constructors are the keys of
    ``--dist NAME:key=value,...``.
    """

    name: ClassVar[str]
    hint_keys: ClassVar[tuple[str, ...]] = ()
    """Keys that only help to find what other keys identify, such as a path; no part of a sweep's identity."""
    either: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Groups of keys of which one may be used: ``(("alpha",), ("entropy",))``."""
    moments_are: ClassVar[str] = "exact"
    """How mu and mu2 are known, as a report says it."""

    @property
    @abstractmethod
    def mu(self) -> float:
        """Expected entropy of a node of the spine, in nats: the entropy rate."""

    @property
    @abstractmethod
    def mu2(self) -> float:
        """Expected second log-moment of a node of the spine, E[sum p ln^2 p], in nats squared."""

    @property
    @abstractmethod
    def vocab(self) -> int | None:
        """Number of children of a node; None when infinite."""

    @abstractmethod
    def layout(self) -> Any:
        """What a kernel needs to grow the process's trees."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What bounds may ask for (brwsim.theory.facts); None for what is unknown or infinite."""

    @property
    def is_fixed(self) -> bool:
        """Whether the tree is not random at all."""
        return False

    def surrogate(self) -> Process:
        """The i.i.d. process with the same laws in the same proportions along the spine."""
        return self

    def starts(self) -> dict[str, Process]:
        """The process from some of its states, by a label; empty where there is nothing to start from."""
        return {}

    def to_spec(self) -> dict[str, Any]:
        """The process as canonical JSON-ready data; ``process_from_spec`` reads it back."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}  # type: ignore[arg-type]
        return {"name": self.name, **{key: value for key, value in fields.items() if value is not None}}

    @classmethod
    def from_spec(cls, keys: Mapping[str, Any]) -> Any:
        """Build from the keys (without ``name``); raises InvalidInput on a bad one."""
        return cls(**keys)


class Law(Process):
    """An offspring law: the random probabilities of one node's children; alone, the i.i.d. process."""

    @abstractmethod
    def rows(self) -> list[tuple[float, KernelRow]]:
        """The law as a mixture of rows a kernel can draw, with weights that sum to 1."""

    def layout(self) -> Layout:
        """One state, no memory."""
        return Layout([State(self.rows(), self.mu)], Alone())

    @property
    def is_fixed(self) -> bool:
        """Whether every node has the same probabilities, so that the tree is not random."""
        rows = self.rows()
        return len(rows) == 1 and isinstance(rows[0][1], Row)

    def step_cdf(self, y: Floats) -> Floats | None:
        """Pr(Y <= y) of the spine's step Y = -ln p, p a child picked with probability p.

        None where no exact form is known. Right-continuous; exact at atoms.
        """
        return None

    def facts(self) -> dict[str, Any]:
        """``mu``, ``mu2``, ``vocab`` and ``step_cdf``.

        All None for a law of entropy 0, whose tree is a chain: no bound but the trivial E[X] = P applies.
        """
        if self.mu == 0.0:
            return dict.fromkeys(("mu", "mu2", "vocab", "step_cdf"))
        has_step_law = self.step_cdf(np.ones(1)) is not None
        return {
            "mu": self.mu,
            "mu2": self.mu2,
            "vocab": self.vocab,
            "step_cdf": self.step_cdf if has_step_law else None,
        }
