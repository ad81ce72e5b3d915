"""Markov-modulated trees: trees that are not random, figures, reduction to independent laws, messages."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from brwsim.errors import InvalidInput
from brwsim.process.laws.sticks import Dirichlet
from brwsim.theory.bounds import BOUNDS, available
from brwsim.theory.markov import MarkovFacts, lambert_coarse, leaf_count_coarse
from brwsim.theory.markov_chain import dobrushin, mixing_sum, stationary
from brwsim.theory.markov_renewal import renewal_masses, solve, solve_on

Floats = NDArray[np.float64]
P_MAX = 2000
CAPACITIES = np.arange(1.0, P_MAX + 1)
sharp_markov, annealed_markov = BOUNDS["sharp_markov"], BOUNDS["annealed_markov"]
leaf_count_markov, lambert_markov = BOUNDS["leaf_count_markov"], BOUNDS["lambert_markov"]


class FixedTree:
    """Every state has one law, and the child of each rank one state: the tree is not random."""

    def __init__(self, laws: Sequence[Sequence[float]], targets: Sequence[Sequence[int]]) -> None:
        self.laws, self.targets = laws, targets

    @property
    def vocab(self) -> int:
        return max(map(len, self.laws))

    def best(self, start: int, p_max: int) -> list[tuple[float, int]]:
        """(weight, state) of the p_max heaviest nodes, heaviest first."""
        count = itertools.count()
        heap, found = [(-1.0, next(count), start)], []
        while len(found) < p_max:
            minus, _, s = heapq.heappop(heap)
            found.append((-minus, s))
            for p, to in zip(self.laws[s], self.targets[s], strict=True):
                heapq.heappush(heap, (minus * p, next(count), to))
        return found

    def acceptance(self, start: int | None, p_max: int) -> Floats:
        """Exact E[X] for P = 1..p_max."""
        if start is None:
            curves = [self.acceptance(s, p_max) for s in range(len(self.laws))]
            return np.asarray(self.facts().pi @ np.array(curves))
        return np.cumsum([weight for weight, _ in self.best(start, p_max)])

    def facts(self) -> MarkovFacts:
        states = len(self.laws)
        Q, B, s2 = np.zeros((states, states)), np.zeros((states, states)), np.zeros(states)
        for s, (law, targets) in enumerate(zip(self.laws, self.targets, strict=True)):
            for p, to in zip(law, targets, strict=True):
                Q[s, to] += p
                B[s, to] -= p * math.log(p)
                s2[s] += p * math.log(p) ** 2
        steps = [[self._cdf(s, to) for to in range(states)] for s in range(states)]
        return MarkovFacts(Q, B.sum(axis=1), s2, B, steps)

    def _cdf(self, s: int, to: int) -> Callable[[Floats], Floats] | None:
        chosen = [p for p, target in zip(self.laws[s], self.targets[s], strict=True) if target == to]
        if not chosen:
            return None
        p = np.sort(chosen)[::-1]
        steps, reached = -np.log(p), np.append(0.0, np.cumsum(p))
        return lambda y: np.asarray(reached[np.searchsorted(steps, y, side="right")])


TREES = {
    "keeps_by_rank": FixedTree(
        [[0.93, 0.05, 0.02], [0.4, 0.35, 0.25]], [[0, 1, 1], [1, 1, 0]]
    ),
    "certain_state": FixedTree([[1.0], [0.7, 0.2, 0.1]], [[1], [0, 1, 1]]),
    "lattice": FixedTree([[0.5, 0.5], [0.5, 0.25, 0.25]], [[0, 1], [0, 1, 1]]),
    "three": FixedTree(
        [[0.99, 0.01], [0.6, 0.3, 0.1], [0.3, 0.3, 0.2, 0.2]], [[0, 1], [2, 1, 0], [2, 1, 0, 2]]
    ),
    "turning": FixedTree(
        [[0.8, 0.2], [0.5, 0.3, 0.2], [0.9, 0.1]], [[1, 1], [2, 2, 2], [0, 1]]
    ),
    "mixing_two": FixedTree(
        [[0.62, 0.2, 0.13, 0.05], [0.41, 0.33, 0.17, 0.09]], [[0, 1, 1, 1], [1, 0, 0, 1]]
    ),
    "mixing_three": FixedTree(
        [[0.62, 0.2, 0.13, 0.05], [0.41, 0.33, 0.17, 0.09], [0.35, 0.31, 0.19, 0.15]],
        [[0, 1, 2, 1], [2, 0, 0, 1], [1, 2, 0, 0]],
    ),
    "one_state": FixedTree([[0.6, 0.25, 0.1, 0.05]], [[0, 0, 0, 0]]),
}  # fmt: skip


@pytest.fixture(params=[(name, s) for name in TREES for s in (*range(len(TREES[name].laws)), None)], ids=str)
def tree(request: pytest.FixtureRequest) -> tuple[FixedTree, int | None, Floats]:
    name, start = request.param
    return TREES[name], start, TREES[name].acceptance(start, P_MAX)


def test_every_bound_holds_where_the_tree_is_known(tree: tuple[FixedTree, int | None, Floats]) -> None:
    fixed, start, exact = tree
    facts = {"markov": fixed.facts().started(start), "vocab": max(fixed.vocab, 2)}
    for bound in available(facts):
        value = bound(CAPACITIES, **facts)
        if bound.kind == "upper":
            assert np.all(value >= exact * (1 - 1e-9)), bound.name
        elif bound.kind == "lower":
            assert np.all(value <= exact * (1 + 1e-9)), bound.name
    coarse = facts["markov"].span_bound
    mu = facts["markov"].mu
    assert np.all(leaf_count_coarse(CAPACITIES, mu, coarse, facts["vocab"]) >= exact)
    assert np.all(lambert_coarse(CAPACITIES, mu, coarse) <= exact)


def test_annealed_is_exact_where_the_tree_is_known(tree: tuple[FixedTree, int | None, Floats]) -> None:
    fixed, start, exact = tree
    excess = annealed_markov(CAPACITIES, markov=fixed.facts().started(start)) / exact - 1
    assert excess.min() > -1e-9
    assert excess.max() < 2e-3


@pytest.mark.parametrize("n", [4, 16, 128])
def test_a_rough_grid_errs_on_the_safe_side(tree: tuple[FixedTree, int | None, Floats], n: int) -> None:
    fixed, start, exact = tree
    facts = fixed.facts()
    assert facts.steps is not None
    for t_max in (0.1, 0.5, 2.5, 9.0):
        rough = solve_on(facts.Q, facts.steps, t_max, n, evaluations=32 * n)
        curves = np.array([solution.upper(CAPACITIES) for solution in rough])
        value = curves[start] if start is not None else facts.pi @ curves
        assert np.all(value >= exact * (1 - 1e-9))


@pytest.mark.parametrize("name", ["mixing_two", "mixing_three"])
def test_sharp_is_the_limit_with_states_chosen_by_rank(name: str) -> None:
    """Exact trees of 2^17 nodes: the constant, the start and the dependence on rank are all in it."""
    fixed, P = TREES[name], 1 << 17
    facts = fixed.facts()
    for s in range(facts.states):
        exact = fixed.acceptance(s, P)[-1]
        assert sharp_markov(P, markov=facts.started(s)) == pytest.approx(exact, abs=1e-3)
    independent = MarkovFacts(facts.Q, facts.h, facts.s2)  # as if a child's state did not look at its share
    assert abs(sharp_markov(P, markov=independent) - sharp_markov(P, markov=facts)) > 0.03


def test_sharp_is_the_limit_of_a_slow_chain() -> None:
    """The bound of a fixed tree is exact, so that it stands for trees too large to search."""
    facts = TREES["keeps_by_rank"].facts()
    for s in (0, 1):
        started = facts.started(s)
        assert sharp_markov(1e15, markov=started) == pytest.approx(
            annealed_markov(1e15, markov=started), abs=1e-3
        )


def test_the_constant_is_a_sum_of_autocovariances() -> None:
    """For a stationary root: (E[Y^2]/2 + sum over n >= 1 of Cov(Y_0, Y_n))/mu^2, Y the steps of the spine."""
    facts = TREES["three"].facts()
    total, power = facts.mu2 / 2, np.eye(facts.states)
    for _ in range(4000):
        total += facts.pi @ facts.B @ power @ (facts.h - facts.mu)
        power = power @ facts.Q
    P = 1e6
    assert sharp_markov(P, markov=facts) == pytest.approx(
        math.log(facts.mu * P) / facts.mu + total / facts.mu**2
    )


def test_context_breaks_the_independent_bounds() -> None:
    """The example of docs/theory.md#persistence: exact values beyond every bound proved for independent laws."""
    fixed = FixedTree([[0.99, 0.01], [1 / 16] * 16], [[0, 1], [0] * 2 + [1] * 14])
    facts = fixed.facts()
    P = np.array([64, 256, 1024, 16384])
    exact = fixed.acceptance(None, P[-1])[P - 1]
    assert exact == pytest.approx([44.267, 86.315, 94.547, 99.822], abs=5e-4)
    pooled = {"mu": facts.mu, "mu2": facts.mu2, "vocab": 16}
    table = {
        "theorem1": [34.451, 55.208, 76.469, 119.285],
        "renewal": [21.967, 27.735, 33.214, 44.020],
        "leaf_count": [26.700, 32.086, 37.475, 48.253],
    }
    for name, values in table.items():
        assert BOUNDS[name](P, **pooled) == pytest.approx(values, abs=5e-4)
    assert annealed_markov(P, markov=facts) == pytest.approx(exact, rel=1e-6)


