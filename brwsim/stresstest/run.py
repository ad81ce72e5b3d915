"""The stress test: simulate a process, its starts and its i.i.d. surrogate, and set theory beside them."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brwsim.engine.run import Progress
from brwsim.errors import InvalidInput
from brwsim.parse import parse_grid
from brwsim.process import process_from_spec
from brwsim.process.base import Process
from brwsim.simulate import sweep as simulate
from brwsim.spec import canonical_json, check_seed
from brwsim.stresstest.axes import Sweep, parse_sweep, process_at, spec_of
from brwsim.stresstest.case import (
    STATIONARY,
    SURROGATE,
    Case,
    Simulated,
    Start,
    iid_values,
    mixed,
    own_values,
    strata,
)
from brwsim.stresstest.report import StressReport

DEFAULT_REL_ERR = 3e-3
_RUN = 1000  # units of progress per simulation

_Key = tuple[str, str]  # what is simulated: a label, which decides the seed, and the process as JSON


def stress(
    dist: str | Mapping[str, Any] | Process,
    P: Any,
    *,
    sweep: Sweep = None,
    trees: int | None = None,
    rel_err: float | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> StressReport:
    """Test what the assumption of independent laws does to E[X] when the laws depend on context.

    Simulates the process, started stationary and from each of its starts, and its i.i.d. surrogate: the
    same laws in the same proportions, drawn independently at every node. Beside them stand the formulas
    for independent laws, and for chains what is proved of the process itself.

    Parameters
    ----------
    dist : str, mapping or Process
        A process with context, as for ``sweep``, without ``start``.
    P : str, int or sequence of int
        Verifier capacities, root included, as for ``sweep``.
    sweep : str, sequence of str or mapping, optional
        One or two numeric keys of the process with their values, such as ``"persistence=0..0.999@12"``;
        ``spread`` stands for high - low at a fixed entropy rate.
    trees : int, optional
        Grow this many trees in every simulation.
    rel_err : float, optional
        Relative standard error of every simulation; 0.003 if neither is given.
    seed : int
        0 to 2^64 - 1.
    threads : int, optional
        Worker threads; all available processors if not given.
    progress : callable, optional
        Called with a ``Progress`` as trees are grown.

    Returns
    -------
    StressReport

    Raises
    ------
    InvalidInput
        For a process that is i.i.d. already, a bad sweep, or a bad argument of ``sweep``; before anything is
        simulated.

    Notes
    -----
    The simulations of one case are independent: the seed of each is derived from ``seed`` and what it
    is the simulation of (``stationary``, ``surrogate``, the start's name), so that the error of a ratio
    is that of two independent means. Along a sweep each of them keeps its seed, which makes curves smooth.
    Where the starts are all the states of a chain, the stationary process is their mixture with the
    weights of the stationary law and is not simulated again.

    Examples
    --------
    >>> report = stress("markov:low=0.2,high=1.166,persistence=0.9", 256, trees=200)
    >>> bool(report.ratio[0] > 1.2), [violation.formula for violation in report.violations]
    (True, ['renewal', 'annealed'])
    """
    spec = spec_of(dist)
    grid = parse_grid(P)
    _check(process_from_spec(spec))
    axes = parse_sweep(sweep, spec)
    points = [
        dict(zip((axis.key for axis in axes), values, strict=True))
        for values in itertools.product(*(axis.values for axis in axes))
    ]
    processes = [process_at(spec, point) for point in points]
    own = check_seed(seed)
    precision = DEFAULT_REL_ERR if rel_err is None and trees is None else rel_err
    wanted = _wanted(processes, with_starts=not axes)
    done: dict[_Key, Simulated] = {}
    for index, (key, process) in enumerate(wanted.items()):
        result = simulate(
            process,
            grid,
            trees=trees,
            rel_err=precision,
            seed=seed_of(own, key[0]),
            threads=threads,
            progress=_part(progress, index, len(wanted), sum(found.trees for found in done.values())),
        )
        done[key] = Simulated(result.mean, result.stderr, result.trees)
    cases = tuple(_case(process, grid, done) for process in processes)
    return StressReport(canonical_json(spec), grid, axes, cases, own, trees, precision)


def _check(process: Process) -> None:
    if process.facts().get("iid", True):
        raise InvalidInput(
            f"{process.name} is i.i.d. already; stress needs a process with context, such as markov"
        )
    if getattr(process, "start", None) is not None:
        raise InvalidInput(
            f"{process.name}: leave out start; stress looks at the stationary process and at each of its starts"
        )


def seed_of(seed: int, label: str) -> int:
    """The seed of one simulation of a stress test: the first 64 bits of the SHA-256 of seed and label."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{label}".encode()).digest()[:8], "big")


def _key(label: str, process: Process) -> _Key:
    return label, canonical_json(process.to_spec())


def _wanted(processes: list[Process], with_starts: bool) -> dict[_Key, Process]:
    """Everything to simulate, what several cases share once."""
    wanted = {}
    for process in processes:
        parts = {SURROGATE: process.surrogate()}
        if strata(process) is None:
            parts[STATIONARY] = process
        if with_starts or strata(process) is not None:
            parts.update(process.starts())
        wanted.update({_key(label, part): part for label, part in parts.items()})
    return wanted


def _case(process: Process, P: NDArray[np.int64], done: Mapping[_Key, Simulated]) -> Case:
    started = process.starts()
    found = {label: done.get(_key(label, start)) for label, start in started.items()}
    starts = tuple(
        Start(label, simulated, own_values(started[label], P))
        for label, simulated in found.items()
        if simulated is not None
    )
    weights = strata(process)
    if weights is None:
        simulated = done[_key(STATIONARY, process)]
    else:
        simulated = mixed({start.label: start.simulated for start in starts}, weights)
    return Case(
        process=process,
        P=P,
        stationary=Start(STATIONARY, simulated, own_values(process, P)),
        starts=starts,
        surrogate=done[_key(SURROGATE, process.surrogate())],
        iid=iid_values(process, P),
    )


def _part(
    progress: Callable[[Progress], None] | None, index: int, count: int, trees: int
) -> Callable[[Progress], None] | None:
    """Reports of one simulation out of ``count`` as reports of the whole."""
    if progress is None:
        return None

    def report(part: Progress) -> None:
        share = _RUN * part.done // max(part.wanted, 1)
        grown = trees + part.trees
        progress(Progress(_RUN * index + share, _RUN * count, grown, grown, is_forecast=True))

    return report
