"""Training of interpolated n-gram models by sorting: flat arrays in, flat arrays out."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from brwsim.process.base import Floats

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Scalar = TypeVar("Scalar", np.int32, np.int64, np.float64)

FALLBACK_DISCOUNT = 0.5
"""Kneser-Ney discount of an order in which no n-gram, or every one, has an adjusted count of 1 or 2."""


@dataclass(frozen=True, eq=False)
class NgramTable:
    """The flat arrays of an interpolated n-gram model with C contexts and E entries.

    A *context* is a sequence of at most n - 1 tokens that occurs with a continuation in the same document;
    contexts are numbered by length, and 0 is the empty one. Context h owns the *entries*
    ``start[h]:stop[h]``, one for each token seen after it, in decreasing order of probability, ties in
    increasing order of the token. The empty context has one for every token of the vocabulary.

    Attributes
    ----------
    start, stop : ndarray of int64, shape (C,)
        Slice of the entries.
    backoff : ndarray of int64, shape (C,)
        The context without its oldest token; -1 for the empty one.
    scale : ndarray of float64, shape (C,)
        p(c | h) = scale[h] p(c | backoff[h]) for every token c without an entry in h; 0 for the empty one.
    length : ndarray of int64, shape (C,)
        Number of tokens.
    token : ndarray of int32, shape (E,)
        Token c of each entry.
    prob : ndarray of float64, shape (E,)
        p(c | h), the full interpolated probability.
    next : ndarray of int64, shape (E,)
        The context after h and c: the longest one that is a suffix of both together. For a token without
        an entry in h it is that of the entry where backing off finds it.
    lower : ndarray of int64, shape (E,)
        Index of the entry of c in ``backoff[h]``, which always exists; -1 in the empty context.
    token_sorted : ndarray of int32, shape (E,)
        The tokens of each slice once more, in increasing order.
    entry_sorted : ndarray of int64, shape (E,)
        Index of the entry that each place of ``token_sorted`` stands for.
    """

    start: Int64
    stop: Int64
    backoff: Int64
    scale: Floats
    length: Int64
    token: Int32
    prob: Floats
    next: Int64
    lower: Int64
    token_sorted: Int32
    entry_sorted: Int64


@dataclass(eq=False)
class _Level:
    """The distinct n-grams of one length n, in order of (their first n - 1 tokens, last token)."""

    token: Int32  # the last token
    context: Int32  # the first n - 1 tokens, as an index among the contexts of that length
    first: Int64  # where the n-grams of each context begin
    gram: Int64  # each context, as an index among the n-grams of length n - 1
    lower: Int32  # the last n - 1 tokens, as an index among the n-grams of length n - 1
    count: Int64  # occurrences
    opens: Int64  # the distinct n-grams that open a document


def train_table(
    tokens: Int32, boundaries: Int64, vocab: int, order: int, smoothing: str
) -> tuple[NgramTable, tuple[float, ...]]:
    """Count and smooth; the table, and the discount of each order (empty for Witten-Bell).

    Arguments are as :meth:`brwsim.process.ngram.NgramModel.train` has checked them. Everything is done by
    sorting packed (index of the first n - 1 tokens, last token) pairs, one length at a time.
    """
    levels = _count(tokens, boundaries, vocab, order)
    probs, scales, discounts = _smooth(levels, vocab, smoothing)
    return _assemble(levels, probs, scales), discounts


def _count(tokens: Int32, boundaries: Int64, vocab: int, order: int) -> list[_Level]:
    starts, lengths = boundaries[:-1], np.diff(boundaries)
    depth = np.arange(len(tokens), dtype=np.int64)
    depth -= np.repeat(starts, lengths)
    gram = tokens  # the n-gram that ends at each place, for n = 1
    levels = [_unigrams(tokens, vocab, starts[lengths > 0])]
    for n in range(2, order + 1):
        ends = np.flatnonzero(depth >= n - 1)
        keys = gram[ends - 1].astype(np.int64)
        keys *= vocab
        keys += tokens[ends]
        distinct, inverse = _dense(keys, len(levels[-1].token) * vocab)
        del keys
        lower = np.empty(len(distinct), dtype=np.int32)
        lower[inverse] = gram[ends]
        gram = np.full(len(tokens), -1, dtype=np.int32)
        gram[ends] = inverse
        opens = np.unique(gram[starts[lengths >= n] + n - 1]).astype(np.int64)
        levels.append(_level(distinct, vocab, lower, inverse, opens))
    return levels


def _unigrams(tokens: Int32, vocab: int, opening: Int64) -> _Level:
    """Length 1: the whole vocabulary, in the empty context, whose n-gram of length 0 is number 0."""
    zeros = np.zeros(vocab, dtype=np.int32)
    return _Level(
        token=np.arange(vocab, dtype=np.int32),
        context=zeros,
        first=np.zeros(1, dtype=np.int64),
        gram=np.zeros(1, dtype=np.int64),
        lower=zeros,
        count=np.bincount(tokens, minlength=vocab),
        opens=np.unique(tokens[opening]).astype(np.int64),
    )


def _level(distinct: Int64, vocab: int, lower: Int32, inverse: Int32, opens: Int64) -> _Level:
    prefix, token = np.divmod(distinct, vocab)
    new = np.diff(prefix, prepend=-1) != 0
    return _Level(
        token=token.astype(np.int32),
        context=np.cumsum(new, dtype=np.int32) - np.int32(1),
        first=np.flatnonzero(new),
        gram=prefix[new],
        lower=lower,
        count=np.bincount(inverse, minlength=len(distinct)),
        opens=opens,
    )


def _dense(keys: Int64, size: int) -> tuple[Int64, Int32]:
    """The distinct keys, all below ``size``, in increasing order, and each key as an index into them."""
    if size <= 2 * len(keys) + 2**16:
        occurs = np.zeros(size, dtype=bool)
        occurs[keys] = True
        rank = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
        return np.flatnonzero(occurs), rank[keys]
    order = np.argsort(keys)
    ordered = keys[order]
    new = np.diff(ordered, prepend=-1) != 0
    inverse = np.empty(len(keys), dtype=np.int32)
    inverse[order] = np.cumsum(new, dtype=np.int32) - np.int32(1)
    return ordered[new], inverse


def _smooth(
    levels: list[_Level], vocab: int, smoothing: str
) -> tuple[list[Floats], list[Floats], tuple[float, ...]]:
    """Probabilities of the n-grams and weights of the shorter context, length by length."""
    probs: list[Floats] = []
    scales: list[Floats] = []
    discounts: list[float] = []
    shorter = np.full(vocab, 1.0 / vocab)
    for n, level in enumerate(levels, 1):
        if smoothing == "kneser-ney":
            count = level.count if n == len(levels) else _continuations(level, levels[n])
            discounts.append(_discount(count))
            total = np.add.reduceat(count, level.first).astype(np.float64)
            kinds = np.add.reduceat((count > 0).astype(np.int64), level.first)
            own = np.maximum(count - discounts[-1], 0.0)
            scale = discounts[-1] * kinds / total
        else:
            kinds = np.add.reduceat((level.count > 0).astype(np.int64), level.first)
            total = (np.add.reduceat(level.count, level.first) + kinds).astype(np.float64)
            own = level.count.astype(np.float64)
            scale = kinds / total
        own /= total[level.context]
        own += scale[level.context] * (shorter if n == 1 else probs[-1][level.lower])
        probs.append(own)
        scales.append(scale)
    return probs, scales, tuple(discounts)


def _continuations(level: _Level, longer: _Level) -> Int64:
    """Number of distinct tokens before each n-gram, the start of a document counted as one."""
    count = np.bincount(longer.lower, minlength=len(level.token))
    count[level.opens] += 1
    return count


def _discount(count: Int64) -> float:
    once, twice = int(np.count_nonzero(count == 1)), int(np.count_nonzero(count == 2))
    return once / (once + 2 * twice) if once and twice else FALLBACK_DISCOUNT


def _assemble(levels: list[_Level], probs: list[Floats], scales: list[Floats]) -> NgramTable:
    contexts = [len(level.first) for level in levels]
    known = _known(levels, np.cumsum([0, *contexts]))
    bases = np.cumsum([0, *(len(level.token) for level in levels)])
    start = np.concatenate([level.first + base for level, base in zip(levels, bases, strict=False)])
    suffixes = [known[i - 1][levels[i - 1].lower[levels[i].gram]] for i in range(1, len(levels))]
    entry_sorted = np.concatenate([_places(*both) for both in zip(levels, probs, bases, strict=False)])
    follow, lower = _links(levels, known, [entry_sorted[a:b] for a, b in itertools.pairwise(bases)])
    token_sorted = np.concatenate([level.token for level in levels])
    scale = np.concatenate(scales)
    scale[0] = 0.0
    return NgramTable(
        start=start,
        stop=np.append(start[1:], bases[-1]),
        backoff=np.concatenate([np.array([-1]), *suffixes]).astype(np.int64),
        scale=scale,
        length=np.repeat(np.arange(len(levels)), contexts),
        token=_placed(token_sorted, entry_sorted),
        prob=_placed(np.concatenate(probs), entry_sorted),
        next=_placed(follow, entry_sorted),
        lower=_placed(lower, entry_sorted),
        token_sorted=token_sorted,
        entry_sorted=entry_sorted,
    )


def _known(levels: list[_Level], ids: Int64) -> list[Int32]:
    """For each length from 0, the context that each n-gram of that length is; -1 where it is none."""
    known = [np.full(len(level.token), -1, dtype=np.int32) for level in levels]
    for i, level in enumerate(levels[1:], 1):
        known[i - 1][level.gram] = np.arange(ids[i], ids[i + 1])
    return [np.zeros(1, dtype=np.int32), *known]


def _places(level: _Level, prob: Floats, base: int) -> Int64:
    """The entry of each n-gram: by context, then in decreasing order of probability, ties by token."""
    place = np.empty(len(prob), dtype=np.int64)
    place[np.lexsort((-prob, level.context))] = np.arange(base, base + len(prob))
    return place


def _links(levels: list[_Level], known: list[Int32], places: list[Int64]) -> tuple[Int64, Int64]:
    """The context after each n-gram, and the entry of its last n - 1 tokens, n-grams by length."""
    follows = [known[1].clip(min=0)]
    lowers = [np.full(len(known[1]), -1, dtype=np.int64)]
    for i, level in enumerate(levels[1:], 1):
        longest = known[i + 1]
        follows.append(np.where(longest >= 0, longest, follows[-1][level.lower]))
        lowers.append(places[i - 1][level.lower])
    return np.concatenate(follows).astype(np.int64), np.concatenate(lowers)


def _placed(values: NDArray[Scalar], place: Int64) -> NDArray[Scalar]:
    moved = np.empty_like(values)
    moved[place] = values
    return moved