def test_leaf_identity_with_states(tree: tuple[FixedTree, int | None, Floats]) -> None:
    """With mu E[X] = E[H] + E[phi(leaf's state)] - phi(start), here without any mean: the law is fixed."""
    fixed, start, _ = tree
    if start is None:
        return
    facts, size = fixed.facts(), 300
    nodes = fixed.best(start, size)
    children = [(w * p, to) for w, s in nodes for p, to in zip(fixed.laws[s], fixed.targets[s], strict=True)]
    # The leaves are the children less the nodes; sums over them are differences of sums.
    entropy = sum(-w * math.log(w) for w, _ in children) - sum(-w * math.log(w) for w, _ in nodes[1:])
    ends = sum(w * facts.phi[s] for w, s in children) - sum(w * facts.phi[s] for w, s in nodes[1:])
    total = sum(w for w, _ in nodes)
    assert facts.mu * total == pytest.approx(entropy + ends - facts.phi[start], rel=1e-9)


def dirichlet_chain(Q: Any, *alphas: float, vocab: int = 20, start: int | None = None) -> MarkovFacts:
    laws = [Dirichlet(vocab=vocab, alpha=alpha) for alpha in alphas]
    moments = [law.mu for law in laws], [law.mu2 for law in laws]
    return MarkovFacts(Q, *moments, steps=[law.step_cdf for law in laws], start=start)


