"""The empirical law: every node draws one of a pool of real next-token distributions."""

from __future__ import annotations

import math
import os
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from brwsim.errors import FileError, InvalidInput
from brwsim.process.base import Floats, KernelRow, Law, Row
from brwsim.process.laws.checks import check_vocab
from brwsim.traces.contexts import Contexts, chunks
from brwsim.traces.entropy import Tail, tail_of
from brwsim.traces.readers import read_contexts

MAX_VOCAB = 2**31 - 1

TAILS = ("spread", "concentrate")
"""The two completions of a row whose mass the file does not hold in full."""

MAX_TAIL_ENTRIES = 2**24
"""Most entries the concentrated tails of a pool may take (128 MiB)."""

MAX_CACHED_ATOMS = 2**24
"""Up to this size of pool the step law keeps its atoms sorted (256 MiB); beyond it streams over the pool."""


@dataclass(frozen=True, init=False)
class Empirical(Law):
    """A pool of next-token distributions read from a file; every node draws one of them, all equally likely.

    Parameters
    ----------
    file : str or path-like
        Anything :func:`brwsim.traces.readers.read_contexts` reads: responses with logprobs, or an array.
    tail : {"spread", "concentrate"}
        What becomes of the mass beyond the listed top k: spread evenly over the ``vocab - k`` unseen tokens
        (the completion of greatest entropy), or concentrated in tokens as likely as the k-th and one with
        the remainder (of least entropy). The truth lies between.
    vocab : int, optional
        Vocabulary size of the model. ``spread`` needs it when mass is missing. Left out, the law's ``vocab``
        is the most children that any of its rows has.
    sha256 : str, optional
        Hash of the pool, as :meth:`to_spec` writes it; the file must still hold that pool.

    Raises
    ------
    InvalidInput
        If a key is not what it should be, or ``vocab`` is needed, or too small for the missing mass.
    FileError
        If the file cannot be read, or holds another pool than the one hashed.

    Notes
    -----
    mu and mu2 are means over the pool, exact for the completed rows. A row whose total differs from 1 by
    rounding only (float32, bfloat16: see :mod:`brwsim.traces.entropy`) is divided by it, so that it is a law;
    missing mass is never handled so. A pool of one row is a fixed law.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "pool.npy"
    >>> np.save(path, np.log([[0.5, 0.5], [0.75, 0.125]]))
    >>> law = Empirical(path, vocab=4)
    >>> print(f"{law.mu:.6f}", law.rows()[1][1].tail_count)  # (ln 2 + H(.75, .125, .0625, .0625)) / 2
    0.757706 2
    """

    name: ClassVar[str] = "empirical"
    hint_keys: ClassVar[tuple[str, ...]] = ("file",)  # the hash says which pool it is
    moments_are: ClassVar[str] = "exact, of the completed pool"

    file: str
    tail: str
    sha256: str
    # the hash stands for these in comparisons
    _pool: Contexts = field(repr=False, compare=False)
    _unseen: Tail = field(repr=False, compare=False)
    _given_vocab: int | None = field(repr=False, compare=False)
    vocab: int = 0  # the default replaces the abstract property; __init__ always sets it

    def __init__(
        self,
        file: str | os.PathLike[str],
        tail: str = "spread",
        vocab: int | None = None,
        sha256: str | None = None,
    ) -> None:
        if not isinstance(file, str | os.PathLike):
            raise InvalidInput(f"{self.name}: file must be one path, not {reprlib.repr(file)}")
        if tail not in TAILS:
            raise InvalidInput(f"{self.name}: tail must be {' or '.join(TAILS)}, not {reprlib.repr(tail)}")
        if sha256 is not None and not isinstance(sha256, str):
            raise InvalidInput(f"{self.name}: sha256 must be a text, not {reprlib.repr(sha256)}")
        given = None if vocab is None else check_vocab(self.name, vocab, 1, MAX_VOCAB)
        pool = read_contexts(file)
        digest = pool.digest()
        if sha256 is not None and sha256.lower() != digest:
            raise FileError(
                f"{pool.source} has changed: its pool hashes to {digest[:12]}..., not to {sha256[:12]}... "
                "as it did; restore the file, or start afresh with the new one"
            )
        unseen = tail_of(pool.logprobs, given, pool.source, option="vocab")
        if tail == "spread" and given is None and unseen.missing.any():
            raise InvalidInput(
                f"{pool.source}: {np.count_nonzero(unseen.missing)} of {len(pool)} contexts miss mass "
                f"beyond the top {pool.k}; give the model's vocabulary size (vocab=128256) to spread it, "
                "or tail=concentrate"
            )
        for key, value in {"_pool": pool, "_unseen": unseen, "_given_vocab": given}.items():
            object.__setattr__(self, key, value)
        if tail == "concentrate" and self._tail_tokens.sum() > MAX_TAIL_ENTRIES:
            raise InvalidInput(
                f"{pool.source}: concentrated tails would take {self._tail_tokens.sum():.3g} entries, "
                f"more than {MAX_TAIL_ENTRIES}; use tail=spread with vocab"
            )
        children = unseen.listed + (self._tail_tokens if tail == "concentrate" else 0.0)
        for key, value in {
            "file": os.fspath(file),
            "tail": tail,
            "vocab": int(children.max()) if given is None else given,
            "sha256": digest,
        }.items():
            object.__setattr__(self, key, value)

    @property
    def mu(self) -> float:
        return self._moments[0]

    @property
    def mu2(self) -> float:
        return self._moments[1]

    @property
    def is_fixed(self) -> bool:
        return len(self._pool) == 1

    def rows(self) -> list[tuple[float, KernelRow]]:
        weight = 1.0 / len(self._pool)
        listed, room = self._unseen.listed.astype(np.int64), self._unseen.room
        rows: list[tuple[float, KernelRow]] = []
        for shares, masses in self._completed():
            for share, mass in zip(shares, masses, strict=True):
                i = len(rows)
                known, (cap, rest) = share[: listed[i]], share[-2:]
                if self.tail == "spread":
                    row = Row(known.copy(), float(cap), int(room[i])) if cap > 0.0 else Row(known.copy())
                else:
                    repeats = round(float(mass[-2] / cap)) if cap > 0.0 else 0
                    last = [rest] if rest > 0.0 else []
                    row = Row(np.concatenate([known, np.full(repeats, cap), last]))
                row.probs.setflags(write=False)
                rows.append((weight, row))
        return rows

    def step_cdf(self, y: Floats) -> Floats:
        if self._atoms is None:
            return self._streamed_cdf(np.asarray(y, dtype=np.float64))
        atoms, values = self._atoms
        return np.asarray(values[np.searchsorted(atoms, y, side="right")], dtype=np.float64)

    def to_spec(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "file": self.file,
            "tail": self.tail,
            "vocab": self._given_vocab,
            "sha256": self.sha256,
        }

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """The pair mu, mu2."""
        first, second = [], []
        for shares, masses in self._completed():
            logs = np.log(shares, where=shares > 0.0, out=np.zeros_like(shares))
            first.append(float(-(masses * logs).sum()))
            second.append(float((masses * logs * logs).sum()))
        count = len(self._pool)
        return max(math.fsum(first), 0.0) / count, math.fsum(second) / count

    @cached_property
    def _tail_tokens(self) -> Floats:
        """Number of tokens in the concentrated tail of each row."""
        at_cap, rest = self._unseen.concentrated()
        return np.rint(at_cap / self._unseen.cap) + (rest > 0.0)

    def _completed(self) -> Iterator[tuple[Floats, Floats]]:
        """Slices of the pool as laws: shares and the mass at each, (rows, k + 2).

        The last two columns are the tail: tokens of one weight, and the remainder token; 0 is none.
        """
        unseen, start = self._unseen, 0
        concentrated = unseen.concentrated() if self.tail == "concentrate" else None
        for logprobs in chunks(self._pool.logprobs):
            part = slice(start, start + logprobs.shape[0])
            start = part.stop
            shares = np.zeros((logprobs.shape[0], logprobs.shape[1] + 2))
            np.exp(logprobs, out=shares[:, :-2])
            masses = shares.copy()
            if concentrated is not None:
                at_cap, rest = concentrated[0][part], concentrated[1][part]
                shares[:, -2] = np.where(at_cap > 0.0, unseen.cap[part], 0.0)
                masses[:, -2] = at_cap
                shares[:, -1] = masses[:, -1] = rest
            else:
                missing = unseen.missing[part]
                each = np.divide(missing, unseen.room[part], where=missing > 0.0, out=np.zeros_like(missing))
                shares[:, -2] = np.minimum(each, unseen.cap[part])
                masses[:, -2] = missing
            total = masses.sum(axis=1, keepdims=True)  # 1 up to rounding: the tail holds what was missing
            yield shares / total, masses / total

    def _weighted_atoms(self) -> Iterator[tuple[Floats, Floats]]:
        """Steps -ln p and their probabilities, in slices of the pool."""
        for shares, masses in self._completed():
            some = shares > 0.0
            yield -np.log(shares[some]), masses[some] / len(self._pool)

    @cached_property
    def _atoms(self) -> tuple[Floats, Floats] | None:
        """Where the step law jumps, and its value after 0, 1, 2, ... jumps; None for a huge pool."""
        if self._pool.logprobs.size > MAX_CACHED_ATOMS:
            return None
        parts = list(self._weighted_atoms())
        atoms, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.argsort(atoms, kind="stable")
        values = np.zeros(atoms.size + 1)
        values[1:] = np.minimum(np.cumsum(weights[order]), 1.0)
        values[-1] = 1.0
        return atoms[order], values

    def _streamed_cdf(self, y: Floats) -> Floats:
        """The step law at ``y`` by one pass over the pool, in memory that does not grow with it."""
        points, where = np.unique(y, return_inverse=True)
        jumps = np.zeros(points.size + 1)
        for atoms, weights in self._weighted_atoms():
            # the first point at or beyond an atom is the first to count it
            jumps += np.bincount(np.searchsorted(points, atoms, side="left"), weights, minlength=jumps.size)
        return np.asarray(np.minimum(np.cumsum(jumps)[:-1], 1.0)[where].reshape(y.shape), dtype=np.float64)
