"""The offspring laws by name, and how to build one from a spec."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from brwsim.errors import InvalidInput
from brwsim.process.base import Law
from brwsim.process.laws.build import build
from brwsim.process.laws.empirical import Empirical
from brwsim.process.laws.fixed import Geometric, Table, Uniform, Zipf
from brwsim.process.laws.mixture import Mixture
from brwsim.process.laws.softmax import SoftmaxNormal
from brwsim.process.laws.sticks import Dirichlet, PoissonDirichlet

LAWS: dict[str, type[Law]] = {
    law.name: law
    for law in (
        Dirichlet,
        PoissonDirichlet,
        SoftmaxNormal,
        Table,
        Uniform,
        Zipf,
        Geometric,
        Empirical,
        Mixture,
    )
}
"""Every law by the name ``--dist`` knows it by, in the order help lists them."""


def law_from_spec(spec: Mapping[str, Any]) -> Law:
    """Build a law from ``{"name": ..., key: value, ...}``; raises InvalidInput on anything unknown.

    Examples
    --------
    >>> law_from_spec({"name": "uniform", "vocab": 8}).vocab
    8
    """
    law: Law = build(spec, LAWS, "law")
    return law


def as_law(value: Law | Mapping[str, Any] | str) -> Law:
    """A law given as itself, as its spec or as ``NAME:key=value,...``."""
    from brwsim.parse import parse_dist

    if isinstance(value, Law):
        return value
    if isinstance(value, str):
        return law_from_spec(parse_dist(value))
    if isinstance(value, Mapping):
        return law_from_spec(value)
    raise InvalidInput(f"a law must be a text or a mapping with a name, not {reprlib.repr(value)}")