def test_published_figures() -> None:
    P = np.array([1024.0, 4096.0, 16384.0])
    facts = dirichlet_chain([[0.9, 0.1], [0.3, 0.7]], 0.02, 0.4)
    limits = ([10.891, 12.409, 13.927], [6.185, 7.703, 9.222])
    measured = ([10.654, 12.268, 13.844], [6.403, 7.836, 9.304])
    errors = ([0.026, 0.016, 0.010], [0.018, 0.011, 0.007])
    for s in (0, 1):
        given = {"markov": facts.started(s), "vocab": 20}
        assert sharp_markov(P, **given) == pytest.approx(np.array(limits[s]), abs=6e-4)
        low, high = np.array(measured[s]) + np.outer([-4, 4], errors[s])
        assert np.all(annealed_markov(P, **given) >= low)
        assert np.all(annealed_markov(P, **given) <= high)  # the tree hardly fluctuates, so it is close too
        assert np.all(leaf_count_markov(P, **given) >= low)
        assert np.all(lambert_markov(P, **given) <= high)
    assert BOUNDS["sharp"](P[-1], mu=facts.mu, mu2=facts.mu2) == pytest.approx(11.75, abs=5e-3)
    assert sharp_markov(P[-1], markov=facts) > 12.7


def test_sharp_is_the_limit_of_annealed_geometrically() -> None:
    facts = dirichlet_chain([[0.9, 0.1], [0.3, 0.7]], 0.02, 0.4, start=0)
    P = np.geomspace(1e2, 1e10, 5)
    gap = sharp_markov(P, markov=facts) - annealed_markov(P, markov=facts)
    ratio = gap[1:4] / gap[:3]
    assert np.all((ratio > 0.02) & (ratio < 0.2))
    assert np.abs(gap[-1]) < 2e-3


