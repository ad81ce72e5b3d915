"""The offspring laws by name, and how to build one from a spec."""

from __future__ import annotations

import difflib
import inspect
import reprlib
from collections.abc import Mapping
from typing import Any

from brwsim.errors import InvalidInput
from brwsim.process.base import Law
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


def law_keys(law: type[Law]) -> dict[str, bool]:
    """The keys a law's spec may hold, each with whether it must be given."""
    parameters = list(inspect.signature(law).parameters.values())
    return {p.name: p.default is inspect.Parameter.empty for p in parameters}


def law_from_spec(spec: Mapping[str, Any]) -> Law:
    """Build a law from ``{"name": ..., key: value, ...}``; raises InvalidInput on anything unknown.

    Examples
    --------
    >>> law_from_spec({"name": "uniform", "vocab": 8}).vocab
    8
    """
    keys = dict(spec)
    name = keys.pop("name", None)
    law = LAWS.get(name) if isinstance(name, str) else None
    if law is None:
        raise InvalidInput(_unknown_name(name))
    known = law_keys(law)
    for key in keys:
        if key not in known:
            hint = _closest(str(key), list(known))
            raise InvalidInput(
                f"{name} has no key {reprlib.repr(key)}{hint}; its keys are {', '.join(known)}."
            )
    for key, required in known.items():
        if required and key not in keys:
            raise InvalidInput(f"{name} needs the key {key}; write {name}:{key}=...")
    return law.from_spec(keys)


def as_law(value: Law | Mapping[str, Any] | str) -> Law:
    """A law given as itself, as its spec or as ``NAME:key=value,...``."""
    from brwsim.parse import parse_dist

    if isinstance(value, Law):
        return value
    if isinstance(value, str):
        return law_from_spec(parse_dist(value))
    if isinstance(value, Mapping):
        return law_from_spec(value)
    raise InvalidInput(f"A law must be a text or a mapping with a name, not {reprlib.repr(value)}.")


def _unknown_name(name: Any) -> str:
    listed = f"choose one of {', '.join(LAWS)}."
    if name is None:
        return f"The law has no name; {listed}"
    return f"Unknown law {reprlib.repr(name)}{_closest(str(name), list(LAWS))}; {listed}"


def _closest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word.lower(), known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
