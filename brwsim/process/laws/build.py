"""Building what a user names: a class of a registry, from a mapping with a name and keys."""

from __future__ import annotations

import difflib
import inspect
import reprlib
from collections.abc import Mapping
from typing import Any

from brwsim.errors import InvalidInput


def build(spec: Mapping[str, Any], registry: Mapping[str, Any], noun: str) -> Any:
    """Build from ``{"name": ..., key: value, ...}``; raises InvalidInput on an unknown name or key."""
    keys = dict(spec)
    name = keys.pop("name", None)
    kind = registry.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidInput(_unknown_name(name, registry, noun))
    known = keys_of(kind)
    for key in keys:
        if key not in known:
            hint = _closest(str(key), list(known))
            raise InvalidInput(
                f"{name} has no key {reprlib.repr(key)}{hint}; its keys are {', '.join(known)}"
            )
    for key, required in known.items():
        if required and key not in keys:
            raise InvalidInput(f"{name} needs the key {key}; write {name}:{key}=...")
    return kind.from_spec(keys)


def keys_of(kind: Any) -> dict[str, bool]:
    """The keys a spec may hold, each with whether it must be given."""
    parameters = list(inspect.signature(kind).parameters.values())
    return {p.name: p.default is inspect.Parameter.empty for p in parameters}


def _unknown_name(name: Any, registry: Mapping[str, Any], noun: str) -> str:
    listed = f"choose one of {', '.join(registry)}"
    if name is None:
        return f"the {noun} has no name; {listed}"
    return f"unknown {noun} {reprlib.repr(name)}{_closest(str(name), list(registry))}; {listed}"


def _closest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word.lower(), known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