@pytest.mark.parametrize("start", [None, 0])
def test_one_state_is_the_independent_case(start: int | None) -> None:
    law = Dirichlet(vocab=20, alpha=0.2)
    facts = dirichlet_chain([[1.0]], 0.2, start=start)
    P = np.geomspace(1, 1e6, 40)
    for name in ("sharp", "leaf_count", "lambert"):
        assert BOUNDS[f"{name}_markov"](P, markov=facts, vocab=20) == pytest.approx(
            BOUNDS[name](P, mu=law.mu, mu2=law.mu2, vocab=20)
        )
    assert annealed_markov(P, markov=facts) == pytest.approx(BOUNDS["annealed"](P, **law.facts()), rel=1e-4)
    assert facts.span == facts.span_bound == facts.dobrushin == 0.0


@pytest.mark.parametrize("start", [None, 0, 2])
def test_equal_laws_are_the_independent_case(start: int | None) -> None:
    law = Dirichlet(vocab=20, alpha=0.2)
    Q = [[0.8, 0.2, 0.0], [0.1, 0.2, 0.7], [0.5, 0.0, 0.5]]
    facts = dirichlet_chain(Q, 0.2, 0.2, 0.2, start=start)
    P = np.geomspace(1, 1e6, 40)
    for name in ("sharp", "leaf_count", "lambert"):
        assert BOUNDS[f"{name}_markov"](P, markov=facts, vocab=20) == pytest.approx(
            BOUNDS[name](P, mu=law.mu, mu2=law.mu2, vocab=20)
        )
    assert annealed_markov(P, markov=facts) == pytest.approx(BOUNDS["annealed"](P, **law.facts()), rel=1e-3)


def test_equal_rows_are_the_mixture_below_the_root() -> None:
    """The states below the root are drawn independently; a stationary root makes it the mixture."""
    weights = np.array([0.6, 0.4])
    facts = dirichlet_chain([weights, weights], 0.02, 0.4)
    laws = [Dirichlet(vocab=20, alpha=alpha) for alpha in (0.02, 0.4)]
    mixture = {
        "mu": facts.mu,
        "mu2": facts.mu2,
        "step_cdf": lambda y: 0.6 * laws[0].step_cdf(y) + 0.4 * laws[1].step_cdf(y),
    }
    assert facts.mu == pytest.approx(0.6 * laws[0].mu + 0.4 * laws[1].mu)
    P = np.geomspace(1, 1e5, 30)
    # pi B phi is not 0: a step and the state it leads to are independent, so pi B phi = mu pi.phi = 0.
    assert sharp_markov(P, markov=facts) == pytest.approx(BOUNDS["sharp"](P, **mixture))
    value = annealed_markov(P, markov=facts)
    # With the root's state known, t may be chosen for it: at most the bound of the mixture.
    assert np.all(value <= BOUNDS["annealed"](P, **mixture) * (1 + 1e-4))
    assert value[-1] == pytest.approx(BOUNDS["annealed"](P, **mixture)[-1], rel=1e-3)


