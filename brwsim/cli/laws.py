"""The processes as ``brwsim sweep --help`` lists them."""

from __future__ import annotations

import inspect
import json

from brwsim.process import PROCESSES
from brwsim.process.base import Process


def law_entries() -> list[tuple[str, str]]:
    """Name, then keys with their defaults and the first sentence about each law."""
    return [(name, f"{_summary(law)} Keys: {_keys(law)}.") for name, law in PROCESSES.items()]


def _summary(law: type[Process]) -> str:
    return inspect.getdoc(law).partition("\n\n")[0].replace("\n", " ").replace("``", "")  # type: ignore[union-attr]


def _keys(law: type[Process]) -> str:
    parameters = inspect.signature(law).parameters
    grouped = {key for group in law.either for key in group}
    shown = []
    for name, parameter in parameters.items():
        if name not in grouped:
            shown.append(_key(parameter))
        elif name == law.either[0][0]:  # the whole choice stands where its first key would
            shown.append(f"({' | '.join(', '.join(group) for group in law.either)})")
    return ", ".join(shown)


def _key(parameter: inspect.Parameter) -> str:
    if parameter.default is inspect.Parameter.empty:
        return f"{parameter.name} (needed)"
    return (
        f"{parameter.name} (optional)"
        if parameter.default is None
        else f"{parameter.name}={json.dumps(parameter.default)}"
    )
