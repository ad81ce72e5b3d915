"""The profile: mu and mu2 with their ranges and standard errors."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from brwsim.errors import FileError, InvalidInput
from brwsim.traces.profile import profile
from brwsim.traces.stderr import standard_errors


def save(path: Path, probs: object) -> Path:
    np.save(path, np.log(np.asarray(probs, dtype=np.float64)))
    return path


def test_full_rows_have_one_value(tmp_path: Path) -> None:
    probs = np.random.default_rng(0).dirichlet(np.full(8, 0.5), size=40)
    found = profile(save(tmp_path / "x.npy", probs))
    h = -(probs * np.log(probs)).sum(axis=1)
    s = (probs * np.log(probs) ** 2).sum(axis=1)
    for value in (found.pooled.mu.lower, found.pooled.mu.upper):
        assert value == pytest.approx(h.mean(), rel=1e-12)
    for value in (found.pooled.mu2.lower, found.pooled.mu2.upper):
        assert value == pytest.approx(s.mean(), rel=1e-12)
    slope = (h.mean() + s.mean()) / h.mean() ** 2
    assert found.pooled.theorem1_slope == pytest.approx((slope, slope))
    assert found.pooled.inverse_mu == pytest.approx((1 / h.mean(), 1 / h.mean()))
    assert found.pooled.covered == pytest.approx(1.0)


def test_pooling_weighs_contexts(tmp_path: Path) -> None:
    one = save(tmp_path / "one.npy", [[0.5, 0.5]])
    three = save(tmp_path / "three.npy", [[0.25] * 4] * 3)
    found = profile([one, str(three)])
    assert [s.source for s in found.files] == [str(one), str(three)]
    assert found.pooled.mu.lower == pytest.approx(7 / 4 * math.log(2))
    assert (found.pooled.contexts, found.pooled.responses, found.pooled.k) == (4, 2, (2, 4))


def test_table_reads_well(tmp_path: Path) -> None:
    path = save(tmp_path / "x.npy", [[0.5, 0.25], [0.75, 0.125]])
    text = str(profile(path))
    assert "2 of 2 contexts miss mass" in text
    assert "--vocab-size" in text
    assert "inf" in text
    closed = str(profile([path, path], vocab_size=100))
    assert "--vocab-size" not in closed
    assert "pooled" in closed
    assert "nan" not in closed
    assert "Newey-West" in closed
    assert max(map(len, closed.splitlines())) < 180


def test_json_has_no_infinities(tmp_path: Path) -> None:
    path = save(tmp_path / "x.npy", [[0.5, 0.25]])
    found = json.loads(json.dumps(profile(path).to_dict(), allow_nan=False))
    assert found["pooled"]["mu"]["upper"] is None
    assert found["pooled"]["mu"]["lower_stderr"] is None
    assert found["pooled"]["theorem1_slope"] == {"lower": 0.0, "upper": None}
    assert found["files"][0]["unbounded"] == 1
    closed = json.loads(json.dumps(profile(path, vocab_size=9).to_dict(), allow_nan=False))
    assert closed["vocab_size"] == 9
    assert closed["pooled"]["mu"]["upper"] > closed["pooled"]["mu"]["lower"]


def test_certain_text(tmp_path: Path) -> None:
    """Zero entropy everywhere: 1/mu is infinite, and nothing divides by zero."""
    path = tmp_path / "x.npy"
    np.save(path, np.array([[0.0, -np.inf]] * 3))
    found = profile(path)
    assert found.pooled.inverse_mu == (math.inf, math.inf)
    assert found.pooled.mu.lower_stderr == 0.0
    json.dumps(found.to_dict(), allow_nan=False)
    assert "inf" in str(found)


def test_bad_arguments(tmp_path: Path) -> None:
    path = save(tmp_path / "x.npy", [[0.5, 0.25]])
    with pytest.raises(InvalidInput, match="no file"):
        profile([])
    with pytest.raises(InvalidInput, match="positive whole number"):
        profile(path, vocab_size=0)
    with pytest.raises(InvalidInput, match=r"x\.npy: context 0 misses .* --vocab-size must be at least 3"):
        profile(path, vocab_size=2)
    with pytest.raises(FileError, match="no such file"):
        profile([path, tmp_path / "y.npy"])


# --- standard errors ---------------------------------------------------------------------------------------


def autoregressive(rng: np.random.Generator, rho: float, shape: tuple[int, int]) -> np.ndarray:
    """Stationary AR(1) sequences, one per row, of variance 1."""
    noise = rng.normal(size=shape)
    x = np.empty(shape)
    x[:, 0] = noise[:, 0]
    for t in range(1, shape[1]):
        x[:, t] = rho * x[:, t - 1] + math.sqrt(1 - rho * rho) * noise[:, t]
    return x


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_newey_west_sees_correlation_along_a_response(rho: float) -> None:
    x = autoregressive(np.random.default_rng(3), rho, (40, 4000))
    found = [standard_errors(np.zeros(4000, dtype=np.int64)).of_mean(row) for row in x]
    truth = math.sqrt((1 + rho) / (1 - rho) / 4000)
    assert np.mean(found) == pytest.approx(truth, rel=0.1)
    assert standard_errors(np.zeros(4, dtype=np.int64)).method.startswith("Newey-West")


def test_newey_west_pairs_do_not_cross_responses() -> None:
    rng = np.random.default_rng(4)
    x = autoregressive(rng, 0.8, (4, 3000))
    errors = standard_errors(np.repeat(np.arange(4), 3000))
    shuffled = rng.permutation(12000)
    # however responses are interleaved, as long as each keeps its order
    order = np.argsort(shuffled % 4, kind="stable")
    interleaved = standard_errors(np.argsort(order, kind="stable") // 3000)
    y = np.empty(12000)
    y[order] = x.ravel()
    assert interleaved.of_mean(y) == pytest.approx(errors.of_mean(x.ravel()), rel=1e-12)
    assert errors.of_mean(x.ravel()) == pytest.approx(math.sqrt(9 / 12000), rel=0.15)


def test_clusters_see_what_responses_share() -> None:
    rng = np.random.default_rng(5)
    responses, length = 60, 50
    trace = np.repeat(np.arange(responses), length)
    found = []
    for _ in range(50):
        x = rng.normal(size=responses)[trace] + rng.normal(size=trace.size)
        found.append(standard_errors(trace).of_mean(x))
    truth = math.sqrt(1 / responses + 1 / (responses * length))
    assert np.mean(found) == pytest.approx(truth, rel=0.05)
    assert "clustered by response (60 responses)" in standard_errors(trace).method


def test_one_context_each_is_the_plain_standard_error() -> None:
    x = np.random.default_rng(6).normal(size=200)
    plain = x.std(ddof=1) / math.sqrt(200)
    assert standard_errors(np.arange(200)).of_mean(x) == pytest.approx(plain, rel=1e-12)


def test_degenerate_standard_errors() -> None:
    assert math.isnan(standard_errors(np.zeros(1, dtype=np.int64)).of_mean(np.ones(1)))
    assert math.isnan(standard_errors(np.zeros(2, dtype=np.int64)).of_mean(np.array([1.0, math.inf])))
    assert standard_errors(np.zeros(5, dtype=np.int64)).of_mean(np.ones(5)) == 0.0
