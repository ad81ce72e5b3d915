"""Shared set-up: compiled kernels are cached between runs, as they are for users."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
