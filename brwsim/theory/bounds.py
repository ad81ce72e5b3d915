"""Bounds and estimates of the expected acceptance length E[X], for i.i.d. and Markov-modulated laws.

`BOUNDS` is the one list that tables, plots and the command line read. Each entry is also a function of this
module: ``renewal(P, mu=0.683, mu2=1.2)``. The root counts in P and in X, logs are natural, entropies in nats.
Statements and proofs are in docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from brwsim.theory.bound import Bound, Kind
from brwsim.theory.facts import FACTS
from brwsim.theory.markov import MarkovFacts, lambert_value, leaf_count_value, sharp_value
from brwsim.theory.markov_renewal import MAX_STATES, annealed_value, is_solvable
from brwsim.theory.renewal import Floats, StepCdf, solve

__all__ = ["BOUNDS", "Bound", "Kind", "available"]


def available(facts: Mapping[str, Any]) -> list[Bound]:
    """The bounds whose needs `facts` meets, in table order; a fact that is None is unknown.

    Parameters
    ----------
    facts : mapping
        Any of ``mu``, ``mu2``, ``vocab``, ``step_cdf``, ``markov`` as for a call of a `Bound`. A ``step_cdf``
        that answers None (a law without an exact one) counts as unknown. With ``iid`` False the offspring
        laws depend on context, and what is proved for independent laws comes as `Bound.as_iid_formula`.

    Examples
    --------
    >>> [bound.name for bound in available({"mu": 0.683, "mu2": 1.2})]
    ['theorem1', 'corollary1', 'renewal', 'lambert', 'sharp']
    >>> [(bound.name, bound.kind) for bound in available({"mu": 0.683, "iid": False})]
    [('lambert', 'iid-lower')]
    """
    known = {name for name in FACTS if facts.get(name) is not None}
    if "step_cdf" in known and callable(facts["step_cdf"]) and facts["step_cdf"](np.ones(1)) is None:
        known.remove("step_cdf")
    found = [bound for bound in BOUNDS.values() if known.issuperset(bound.needs) and bound.is_usable(facts)]
    if facts.get("iid", True):
        return found
    return [bound.as_iid_formula() if bound.assumes_iid else bound for bound in found]


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


def _sharp_markov_start(markov: MarkovFacts) -> float:
    return 1 / markov.mu


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
    leading_term=True,
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

annealed_markov = Bound(
    name="annealed_markov",
    kind="upper",
    needs=("markov",),
    formula="min over t of integral_0^t U_s(r) exp(r - t) dr + P exp(-t), U_s Markov renewal function",
    domain=f"P >= 1, step laws known, at most {MAX_STATES} states",
    source="derived, docs/theory.md#annealed_markov",
    rigorous=True,
    assumes_iid=False,
    _value=annealed_value,
    _domain_start=_everywhere,
    _usable=is_solvable,
)
leaf_count_markov = Bound(
    name="leaf_count_markov",
    kind="upper",
    needs=("markov", "vocab"),
    formula="(ln(P (vocab - 1) + 1) + max phi - phi(s))/mu, at most ln(P (vocab - 1) + 1)/min h",
    domain="P >= 1, finite vocab",
    source="derived, docs/theory.md#leaf_count_markov",
    rigorous=True,
    assumes_iid=False,
    _value=leaf_count_value,
    _domain_start=_everywhere,
)
lambert_markov = Bound(
    name="lambert_markov",
    kind="lower",
    needs=("markov",),
    formula="W(mu P exp(min phi - phi(s)))/mu, at least W(P max h)/max h",
    domain="P >= 1",
    source="derived, docs/theory.md#lambert_markov",
    rigorous=True,
    assumes_iid=False,
    _value=lambert_value,
    _domain_start=_everywhere,
)
sharp_markov = Bound(
    name="sharp_markov",
    kind="estimate",
    needs=("markov",),
    formula="ln(mu P)/mu + mu2/(2 mu^2) + pi B phi/mu^2 - phi(s)/mu",
    domain="P >= 1/mu; error tends to 0 as P grows, for a chain whose steps are not a lattice",
    source="derived, docs/theory.md#sharp_markov",
    rigorous=False,
    assumes_iid=False,
    _value=sharp_value,
    _domain_start=_sharp_markov_start,
)

_IID = (theorem1, corollary1, renewal, annealed, leaf_count, lambert, annealed_lower, sharp)
_MARKOV = (annealed_markov, leaf_count_markov, lambert_markov, sharp_markov)
BOUNDS: dict[str, Bound] = {bound.name: bound for bound in (*_IID, *_MARKOV)}
