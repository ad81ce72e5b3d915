"""Run the blocks a rule asks for, on any executor, and keep what is finished."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass

from brwsim.engine.compute import compute_block, warm_up
from brwsim.engine.plan import Block
from brwsim.engine.rules import BlockKey, Finished, Rule
from brwsim.estimate import BlockStats
from brwsim.spec import SweepSpec

_COMMIT_SECONDS = 5.0
_COMMIT_SHARE = 20.0  # a commit may take at most one part in this many of the time


@dataclass(frozen=True)
class Progress:
    """How far a run is, in nodes wanted (trees times P): what is done, and what is known to be needed."""

    done: int
    wanted: int
    trees: int


def run(
    spec: SweepSpec,
    seed: int,
    rule: Rule,
    finished: dict[BlockKey, BlockStats],
    executor: Executor,
    workers: int,
    commit: Callable[[Finished], None],
    report: Callable[[Progress], None],
) -> None:
    """Fill ``finished`` with every block the rule asks for.

    ``commit`` is called with all finished blocks every few seconds, at the end, and before an
    interruption or an error goes on its way, so that nothing finished is lost.
    """
    committer = _Committer(finished, commit)
    done = 0
    trees = 0
    warm_up(spec)
    try:
        while planned := rule.next_round(finished):
            missing = [block for block in planned if not _is_finished(finished, seed, block)]
            wanted = done + sum(_work(spec, block) for block in missing)
            report(Progress(done, wanted, trees))
            with _cancelling(executor, workers, spec, seed, missing) as completed:
                for block, stats in completed:
                    finished[BlockKey(seed, block.tier, block.index)] = stats
                    done += _work(spec, block)
                    trees += block.trees
                    report(Progress(done, wanted, trees))
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
    executor: Executor, workers: int, spec: SweepSpec, seed: int, wanted: list[Block]
) -> Iterator[Iterator[tuple[Block, BlockStats]]]:
    """Finished blocks as they come, two for every worker in flight; the rest cancelled on the way out."""
    waiting: dict[Future[BlockStats], Block] = {}

    def completed() -> Iterator[tuple[Block, BlockStats]]:
        queue = iter(wanted)
        exhausted = False
        while True:
            while not exhausted and len(waiting) < 2 * workers:
                block = next(queue, None)
                if block is None:
                    exhausted = True
                else:
                    waiting[executor.submit(compute_block, spec, seed, block)] = block
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), future.result()

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
