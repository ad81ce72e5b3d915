"""What a person writes to say what to run: the grid of P and the law, read from short texts."""

from __future__ import annotations

import json
import operator
import re
import reprlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import InvalidInput

MAX_P = 10_000_000
"""Largest tree capacity accepted."""

_FORMS = "write 16,64,256 or 1..4096 or 1..4096:64 (step) or 1..4096@64 (log-spaced)"
_PIECE = re.compile(
    r"(?P<low>\d+)(?:\s*\.\.\s*(?P<high>\d+)(?:\s*(?P<mark>[:@])\s*(?P<count>\d+))?)?", re.ASCII
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)


def parse_grid(grid: str | int | Iterable[int]) -> NDArray[np.int64]:
    """Read a grid of tree capacities P.

    Parameters
    ----------
    grid : str, int or iterable of int
        ``"1..4096"`` (every integer), ``"1..4096:64"`` (start, start + 64, ... up to the end),
        ``"1..4096@64"`` (64 log-spaced integers, both ends included), ``"16,64,256"``, any of these
        joined by commas; or whole numbers themselves (a list, a range, an array).

    Returns
    -------
    NDArray[np.int64]
        The distinct values in ascending order, each in 1..MAX_P.

    Raises
    ------
    InvalidInput
        If the grid is empty, reversed, not made of whole numbers, or leaves 1..MAX_P.

    Examples
    --------
    >>> parse_grid("1..3,16,64").tolist()
    [1, 2, 3, 16, 64]
    >>> parse_grid("1..4096@7").tolist()
    [1, 4, 16, 64, 256, 1024, 4096]
    """
    if isinstance(grid, str):
        return _from_text(grid)
    return _from_numbers(grid)


def _from_text(text: str) -> NDArray[np.int64]:
    if not text.strip():
        raise InvalidInput(f"the P grid is empty; {_FORMS}")
    # Pieces mark a table rather than being joined, so that repeating a huge range costs nothing.
    marked = np.zeros(0, dtype=np.bool_)
    for piece in text.split(","):
        values = _piece(piece.strip(), text)
        top = values.stop - 1 if isinstance(values, slice) else int(values[-1])
        if top >= marked.size:
            marked = np.concatenate([marked, np.zeros(top + 1 - marked.size, dtype=np.bool_)])
        marked[values] = True
    return np.flatnonzero(marked).astype(np.int64)


def _piece(piece: str, text: str) -> slice | NDArray[np.int64]:
    """The values of one comma-free piece, as an index into a table of marks."""
    if not piece:
        raise InvalidInput(f"the P grid {reprlib.repr(text)} has an empty item between commas; {_FORMS}")
    match = _PIECE.fullmatch(piece)
    if match is None:
        raise InvalidInput(
            f"the P grid item {reprlib.repr(piece)} is not made of positive whole numbers; {_FORMS}"
        )
    low = _in_range(_integer(match["low"]))
    if match["high"] is None:
        return slice(low, low + 1)
    high = _in_range(_integer(match["high"]))
    if low > high:
        raise InvalidInput(f"the P grid range {reprlib.repr(piece)} is reversed; write {high}..{low}")
    if match["mark"] is None:
        return slice(low, high + 1)
    count = min(_integer(match["count"]), MAX_P)  # beyond MAX_P a step or a count says no more
    if match["mark"] == ":":
        if count == 0:
            raise InvalidInput(
                f"the P grid range {reprlib.repr(piece)} has step 0; give a step of at least 1"
            )
        return slice(low, high + 1, count)
    if count < 2:
        raise InvalidInput(
            f"the P grid range {reprlib.repr(piece)} asks for {count} values; @ needs at least 2"
        )
    return _log_spaced(low, high, count)


def _integer(digits: str) -> int:
    """Convert decimal digits, but never an absurd number of them."""
    digits = digits.lstrip("0")[:30]
    return int(digits) if digits else 0


def _in_range(value: int) -> int:
    if value < 1:
        raise InvalidInput(f"P counts the root, so it is at least 1; the grid holds {_shown(value)}")
    if value > MAX_P:
        raise InvalidInput(f"P may be at most {MAX_P}; the grid holds {_shown(value)}")
    return value


def _shown(value: int) -> str:
    """Write a whole number, unless it has an absurd number of digits."""
    return str(value) if abs(value) < 10**20 else "one of more than 20 digits"


