"""Bounds and estimates of the expected acceptance length E[X] for i.i.d. offspring laws.

`BOUNDS` is the one list that tables, plots and the command line read. Each entry is also a function of this
module: ``renewal(P, mu=0.683, mu2=1.2)``. The root counts in P and in X, logs are natural, entropies in nats.
Statements and proofs are in docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import InvalidInput
from brwsim.theory.facts import CHECKS, FACTS, capacity_array, check_entropy, check_jensen
from brwsim.theory.renewal import Floats, StepCdf, solve

Kind = Literal["upper", "lower", "estimate"]


@dataclass(frozen=True)
class Bound:
    """A bound on, or an estimate of, the expected acceptance length as a function of the capacity P.

    Attributes
    ----------
    name : str
    kind : {"upper", "lower", "estimate"}
        What the value is to E[X].
    needs : tuple of str
        Facts it is computed from, out of ``mu``, ``mu2``, ``vocab`` and ``step_cdf``.
    formula, domain, source : str
        One line each: the statement, where it holds, where it comes from.
    rigorous : bool
        True for a proved bound at every finite P; False for estimates.

    Examples
    --------
    >>> round(renewal(1024, mu=0.968, mu2=1.889), 3)
    9.142
    >>> renewal([1, 2, 4], mu=0.968, mu2=1.889).round(3).tolist()
    [1.0, 2.0, 3.123]
    >>> renewal.in_domain([1, 2, 4], mu=0.968, mu2=1.889).tolist()
    [False, False, True]
    """

    name: str
    kind: Kind
    needs: tuple[str, ...]
    formula: str
    domain: str
    source: str
    rigorous: bool
    _value: Callable[..., Floats] = field(repr=False, compare=False)
    _domain_start: Callable[..., float] = field(repr=False, compare=False)

    @overload
    def __call__(
        self,
        P: float,
        *,
        mu: float | None = None,
        mu2: float | None = None,
        vocab: int | None = None,
        step_cdf: StepCdf | None = None,
    ) -> float: ...

    @overload
    def __call__(
        self,
        P: Sequence[float] | NDArray[Any],
        *,
        mu: float | None = None,
        mu2: float | None = None,
        vocab: int | None = None,
        step_cdf: StepCdf | None = None,
    ) -> Floats: ...

    def __call__(
        self,
        P: float | Sequence[float] | NDArray[Any],
        *,
        mu: float | None = None,
        mu2: float | None = None,
        vocab: int | None = None,
        step_cdf: StepCdf | None = None,
    ) -> float | Floats:
        """Evaluate at P; facts that are not needed are ignored.

        Parameters
        ----------
        P : float or array_like of any shape
            Capacity, the root included; from 1 to 1e15.
        mu : float, optional
            Expected entropy E[-sum p ln p], nats, positive.
        mu2 : float, optional
            Expected second log-moment E[sum p ln^2 p], nats squared, at least mu^2.
        vocab : int, optional
            Number of children of a node, at least 2; None means infinite or unknown.
        step_cdf : callable, optional
            Pr(Y <= y) for an array y >= 0 in nats, Y = -ln p of a child picked with probability p.

        Returns
        -------
        float or ndarray of the shape of P
            An upper bound is at most P, which is also the answer outside its domain; a lower bound is at
            least 1; an estimate is kept within 1 and P.

        Raises
        ------
        InvalidInput
            A needed fact is missing or impossible, or P is not a capacity.
        """
        capacity = capacity_array(P)
        facts = self._facts({"mu": mu, "mu2": mu2, "vocab": vocab, "step_cdf": step_cdf})
        value = np.clip(self._value(capacity, *facts), 1.0, capacity)
        if self.kind == "upper":
            value = np.where(capacity >= self._domain_start(*facts), value, capacity)
        return float(value) if value.ndim == 0 else value

    def in_domain(self, P: float | Sequence[float] | NDArray[Any], **facts: Any) -> bool | NDArray[np.bool_]:
        """Whether the formula says something at P; parameters and errors as for a call.

        Returns
        -------
        bool or ndarray of bool of the shape of P
        """
        capacity = capacity_array(P)
        mask = np.asarray(capacity >= self._domain_start(*self._facts(facts)))
        return bool(mask) if mask.ndim == 0 else mask

    def _facts(self, given: Mapping[str, Any]) -> list[Any]:
        """The needed facts, checked, in the order of `needs`."""
        for name in self.needs:
            if given.get(name) is None:
                raise InvalidInput(f"{self.name} needs {name} ({FACTS[name]}), which was not given.")
        facts = {name: CHECKS[name](given[name]) for name in self.needs}
        if "mu2" in facts:
            facts["mu2"] = check_jensen(facts["mu"], facts["mu2"])
        if "vocab" in facts:
            check_entropy(facts["mu"], facts["vocab"])
        return list(facts.values())


def available(facts: Mapping[str, Any]) -> list[Bound]:
    """The bounds whose needs `facts` meets, in table order; a fact that is None is unknown.

    Parameters
    ----------
    facts : mapping
        Any of ``mu``, ``mu2``, ``vocab``, ``step_cdf`` as for a call of a `Bound`. A ``step_cdf`` that
        answers None (a law without an exact one) counts as unknown.

    Examples
    --------
    >>> [bound.name for bound in available({"mu": 0.683, "mu2": 1.2})]
    ['theorem1', 'corollary1', 'renewal', 'lambert', 'sharp']
    """
    known = {name for name in FACTS if facts.get(name) is not None}
    if "step_cdf" in known and callable(facts["step_cdf"]) and facts["step_cdf"](np.ones(1)) is None:
        known.remove("step_cdf")
    return [bound for bound in BOUNDS.values() if known.issuperset(bound.needs)]


# The formulas: capacities first, then the needed facts in the order of `needs`.


def _lorden(mu: float, mu2: float) -> float:
    """B of Lorden's bound U(t) <= t/mu + B, and where `theorem1` and `renewal` begin."""
    return mu2 / mu / mu


