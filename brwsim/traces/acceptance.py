r"""Acceptance lengths: what a verifier call yields, per position of the text or per call.

Conventions
-----------
A length counts the tokens a call yields, the verifier's own (bonus) token included, so it is at least 1. Where
a drafter's lists contain a 0 they cannot be such, and are taken to count accepted draft tokens alone: 1 is
added to all of them.

Lists *per position* say at every position of the text what a call started there would yield (calls overlap).
Lists *per call* hold the calls that were made. The key tells: ``acc_len`` and ``acc_lens`` are per position;
``accept_length``, ``accept_lengths``, ``accept_lens``, ``acceptance_length`` and ``acceptance_lengths`` are per
call, as Spec-Bench and its kin write them, unless the same object or one around it has a list of output tokens
of just that length (``generated_token_ids``, ``output_token_ids``, ``output_ids``, ``token_ids``, ``tokens``).

The decode path starts at the first position, and each call advances by its length; the last one may reach
beyond the end. tau, the mean over the calls of the path, is what a user gets; the mean over positions weighs
every position alike. For lengths independent from position to position both are the same; otherwise they
differ, as where hard positions cluster a call's length says something on where the next one starts. Lengths
at neighbouring positions are dependent by construction, as far as calls overlap; those along the path are not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from brwsim.errors import FileError
from brwsim.traces.contexts import Floats, Integers
from brwsim.traces.correlations import is_constant
from brwsim.traces.dependence import MIN_LENGTH, Dependence, Tests, dependence, no_tests
from brwsim.traces.responses import _records
from brwsim.traces.series import MIN_PAIRS, Series, make_series
from brwsim.traces.stderr import MIN_CLUSTERS, standard_errors
from brwsim.traces.text import clean, short, table, with_error

_PER_POSITION = ("acc_len", "acc_lens")
_PER_CALL = ("accept_length", "accept_lengths", "accept_lens", "acceptance_length", "acceptance_lengths")
_KEYS = (*_PER_POSITION, *_PER_CALL)
_TOKENS = ("generated_token_ids", "output_token_ids", "output_ids", "token_ids", "tokens")
_LIMIT = 1 << 20  # bytes looked at to tell what a file holds, and the longest credible length
_HAS_LENGTHS = re.compile(rb'"(?:' + "|".join(_KEYS).encode() + rb')"\s*:\s*\[')
_HAS_LOGPROBS = re.compile(rb'"(?:top_|prompt_|token_)?logprobs"\s*:')


@dataclass(frozen=True, eq=False)
class AcceptanceTrace:
    """The acceptance lengths of one drafter.

    Attributes
    ----------
    source, drafter : str
        The file, and the keys that lead to the list (or the key itself).
    lengths : ndarray of int64, shape (entries,)
        Tokens per call, the verifier's own included.
    trace : ndarray of int64, shape (entries,)
        The response of each, numbered from 0; in order along it.
    per_position : bool
        One entry per position of the text; else one per call.
    skipped : int
        Records without a response, and empty lists.
    """

    source: str
    drafter: str
    lengths: Integers
    trace: Integers
    per_position: bool
    skipped: int = 0

    def path(self) -> Integers:
        """Indices of the calls that decoding makes."""
        if not self.per_position:
            return np.arange(self.lengths.size, dtype=np.int64)
        visited = []
        starts = np.flatnonzero(np.diff(self.trace, prepend=-1))
        ends = [*starts[1:].tolist(), self.lengths.size]
        lengths = self.lengths.tolist()
        for here, end in zip(starts.tolist(), ends, strict=True):
            while here < end:
                visited.append(here)
                here += lengths[here]
        return np.array(visited, dtype=np.int64)


@dataclass(frozen=True)
class Acceptance:
    """Statistics of one drafter's acceptance lengths; nan where there is nothing to say.

    Attributes
    ----------
    source, drafter : str
    responses, positions, calls : int
        ``positions`` is 0 where lengths are known per call only.
    tau, tau_stderr : float
        Mean length of the calls along the decode path.
    position_mean, position_stderr : float
        Mean length over positions.
    excess, excess_stderr : float
        ``tau - position_mean``, with the error of the difference (from ten responses on).
    path_law, position_law : tuple of float
        Shares of lengths 1, 2, ... along the path, and over positions (empty where unknown).
    skipped : int
    """

    source: str
    drafter: str
    responses: int
    positions: int
    calls: int
    tau: float
    tau_stderr: float
    position_mean: float
    position_stderr: float
    excess: float
    excess_stderr: float
    path_law: tuple[float, ...]
    position_law: tuple[float, ...]
    skipped: int
    _path_tests: Tests = field(repr=False, compare=False)
    _position_tests: Tests = field(repr=False, compare=False)

    @cached_property
    def path_dependence(self) -> Dependence | None:
        """Tests along the path; None where the longest series has fewer than 20 entries, or all are equal."""
        return self._path_tests()

    @cached_property
    def position_dependence(self) -> Dependence | None:
        """The same over positions."""
        return self._position_tests()

    def to_dict(self, dependence: bool = True) -> dict[str, Any]:
        """JSON-ready: None where a value is unknown. The tests take a while and may be left out."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if not f.name.startswith("_")}
        if dependence:
            for name in ("path_dependence", "position_dependence"):
                report = getattr(self, name)
                found[name] = report.to_dict() if report else None
        cleaned: dict[str, Any] = clean(found)
        return cleaned

    @property
    def dependences(self) -> list[Dependence]:
        """The reports there are."""
        return [report for report in (self.position_dependence, self.path_dependence) if report]


