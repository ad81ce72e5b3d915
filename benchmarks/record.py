"""One run's results as a JSON file: where and when it was measured, and every raw sample."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import BadFile
from benchmarks.measure import Measurement
from brwsim.results.provenance import versions

SCHEMA = 1
_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Record:
    """Everything known about one run."""

    scale: str
    date: str
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    commit: Mapping[str, Any]
    measurements: Mapping[str, Measurement]

    @classmethod
    def of(cls, scale: str, measurements: list[Measurement]) -> Record:
        """A record of measurements made here and now."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        return cls(scale, now, machine(), versions(), commit(), {m.name: m for m in measurements})

    @property
    def comparable(self) -> tuple[Any, ...]:
        """Records that agree in this can be judged against each other: processor, cores, Python, sizes."""
        return self.machine.get("cpu"), self.machine.get("cores"), self.versions.get("python"), self.scale

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "benchmarks": SCHEMA,
            "scale": self.scale,
            "date": self.date,
            "machine": dict(self.machine),
            "versions": dict(self.versions),
            "commit": dict(self.commit),
            "measurements": [m.to_dict() for m in self.measurements.values()],
        }

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        part = path.with_name(path.name + ".part")
        try:
            part.write_text(json.dumps(self.to_dict(), indent=1) + "\n")
            part.replace(path)
        except OSError as error:
            raise BadFile(f"{path} cannot be written: {error.strerror}") from None


def load(path: Path) -> Record:
    """Read a file that ``Record.save`` wrote; BadFile says what is wrong with any other."""
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise BadFile(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise BadFile(f"{path} is not a JSON file") from None
    if not isinstance(data, dict) or data.get("benchmarks") != SCHEMA:
        raise BadFile(f"{path} does not hold results of these benchmarks (version {SCHEMA})")
    try:
        found = [
            Measurement(
                str(m["name"]), str(m["unit"]), m["better"], tuple(map(float, m["samples"])), dict(m["facts"])
            )
            for m in data["measurements"]
        ]
        if not all(m.samples for m in found):
            raise ValueError("no samples")
        return Record(
            str(data["scale"]),
            str(data["date"]),
            dict(data["machine"]),
            dict(data["versions"]),
            dict(data["commit"]),
            {m.name: m for m in found},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadFile(f"{path} is damaged: {type(error).__name__} {error}") from None


def machine() -> dict[str, Any]:
    """Processor model, processors this process may use, memory in bytes and load (None where unknown)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        memory = None
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    return {
        "cpu": _cpu(),
        "cores": cores,
        "memory_bytes": memory,
        "system": platform.platform(),
        "load_average": load,
    }


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def commit() -> dict[str, Any]:
    """The git commit measured and whether files differ from it; None outside a checkout."""
    try:
        hash_ = _git("rev-parse", "HEAD").strip()
        return {"hash": hash_, "dirty": bool(_git("status", "--porcelain").strip())}
    except (OSError, subprocess.CalledProcessError):
        return {"hash": None, "dirty": None}


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, check=True
    ).stdout
