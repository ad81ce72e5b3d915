"""From a process's layout to the flat arrays the kernel body reads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brwsim.kernels.device import context as contexts
from brwsim.kernels.device.grow import Tables
from brwsim.kernels.device.laws import (
    KIND_BACKOFF,
    KIND_LOGITS,
    KIND_STICKS,
    KIND_TABLE,
    RANKS_TABULATED,
    ROW,
)
from brwsim.process.base import (
    Floats,
    Gaussian,
    KernelRow,
    Layout,
    Logits,
    Moves,
    NgramLayout,
    Rotation,
    Row,
    State,
    Sticks,
)

# Thinning Beta(1, b) into Beta(a, b) accepts about (1 + b)^-(a - 1) of the proposals; down to e^-2 its
# attempts, which vectorise, cost less than one by Cheng's method.
_THINNING_LOG_COST = 2.0


def pack(layout: Layout | NgramLayout) -> Tables:
    """Lay out a process."""
    if isinstance(layout, NgramLayout):
        return _pack_ngram(layout)
    rows, groups, shares = _pack_states(layout.states)
    remaining = _remaining(rows)
    memory = layout.memory
    empty = _empty()
    if isinstance(memory, Moves):
        empty.update(_pack_moves(memory, groups["phi"]))
    elif isinstance(memory, Gaussian):
        empty.update(
            context=_context(
                contexts.GAUSSIAN,
                rho=memory.rho,
                noise=math.sqrt(1.0 - memory.rho**2),
                start=math.nan if memory.start is None else memory.start,
            ),
            levels=memory.levels,
            polynomials=np.array([memory.phi, memory.expected_phi]),
        )
    elif isinstance(memory, Rotation):
        start = math.nan if memory.start is None else memory.start
        empty.update(context=_context(contexts.ROTATION, move=memory.move, start=start), levels=memory.levels)
    return Tables(rows=rows, groups=groups, shares=shares, remaining=remaining, **empty)


def _pack_ngram(layout: NgramLayout) -> Tables:
    """A backoff row for every context, and a state of its own unless the contexts are drawn independently."""
    model, contexts_count = layout.model, layout.pi.size
    rows = np.zeros(contexts_count, ROW)
    rows["kind"] = KIND_BACKOFF
    for name in ("start", "stop", "backoff", "scale"):
        rows[name] = getattr(model, name)
    rows["entropy"] = layout.entropy
    arrays = _empty()
    arrays["tokens"] = np.concatenate([model.token, model.token_sorted])
    arrays["nexts"] = model.next
    if layout.is_iid:
        groups = np.zeros(1, contexts.GROUP)
        groups["row_count"] = contexts_count
        groups["entropy"] = layout.pi @ layout.entropy
        rows["alias_prob"], rows["alias_row"] = alias_table(layout.pi)
    else:
        groups = np.zeros(contexts_count, contexts.GROUP)
        groups["first_row"], groups["row_count"] = np.arange(contexts_count), 1
        groups["entropy"], groups["phi"] = layout.entropy, layout.phi
        codes = np.zeros(1, contexts.CODE)
        codes["stop"], codes["expected_phi"] = contexts_count, layout.pi @ layout.phi
        arrays["context"] = _context(contexts.NGRAM)
        arrays["codes"] = codes
        arrays["cumulative"], arrays["targets"] = np.cumsum(layout.pi), np.arange(contexts_count)
    return Tables(rows=rows, groups=groups, shares=model.prob, remaining=np.empty(0), **arrays)


def logits_capacity(tables: Tables) -> int:
    """Room ``fill_shares`` needs for the largest law of logits; 0 without one."""
    of_logits = tables.rows["kind"] == KIND_LOGITS
    return 2 * ((int(tables.rows["vocab"][of_logits].max(initial=0)) + 1) // 2)


def _empty() -> dict[str, Any]:
    """The arrays of a process without states."""
    return {
        "tokens": np.empty(0, np.int32),
        "nexts": np.empty(0, np.int64),
        "context": _context(contexts.ALONE),
        "codes": np.zeros(1, contexts.CODE),
        "cumulative": np.empty(0),
        "targets": np.empty(0, np.int64),
        "levels": np.empty(0),
        "polynomials": np.zeros((2, 1)),
    }


def _context(kind: int, **values: float) -> NDArray[np.void]:
    packed = np.zeros(1, contexts.CONTEXT)
    packed["kind"] = kind
    for name, value in values.items():
        packed[name] = value
    return packed


def _pack_states(states: list[State]) -> tuple[NDArray[np.void], NDArray[np.void], Floats]:
    rows = np.zeros(sum(len(state.rows) for state in states), ROW)
    groups = np.zeros(len(states), contexts.GROUP)
    shares: list[Floats] = []
    filled = 0
    offset = 0
    for group, state in zip(groups, states, strict=True):
        count = len(state.rows)
        group["first_row"], group["row_count"] = filled, count
        group["entropy"], group["phi"] = state.entropy, state.phi
        own = rows[filled : filled + count]
        own["alias_prob"], alias = alias_table(np.array([weight for weight, _ in state.rows]))
        own["alias_row"] = alias + filled
        for target, (_, row) in zip(own, state.rows, strict=True):
            offset += _pack_row(target, row, offset, shares)
        filled += count
    return rows, groups, np.concatenate(shares) if shares else np.empty(0)


def _remaining(rows: NDArray[np.void]) -> Floats:
    """Entropy left after 0, 1, ... children, for every stick-breaking row; tells each where its own begins."""
    from scipy.special import digamma

    sticks = np.flatnonzero(rows["kind"] == KIND_STICKS)
    rows["remaining"][sticks] = RANKS_TABULATED * np.arange(sticks.size)
    ranks = np.arange(RANKS_TABULATED)
    strength = rows["strength"][sticks, None] + ranks * rows["discount"][sticks, None]
    left = digamma(np.maximum(strength, 0.0) + 1.0) - rows["digamma"][sticks, None]
    return np.ascontiguousarray(left.ravel())


def _pack_row(target: np.void, row: KernelRow, offset: int, shares: list[Floats]) -> int:
    """Fill in one row; returns how many shares it added."""
    if isinstance(row, Sticks):
        _pack_sticks(target, row)
        return 0
    if isinstance(row, Logits):
        target["kind"], target["sigma"], target["vocab"] = KIND_LOGITS, row.sigma, row.vocab
        return 0
    _pack_table(target, row, offset)
    shares.append(row.probs)
    return row.probs.size


def _pack_moves(memory: Moves, phi: Floats) -> dict[str, Any]:
    """Every (state, rank class) and the start as a code: a slice of targets with cumulative probabilities."""
    from scipy import sparse

    classes = len(memory.matrices)
    size = memory.start.size
    matrices = [sparse.csr_array(matrix) for matrix in memory.matrices]
    laws = [matrices[rank][[state], :].tocoo() for state in range(size) for rank in range(classes)]
    choices = [(law.coords[1], law.data) for law in laws] + [
        (np.flatnonzero(memory.start), memory.start[memory.start > 0])
    ]
    codes = np.zeros(len(choices), contexts.CODE)
    offset = 0
    for code, (targets, probs) in zip(codes, choices, strict=True):
        code["start"], code["stop"] = offset, offset + targets.size
        code["expected_phi"] = probs @ phi[targets]
        offset += targets.size
    return {
        "context": _context(contexts.MARKOV, rank_classes=classes, root_code=size * classes),
        "codes": codes,
        "cumulative": np.concatenate([np.cumsum(probs) for _, probs in choices]),
        "targets": np.concatenate([targets for targets, _ in choices]).astype(np.int64),
    }


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
