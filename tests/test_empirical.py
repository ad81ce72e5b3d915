"""The empirical law: a pool of real next-token distributions."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import brwsim.process.laws.empirical as module
from brwsim.errors import FileError, InvalidInput
from brwsim.process.base import Row
from brwsim.process.laws.empirical import Empirical
from brwsim.traces.profile import profile

POOL = [[0.5, 0.25, 0.125], [0.9, 0.05, 0.01], [0.4, 0.3, 0.3]]


def save(path: Path, probs: Any = POOL) -> Path:
    with np.errstate(divide="ignore"):
        np.save(path, np.log(np.asarray(probs, dtype=np.float64)))
    return path


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return save(tmp_path / "pool.npy")


def expanded(law: Empirical) -> list[tuple[float, np.ndarray]]:
    """Every row as (weight, all its probabilities); checks that they are sorted and sum to 1."""
    rows = []
    for weight, row in law.rows():
        assert isinstance(row, Row)
        p = np.concatenate([row.probs, np.full(row.tail_count, row.tail_prob)])
        assert (np.diff(p) <= 0).all()
        assert (p > 0).all()
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        assert p.size <= law.vocab
        rows.append((weight, p))
    assert sum(weight for weight, _ in rows) == pytest.approx(1.0)
    return rows


def laws(pool: Path) -> list[Empirical]:
    return [
        Empirical(pool, vocab=50),
        Empirical(pool, tail="concentrate"),
        Empirical(pool, "concentrate", 50),
    ]


def test_rows_complete_the_pool(pool: Path) -> None:
    spread = [p for _, p in expanded(Empirical(pool, vocab=7))]
    np.testing.assert_allclose(spread[0], [0.5, 0.25, 0.125] + [0.125 / 4] * 4)
    np.testing.assert_allclose(spread[1], [0.9, 0.05, 0.01, 0.01, 0.01, 0.01, 0.01])
    np.testing.assert_allclose(spread[2], [0.4, 0.3, 0.3])
    law = Empirical(pool, tail="concentrate")
    concentrated = [p for _, p in expanded(law)]
    np.testing.assert_allclose(concentrated[0], [0.5, 0.25, 0.125, 0.125])
    np.testing.assert_allclose(concentrated[1][:7], [0.9, 0.05] + [0.01] * 5, rtol=1e-9)
    assert law.vocab == max(p.size for p in concentrated)


def test_remainder_token_keeps_the_order(tmp_path: Path) -> None:
    law = Empirical(save(tmp_path / "x.npy", [[0.55, 0.2]]), tail="concentrate")
    np.testing.assert_allclose(expanded(law)[0][1], [0.55, 0.2, 0.2, 0.05])
    assert law.vocab == 4


def test_moments_are_those_of_the_rows_and_of_the_profile(pool: Path) -> None:
    summary = profile(pool, vocab_size=50).pooled
    for law, mu, mu2 in zip(
        laws(pool),
        (summary.mu.upper, summary.mu.lower, summary.mu.lower),
        (summary.mu2.upper, summary.mu2.lower, summary.mu2.lower),
        strict=True,
    ):
        rows = expanded(law)
        assert law.mu == pytest.approx(sum(w * -(p * np.log(p)).sum() for w, p in rows), rel=1e-12)
        assert law.mu2 == pytest.approx(sum(w * (p * np.log(p) ** 2).sum() for w, p in rows), rel=1e-12)
        assert law.mu == pytest.approx(mu, rel=1e-12)
        assert law.mu2 == pytest.approx(mu2, rel=1e-12)


def test_step_law_is_exact_at_atoms(pool: Path) -> None:
    for law in laws(pool):
        rows = expanded(law)
        atoms = np.concatenate([-np.log(p) for _, p in rows])
        weights = np.concatenate([w * p for w, p in rows])
        points = np.concatenate([atoms, np.nextafter(atoms, 0.0), np.linspace(-1, 20, 211)])
        truth = [weights[atoms <= y].sum() for y in points]
        np.testing.assert_allclose(law.step_cdf(points), truth, atol=1e-14)
        assert law.step_cdf(np.array([1e9]))[0] == 1.0
        assert law.step_cdf(points.reshape(1, -1)).shape == (1, points.size)


def test_streamed_step_law_is_the_same(pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.concatenate([-np.log(np.array(POOL).ravel()), np.linspace(-1, 9, 101)])
    cached = Empirical(pool, vocab=50).step_cdf(points)
    monkeypatch.setattr(module, "MAX_CACHED_ATOMS", 1)
    np.testing.assert_allclose(Empirical(pool, vocab=50).step_cdf(points), cached, atol=1e-14)


def test_slices_of_the_pool_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probs = -np.sort(-np.random.default_rng(0).dirichlet(np.full(30, 0.3), size=101), axis=1)
    path = save(tmp_path / "x.npy", probs[:, :9])
    whole = Empirical(path, "concentrate")
    monkeypatch.setattr("brwsim.traces.contexts.CHUNK_ENTRIES", 40)
    sliced = Empirical(path, "concentrate")
    assert sliced == whole
    assert sliced.mu == pytest.approx(whole.mu, rel=1e-14)
    for (_, a), (_, b) in zip(expanded(whole), expanded(sliced), strict=True):
        np.testing.assert_array_equal(a, b)


def test_one_row_is_a_fixed_law(tmp_path: Path, pool: Path) -> None:
    one = Empirical(save(tmp_path / "one.npy", [[0.75, 0.25]]))
    assert one.is_fixed
    assert one.vocab == 2
    assert not Empirical(pool, vocab=9).is_fixed


def test_rounding_is_divided_out_and_missing_mass_is_not(tmp_path: Path) -> None:
    exact = np.array([[0.6, 0.4], [0.7, 0.3]])
    near = Empirical(save(tmp_path / "near.npy", exact * 1.0003))
    assert near.rows()[0][1].probs == pytest.approx([0.6, 0.4], abs=1e-15)
    assert near.vocab == 2
    expanded(near)
    with pytest.raises(InvalidInput, match="2 of 2 contexts miss mass"):
        Empirical(save(tmp_path / "missing.npy", exact * 0.9997))
    expanded(Empirical(tmp_path / "missing.npy", vocab=2))  # nothing is unseen: rounding


def test_zero_probabilities_are_no_children(tmp_path: Path) -> None:
    law = Empirical(save(tmp_path / "x.npy", [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.5, 0.3, 0.2]]))
    assert [p.size for _, p in expanded(law)] == [2, 1, 3]


def test_spec_goes_round(pool: Path) -> None:
    for law in laws(pool):
        spec = json.loads(json.dumps(law.to_spec()))
        assert spec.pop("name") == "empirical"
        assert set(spec) == {"file", "tail", "vocab", "sha256"}
        again = Empirical.from_spec(spec)
        assert again == law
        assert hash(again) == hash(law)
        assert again.to_spec() == law.to_spec()
        for (_, a), (_, b) in zip(law.rows(), again.rows(), strict=True):
            np.testing.assert_array_equal(a.probs, b.probs)
        assert pickle.loads(pickle.dumps(law)).mu == law.mu
    with pytest.raises(dataclasses.FrozenInstanceError):
        law.vocab = 3  # type: ignore[misc]


def test_a_changed_file_is_noticed(pool: Path) -> None:
    spec = Empirical(pool, vocab=9).to_spec()
    spec.pop("name")
    save(pool, [[0.5, 0.25, 0.124], *POOL[1:]])
    with pytest.raises(FileError, match="has changed"):
        Empirical.from_spec(spec)
    pool.unlink()
    with pytest.raises(FileError, match="no such file"):
        Empirical.from_spec(spec)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "2 of 3 contexts miss mass beyond the top 3; give the model's vocabulary size"),
        ({"tail": "ignore"}, "tail must be spread or concentrate, not 'ignore'"),
        ({"vocab": 0}, "vocab must lie in"),
        ({"vocab": 2}, "lists 3 tokens, more than the vocabulary size 2"),
        ({"vocab": 5}, "vocab must be at least 7"),
        ({"vocab": "many"}, "vocab must be a number"),
        ({"vocab": 9, "sha256": 3}, "sha256 must be a text"),
        ({"file": ["a", "b"]}, "file must be one path"),
    ],
)
def test_bad_keys(pool: Path, keys: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Empirical(**{"file": pool, **keys})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tails_that_would_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.array([[math.log(0.5), -30.0]]))
    with pytest.raises(InvalidInput, match="use tail=spread"):
        Empirical(path, tail="concentrate")
