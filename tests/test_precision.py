"""Precision on request: intervals cover as they claim, the control variate earns what it promises."""

from __future__ import annotations

import numpy as np
import pytest

import brwsim

SMALL = "dirichlet:vocab=50,alpha=0.02"


@pytest.fixture(scope="module")
def truth():
    """E[X] at P = 8 and 64, far better known than from any single run below."""
    return brwsim.sweep(SMALL, "8,64", rel_err=1e-4, seed=10**6)


@pytest.mark.parametrize(("estimator", "rel_err"), [("control", 0.006), ("crude", 0.02)])
def test_intervals_of_a_sequential_run_cover_95_percent(estimator, rel_err, truth):
    """1000 runs that stop by themselves; 2 % is 2.9 standard errors of a coverage of 95 %."""
    runs = [
        brwsim.sweep(SMALL, "8,64", rel_err=rel_err, seed=seed, threads=1, estimator=estimator)
        for seed in range(1000)
    ]
    z = np.array([(run.mean - truth.mean) / run.stderr for run in runs])
    coverage = np.mean(np.abs(z) < 1.96, axis=0)
    assert np.all((coverage > 0.93) & (coverage < 0.97)), coverage
    share_of_truth = truth.stderr / np.mean([run.stderr for run in runs], axis=0)
    assert np.all(np.abs(z.mean(axis=0)) < 4.0 * np.hypot(1000**-0.5, share_of_truth))
    if estimator == "control":
        assert len({run.trees for run in runs}) > 1  # the rule did decide


@pytest.mark.parametrize(
    ("dist", "ratios"),
    [
        (SMALL, {16: 15, 64: 70, 256: 250, 1024: 500}),
        ("dirichlet:vocab=50,alpha=0.005", {64: 20, 256: 100, 1024: 450}),
    ],
)
def test_variance_ratios(dist, ratios):
    """About P: 20, 92, 325 and 1354 were found for the first law, 36, 152 and 645 for the second."""
    result = brwsim.sweep(dist, list(ratios), trees=1000, seed=1)
    assert np.all(result.variance_ratio > np.array(list(ratios.values())))


@pytest.mark.parametrize(
    "dist",
    [SMALL, "dirichlet:vocab=50,alpha=2.0", "poisson-dirichlet:theta=1,discount=0.3", "softmax-normal:vocab=64",
     'mixture:laws=["uniform:vocab=2","uniform:vocab=16"]'],
)  # fmt: skip
def test_control_is_never_worse_than_crude_and_agrees_with_it(dist):
    """At small P above all, where the plain coefficient 1/mu can do harm."""
    P = [1, 2, 3, 4, 8, 16, 32]
    result = brwsim.sweep(dist, P, trees=2000, seed=2)
    assert np.all(result.variance_ratio > 0.97)
    crude = brwsim.sweep(dist, P, trees=8000, seed=3, estimator="crude")
    error = np.hypot(result.stderr, crude.stderr)
    assert np.all(np.abs(result.mean - crude.mean) <= 4.0 * error)


def test_the_terms_have_mean_zero():
    """C_P averages to 0 however deep the tree is grown: the threshold may cut the sticks anywhere."""
    for dist in (SMALL, "poisson-dirichlet:theta=2,discount=0.2", "softmax-normal:vocab=64"):
        for top in (16, 256):
            blocks = brwsim.sweep(dist, f"16,{top}", trees=4000, seed=5).blocks
            trees = sum(block.trees for block in blocks.values())
            mean = sum(block.trees * block.mean_c for block in blocks.values()) / trees
            spread = sum(block.m_cc for block in blocks.values()) / trees
            assert np.all(np.abs(mean) < 4.0 * np.sqrt(spread / trees))
