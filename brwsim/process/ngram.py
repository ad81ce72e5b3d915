"""Interpolated n-gram models: probabilities, entropies, and the chain of contexts they walk."""

from __future__ import annotations

import dataclasses
import itertools
import operator
import reprlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from brwsim.errors import InvalidInput
from brwsim.process.base import Floats
from brwsim.process.ngram_chain import PoissonSolution, StationaryLaw, iterate_stationary, solve_poisson
from brwsim.process.ngram_train import Int32, Int64, NgramTable, train_table

SMOOTHINGS = ("kneser-ney", "witten-bell")


@dataclass(frozen=True, eq=False)
class NgramModel(NgramTable):
    """An interpolated n-gram model as flat arrays; see :class:`NgramTable` for them.

    Attributes
    ----------
    order : int
        The n: contexts have at most n - 1 tokens.
    smoothing : {"kneser-ney", "witten-bell"}
        How counts became probabilities.
    vocab : tuple
        Symbol of each token.
    discounts : tuple of float
        Kneser-Ney's discount for n-grams of length 1..n; empty for Witten-Bell.

    Notes
    -----
    With counts c(h, w) of the token w after the context h, c(h) their sum over w, T(h) the number of distinct
    w, and h' the context without its oldest token (for the empty context, p(w | h') = 1/V):

    - Witten-Bell [1]_: p(w | h) = (c(h, w) + T(h) p(w | h')) / (c(h) + T(h)).
    - interpolated Kneser-Ney [2]_ [3]_: p(w | h) = (max(c(h, w) - D, 0) + D T(h) p(w | h')) / c(h). Below the
      highest order, c(h, w) is replaced by the number of distinct tokens before (h, w), the start of a
      document being one. D = n_1 / (n_1 + 2 n_2) for each order, with n_k the number of n-grams of (adjusted)
      count k; 0.5 if n_1 or n_2 is 0.

    N-grams do not straddle documents, and neither the start nor the end of one is predicted.

    Every token has positive probability in every context. So each token sequence can follow each context: the
    chain of contexts has exactly one recurrent class. It is aperiodic: after n - 1 times the same token, that
    token leaves the context as it is. Hence the stationary law is unique and power iteration converges to
    it; contexts always recognised with a longer one in front have weight 0.

    References
    ----------
    .. [1] I. H. Witten and T. C. Bell, "The zero-frequency problem", IEEE Trans. Inf. Theory 37 (1991), method C.
    .. [2] R. Kneser and H. Ney, "Improved backing-off for m-gram language modeling", ICASSP 1995.
    .. [3] S. F. Chen and J. Goodman, "An empirical study of smoothing techniques for language modeling",
       Computer Speech and Language 13 (1999), sections 2.6 and 2.7.

    Examples
    --------
    >>> model = NgramModel.train([0, 1, 0, 1, 1], vocab="ab", order=2, smoothing="witten-bell")
    >>> model.prob[:2].round(4).tolist(), model.token[:2].tolist()  # (3 + 2/2)/(5 + 2), (2 + 2/2)/(5 + 2)
    ([0.5714, 0.4286], [1, 0])
    >>> model.length.tolist(), [model.distribution(h).round(4).tolist() for h in (1, 2)]
    ([0, 1, 1], [[0.1429, 0.8571], [0.4643, 0.5357]])
    >>> round(model.entropy_rate, 4), round(model.perplexity([0, 1, 0, 1]), 4)
    (0.592, 1.6172)
    """

    order: int
    smoothing: str
    vocab: tuple[Hashable, ...] = field(repr=False)
    discounts: tuple[float, ...]

    @classmethod
    def train(
        cls,
        tokens: ArrayLike,
        boundaries: ArrayLike | None = None,
        vocab: Sequence[Hashable] | None = None,
        order: int = 3,
        smoothing: str = "kneser-ney",
    ) -> NgramModel:
        """Train on a token array.

        Parameters
        ----------
        tokens : array_like of int
            Documents one after another, as indices into ``vocab``.
        boundaries : array_like of int, optional
            Document d is ``tokens[boundaries[d]:boundaries[d + 1]]``; left out, all is one document.
        vocab : sequence, optional
            Symbol of each index, seen or not; left out, 0 to the greatest index.
        order : int
            Length n of the longest n-grams; at most the length of the longest document.
        smoothing : {"kneser-ney", "witten-bell"}
            See the notes of the class.

        Raises
        ------
        InvalidInput
            If an argument is not what it should be; the message says which and why.
        """
        known = _token_array(tokens)
        bounds = _boundary_array(boundaries, len(known))
        symbols = tuple(range(int(known.max(initial=-1)) + 1)) if vocab is None else tuple(vocab)
        known = _check_range(known, len(symbols))
        longest = int(np.diff(bounds).max(initial=0))
        n = _check_order(order, longest)
        if smoothing not in SMOOTHINGS:
            raise InvalidInput(f"smoothing must be {' or '.join(SMOOTHINGS)}, not {reprlib.repr(smoothing)}")
        table, discounts = train_table(known, bounds, len(symbols), n, smoothing)
        arrays = {f.name: getattr(table, f.name) for f in dataclasses.fields(table)}
        return cls(**arrays, order=n, smoothing=smoothing, vocab=symbols, discounts=discounts)

    @cached_property
    def entropy(self) -> Floats:
        """-sum p ln p of every context over the whole vocabulary, in nats."""
        return self._moments[0]

    @cached_property
    def second(self) -> Floats:
        """Sum p ln^2 p of every context over the whole vocabulary, in nats squared."""
        return self._moments[1]

    @cached_property
    def entropy_rate(self) -> float:
        """Stationary mean of the entropies, in nats per token."""
        return float(self.stationary().pi @ self.entropy)

    def distribution(self, context: int) -> Floats:
        """p(c | context) of every token c, by number of the token."""
        entries = slice(self.start[context], self.stop[context])
        full = np.empty(len(self.vocab)) if context == 0 else self.distribution(int(self.backoff[context]))
        full *= self.scale[context]
        full[self.token[entries]] = self.prob[entries]
        return full

    def apply(self, f: Floats) -> Floats:
        """(Q f)(h) = sum over tokens c of p(c | h) f(next(h, c)), for a function f of the context.

        Unseen tokens come from the shorter context h': Q f(h) = sum over seen c of p(c | h) f(next(h, c))
        + scale(h) (Q f(h') - sum over seen c of p(c | h') f(next(h', c))).
        """
        values = self.prob * self._vector(f)[self.next]
        return self._descend(self._seen(values) - self.scale * self._seen(values[self.lower]))

    def apply_adjoint(self, m: Floats) -> Floats:
        """(m Q)(g) = sum of m(h) p(c | h) over the contexts h and tokens c with next(h, c) = g."""
        mass = self._vector(m).copy()  # of each context, and what longer ones back off to it
        for first, stop in reversed(self._lengths[1:]):
            ids = self.backoff[first:stop]
            mass += _collect(ids, self.scale[first:stop] * mass[first:stop], len(mass))
        entries = self.stop - self.start
        taken = np.repeat((self.scale * mass)[1:], entries[1:])
        weight = np.repeat(mass, entries)
        weight -= _collect(self.lower[self.stop[0] :], taken, len(weight))
        weight *= self.prob
        return _collect(self.next, weight, len(mass))

    def stationary(self, tol: float = 1e-12, max_steps: int = 10_000) -> StationaryLaw:
        """The stationary law of the chain of contexts, by power iteration from the empty context.

        ``residual`` and ``error`` of the result say how well it is known; it exists and is unique (see the
        notes of the class). The law for the default arguments is kept.
        """
        return self._stationary if (tol, max_steps) == (1e-12, 10_000) else self._iterate(tol, max_steps)

    def solve_poisson(self, tol: float = 1e-9, max_steps: int = 2000) -> PoissonSolution:
        """Solve (I - Q) phi = entropy - mu and pi phi = 0; ``residual`` says how well it solves it.

        Phi is the context's surplus of entropy on the way to stationarity, sum over k of Q^k (entropy - mu).
        """
        return solve_poisson(self.apply, self.stationary().pi, self.entropy, tol, max_steps)

    def logprobs(self, tokens: ArrayLike, boundaries: ArrayLike | None = None) -> Floats:
        """Natural logarithm of p of every token after the (up to n - 1) tokens before it in its document."""
        known = _check_range(_token_array(tokens), len(self.vocab))
        context = self._contexts_before(known, _boundary_array(boundaries, len(known)))
        logprob = np.zeros(len(known))
        left = np.arange(len(known))
        while left.size:
            entry = self._find(context[left], known[left])
            seen = entry >= 0
            logprob[left[seen]] += np.log(self.prob[entry[seen]])
            left = left[~seen]
            logprob[left] += np.log(self.scale[context[left]])
            context[left] = self.backoff[context[left]]
        return logprob

    def sequence_logprob(self, tokens: ArrayLike) -> float:
        """Log-probability of a sequence, started from the empty context."""
        return float(self.logprobs(tokens).sum())

    def perplexity(self, tokens: ArrayLike, boundaries: ArrayLike | None = None) -> float:
        """Perplexity of a text: exp of the mean of -ln p over its tokens."""
        values = self.logprobs(tokens, boundaries)
        if not values.size:
            raise InvalidInput("the perplexity of no tokens is not defined; give at least one")
        return float(np.exp(-values.mean()))

    @cached_property
    def _stationary(self) -> StationaryLaw:
        return self._iterate(1e-12, 10_000)

    def _iterate(self, tol: float, max_steps: int) -> StationaryLaw:
        first = np.zeros(len(self.start))
        first[0] = 1.0
        return iterate_stationary(self.apply_adjoint, first, tol, max_steps)

    @cached_property
    def _lengths(self) -> list[tuple[int, int]]:
        """The range of contexts of each length."""
        edges = np.searchsorted(self.length, np.arange(self.order + 1)).tolist()
        return list(itertools.pairwise(edges))

    def _vector(self, f: Floats) -> Floats:
        values = np.asarray(f, dtype=np.float64)
        if values.shape != self.start.shape:
            raise InvalidInput(
                f"a function of the context must have shape {self.start.shape}, not {values.shape}"
            )
        return values

    def _seen(self, values: Floats) -> Floats:
        """Sum over the entries of each context."""
        total: Floats = np.add.reduceat(values, self.start)
        return total

    def _descend(self, own: Floats) -> Floats:
        """Solve out(h) = own(h) + scale(h) out(backoff(h)), shortest contexts first, in place."""
        for first, stop in self._lengths[1:]:
            own[first:stop] += self.scale[first:stop] * own[self.backoff[first:stop]]
        return own

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        """First and second log-moments, from those of the shorter context less what is seen here.

        An unseen token has ln p = ln scale + ln q, q its probability in the shorter context.
        """
        scale = self.scale
        log_scale = np.log(np.where(scale > 0, scale, 1.0))
        log_prob = np.log(self.prob)
        plogp, lower = self.prob * log_prob, self.lower
        unseen = 1.0 - self._seen(self.prob[lower])
        seen_below = self._seen(plogp[lower])
        own = -self._seen(plogp) + scale * (seen_below - log_scale * unseen)
        entropy = self._descend(own)
        cross = -entropy[self.backoff] - seen_below  # sum of q ln q over the unseen
        plogp *= log_prob
        tail = log_scale * (log_scale * unseen + 2.0 * cross) - self._seen(plogp[lower])
        second = self._descend(self._seen(plogp) + scale * tail)
        return np.maximum(entropy, 0.0), np.maximum(second, 0.0)

    @cached_property
    def _keys(self) -> Int64:
        """Context and token of the entries packed into one increasing number, in token_sorted's order."""
        keys = np.repeat(np.arange(len(self.start)) * len(self.vocab), self.stop - self.start)
        return keys + self.token_sorted

    def _find(self, context: Int64, token: Int32) -> Int64:
        """The entry of a token in a context, -1 where it has none."""
        keys = context * len(self.vocab) + token
        place = np.searchsorted(self._keys, keys).clip(max=len(self._keys) - 1)
        return np.where(self._keys[place] == keys, self.entry_sorted[place], -1)

    def _contexts_before(self, tokens: Int32, boundaries: Int64) -> Int64:
        """The longest context before each token."""
        opens = np.zeros(len(tokens) + 1, dtype=bool)
        opens[boundaries] = True
        longest = np.zeros(len(tokens), dtype=np.int64)
        after = np.flatnonzero(~opens[: len(tokens)])  # the places whose last k tokens are the context
        context = np.zeros(len(after), dtype=np.int64)
        for length in range(1, self.order):
            entry = self._find(context, tokens[after - 1])
            context = self.next[entry]
            known = (entry >= 0) & (self.length[context] == length)
            after, context = after[known], context[known]
            longest[after] = context
            after += 1
            inside = (after < len(tokens)) & ~opens[np.minimum(after, len(tokens))]
            after, context = after[inside], context[inside]
        return longest


