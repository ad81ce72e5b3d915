"""Writing and reading result files: whole or not at all, and only ours."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from brwsim.engine.rules import BlockKey
from brwsim.errors import FileError
from brwsim.estimate import BlockStats
from brwsim.results import schema
from brwsim.results.provenance import provenance
from brwsim.results.result import Result
from brwsim.results.theory import Theory
from brwsim.spec import SweepSpec
from brwsim.theory.bounds import BOUNDS

if TYPE_CHECKING:
    import h5py


def load(path: str | Path) -> Result:
    """Read a result file.

    Parameters
    ----------
    path : str or Path
        A file written by ``brwsim sweep --out`` or ``Result.save``.

    Returns
    -------
    Result
        The same result, with ``path`` set.

    Raises
    ------
    FileError
        When the file is missing, unreadable, truncated, not ours, or of another schema.
    """
    path = Path(path)
    with _opened(path) as file:
        _check_header(file, path)
        spec = SweepSpec.from_json(str(file.attrs[schema.ATTR_SPEC]))
        return Result(
            spec=spec,
            blocks=_read_blocks(file[schema.BLOCKS]),
            estimator=str(file.attrs[schema.ATTR_ESTIMATOR]),  # type: ignore[arg-type]
            path=path,
            provenance=json.loads(str(file.attrs[schema.ATTR_PROVENANCE])),
            stored_theory=_read_theory(file),
        )


def write(result: Result, path: Path) -> None:
    """Write ``result`` to ``path`` atomically: a reader sees the old file or the new one."""
    import h5py

    with replacing(path) as temporary, h5py.File(temporary, "w") as file:
        _write_curve(file, result)
        _write_blocks(file.create_group(schema.BLOCKS), result)
        _write_attributes(file, result)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file that takes the place of ``path``, whole and on the disk, when the block ends well."""
    check_writable(path)
    temporary = _temporary_beside(path)
    try:
        yield temporary
        _flush_to_disk(temporary)
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise FileError now if a result cannot be written to ``path`` later."""
    if path.is_dir():
        raise FileError(f"{path} is a directory; give a file name, such as {path / 'run.h5'}")
    parent = path.parent
    if not parent.is_dir():
        raise FileError(f"the folder {parent} does not exist; create it first")
    if path.exists() and not os.access(path, os.W_OK):
        raise FileError(f"{path} is not writable; choose another place for the result")
    _temporary_beside(path).unlink()


def _temporary_beside(path: Path) -> Path:
    """A new empty file in the same folder, so that renaming it to ``path`` is atomic."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise FileError(f"cannot write to the folder {path.parent}: {error.strerror}") from error
    os.close(handle)
    return Path(name)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    import h5py

    if path.is_dir():
        raise FileError(f"{path} is a directory, not a brwsim result file")
    if not path.exists():
        raise FileError(f"{path} does not exist")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except FileError:
        raise
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        if not os.access(path, os.R_OK):
            raise FileError(f"{path} is not readable") from error
        if not h5py.is_hdf5(path):
            raise FileError(f"{path} is not a brwsim result file (not HDF5)") from error
        raise FileError(f"{path} is damaged or truncated; run the sweep again or restore a copy") from error


def _check_header(file: h5py.File, path: Path) -> None:
    if file.attrs.get(schema.ATTR_FILETYPE) != schema.FILETYPE:
        raise FileError(f"{path} is an HDF5 file but not a brwsim result")
    major, minor = (int(part) for part in file.attrs[schema.ATTR_SCHEMA])
    if major != schema.SCHEMA_VERSION[0]:
        raise FileError(
            f"{path} has schema version {major}.{minor}; this brwsim reads {schema.SCHEMA_VERSION[0]}.x: "
            "use the brwsim version that wrote it"
        )


