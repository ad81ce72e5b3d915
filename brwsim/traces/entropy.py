r"""Entropy and second log-moment of a distribution of which only the top k is known.

Let :math:`p_1 \ge \dots \ge p_k` be the listed probabilities, :math:`r = 1 - \sum p_i` the missing mass and
:math:`n = V - k` the number of unseen tokens (unbounded when the vocabulary is unknown). The unseen
probabilities :math:`q` obey

.. math:: 0 \le q_j \le p_k, \qquad \sum_j q_j = r, \qquad \#\{j\} \le n .

Both :math:`h = -\sum p \ln p` and :math:`s = \sum p \ln^2 p` are *smallest* when the tail is
concentrated, :math:`\lfloor r / p_k \rfloor` tokens of weight :math:`p_k` and one with the remainder, and
*largest* when it is spread evenly, :math:`r / n` each. These are exact extrema: both completions are allowed.

*Proof.* Every allowed :math:`q` majorises the even one and is majorised by the concentrated one, hence is
reached from the first, and the second from it, by transfers that move mass from a smaller token to a larger
one while all stay within :math:`[0, p_k]`. So it is enough that a transfer from :math:`y` to :math:`x > y`
never increases :math:`f(x) + f(y)`, that is :math:`f'(x) \le f'(y)`.

For :math:`f(p) = -p \ln p`, concave, this is plain. :math:`f(p) = p \ln^2 p` has
:math:`f'' = 2 (\ln p + 1) / p`: concave only up to :math:`1/e`. But with :math:`f' = \ln^2 p + 2 \ln p`,

.. math:: f'(x) - f'(y) = (\ln x - \ln y)(\ln x + \ln y + 2) ,

which is negative for :math:`x > y` whenever :math:`x y < e^{-2}`, in particular whenever
:math:`x + y < 2/e = 0.7357`. Two unseen tokens never weigh more:
:math:`x + y \le \min(2 p_k, r) \le \min(2 p_k, 1 - p_k) \le 2/3`.
(Transfers keep :math:`x + y`, so this holds along the way.) Hence the claim, for every :math:`k \ge 1`. ∎

Rounding is handled in the open, and never by rescaling a row:

- a missing mass up to ``NOISE`` (1e-6, float32 rounding) counts as none in the lower values, and in the upper
  ones where the vocabulary is unknown; with 10^5 unseen tokens it could hold 3e-5 nats, 7e-4 nats squared;
- an excess, or a missing mass beyond what the unseen tokens can hold, up to ``MASS_TOLERANCE`` (5e-3,
  bfloat16 rounding) counts as none; beyond it is an error;
- a listed token of probability zero is one whose probability was not given (servers write -9999): it is
  counted among the unseen, and the smallest *positive* listed probability takes the part of p_k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brwsim.errors import FileError, InvalidInput
from brwsim.traces.contexts import MASS_TOLERANCE, NOISE, Floats, chunks


@dataclass(frozen=True, eq=False)
class Tail:
    """What is known of the unseen tokens of each row, and the moments of the listed ones.

    All of shape (contexts,): ``covered`` mass listed, ``h`` and ``s`` the listed tokens' part of entropy and
    second log-moment, ``listed`` tokens of positive probability, ``cap`` the least of those probabilities,
    ``room`` the number of unseen tokens (``inf`` when unknown), ``missing`` the mass they share.
    """

    covered: Floats
    h: Floats
    s: Floats
    listed: Floats
    cap: Floats
    room: Floats
    missing: Floats

    def concentrated(self) -> tuple[Floats, Floats]:
        """(mass in tokens of weight ``cap``, weight of the one remainder token) of the lower completion."""
        missing = np.where(self.missing <= NOISE, 0.0, self.missing)
        rest = np.fmod(missing, self.cap)
        return missing - rest, rest


@dataclass(frozen=True, eq=False)
class EntropyBounds:
    """Least and greatest entropy h (nats) and second log-moment s (nats squared), shape (contexts,)."""

    h_lower: Floats
    h_upper: Floats
    s_lower: Floats
    s_upper: Floats
    covered: Floats


def check_vocab_size(vocab_size: int | None) -> None:
    """Raise InvalidInput unless ``vocab_size`` is None or a positive integer."""
    if vocab_size is None:
        return
    if isinstance(vocab_size, bool) or not isinstance(vocab_size, (int, np.integer)) or vocab_size < 1:
        raise InvalidInput(f"vocabulary size {vocab_size!r} is not a positive whole number")


def tail_of(
    logprobs: Floats,
    vocab_size: int | None = None,
    source: str = "the array",
    option: str = "--vocab-size",
) -> Tail:
    """What the top k leaves open.

    Parameters
    ----------
    logprobs : ndarray, shape (contexts, k)
        Natural-log probabilities, rows in non-increasing order.
    vocab_size : int, optional
        Number of tokens in the vocabulary; None when unknown.
    source, option : str
        Name the rows, and what sets the vocabulary size, in messages.

    Raises
    ------
    InvalidInput
        The vocabulary is smaller than a row, or too small to hold the missing mass of one.
    FileError
        A row sums to more than 1 beyond rounding, or has no positive probability.
    """
    check_vocab_size(vocab_size)
    parts = [_listed_moments(rows) for rows in chunks(logprobs)]
    covered, h, s, listed, cap = (np.concatenate(part) for part in zip(*parts, strict=True))
    wrong = (covered > 1.0 + MASS_TOLERANCE) | (listed == 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise FileError(
            f"{source}: the probabilities of context {row} sum to {covered[row]:.6g}, not to at most 1"
        )
    missing = np.maximum(1.0 - covered, 0.0)
    if vocab_size is None:
        missing[missing <= NOISE] = 0.0
        return Tail(covered, h, s, listed, cap, np.full_like(cap, np.inf), missing)
    room = vocab_size - listed
    if (room < 0).any():
        row = int(np.argmin(room))
        raise InvalidInput(
            f"{source}: context {row} lists {int(listed[row])} tokens, "
            f"more than the vocabulary size {vocab_size}; give the model's own as {option}"
        )
    lost = missing - room * cap
    if (lost > MASS_TOLERANCE).any():
        row = int(np.argmax(lost))
        needed = int(listed[row] + np.ceil(missing[row] / cap[row]))
        raise InvalidInput(
            f"{source}: context {row} misses a mass of {missing[row]:.4g}, more than the {int(room[row])} "
            f"unseen tokens of a vocabulary of {vocab_size} can hold at {cap[row]:.4g} each; "
            f"{option} must be at least {needed}"
        )
    return Tail(covered, h, s, listed, cap, room, np.minimum(missing, room * cap))


def entropy_bounds(
    logprobs: Floats, vocab_size: int | None = None, source: str = "the array"
) -> EntropyBounds:
    """Exact least and greatest entropy and second log-moment given the top k (see the module for the proof).

    Parameters
    ----------
    logprobs, vocab_size, source
        As for :func:`tail_of`.

    Returns
    -------
    EntropyBounds
        The upper values are ``inf`` where mass is missing and the vocabulary is unknown.

    Examples
    --------
    >>> b = entropy_bounds(np.log([[0.5, 0.25]]), vocab_size=4)
    >>> round(float(b.h_lower[0]), 4), round(float(b.h_upper[0]), 4)  # one token of 1/4; two of 1/8
    (1.0397, 1.213)
    """
    tail = tail_of(logprobs, vocab_size, source)
    at_cap, rest = tail.concentrated()
    log_cap, log_rest = np.log(tail.cap), _log(rest)
    # spread: r / room each; no mass contributes nothing, even where there is no room
    some = tail.missing > 0.0
    log_each = np.zeros_like(tail.missing)
    log_each[some] = np.log(tail.missing[some]) - np.log(tail.room[some])
    return EntropyBounds(
        h_lower=tail.h - at_cap * log_cap - rest * log_rest,
        h_upper=tail.h + np.where(some, -tail.missing * log_each, 0.0),
        s_lower=tail.s + at_cap * log_cap**2 + rest * log_rest**2,
        s_upper=tail.s + np.where(some, tail.missing * log_each**2, 0.0),
        covered=tail.covered,
    )


def _listed_moments(rows: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    p = np.exp(rows)
    logs = np.where(p > 0.0, rows, 0.0)
    weighted = p * logs
    listed = np.count_nonzero(p, axis=1)
    cap = p[np.arange(p.shape[0]), np.maximum(listed - 1, 0)]
    return p.sum(axis=1), -weighted.sum(axis=1), (weighted * logs).sum(axis=1), listed.astype(np.float64), cap


def _log(p: Floats) -> Floats:
    """Logarithm, and 0 where p is 0, so that p times it vanishes."""
    return np.log(np.where(p > 0.0, p, 1.0))
