"""From an offspring law's rows to the flat arrays the kernel body reads."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from brwsim.kernels.device.laws import KIND_LOGITS, KIND_STICKS, KIND_TABLE, ROW, Tables
from brwsim.process.base import KernelRow, Logits, Row, Sticks

# Thinning Beta(1, b) into Beta(a, b) accepts about (1 + b)^-(a - 1) of the proposals; one half is
# where two attempts cost as much as one by Cheng's method.
_THINNING_LOG_COST = math.log(2.0)


def pack(rows: list[tuple[float, KernelRow]], mu: float) -> Tables:
    """Lay out weighted rows; ``mu`` is the expected entropy that the entropy terms are centred on."""
    packed = np.zeros(len(rows), ROW)
    packed["alias_prob"], packed["alias_row"] = alias_table(np.array([weight for weight, _ in rows]))
    packed["mu"] = mu
    shares: list[NDArray[np.float64]] = []
    offset = 0
    for target, (_, row) in zip(packed, rows, strict=True):
        if isinstance(row, Sticks):
            _pack_sticks(target, row)
        elif isinstance(row, Logits):
            target["kind"], target["sigma"], target["vocab"] = KIND_LOGITS, row.sigma, row.vocab
        else:
            _pack_table(target, row, offset)
            shares.append(row.probs)
            offset += row.probs.size
    return Tables(packed, np.concatenate(shares) if shares else np.empty(0))


def alias_table(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Walker's alias table (Vose 1991): cell i keeps i with ``prob[i]``, else goes to ``alias[i]``."""
    scaled = weights / weights.sum() * weights.size
    prob = np.ones(weights.size)
    alias = np.arange(weights.size)
    small = [i for i, weight in enumerate(scaled) if weight < 1.0]
    large = [i for i, weight in enumerate(scaled) if weight >= 1.0]
    while small and large:
        low, high = small.pop(), large.pop()
        prob[low], alias[low] = scaled[low], high
        scaled[high] -= 1.0 - scaled[low]
        (small if scaled[high] < 1.0 else large).append(high)
    return prob, alias


def _pack_sticks(target: np.void, row: Sticks) -> None:
    from scipy.special import digamma

    target["kind"] = KIND_STICKS
    target["vocab"] = row.vocab or 0
    target["discount"] = row.discount
    target["strength"] = row.strength
    target["digamma"] = digamma(1.0 - row.discount)
    excess = -row.discount
    if excess == 0.0:
        target["thinning_limit"] = math.inf
    elif excess > 0.0:
        target["thinning_limit"] = max(1.0, math.expm1(min(_THINNING_LOG_COST / excess, 700.0)))


def _pack_table(target: np.void, row: Row, offset: int) -> None:
    target["kind"] = KIND_TABLE
    target["start"], target["stop"] = offset, offset + row.probs.size
    target["tail_share"], target["tail_count"] = row.tail_prob, row.tail_count
    entropy = -math.fsum(row.probs * np.log(row.probs))
    if row.tail_count:
        entropy -= row.tail_count * row.tail_prob * math.log(row.tail_prob)
    target["entropy"] = entropy
