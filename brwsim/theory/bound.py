"""What a bound is: a formula with the facts it needs, where it holds and how far it is proved."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import InvalidInput
from brwsim.theory.facts import CHECKS, FACTS, capacity_array, check_entropy, check_jensen
from brwsim.theory.markov import MarkovFacts
from brwsim.theory.renewal import Floats, StepCdf

Kind = Literal["upper", "lower", "estimate", "iid-upper", "iid-lower", "iid-estimate"]


@dataclass(frozen=True)
class Bound:
    """A bound on, or an estimate of, the expected acceptance length as a function of the capacity P.

    Attributes
    ----------
    name : str
    kind : {"upper", "lower", "estimate", "iid-upper", "iid-lower", "iid-estimate"}
        What the value is to E[X]; after ``iid-``, what it would be if the laws were independent.
    needs : tuple of str
        Facts it is computed from, out of ``mu``, ``mu2``, ``vocab``, ``step_cdf`` and ``markov``.
    formula, domain, source : str
        One line each: the statement, where it holds, where it comes from.
    rigorous : bool
        True for a proved bound at every finite P; False for estimates and for any ``iid-`` kind.
    assumes_iid : bool
        Whether the statement is for independent offspring laws only.
    leading_term : bool
        Whether it is the leading term of a formula alone, whose distance from E[X] need not be small: tables
        and figures of a sweep leave it out unless asked.

    Examples
    --------
    >>> from brwsim.theory.bounds import renewal
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
    assumes_iid: bool = True
    leading_term: bool = False
    _usable: Callable[..., bool] | None = field(default=None, repr=False, compare=False)

    @overload
    def __call__(
        self,
        P: float,
        *,
        mu: float | None = None,
        mu2: float | None = None,
        vocab: int | None = None,
        step_cdf: StepCdf | None = None,
        markov: MarkovFacts | None = None,
        iid: bool = True,
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
        markov: MarkovFacts | None = None,
        iid: bool = True,
    ) -> Floats: ...

    def __call__(
        self,
        P: float | Sequence[float] | NDArray[Any],
        *,
        mu: float | None = None,
        mu2: float | None = None,
        vocab: int | None = None,
        step_cdf: StepCdf | None = None,
        markov: MarkovFacts | None = None,
        iid: bool = True,
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
        markov : MarkovFacts, optional
            What is known of a Markov-modulated process, the state of its root included.
        iid : bool
            Not looked at: whether the process has independent laws. It is here so that the facts of a
            process can be passed on whole; `available` reads it.

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
        given = {"mu": mu, "mu2": mu2, "vocab": vocab, "step_cdf": step_cdf, "markov": markov}
        facts = self._facts(given)
        value = np.clip(self._value(capacity, *facts), 1.0, capacity)
        if self.kind.endswith("upper"):
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

    def is_usable(self, facts: Mapping[str, Any]) -> bool:
        """Whether needed facts that are all known say enough, such as a chain with its step laws."""
        return self._usable is None or self._usable(*(CHECKS[name](facts[name]) for name in self.needs))

    def as_iid_formula(self) -> Bound:
        """The same formula for a process with context, where nothing is proved: kind ``iid-...``, not rigorous."""
        kinds: dict[Kind, Kind] = {"upper": "iid-upper", "lower": "iid-lower", "estimate": "iid-estimate"}
        return dataclasses.replace(self, kind=kinds.get(self.kind, self.kind), rigorous=False)

    def _facts(self, given: Mapping[str, Any]) -> list[Any]:
        """The needed facts, checked, in the order of `needs`."""
        for name in self.needs:
            if given.get(name) is None:
                raise InvalidInput(f"{self.name} needs {name} ({FACTS[name]}), which was not given")
        facts = {name: CHECKS[name](given[name]) for name in self.needs}
        if "mu2" in facts:
            facts["mu2"] = check_jensen(facts["mu"], facts["mu2"])
        if "vocab" in facts:
            check_entropy(facts["mu"] if "mu" in facts else facts["markov"].h.max(), facts["vocab"])
        return list(facts.values())
