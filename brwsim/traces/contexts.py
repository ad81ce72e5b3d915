"""What every reader returns: one sorted row of log-probabilities per context."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: A mass that differs from 1 by no more than this is 1 but for float32 rounding.
NOISE = 1e-6

#: A row may sum to at most 1 + MASS_TOLERANCE: log-probabilities stored as float16 are off by up to 5e-4 in
#: total mass, as bfloat16 by up to 4e-3. Anything beyond is no distribution.
MASS_TOLERANCE = 5e-3

#: Work on big pools goes through slices of about this many entries, so that temporaries stay small.
CHUNK_ENTRIES = 1 << 20


@dataclass(frozen=True, eq=False)
class Contexts:
    """Next-token log-probabilities, as read from one file.

    Attributes
    ----------
    source : str
        The file they were read from.
    logprobs : ndarray of float64, shape (contexts, k)
        Natural-log probabilities, each row in non-increasing order; ``-inf`` is probability zero, or a token
        the server named without giving its probability. Read-only.
    trace : ndarray of int64, shape (contexts,)
        The response a context belongs to, numbered from 0; contexts of one response keep their order.
        Read-only.
    full : bool
        Whether every row is a whole distribution: its probabilities sum to 1 within ``NOISE``.
    skipped : int
        Records without a response (failed requests of a batch), left out.
    """

    source: str
    logprobs: Floats
    trace: Integers
    full: bool
    skipped: int = 0

    def __len__(self) -> int:
        return int(self.logprobs.shape[0])

    @property
    def k(self) -> int:
        """Entries in a row."""
        return int(self.logprobs.shape[1])

    @property
    def responses(self) -> int:
        """Number of responses the contexts come from."""
        return int(np.unique(self.trace).size)

    def digest(self) -> str:
        """SHA-256 (hex) of the log-probabilities: the pool, however its file is formatted."""
        shape = np.asarray(self.logprobs.shape, dtype="<i8")
        sha = hashlib.sha256(shape.tobytes())
        for rows in chunks(self.logprobs):
            sha.update(np.ascontiguousarray(rows, dtype="<f8").tobytes())
        return sha.hexdigest()


def make_contexts(source: str, logprobs: Floats, trace: Integers, skipped: int = 0) -> Contexts:
    """Freeze checked, sorted rows; columns that are ``-inf`` throughout are dropped."""
    used = int(np.count_nonzero(np.isfinite(logprobs).any(axis=0)))
    logprobs = np.ascontiguousarray(logprobs[:, :used])
    full = all(bool(np.all(np.abs(np.exp(rows).sum(axis=1) - 1.0) <= NOISE)) for rows in chunks(logprobs))
    logprobs.setflags(write=False)
    trace.setflags(write=False)
    return Contexts(source, logprobs, trace, full, skipped)


def chunks(rows: Floats) -> Iterator[Floats]:
    """Slices of whole rows, of about ``CHUNK_ENTRIES`` entries each."""
    step = max(1, CHUNK_ENTRIES // max(1, rows.shape[1]))
    for start in range(0, rows.shape[0], step):
        yield rows[start : start + step]
