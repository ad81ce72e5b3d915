"""The kernels: known answers, the naive twin node by node, both traversals, and the samplers' laws."""

from __future__ import annotations

import math

import naive
import numpy as np
import pytest
from scipy import special

from brwsim.kernels import cpu
from brwsim.kernels.device import draws, order
from brwsim.kernels.device.elementary import exp_of, log_of, sin_cos_of_turn
from brwsim.kernels.device.philox import child_key, philox, two_uniforms
from brwsim.kernels.tables import alias_table, pack
from brwsim.parse import parse_dist
from brwsim.process import process_from_spec
from brwsim.process.base import Alone, Layout, Row, State

LAWS = [
    "dirichlet:vocab=50,alpha=0.02",
    "dirichlet:vocab=20,alpha=0.4",
    "dirichlet:vocab=30,alpha=1.5",  # Cheng BB
    "dirichlet:vocab=4,alpha=3.0",
    "poisson-dirichlet:theta=0.8",
    "poisson-dirichlet:theta=0.1,discount=0.3",  # Johnk
    "poisson-dirichlet:theta=1.5,discount=0.2",  # Cheng BC
    "softmax-normal:vocab=31,sigma=3.0",
    "table:p=[0.6,0.25,0.1,0.05]",
    "uniform:vocab=3",
]


