"""Bounds and estimates for i.i.d. laws: exact fixed laws, order between bounds, domains, messages."""

from __future__ import annotations

import heapq
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from brwsim.errors import InvalidInput
from brwsim.theory.bounds import (
    BOUNDS,
    annealed,
    annealed_lower,
    available,
    corollary1,
    lambert,
    leaf_count,
    renewal,
    sharp,
    theorem1,
)
from brwsim.theory.markov import MarkovFacts
from brwsim.theory.renewal import lattice_span, locate_steps, renewal_masses, solve, solve_on

Floats = NDArray[np.float64]
P_MAX = 2000
CAPACITIES = np.arange(1.0, P_MAX + 1)


def exact_acceptance(probs: list[float], p_max: int) -> Floats:
    """E[X] of a fixed law for P = 1..p_max: the tree is not random, so best-first prefix sums are exact."""
    law = sorted(probs, reverse=True)
    # An entry (-weight, parent weight, i) stands for a child and, once popped, for its next sibling.
    heap, weights = [(-law[0], 1.0, 0)], [1.0]
    while len(weights) < p_max:
        minus, parent, i = heapq.heappop(heap)
        weights.append(-minus)
        heapq.heappush(heap, (minus * law[0], -minus, 0))
        if i + 1 < len(law):
            heapq.heappush(heap, (-parent * law[i + 1], parent, i + 1))
    return np.cumsum(weights)


def fixed_facts(probs: list[float]) -> dict[str, Any]:
    p = np.sort(np.asarray(probs))[::-1]
    steps, reached = -np.log(p), np.append(0.0, np.minimum(np.cumsum(p), 1.0))
    mu, mu2 = float(p @ steps), float(p @ steps**2)

    def step_cdf(y: Floats) -> Floats:
        return np.asarray(reached[np.searchsorted(steps, y, side="right")])

    return {
        "mu": mu,
        "mu2": mu2,
        "vocab": p.size,
        "step_cdf": step_cdf,
        "markov": MarkovFacts([[1.0]], [mu], [mu2], steps=[step_cdf]),
    }


def dirichlet_moments(vocab: int, alpha: float) -> tuple[float, float]:
    from scipy.special import polygamma, psi

    mu = float(psi(vocab * alpha + 1) - psi(alpha + 1))
    return mu, mu**2 + float(polygamma(1, alpha + 1) - polygamma(1, vocab * alpha + 1))


def dirichlet_facts(vocab: int, alpha: float) -> dict[str, Any]:
    from scipy.special import betainc

    mu, mu2 = dirichlet_moments(vocab, alpha)
    rest = (vocab - 1) * alpha  # the size-biased child is Beta(1 + alpha, rest)

    def step_cdf(y: Floats) -> Floats:
        return np.asarray(betainc(rest, 1 + alpha, -np.expm1(-y)))

    markov = MarkovFacts([[1.0]], [mu], [mu2], steps=[step_cdf])
    return {"mu": mu, "mu2": mu2, "vocab": vocab, "step_cdf": step_cdf, "markov": markov}


def exponential_cdf(mu: float) -> Callable[[Floats], Floats]:
    return lambda y: -np.expm1(-y / mu)


def normalised(weights: Any) -> list[float]:
    values = np.asarray(weights, dtype=np.float64)
    return list(values / values.sum())


GOLDEN = (math.sqrt(5) - 1) / 2
FIXED_LAWS = {
    "uniform2": [0.5, 0.5],
    "uniform7": [1 / 7] * 7,
    "four": [0.6, 0.25, 0.1, 0.05],
    "nearly_sure": [0.999, 0.001],
    "almost_chain": [1 - 1e-6, 1e-6],
    "geometric200": normalised(0.9 ** np.arange(200)),
    "zipf1000": normalised(1 / np.arange(1, 1001.0)),
    "powers_of_half": [0.5, 0.25, 0.125, 0.125],
    "powers_of_golden": [GOLDEN, GOLDEN**2],
    "lattice_large_base": [0.9, *[1e-2] * 10],
    "lattice_near_zero": normalised([1024, 32, 16, 8, 4, 4, 2, 2, 2, 1, 1, 0.5]),
    "nearly_equal": normalised([1 + 1e-9, 1.0, 1 - 1e-9]),
    "two_scales": normalised([0.5, 0.5 - 1e-7, 1e-7]),
    "tiny_tail": normalised([0.7, 0.3, 1e-300]),
}


