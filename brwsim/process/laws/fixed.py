"""Fixed laws: every node has the same acceptance probabilities, so the tree is not random at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.process.base import Floats, KernelRow, Law, Row
from brwsim.process.laws.checks import (
    DEFAULT_ENTROPY,
    MAX_ENTRIES,
    check_entropy,
    check_only_one,
    check_probabilities,
    check_real,
    check_vocab,
    shown,
)
from brwsim.process.laws.solve import solve_increasing


class FixedLaw(Law):
    """A law whose sorted probabilities are known; its moments are sums over them."""

    @cached_property
    def _row(self) -> Row:
        raise NotImplementedError

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """The pair mu, mu2; subclasses with a closed form replace it."""
        p = self._row.probs
        return _sum_moments(p, -np.log(p))

    @property
    def mu(self) -> float:
        return self._moments[0]

    @property
    def mu2(self) -> float:
        return self._moments[1]

    def rows(self) -> list[tuple[float, KernelRow]]:
        return [(1.0, self._row)]

    @cached_property
    def _atoms(self) -> tuple[Floats, Floats]:
        """Where the step law jumps, ascending, and its value after 0, 1, 2, ... jumps."""
        p = self._row.probs
        total = np.cumsum(p, dtype=np.longdouble)
        values = np.zeros(p.size + 1)
        values[1:] = np.minimum(total, 1)
        values[-1] = 1.0
        return -np.log(p), values

    def step_cdf(self, y: Floats) -> Floats:
        atoms, values = self._atoms
        return np.asarray(values[np.searchsorted(atoms, y, side="right")], dtype=np.float64)


def _sum_moments(probs: Floats, surprisals: Floats) -> tuple[float, float]:
    """Correctly rounded sums of p (-ln p) and p ln^2 p."""
    first = probs * surprisals
    return math.fsum(first.tolist()), math.fsum((first * surprisals).tolist())


def _read_only(array: Floats) -> Floats:
    array.flags.writeable = False
    return array


@dataclass(frozen=True, init=False)
class Table(FixedLaw):
    """A law given by its probabilities.

    Parameters
    ----------
    p : sequence of float, 1..4194304 entries
        Probabilities, not negative, summing to 1 within 1e-9. Zeros are dropped and the rest is kept
        in descending order. ``[1]`` is a single chain.

    Raises
    ------
    InvalidInput
        If an entry is negative or not a number, or the entries do not sum to 1.

    Notes
    -----
    mu = -sum p ln p; mu2 = sum p ln^2 p. Source: the definitions in Pankratov & Alistarh, arXiv 2512.11718.

    Examples
    --------
    >>> law = Table(p=[0.1, 0.6, 0.25, 0.05])
    >>> law.p
    (0.6, 0.25, 0.1, 0.05)
    >>> print(f"{law.mu:.6f}")
    1.033114
    """

    name: ClassVar[str] = "table"

    p: tuple[float, ...]

    def __init__(self, p: Sequence[float]) -> None:
        numbers = check_probabilities(self.name, "p", p)
        object.__setattr__(self, "p", tuple(sorted((x for x in numbers if x > 0), reverse=True)))

    @property
    def vocab(self) -> int:
        return len(self.p)

    @cached_property
    def _row(self) -> Row:
        return Row(_read_only(np.array(self.p)))

    def to_spec(self) -> dict[str, Any]:
        return {"name": self.name, "p": list(self.p)}


@dataclass(frozen=True, init=False)
class Uniform(FixedLaw):
    """All children equally likely: the complete ``vocab``-ary tree.

    Parameters
    ----------
    vocab : int, 1..4194304
        Number of children of every node; 1 is a single chain.

    Raises
    ------
    InvalidInput
        If vocab is not a whole number in its range.

    Notes
    -----
    mu = ln vocab, mu2 = mu^2. A lattice step law: the renewal theorem holds along multiples of mu only.
    Source: derived, docs/theory.md.

    Examples
    --------
    >>> print(f"{Uniform(vocab=4).mu:.6f}")
    1.386294
    """

    name: ClassVar[str] = "uniform"

    vocab: int = 4

    def __init__(self, vocab: int = 4) -> None:
        object.__setattr__(self, "vocab", check_vocab(self.name, vocab, 1, MAX_ENTRIES))

    @cached_property
    def _moments(self) -> tuple[float, float]:
        mu = math.log(self.vocab)
        return mu, mu * mu

    @cached_property
    def _row(self) -> Row:
        return Row(_read_only(np.full(self.vocab, 1 / self.vocab)))


@dataclass(frozen=True, init=False)
class Zipf(FixedLaw):
    """Zipf's law: the i-th child has probability proportional to i^(-exponent).

    With neither exponent nor entropy, the exponent is solved for an entropy of 0.683 nats.

    Parameters
    ----------
    vocab : int, 2..4194304
        Number of children of every node.
    exponent : float, in [0, 1000], optional
        Decay; 0 is the uniform law.
    entropy : float, in (0, ln vocab), optional
        Entropy mu in nats, solved for the exponent. Only the exponent is kept.

    Raises
    ------
    InvalidInput
        If a value is outside its range, or both exponent and entropy are given.

    Notes
    -----
    mu and mu2 are finite sums. Source: the definitions in Pankratov & Alistarh, arXiv 2512.11718.

    Examples
    --------
    >>> print(f"{Zipf(vocab=2, exponent=1.0).mu:.6f}")
    0.636514
    >>> print(f"{Zipf(vocab=1000, entropy=2.0).mu:.9f}")
    2.000000000
    """

    name: ClassVar[str] = "zipf"
    either: ClassVar[tuple[tuple[str, ...], ...]] = (("exponent",), ("entropy",))

    vocab: int = 32000
    exponent: float = math.nan

    def __init__(
        self, vocab: int = 32000, exponent: float | None = None, entropy: float | None = None
    ) -> None:
        vocab = check_vocab(self.name, vocab, 2, MAX_ENTRIES)
        check_only_one(self.name, "exponent", exponent, entropy)
        if exponent is None:
            exponent = _exponent_for(vocab, DEFAULT_ENTROPY if entropy is None else entropy)
        exponent = check_real(self.name, "exponent", exponent)
        if not 0 <= exponent <= _MAX_EXPONENT:
            raise InvalidInput(f"zipf: exponent must lie in 0..{_MAX_EXPONENT:g}, got {shown(exponent)}")
        object.__setattr__(self, "vocab", vocab)
        object.__setattr__(self, "exponent", exponent)

    @cached_property
    def _moments(self) -> tuple[float, float]:
        return _sum_moments(*_zipf(np.log(np.arange(1, self.vocab + 1)), self.exponent))

    @cached_property
    def _row(self) -> Row:
        probs, _ = _zipf(np.log(np.arange(1, self.vocab + 1)), self.exponent)
        return Row(_read_only(probs[probs > 0]))


_MAX_EXPONENT = 1000.0


def _zipf(log_ranks: Floats, exponent: float) -> tuple[Floats, Floats]:
    """Probabilities and -ln of them; log1p keeps the first surprisal accurate when the rest is tiny."""
    weights = np.exp(-exponent * log_ranks)
    log_total = math.log1p(float(weights[1:].sum()))
    surprisals = exponent * log_ranks + log_total
    return np.exp(-surprisals), surprisals


def _exponent_for(vocab: int, entropy: float) -> float:
    from scipy.optimize import brentq

    entropy = check_entropy("zipf", entropy, math.log(vocab), f" (ln {vocab})")
    log_ranks = np.log(np.arange(1, vocab + 1))

    def excess(exponent: float) -> float:
        probs, surprisals = _zipf(log_ranks, exponent)
        return math.log(float((probs * surprisals).sum()) / entropy)

    if excess(0.0) <= 0:  # entropy equals ln vocab up to rounding
        return 0.0
    # Vanishingly small at 2^-1000, so the exponent of any entropy above MIN_ENTROPY lies below.
    return float(brentq(excess, 0.0, _MAX_EXPONENT, xtol=1e-15, rtol=1e-15))


@dataclass(frozen=True, init=False)
class Geometric(FixedLaw):
    """Geometric law: child i = 1, 2, ... has probability p (1 - p)^(i - 1); infinitely many children.

    With neither p nor entropy, p is solved for an entropy of 0.683 nats.

    Parameters
    ----------
    p : float, in [1e-5, 1), optional
        Probability of the first child.
    entropy : float, in (0, 12.51), optional
        Entropy mu in nats, solved for p. Only p is kept.

    Raises
    ------
    InvalidInput
        If a value is outside its range, or both p and entropy are given.

    Notes
    -----
    With q = 1 - p: mu = -ln p - (q/p) ln q; mu2 = ln^2 p + 2 (q/p) ln p ln q + q (1 + q)/p^2 ln^2 q.
    The row given to a kernel stops where the probabilities fall below 1e-18 of the first, and holds the
    mass beyond as ceil(1/p) equal children. Source: derived, docs/theory.md.

    Examples
    --------
    >>> law = Geometric(p=0.5)
    >>> print(f"{law.mu:.6f}")  # 2 ln 2
    1.386294
    >>> law.rows()[0][1].probs[:3]
    array([0.5  , 0.25 , 0.125])
    """

    name: ClassVar[str] = "geometric"
    either: ClassVar[tuple[tuple[str, ...], ...]] = (("p",), ("entropy",))

    p: float = math.nan

    def __init__(self, p: float | None = None, entropy: float | None = None) -> None:
        check_only_one(self.name, "p", p, entropy)
        if p is None:
            p = _success_for(DEFAULT_ENTROPY if entropy is None else entropy)
        p = check_real(self.name, "p", p)
        if not _MIN_SUCCESS <= p < 1:
            raise InvalidInput(
                f"geometric: p must lie in [{_MIN_SUCCESS:g}, 1), got {shown(p)};"
                " uniform:vocab=1 is the limit p = 1"
            )
        object.__setattr__(self, "p", p)

    @property
    def vocab(self) -> None:
        return None

    @cached_property
    def _moments(self) -> tuple[float, float]:
        return _geometric_moments(self.p)

    @cached_property
    def _row(self) -> Row:
        log_q = math.log1p(-self.p)
        count = math.ceil(math.log(_NEGLIGIBLE) / log_q) + 1
        probs = self.p * np.exp(log_q * np.arange(count))
        # ceil(1/p) children share the mass q^count beyond: none outweighs the last one listed.
        tail_count = math.ceil(1 / self.p)
        return Row(_read_only(probs), tail_prob=math.exp(log_q * count) / tail_count, tail_count=tail_count)


_MIN_SUCCESS = 1e-5
_NEGLIGIBLE = 1e-18


def _geometric_moments(p: float) -> tuple[float, float]:
    q = 1 - p
    if q == 0:
        return 0.0, 0.0
    log_p, log_q = math.log(p), math.log1p(-p)
    mu = -log_p - q / p * log_q
    mu2 = log_p**2 + 2 * q / p * log_p * log_q + q * (1 + q) / p**2 * log_q**2
    return mu, mu2


def _success_for(entropy: float) -> float:
    limit = _geometric_moments(_MIN_SUCCESS)[0]
    entropy = check_entropy("geometric", entropy, limit, f" (its value at p = {_MIN_SUCCESS:g})")
    p = solve_increasing(lambda x: -_geometric_moments(x)[0], -entropy, _MIN_SUCCESS, 1.0)
    if p == 1.0:
        raise InvalidInput(
            f"geometric: entropy {shown(entropy)} is too small for p to differ from 1; raise entropy"
        )
    return p