def _log_spaced(low: int, high: int, count: int) -> NDArray[np.int64]:
    """About ``count`` distinct integers from low to high: consecutive first, then in equal ratios.

    Rounding equal ratios throughout would repeat small integers and return far fewer than asked.
    """
    if count >= high - low + 1:
        return np.arange(low, high + 1)
    start = np.arange(low, low + count - 1)
    left = np.arange(count - 1, 0, -1)  # ratios still to come after each
    spread = start * np.expm1(np.log(high / start) / left) >= 1
    head = int(np.argmax(spread))  # some entry is true: there are more integers than values
    tail = np.rint(np.geomspace(start[head], high, int(left[head]) + 1)).astype(np.int64)
    return np.unique(np.concatenate([start[:head], tail]))


def _from_numbers(grid: int | Iterable[int]) -> NDArray[np.int64]:
    if isinstance(grid, range):
        grid = _checked_range(grid)
    array = np.atleast_1d(np.asarray(grid if isinstance(grid, np.ndarray | range) else _as_list(grid)))
    if array.size == 0:
        raise InvalidInput("the P grid is empty; give at least one P")
    if array.ndim != 1:
        raise InvalidInput(f"the P grid must be one-dimensional, not of shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise InvalidInput(
            f"the P grid must hold whole numbers, not {array.dtype} values such as {array[0]!s:.40}"
        )
    _in_range(int(array.min()))
    _in_range(int(array.max()))
    return np.unique(array.astype(np.int64))


def _checked_range(values: range) -> range:
    """Refuse a range by its ends, before its values are listed."""
    if values:
        _in_range(min(values[0], values[-1]))
        _in_range(max(values[0], values[-1]))
    return values


def _as_list(grid: int | Iterable[int]) -> list[int]:
    # Iterating over bytes would give character codes.
    items: Iterable[Any] = grid if isinstance(grid, Iterable) and not isinstance(grid, bytes) else [grid]
    values = []
    for item in items:
        try:
            if isinstance(item, bool | np.bool_):
                raise TypeError
            value = operator.index(item)
        except TypeError:
            raise InvalidInput(f"the P grid must hold whole numbers, not {reprlib.repr(item)}") from None
        values.append(_in_range(value))
    return values


def parse_dist(text: str) -> dict[str, Any]:
    """Read ``NAME[:key=value,...]`` into ``{"name": NAME, key: value, ...}``.

    Parameters
    ----------
    text : str
        Values are JSON literals; commas inside brackets, braces or double quotes belong to the value,
        and a bare word that is not JSON is a string (``file=pool.json``).

    Returns
    -------
    dict
        The name and the values. Names and keys are not checked: that is the registry's work.

    Raises
    ------
    InvalidInput
        If the text has no name, an item is not ``key=value``, a key repeats or a value is broken JSON.

    Examples
    --------
    >>> parse_dist("dirichlet:vocab=50,alpha=0.02")
    {'name': 'dirichlet', 'vocab': 50, 'alpha': 0.02}
    >>> parse_dist("table:p=[0.6,0.4]")
    {'name': 'table', 'p': [0.6, 0.4]}
    """
    name, colon, rest = text.strip().partition(":")
    name = name.strip()
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"the law {reprlib.repr(text)} has no name; write NAME or NAME:key=value,...")
    spec: dict[str, Any] = {"name": name}
    if not colon:
        return spec
    for item in _split(rest, name):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not value or not _NAME.fullmatch(key):
            raise InvalidInput(
                f"{name}: {reprlib.repr(item.strip())} is not key=value; write {name}:key=value,..."
            )
        if key in spec:
            raise InvalidInput(f"{name}: the key {key} is given twice; give it once")
        spec[key] = _value(name, key, value)
    return spec


def _split(text: str, name: str) -> Iterator[str]:
    """Split at the commas that are outside brackets, braces and double quotes."""
    depth, start, quoted, escaped = 0, 0, False, False
    for i, char in enumerate(text):
        if quoted:
            quoted = escaped or char != '"'
            escaped = char == "\\" and not escaped
        elif char == '"':
            quoted = True
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
            if depth < 0:
                break
        elif char == "," and depth == 0:
            yield text[start:i]
            start = i + 1
    if quoted or depth:
        raise InvalidInput(
            f"{name}: brackets or quotes do not match in {reprlib.repr(text)}; close them, or write a value"
            ' that holds them as a JSON string, "..."'
        )
    yield text[start:]


def _value(name: str, key: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        # Brackets and quotes announce JSON; anything else is a bare word.
        if text[0] in '[{"':
            raise InvalidInput(
                f"{name}: the value of {key} is not valid JSON: {reprlib.repr(text)}"
            ) from None
        return text


def _refuse(constant: str) -> None:
    raise ValueError(constant)