def holds_acceptance(path: Path) -> bool:
    """Whether a file looks like acceptance lengths: its beginning has such a list and no log-probabilities."""
    if path.suffix.lower() in {".npy", ".npz", ".h5", ".hdf5"}:
        return False
    try:
        with path.open("rb") as stream:
            head = stream.read(_LIMIT)
    except (OSError, ValueError):
        return False  # the reader says what is wrong
    return bool(_HAS_LENGTHS.search(head)) and not _HAS_LOGPROBS.search(head)


def read_acceptance(path: Path) -> tuple[AcceptanceTrace, ...]:
    """Read the acceptance lengths of every drafter in a JSON or JSONL file.

    Each record is an object with one or more lists of lengths under the keys above, at any depth:
    ``{"acc_eagle": {"acc_len": [1, 5, 4]}, "acc_ngram": {"acc_len": [1, 1, 2]}}`` holds two drafters.

    Raises
    ------
    FileError
        Names the line of a record without lengths, or of one that is no whole number of at least 0.
    """
    found: dict[str, list[tuple[list[int], bool]]] = {}
    skipped: dict[str, int] = {}
    failed = 0
    for line, document in _records(path):
        where = f"{path}: line {line}" if line else f"{path}"
        for i, record in enumerate(document if isinstance(document, list) else [document]):
            place = f"{where}, item {i}" if isinstance(document, list) else where
            if isinstance(record, dict) and record.get("error"):
                failed += 1
                continue
            lists = list(_lists(record, (), None))
            if not lists:
                raise FileError(
                    f"{place} holds no acceptance lengths; expected a list under one of {', '.join(_KEYS)}"
                )
            for drafter, values, per_position in lists:
                lengths = _whole_numbers(f"{place}, {drafter}", values)
                if lengths:
                    found.setdefault(drafter, []).append((lengths, per_position))
                else:
                    skipped[drafter] = skipped.get(drafter, 0) + 1
    if not found:
        raise FileError(f"{path} holds no acceptance length: every list in it is empty")
    return tuple(
        _trace(str(path), drafter, responses, failed + skipped.get(drafter, 0))
        for drafter, responses in found.items()
    )


def _lists(value: Any, keys: tuple[str, ...], tokens: int | None) -> Iterator[tuple[str, list[Any], bool]]:
    """(drafter, list, whether per position) of all lists of lengths inside a value."""
    if isinstance(value, list):
        for item in value:
            yield from _lists(item, keys, tokens)
    if not isinstance(value, dict):
        return
    for name in _TOKENS:
        if isinstance(value.get(name), list):
            tokens = len(value[name])
            break
    for key, item in value.items():
        if key in _KEYS and isinstance(item, list):
            yield ".".join(keys) or key, item, key in _PER_POSITION or len(item) == tokens
        elif isinstance(item, dict) or (isinstance(item, list) and item and isinstance(item[0], dict)):
            yield from _lists(item, (*keys, key), tokens)


def _whole_numbers(place: str, values: list[Any]) -> list[int]:
    for i, value in enumerate(values):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= _LIMIT or value != int(value):
            shown = value if number or value is None or isinstance(value, bool) else type(value).__name__
            raise FileError(f"{place}: entry {i} is {shown}; a length is a whole number from 0 to {_LIMIT}")
    return [int(value) for value in values]


