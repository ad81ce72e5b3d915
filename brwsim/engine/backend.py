"""Where trees are grown: on this machine's processors, or on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from brwsim.engine.plan import Block
from brwsim.errors import DeviceError, InvalidInput

BACKENDS = ("cpu", "cuda", "auto")

_NODES_TO_PAY = 2**30  # about what processors grow while kernels are compiled for a GPU
_NODES_AT_ONCE = 2**28
_MAX_DEVICE = 1023


@dataclass(frozen=True)
class Backend:
    """A backend that can do the work.

    Attributes
    ----------
    name : {"cpu", "cuda"}
    device : int
        Which GPU.
    note : str or None
        Why ``auto`` chose the processors.
    """

    name: Literal["cpu", "cuda"] = "cpu"
    device: int = 0
    note: str | None = None

    def batches(self, blocks: Sequence[Block], top_P: Sequence[int]) -> Iterator[list[Block]]:
        """What to compute in one go: a block on a processor; on a GPU, which wants thousands of trees, many.

        ``top_P`` holds the largest P of every block. The blocks of a batch reach equally far.
        """
        if self.name == "cpu":
            yield from ([block] for block in blocks)
            return
        for _, group in groupby(zip(blocks, top_P, strict=True), key=lambda pair: pair[0].reach):
            batch: list[Block] = []
            nodes = 0
            for block, top in group:
                if batch and nodes + block.trees * top > _NODES_AT_ONCE:
                    yield batch
                    batch, nodes = [], 0
                batch.append(block)
                nodes += block.trees * top
            yield batch


CPU = Backend()


def resolve(name: str, device: int = 0, nodes: int | None = None) -> Backend:
    """The backend of that name, if it can do the work here.

    ``auto`` is a GPU where there is one and it pays: not when the run is known to be of so few ``nodes``
    that compiling for the GPU takes longer.

    Raises
    ------
    InvalidInput
        For a name or a device number that cannot be.
    DeviceError
        When ``cuda`` is asked for and a driver, a device or a package is missing.
    """
    if name not in BACKENDS:
        raise InvalidInput(f"unknown backend {name!r}; choose one of {', '.join(BACKENDS)}")
    if not (isinstance(device, int) and 0 <= device <= _MAX_DEVICE):
        raise InvalidInput(f"device must be a whole number from 0 to {_MAX_DEVICE}, not {device!r}")
    if name == "cpu":
        if device:
            raise InvalidInput(f"device {device} is a GPU's number; choose backend cuda or auto")
        return CPU
    from brwsim.kernels.cuda_shim import missing

    reason = missing(device)
    if name == "cuda":
        if reason is not None:
            raise DeviceError(f"{reason}; backend cpu needs none")
        return Backend("cuda", device)
    if reason is None and nodes is not None and nodes < _NODES_TO_PAY:
        reason = "the run is too short for a GPU to pay"
    if reason is not None:
        return Backend(note=f"{reason}; growing trees on the processors")
    return Backend("cuda", device)