@given(st.integers(2, 6), st.integers(0, 10**6), st.floats(-12, 0))
@settings(max_examples=60, deadline=None)
def test_chain_quantities(states: int, seed: int, exponent: float) -> None:
    rng = np.random.default_rng(seed)
    slow = 10.0**exponent
    Q = (1 - slow) * np.eye(states) + slow * rng.dirichlet(np.ones(states), states)
    h = rng.exponential(size=states)
    facts = MarkovFacts(Q, h, 2 * h**2)
    assert facts.pi == pytest.approx(facts.pi @ facts.Q, rel=1e-9)
    residual = facts.phi - facts.Q @ facts.phi - (facts.h - facts.mu)
    assert np.abs(residual).max() <= 1e-12 * max(facts.span, 1.0)
    assert facts.pi @ facts.phi == pytest.approx(0, abs=1e-12 * max(facts.span, 1.0))
    assert facts.deviation @ facts.h == pytest.approx(facts.phi, rel=1e-3, abs=1e-3 * facts.span)
    assert facts.span <= facts.span_bound * (1 + 1e-3)
    if slow > 1e-6:
        assert mixing_sum(facts.Q) <= 1 / (1 - dobrushin(facts.Q)) * (1 + 1e-6)


def test_mixing_sum_against_the_series() -> None:
    Q = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]])
    series, power = 0.0, np.eye(3)
    for _ in range(400):
        series += dobrushin(power)
        power = power @ Q
    assert dobrushin(Q) == 1.0
    assert series <= mixing_sum(Q) <= 1.5 * series
    assert stationary(Q) == pytest.approx([0.2, 0.4, 0.4])


def test_matrix_power_series_inverse_is_above_the_recursion() -> None:
    rng = np.random.default_rng(5)
    states, n = 3, 128
    laws = rng.random((states, states, n)) ** 8
    laws /= laws.sum(axis=(1, 2))[:, None, None]
    exact = np.zeros((states, n))
    start = np.linalg.inv(np.eye(states) - laws[:, :, 0])
    for k in range(n):
        past = sum((laws[:, :, j] @ exact[:, k - j] for j in range(1, k + 1)), np.zeros(states))
        exact[:, k] = start @ ((k == 0) + past)
    u = renewal_masses(laws)
    assert u is not None
    assert np.all(u >= exact)
    assert u == pytest.approx(exact, rel=1e-6)
    laws[:] = 0.0
    laws[:, :, 0] = 1 / states
    assert renewal_masses(laws) is None


def test_context_makes_the_independent_formulas_formulas_only() -> None:
    facts = {"mu": 1.0, "mu2": 2.0, "vocab": 50, "markov": dirichlet_chain([[1.0]], 0.2)}
    independent = available({**facts, "iid": True})
    assert {bound.kind for bound in independent} == {"upper", "lower", "estimate"}
    found = {bound.name: bound for bound in available({**facts, "iid": False})}
    assert list(found) == [bound.name for bound in independent]
    for bound in independent:
        relabelled = found[bound.name]
        if bound.name.endswith("_markov"):
            assert relabelled == bound
        else:
            assert (relabelled.kind, relabelled.rigorous) == (f"iid-{bound.kind}", False)
            assert relabelled(64, **facts, iid=False) == bound(64, **facts)


