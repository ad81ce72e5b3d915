"""The tree of an n-gram model: every node's law is the model's, given the tokens on the path to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from brwsim.errors import FileError, InvalidInput
from brwsim.process.base import NgramLayout, Process
from brwsim.process.corpus import Corpus, read_corpus
from brwsim.process.laws.checks import check_vocab
from brwsim.process.ngram import SMOOTHINGS, NgramModel

_POISSON_TOLERANCE = 1e-3  # any function serves as a control; a rough solution serves nearly as well
_POISSON_STEPS = 200


@dataclass(frozen=True, init=False, eq=False)
class Ngram(Process):
    """The conditional tree of an n-gram model trained on your text or token ids, context and all.

    Parameters
    ----------
    file : str
        Text file, a directory of them, or JSONL of token ids.
    order : int
        The n: a token depends on the n - 1 before it.
    unit : {"byte", "char", "word", "id"}
        What a token is.
    smoothing : {"kneser-ney", "witten-bell"}
        How counts become probabilities (interpolated).
    pattern : str
        Which files of a directory, such as ``*.py``.
    max_bytes : int, optional
        Read no more than this.
    iid : bool
        Draw every node's context independently from the stationary law instead: the same laws without
        the memory.
    sha256 : str, optional
        Hash of the corpus as tokens, checked when it is read again.

    Raises
    ------
    InvalidInput
        For an unknown unit or smoothing, order 0 or one longer than the corpus.
    FileError
        When the corpus cannot be read, is empty or binary, or is not the one with this hash.

    Notes
    -----
    The root's context is drawn from the stationary law of the contexts along a path that follows the
    model; from there on the tree is not random. Source: docs/theory.md, "context-control-variate".
    """

    name: ClassVar[str] = "ngram"
    hint_keys: ClassVar[tuple[str, ...]] = ("file",)

    file: str
    order: int
    unit: str
    smoothing: str
    pattern: str | None
    max_bytes: int | None
    iid: bool | None
    sha256: str

    def __init__(
        self,
        file: str,
        order: int = 3,
        unit: str = "byte",
        smoothing: str = "kneser-ney",
        pattern: str | None = None,
        max_bytes: int | None = None,
        iid: bool | None = None,
        sha256: str | None = None,
    ) -> None:
        if not isinstance(file, str):
            raise InvalidInput(f"ngram: file must be a path, not {file!r}")
        if smoothing not in SMOOTHINGS:
            raise InvalidInput(f"ngram: smoothing must be one of {', '.join(SMOOTHINGS)}, not {smoothing!r}")
        if max_bytes is not None:
            max_bytes = check_vocab(self.name, max_bytes, 1, 2**40, key="max_bytes")
        if iid not in (None, False, True):
            raise InvalidInput(f"ngram: iid must be true or false, not {iid!r}")
        corpus = read_corpus(file, unit, pattern or "*", max_bytes)
        digest = corpus.digest()
        if sha256 not in (None, digest):
            raise FileError(f"{file} is not the corpus this was trained on (its sha256 is {digest[:12]}...)")
        for key, value in (
            ("file", file),
            ("order", check_vocab(self.name, order, 1, 64, key="order")),
            ("unit", unit),
            ("smoothing", smoothing),
            ("pattern", pattern),
            ("max_bytes", max_bytes),
            ("iid", iid or None),
            ("sha256", digest),
            ("_corpus", corpus),
        ):
            object.__setattr__(self, key, value)
        _ = self.model  # a corpus too short for the order is refused now

    @cached_property
    def model(self) -> NgramModel:
        """The trained model."""
        corpus: Corpus = self._corpus  # type: ignore[attr-defined]
        return NgramModel.train(corpus.tokens, corpus.boundaries, corpus.vocab, self.order, self.smoothing)

    @property
    def mu(self) -> float:
        return self.model.entropy_rate

    @property
    def mu2(self) -> float:
        return float(self.model.stationary().pi @ self.model.second)

    @property
    def vocab(self) -> int | None:
        return len(self.model.vocab)

    def layout(self) -> NgramLayout:
        model = self.model
        phi = model.solve_poisson(_POISSON_TOLERANCE, _POISSON_STEPS).phi
        return NgramLayout(model, model.stationary().pi, model.entropy, phi, bool(self.iid))

    def facts(self) -> dict[str, Any]:
        return {
            "iid": bool(self.iid),
            "mu": self.mu,
            "mu2": self.mu2,
            "vocab": self.vocab,
            "step_cdf": None,
            "markov": None,
        }

    def surrogate(self) -> Process:
        """The same laws in the same proportions, drawn independently at every node."""
        return self if self.iid else _copy(self, iid=True)

    def to_spec(self) -> dict[str, Any]:
        keys = ("file", "order", "unit", "smoothing", "pattern", "max_bytes", "iid", "sha256")
        known = {key: getattr(self, key) for key in keys}
        return {"name": self.name, **{key: value for key, value in known.items() if value is not None}}


def _copy(process: Ngram, **changes: Any) -> Ngram:
    keys: Mapping[str, Any] = {key: value for key, value in process.to_spec().items() if key != "name"}
    return Ngram(**{**keys, **changes})