def _trace(
    source: str, drafter: str, responses: list[tuple[list[int], bool]], skipped: int
) -> AcceptanceTrace:
    per_call = [values for values, per_position in responses if not per_position]
    # a list of ones per call is as long as its text; what others say of the drafter decides
    mixed = [values for values, per_position in responses if per_position and per_call and max(values) > 1]
    if mixed:
        raise FileError(
            f"{source}: {drafter} has lengths per position in {len(mixed)} records "
            f"and per call in {len(per_call)}; split the file"
        )
    lengths = np.concatenate([np.array(values, dtype=np.int64) for values, _ in responses])
    trace = np.repeat(np.arange(len(responses), dtype=np.int64), [len(values) for values, _ in responses])
    if int(lengths.min()) == 0:
        lengths = lengths + 1
    return AcceptanceTrace(source, drafter, lengths, trace, not per_call, skipped)


def acceptance(trace: AcceptanceTrace) -> Acceptance:
    """Statistics of acceptance lengths along the decode path and, where known, over positions.

    Examples
    --------
    >>> trace = AcceptanceTrace("x", "d", np.array([2, 1, 3, 2, 1]), np.zeros(5, dtype=np.int64), True)
    >>> found = acceptance(trace)
    >>> found.calls, found.tau, found.position_mean
    (2, 2.5, 1.8)
    """
    path = trace.path()
    values = trace.lengths.astype(np.float64)
    on_path, owner = values[path], trace.trace[path]
    name = f"{trace.source} {trace.drafter}"
    mean, error = math.nan, math.nan
    law: tuple[float, ...] = ()
    position_tests: Tests = no_tests
    if trace.per_position:
        mean, error = float(values.mean()), standard_errors(trace.trace).of_mean(values)
        law = _law(trace.lengths)
        position_tests = partial(_tested, values, trace.trace, f"{name}, positions")
    tau = float(on_path.mean())
    return Acceptance(
        source=trace.source,
        drafter=trace.drafter,
        responses=int(np.unique(trace.trace).size),
        positions=values.size if trace.per_position else 0,
        calls=path.size,
        tau=tau,
        tau_stderr=standard_errors(owner).of_mean(on_path),
        position_mean=mean,
        position_stderr=error,
        excess=tau - mean,
        excess_stderr=_difference(values, trace.trace, path) if trace.per_position else math.nan,
        path_law=_law(trace.lengths[path]),
        position_law=law,
        skipped=trace.skipped,
        _path_tests=partial(_tested, on_path, owner, f"{name}, calls"),
        _position_tests=position_tests,
    )


def _law(lengths: Integers) -> tuple[float, ...]:
    counts = np.bincount(lengths)[1:]
    return tuple((counts / counts.sum()).tolist())


def _tested(values: Floats, trace: Integers, name: str) -> Dependence | None:
    series: Series = make_series(values, trace, name=name)
    pairs = int(np.count_nonzero(series.previous >= 0))
    if series.longest < MIN_LENGTH or pairs < MIN_PAIRS or is_constant(values):
        return None
    return dependence(series, source=name)


def _difference(values: Floats, trace: Integers, path: Integers) -> float:
    """Standard error of (mean along the path) - (mean over positions), clustered by response."""
    clusters = int(np.unique(trace).size)
    if clusters < MIN_CLUSTERS:
        return math.nan
    along = values[path]
    sums = np.bincount(trace[path], along - along.mean(), clusters) / path.size
    sums -= np.bincount(trace, values - values.mean(), clusters) / values.size
    return math.sqrt(clusters / (clusters - 1) * float(sums @ sums))


def acceptance_tables(reports: list[Acceptance]) -> str:
    """A table of several drafters."""
    cells = [
        ["acceptance", "drafter", "responses", "positions", "calls", "tau", "mean at positions", "excess"]
    ]
    for report in reports:
        known = report.positions > 0
        cells.append(
            [
                *(short(report.source), report.drafter, str(report.responses)),
                *(str(report.positions) if known else "-", str(report.calls)),
                with_error(report.tau, report.tau_stderr),
                with_error(report.position_mean, report.position_stderr) if known else "-",
                with_error(report.excess, report.excess_stderr) if known else "-",
            ]
        )
    note = (
        "Lengths count the verifier's own token. tau: mean of the calls that decoding makes;\n"
        "excess: tau minus the mean over positions, zero for independent lengths."
    )
    skipped = sum(report.skipped for report in reports)
    if skipped:
        note += f"\n{skipped} failed requests or empty lists were left out."
    return f"{table(cells)}\n\n{note}"