@pytest.fixture(scope="module", params=list(FIXED_LAWS))
def fixed(request: pytest.FixtureRequest) -> tuple[str, Floats, dict[str, Any]]:
    probs = FIXED_LAWS[request.param]
    return request.param, exact_acceptance(probs, P_MAX), fixed_facts(probs)


def test_every_bound_holds_on_fixed_laws(fixed: tuple[str, Floats, dict[str, Any]]) -> None:
    _, exact, facts = fixed
    for bound in BOUNDS.values():
        value = bound(CAPACITIES, **facts)
        if bound.kind == "upper":
            assert np.all(value >= exact * (1 - 1e-9)), bound.name
        elif bound.kind == "lower":
            assert np.all(value <= exact * (1 + 1e-9)), bound.name


def test_annealed_equals_fixed_laws(fixed: tuple[str, Floats, dict[str, Any]]) -> None:
    """The tree of a fixed law is its own average, so only the discretisation is left, never below."""
    name, exact, facts = fixed
    excess = annealed(CAPACITIES, **facts) / exact - 1
    assert excess.max() < 1e-3
    if name in ("uniform2", "uniform7", "powers_of_half", "powers_of_golden"):
        assert excess.max() < 1e-6  # the lattice is found and the grid lies on it


def test_sharp_is_close_to_a_non_lattice_fixed_law() -> None:
    exact = exact_acceptance(FIXED_LAWS["four"], P_MAX)
    error = sharp(CAPACITIES, **fixed_facts(FIXED_LAWS["four"])) - exact
    assert np.abs(error[100:]).max() < 0.02


def test_exact_acceptance_by_hand() -> None:
    assert exact_acceptance([0.6, 0.4], 4) == pytest.approx([1, 1.6, 2.0, 2.36])
    # Uniform over V: level d holds V^d nodes of weight V^-d.
    assert exact_acceptance([0.25] * 4, 21) == pytest.approx([1, *(1 + np.arange(1, 5) / 4)] + [
        2 + k / 16 for k in range(1, 17)
    ])  # fmt: skip


moments = st.tuples(
    st.floats(-9, 3).map(lambda e: 10.0**e),
    st.one_of(st.just(1.0), st.floats(0, 9).map(lambda e: 1 + 10.0 ** (e - 3))),
).map(lambda pair: (pair[0], pair[1] * pair[0] ** 2))
capacities = st.floats(0, 12).map(lambda e: 10.0**e)


@given(moments, capacities)
@settings(max_examples=500, deadline=None)
def test_renewal_is_at_most_theorem1(mu_mu2: tuple[float, float], P: float) -> None:
    mu, mu2 = mu_mu2
    grid = P * np.array([1.0, 1.5, 4.0])
    sharper, paper = renewal(grid, mu=mu, mu2=mu2), theorem1(grid, mu=mu, mu2=mu2)
    assert np.all(sharper <= paper * (1 + 1e-9))
    assert np.array_equal(renewal.in_domain(grid, mu=mu, mu2=mu2), grid >= mu2 / mu / mu)
    inside = mu2 / mu / mu * np.array([1.0, 1.001, 2.0, 1e3])
    inside = np.clip(inside, 1, 1e15)
    assert np.all(renewal(inside, mu=mu, mu2=mu2) <= theorem1(inside, mu=mu, mu2=mu2) * (1 + 1e-9))


@given(moments, st.lists(capacities, min_size=1, max_size=20), st.integers(2, 300_000))
@settings(max_examples=300, deadline=None)
def test_closed_forms_are_ordered_monotone_and_capped(
    mu_mu2: tuple[float, float], values: list[float], vocab: int
) -> None:
    mu, mu2 = mu_mu2
    facts: dict[str, Any] = {"mu": mu, "mu2": mu2, "vocab": vocab if mu <= math.log(vocab) else None}
    grid = np.sort(values)
    low = lambert(grid, **facts)
    for bound in available(facts):
        value = bound(grid, **facts)
        assert np.all((value >= 1) & (value <= grid)), bound.name
        assert np.all(np.diff(value) >= -1e-9 * value[1:]), bound.name
        if bound.kind == "upper":
            assert np.all(low <= value * (1 + 1e-9)), bound.name
            assert np.all(value[~bound.in_domain(grid, **facts)] == grid[~bound.in_domain(grid, **facts)])


