"""The file of a stress test: HDF5, one dataset for each array with its dimensions as scales."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from brwsim.results import schema
from brwsim.results.provenance import provenance
from brwsim.results.store import replacing
from brwsim.stresstest.variables import CAPACITY, START, to_dict, variables

if TYPE_CHECKING:
    import h5py

    from brwsim.stresstest.report import StressReport

FILETYPE = "brwsim stress"
SCHEMA_VERSION = (1, 0)  # readers refuse another major; a minor only adds


def write(report: StressReport, path: Path) -> None:
    """Write a report whole or not at all; raises FileError where that is not possible."""
    import h5py

    with replacing(path) as temporary, h5py.File(temporary, "w") as file:
        _write_scales(file, report)
        for variable in variables(report):
            dataset = file.create_dataset(variable.name, data=variable.values)
            for dimension, name in zip(dataset.dims, variable.dims, strict=True):
                dimension.attach_scale(file[name])
            dataset.attrs.update(variable.attributes)
        _write_attributes(file, report)


def _write_scales(file: h5py.File, report: StressReport) -> None:
    import h5py

    P = file.create_dataset(CAPACITY, data=report.P)
    P.attrs.update(long_name="verifier capacity, root included", units="nodes per call")
    for axis in report.axes:
        file.create_dataset(axis.key, data=np.array(axis.values)).attrs["long_name"] = f"swept key {axis.key}"
    if report.starts:
        file.create_dataset(START, data=list(report.starts), dtype=h5py.string_dtype())
    for name in list(file):
        file[name].make_scale(name)


def _write_attributes(file: h5py.File, report: StressReport) -> None:
    content = to_dict(report)
    file.attrs[schema.ATTR_FILETYPE] = FILETYPE
    file.attrs[schema.ATTR_SCHEMA] = np.array(SCHEMA_VERSION)
    file.attrs[schema.ATTR_PROVENANCE] = json.dumps(provenance())
    file.attrs["process_json"] = report.process_json
    file.attrs[schema.ATTR_SEED] = np.array(report.seed, dtype=np.uint64)
    for name in ("violations", "breaks"):
        file.create_dataset(f"{name}_json", data=json.dumps(content[name]))
