"""What a random token tree is: offspring laws with exact moments, and contexts that choose among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brwsim.process.base import Process
from brwsim.process.laws import LAWS
from brwsim.process.laws.build import build
from brwsim.process.levels import Ar1, CircleRotation
from brwsim.process.markov import Markov
from brwsim.process.ngram_tree import Ngram
from brwsim.process.regimes import Regimes

PROCESSES: dict[str, type[Process]] = {
    **LAWS,
    **{process.name: process for process in (Markov, Ar1, Regimes, CircleRotation, Ngram)},
}
"""Every process by the name ``--dist`` knows it by; an offspring law alone is the i.i.d. process."""


def process_from_spec(spec: Mapping[str, Any]) -> Process:
    """Build a process from ``{"name": ..., key: value, ...}``; raises InvalidInput on anything unknown."""
    process: Process = build(spec, PROCESSES, "process")
    return process