def test_unknown_step_laws() -> None:
    names = [bound.name for bound in available({"markov": MarkovFacts([[1.0]], [1.0], [2.0])})]
    assert names == ["lambert_markov", "sharp_markov"]
    unknown = MarkovFacts([[1.0]], [1.0], [2.0], steps=[lambda y: None])
    assert unknown.steps is None
    with pytest.raises(InvalidInput, match="must be a MarkovFacts"):
        available({"markov": 3})
    with pytest.raises(InvalidInput, match="needs the step laws"):
        annealed_markov(64, markov=unknown)
    many = MarkovFacts(np.full((33, 33), 1 / 33), np.ones(33), 2 * np.ones(33), steps=[np.zeros_like] * 33)
    assert [bound.name for bound in available({"markov": many})] == ["lambert_markov", "sharp_markov"]
    with pytest.raises(InvalidInput, match="at most 32 states, and the chain has 33"):
        solve(many, 64)


GOOD: dict[str, Any] = {"Q": [[0.9, 0.1], [0.3, 0.7]], "h": [0.5, 1.5], "s2": [1.0, 4.0]}
CYCLE = np.roll(np.eye(4), 1, axis=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Q": [[0.9, 0.2], [0.3, 0.7]]}, "the transitions from state 0 sum to 1.1, not to 1"),
        ({"Q": [[1.1, -0.1], [0.3, 0.7]]}, "from state 0 to state 0 is 1.1, not a probability"),
        ({"Q": [[math.nan, 1], [0.3, 0.7]]}, "from state 0 to state 0 is nan"),
        ({"Q": [[1.0, 0.0]]}, "must be square"),
        ({"Q": [["a"]]}, "square table of numbers"),
        ({"Q": np.eye(2)}, "reducible: it has 2 closed classes, never left: state 0; state 1"),
        (
            {"Q": [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]]},
            "reducible: state 0 cannot be reached from states 1 and 2, which the chain ends in",
        ),
        ({"Q": CYCLE}, r"periodic: it moves in turn through state 0; state 1; state 2; state 3 \(period 4\)"),
        (
            {"Q": [[0, 0, 0.5, 0.5], [0, 0, 0.1, 0.9], [0.4, 0.6, 0, 0], [1, 0, 0, 0]]},
            r"in turn through states 0 and 1; states 2 and 3 \(period 2\)",
        ),
        ({"h": [0.5]}, r"h must have shape \(2,\)"),
        ({"h": [0.5, -1]}, r"h\[1\] must be finite and not negative"),
        ({"h": [0, 0]}, "every state has entropy 0"),
        ({"s2": [1.0, 1.0]}, r"s2\[1\] = 1 is below h\[1\]\^2 = 2.25"),
        ({"B": [[0.5, 0.1], [0.5, 1.0]]}, "row 0 of B sums to 0.6, not to"),
        ({"start": 2}, r"start must be one of the states 0..1, got 2"),
        ({"start": "x"}, "start must be one of the states"),
        ({"steps": [np.zeros_like]}, "one entry per state: got 1 for 2 states"),
        ({"steps": [np.zeros_like, [np.zeros_like]]}, r"steps\[1\] must be a function or one function"),
        ({"steps": [np.zeros_like, [np.ones_like] * 2]}, r"steps\[1\] exceeds 0.3"),
        ({"B": [[0.5, 0], [0.5, 1]], "steps": [np.zeros_like] * 2}, "depends on its share"),
        (
            {"Q": [[0.5, 0.5], [1, 0]], "B": [[0.3, 0.2], [1, 0.5]]},
            r"B\[1, 1\] is positive, but Q\[1, 1\] is 0",
        ),
    ],
)
def test_bad_chains_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        MarkovFacts(**{**GOOD, **change})
    assert not str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_entropy_above_the_vocabulary() -> None:
    with pytest.raises(InvalidInput, match=r"exceeds ln\(vocab\)"):
        leaf_count_markov(64, markov=MarkovFacts(**GOOD), vocab=3)
