"""Wall time of the command line, from starting Python to its end, cold and warm."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import brwsim
from benchmarks.errors import BenchmarkError
from benchmarks.measure import Measurement, interleaved, seconds
from benchmarks.scale import Scale

_ROOT = str(Path(brwsim.__file__).parents[1])


def measure(scale: Scale) -> list[Measurement]:
    """A sweep with an empty and a full cache of compiled kernels, the import, and the help."""
    sweep = ["-m", "brwsim", "sweep", "--P", scale.sweep_grid, "--dist", "dirichlet", "--rel-err", "1e-3"]
    with tempfile.TemporaryDirectory() as folder:
        caches = [f"{folder}/{i}" for i in range(scale.cold_starts)]
        cold = [seconds(partial(python, sweep, cache)) for cache in caches]
        calls = {
            "python -c pass": ["-c", "pass"],
            "import brwsim": ["-c", "import brwsim"],
            "brwsim --help": ["-m", "brwsim", "--help"],
            "sweep, warm cache": sweep,
        }
        # the last cold start has filled its cache
        times = interleaved(
            {what: partial(python, arguments, caches[-1]) for what, arguments in calls.items()},
            scale.warm_starts,
        )
    times["sweep, empty cache"] = tuple(cold)
    facts = {"remark": f"the sweep is `brwsim {' '.join(sweep[2:])}`"}
    return [
        Measurement(f"startup/{what}", "s", "lower", samples, facts if what.startswith("sweep") else {})
        for what, samples in times.items()
    ]


def python(arguments: list[str], cache: str | None = None) -> str:
    """Run a fresh Python that finds this brwsim, and return what it prints."""
    path = os.pathsep.join(filter(None, [_ROOT, os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path} | ({"BRWSIM_CACHE_DIR": cache} if cache else {})
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        raise BenchmarkError(f"python {' '.join(arguments)} failed: {done.stderr.strip()[-300:]}")
    return done.stdout
