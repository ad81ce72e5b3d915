"""Processes with context: the naive twin node by node, the laws of theory within error, messages."""

from __future__ import annotations

import dataclasses
import math

import naive
import numpy as np
import pytest
from click.testing import CliRunner

import brwsim
from brwsim.cli.main import main
from brwsim.errors import InvalidInput
from brwsim.kernels import cpu
from brwsim.kernels.tables import pack
from brwsim.parse import parse_dist
from brwsim.process import process_from_spec
from brwsim.process.base import Gaussian, Layout, Moves
from brwsim.process.markov import Markov

SMALL = ["dirichlet:vocab=20,alpha=0.02", "dirichlet:vocab=20,alpha=0.4"]
BY_RANK = [[[0.95, 0.05], [0.3, 0.7]], [[0.5, 0.5], [0.1, 0.9]], [[0.2, 0.8], [0.6, 0.4]]]
PROCESSES = {
    "markov": {"name": "markov", "laws": SMALL, "transition": [[0.9, 0.1], [0.3, 0.7]]},
    "markov by rank": {"name": "markov", "laws": SMALL, "transition": BY_RANK},
    "markov of tables": {
        "name": "markov",
        "laws": ["table:p=[0.6,0.3,0.1]", 'mixture:laws=["uniform:vocab=3","table:p=[0.7,0.2,0.1]"]'],
        "transition": BY_RANK,
    },
    "markov started": {"name": "markov", "laws": SMALL, "transition": [[0.9, 0.1], [0.3, 0.7]], "start": 1},
    "regimes": {"name": "regimes", "laws": SMALL, "tail": 1.2, "longest": 6},
    "ar1": {"name": "ar1", "rho": 0.8, "low": 0.3, "high": 1.5, "levels": 5, "vocab": 20},
    "ar1 falling": {"name": "ar1", "rho": -0.6, "laws": SMALL, "weights": [0.3, 0.7], "start": 0.5},
    "rotation": {"name": "rotation", "low": 0.3, "high": 1.5, "levels": 5, "vocab": 20},
    "rotation started": {"name": "rotation", "laws": SMALL, "move": 0.25, "start": 0.9},
}


def process_named(name: str):
    return process_from_spec(PROCESSES[name])


def from_text(text: str):
    return process_from_spec(parse_dist(text))


# ---------------------------------------------------------------- the twin


@pytest.mark.parametrize("name", PROCESSES)
def test_trees_match_the_naive_twin_node_by_node(name):
    layout = process_named(name).layout()
    tables = pack(layout)
    limit = 150
    for seed, tree in ((0, 3), (2**62 + 99, 1)):
        twin = np.cumsum(naive.best_nodes(layout, seed, tree, limit))
        sums, _, _ = cpu.grow_trees(tables, seed, tree, 1, np.arange(1, limit + 1), 0.3 / limit)
        np.testing.assert_allclose(sums[0], twin, rtol=1e-13)


@pytest.mark.parametrize("name", PROCESSES)
def test_frontier_equals_the_heap(name):
    tables = pack(process_named(name).layout())
    grid = np.array([1, 3, 30, 300])
    sums, _, _ = cpu.grow_trees(tables, 1, 0, 4, grid, 1e-3)
    reference, _, _ = cpu.grow_trees_best_first(tables, 1, 0, 4, grid, 1e-4)
    np.testing.assert_array_equal(sums, reference)


# ---------------------------------------------------------------- the control variate


def with_phi(layout: Layout, phi) -> Layout:
    states = [
        dataclasses.replace(state, phi=float(value)) for state, value in zip(layout.states, phi, strict=True)
    ]
    return Layout(states, layout.memory)


def with_polynomial(layout: Layout) -> Layout:
    """Let phi be 2 He_1 - 0.7 He_2, whatever the laws: a step ahead, He_k has the mean rho^k He_k."""
    memory = layout.memory
    assert isinstance(memory, Gaussian)
    phi = np.zeros(9)
    phi[-3:] = [-0.7, 2.0, 0.7]
    expected = np.zeros(9)
    expected[-3:] = [-0.7 * memory.rho**2, 2.0 * memory.rho, 0.7 * memory.rho**2]
    return Layout(layout.states, dataclasses.replace(memory, phi=phi, expected_phi=expected))


def layouts():
    for name in PROCESSES:
        layout = process_named(name).layout()
        yield pytest.param(layout, id=name)
        if isinstance(layout.memory, Moves):
            wrong = np.cos(3.0 * np.arange(len(layout.states)))
            yield pytest.param(with_phi(layout, wrong), id=f"{name}, any phi")
        if isinstance(layout.memory, Gaussian):
            yield pytest.param(with_polynomial(layout), id=f"{name}, any polynomial")


@pytest.mark.parametrize("layout", list(layouts()))
def test_control_variate_has_mean_0_for_any_phi(layout):
    """The control estimate less the crude one is a multiple of its mean: within 4 standard errors of 0."""
    trees = 6000
    _, terms, _ = cpu.grow_trees(pack(layout), 5, 0, trees, np.array([1, 3, 16]), 0.02)
    errors = terms.std(axis=0, ddof=1) / math.sqrt(trees)
    assert np.all(np.abs(terms.mean(axis=0)) <= 4.0 * errors)


