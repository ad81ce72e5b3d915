"""What a random token tree is: offspring laws with exact moments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brwsim.process.base import Law
from brwsim.process.laws import law_from_spec


def process_from_spec(spec: Mapping[str, Any]) -> Law:
    """The process a mapping with a ``name`` describes; an offspring law alone is the i.i.d. process."""
    return law_from_spec(spec)
