"""The obvious, slow twin of the kernels: Python integers, whole child lists, ``heapq``.

It draws a node's children without any threshold and shares no code with ``brwsim.kernels``; the tree
of (seed, tree index) must come out the same, node by node.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from brwsim.process.base import (
    Alone,
    Gaussian,
    KernelRow,
    Layout,
    Logits,
    Moves,
    Rotation,
    Row,
    State,
    Sticks,
)

MASK_32 = 2**32 - 1
MASK_64 = 2**64 - 1
ROOT_KEY = 0x243F6A8885A308D3
STICKS, ROW, LOGITS, STATE = 0, 1, 2, 3
NEGLIGIBLE = 1e-4  # of a node's mass: ten times below the lightest node the tests extract


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 in Python integers."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK_32, (p0 >> 32) ^ c3 ^ k1, p0 & MASK_32
        k0, k1 = (k0 + 0x9E3779B9) & MASK_32, (k1 + 0xBB67AE85) & MASK_32
    return c0, c1, c2, c3


def child_key(key: int, rank: int) -> int:
    """The key of child number ``rank`` (from 1)."""
    z = (key + (rank + 1) * 0x9E3779B97F4A7C15) & MASK_64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK_64
    return z ^ (z >> 31)


@dataclass
class Stream:
    """A node's random numbers for one purpose, in order."""

    seed: int
    tree: int
    key: int
    purpose: int
    draw: int = 0

    def two(self) -> tuple[float, float]:
        """The next two uniforms."""
        counter = (self.key & MASK_32, self.key >> 32, self.tree, (self.purpose << 24) | self.draw)
        w = philox(counter, (self.seed & MASK_32, self.seed >> 32))
        self.draw += 1
        return tuple((((w[i] << 20) | (w[i + 1] >> 12)) + 0.5) * 2.0**-52 for i in (0, 2))  # type: ignore[return-value]


def beta(stream: Stream, a: float, b: float) -> tuple[float, float]:
    """(x, 1 - x) with x from Beta(a, b)."""
    if a >= 1.0 and (a == 1.0 or b <= max(1.0, math.expm1(min(2.0 / (a - 1.0), 700.0)))):
        return _thinned(stream, a, b)
    if a < 1.0 and b < 1.0:
        return _johnk(stream, a, b)
    return _cheng(stream, a, b)


def _thinned(stream: Stream, a: float, b: float) -> tuple[float, float]:
    while True:
        u, v = stream.two()
        kept = math.exp(math.log(u) / b)
        x = 1.0 - kept
        if a == 1.0 or (x > 0.0 and math.log(v) <= (a - 1.0) * math.log(x)):
            return x, kept


def _johnk(stream: Stream, a: float, b: float) -> tuple[float, float]:
    while True:
        u, v = stream.two()
        log_x, log_y = math.log(u) / a, math.log(v) / b
        top = max(log_x, log_y)
        x, y = math.exp(log_x - top), math.exp(log_y - top)
        if top + math.log(x + y) <= 0.0:
            return x / (x + y), y / (x + y)


def _cheng(stream: Stream, a: float, b: float) -> tuple[float, float]:
    total = a + b
    if min(a, b) > 1.0:  # BB, accepting by the exact test alone
        small, other = min(a, b), max(a, b)
        rate = math.sqrt((total - 2.0) / (2.0 * a * b - total))
        gamma = small + 1.0 / rate
        while True:
            u, v = stream.two()
            logit = rate * math.log(u / (1.0 - u))
            weight = small * math.exp(logit)
            if gamma * logit - math.log(4.0) + total * math.log(total / (other + weight)) >= math.log(
                u * u * v
            ):
                x = weight / (other + weight), other / (other + weight)
                return x if small == a else x[::-1]
    large, small = max(a, b), min(a, b)  # BC, likewise
    while True:
        u, v = stream.two()
        logit = min(math.log(u / (1.0 - u)) / small, 700.0)
        weight = large * math.exp(logit)
        if total * (math.log(total / (small + weight)) + logit) - math.log(4.0) >= math.log(u * u * v):
            x = weight / (small + weight), small / (small + weight)
            return x if large == a else x[::-1]


