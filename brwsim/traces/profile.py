"""The profile of real model output: mu and mu2 per file and pooled (the paper's Table 1)."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.traces.contexts import Floats, Integers
from brwsim.traces.entropy import EntropyBounds, check_vocab_size, entropy_bounds
from brwsim.traces.readers import read_contexts
from brwsim.traces.stderr import StandardErrors, standard_errors


@dataclass(frozen=True)
class Range:
    """A mean known to lie between two values, each with its standard error (nan: unknown)."""

    lower: float
    lower_stderr: float
    upper: float
    upper_stderr: float

    def to_dict(self) -> dict[str, float | None]:
        """JSON-ready: None where a value is infinite or unknown."""
        return {
            "lower": _json(self.lower),
            "lower_stderr": _json(self.lower_stderr),
            "upper": _json(self.upper),
            "upper_stderr": _json(self.upper_stderr),
        }


@dataclass(frozen=True)
class Summary:
    """What one file (or all of them) says about the law of the next token.

    Attributes
    ----------
    source : str
        The file, or ``pooled``.
    contexts, responses : int
        Next-token distributions read, and responses they come from.
    k : tuple of (int, int)
        Least and greatest number of tokens listed per context.
    covered : float, in (0, 1]
        Mean mass of the listed tokens.
    mu, mu2 : Range
        Mean entropy (nats) and second log-moment (nats squared): least and greatest values that the listed
        probabilities allow. ``upper`` is ``inf`` when mass is missing and the vocabulary size is unknown.
    unbounded : int
        Contexts that make it so.
    stderr_method : str
        How the standard errors allow for correlation along a response.
    skipped : int
        Failed requests left out.
    """

    source: str
    contexts: int
    responses: int
    k: tuple[int, int]
    covered: float
    mu: Range
    mu2: Range
    unbounded: int
    stderr_method: str
    skipped: int

    @property
    def inverse_mu(self) -> tuple[float, float]:
        """Least and greatest 1/mu: the optimal growth of E[X] per unit of ln P."""
        return _inverse(self.mu.upper), _inverse(self.mu.lower)

    @property
    def theorem1_slope(self) -> tuple[float, float]:
        """Least and greatest (mu + mu2)/mu^2 = 1/mu + mu2/mu^2, Theorem 1's slope; ``inf`` when unbounded.

        It falls with mu and rises with mu2, so these are its values at opposite corners; the least is 0 when
        the upper mu is infinite.
        """
        return _slope(self.mu.upper, self.mu2.lower), _slope(self.mu.lower, self.mu2.upper)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: None where a value is infinite or unknown."""
        return {
            "source": self.source,
            "contexts": self.contexts,
            "responses": self.responses,
            "k": list(self.k),
            "covered": self.covered,
            "mu": self.mu.to_dict(),
            "mu2": self.mu2.to_dict(),
            "inverse_mu": {"lower": _json(self.inverse_mu[0]), "upper": _json(self.inverse_mu[1])},
            "theorem1_slope": {
                "lower": _json(self.theorem1_slope[0]),
                "upper": _json(self.theorem1_slope[1]),
            },
            "unbounded": self.unbounded,
            "stderr_method": self.stderr_method,
            "skipped": self.skipped,
        }


@dataclass(frozen=True)
class Profile:
    """Summaries per file and of all files together; ``str()`` is a table."""

    files: tuple[Summary, ...]
    pooled: Summary
    vocab_size: int | None

    def to_dict(self) -> dict[str, Any]:
        """The profile as JSON-ready data; None where a value is infinite or unknown."""
        return {
            "vocab_size": self.vocab_size,
            "files": [summary.to_dict() for summary in self.files],
            "pooled": self.pooled.to_dict(),
        }

    def __str__(self) -> str:
        shown = self.files if len(self.files) == 1 else (*self.files, self.pooled)
        header = ["file", "contexts", "responses", "k", "covered"]
        moments = [
            [*header, "mu lower", "mu upper", "mu2 lower", "mu2 upper"],
            *([*_about(s), *_cells(s.mu), *_cells(s.mu2)] for s in shown),
        ]
        slopes = [
            ["file", "1/mu lower", "upper", "(mu+mu2)/mu^2 lower", "upper"],
            *([_short(s.source), *map(_number, (*s.inverse_mu, *s.theorem1_slope))] for s in shown),
        ]
        return "\n\n".join(["\n".join(_table(moments)), "\n".join(_table(slopes)), "\n".join(self._notes())])

    def _notes(self) -> list[str]:
        pooled = self.pooled
        notes = [
            "mu in nats, mu2 in nats squared; lower and upper are the extremes that the listed tokens allow.",
            f"Standard errors: {pooled.stderr_method}.",
        ]
        if pooled.unbounded:
            notes.append(
                f"{pooled.unbounded} of {pooled.contexts} contexts miss mass and the vocabulary size "
                "is unknown, so the upper values are infinite: give --vocab-size."
            )
        if pooled.skipped:
            notes.append(f"{pooled.skipped} failed requests were left out.")
        return notes


