"""Build ``cpp/trees.cpp`` and call it in this process, so that both programs can be timed in turn."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Kernel
from benchmarks.errors import BenchmarkError
from brwsim.process.base import Law, Process, Row, Sticks

SOURCE = Path(__file__).parent / "cpp" / "trees.cpp"
FLAGS = ("-std=c++17", "-O3", "-march=native", "-shared", "-fPIC")
SAME_TREE = 1e-12
"""Largest relative difference of prefix sums that fused multiply-adds and another log can make."""

_I64, _U64, _F64, _PTR = ctypes.c_int64, ctypes.c_uint64, ctypes.c_double, ctypes.c_void_p
_COMMON = (_F64, _U64, _U64, _I64, _PTR, _I64, _F64, _PTR, _PTR)
_SIGNATURES = {
    "grow_sticks": (_F64, _F64, _U64, *_COMMON),
    "grow_table": (_PTR, _I64, _F64, _U64, _F64, *_COMMON),
}


def compiler() -> str | None:
    """The C++ compiler: ``$CXX``, else g++; None where there is none."""
    return shutil.which(os.environ.get("CXX") or "g++")


def supports(law: Process) -> bool:
    """Whether the C++ program knows the law: one fixed row, or sticks that thinning can draw."""
    if not isinstance(law, Law):
        return False
    rows = law.rows()
    if len(rows) > 1:
        return False
    row = rows[0][1]
    if isinstance(row, Sticks):
        # where brwsim itself thins Beta(1, b): half of the proposals are accepted, or b is at most 1
        excess, b = -row.discount, row.strength + row.discount
        return excess == 0.0 or (excess > 0.0 and (b <= 1.0 or excess * math.log1p(b) <= math.log(2.0)))
    return isinstance(row, Row)


@dataclass(frozen=True)
class Program:
    """The compiled C++ program."""

    library: ctypes.CDLL

    @classmethod
    def build(cls, folder: Path) -> Program:
        """Compile into ``folder`` and load."""
        cxx = compiler()
        if cxx is None:
            raise BenchmarkError("no C++ compiler: install g++ or set CXX")
        target = folder / "trees.so"
        built = subprocess.run(
            [cxx, *FLAGS, str(SOURCE), "-o", str(target)], capture_output=True, text=True, check=False
        )
        if built.returncode:
            raise BenchmarkError(f"{cxx} cannot compile {SOURCE.name}: {built.stderr.strip()[:500]}")
        library = ctypes.CDLL(str(target))
        for name, types in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = types, ctypes.c_int64
        return cls(library)

    def grow(
        self, kernel: Kernel, count: int, seed: int = 0, first_tree: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
        """What ``kernel.grow`` returns, by the C++ program."""
        sums = np.empty((count, kernel.grid.size))
        terms = np.empty_like(sums)
        grid = kernel.grid.ctypes.data
        common = (kernel.law.mu, seed, first_tree, count, grid, kernel.grid.size, kernel.theta)
        out = (sums.ctypes.data, terms.ctypes.data)
        row = kernel.law.rows()[0][1]
        if isinstance(row, Sticks):
            sticks = (row.discount, row.strength, row.vocab or 0)
            return sums, terms, self.library.grow_sticks(*sticks, *common, *out)
        assert isinstance(row, Row), "see supports()"
        probs = np.ascontiguousarray(row.probs)
        table = (probs.ctypes.data, probs.size, row.tail_prob, row.tail_count, kernel.law.mu)
        return sums, terms, self.library.grow_table(*table, *common, *out)

    def check_same_trees(self, kernel: Kernel, trees: int) -> float:
        """Largest relative difference of prefix sums from brwsim's; an error where the trees differ."""
        mine = self.grow(kernel, trees, seed=2**63 + 5, first_tree=3)[0]
        theirs = kernel.grow(trees, seed=2**63 + 5, first_tree=3)[0]
        difference = float(np.max(np.abs(mine / theirs - 1.0)))
        if not difference <= SAME_TREE:
            raise BenchmarkError(
                f"{SOURCE.name} and brwsim grow different trees of {kernel.law.name} (prefix sums differ by "
                f"{difference:.2g}): after a change of the random numbers, change both"
            )
        return difference