@given(
    st.lists(st.floats(-12, 0).map(lambda e: 10.0**e), min_size=2, max_size=12),
    st.floats(0, 6).map(lambda e: 10.0**e),
)
@settings(max_examples=25, deadline=None)
def test_numerical_bounds_on_any_table(weights: list[float], p_max: float) -> None:
    facts = fixed_facts(normalised(weights))
    grid = np.geomspace(1, p_max, 50)
    upper, lower = annealed(grid, **facts), annealed_lower(grid, **facts)
    assert np.all(upper <= renewal(grid, **facts))
    assert np.all(upper <= leaf_count(grid, **facts) * (1 + 1e-4))
    assert np.all(lower >= lambert(grid, **facts))
    assert np.all(lower <= upper)
    for value in (upper, lower):
        assert np.all(np.diff(value) >= -1e-9 * value[1:])
    exact = exact_acceptance(normalised(weights), 200)
    whole = np.arange(1.0, 201)
    assert np.all(annealed(whole, **facts) >= exact * (1 - 1e-9))
    assert np.all(annealed_lower(whole, **facts) <= exact * (1 + 1e-9))


@pytest.mark.parametrize("mu", [0.01, 0.5, 1.0, 3.0])
def test_exponential_steps_converge_from_above(mu: float) -> None:
    """U(t) = 1 + t/mu and m(t) = 1 + (e^t - 1)/mu exactly."""
    solution = solve(exponential_cdf(mu), 4096)
    U = 1 + solution.t / mu
    assert np.all(solution.U >= U)
    np.testing.assert_allclose(solution.U, U, rtol=0.01)
    assert solution.U[-1] == pytest.approx(U[-1], rel=1e-3)
    excess = U - np.exp(-solution.t) * (1 + np.expm1(solution.t) / mu)
    assert np.all(solution.excess >= excess - 1e-12)
    np.testing.assert_allclose(solution.excess, excess, rtol=2e-3, atol=1e-3)
    # Values at their own optimum: t = ln(1 + mu (P - 1)), so that E[X] <= 1 + t/mu.
    P = np.geomspace(2, 4096, 30)
    t = np.log1p(mu * (P - 1))
    exact_upper = 1 + t / mu
    assert np.all(solution.upper(P) >= exact_upper)
    assert solution.upper(P) == pytest.approx(exact_upper, rel=2e-3)
    # integral_0^t (1 - m(s)/P) ds with m as above.
    exact_lower = t - (t * (1 - 1 / mu) + np.expm1(t) / mu) / P
    assert np.all(solution.entropy_lower(P) <= exact_lower)
    assert solution.entropy_lower(P) == pytest.approx(exact_lower, rel=2e-3, abs=2e-3 * mu)


@pytest.mark.parametrize("vocab", [2, 7, 50])
def test_uniform_law_gives_the_staircase(vocab: int) -> None:
    solution = solve(fixed_facts([1 / vocab] * vocab)["step_cdf"], 4096)
    level = np.floor(solution.t / math.log(vocab) + 1e-6)
    np.testing.assert_allclose(solution.U, 1 + level, rtol=1e-5)
    np.testing.assert_allclose(solution.m, (vocab ** (level + 1) - 1) / (vocab - 1), rtol=1e-5)


def test_lattice_detection() -> None:
    def span(probs: list[float]) -> float | None:
        return lattice_span(locate_steps(fixed_facts(probs)["step_cdf"], 10.0))

    assert span([0.5, 0.25, 0.125, 0.125]) == pytest.approx(math.log(2))
    assert span([1 / 4, 1 / 4, *[1 / 8] * 4]) == pytest.approx(math.log(2))
    assert span([0.6, 0.25, 0.1, 0.05]) is None
    assert lattice_span(locate_steps(exponential_cdf(1.0), 10.0)) is None


def test_power_series_inverse_is_above_the_recursion() -> None:
    rng = np.random.default_rng(5)
    for first in (0.0, 0.5, 0.999):
        steps = rng.random(256) ** 8
        steps *= (1 - first) / steps[1:].sum()
        steps[0] = first
        exact = np.zeros(256)
        for k in range(256):
            exact[k] = ((k == 0) + steps[1 : k + 1] @ exact[:k][::-1]) / (1 - steps[0])
        u = renewal_masses(steps)
        assert u is not None
        assert np.all(u >= exact)
        assert u == pytest.approx(exact, rel=1e-6)
    assert renewal_masses(np.array([1.0, 0.0])) is None


