"""A mixture of laws: each node draws which of them its children follow."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.process.base import Floats, KernelRow, Law
from brwsim.process.laws.checks import check_probabilities


@dataclass(frozen=True, init=False)
class Mixture(Law):
    """Mixture of laws: every node draws one of them, independently of all other nodes.

    Parameters
    ----------
    laws : sequence of Law, dict or str, at least one
        The components: laws, their specs, or texts such as ``"dirichlet:vocab=50,alpha=0.02"``.
    weights : sequence of float, optional
        Probability of each, above 0, summing to 1 within 1e-9; equal when left out.

    Raises
    ------
    InvalidInput
        If a component is not a law, or the weights are not one positive number each summing to 1.

    Notes
    -----
    mu, mu2 and the step law are the components' weighted means. Source: derived, docs/theory.md.

    Examples
    --------
    >>> law = Mixture(laws=["uniform:vocab=2", "uniform:vocab=8"], weights=[0.25, 0.75])
    >>> print(f"{law.mu / math.log(2):.6f}")
    2.500000
    """

    name: ClassVar[str] = "mixture"

    laws: tuple[Law, ...]
    weights: tuple[float, ...]

    def __init__(
        self, laws: Sequence[Law | Mapping[str, Any] | str], weights: Sequence[float] | None = None
    ) -> None:
        if isinstance(laws, str | bytes) or not isinstance(laws, Sequence) or not laws:
            raise InvalidInput(
                'mixture: laws must be a list of laws such as ["uniform:vocab=2","zipf"],'
                f" not {reprlib.repr(laws)}"
            )
        object.__setattr__(self, "laws", tuple(_component(i, law) for i, law in enumerate(laws)))
        object.__setattr__(self, "weights", _check_weights(len(laws), weights))

    @property
    def mu(self) -> float:
        return math.fsum(w * law.mu for w, law in zip(self.weights, self.laws, strict=True))

    @property
    def mu2(self) -> float:
        return math.fsum(w * law.mu2 for w, law in zip(self.weights, self.laws, strict=True))

    @property
    def vocab(self) -> int | None:
        sizes = [law.vocab for law in self.laws if law.vocab is not None]
        return max(sizes) if len(sizes) == len(self.laws) else None

    def rows(self) -> list[tuple[float, KernelRow]]:
        return [
            (w * inner, row)
            for w, law in zip(self.weights, self.laws, strict=True)
            for inner, row in law.rows()
        ]

    def step_cdf(self, y: Floats) -> Floats | None:
        total = np.zeros(np.shape(y))
        for w, law in zip(self.weights, self.laws, strict=True):
            part = law.step_cdf(y)
            if part is None:
                return None
            total += w * part
        return np.minimum(total, 1.0)

    def to_spec(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "laws": [law.to_spec() for law in self.laws],
            "weights": list(self.weights),
        }


def _component(index: int, value: Law | Mapping[str, Any] | str) -> Law:
    from brwsim.process.laws import as_law  # the registry holds this class: import it when it is complete

    try:
        return as_law(value)
    except RecursionError:
        raise InvalidInput("mixture: laws are nested too deeply") from None
    except InvalidInput as error:
        if str(error).startswith("mixture:"):
            raise  # an inner mixture has already said where
        raise InvalidInput(f"mixture: laws[{index}]: {error}") from None


def _check_weights(count: int, weights: Any) -> tuple[float, ...]:
    if weights is None:
        return (1 / count,) * count
    numbers = check_probabilities("mixture", "weights", weights)
    if len(numbers) != count:
        raise InvalidInput(f"mixture: give one weight per law, got {len(numbers)} weights for {count} laws")
    if min(numbers) == 0:
        raise InvalidInput(
            f"mixture: weights[{numbers.index(0)}] must be above 0; leave that law out instead"
        )
    return numbers
