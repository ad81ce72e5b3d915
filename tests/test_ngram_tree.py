"""The tree of an n-gram model: node by node against the model itself, and its i.i.d. surrogate."""

from __future__ import annotations

import heapq
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import brwsim
from brwsim.kernels import cpu
from brwsim.kernels.tables import pack
from brwsim.process import process_from_spec
from brwsim.process.base import NgramLayout
from brwsim.process.ngram_tree import Ngram
from brwsim.spec import SweepSpec

TEXT = "the cat sat on the mat, the rat sat on the cat; a cat and a rat, that is that. " * 3


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT)
    return path


def best_weights(model, root: int, limit: int) -> np.ndarray:
    """Best-first over whole distributions: every token of every node, its context found by its suffixes."""
    entries = {}
    for context in range(model.start.size):
        for entry in range(model.start[context], model.stop[context]):
            entries[context, int(model.token[entry])] = int(model.next[entry])

    def after(context: int, token: int) -> int:
        while (context, token) not in entries:
            context = int(model.backoff[context])
        return entries[context, token]

    heap = [(-1.0, 0, root)]
    found = []
    pushed = 1
    while len(found) < limit:
        negative, _, context = heapq.heappop(heap)
        found.append(-negative)
        for token, prob in enumerate(model.distribution(context)):
            heapq.heappush(heap, (negative * prob, pushed, after(context, token)))
            pushed += 1
    return np.cumsum(found)


@pytest.mark.parametrize("smoothing", ["kneser-ney", "witten-bell"])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_trees_match_the_model_node_by_node(corpus, order, smoothing):
    """From every context the model can start in, unseen tokens included."""
    process = Ngram(str(corpus), order=order, unit="char", smoothing=smoothing)
    layout = process.layout()
    limit = 150
    for root in range(0, layout.pi.size, max(1, layout.pi.size // 5)):
        start = np.zeros(layout.pi.size)
        start[root] = 1.0
        tables = pack(NgramLayout(layout.model, start, layout.entropy, layout.phi, False))
        for grow in (cpu.grow_trees, cpu.grow_trees_best_first):
            sums, _, _ = grow(tables, 0, 0, 1, np.arange(1, limit + 1), 1e-3)
            np.testing.assert_allclose(sums[0], best_weights(process.model, root, limit), rtol=1e-12)


def test_surrogate_has_the_same_laws_without_the_memory(corpus):
    process = Ngram(str(corpus), order=3, unit="char")
    surrogate = process.surrogate()
    assert (surrogate.mu, surrogate.mu2) == (process.mu, process.mu2)
    assert surrogate.facts()["iid"]
    assert not process.facts()["iid"]
    P = "1,2,16,256"
    memory = brwsim.sweep(process, P, trees=2000, seed=1)
    none = brwsim.sweep(surrogate, P, trees=2000, seed=2)
    error = np.hypot(memory.stderr, none.stderr)
    # at P = 2 only the root's law matters, and it is the same one
    assert abs(memory.mean[1] - none.mean[1]) < 4 * error[1]
    assert memory.mean[3] - none.mean[3] > 10 * error[3]
    known = brwsim.bounds.sharp(256, mu=surrogate.mu, mu2=surrogate.mu2)
    assert none.mean[3] == pytest.approx(known, rel=0.02)


def test_control_is_unbiased_and_helps(corpus):
    result = brwsim.sweep(Ngram(str(corpus), order=4, unit="char"), "1,4,64", trees=4000, seed=3)
    crude = result.with_estimator("crude")
    assert np.all(np.abs(result.mean - crude.mean) <= 4 * crude.stderr)
    assert result.variance_ratio[-1] > 2


def test_identity_is_the_corpus_not_its_path(corpus, tmp_path):
    process = Ngram(str(corpus), order=2, unit="word")
    assert process_from_spec(process.to_spec()).to_spec() == process.to_spec()
    copy = tmp_path / "elsewhere.txt"
    copy.write_text(TEXT)
    here, there = (SweepSpec.of(Ngram(str(path), order=2, unit="word"), "1..4") for path in (corpus, copy))
    assert here.spec_id == there.spec_id
    corpus.write_text(TEXT + "more")
    with pytest.raises(brwsim.FileError, match="not the corpus"):
        process_from_spec(process.to_spec())


@pytest.mark.parametrize(
    ("keys", "word"),
    [
        ({"order": 0}, "order"),
        ({"order": 65}, "order"),
        ({"order": 40, "max_bytes": 20}, "order"),
        ({"unit": "syllable"}, "unit"),
        ({"smoothing": "none"}, "smoothing"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"iid": "yes"}, "iid"),
    ],
)
def test_bad_keys(corpus, keys, word):
    with pytest.raises(brwsim.BrwsimError, match=word) as caught:
        Ngram(str(corpus), **keys)
    assert "\n" not in str(caught.value)


def test_standard_library_beats_its_surrogate():
    """Real text: code is more predictable along a path than its laws shuffled."""
    if not list(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        pytest.skip("the standard library's sources are not installed")
    process = Ngram(sysconfig.get_path("stdlib"), order=3, pattern="*.py", max_bytes=1_000_000)
    real = brwsim.sweep(process, "64,1024", trees=400)
    shuffled = brwsim.sweep(process.surrogate(), "64,1024", trees=400)
    assert np.all(real.mean - shuffled.mean > 10 * np.hypot(real.stderr, shuffled.stderr))
