"""The profile of real model output: mu and mu2 per file and pooled (the paper's Table 1), and dependence.

Files of log-probabilities give entropies and, where responses are long enough, tests of their independence;
files of acceptance lengths give their statistics (:mod:`brwsim.traces.acceptance`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from brwsim.errors import InvalidInput
from brwsim.traces.acceptance import (
    Acceptance,
    acceptance,
    acceptance_tables,
    holds_acceptance,
    read_acceptance,
)
from brwsim.traces.contexts import Contexts, Floats, Integers
from brwsim.traces.correlations import is_constant
from brwsim.traces.dependence import MIN_LENGTH, Dependence, Tests, dependence_tables, no_tests
from brwsim.traces.dependence import dependence as test_dependence
from brwsim.traces.entropy import EntropyBounds, check_vocab_size, entropy_bounds
from brwsim.traces.readers import read_contexts
from brwsim.traces.series import MIN_PAIRS, make_series, read_parents
from brwsim.traces.stderr import StandardErrors, standard_errors
from brwsim.traces.summary import Range, Summary
from brwsim.traces.text import number, short, table, with_error


@dataclass(frozen=True)
class Profile:
    """Summaries per file of log-probabilities and of all together, and acceptance lengths; ``str()`` is a table.

    Attributes
    ----------
    files : tuple of Summary
        Files of log-probabilities.
    pooled : Summary or None
        All of them together; None when there is none.
    vocab_size : int or None
    acceptance : tuple of Acceptance
        One for each drafter of each file of acceptance lengths.
    shows_dependence : bool
        Whether ``str()`` and ``to_dict()`` hold the tests of independence, which take seconds.
    """

    files: tuple[Summary, ...]
    pooled: Summary | None
    vocab_size: int | None
    acceptance: tuple[Acceptance, ...] = ()
    shows_dependence: bool = False

    @property
    def dependence(self) -> tuple[Dependence, ...]:
        """All tests of independence there are, done when first asked for."""
        of_files = [summary.dependence for summary in self.files if summary.dependence]
        return (*of_files, *(report for drafter in self.acceptance for report in drafter.dependences))

    def to_dict(self) -> dict[str, Any]:
        """The profile as JSON-ready data; None where a value is infinite or unknown."""
        return {
            "vocab_size": self.vocab_size,
            "files": [summary.to_dict(self.shows_dependence) for summary in self.files],
            "pooled": self.pooled.to_dict(self.shows_dependence) if self.pooled else None,
            "acceptance": [report.to_dict(self.shows_dependence) for report in self.acceptance],
        }

    def __str__(self) -> str:
        parts = self._entropies(self.pooled) if self.pooled else []
        if self.acceptance:
            parts.append(acceptance_tables(list(self.acceptance)))
        if self.shows_dependence and self.dependence:
            parts.append(dependence_tables(list(self.dependence)))
        return "\n\n".join(parts)

    def _entropies(self, pooled: Summary) -> list[str]:
        shown = self.files if len(self.files) == 1 else (*self.files, pooled)
        header = ["file", "contexts", "responses", "k", "covered"]
        moments = [
            [*header, "mu lower", "mu upper", "mu2 lower", "mu2 upper"],
            *([*_about(s), *_cells(s.mu), *_cells(s.mu2)] for s in shown),
        ]
        slopes = [
            ["file", "1/mu lower", "upper", "(mu+mu2)/mu^2 lower", "upper"],
            *([short(s.source), *map(number, (*s.inverse_mu, *s.theorem1_slope))] for s in shown),
        ]
        return [table(moments), table(slopes), "\n".join(_notes(pooled))]


def _notes(pooled: Summary) -> list[str]:
    notes = [
        "mu in nats, mu2 in nats squared; lower and upper are the extremes that the listed tokens allow.",
        "covered: mean probability of the listed tokens. 1/mu: tokens that the best tree gains per ln P;",
        "(mu+mu2)/mu^2: tokens per ln P that theorem1 allows.",
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
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    vocab_size: int | None = None,
    dependence: bool = False,
) -> Profile:
    """Mean entropy, second log-moment and dependence of real model output; acceptance lengths of drafters.

    Parameters
    ----------
    paths : path or iterable of paths
        Files that :func:`brwsim.traces.readers.read_contexts` reads, or
        :func:`brwsim.traces.acceptance.read_acceptance`; the beginning of a file tells which.
    vocab_size : int, optional
        The model's vocabulary size; without it the upper values are infinite when mass is missing.
    dependence : bool
        Whether the text and the data of the profile hold the tests of independence. They take seconds;
        ``Profile.dependence`` does them when asked in any case.

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
        raise InvalidInput("there is no file to profile; give at least one")
    parts: list[tuple[Summary, EntropyBounds, Integers]] = []
    drafters: list[Acceptance] = []
    for path in map(Path, files):
        if holds_acceptance(path):
            drafters += [acceptance(trace) for trace in read_acceptance(path)]
            continue
        contexts = read_contexts(path)
        bounds = entropy_bounds(contexts.logprobs, vocab_size, contexts.source)
        k = (contexts.k, contexts.k)
        tests = _tests(path, contexts, bounds.h_lower)
        summary = _summarise(contexts.source, bounds, contexts.trace, k, contexts.skipped, tests)
        parts.append((summary, bounds, contexts.trace))
    pooled = _pool(parts) if parts else None
    return Profile(tuple(summary for summary, _, _ in parts), pooled, vocab_size, tuple(drafters), dependence)


def _tests(path: Path, contexts: Contexts, entropies: Floats) -> Tests:
    """Tests of independence, where there is enough to test; a tree that is none is refused now."""
    parent = read_parents(path, contexts)
    series = make_series(entropies, contexts.trace, parent, contexts.source)
    pairs = int(np.count_nonzero(series.previous >= 0))
    long = parent is not None or series.longest >= MIN_LENGTH
    if not long or pairs < MIN_PAIRS or is_constant(entropies):
        return no_tests
    return partial(test_dependence, series, source=contexts.source, entropy=True)


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
    source: str,
    bounds: EntropyBounds,
    trace: Integers,
    k: tuple[int, int],
    skipped: int,
    tests: Tests = no_tests,
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
        _tests=tests,
    )


def _range(lower: Floats, upper: Floats, errors: StandardErrors) -> Range:
    return Range(float(lower.mean()), errors.of_mean(lower), float(upper.mean()), errors.of_mean(upper))


def _about(summary: Summary) -> list[str]:
    low, high = summary.k
    return [
        short(summary.source),
        str(summary.contexts),
        str(summary.responses),
        str(low) if low == high else f"{low}-{high}",
        f"{summary.covered:.4f}",
    ]


def _cells(value: Range) -> list[str]:
    return [with_error(value.lower, value.lower_stderr), with_error(value.upper, value.upper_stderr)]
