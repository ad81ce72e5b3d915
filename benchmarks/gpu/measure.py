"""The measurements: the same trees on a GPU and on the processors."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np

from benchmarks.cases import Kernel, law
from benchmarks.measure import Measurement
from brwsim.engine.run import available_threads

LAWS = ("dirichlet", "poisson-dirichlet")
TOPS = (1024, 4096)
_ROUNDS = 5
_GPU_SECONDS = 2.0
_CPU_SECONDS = 4.0
_FIRST_TREES = 2**12
_MOST_NODES = 2**31
_QUERY = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit,memory.total"


def compare(device: int, tell: Callable[[str], object]) -> list[Measurement]:
    """Nodes a second of every law and P: in the GPU's kernels, in the GPU's blocks as a sweep uses them, on the host."""
    found = []
    for name in LAWS:
        for P in TOPS:
            kernel = Kernel.of(law(name), np.arange(1, P + 1))
            for kind, measure in (
                ("kernel", partial(_gpu_kernel, device)),
                ("blocks", partial(_gpu_blocks, device)),
                ("host", _host),
            ):
                rates, facts = measure(kernel)
                found.append(Measurement(f"{kind}/{name}/{P}", "nodes/s", "higher", rates, facts))
                tell(f"{found[-1].name}: {found[-1].median:.3g} nodes/s")
    return found


def _gpu_kernel(device: int, kernel: Kernel) -> tuple[tuple[float, ...], dict[str, Any]]:
    """By the device's events, from the first kernel to the last; results stay on the device."""
    from brwsim.kernels import cuda as backend

    cuda = backend.cuda
    cuda.select_device(device)
    trees = _FIRST_TREES
    launcher = backend.Launcher(device, kernel.tables, kernel.grid, backend.LANES, 2**17)

    def launch(first: int, count: int) -> tuple[float, int]:
        start, stop = cuda.event(), cuda.event()
        start.record()
        numbers = np.arange(first, first + count, dtype=np.uint64)
        grown = launcher.launch(0, numbers, kernel.theta)
        stop.record()
        stop.synchronize()
        return cuda.event_elapsed_time(start, stop) / 1e3, int(grown.visited.copy_to_host().sum())

    launch(0, 64)  # compiles
    seconds, _ = launch(0, trees)
    wanted = trees * _GPU_SECONDS / seconds
    trees = int(max(trees, min(wanted, launcher.trees_at_once, _MOST_NODES // kernel.grid[-1])))
    samples = [launch(trees * round_, trees) for round_ in range(_ROUNDS)]
    return tuple(nodes / seconds for seconds, nodes in samples), {"trees": trees, "lanes": backend.LANES}


def _gpu_blocks(device: int, kernel: Kernel) -> tuple[tuple[float, ...], dict[str, Any]]:
    """By the clock on the wall, statistics brought back to the host; nodes wanted, as a sweep counts them."""
    from brwsim.kernels.cuda import grow_blocks

    P = int(kernel.grid[-1])
    block = 2**21 // P
    blocks = 128

    def grow(round_: int) -> float:
        first = round_ * blocks * block
        ranges = [(first + i * block, block) for i in range(blocks)]
        start = time.perf_counter()
        grow_blocks(kernel.tables, 0, ranges, kernel.grid, kernel.theta, device=device)
        return blocks * block * P / (time.perf_counter() - start)

    grow(0)
    return tuple(grow(round_) for round_ in range(1, _ROUNDS + 1)), {"trees": blocks * block}


def _host(kernel: Kernel) -> tuple[tuple[float, ...], dict[str, Any]]:
    """All processors, a thread on each."""
    threads = available_threads()
    kernel.grow(1)
    start = time.perf_counter()
    kernel.grow(8)
    chunk = max(8, int(8 * 0.1 / (time.perf_counter() - start)))
    rates = []
    with ThreadPoolExecutor(threads) as pool:
        for round_ in range(3):
            first = round_ * 10**6
            start = time.perf_counter()
            nodes = 0
            futures = [pool.submit(_grow, kernel, chunk, first + i * chunk) for i in range(4 * threads)]
            for number, future in enumerate(futures):
                nodes += future.result()
                if time.perf_counter() - start > _CPU_SECONDS:
                    for late in futures[number + 1 :]:
                        nodes += 0 if late.cancel() else late.result()
                    break
            rates.append(nodes / (time.perf_counter() - start))
    return tuple(rates), {"threads": threads}


def _grow(kernel: Kernel, count: int, first_tree: int) -> int:
    return kernel.grow(count, first_tree=first_tree)[2]


def describe_device(device: int) -> dict[str, Any]:
    """GPU, driver and clocks by nvidia-smi, right after the work; versions of the packages."""
    try:
        told = subprocess.run(
            ["nvidia-smi", f"--id={device}", f"--query-gpu={_QUERY}", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        ).stdout
        facts: dict[str, Any] = dict(
            zip(_QUERY.split(","), (x.strip() for x in told.split(",")), strict=False)
        )
    except (OSError, subprocess.SubprocessError):
        facts = {}
    for package in ("numba-cuda", "numba", "cuda-bindings", "nvidia-nvvm", "nvidia-cuda-nvrtc"):
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            facts[package] = None
    return facts