def shares(row: KernelRow, seed: int, tree: int, key: int) -> list[float]:
    """A node's child probabilities, in the order their ranks count (all but a negligible rest)."""
    if isinstance(row, Row):
        return [float(p) for p in row.probs] + [row.tail_prob] * row.tail_count
    if isinstance(row, Logits):
        return _softmax(row, seed, tree, key)
    return _sticks(row, Stream(seed, tree, key, STICKS))


def _softmax(row: Logits, seed: int, tree: int, key: int) -> list[float]:
    stream = Stream(seed, tree, key, LOGITS)
    pairs = [stream.two() for _ in range((row.vocab + 1) // 2)]
    normals = [math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v) for u, v in pairs]
    normals += [math.sqrt(-2.0 * math.log(u)) * math.sin(2.0 * math.pi * v) for u, v in pairs]
    weights = [math.exp(row.sigma * z) for z in normals[: row.vocab]]
    return [weight / math.fsum(weights) for weight in weights]


def _sticks(row: Sticks, stream: Stream) -> list[float]:
    found: list[float] = []
    rest = 1.0
    while rest > NEGLIGIBLE:
        rank = len(found) + 1
        taken, kept = (
            (1.0, 0.0)
            if rank == row.vocab
            else beta(stream, 1.0 - row.discount, row.strength + rank * row.discount)
        )
        found.append(rest * taken)
        rest *= kept
    return found


def best_weights(rows: list[tuple[float, KernelRow]], seed: int, tree: int, limit: int) -> list[float]:
    """Weights of the ``limit`` heaviest nodes, heaviest first; one row, or rows of equal weights."""
    return best_nodes(Layout([State(rows, 0.0)], Alone()), seed, tree, limit)


def best_nodes(layout: Layout, seed: int, tree: int, limit: int) -> list[float]:
    """The same for a process with states, each with one row or rows of equal weights."""
    heap: list[tuple[float, int, int, Code]] = [(-1.0, 0, ROOT_KEY, None)]
    pushed = 1
    best = []
    while len(best) < limit:
        negative, _, key, code = heapq.heappop(heap)
        best.append(-negative)
        value, state = enter(layout.memory, seed, tree, key, code)
        row = choose_row(layout.states[state], seed, tree, key)
        for rank, share in enumerate(shares(row, seed, tree, key), start=1):
            child = (negative * share, pushed, child_key(key, rank), (value, rank))
            heapq.heappush(heap, child)
            pushed += 1
    return best


Code = tuple[float, int] | None
"""What a child is born with: its parent's value and its own rank; None for the root."""


def enter(
    memory: Alone | Moves | Gaussian | Rotation, seed: int, tree: int, key: int, code: Code
) -> tuple[float, int]:
    """A node's value (of a chain, its state) and its state."""
    stream = Stream(seed, tree, key, STATE)
    if isinstance(memory, Alone):
        return 0.0, 0
    if isinstance(memory, Moves):
        law = memory.start
        if code is not None:
            parent, rank = code
            law = memory.matrices[min(rank, len(memory.matrices)) - 1][int(parent)]
        state = _drawn(stream.two()[0], [float(p) for p in law])
        return float(state), state
    if isinstance(memory, Gaussian):
        value = memory.start if code is None and memory.start is not None else _normal(stream)
        if code is not None:
            value = memory.rho * code[0] + math.sqrt(1.0 - memory.rho**2) * value
    else:
        first = stream.two()[0] if memory.start is None else memory.start
        value = first if code is None else code[0] + memory.move
        value -= math.floor(value)
    return value, sum(1 for level in memory.levels if level <= value)


def _drawn(u: float, law: Sequence[float]) -> int:
    """The first possible outcome whose cumulative probability exceeds ``u``."""
    reached = 0.0
    possible = [outcome for outcome, p in enumerate(law) if p > 0.0]
    for outcome in possible:
        reached += law[outcome]
        if reached > u:
            return outcome
    return possible[-1]


def _normal(stream: Stream) -> float:
    u, v = stream.two()
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)


def choose_row(state: State, seed: int, tree: int, key: int) -> KernelRow:
    """One of a state's rows, all equally likely."""
    index = 0
    if len(state.rows) > 1:
        index = int(Stream(seed, tree, key, ROW).two()[0] * len(state.rows))
    return state.rows[index][1]
