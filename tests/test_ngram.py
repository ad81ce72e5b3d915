"""N-gram models against a textbook implementation in dictionaries, and the readers of their corpora."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sysconfig
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brwsim.errors import FileError, InvalidInput
from brwsim.process.corpus import read_corpus
from brwsim.process.ngram import SMOOTHINGS, NgramModel
from brwsim.process.ngram_chain import iterate_stationary
from brwsim.process.ngram_train import NgramTable

REAL = Path(os.environ.get("BRWSIM_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
CONTEXT_ARRAYS = ("start", "stop", "backoff", "scale", "length")
DOCS = [[0, 1, 0, 2, 1, 0, 1, 0, 3], [2, 2, 2, 1, 0, 1], [3], [1, 0, 1, 0, 2, 2, 0]]


class Textbook:
    """Both smoothings by their definitions, with tuples in dictionaries; documents open with a symbol."""

    def __init__(self, docs, vocab, order, smoothing):
        self.vocab, self.order, self.smoothing = vocab, order, smoothing
        grams = [Counter() for _ in range(order + 1)]
        before = {}
        for doc in docs:
            for n in range(1, order + 1):
                for i in range(len(doc) - n + 1):
                    gram = tuple(doc[i : i + n])
                    grams[n][gram] += 1
                    before.setdefault(gram, set()).add(doc[i - 1] if i else "<s>")
        self.counts = grams
        if smoothing == "kneser-ney":
            self.counts = [Counter({g: len(before[g]) for g in level}) for level in grams]
            self.counts[order] = grams[order]
        self.contexts = {()} | {gram[:-1] for level in grams[2:] for gram in level}

    @cache  # noqa: B019
    def followers(self, h):
        return {gram[-1]: k for gram, k in self.counts[len(h) + 1].items() if gram[:-1] == h}

    def discount(self, n):
        values = list(self.counts[n].values())
        n1, n2 = values.count(1), values.count(2)
        return n1 / (n1 + 2 * n2) if n1 and n2 else 0.5

    @cache  # noqa: B019
    def p(self, c, h):
        if h not in self.contexts:
            return self.p(c, h[1:])
        shorter = self.p(c, h[1:]) if h else 1 / self.vocab
        counts = self.followers(h)
        total, kinds = sum(counts.values()), len(counts)
        if self.smoothing == "witten-bell":
            return (counts.get(c, 0) + kinds * shorter) / (total + kinds)
        d = self.discount(len(h) + 1)
        return (max(counts.get(c, 0) - d, 0) + d * kinds * shorter) / total

    def suffix(self, h):
        """The longest context that ends h."""
        h = h[max(0, len(h) - self.order + 1) :]
        while h not in self.contexts:
            h = h[1:]
        return h


def flat(docs):
    return np.array([c for doc in docs for c in doc], dtype=np.int32), np.cumsum([0, *map(len, docs)])


def names(model):
    """The tokens of each context, read off the entries that lengthen one."""
    known = {0: ()}
    for h in range(len(model.start)):
        for e in range(model.start[h], model.stop[h]):
            g = int(model.next[e])
            if model.length[g] == model.length[h] + 1:
                known[g] = (*known[h], int(model.token[e]))
    assert sorted(known) == list(range(len(model.start)))
    return [known[h] for h in range(len(known))]


def both(docs, vocab, order, smoothing):
    model = NgramModel.train(*flat(docs), range(vocab), order, smoothing)
    book = Textbook(docs, vocab, order, smoothing)
    return model, book, names(model)


def dense(model, book, contexts):
    ids = {h: i for i, h in enumerate(contexts)}
    Q = np.zeros((len(ids), len(ids)))
    for i, h in enumerate(contexts):
        for c in range(book.vocab):
            Q[i, ids[book.suffix((*h, c))]] += book.p(c, h)
    return Q


def check_against_textbook(docs, vocab, order, smoothing):
    model, book, contexts = both(docs, vocab, order, smoothing)
    assert set(contexts) == book.contexts
    assert (np.diff(model.length) >= 0).all()
    ids = {h: i for i, h in enumerate(contexts)}
    for i, h in enumerate(contexts):
        full = np.array([book.p(c, h) for c in range(vocab)])
        entries = slice(model.start[i], model.stop[i])
        tokens, prob = model.token[entries], model.prob[entries]
        np.testing.assert_allclose(model.distribution(i), full, rtol=1e-12)
        assert model.distribution(i).sum() == pytest.approx(1, abs=1e-14)
        assert set(tokens.tolist()) == (set(book.followers(h)) if h else set(range(vocab)))
        assert sorted(zip(-prob, tokens, strict=True)) == list(zip(-prob, tokens, strict=True))
        assert model.token_sorted[entries].tolist() == sorted(tokens.tolist())
        assert (model.token[model.entry_sorted[entries]] == model.token_sorted[entries]).all()
        assert model.backoff[i] == (ids[h[1:]] if h else -1)
        for e in range(model.start[i], model.stop[i]):
            c = int(model.token[e])
            assert contexts[model.next[e]] == book.suffix((*h, c))
            low = model.lower[e]
            if h:
                assert model.token[low] == c
                assert model.start[model.backoff[i]] <= low < model.stop[model.backoff[i]]
            else:
                assert low == -1
        if h:  # the identity the kernel rests on
            below = model.prob[model.lower[entries]].sum()
            assert prob.sum() + model.scale[i] * (1 - below) == pytest.approx(1, abs=1e-14)
        else:
            assert model.scale[i] == 0
        assert model.entropy[i] == pytest.approx(-(full * np.log(full)).sum(), abs=1e-12)
        assert model.second[i] == pytest.approx((full * np.log(full) ** 2).sum(), abs=1e-12)
    Q = dense(model, book, contexts)
    f, m = np.random.default_rng(1).normal(size=(2, len(contexts)))
    np.testing.assert_allclose(model.apply(f), Q @ f, atol=1e-12)
    np.testing.assert_allclose(model.apply_adjoint(m), m @ Q, atol=1e-12)
    tokens, bounds = flat(docs[::-1])
    expected = [
        math.log(book.p(c, book.suffix(tuple(doc[:i])))) for doc in docs[::-1] for i, c in enumerate(doc)
    ]
    np.testing.assert_allclose(model.logprobs(tokens, bounds), expected, atol=1e-12)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("order", [1, 2, 3, 4, 9])
def test_textbook(order, smoothing):
    check_against_textbook(DOCS, 5, order, smoothing)  # token 4 never occurs


documents = st.lists(st.lists(st.integers(0, 3), max_size=12), min_size=1, max_size=4).filter(any)


@given(documents, st.integers(1, 4), st.sampled_from(SMOOTHINGS), st.integers(4, 6))
@settings(max_examples=80, deadline=None)
def test_textbook_on_random_corpora(docs, order, smoothing, vocab):
    check_against_textbook(docs, vocab, min(order, max(map(len, docs))), smoothing)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_large_keys_are_sorted_like_small_ones(smoothing):
    """A vocabulary of which almost nothing occurs takes the sorting path of the counts."""
    tokens = np.random.default_rng(2).integers(0, 5, 500) ** 5 * 700
    large = NgramModel.train(tokens, vocab=range(800_000), order=3, smoothing=smoothing)
    book = Textbook([tokens.tolist()], 800_000, 3, smoothing)
    h, c = (700, 0), 4**5 * 700
    assert math.exp(large.sequence_logprob([*h, c]) - large.sequence_logprob(h)) == pytest.approx(
        book.p(c, h)
    )
    assert large.distribution(len(large.start) - 1).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_stationary_and_poisson_against_dense(smoothing):
    model, book, contexts = both(DOCS, 5, 3, smoothing)
    Q = dense(model, book, contexts)
    ones = np.ones(len(Q))
    pi = np.linalg.lstsq(np.vstack([(Q - np.eye(len(Q))).T, ones]), np.append(0 * ones, 1), rcond=None)[0]
    law = model.stationary()
    np.testing.assert_allclose(law.pi, pi, atol=1e-11)
    assert law.residual < 1e-12
    assert law.error < 1e-11
    assert law.steps > 1
    phi = np.linalg.solve(np.eye(len(Q)) - Q + np.outer(ones, pi), model.entropy - pi @ model.entropy)
    solution = model.solve_poisson(tol=1e-11)
    np.testing.assert_allclose(solution.phi, phi, atol=1e-9)
    assert solution.residual < 1e-10
    assert solution.mu == pytest.approx(pi @ model.entropy)
    assert model.entropy_rate == pytest.approx(solution.mu)
    assert law.pi @ solution.phi == pytest.approx(0, abs=1e-12)


def test_the_error_of_a_stationary_law_is_reported():
    model = NgramModel.train(*flat(DOCS), range(5), 3)
    rough, fine = model.stationary(tol=1e-5), model.stationary()
    assert rough.steps < fine.steps
    assert np.abs(rough.pi - fine.pi).sum() <= 2 * rough.error <= 2e-5
    assert model.stationary(max_steps=3).error == np.inf
    swap = iterate_stationary(lambda m: m[::-1].copy(), np.array([1.0, 0.0]), 1e-9, 50)  # periodic
    assert swap.residual == 2.0
    assert swap.error == np.inf


def test_order_one_has_one_context():
    model = NgramModel.train([0, 0, 1, 2], order=1, smoothing="witten-bell")
    assert model.start.tolist() == [0]
    assert model.prob.tolist() == pytest.approx([3 / 7, 2 / 7, 2 / 7])
    assert model.next.tolist() == [0, 0, 0]
    assert model.stationary().pi.tolist() == [1.0]
    assert model.solve_poisson().phi.tolist() == [0.0]
    assert model.sequence_logprob([0, 1]) == pytest.approx(math.log(6 / 49))


@pytest.mark.parametrize("order", [1, 3])
def test_types_of_the_flat_arrays(order):
    model = NgramModel.train(*flat(DOCS), range(5), order)
    kinds = {"token": np.int32, "token_sorted": np.int32, "prob": np.float64, "scale": np.float64}
    for field in dataclasses.fields(NgramTable):
        array = getattr(model, field.name)
        assert array.dtype == kinds.get(field.name, np.int64)
        assert array.flags.c_contiguous
        assert len(array) == (len(model.start) if field.name in CONTEXT_ARRAYS else model.stop[-1])
    assert all(type(d) is float and 0 < d < 1 for d in model.discounts)


def test_one_symbol_is_certain():
    model = NgramModel.train([0, 0, 0], order=2)
    assert model.entropy.tolist() == [0.0, 0.0]
    assert model.perplexity([0, 0, 0, 0]) == pytest.approx(1)


def test_documents_do_not_straddle():
    apart = NgramModel.train([0, 1, 2, 3], [0, 2, 4], range(4), 2)
    assert sorted(names(apart)) == [(), (0,), (2,)]  # 1 and 3 close a document: no context
    assert apart.token[4:].tolist() == [1, 3]
    joined = NgramModel.train([0, 1, 2, 3], None, range(4), 2)
    assert sorted(names(joined)) == [(), (0,), (1,), (2,)]
    empty = NgramModel.train([0, 1, 2, 3], [0, 0, 2, 2, 4, 4], range(4), 2)  # empty documents change nothing
    np.testing.assert_array_equal(empty.prob, apart.prob)
    np.testing.assert_array_equal(empty.logprobs([0, 1, 1], [0, 2, 3]), apart.logprobs([0, 1, 1], [0, 2, 3]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": 0}, "at least 1"),
        ({"order": 15}, "larger than the corpus"),
        ({"order": 8, "boundaries": [0, 7, 14]}, "longest document has 7"),
        ({"order": 2.5}, "whole number"),
        ({"smoothing": "laplace"}, "kneser-ney or witten-bell"),
        ({"tokens": []}, "no token"),
        ({"tokens": [0.5]}, "whole numbers"),
        ({"tokens": [[1]]}, "2-dimensional"),
        ({"tokens": [0, -1]}, "holds -1"),
        ({"vocab": "abc"}, "outside the vocabulary 0..2"),
        ({"boundaries": [0, 5]}, "boundaries"),
        ({"boundaries": [0, 9, 5, 14]}, "boundaries"),
    ],
)
def test_bad_training_input(arguments, message):
    good = {"tokens": [0, 1, 2, 0, 1, 3, 0, 1, 4, 5, 6, 7, 8, 9], "order": 1}
    with pytest.raises(InvalidInput, match=message):
        NgramModel.train(**{**good, **arguments})


def test_bad_use():
    model = NgramModel.train([0, 1, 0], order=2)
    for call in (lambda: model.apply(np.zeros(5)), lambda: model.apply_adjoint(np.zeros(5))):
        with pytest.raises(InvalidInput, match="shape"):
            call()
    with pytest.raises(InvalidInput, match="outside the vocabulary"):
        model.logprobs([2])
    with pytest.raises(InvalidInput, match="no tokens"):
        model.perplexity([])


def test_standard_library_held_out():
    corpus = read_corpus(sysconfig.get_path("stdlib"), "byte", "*.py", max_bytes=1_000_000)
    assert len(corpus) == 1_000_000
    cut = int(corpus.boundaries[corpus.boundaries < 900_000][-1])
    bounds = corpus.boundaries[corpus.boundaries <= cut]
    train, test = corpus.tokens[:cut], corpus.tokens[cut:]
    for smoothing in SMOOTHINGS:
        models = [NgramModel.train(train, bounds, corpus.vocab, n, smoothing) for n in (1, 2, 3, 5)]
        measured = [model.perplexity(test) for model in models]
        assert measured == sorted(measured, reverse=True)
        assert measured[-1] < 5 < 20 < measured[0]
        assert models[2].prob[: len(corpus.vocab)].sum() == pytest.approx(1, abs=1e-14)
        assert models[2].stationary(1e-10).residual < 1e-10
        assert models[2].apply(np.ones(len(models[2].start))) == pytest.approx(1, abs=1e-12)
        assert models[2].solve_poisson(1e-8).residual < 1e-8


def test_units_of_text(tmp_path):
    (tmp_path / "b.txt").write_text("né né", encoding="utf-8")
    (tmp_path / "a.txt").write_text("\ufeffhé\tn", encoding="utf-8")
    (tmp_path / "c.md").write_text("no")
    (tmp_path / ".hidden.txt").write_bytes(b"\0")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "z.txt").write_bytes(b"\0")
    (tmp_path / "aa").mkdir()
    (tmp_path / "aa" / "deep.txt").write_text("né")
    words = read_corpus(tmp_path, "word", "*.txt")
    assert words.vocab == ("hé", "n", "né")
    assert words.tokens.tolist() == [0, 1, 2, 2, 2]
    assert words.boundaries.tolist() == [0, 2, 3, 5]  # a.txt, aa/deep.txt, b.txt
    chars = read_corpus([tmp_path / "b.txt", tmp_path / "c.md"], "char")
    assert chars.vocab == (" ", "n", "o", "é")
    assert chars.tokens.tolist() == [1, 3, 0, 1, 3, 1, 2]
    letters = read_corpus(str(tmp_path / "b.txt"))
    assert b"".join(letters.vocab[i] for i in letters.tokens) == "né né".encode()
    assert letters.tokens.dtype == np.int32
    assert letters.digest() == read_corpus(tmp_path / "b.txt", "byte").digest() != chars.digest()


@pytest.mark.parametrize(
    ("unit", "limit", "read"),
    [
        ("byte", 4, [b"n", b"\xc3", b"\xa9", b" "]),
        ("char", 6, ["n", "é", " ", "n"]),
        ("word", 6, ["né"]),
        ("word", 4, ["né"]),
        ("word", 7, ["né", "né"]),
        ("word", 9, ["né", "né"]),
        ("word", 10, ["né", "né", "ab"]),
    ],
)
def test_max_bytes_leaves_out_what_it_cuts(tmp_path, unit, limit, read):
    (tmp_path / "a").write_text("né né", encoding="utf-8")
    (tmp_path / "b").write_text("ab ac")
    corpus = read_corpus([tmp_path / "a", tmp_path / "b"], unit, max_bytes=limit)
    assert [corpus.vocab[i] for i in corpus.tokens] == read


def test_token_ids(tmp_path):
    path = tmp_path / "ids.jsonl"
    lines = [
        [7, 9, 7],
        {"prompt_token_ids": [1], "generated_token_ids": [128000, 7], "tokens": ["a", "b"]},
        {"token_ids": None, "ids": [[9], [7, 7]]},
        [],
    ]
    path.write_text("\n\n".join(map(json.dumps, lines)))
    corpus = read_corpus(path, "id")
    assert corpus.vocab == (7, 9, 128000)
    assert corpus.tokens.tolist() == [0, 1, 0, 2, 0, 1, 0, 0]
    assert corpus.boundaries.tolist() == [0, 3, 5, 6, 8]
    assert read_corpus(path, "id", max_bytes=20).tokens.tolist() == [0, 1, 0]
    path.write_text(f"[{2**31 - 1}, 5]")
    assert read_corpus(path, "id").vocab == (5, 2**31 - 1)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "a"}', "line 2 has no token ids under"),
        ('{"tokens": ["a"]}', "line 2, tokens holds 'a'"),
        ("[1, true]", "holds True"),
        ("[1.5]", "holds 1.5"),
        ("[-1]", "holds -1"),
        ("[2147483648]", "2147483647"),
        ("3", "must be a list"),
        ('{"ids": 3}', "must be a list"),
        ("[1, 2", "is not JSON"),
        ("[" * 100_000, "is nested too deeply"),
        ("\x00\x01", "is not JSON"),
        ("\xff", "is not JSON"),
    ],
)
def test_bad_token_ids(tmp_path, line, message):
    path = tmp_path / "ids.jsonl"
    path.write_bytes(b"[1, 2]\n" + line.encode("latin-1") + b"\n")
    with pytest.raises(FileError, match=message):
        read_corpus(path, "id")


@pytest.mark.parametrize("unit", ["byte", "char", "word"])
def test_bad_text(tmp_path, unit):
    path = tmp_path / "a.txt"
    path.write_bytes(b"ab\0c")
    with pytest.raises(FileError, match=r"NUL byte at offset 2.*binary"):
        read_corpus(path, unit)
    path.write_text("utf-16", encoding="utf-16")
    with pytest.raises(FileError, match="UTF-16"):
        read_corpus(tmp_path, unit)
    path.write_bytes(b"")
    with pytest.raises(FileError, match="holds no token; an"):
        read_corpus(path, unit)
    with pytest.raises(FileError, match=r"no file whose name matches '\*.rst'"):
        read_corpus(tmp_path, unit, "*.rst")
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read_corpus([path, tmp_path / "absent"], unit)
    with pytest.raises(FileError, match="cannot be read: embedded null"):
        read_corpus("a\0b", unit)
    path.write_bytes(b"caf\xe9 au lait")
    if unit == "byte":
        assert len(read_corpus(path, unit)) == 12
    else:
        with pytest.raises(FileError, match=r"not text in UTF-8 \(byte 3"):
            read_corpus(path, unit)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"unit": "bytes"}, "unit must be byte, char, word or id, not 'bytes'"),
        ({"files": []}, "a path or a list of paths"),
        ({"files": 3}, "a path or a list of paths"),
        ({"files": [3]}, "a path or a list of paths"),
        ({"max_bytes": 0}, "at least 1"),
        ({"max_bytes": 1.5}, "whole number"),
        ({"pattern": 3}, "pattern"),
    ],
)
def test_bad_corpus_arguments(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        read_corpus(**{"files": "a.txt", **arguments})


def test_real_token_ids():
    path = REAL / "gsm8k-llama31-8b.jsonl"
    if not path.exists():
        pytest.skip("no recorded token ids here")
    corpus = read_corpus(path, "id")
    assert len(corpus.boundaries) == 301
    model = NgramModel.train(corpus.tokens, corpus.boundaries, corpus.vocab, 3)
    assert model.perplexity(corpus.tokens, corpus.boundaries) < 10
    assert model.stationary(1e-9).residual < 1e-9


def test_a_corpus_that_its_limit_empties(tmp_path):
    path = tmp_path / "ids.jsonl"
    path.write_text("[1, 2, 3, 4]\n[5]")
    with pytest.raises(FileError, match="no token in the first 5 bytes"):
        read_corpus(path, "id", max_bytes=5)
