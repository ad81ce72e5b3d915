"""Tests of independence on traces, regimes, trees, and acceptance lengths: known truths are recovered."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy.special import polygamma, psi

from brwsim.errors import FileError, InvalidInput
from brwsim.theory.markov import MarkovFacts
from brwsim.traces.acceptance import AcceptanceTrace, acceptance, holds_acceptance, read_acceptance
from brwsim.traces.correlations import autocorrelation, gaussian_copula, portmanteau
from brwsim.traces.dependence import covariance_change, dependence, mutual_information
from brwsim.traces.profile import profile
from brwsim.traces.regimes import change_against_iid, fit_markov
from brwsim.traces.series import make_series, quantile_bins, series_of

REAL = Path(os.environ.get("BRWSIM_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))


def autoregressive(rng: np.random.Generator, rho: float, traces: int, length: int) -> np.ndarray:
    """Stationary AR(1) sequences, one per row, of variance 1."""
    x = rng.normal(size=(traces, length))
    for t in range(1, length):
        x[:, t] = rho * x[:, t - 1] + math.sqrt(1 - rho * rho) * x[:, t]
    return x


def chain(rng: np.random.Generator, Q: Any, traces: int, length: int) -> np.ndarray:
    """Stationary two-state chains, one per row."""
    s = np.empty((traces, length), dtype=np.int64)
    s[:, 0] = rng.random(traces) < Q[0][1] / (Q[0][1] + Q[1][0])
    for t in range(1, length):
        s[:, t] = rng.random(traces) < np.where(s[:, t - 1] == 1, Q[1][1], Q[0][1])
    return s


def regimes(rng: np.random.Generator, Q: Any, means: Any, traces: int, length: int) -> np.ndarray:
    """Skewed values (gamma of shape 2) with the mean of their state."""
    s = chain(rng, Q, traces, length)
    return np.asarray(means)[s] * rng.gamma(2.0, 0.5, size=s.shape)


def close(value: float, truth: float, stderr: float, errors: float = 4.0) -> bool:
    return abs(value - truth) <= errors * stderr


# --- autocorrelation and the portmanteau test --------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.6, -0.5])
def test_autocorrelation_of_an_ar1(rho: float) -> None:
    x = autoregressive(np.random.default_rng(1), rho, 100, 300)
    found = autocorrelation(series_of(list(x)), 6)
    assert [(at.lag, at.pairs) for at in found] == [(lag, 100 * (300 - lag)) for lag in range(1, 7)]
    for at in found:
        assert at.stderr < 0.015
        assert close(at.value, rho**at.lag, at.stderr)


@pytest.mark.parametrize(("traces", "length"), [(40, 50), (2, 1000)], ids=["clustered", "Newey-West"])
def test_stderr_of_autocorrelation_is_the_spread(traces: int, length: int) -> None:
    rng = np.random.default_rng(2)
    runs = [
        autocorrelation(series_of(list(autoregressive(rng, 0.6, traces, length))), 3)[2] for _ in range(150)
    ]
    spread = float(np.std([at.value for at in runs]))
    assert np.mean([at.stderr for at in runs]) == pytest.approx(spread, rel=0.25)  # spread: ±6 %
    assert close(float(np.mean([at.value for at in runs])), 0.6**3, spread / math.sqrt(150), 5.0)


def test_portmanteau_is_ljung_box() -> None:
    x = autoregressive(np.random.default_rng(3), 0.2, 1, 2000)[0]
    e = x - x.mean()
    n = x.size
    textbook = n * (n + 2) * sum((e[k:] @ e[:-k] / (e @ e)) ** 2 / (n - k) for k in range(1, 3))
    found = portmanteau(autocorrelation(series_of([x]), 2), n)
    assert found.dof == 2
    assert found.statistic == pytest.approx(textbook, rel=0.01)
    assert found.p_value == pytest.approx(math.exp(-found.statistic / 2), rel=1e-9)


def test_portmanteau_has_its_level_with_short_traces() -> None:
    """Mean of chi-squared with 15 degrees of freedom; as many pairs are lost at the ends, weights count."""
    rng = np.random.default_rng(4)
    tests = [
        portmanteau(autocorrelation(series_of(list(rng.exponential(size=(60, 22)))), 15), 60 * 22)
        for _ in range(300)
    ]
    assert close(float(np.mean([t.statistic for t in tests])), 15.0, math.sqrt(30 / 300))
    assert close(float(np.mean([t.p_value < 0.1 for t in tests])), 0.1, math.sqrt(0.09 / 300))


def test_traces_are_kept_apart() -> None:
    """Interleaved or one after another is the same; the end of one says nothing on the next."""
    x = autoregressive(np.random.default_rng(5), 0.9, 30, 40)
    apart = dependence(series_of(list(x)))
    mixed = dependence(make_series(x.T.ravel(), np.tile(np.arange(30), 40)))
    for one, other in zip(mixed.autocorrelation, apart.autocorrelation, strict=True):
        assert one.pairs == other.pairs
        assert (one.value, one.stderr) == pytest.approx((other.value, other.stderr))
    assert mixed.information.plug_in == pytest.approx(apart.information.plug_in)
    assert apart.markov is not None
    assert mixed.markov is not None
    assert mixed.markov.eigenvalue == pytest.approx(apart.markov.eigenvalue)


# --- mutual information and the copula ---------------------------------------------------------------------


def test_information_of_a_chain_is_exact() -> None:
    Q = np.array([[0.9, 0.1], [0.3, 0.7]])
    pi = np.array([0.75, 0.25])
    truth = float((pi[:, None] * Q * np.log(Q / pi)).sum())
    found = mutual_information(series_of(list(chain(np.random.default_rng(6), Q, 100, 200))))
    assert found.classes == 2
    assert found.stderr < 0.02
    assert close(found.nats, truth, found.stderr)
    assert found.p_value == pytest.approx(1 / 201)


def test_information_of_independent_values_is_nothing() -> None:
    rng = np.random.default_rng(7)
    runs = [mutual_information(series_of(list(rng.exponential(size=(10, 60)))), 40) for _ in range(80)]
    nats = np.array([run.nats for run in runs])
    assert runs[0].classes > 3
    assert close(float(nats.mean()), 0.0, float(nats.std()) / math.sqrt(80))
    assert np.mean([run.plug_in for run in runs]) > 4 * nats.std() / math.sqrt(80)  # the bias it is rid of
    assert np.mean([run.null_mean for run in runs]) == pytest.approx(
        np.mean([run.plug_in for run in runs]), rel=0.1
    )
    assert close(float(np.mean([run.p_value for run in runs])), 0.5, math.sqrt(1 / 12 / 80))


def test_copula_is_free_of_the_marginal_law() -> None:
    x = autoregressive(np.random.default_rng(8), 0.7, 100, 200)
    plain, skewed = gaussian_copula(series_of(list(x))), gaussian_copula(series_of(list(np.exp(3 * x))))
    assert skewed == plain
    assert plain.stderr < 0.01
    assert close(plain.rho, 0.7, plain.stderr)
    assert close(plain.lag_two, 0.49, plain.lag_two_stderr)


@pytest.mark.parametrize("values", [[1, 1, 1, 1, 1, 1, 1, 2], [0, 3, 3, 3, 3, 3, 3, 3], list(range(50))])
def test_quantile_classes(values: list[int]) -> None:
    for count in (2, 3, 8):
        codes = quantile_bins(np.array(values, dtype=np.float64), count)
        used = np.unique(codes)
        assert used.tolist() == list(range(used.size))
        assert 2 <= used.size <= count
        assert (np.diff(codes[np.argsort(values, kind="stable")]) >= 0).all()


def test_heavy_ties_keep_two_classes() -> None:
    """Nearly all values at the maximum, and more distinct ones than classes."""
    values = np.concatenate([np.arange(20.0), np.full(2000, 100.0)])
    assert np.unique(quantile_bins(values, 4)).size >= 2


# --- regimes and the predicted change ----------------------------------------------------------------------

SIMULATED = [([[0.9, 0.1], [0.2, 0.8]], 150, 100), ([[0.95, 0.05], [0.05, 0.95]], 1, 8000)]


@pytest.mark.parametrize(("Q", "traces", "length"), SIMULATED, ids=["traces", "one long trace"])
def test_regimes_are_recovered(Q: Any, traces: int, length: int) -> None:
    means = (0.3, 1.2)
    x = regimes(np.random.default_rng(9), Q, means, traces, length)
    fit = fit_markov(series_of(list(x)), 0.5)
    assert fit.converged
    assert fit.eigenvalue_stderr < 0.03
    assert close(fit.eigenvalue, Q[0][0] + Q[1][1] - 1, fit.eigenvalue_stderr)
    for state in (0, 1):
        assert fit.means_stderr[state] < 0.04
        assert close(fit.stay[state], Q[state][state], fit.stay_stderr[state])
        assert close(fit.means[state], means[state], fit.means_stderr[state])
    truth = change_against_iid(np.array(Q), np.array(means))
    assert fit.change_stderr < 0.15 * truth
    assert close(fit.change, truth, fit.change_stderr)
    assert sum(fit.weights) == pytest.approx(1.0)


def test_alternating_regimes_have_a_negative_eigenvalue() -> None:
    x = regimes(np.random.default_rng(10), [[0.15, 0.85], [0.85, 0.15]], (0.3, 1.2), 100, 100)
    fit = dependence(series_of(list(x)), entropy=True).markov
    assert fit is not None
    assert fit.eigenvalue_stderr < 0.06
    assert close(fit.eigenvalue, -0.7, fit.eigenvalue_stderr)
    assert fit.change < -4 * fit.change_stderr


def test_independent_values_predict_no_change() -> None:
    x = np.random.default_rng(11).gamma(0.5, size=(60, 100))
    change = dependence(series_of(list(x)), entropy=True).predicted_change
    assert change is not None
    assert change.lags == 20
    assert change.markov_stderr < 0.1
    assert close(change.markov, 0.0, change.markov_stderr)
    assert close(change.covariance, 0.0, change.covariance_stderr)


@pytest.mark.parametrize("Q", [[[0.8, 0.2], [0.4, 0.6]], [[0.2, 0.8], [0.6, 0.4]]])
def test_both_predictions_agree_with_the_formula(Q: Any) -> None:
    x = regimes(np.random.default_rng(12), Q, (0.3, 1.2), 200, 80)
    truth = change_against_iid(np.array(Q), np.array([0.3, 1.2]))
    change = dependence(series_of(list(x)), entropy=True).predicted_change
    assert change is not None
    assert change.covariance_stderr < 0.09
    assert close(change.markov, truth, change.markov_stderr)
    assert close(change.covariance, truth, change.covariance_stderr)


def test_subtracting_the_mean_does_not_bias_the_covariances() -> None:
    rng = np.random.default_rng(13)
    found = [covariance_change(series_of(list(rng.exponential(size=(10, 25)))), 20)[0] for _ in range(500)]
    assert close(float(np.mean(found)), 0.0, float(np.std(found)) / math.sqrt(500))


def test_change_is_that_of_the_theory() -> None:
    """The checked figures of the Markov law: 20 symmetric Dirichlet tokens, alpha 0.02 and 0.4, P = 16384."""
    Q, V = np.array([[0.9, 0.1], [0.3, 0.7]]), 20
    alpha = np.array([0.02, 0.4])
    h = psi(V * alpha + 1) - psi(alpha + 1)
    s2 = h**2 + polygamma(1, alpha + 1) - polygamma(1, V * alpha + 1)
    pi = np.array([0.75, 0.25])
    mu, mu2 = float(pi @ h), float(pi @ s2)
    pooled = math.log(mu * 16384) / mu + mu2 / (2 * mu**2)
    change = change_against_iid(Q, h)
    assert pooled == pytest.approx(11.75, abs=0.005)
    assert pooled + change == pytest.approx(0.75 * 13.927 + 0.25 * 9.222, abs=0.002)
    facts = MarkovFacts(Q=Q, h=h, s2=s2)
    assert change == pytest.approx(float((facts.pi * h) @ (Q @ facts.phi)) / facts.mu**2, rel=1e-9)
    # the other form: the sum of covariances
    covariances = [float((pi * h) @ (np.linalg.matrix_power(Q, lag) @ (h - mu))) for lag in range(1, 200)]
    assert change == pytest.approx(sum(covariances) / mu**2, rel=1e-9)


# --- trees -------------------------------------------------------------------------------------------------


def grown(rng: np.random.Generator, trees: int, rho: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(values, parent, depth) of binary trees of 31 nodes, AR(1) down the branches, rows in any order."""
    parent = np.concatenate([[-1], (np.arange(1, 31) - 1) // 2])
    depth = np.floor(np.log2(np.arange(1, 32))).astype(np.int64)
    x = rng.normal(size=(trees, 31))
    for v in range(1, 31):
        x[:, v] = rho * x[:, parent[v]] + math.sqrt(1 - rho * rho) * x[:, v]
    rows = 31 * np.arange(trees)[:, None]
    parents = np.where(parent < 0, -1, parent + rows).ravel()
    order = rng.permutation(31 * trees)  # row i holds node order[i]
    place = np.argsort(order)
    moved = np.where(parents[order] < 0, -1, place[parents[order]])
    return x.ravel()[order], moved, np.tile(depth, trees)[order]


def test_trees_correlate_parent_and_child() -> None:
    values, parent, depth = grown(np.random.default_rng(14), 300, 0.6)
    series = make_series(values, np.zeros(values.size, dtype=np.int64), parent)
    assert series.depth is not None
    assert (series.depth == depth).all()
    assert series.traces == 300
    found = dependence(series, entropy=True)
    assert [(at.depth, at.pairs) for at in found.depths] == [(d, 300 * 2**d) for d in range(1, 5)]
    for at in found.depths:
        assert at.stderr < 0.05
        assert close(at.correlation, 0.6, at.stderr)
    assert [at.pairs for at in found.autocorrelation] == [300 * n for n in (30, 28, 24, 16)]
    for at in found.autocorrelation:
        assert close(at.value, 0.6**at.lag, at.stderr)
    assert found.markov is None
    assert found.predicted_change is None
    assert "parent and child" in str(found)


def laws(entropies: np.ndarray) -> np.ndarray:
    """Two-token laws, their log-probabilities in float64; the entropy rises with the argument."""
    p = 0.5 / (1.0 + np.exp(-entropies))
    return np.log(np.stack([1.0 - p, p], axis=-1))


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_profile_finds_trees_in_files(tmp_path: Path, suffix: str) -> None:
    values, parent, depth = grown(np.random.default_rng(15), 60, 0.8)
    arrays = {"logprobs": laws(values), "parent": parent, "depth": depth}
    found = profile(save(tmp_path / f"trees{suffix}", arrays)).files[0].dependence
    assert found is not None
    assert found.traces == 60
    assert [at.depth for at in found.depths] == [1, 2, 3, 4]
    assert found.depths[-1].correlation > 0.6


def save(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    if path.suffix == ".npz":
        np.savez(path, **arrays)  # type: ignore[arg-type]
    else:
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    return path


def test_parents_within_a_response(tmp_path: Path) -> None:
    """With three axes a parent is a position in its own response."""
    x = laws(np.random.default_rng(16).normal(size=(12, 3)))
    parent = np.tile([-1, 0, 0], (12, 1))
    found = profile(save(tmp_path / "t.npz", {"logprobs": x, "parent": parent})).files[0].dependence
    assert found is not None
    assert (found.traces, found.depths[0].pairs) == (12, 24)


BAD_TREES = [
    ({"depth": np.zeros(3, dtype=int)}, "no 'parent'"),
    ({"parent": np.array([1, 2, 0])}, "go round"),
    ({"parent": np.array([-1, 0, 3])}, "parent 3 of 3"),
    ({"parent": np.array([-1.0, 0.0, 1.0])}, "expected one integer per context"),
    ({"parent": np.array([-1, 0])}, "expected one integer per context"),
    ({"parent": np.array([-1, 0, 1]), "depth": np.array([0, 1, 1])}, "depth 1, but 2"),
]


@pytest.mark.parametrize(("arrays", "message"), BAD_TREES)
def test_trees_that_are_none(tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
    path = save(tmp_path / "bad.npz", {"logprobs": laws(np.arange(3.0)), **arrays})
    with pytest.raises(FileError, match=message) as caught:
        profile(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


# --- bad series --------------------------------------------------------------------------------------------


def test_series_that_say_nothing() -> None:
    with pytest.raises(InvalidInput, match="is constant, 2"):
        dependence(series_of([[2.0] * 50]))
    with pytest.raises(InvalidInput, match="19 pairs"):
        dependence(series_of([list(range(20))]))
    with pytest.raises(InvalidInput, match="0 pairs"):
        dependence(series_of([[x] for x in range(50)]))
    with pytest.raises(InvalidInput, match="there is no value"):
        series_of([[], []])
    with pytest.raises(InvalidInput, match="value 1 is not finite"):
        series_of([[1.0, math.nan, 2.0]])
    with pytest.raises(InvalidInput, match="sequence 1 is not a list of numbers"):
        series_of([[1.0], ["a"]])
    with pytest.raises(InvalidInput, match="2 dimensions"):
        series_of([[[1.0]]])
    with pytest.raises(InvalidInput, match="lags must be"):
        dependence(series_of([list(range(40))]), lags=0)


def test_short_series_are_reported_without_regimes() -> None:
    found = dependence(series_of([np.random.default_rng(17).normal(size=30)]), entropy=True)
    assert found.markov is None
    assert found.predicted_change is None
    assert len(found.autocorrelation) == 10  # 20 pairs at least
    assert "nan" not in json.dumps(found.to_dict(), allow_nan=False)
    assert isinstance(found.to_dict()["autocorrelation"], list)


def test_two_values_and_rare_ones() -> None:
    """A single one among zeros: nothing divides by zero."""
    x = np.zeros((20, 30))
    x[3, 4] = 1.0
    found = dependence(series_of(list(x)), entropy=True)
    json.dumps(found.to_dict(), allow_nan=False)
    assert abs(found.autocorrelation[0].value) < 0.01


# --- acceptance lengths ------------------------------------------------------------------------------------


def jsonl(path: Path, *records: Any) -> Path:
    path.write_text("\n".join(json.dumps(record) for record in records))
    return path


def runs(match: np.ndarray, most: int = 8) -> np.ndarray:
    """What a call started at each position yields: its run of matches, ``most`` at most, and one more."""
    length = np.ones(match.shape, dtype=np.int64)
    for t in range(match.shape[1] - 2, -1, -1):
        length[:, t] = np.where(match[:, t], np.minimum(length[:, t + 1], most) + 1, 1)
    return length


def test_matches_by_chance_give_tau_and_no_excess(tmp_path: Path) -> None:
    p, rng = 0.6, np.random.default_rng(18)
    lengths = runs(rng.random((100, 220)) < p)[:, :-20].tolist()
    path = jsonl(tmp_path / "a.jsonl", *({"acc_len": row} for row in lengths))
    found = acceptance(read_acceptance(path)[0])
    truth = (1 - p**9) / (1 - p)
    assert found.tau_stderr < 0.03
    assert close(found.tau, truth, found.tau_stderr)
    assert close(found.position_mean, truth, found.position_stderr)
    assert found.excess == pytest.approx(found.tau - found.position_mean)
    assert found.excess_stderr < 0.02
    assert close(found.excess, 0.0, found.excess_stderr)
    law = [p ** (n - 1) * (1 - p) for n in range(1, 9)] + [p**8]
    assert found.path_law == pytest.approx(law, abs=0.01)
    assert sum(found.position_law) == pytest.approx(1.0)
    # overlapping calls depend on one another, those along the path do not
    assert found.position_dependence is not None
    assert found.position_dependence.autocorrelation[0].value > 0.5
    assert found.path_dependence is not None
    first = found.path_dependence.autocorrelation[0]
    assert close(first.value, 0.0, first.stderr)


def test_clustered_difficulty_lowers_tau_below_the_mean_of_positions() -> None:
    rng = np.random.default_rng(19)
    easy = chain(rng, [[0.98, 0.02], [0.02, 0.98]], 60, 300)
    lengths = runs(rng.random(easy.shape) < np.where(easy == 1, 0.9, 0.2))
    trace = read_lengths(lengths)
    found = acceptance(trace)
    assert found.excess < -10 * found.excess_stderr
    assert found.path_dependence is not None
    assert found.path_dependence.autocorrelation[0].value > 0.1


def read_lengths(lengths: np.ndarray) -> AcceptanceTrace:
    trace = np.repeat(np.arange(lengths.shape[0]), lengths.shape[1])
    return AcceptanceTrace("x", "d", lengths.ravel(), trace, True)


def test_stderr_of_the_excess_is_its_spread() -> None:
    rng = np.random.default_rng(20)
    found = [acceptance(read_lengths(runs(rng.random((20, 19)) < 0.7))) for _ in range(100)]
    spread = float(np.std([f.excess for f in found]))
    assert np.mean([f.excess_stderr for f in found]) == pytest.approx(spread, rel=0.3)  # spread: ±7 %


def test_nested_drafters_and_the_path(tmp_path: Path) -> None:
    record = {"id": "7", "acc_a": {"acc_len": [3, 2, 1, 2, 1, 9]}, "more": {"b": {"acc_len": [1, 1]}}}
    path = jsonl(tmp_path / "a.jsonl", record, {"acc_a": {"acc_len": [2, 5, 5]}})
    a, b = read_acceptance(path)
    assert (a.drafter, b.drafter) == ("acc_a", "more.b")
    assert a.path().tolist() == [0, 3, 5, 6, 8]
    assert a.trace.tolist() == [0] * 6 + [1] * 3
    assert b.path().tolist() == [0, 1]
    assert b.trace.tolist() == [0, 0]


def test_lengths_per_call(tmp_path: Path) -> None:
    """Spec-Bench's form: the calls themselves, nested in choices."""
    path = jsonl(tmp_path / "a.jsonl", {"question_id": 1, "choices": [{"accept_lengths": [3, 1, 4]}]})
    (trace,) = read_acceptance(path)
    assert not trace.per_position
    found = acceptance(trace)
    assert (found.calls, found.positions, found.drafter) == (3, 0, "choices")
    assert found.tau == pytest.approx(8 / 3)
    assert math.isnan(found.position_mean)
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["excess"] is None
    beside = jsonl(tmp_path / "b.jsonl", {"output_ids": [9, 8, 7], "x": {"acceptance_lengths": [3, 1, 4]}})
    assert read_acceptance(beside)[0].per_position


def test_lengths_without_the_bonus_token(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "a.jsonl", {"acc_len": [2, 1, 0, 0]}, {"acc_len": [1, 1]})
    (trace,) = read_acceptance(path)
    assert trace.lengths.tolist() == [3, 2, 1, 1, 2, 2]
    assert trace.path().tolist() == [0, 3, 4]


def test_documents_and_failures(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"acc_len": [1, 2.0]}, {"acc_len": []}, {"error": "late"}], indent=1))
    (trace,) = read_acceptance(path)
    assert trace.lengths.tolist() == [1, 2]
    assert trace.skipped == 2
    assert "2 failed requests or empty lists" in str(profile(path))


BAD_LENGTHS = [
    ([{"acc_len": [1, -1]}], "line 1, acc_len: entry 1 is -1"),
    ([{"acc_len": [1]}, {"acc_len": [1.5]}], "line 2, acc_len: entry 0 is 1.5"),
    ([{"d": {"acc_len": [True]}}], "line 1, d: entry 0 is True"),
    ([{"acc_len": ["2"]}], "entry 0 is str"),
    ([{"acc_len": [None]}], "entry 0 is None"),
    ([{"acc_len": [math.nan]}], "entry 0 is nan"),
    ([{"acc_len": [10**9]}], "entry 0 is 1000000000"),
    ([{"acc_len": [1]}, {"text": "a"}], "line 2 holds no acceptance lengths"),
    ([{"acc_len": [1]}, 3], "line 2 holds no acceptance lengths"),
    ([{"acc_len": []}], "every list in it is empty"),
    ([{"tokens": [7, 8], "accept_lengths": [2, 2]}, {"accept_lengths": [2]}], "split the file"),
]


@pytest.mark.parametrize(("records", "message"), BAD_LENGTHS)
def test_bad_lengths(tmp_path: Path, records: list[Any], message: str) -> None:
    path = jsonl(tmp_path / "bad.jsonl", *records)
    with pytest.raises(FileError, match=message) as caught:
        profile(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


# --- the profile -------------------------------------------------------------------------------------------


def test_profile_tests_long_responses(tmp_path: Path) -> None:
    path = tmp_path / "long.npy"
    np.save(path, laws(2.0 * autoregressive(np.random.default_rng(21), 0.8, 30, 60)))
    found = profile(path, dependence=True)
    report = found.files[0].dependence
    assert report is not None
    assert found.dependence == (report,)
    assert report.mean == pytest.approx(found.files[0].mu.lower, rel=1e-12)
    assert report.mean_stderr == pytest.approx(found.files[0].mu.lower_stderr, rel=1e-12)
    assert close(report.copula.rho, 0.8, report.copula.stderr)
    assert report.portmanteau.p_value < 1e-99
    assert report.predicted_change is not None
    assert report.predicted_change.markov > 4 * report.predicted_change.markov_stderr
    text = str(found)
    assert "<1e-99" in text
    assert "change of E[X]" in text
    assert max(map(len, text.splitlines())) < 180
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["files"][0]["dependence"]["portmanteau"]["dof"] == 20
    assert data["pooled"]["dependence"] is None
    assert data["acceptance"] == []
    again = json.dumps(profile(path, dependence=True).to_dict())
    assert again == json.dumps(found.to_dict())  # shuffles are of fixed seed


def test_profile_tests_only_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, lengths = tmp_path / "long.npy", tmp_path / "a.jsonl"
    np.save(path, laws(autoregressive(np.random.default_rng(21), 0.8, 30, 60)))
    jsonl(lengths, {"d": {"acc_len": [2, 1, 3] * 20}})
    with monkeypatch.context() as patch:
        patch.setattr("brwsim.traces.dependence.autocorrelation", None)
        found = profile([path, lengths])
        assert "Ljung-Box" not in str(found)
        assert "dependence" not in json.dumps(found.to_dict())
    assert [report.source for report in found.dependence] == [
        str(path),
        f"{lengths} d, positions",
        f"{lengths} d, calls",
    ]
    assert "Ljung-Box" in str(profile(path, dependence=True))


def test_profile_leaves_out_what_cannot_be_tested(tmp_path: Path) -> None:
    short, constant = tmp_path / "short.npy", tmp_path / "constant.npy"
    np.save(short, laws(np.random.default_rng(22).normal(size=(30, 19))))
    np.save(constant, laws(np.zeros((3, 40))))
    found = profile([short, constant], dependence=True)
    assert [summary.dependence for summary in found.files] == [None, None]
    assert "Ljung-Box" not in str(found)


def test_profile_takes_both_kinds(tmp_path: Path) -> None:
    logs, lengths = tmp_path / "x.npy", jsonl(tmp_path / "a.jsonl", {"d": {"acc_len": [2, 1, 1]}})
    np.save(logs, laws(np.zeros((3, 4))))
    found = profile([logs, lengths])
    assert len(found.files) == 1
    assert found.pooled is not None
    assert found.acceptance[0].tau == 1.5
    assert "tau" in str(found)
    assert "mu lower" in str(found)
    alone = profile(lengths)
    assert alone.pooled is None
    assert alone.files == ()
    assert "mu lower" not in str(alone)
    assert "nan" not in str(alone)
    json.dumps(alone.to_dict(), allow_nan=False)


def test_logprobs_with_lengths_beside_are_logprobs(tmp_path: Path) -> None:
    record = {"logprobs": {"top_logprobs": [{"a": -0.1, "b": -3.0}]}, "acc_len": [1]}
    path = jsonl(tmp_path / "a.jsonl", record)
    assert not holds_acceptance(path)
    assert profile(path).pooled is not None
    # a token that reads like the key is no list of lengths
    quoted = jsonl(tmp_path / "b.jsonl", {"text": '"acc_len": [1]'})
    assert not holds_acceptance(quoted)


# --- real data ---------------------------------------------------------------------------------------------


def test_real_acceptance_lengths() -> None:
    path = REAL / "gsm8k-llama31-8b.jsonl"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert holds_acceptance(path)
    for trace in read_acceptance(path):
        lists = [record[trace.drafter]["acc_len"] for record in records]
        visited = []
        for lengths in lists:
            here = 0
            while here < len(lengths):
                visited.append(lengths[here])
                here += lengths[here]
        assert trace.per_position
        assert trace.lengths.tolist() == [length for lengths in lists for length in lengths]
        assert trace.lengths[trace.path()].tolist() == visited
        tau, mean = {"acc_eagle": (2.799, 3.070), "acc_ngram": (1.187, 1.459)}[trace.drafter]
        assert np.mean(visited) == pytest.approx(tau, abs=5e-4)
        assert trace.lengths.mean() == pytest.approx(mean, abs=5e-4)
        some = trace.trace < 60
        found = acceptance(replace(trace, lengths=trace.lengths[some], trace=trace.trace[some]))
        assert found.responses == 60
        assert close(found.tau, tau, found.tau_stderr)
        assert close(found.position_mean, mean, found.position_stderr)
        assert found.excess < -5 * found.excess_stderr
        assert found.position_dependence is not None
        assert found.path_dependence is not None
        assert found.position_dependence.portmanteau.p_value < 1e-99
        # calls along the path depend on one another much less than overlapping ones
        along = found.path_dependence.autocorrelation[0]
        assert abs(along.value) < 0.2 * found.position_dependence.autocorrelation[0].value