@pytest.mark.parametrize(
    ("vocab", "alpha", "sharps", "papers"),
    [
        (50, 0.02, (5.2733, 6.7060, 8.1388), (11.35, 15.55, 19.77)),
        (20, 0.2, (3.3050, 4.0772, 4.8494), (7.98, 10.57, 13.18)),
        (50, 0.005, (11.398, 15.457, 19.515), (21.3, 31.7, 42.3)),
    ],
)
def test_published_figures(
    vocab: int, alpha: float, sharps: tuple[float, ...], papers: tuple[float, ...]
) -> None:
    facts = dirichlet_facts(vocab, alpha)
    P = np.array([64.0, 256.0, 1024.0])
    assert sharp(P, **facts) == pytest.approx(np.array(sharps), abs=6e-4)
    assert theorem1(P, **facts) == pytest.approx(np.array(papers), abs=0.06)
    # Non-lattice: the sharpest bound meets the estimate from above as P grows.
    assert annealed(1024, **facts) == pytest.approx(sharp(1024, **facts), abs=2e-3)
    gap = annealed(1e6, **facts) - annealed_lower(1e6, **facts)
    assert gap == pytest.approx(1 / facts["mu"] + facts["mu2"] / facts["mu"] ** 2 / 2, rel=0.01)


def test_scalar_and_array_agree() -> None:
    facts = dirichlet_facts(50, 0.02)
    for bound in BOUNDS.values():
        grid = np.array([[1, 2, 64], [100, 1000, 4096]])
        values = bound(grid, **facts)
        assert values.shape == grid.shape
        assert values.dtype == np.float64
        for index, P in np.ndenumerate(grid):
            scalar = bound(int(P), **facts)
            assert isinstance(scalar, float)
            assert scalar == values[index], bound.name
            assert isinstance(bound.in_domain(int(P), **facts), bool)


def test_trivial_capacity_and_lower_caps() -> None:
    facts = fixed_facts([0.6, 0.25, 0.1, 0.05])
    assert all(bound(1, **facts) == 1 for bound in BOUNDS.values())
    assert renewal(1.2, mu=1.0, mu2=4.0) == 1.2  # below the domain
    assert not renewal.in_domain(3.9, mu=1.0, mu2=4.0)
    assert renewal(4.0, mu=1.0, mu2=4.0) == theorem1(4.0, mu=1.0, mu2=4.0) == 4.0
    assert corollary1(1e6, mu=1.0, mu2=4.0) == pytest.approx(5 * math.log(1e6))


def test_inconsistent_step_law_falls_back() -> None:
    """A chain has no renewal function: `annealed` is then the closed form, `annealed_lower` lambert's."""
    chain: Callable[[Floats], Floats] = np.ones_like
    assert annealed(100, mu=1.0, mu2=2.0, step_cdf=chain) == renewal(100, mu=1.0, mu2=2.0)
    assert annealed_lower(100, mu=1.0, step_cdf=chain) == lambert(100, mu=1.0)


def test_available_lists_what_can_be_evaluated() -> None:
    def names(**facts: Any) -> list[str]:
        return [bound.name for bound in available(facts)]

    assert names() == []
    assert names(mu=0.683) == ["lambert"]
    assert names(mu=0.683, vocab=32000, mu2=None) == ["leaf_count", "lambert"]
    assert names(mu=1.0, mu2=2.0, vocab=None, step_cdf=exponential_cdf(1.0)) == [
        name for name in BOUNDS if name != "leaf_count" and not name.endswith("_markov")
    ]
    assert "annealed" not in names(mu=1.0, mu2=2.0, step_cdf=lambda y: None)
    assert list(BOUNDS) == [bound.name for bound in BOUNDS.values()]


def test_unhashable_step_law_is_solved() -> None:
    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, y: Floats) -> Floats:
            return -np.expm1(-y)

    assert annealed(64, mu=1.0, mu2=2.0, step_cdf=Unhashable()) == pytest.approx(5.1589, abs=1e-3)