def _collect(ids: Int64, weights: Floats, size: int) -> Floats:
    """Sum of the weights of each id."""
    return np.asarray(np.bincount(ids, weights, minlength=size), dtype=np.float64)


def _token_array(tokens: ArrayLike) -> NDArray[Any]:
    values = np.asarray(tokens)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise InvalidInput(
            f"tokens must be a list of whole numbers, not {values.ndim}-dimensional {values.dtype}"
        )
    return values if values.size else values.astype(np.int32)


def _check_range(tokens: NDArray[Any], vocab: int) -> Int32:
    if tokens.size and not (tokens.min() >= 0 and tokens.max() < vocab):
        bad = tokens[(tokens < 0) | (tokens >= vocab)][0]
        raise InvalidInput(f"tokens holds {bad}, outside the vocabulary 0..{vocab - 1}")
    return tokens.astype(np.int32, copy=False)


def _boundary_array(boundaries: ArrayLike | None, size: int) -> Int64:
    values = np.array([0, size]) if boundaries is None else np.asarray(boundaries)
    if (
        values.ndim != 1
        or values.size < 2
        or values.dtype.kind not in "iu"
        or values[0] != 0
        or values[-1] != size
        or (np.diff(values.astype(np.int64)) < 0).any()
    ):
        raise InvalidInput(f"boundaries must rise from 0 to the number of tokens, {size}")
    return values.astype(np.int64)


def _check_order(order: int, longest: int) -> int:
    try:
        n = operator.index(order)
    except TypeError:
        raise InvalidInput(f"order must be a whole number, not {reprlib.repr(order)}") from None
    if n < 1:
        raise InvalidInput(f"order must be at least 1 (no context), got {n}")
    if longest == 0:
        raise InvalidInput("the corpus has no token; an n-gram model needs text to learn from")
    if n > longest:
        raise InvalidInput(
            f"order {n} is larger than the corpus: its longest document has {longest} token(s)"
        )
    return n
