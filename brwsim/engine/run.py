"""Run the blocks a rule asks for, on any executor, and keep what is finished."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from brwsim.engine.backend import CPU, Backend
from brwsim.engine.compute import compute_blocks, warm_up
from brwsim.engine.plan import Block
from brwsim.engine.rules import BlockKey, Finished, Rule
from brwsim.estimate import BlockStats
from brwsim.spec import SweepSpec

_COMMIT_SECONDS = 5.0
_COMMIT_SHARE = 20.0  # a commit may take at most one part in this many of the time


@dataclass(frozen=True)
class Progress:
    """How far a run is; nodes are trees times P, and what was finished before the run does not count.

    Attributes
    ----------
    done, trees : int
        Nodes and trees grown.
    wanted, wanted_trees : int
        Nodes and trees it takes, as far as is known.
    is_forecast : bool
        Whether ``wanted`` is all that is expected: not in the first round of a wanted precision.
    seconds : float
        Since the first tree.
    found : mapping of int to int
        Trees that were finished before the run, by seed.
    """

    done: int
    wanted: int
    trees: int
    wanted_trees: int = 0
    is_forecast: bool = False
    seconds: float = 0.0
    found: Mapping[int, int] = field(default_factory=dict)

    @property
    def seconds_left(self) -> float:
        """Time still needed at the speed so far; nan while it cannot be told."""
        if not self.is_forecast or not self.done:
            return math.nan
        return (self.wanted - self.done) * self.seconds / self.done


def run(
    spec: SweepSpec,
    seed: int,
    rule: Rule,
    finished: dict[BlockKey, BlockStats],
    executor: Executor,
    workers: int,
    commit: Callable[[Finished], None],
    report: Callable[[Progress], None],
    backend: Backend = CPU,
) -> None:
    """Fill ``finished`` with every block the rule asks for.

    ``commit`` is called with all finished blocks every few seconds, at the end, and before an
    interruption or an error goes on its way, so that nothing finished is lost.
    """
    committer = _Committer(finished, commit)
    found: Counter[int] = Counter()
    for key, known in finished.items():
        found[key.seed] += known.trees
    done = trees = 0
    if backend.name == "cpu":
        warm_up(spec)
    start = time.monotonic()

    def tell() -> None:
        seconds = time.monotonic() - start
        report(Progress(done, wanted, trees, wanted_trees, later is not None, seconds, found))

    try:
        while planned := rule.next_round(finished):
            missing = [block for block in planned if not _is_finished(finished, seed, block)]
            wanted = done + sum(_work(spec, block) for block in missing)
            wanted_trees = trees + sum(block.trees for block in missing)
            if (later := rule.forecast) is not None:
                wanted, wanted_trees = wanted + later.nodes, wanted_trees + later.trees
            tell()
            with _cancelling(executor, workers, spec, seed, missing, backend) as completed:
                for block, stats in completed:
                    finished[BlockKey(seed, block.tier, block.index)] = stats
                    done += _work(spec, block)
                    trees += block.trees
                    tell()
                    committer.block_finished()
    finally:
        committer.close()


@contextmanager
def worker_threads(threads: int | None) -> Iterator[tuple[Executor, int]]:
    """The default executor: as many threads as there are processors for us; kernels hold no GIL."""
    count = threads or available_threads()
    executor = ThreadPoolExecutor(count)
    try:
        yield executor, count
    finally:
        executor.shutdown(cancel_futures=True)


def available_threads() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _cancelling(
    executor: Executor, workers: int, spec: SweepSpec, seed: int, wanted: list[Block], backend: Backend
) -> Iterator[Iterator[tuple[Block, BlockStats]]]:
    """Finished blocks as they come, two batches for every worker in flight; the rest cancelled on the way out."""
    waiting: dict[Future[list[BlockStats]], list[Block]] = {}

    def completed() -> Iterator[tuple[Block, BlockStats]]:
        queue = backend.batches(wanted, [int(spec.P[block.reach - 1]) for block in wanted])
        exhausted = False
        while True:
            while not exhausted and len(waiting) < 2 * workers:
                batch = next(queue, None)
                if batch is None:
                    exhausted = True
                else:
                    waiting[executor.submit(compute_blocks, spec, seed, batch, backend)] = batch
            if not waiting:
                return
            done = wait(waiting, return_when=FIRST_COMPLETED).done
            for future in sorted(done, key=lambda future: future.exception() is not None):  # lose nothing
                yield from zip(waiting.pop(future), future.result(), strict=True)

    try:
        yield completed()
    finally:
        for future in waiting:
            future.cancel()


def _is_finished(finished: Finished, seed: int, block: Block) -> bool:
    known = finished.get(BlockKey(seed, block.tier, block.index))
    return known is not None and known.trees >= block.trees


def _work(spec: SweepSpec, block: Block) -> int:
    return block.trees * int(spec.P[block.reach - 1])


class _Committer:
    """Calls ``commit`` when blocks have finished and enough time has passed, and once at the end."""

    def __init__(self, finished: Finished, commit: Callable[[Finished], None]) -> None:
        self._finished = finished
        self._commit = commit
        self._pending = False
        self._next = time.monotonic() + _COMMIT_SECONDS

    def block_finished(self) -> None:
        self._pending = True
        if time.monotonic() >= self._next:
            self.close()

    def close(self) -> None:
        if self._pending:
            start = time.monotonic()
            self._commit(self._finished)
            end = time.monotonic()
            self._pending = False
            self._next = end + max(_COMMIT_SECONDS, _COMMIT_SHARE * (end - start))
