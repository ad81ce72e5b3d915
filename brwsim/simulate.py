"""The main library call: simulate a process at a grid of P."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from brwsim.engine.backend import resolve
from brwsim.engine.rules import Finished, Precision, Rule, TreeCount
from brwsim.engine.run import Progress, run, worker_threads
from brwsim.errors import FileError, InvalidInput
from brwsim.estimate import ESTIMATORS, Estimator
from brwsim.process.base import Process
from brwsim.results.provenance import provenance
from brwsim.results.result import Result
from brwsim.results.store import check_writable, load
from brwsim.spec import SweepSpec, check_seed

DEFAULT_REL_ERR = 1e-3
MIN_REL_ERR = 1e-12
MAX_TREES = 2**28
MAX_THREADS = 1024


def sweep(
    dist: str | Mapping[str, Any] | Process = "dirichlet",
    P: Any = "1..4096",
    *,
    trees: int | None = None,
    rel_err: float | None = None,
    seed: int = 0,
    estimator: Estimator = "control",
    threads: int | None = None,
    executor: Executor | None = None,
    backend: str = "cpu",
    device: int = 0,
    out: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Estimate E[X], the expected tokens per verifier call, at every P, by simulation.

    The tree of (seed, tree index) is a fixed object: results are the same, to the last bit, for any
    number of threads, any executor and any interruption.

    Parameters
    ----------
    dist : str, mapping or Process
        The process: ``"name"``, ``"name:key=value,..."``, the same as a mapping with a ``name``, or the object.
    P : str, int or sequence of int
        Verifier capacities, root included: ``"1..4096"``, ``"1..4096:64"``, ``"1..4096@64"``, ``"16,64"``, integers.
    trees : int, optional
        Grow this many trees to the largest P.
    rel_err : float, optional
        Grow trees until the relative standard error is at most this at every P; in (0, 1]. Without
        ``trees`` and ``rel_err`` it is 0.001.
    seed : int
        0 to 2^64 - 1.
    estimator : {"control", "crude"}
        With or without the entropy control variate (docs/theory.md).
    threads : int, optional
        Worker threads; all available processors if not given.
    executor : concurrent.futures.Executor, optional
        Runs the blocks instead of threads, for example ``dask.distributed.Client(...).get_executor()``.
    backend : {"cpu", "cuda", "auto"}
        Grow trees on the processors or on an NVIDIA GPU (docs/cuda.md). ``auto`` takes a GPU where there
        is one and it pays, else, without a word, the processors. Blocks of both mix in one file.
    device : int
        Which GPU, from 0.
    out : path, optional
        HDF5 file to keep the result in, committed every few seconds. A file of the same sweep is
        continued; any other file is refused and left alone.
    progress : callable, optional
        Called with a ``Progress`` after every block.

    Returns
    -------
    Result

    Raises
    ------
    InvalidInput
        For a bad argument, before anything is computed or written.
    DeviceError
        When ``backend="cuda"`` and there is no GPU to use, or its memory does not suffice.
    FileError
        When ``out`` cannot be written or holds something else.

    Examples
    --------
    >>> result = sweep("uniform:vocab=4", P="1,5,21")   # a fixed law: exact
    >>> result.mean.tolist(), result.stderr.tolist()
    ([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    """
    spec = SweepSpec.of(dist, P)
    rule = _rule(spec, check_seed(seed), trees, rel_err, estimator)
    if threads is not None and not 1 <= threads <= MAX_THREADS:
        raise InvalidInput(f"threads must be from 1 to {MAX_THREADS}, not {threads}")
    chosen = resolve(backend, device, None if trees is None else int(trees) * int(spec.P[-1]))
    path = None if out is None else Path(out)
    known = None if path is None else _known_in(path, spec)
    finished = dict(known.blocks) if known else {}

    def commit(blocks: Finished) -> None:
        if path is not None:
            result_of(blocks).save(path)

    def result_of(blocks: Finished) -> Result:
        return Result(spec, dict(sorted(blocks.items())), estimator, path, provenance())

    if chosen.name == "cuda":
        threads = 1  # one thread keeps a GPU busy
    pool = worker_threads(threads) if executor is None else nullcontext((executor, 32))
    with pool as (workers, count):
        run(spec, seed, rule, finished, workers, count, commit, progress or (lambda _: None), chosen)
    if known and known.estimator != estimator and finished.keys() == known.blocks.keys():
        commit(finished)  # no tree was missing, but the file is to say what was asked
    return result_of(finished)


def _rule(spec: SweepSpec, seed: int, trees: int | None, rel_err: float | None, estimator: str) -> Rule:
    if estimator not in ESTIMATORS:
        raise InvalidInput(f"unknown estimator {estimator!r}; choose one of {', '.join(ESTIMATORS)}")
    if trees is not None and rel_err is not None:
        raise InvalidInput("give either trees or rel_err, not both")
    if trees is not None and not (isinstance(trees, (int, np.integer)) and 1 <= trees <= MAX_TREES):
        raise InvalidInput(f"trees must be a whole number from 1 to {MAX_TREES}, not {trees!r}")
    wanted = DEFAULT_REL_ERR if rel_err is None else rel_err
    if not 0.0 < wanted <= 1.0:
        raise InvalidInput(f"rel_err must be above 0 and at most 1, not {rel_err!r}")
    if wanted < MIN_REL_ERR:
        raise InvalidInput(
            f"rel_err {wanted:g} is out of reach of double precision; ask for {MIN_REL_ERR:g} or more"
        )
    if spec.process.is_fixed:  # every tree is the same tree
        return TreeCount(spec, 1)
    if trees is not None:
        return TreeCount(spec, int(trees))
    return Precision(spec, seed, wanted, estimator)


def _known_in(path: Path, spec: SweepSpec) -> Result | None:
    """What an existing file already has; refuses a file of something else."""
    check_writable(path)
    if not path.exists():
        return None
    known = load(path)
    if known.spec.spec_id != spec.spec_id:
        raise FileError(
            f"{path} holds another sweep ({known.spec} at P={known.spec.grid}); choose another file or delete it"
        )
    return known
