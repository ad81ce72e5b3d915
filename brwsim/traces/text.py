"""Tables and JSON-ready data for what the traces say."""

from __future__ import annotations

import math
from typing import Any


def finite(value: float) -> float | None:
    """The value, or None where it is infinite or unknown."""
    return value if math.isfinite(value) else None


def clean(value: Any) -> Any:
    """JSON-ready copy: None where a number is infinite or unknown, lists for tuples."""
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, dict):
        return {key: clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def with_error(value: float, stderr: float) -> str:
    """A mean and its standard error, where it has one."""
    if math.isinf(value):
        return "inf"
    return f"{value:.4f} ± {stderr:.4f}" if math.isfinite(stderr) else f"{value:.4f}"


def number(value: float) -> str:
    """Four digits after the point."""
    return f"{value:.4f}"


def probability(value: float) -> str:
    """A p-value."""
    return f"{value:.2g}" if value >= 1e-99 else "<1e-99"


def short(source: str, width: int = 44) -> str:
    """The end of a long name."""
    return source if len(source) <= width else "..." + source[3 - width :]


def table(cells: list[list[str]]) -> str:
    """Lines of a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )
