"""Rows of top-k entries gathered one by one, and the question what k was.

Servers list the sampled token even when it is not among the k likeliest. Then "no unseen token weighs more
than the least listed one" - what the entropy bounds rest on - is false for that row, unless the extra is
taken off:

- legacy completions and vLLM's dicts: such a row has k + 1 entries. k is the least number of entries in the
  file; a row of k + 1 whose least entry is the sampled token is cut to k. When the sampled token is the
  least entry of *every* row, nothing shows that it belongs there, and it is cut from all.
- vLLM's chat form lists the sampled token first, then the likeliest, and cuts the list to k: a row that
  starts with its least entry, the sampled token, may lack the k-th likeliest. That entry is set to ``-inf``,
  which counts it among the unseen (they weigh at most the next one up, whether or not it was the k-th).
- an entry whose ``rank`` exceeds the number of entries is set to ``-inf`` likewise.

Every other difference in length means that files were mixed (or, in the legacy form, that two tokens of the
same text merged into one key), and is an error.
"""

from __future__ import annotations

import math
from array import array

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import FileError
from brwsim.traces.contexts import MASS_TOLERANCE, NOISE, Contexts, Floats, make_contexts

#: (token, logprob, rank or None)
Entry = tuple[str, float, "int | None"]


class UnusableError(Exception):
    """What is wrong with a record, a sequence or a position; the reader adds where."""


class RowStore:
    """Sorted rows of log-probabilities, in flat arrays."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._places: list[str] = []  # of each sequence
        self._traces = array("q")  # of each sequence
        self._values = array("d")
        self._widths = array("q")
        self._sequence = array("q")
        self._position = array("q")
        self._extra = array("b")  # the least entry may be cut: it is the sampled one, or of a rank >= width
        self._unproved = array("b")  # ... and nothing shows that it is one of the likeliest

    def open(self, place: str, trace: int) -> None:
        """Begin a sequence; ``place`` names it in messages."""
        self._places.append(place)
        self._traces.append(trace)

    def add(self, position: int, entries: list[Entry], sampled: str | None, in_order: bool) -> None:
        """Check and add one context of the open sequence; raises UnusableError."""
        mass = 0.0
        for token, logprob, _ in entries:
            if logprob > NOISE:
                raise UnusableError(
                    f"the logprob of {token!r} is {logprob:g}; a log-probability is never positive"
                )
            mass += math.exp(logprob)
        if mass > 1.0 + MASS_TOLERANCE:
            raise UnusableError(
                f"the listed probabilities sum to {mass:.6g}; they should be natural logs of distinct tokens"
            )
        if mass == 0.0:
            raise UnusableError("no listed token has a positive probability")
        width = len(entries)
        least = min(range(width), key=lambda i: entries[i][1])
        token, low, rank = entries[least]
        extra = low == -math.inf or (rank >= width if rank is not None else token == sampled)
        row = sorted((min(logprob, 0.0) for _, logprob, _ in entries), reverse=True)
        below = width == 1 or row[-1] < row[-2]  # a tie with the k-th is as good as being it
        doubtful = extra and rank is None and below
        displaced = doubtful and in_order and least == 0
        hidden = width > 1 and extra and (displaced or (rank is not None and rank > width))
        if hidden:
            row[-1] = -math.inf
        self._values.extend(row)
        self._widths.append(width)
        self._sequence.append(len(self._places) - 1)
        self._position.append(position)
        self._extra.append(extra)
        self._unproved.append(doubtful and row[-1] > -math.inf)

    def contexts(self, skipped: int) -> Contexts:
        """All rows, cut to one k; raises FileError when there are none or they mix k."""
        if not self._widths:
            raise FileError(f"{self._source} holds no context with logprobs; ask the server for logprobs")
        widths, extra, unproved = _view(self._widths), _view(self._extra) > 0, _view(self._unproved) > 0
        k = int(widths.min())
        if unproved.all():
            if int(widths.max()) == 1:
                self._check_likeliest()
            elif int(widths.max()) == k:
                k -= 1
        mixed = (widths > k) & ~((widths == k + 1) & extra)
        if mixed.any():
            row = int(np.argmax(mixed))
            raise FileError(
                f"{self._source}: {self._place(row)} lists {int(widths[row])} tokens, but "
                f"{self._place(int(widths.argmin()))} lists {int(widths.min())}: "
                "the file mixes k; split it by k "
                "(in the legacy form tokens of the same text merge: ask for token ids, or use the chat form)"
            )
        sequence = _view(self._sequence)
        return make_contexts(self._source, self._matrix(widths, k), _view(self._traces)[sequence], skipped)

    def _matrix(self, widths: NDArray[np.int64], k: int) -> Floats:
        values: Floats = np.frombuffer(self._values, dtype=np.float64)
        if int(widths.max()) == int(widths.min()):
            return values.reshape(-1, int(widths[0]))[:, :k].copy()
        starts = np.cumsum(widths) - widths
        return np.stack([values[starts + j] for j in range(k)], axis=1)

    def _check_likeliest(self) -> None:
        """With one entry per row, the sampled token: it is the likeliest for sure only above 1/2."""
        values = np.frombuffer(self._values, dtype=np.float64)
        row = int(np.argmin(values))
        if values[row] < -math.log(2.0):
            raise FileError(
                f"{self._source}: {self._place(row)} lists the sampled token alone, "
                "which need not be the likeliest; ask the server for two tokens or more (top_logprobs=20)"
            )

    def _place(self, row: int) -> str:
        place = self._places[self._sequence[row]]
        return f"{place}, position {self._position[row]}" if place else f"position {self._position[row]}"


def _view(numbers: array[int]) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)
