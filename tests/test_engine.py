"""The engine: the same bits for any threads, split, interruption or order; exact laws; known figures."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import brwsim
from brwsim.engine.plan import blocks
from brwsim.engine.rules import BlockKey, Precision, TreeCount
from brwsim.estimate import BlockStats, estimate, fold
from brwsim.parse import parse_grid
from brwsim.spec import SweepSpec, format_grid

SMALL = "dirichlet:vocab=50,alpha=0.02"


class Serial(Executor):
    """Runs every call at once, last submitted first done: the worst case of order."""

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, fn, /, *args, **kwargs):
        self.calls += 1
        future: Future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def same_bits(a: brwsim.Result, b: brwsim.Result) -> bool:
    return np.array_equal(a.mean, b.mean) and np.array_equal(a.stderr, b.stderr) and a.trees == b.trees


def test_bit_identical_for_any_executor_and_thread_count():
    one = brwsim.sweep(SMALL, "1..200", trees=150, threads=1, seed=5)
    assert same_bits(one, brwsim.sweep(SMALL, "1..200", trees=150, threads=7, seed=5))
    assert same_bits(one, brwsim.sweep(SMALL, "1..200", trees=150, executor=Serial(), seed=5))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert same_bits(one, brwsim.sweep(SMALL, "1..200", trees=150, executor=pool, seed=5))
    other = brwsim.sweep(SMALL, "1..200", trees=150, seed=6)
    assert not np.array_equal(one.mean, other.mean)


def test_blocks_are_the_same_trees_however_they_are_split():
    """Blocks partition the trees, and the statistics of a run equal those of all its trees at once."""
    planned = list(blocks(0, 5, 64, 1000))
    assert [b.first_tree for b in planned] == np.cumsum([0, *(b.trees for b in planned[:-1])]).tolist()
    assert sum(b.trees for b in planned) == 1000
    longer = list(blocks(0, 5, 64, 5000))
    assert longer[: len(planned) - 1] == planned[:-1]
    rng = np.random.default_rng(0)
    x, c = rng.normal(size=(2, 1000, 5))
    parts = [
        BlockStats.from_trees(*(a[b.first_tree : b.first_tree + b.trees] for a in (x, c))) for b in planned
    ]
    whole = BlockStats.from_trees(x, c)
    for merged, direct in zip(fold(parts).arrays(), whole.arrays(), strict=True):
        np.testing.assert_allclose(merged, direct, rtol=1e-12, atol=1e-14)


def test_crude_mean_and_error_are_the_sample_ones():
    result = brwsim.sweep(SMALL, "1,10,100", trees=100, estimator="crude")
    total = fold([result.blocks[key] for key in sorted(result.blocks)])
    np.testing.assert_allclose(result.mean, total.mean_x)
    np.testing.assert_allclose(result.stderr, np.sqrt(total.m_xx / 99 / 100))
    assert (result.mean[0], result.stderr[0]) == (1.0, 0.0)


@pytest.mark.parametrize("kind", ["crude", "control"])
def test_estimators_on_known_normals(kind):
    """X = 3 + Z - 0.7 C: the error is honest (spread of 400 repetitions) and the coefficient found."""
    rng = np.random.default_rng(1)
    means, errors = [], []
    for _ in range(400):
        c = rng.normal(size=(64, 1))
        x = 3.0 + 0.1 * rng.normal(size=(64, 1)) - 0.7 * c
        parts = [BlockStats.from_trees(x[i : i + 4], c[i : i + 4]) for i in range(0, 64, 4)]
        found = estimate(parts, np.array([100]), 1.0, kind)
        means.append(found.mean[0])
        errors.append(found.stderr[0])
    spread = np.std(means)
    assert abs(np.mean(means) - 3.0) < 4 * spread / 20
    assert spread == pytest.approx(0.0125 * (1.0 if kind == "control" else np.sqrt(0.5) * 10), rel=0.2)
    assert np.mean(errors) == pytest.approx(spread, rel=0.15)


@pytest.mark.parametrize(
    ("dist", "P", "exact"),
    [
        ("uniform:vocab=4", [1, 2, 5, 21, 85], [1, 1.25, 2, 3, 4]),
        ("table:p=[0.5,0.25,0.25]", [1, 2, 3, 4, 5], [1, 1.5, 1.75, 2.0, 2.25]),
        ("table:p=[1.0]", [1, 2, 50], [1, 2, 50]),
        ("geometric:p=0.5", [1, 2, 3, 4], [1, 1.5, 1.75, 2.0]),
    ],
)
def test_fixed_laws_are_exact(dist, P, exact):
    result = brwsim.sweep(dist, P, trees=1000)
    np.testing.assert_allclose(result.mean, exact, rtol=1e-14)
    assert np.all(result.stderr == 0.0)
    assert result.trees == 1


@pytest.mark.parametrize(
    ("dist", "figures"),
    [  # mean (standard error) at P = 64, 256, 1024 found independently with the control variate, 400 trees
        (SMALL, [(5.2752, 0.0030), (6.7085, 0.0016), (8.1392, 0.0008)]),
        ("dirichlet:vocab=20,alpha=0.2", [(3.3054, 0.0008), (4.0777, 0.0004), (4.8497, 0.0002)]),
        ("dirichlet:vocab=50,alpha=0.005", [(11.387, 0.018), (15.464, 0.009), (19.524, 0.004)]),
    ],
)
@pytest.mark.parametrize("estimator", ["crude", "control"])
def test_published_figures(dist, figures, estimator):
    result = brwsim.sweep(dist, "64,256,1024", trees=800, seed=11, estimator=estimator)
    for mean, stderr, (known, error) in zip(result.mean, result.stderr, figures, strict=True):
        assert abs(mean - known) < 4 * np.hypot(stderr, error)


def test_rel_err_is_reached_at_every_P_and_the_curve_is_consistent():
    result = brwsim.sweep(SMALL, "1..512", rel_err=2e-3, seed=3)
    assert np.all(result.stderr <= 2e-3 * result.mean)
    reference = brwsim.sweep(SMALL, "1..512", trees=4000, seed=4)
    z = (result.mean - reference.mean)[1:] / np.hypot(result.stderr, reference.stderr)[1:]
    assert np.max(np.abs(z)) < 4.5
    assert result.trees_per_P[0] > 10 * result.trees_per_P[-1]


def test_rare_events_are_not_called_exact():
    """64 equal trees of a random law do not make an exact mean: the error covers what was not seen."""
    dist = 'mixture:laws=["uniform:vocab=2","uniform:vocab=262144"],weights=[0.999,0.001]'
    few = brwsim.sweep(dist, "1,2,3", trees=64, seed=0)
    truth = np.array([1.0, 1.0 + 0.999 / 2, 1.0 + 0.999])  # to 1e-5
    assert few.stderr[0] == 0.0
    assert np.all(few.stderr[1:] > 0.0)
    assert np.all(np.abs(few.mean - truth) <= 4 * few.stderr + 1e-5)
    many = brwsim.sweep(dist, "1,2,3", rel_err=1e-3, seed=0)
    assert many.trees > 300
    assert np.all(np.abs(many.mean - truth) <= 4 * many.stderr + 1e-5)


def test_another_estimator_is_what_the_file_says(tmp_path):
    out = tmp_path / "run.h5"
    crude = brwsim.sweep(SMALL, "1..16", trees=64, out=out, estimator="crude")
    control = brwsim.sweep(SMALL, "1..16", trees=64, out=out)
    assert brwsim.load(out).estimator == "control"
    assert same_bits(brwsim.load(out), control)
    assert brwsim.merge([crude, control]).estimator == brwsim.merge([control, crude]).estimator == "control"


def test_resume_completes_a_shorter_run(tmp_path):
    whole = brwsim.sweep(SMALL, "1..64", trees=300, out=tmp_path / "whole.h5")
    brwsim.sweep(SMALL, "1..64", trees=37, out=tmp_path / "part.h5")
    counting = Serial()
    resumed = brwsim.sweep(SMALL, "1..64", trees=300, out=tmp_path / "part.h5", executor=counting)
    assert same_bits(whole, resumed)
    before = (tmp_path / "part.h5").read_bytes()
    again = Serial()
    assert same_bits(whole, brwsim.sweep(SMALL, "1..64", trees=300, out=tmp_path / "part.h5", executor=again))
    assert again.calls == 0
    assert (tmp_path / "part.h5").read_bytes() == before


def test_killed_run_resumes_to_the_same_bits(tmp_path):
    """Kill -9 in mid-run: the file is whole, and the same command ends where it would have."""
    out = tmp_path / "run.h5"
    code = (
        "import sys, brwsim, brwsim.engine.run as r; r._COMMIT_SECONDS = 0.05; r._COMMIT_SHARE = 0.0;"
        "brwsim.sweep('dirichlet:vocab=50,alpha=0.02', '1..256', trees=200000, seed=2, out=sys.argv[1])"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(out)])
    deadline = time.monotonic() + 60
    while not out.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    survived = brwsim.load(out)
    assert 0 < survived.trees < 200000
    trees = 2 * survived.trees + 5000  # beyond every block the killed run may have finished
    resumed = brwsim.sweep(SMALL, "1..256", trees=trees, seed=2, out=out)
    clean = brwsim.sweep(SMALL, "1..256", trees=trees, seed=2)
    assert resumed.trees == clean.trees
    assert same_bits(clean, resumed)


def test_rules_go_through_the_same_rounds_again():
    """Replaying a precision run over its own finished blocks asks for exactly the same blocks."""
    result = brwsim.sweep(SMALL, "1..256", rel_err=5e-3, seed=9)
    rule = Precision(result.spec, 9, 5e-3, "control")
    asked = set()
    while planned := rule.next_round(result.blocks):
        asked |= {BlockKey(9, block.tier, block.index) for block in planned}
    assert asked == set(result.blocks)
    assert TreeCount(result.spec, 10).next_round({})[-1].trees == 2


def test_the_work_is_forecast_after_the_first_round():
    """The bar's length is honest: it is never far from what the sweep takes in the end."""
    seen = []
    result = brwsim.sweep(SMALL, "1..256", rel_err=1e-3, seed=9, progress=seen.append)
    assert not seen[0].is_forecast
    assert math.isnan(seen[0].seconds_left)
    known = [progress for progress in seen if progress.is_forecast]
    assert known[-1].done == known[-1].wanted
    assert known[-1].trees == known[-1].wanted_trees == result.trees
    assert all(0.5 < progress.wanted / known[-1].wanted < 2.0 for progress in known)
    assert all(0.5 < progress.wanted_trees / result.trees < 2.0 for progress in known)
    assert known[-1].seconds_left == 0.0