def tables_of(dist: str):
    law = process_from_spec(parse_dist(dist))
    return law, pack(law.layout())


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [  # the known answers published with Random123
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_known_answers(counter, key, words):
    got = philox(*(np.uint32(c) for c in counter), *(np.uint32(k) for k in key))
    assert tuple(int(word) for word in got) == words
    assert naive.philox(counter, key) == words


def test_child_keys_match_the_twin():
    for rank in (1, 2, 77, 262144):
        assert int(child_key(np.uint64(naive.ROOT_KEY), rank)) == naive.child_key(naive.ROOT_KEY, rank)


@pytest.mark.parametrize("dist", LAWS)
def test_trees_match_the_naive_twin_node_by_node(dist):
    law, tables = tables_of(dist)
    limit = 200
    grid = np.arange(1, limit + 1)
    for seed, tree in ((0, 7), (2**63 + 12345, 0)):
        twin = np.cumsum(naive.best_weights(law.rows(), seed, tree, limit))
        sums, _, _ = cpu.grow_trees(tables, seed, tree, 1, grid, 0.3 / limit)
        np.testing.assert_allclose(sums[0], twin, rtol=1e-13)  # the last bits of exp and log


def test_pool_of_rows_matches_the_naive_twin():
    rng = np.random.default_rng(5)
    rows = [(1 / 8, Row(-np.sort(-rng.dirichlet(np.full(6, 0.3))))) for _ in range(8)]
    tables = pack(Layout([State(rows, 1.0)], Alone()))
    twin = np.cumsum(naive.best_weights(rows, 3, 11, 200))
    sums, _, _ = cpu.grow_trees(tables, 3, 11, 1, np.arange(1, 201), 1e-3)
    np.testing.assert_allclose(sums[0], twin, rtol=1e-13)  # the last bits of exp and log


@pytest.mark.parametrize("dist", LAWS)
@pytest.mark.parametrize("theta", [0.5, 1e-3, 1e-6])
def test_frontier_equals_the_heap_whatever_the_threshold(dist, theta):
    """Too high a threshold is lowered, too low a one tightened: the same nodes, to the last bit."""
    _, tables = tables_of(dist)
    grid = np.array([1, 2, 3, 10, 100, 500])
    sums, _, _ = cpu.grow_trees(tables, 1, 0, 5, grid, theta)
    heap_sums, _, _ = cpu.grow_trees_best_first(tables, 1, 0, 5, grid, 1e-4)
    np.testing.assert_array_equal(sums, heap_sums)


@pytest.mark.parametrize("dist", LAWS)
def test_entropy_terms_equal_the_heaps_at_the_same_threshold(dist):
    """How far sticks are drawn depends on the threshold alone, where none is raised or lowered on the way."""
    _, tables = tables_of(dist)
    grid = np.array([1, 2, 3, 10, 50])
    _, terms, _ = cpu.grow_trees(tables, 1, 0, 20, grid, 4e-3)
    _, heap_terms, _ = cpu.grow_trees_best_first(tables, 1, 0, 20, grid, 4e-3)
    np.testing.assert_allclose(terms, heap_terms, atol=1e-12)


@pytest.mark.parametrize(
    "dist", ["uniform:vocab=262144", "uniform:vocab=2", "table:p=[0.5,0.25,0.125,0.125]"]
)
def test_ties_by_the_thousand(dist):
    """Lattice laws pile weights up on few values, far beyond what the arrays hold."""
    law, tables = tables_of(dist)
    limit = 5000
    sums, terms, _ = cpu.grow_trees(tables, 0, 0, 1, np.arange(1, limit + 1), 1e-7)
    probs = law.rows()[0][1]
    first = probs.probs[0] if probs.probs.size else probs.tail_prob
    assert sums[0, 1] == pytest.approx(1 + first)
    assert np.all(np.diff(sums[0]) <= np.r_[1.0, np.diff(sums[0])[:-1]] * (1 + 1e-9))
    np.testing.assert_allclose(terms, 0.0, atol=1e-9)


@pytest.mark.parametrize(
    ("sampler", "a", "b"),
    [
        (draws.beta_near_one, 1.0, 0.95),
        (draws.beta_near_one, 1.02, 0.3),
        (draws.beta_near_one, 1.02, 5.0),
        (draws.beta_near_one, 1.5, 2.0),
        (draws.beta_near_one, 3.0, 0.7),
        (draws.beta_small, 0.7, 0.4),
        (draws.beta_small, 0.05, 0.9),
        (draws.beta_cheng, 2.5, 40.0),
        (draws.beta_cheng, 40.0, 2.5),
        (draws.beta_cheng, 0.6, 4.3),
        (draws.beta_cheng, 0.6, 400.0),
        (draws.beta_cheng, 0.02, 1.5),
    ],
)
def test_samplers_follow_the_beta_law(sampler, a, b):
    """Mean, and the distribution function at its deciles, within 4.5 standard errors of 40 000 draws."""
    attempts = [sampler(u, v, a, b) for u, v in np.random.default_rng(8).random((300_000, 2))]
    x = np.array([x for accepted, x, _, _ in attempts if accepted])[:40_000]
    n = x.size
    assert n == 40_000
    sd = math.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
    assert abs(x.mean() - a / (a + b)) < 4.5 * sd / math.sqrt(n)
    for q in np.arange(0.1, 1.0, 0.1):
        assert abs(np.mean(x <= special.betaincinv(a, b, q)) - q) < 4.5 * math.sqrt(q * (1 - q) / n)
    assert all(abs(x + rest - 1.0) < 1e-15 and x >= 0.0 and rest >= 0.0 for _, x, rest, _ in attempts)
    assert all(abs(math.exp(log_rest) - rest) <= 1e-12 * rest for _, _, rest, log_rest in attempts)


def test_uniforms_are_uniform_and_independent():
    """Both uniforms of a block, over nodes, trees and draws: mean, variance, correlation in standard errors."""
    n = 60_000
    u = np.array(
        [two_uniforms(np.uint64(3), np.uint64(i), np.uint64(i * i), np.uint32(1), i % 7) for i in range(n)]
    )
    assert np.all((u > 0.0) & (u < 1.0))
    assert np.all(np.abs(u.mean(axis=0) - 0.5) < 4.5 / math.sqrt(12 * n))
    assert np.all(np.abs(u.var(axis=0) - 1 / 12) < 4.5 / math.sqrt(180 * n))
    assert abs(np.corrcoef(u.T)[0, 1]) < 4.5 / math.sqrt(n)
    assert abs(np.corrcoef(u[1:, 0], u[:-1, 0])[0, 1]) < 4.5 / math.sqrt(n)


def test_digamma():
    x = np.r_[np.geomspace(1e-6, 1e6, 200)]
    got = np.array([draws.digamma(value) for value in x])
    np.testing.assert_allclose(got, special.digamma(x), rtol=2e-14, atol=2e-15)


def test_alias_table_restores_the_weights():
    weights = np.array([0.5, 0.2, 0.2, 0.05, 0.05])
    prob, alias = alias_table(weights)
    restored = prob / 5
    np.add.at(restored, alias, (1 - prob) / 5)
    np.testing.assert_allclose(restored, weights, atol=1e-15)


@pytest.mark.parametrize("size", [1, 2, 31, 33, 1000])
@pytest.mark.parametrize("levels", [1, 3, 10**9])
def test_sort_is_descending_and_stable(size, levels):
    rng = np.random.default_rng(size)
    weights = (1.0 + rng.integers(0, levels, size)) / levels
    expected = np.argsort(-weights, kind="stable")
    found, carried = np.empty(size), np.empty(size)
    order.sort_descending(
        weights.copy(), np.arange(size) + 0.0, size, found, carried, np.empty(size, np.int32)
    )
    np.testing.assert_array_equal(found, weights[expected])
    np.testing.assert_array_equal(carried, expected)


def test_logarithm_and_exponential():
    x = np.concatenate([np.geomspace(1e-300, 1e300, 2001), np.linspace(0.5, 2.0, 2001)])
    assert all(abs(log_of(value) - math.log(value)) <= 4.5e-16 * abs(math.log(value)) for value in x)
    y = np.concatenate([np.linspace(-707.0, 700.0, 2001), np.linspace(-1.0, 1.0, 2001)])
    assert all(abs(exp_of(value) / math.exp(value) - 1.0) <= 4.5e-16 for value in y)
    assert exp_of(-1e9) < 1e-307


def test_sine_and_cosine():
    for turn in np.concatenate([np.linspace(1e-16, 1.0 - 1e-16, 4001), np.arange(1, 8) / 8]):
        sine, cosine = sin_cos_of_turn(turn)
        assert abs(sine - math.sin(2 * math.pi * turn)) < 1.2e-15
        assert abs(cosine - math.cos(2 * math.pi * turn)) < 1.2e-15


@pytest.mark.parametrize("levels", [1, 4, 10**9])
def test_kth_largest(levels):
    rng = np.random.default_rng(levels)
    values = rng.integers(0, levels, 257) / levels
    for k in (1, 2, 100, 256, 257):
        assert order.kth_largest(values.copy(), values.size, k) == np.sort(values)[::-1][k - 1]
