"""Where compiled kernels are kept: a folder named after the Numba version and every kernel source."""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from pathlib import Path

import numba

_SOURCES = Path(__file__).parent


def _sources_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(_SOURCES.rglob("*.py")):
        digest.update(path.relative_to(_SOURCES).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@functools.cache
def cache_dir() -> Path | None:
    """The folder of this version's compiled kernels, or None where nothing can be written.

    ``$BRWSIM_CACHE_DIR``, else ``$XDG_CACHE_HOME/brwsim``, else ``~/.cache/brwsim``. Numba's own
    cache misses a change in another file, hence the hash of all kernel sources in the name.
    """
    base = os.environ.get("BRWSIM_CACHE_DIR")
    root = (
        Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "brwsim"
    )
    path = root / f"numba-{numba.__version__}-{_sources_digest()}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return path
    except OSError:
        return None