def test_a_number_of_trees_is_its_own_forecast():
    seen = []
    brwsim.sweep(SMALL, "1..64", trees=100, progress=seen.append)
    assert {(progress.wanted, progress.wanted_trees) for progress in seen} == {(6400, 100)}
    assert all(progress.is_forecast for progress in seen)


@pytest.mark.parametrize("P", ["1..256", "2"])
def test_a_precision_out_of_reach_is_refused_after_the_first_round(tmp_path, P):
    counting = Serial()
    with pytest.raises(
        brwsim.InvalidInput, match=r"rel_err 1e-07 is out of reach: .* ask for \S+ or more$"
    ) as caught:
        brwsim.sweep(SMALL, P, rel_err=1e-7, executor=counting, out=tmp_path / "run.h5")
    assert counting.calls == 12  # 64 trees
    assert brwsim.load(tmp_path / "run.h5").trees == 64
    reachable = float(str(caught.value).split()[-3])
    rule = Precision(SweepSpec.of(SMALL, P), 0, reachable, "control")
    rule.next_round({})
    assert rule.next_round(brwsim.load(tmp_path / "run.h5").blocks)


def test_progress_tells_what_was_there_before(tmp_path):
    seen = []
    for seed in (1, 2):
        brwsim.sweep(SMALL, "1..8", trees=10, seed=seed, out=tmp_path / "a.h5", progress=seen.append)
    assert seen[0].found == {}
    assert seen[-1].found == {1: 10}