@pytest.mark.parametrize(("name", "ratio"), [("markov", 60.0), ("markov by rank", 4.0), ("ar1", 15.0)])
def test_poissons_equation_pays(name, ratio):
    """Variance ratios at P = 1024, far above those of entropy alone where context persists."""
    result = brwsim.sweep(PROCESSES[name], 1024, trees=150, seed=2)
    assert result.variance_ratio[0] > ratio


# ---------------------------------------------------------------- laws of theory


@pytest.mark.parametrize(
    "name", [name for name in PROCESSES if "started" not in name and "falling" not in name]
)
def test_entropy_rate_of_simulated_spines(name):
    """Walk down the target's path in the naive twin; the mean entropy is mu within 4 standard errors."""
    process = process_named(name)
    layout = process.layout()
    rng = np.random.default_rng(11)
    means = []
    for tree in range(250):
        key, code, entropies = naive.ROOT_KEY, None, []
        for _ in range(6):
            value, state = naive.enter(layout.memory, 4, tree, key, code)
            row = naive.choose_row(layout.states[state], 4, tree, key)
            p = np.array(naive.shares(row, 4, tree, key))
            p = p[p > 0.0] / p.sum()
            entropies.append(float(-p @ np.log(p)))
            rank = 1 + int(rng.choice(p.size, p=p))
            key, code = naive.child_key(key, rank), (value, rank)
        means.append(np.mean(entropies))
    error = np.std(means, ddof=1) / math.sqrt(len(means))
    assert abs(np.mean(means) - process.mu) < 4.0 * error + 2e-3  # the twin's negligible rest


FIGURES = {  # E[X] and its error in the last digits at P = 1024, 4096, 16384, by start
    0: [(10.654, 0.026), (12.268, 0.016), (13.844, 0.010)],
    1: [(6.403, 0.018), (7.836, 0.011), (9.304, 0.007)],
}


@pytest.mark.parametrize("start", FIGURES)
def test_markov_figures(start):
    result = brwsim.sweep({**PROCESSES["markov"], "start": start}, "1024,4096,16384", trees=64, seed=1)
    for mean, stderr, (known, error) in zip(result.mean, result.stderr, FIGURES[start], strict=True):
        assert abs(mean - known) < 4.0 * math.hypot(stderr, error)
    bounds = result.bounds
    assert np.all(result.mean < bounds["annealed_markov"] + 4.0 * result.stderr)
    gaps = np.abs(result.mean - bounds["sharp_markov"])
    assert np.all(np.diff(gaps) < 0.0)


BOUNDED = [
    *(
        PROCESSES[name]
        for name in ("markov", "markov by rank", "markov of tables", "markov started", "regimes")
    ),
    parse_dist("markov:low=0.1,high=1.2,persistence=0.97"),
    parse_dist("markov:low=0.3,high=1.0,persistence=0.2,share=0.2,start=0"),
]


@pytest.mark.parametrize("spec", BOUNDED, ids=str)
def test_proved_bounds_are_never_violated(spec):
    result = brwsim.sweep(spec, "1,2,4,16,64,256", trees=250, seed=8)
    for bound in result.bound_objects:
        room = 4.0 * result.stderr + 1e-9 * result.mean
        if bound.kind == "upper":
            assert np.all(result.mean <= result.bounds[bound.name] + room), bound.name
        elif bound.kind == "lower":
            assert np.all(result.mean >= result.bounds[bound.name] - room), bound.name
    assert "lambert_markov" in result.bounds


@pytest.mark.parametrize(
    "dist",
    [
        "markov:persistence=0",
        "markov:low=0.7,high=0.7,persistence=0.9",
        "markov:persistence=0,share=0.2,vocab=50",
        "ar1:rho=0,levels=4",
        "ar1:rho=0.9,low=0.7,high=0.7,levels=2",
        "regimes:low=0.7,high=0.7",
        "rotation:low=0.7,high=0.7,levels=2",
    ],
)
def test_without_memory_or_contrast_a_process_is_its_surrogate(dist):
    process = from_text(dist)
    own = brwsim.sweep(process, "4,32,256", trees=400, seed=3)
    other = brwsim.sweep(process.surrogate(), "4,32,256", trees=400, seed=4)
    assert np.all(np.abs(own.mean - other.mean) < 4.0 * np.hypot(own.stderr, other.stderr))


def test_surrogate_keeps_the_marginals():
    for spec in PROCESSES.values():
        process = process_from_spec(spec)
        assert process.surrogate().mu == pytest.approx(process.mu, rel=1e-12)
        assert process.surrogate().mu2 == pytest.approx(process.mu2, rel=1e-12)


