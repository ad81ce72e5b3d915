"""Checks of what a user writes for a law's keys: the value, or one sentence that says what is wrong."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from brwsim.errors import InvalidInput

DEFAULT_ENTROPY = 0.683
"""Mean next-token entropy of Llama-3-8B in arXiv 2512.11718, in nats."""

MIN_ENTROPY = 1e-100
MAX_ENTRIES = 2**22
"""Most probabilities a fixed law may list (32 MiB)."""

SUM_TOLERANCE = 1e-9


def shown(number: float) -> str:
    """Write a number for a message: every digit it needs and no ``.0``."""
    return repr(number).removesuffix(".0")


def check_real(law: str, key: str, value: Any) -> float:
    """``value`` as a finite float, or InvalidInput naming the law and the key."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidInput(f"{law}: {key} must be a number, not {reprlib.repr(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidInput(f"{law}: {key} must be a finite number, not {number}")
    return number + 0.0  # -0.0 becomes 0.0, so that equal laws have equal specs


def check_vocab(law: str, value: Any, low: int, high: int, key: str = "vocab") -> int:
    """``value`` as a whole number (a vocabulary size) in ``low..high``, or InvalidInput."""
    number = check_real(law, key, value)
    if not isinstance(value, Integral) and not number.is_integer():
        raise InvalidInput(f"{law}: {key} must be a whole number, not {reprlib.repr(value)}")
    if not low <= number <= high:
        raise InvalidInput(f"{law}: {key} must lie in {low}..{high}, got {reprlib.repr(value)}")
    return int(value)


def check_entropy(law: str, value: Any, upper: float = math.inf, why: str = "") -> float:
    """``value`` as an entropy in nats, strictly between 0 and ``upper``, or InvalidInput."""
    entropy = check_real(law, "entropy", value)
    if not MIN_ENTROPY <= entropy < upper:
        limit = f"lie between 0 and {upper:.6g} nats{why}" if upper < math.inf else "be above 0 nats"
        raise InvalidInput(f"{law}: entropy must {limit}, got {shown(entropy)}")
    return entropy


def check_only_one(law: str, key: str, value: Any, entropy: Any) -> None:
    """Refuse a parameter given together with the entropy it would be solved from."""
    if value is not None and entropy is not None:
        raise InvalidInput(f"{law}: give {key} or entropy, not both")


def check_probabilities(law: str, key: str, values: Any) -> tuple[float, ...]:
    """``values`` as positive floats that sum to 1 within 1e-9, zeros kept, or InvalidInput."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, str | bytes) or not isinstance(values, Sequence):
        raise InvalidInput(f"{law}: {key} must be a list of probabilities, not {reprlib.repr(values)}")
    if not 0 < len(values) <= MAX_ENTRIES:
        raise InvalidInput(f"{law}: {key} must list 1..{MAX_ENTRIES} probabilities, got {len(values)}")
    numbers = tuple(check_real(law, f"{key}[{i}]", value) for i, value in enumerate(values))
    for i, number in enumerate(numbers):
        if number < 0:
            raise InvalidInput(f"{law}: {key}[{i}] must not be negative, got {shown(number)}")
    total = math.fsum(numbers)
    if abs(total - 1) > SUM_TOLERANCE:
        raise InvalidInput(f"{law}: {key} must sum to 1, but sums to {total:.12g}; divide each entry by that")
    return numbers