def test_interruption_keeps_what_is_finished(tmp_path):
    def interrupt(progress):
        if progress.trees >= 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        brwsim.sweep(SMALL, "1..64", trees=5000, out=tmp_path / "run.h5", progress=interrupt)
    assert brwsim.load(tmp_path / "run.h5").trees >= 40


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"trees": 0}, "trees"),
        ({"trees": 10, "rel_err": 0.1}, "not both"),
        ({"rel_err": 0.0}, "rel_err"),
        ({"rel_err": 1.5}, "rel_err"),
        ({"rel_err": float("nan")}, "rel_err"),
        ({"rel_err": 1e-300}, "out of reach"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"threads": 0}, "threads"),
        ({"estimator": "magic"}, "magic"),
    ],
)
def test_bad_arguments(arguments, word, tmp_path):
    with pytest.raises(brwsim.InvalidInput, match=word):
        brwsim.sweep(SMALL, "1..8", out=tmp_path / "run.h5", **arguments)
    assert not list(tmp_path.iterdir())


def test_spec_is_canonical():
    a = SweepSpec.of("dirichlet:alpha=0.02,vocab=50", "1..4,7")
    b = SweepSpec.of({"name": "dirichlet", "vocab": 50, "alpha": 0.02}, [7, 1, 2, 3, 4, 4])
    assert (a, a.spec_id) == (b, b.spec_id)
    assert SweepSpec.from_json(a.to_json()) == a
    assert a.spec_id != SweepSpec.of("dirichlet:alpha=0.02,vocab=50", "1..4,8").spec_id
    for text in ("1..4096", "1,2,5..9", "7"):
        assert format_grid(parse_grid(text)) == text.replace("1,2,", "1..2,")