def test_memory_moves_the_mean_the_way_of_its_sign():
    """At equal marginals: positive correlation raises E[X], negative lowers it, persistence orders it."""
    means = {
        rho: brwsim.sweep(f"ar1:rho={rho},low=0.2,high=1.2,levels=6", 128, trees=400, seed=6)
        for rho in (-0.8, 0.0, 0.8)
    }
    for less, more in ((-0.8, 0.0), (0.0, 0.8)):
        gap = means[more].mean[0] - means[less].mean[0]
        assert gap > 4.0 * math.hypot(means[more].stderr[0], means[less].stderr[0])


def test_rotation_has_one_slope_and_a_spread_over_its_starts():
    process = from_text("rotation:low=0.2,high=1.166")
    width = math.log(16.0)
    ends = []
    for start in process.starts().values():
        result = brwsim.sweep(start, "128,2048", trees=64, seed=5)
        slope = (result.mean[1] - result.mean[0]) / width
        error = math.hypot(*result.stderr) / width
        assert abs(slope * process.mu - 1.0) < 0.03 + 4.0 * error * process.mu
        ends.append(result.mean[1])
    assert np.ptp(ends) == pytest.approx(1.52, abs=0.1)


def test_starts_average_to_the_stationary_process():
    process = process_named("markov by rank")
    stationary = brwsim.sweep(process, 64, trees=3000, seed=1)
    starts = [
        brwsim.sweep(start, 64, trees=800, seed=7 + i) for i, start in enumerate(process.starts().values())
    ]
    mean = sum(p * found.mean[0] for p, found in zip(process.chain.pi, starts, strict=True))
    error = math.hypot(stationary.stderr[0], *(found.stderr[0] for found in starts))
    assert abs(mean - stationary.mean[0]) < 4.0 * error


# ---------------------------------------------------------------- what users write


@pytest.mark.parametrize(
    ("dist", "message"),
    [
        (
            "markov:laws=[zipf,zipf],transition=[[0.9,0.2],[0.5,0.5]]",
            "transitions from state 0 sum to 1.1, not to 1",
        ),
        (
            "markov:laws=[zipf,zipf],transition=[[1.5,-0.5],[0,1]]",
            "from state 0 to state 0 is 1.5, not a probability",
        ),
        (
            "markov:laws=[zipf,zipf],transition=[[1,0],[0,1]]",
            "reducible: it has 2 closed classes.*state 0; state 1",
        ),
        (
            "markov:laws=[zipf,zipf],transition=[[1,0],[0.5,0.5]]",
            "reducible: state 1 cannot be reached from state 0",
        ),
        ("markov:laws=[zipf,zipf],transition=[[0,1],[1,0]]", r"periodic.*state 0; state 1 \(period 2\)"),
        ("markov:laws=[zipf,zipf],transition=[[1,0]]", "transition must be a 2 x 2 matrix"),
        ("markov:laws=[zipf,zipf]", "transition is missing"),
        ("markov:transition=[[1]]", "laws is missing"),
        ("markov:laws=[zipf],transition=[[1]],low=0.3", "not both forms"),
        ("markov:persistence=1", "persistence must be at least 0 and below 1"),
        ("markov:share=0", "share must lie strictly between 0 and 1"),
        ("markov:low=1,high=0.5", "low must be above 0 and at most high"),
        ("markov:start=2", "start must be a state from 0 to 1, not 2"),
        ("markov:persistance=0.5", r"no key 'persistance' \(did you mean persistence\?\)"),
        ("ar1:rho=1", "rho must lie strictly between -1 and 1, not 1"),
        ("ar1:rho=-1.5", "rho must lie strictly between -1 and 1, not -1.5"),
        ('ar1:laws=["zipf"],low=0.3', "not both forms"),
        ("rotation:move=0", "move must lie strictly between 0 and 1, not 0"),
        ("rotation:start=1", "start must be at least 0 and below 1"),
        ("regimes:tail=0", "tail must be above 0"),
        ('regimes:laws=["zipf"]', "at least two laws"),
        ('regimes:laws=["zipf","zipf"],high=1', "not both forms"),
    ],
)
def test_bad_input_is_one_sentence(dist, message):
    spec = parse_dist(dist.replace("[zipf,zipf]", '["zipf","zipf"]').replace("[zipf]", '["zipf"]'))
    with pytest.raises(InvalidInput, match=message) as caught:
        process_from_spec(spec)
    assert "\n" not in str(caught.value)


def test_toml_with_unknown_keys_exits_with_2(tmp_path):
    file = tmp_path / "process.toml"
    file.write_text(
        'name = "markov"\nlaws = ["zipf", "zipf"]\ntransition = [[0.9, 0.1], [0.3, 0.7]]\nsped = 1\n'
    )
    found = CliRunner().invoke(main, ["sweep", "--spec", str(file), "--P", "4", "--trees", "2"])
    assert found.exit_code == 2
    assert "no key 'sped'" in found.output


def test_a_process_reads_back_from_its_own_spec():
    for spec in PROCESSES.values():
        process = process_from_spec(spec)
        assert process_from_spec(process.to_spec()).to_spec() == process.to_spec()
    started = Markov(persistence=0.5).starts()["state 1"]
    assert process_from_spec(started.to_spec()) == started