def profile(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], vocab_size: int | None = None
) -> Profile:
    """Mean entropy and second log-moment of real model output.

    Parameters
    ----------
    paths : path or iterable of paths
        Files that :func:`brwsim.traces.readers.read_contexts` reads.
    vocab_size : int, optional
        The model's vocabulary size; without it the upper values are infinite when mass is missing.

    Returns
    -------
    Profile
        Nats and nats squared.

    Raises
    ------
    InvalidInput
        No path, or a vocabulary size that is no positive whole number or too small for a row.
    FileError
        A file cannot be read or is not what it should be.

    Notes
    -----
    mu, mu2 and their use: arXiv 2512.11718, Table 1. The bounds on the missing tail are derived in
    :mod:`brwsim.traces.entropy`, the standard errors described in :mod:`brwsim.traces.stderr`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "full.npy"
    >>> np.save(path, np.log([[0.5, 0.5], [0.25, 0.75]]))
    >>> print(f"{profile(path).pooled.mu.lower:.4f}")
    0.6277
    """
    check_vocab_size(vocab_size)
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not files:
        raise InvalidInput("There is no file to profile; give at least one.")
    parts: list[tuple[Summary, EntropyBounds, Integers]] = []
    for path in files:
        contexts = read_contexts(path)
        bounds = entropy_bounds(contexts.logprobs, vocab_size, contexts.source)
        k = (contexts.k, contexts.k)
        summary = _summarise(contexts.source, bounds, contexts.trace, k, contexts.skipped)
        parts.append((summary, bounds, contexts.trace))
    return Profile(tuple(summary for summary, _, _ in parts), _pool(parts), vocab_size)


def _pool(parts: Sequence[tuple[Summary, EntropyBounds, Integers]]) -> Summary:
    """The summary of all contexts together; responses of different files are different responses."""
    summaries = [summary for summary, _, _ in parts]
    bounds = EntropyBounds(
        **{
            name: np.concatenate([getattr(part, name) for _, part, _ in parts])
            for name in ("h_lower", "h_upper", "s_lower", "s_upper", "covered")
        }
    )
    offsets = np.cumsum([0] + [int(trace.max()) + 1 for _, _, trace in parts])
    trace = np.concatenate(
        [trace + offset for (_, _, trace), offset in zip(parts, offsets[:-1], strict=True)]
    )
    k = (min(s.k[0] for s in summaries), max(s.k[1] for s in summaries))
    return _summarise("pooled", bounds, trace, k, sum(s.skipped for s in summaries))


def _summarise(
    source: str, bounds: EntropyBounds, trace: Integers, k: tuple[int, int], skipped: int
) -> Summary:
    errors = standard_errors(trace)
    return Summary(
        source=source,
        contexts=trace.size,
        responses=int(np.unique(trace).size),
        k=k,
        covered=float(bounds.covered.mean()),
        mu=_range(bounds.h_lower, bounds.h_upper, errors),
        mu2=_range(bounds.s_lower, bounds.s_upper, errors),
        unbounded=int(np.count_nonzero(np.isinf(bounds.h_upper))),
        stderr_method=errors.method,
        skipped=skipped,
    )


def _range(lower: Floats, upper: Floats, errors: StandardErrors) -> Range:
    return Range(float(lower.mean()), errors.of_mean(lower), float(upper.mean()), errors.of_mean(upper))


def _inverse(mu: float) -> float:
    return 1.0 / mu if mu > 0.0 else math.inf


def _slope(mu: float, mu2: float) -> float:
    if math.isinf(mu):
        return 0.0
    if math.isinf(mu2) or mu <= 0.0:
        return math.inf
    return (mu + mu2) / mu**2


def _json(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _about(summary: Summary) -> list[str]:
    low, high = summary.k
    return [
        _short(summary.source),
        str(summary.contexts),
        str(summary.responses),
        str(low) if low == high else f"{low}-{high}",
        f"{summary.covered:.4f}",
    ]


def _cells(value: Range) -> list[str]:
    return [_with_error(value.lower, value.lower_stderr), _with_error(value.upper, value.upper_stderr)]


def _with_error(value: float, stderr: float) -> str:
    if math.isinf(value):
        return "inf"
    return f"{value:.4f} ± {stderr:.4f}" if math.isfinite(stderr) else f"{value:.4f}"


def _number(value: float) -> str:
    return f"{value:.4f}"


def _short(source: str, width: int = 44) -> str:
    return source if len(source) <= width else "..." + source[3 - width :]


def _table(cells: list[list[str]]) -> list[str]:
    """Lines of a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
