"""Peak memory of one sweep against its largest P, each in a process of its own."""

from __future__ import annotations

from benchmarks.measure import Measurement
from benchmarks.scale import Scale
from benchmarks.startup import python

_TREES = 4
_THREADS = 2

# ru_maxrss survives exec on Linux: a child would report its parent's size when that is larger, so the
# child's own high-water mark is read where the system has one.
_CHILD = """
import sys, resource
import brwsim
brwsim.sweep("dirichlet", P=sys.argv[1], trees=int(sys.argv[2]), threads=int(sys.argv[3]))
try:
    lines = open("/proc/self/status").read().splitlines()
    peak = next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
except (OSError, StopIteration):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(peak)
"""


def measure(scale: Scale) -> list[Measurement]:
    """MB at growing P for some log-spaced P, and for every whole P up to the largest."""
    grids = {f"memory/dirichlet/P={P}": f"1..{P}@64" if P > 1 else "1" for P in scale.memory_sizes}
    grids[f"memory/dirichlet/P=1..{scale.memory_sizes[-1]}"] = f"1..{scale.memory_sizes[-1]}"
    peak_bytes("1")  # compiling, should it be needed, takes memory of its own
    facts = {"trees": _TREES, "threads": _THREADS}
    return [
        Measurement(case, "MB", "lower", (peak_bytes(grid) / 1e6,), facts) for case, grid in grids.items()
    ]


def peak_bytes(grid: str) -> int:
    """Peak resident size of a Python process that does one small sweep."""
    return int(python(["-c", _CHILD, grid, str(_TREES), str(_THREADS)]))