def _theorem1(P: Floats, mu: float, mu2: float) -> Floats:
    # (P - b)/a = 1 + (P - B)/a since a + b = B: no cancellation when mu is small.
    start = _lorden(mu, mu2)
    slope = 1 / mu + start
    return slope * np.log1p(np.maximum(P - start, 0.0) / slope) + start


def _corollary1(P: Floats, mu: float, mu2: float) -> Floats:
    return (1 / mu + _lorden(mu, mu2)) * np.log(P)


def _renewal(P: Floats, mu: float, mu2: float) -> Floats:
    start = _lorden(mu, mu2)
    return np.log1p(mu * np.maximum(P - start, 0.0)) / mu + start


def _annealed(P: Floats, mu: float, mu2: float, step_cdf: StepCdf) -> Floats:
    closed = np.where(_lorden(mu, mu2) <= P, _renewal(P, mu, mu2), P)
    return np.minimum(solve(step_cdf, float(P.max())).upper(P), closed)


def _leaf_count(P: Floats, mu: float, vocab: int) -> Floats:
    return np.log1p(P * (vocab - 1)) / mu


def _lambert(P: Floats, mu: float) -> Floats:
    from scipy.special import lambertw

    return np.asarray(lambertw(mu * P, 0).real / mu, dtype=np.float64)


def _annealed_lower(P: Floats, mu: float, step_cdf: StepCdf) -> Floats:
    return np.maximum(solve(step_cdf, float(P.max())).entropy_lower(P) / mu, _lambert(P, mu))


def _sharp(P: Floats, mu: float, mu2: float) -> Floats:
    return np.log(mu * P) / mu + _lorden(mu, mu2) / 2


def _sharp_start(mu: float, mu2: float) -> float:
    return 1 / mu


def _everywhere(*_facts: Any) -> float:
    return 1.0


_PAPER = "Pankratov & Alistarh, arXiv 2512.11718"

theorem1 = Bound(
    name="theorem1",
    kind="upper",
    needs=("mu", "mu2"),
    formula="a ln((P - b)/a) + a + b, a = (mu + mu2)/mu^2, b = -1/mu",
    domain="P >= mu2/mu^2",
    source=f"{_PAPER}, Theorem 1; b reconstructed",
    rigorous=True,
    _value=_theorem1,
    _domain_start=_lorden,
)
corollary1 = Bound(
    name="corollary1",
    kind="estimate",
    needs=("mu", "mu2"),
    formula="((mu + mu2)/mu^2) ln P, the leading term without its O(1)",
    domain="large P",
    source=f"{_PAPER}, Corollary 1",
    rigorous=False,
    _value=_corollary1,
    _domain_start=_everywhere,
)
renewal = Bound(
    name="renewal",
    kind="upper",
    needs=("mu", "mu2"),
    formula="ln(1 + mu P - mu2/mu)/mu + mu2/mu^2",
    domain="P >= mu2/mu^2",
    source="derived, docs/theory.md#renewal",
    rigorous=True,
    _value=_renewal,
    _domain_start=_lorden,
)
annealed = Bound(
    name="annealed",
    kind="upper",
    needs=("mu", "mu2", "step_cdf"),
    formula="min over t of integral_0^t U(s) exp(s - t) ds + P exp(-t), U renewal function; at most renewal",
    domain="P >= 1",
    source="derived, docs/theory.md#annealed",
    rigorous=True,
    _value=_annealed,
    _domain_start=_everywhere,
)
leaf_count = Bound(
    name="leaf_count",
    kind="upper",
    needs=("mu", "vocab"),
    formula="ln(P (vocab - 1) + 1)/mu",
    domain="P >= 1, finite vocab",
    source="derived, docs/theory.md#leaf_count",
    rigorous=True,
    _value=_leaf_count,
    _domain_start=_everywhere,
)
lambert = Bound(
    name="lambert",
    kind="lower",
    needs=("mu",),
    formula="W(mu P)/mu, W Lambert's function",
    domain="P >= 1",
    source="derived, docs/theory.md#lambert",
    rigorous=True,
    _value=_lambert,
    _domain_start=_everywhere,
)
annealed_lower = Bound(
    name="annealed_lower",
    kind="lower",
    needs=("mu", "step_cdf"),
    formula="(1/mu) integral_0^inf (1 - m(t)/P)^+ dt, m the expected node count; at least lambert",
    domain="P >= 1",
    source="derived, docs/theory.md#annealed_lower",
    rigorous=True,
    _value=_annealed_lower,
    _domain_start=_everywhere,
)
sharp = Bound(
    name="sharp",
    kind="estimate",
    needs=("mu", "mu2"),
    formula="ln(mu P)/mu + mu2/(2 mu^2)",
    domain="P >= 1/mu; error tends to 0 as P grows, for a step law that is not a lattice",
    source="derived, docs/theory.md#sharp",
    rigorous=False,
    _value=_sharp,
    _domain_start=_sharp_start,
)

BOUNDS: dict[str, Bound] = {
    bound.name: bound
    for bound in (theorem1, corollary1, renewal, annealed, leaf_count, lambert, annealed_lower, sharp)
}