def _read_blocks(group: h5py.Group) -> dict[BlockKey, BlockStats]:
    found = {}
    for name in group:
        tier = int(name.removeprefix("tier"))
        keys = group[name][schema.KEYS][:]
        moments = group[name][schema.MOMENTS][:]
        for (seed, index, trees), rows in zip(keys, moments, strict=True):
            found[BlockKey(int(seed), tier, int(index))] = BlockStats(int(trees), *rows)
    return found


def _read_theory(file: h5py.File) -> Theory:
    """Moments and bounds; bounds that this version does not know are passed over."""
    stored = {name: file[schema.BOUND_PREFIX + name] for name in BOUNDS if schema.BOUND_PREFIX + name in file}
    return Theory(
        moments={name: float(file.attrs[name]) for name in (schema.ATTR_MU, schema.ATTR_MU2)},
        is_fixed=bool(file.attrs[schema.ATTR_FIXED]),
        bounds=tuple(
            BOUNDS[name].as_iid_formula() if str(data.attrs["kind"]).startswith("iid-") else BOUNDS[name]
            for name, data in stored.items()
        ),
        values={name: data[:] for name, data in stored.items()},
    )


def _write_blocks(group: h5py.Group, result: Result) -> None:
    for tier in sorted({key.tier for key in result.blocks}):
        members = sorted(key for key in result.blocks if key.tier == tier)
        keys = np.array([(k.seed, k.index, result.blocks[k].trees) for k in members], dtype=np.uint64)
        moments = np.array([result.blocks[k].arrays() for k in members])
        target = group.create_group(f"tier{tier}")
        target.create_dataset(schema.KEYS, data=keys).attrs["columns"] = list(schema.KEY_COLUMNS)
        one_block = (1, *moments.shape[1:])
        stored = target.create_dataset(schema.MOMENTS, data=moments, chunks=one_block, fletcher32=True)
        stored.attrs["rows"] = list(schema.MOMENT_NAMES)


def _write_curve(file: h5py.File, result: Result) -> None:
    P = file.create_dataset(schema.DIMENSION, data=result.P)
    P.attrs.update(long_name="verifier capacity, root included", units="nodes per call")
    P.make_scale(schema.DIMENSION)
    for name, (long_name, units) in schema.VARIABLES.items():
        _variable(file, name, getattr(result, name), long_name=long_name, units=units)
    values = result.bounds_in_domain()
    for bound in result.bound_objects:
        _variable(
            file,
            schema.BOUND_PREFIX + bound.name,
            values[bound.name],
            long_name=bound.formula,
            units="tokens per call",
            kind=bound.kind,
            source=bound.source,
        )


def _variable(file: h5py.File, name: str, values: np.ndarray, **attributes: Any) -> None:
    variable = file.create_dataset(name, data=values)
    variable.dims[0].attach_scale(file[schema.DIMENSION])
    variable.attrs.update(attributes)


def _write_attributes(file: h5py.File, result: Result) -> None:
    file.attrs[schema.ATTR_FILETYPE] = schema.FILETYPE
    file.attrs[schema.ATTR_SCHEMA] = np.array(schema.SCHEMA_VERSION)
    file.attrs[schema.ATTR_SPEC] = result.spec.to_json()
    file.attrs[schema.ATTR_SPEC_ID] = result.spec.spec_id
    file.attrs[schema.ATTR_SEED] = np.array(result.seed, dtype=np.uint64)
    file.attrs[schema.ATTR_ESTIMATOR] = result.estimator
    file.attrs[schema.ATTR_TREES] = result.trees
    file.attrs[schema.ATTR_FIXED] = int(result.theory.is_fixed)
    for name in (schema.ATTR_MU, schema.ATTR_MU2):
        file.attrs[name] = result.moments[name]
    file.attrs[schema.ATTR_PROVENANCE] = json.dumps(provenance())


def _flush_to_disk(path: Path) -> None:
    with open(path, "rb") as handle:
        os.fsync(handle.fileno())


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
