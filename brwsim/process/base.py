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


class Law(ABC):
    """An offspring law: the random acceptance probabilities of one node's children.

    Concrete laws are frozen dataclasses whose fields are the keys of ``--dist NAME:key=value,...``.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def mu(self) -> float:
        """Expected entropy, E[-sum p ln p], in nats."""

    @property
    @abstractmethod
    def mu2(self) -> float:
        """Expected second log-moment, E[sum p ln^2 p], in nats squared."""

    @property
    @abstractmethod
    def vocab(self) -> int | None:
        """Number of children of a node; None when infinite."""

    @abstractmethod
    def rows(self) -> list[tuple[float, KernelRow]]:
        """The law as a mixture of rows a kernel can draw, with weights that sum to 1."""

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
        """What bounds may ask for: ``mu``, ``mu2``, ``vocab``, ``step_cdf`` (None when unknown or infinite).

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

    def to_spec(self) -> dict[str, Any]:
        """The law as canonical JSON-ready data; ``process_from_spec`` reads it back."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}  # type: ignore[arg-type]
        return {"name": self.name, **{key: value for key, value in fields.items() if value is not None}}

    @classmethod
    def from_spec(cls, keys: Mapping[str, Any]) -> Law:
        """Build the law from its keys (without ``name``); raises InvalidInput on a bad one."""
        return cls(**keys)