ONE_STATE = MarkovFacts([[1.0]], [1.0], [2.0], steps=[exponential_cdf(1.0)])
GOOD: dict[str, Any] = {
    "mu": 1.0,
    "mu2": 2.0,
    "vocab": 50,
    "step_cdf": exponential_cdf(1.0),
    "markov": ONE_STATE,
}


@pytest.mark.parametrize(("bound", "fact"), [(b, fact) for b in BOUNDS.values() for fact in b.needs])
def test_missing_fact_is_named(bound: Any, fact: str) -> None:
    with pytest.raises(InvalidInput, match=rf"{bound.name} needs {fact} \(.*\), which was not given$"):
        bound(64, **{**GOOD, fact: None})
    with pytest.raises(InvalidInput, match=f"needs {fact}"):
        bound.in_domain(64, **{**GOOD, fact: None})


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        *[({"mu": bad}, "mu must be a positive finite number") for bad in (0, -1, math.nan, math.inf, "x")],
        *[({"mu2": bad}, "mu2 must be a positive finite number") for bad in (0, -1, math.nan, [1, 2])],
        ({"mu2": 0.99}, r"mu2 = 0.99 is below mu\^2 = 1"),
        ({"mu": 1e-200, "mu2": 1.0}, "overflows"),
        *[({"vocab": bad}, "vocab must be an integer of at least 2") for bad in (1, 0, 2.5, "x")],
        ({"mu": 4.0, "mu2": 17.0}, r"mu = 4 exceeds ln\(vocab\)"),
        ({"markov": 3}, "markov must be a MarkovFacts"),
        ({"step_cdf": 3}, "step_cdf must be a function"),
        ({"step_cdf": lambda y: y + 2}, r"probabilities in \[0, 1\]"),
        ({"step_cdf": lambda y: y * np.nan}, r"probabilities in \[0, 1\]"),
        ({"step_cdf": lambda y: y[:1]}, "one value per step"),
        ({"step_cdf": lambda y: None}, "step_cdf returned None"),
    ],
)
def test_bad_facts_are_named(facts: dict[str, Any], message: str) -> None:
    concerned = [b for b in BOUNDS.values() if set(facts) & set(b.needs)]
    raised = 0
    for bound in concerned:
        try:
            bound(64, **{**GOOD, **facts})
        except InvalidInput as error:
            raised += re.search(message, str(error)) is not None
    assert raised >= 1
    for bound in set(BOUNDS.values()) - set(concerned):
        bound(64, **{**GOOD, **facts})  # what a bound does not need, it does not look at


@pytest.mark.parametrize("P", [0, 0.5, -3, math.nan, math.inf, 1e16, [], [1, 0], "many", [[1], [2, 3]]])
def test_bad_capacity(P: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^P "):
        renewal(P, mu=1.0, mu2=2.0)


def test_rounding_below_jensen_is_accepted() -> None:
    mu = math.log(7)
    assert renewal(64, mu=mu, mu2=mu * mu * (1 - 1e-12)) == pytest.approx(renewal(64, mu=mu, mu2=mu * mu))


def test_table_entries_are_complete() -> None:
    for name, bound in BOUNDS.items():
        assert bound.name == name
        assert all((bound.formula, bound.domain, bound.source))
        assert "\n" not in bound.formula + bound.domain + bound.source
        assert bound.rigorous == (bound.kind != "estimate")
    assert list(BOUNDS) == [
        "theorem1", "corollary1", "renewal", "annealed", "leaf_count", "lambert", "annealed_lower", "sharp",
        "annealed_markov", "leaf_count_markov", "lambert_markov", "sharp_markov",
    ]  # fmt: skip


@pytest.mark.parametrize("n", [4, 16, 128])
def test_a_rough_grid_errs_on_the_safe_side(fixed: tuple[str, Floats, dict[str, Any]], n: int) -> None:
    """With few cells and few evaluations the error is large, and its sign is what keeps the bounds."""
    _, exact, facts = fixed
    for t_max in (0.1, 0.5, 2.5, 3.1, 9.0):
        rough = solve_on(facts["step_cdf"], t_max, n, evaluations=32 * n)
        assert np.all(rough.upper(CAPACITIES) >= exact * (1 - 1e-9))
        assert np.all(rough.entropy_lower(CAPACITIES) / facts["mu"] <= exact * (1 + 1e-9))
