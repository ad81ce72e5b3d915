"""Philox4x32-10, the counter-based generator of Salmon et al. (SC 2011), keyed by node.

Every random number of a tree is a pure function of (seed, tree index, node key, purpose, draw), so
the tree is a fixed object whoever grows it, in whatever order and to whatever depth.
All operands are explicit uint32/uint64: Numba, CUDA and NumPy promote bare literals differently.
"""

from __future__ import annotations

import numpy as np

from .target import jit

# What a random number is for. Numbers of different purposes are independent.
PURPOSE_STICKS = np.uint32(0)
PURPOSE_ROW = np.uint32(1)
PURPOSE_LOGITS = np.uint32(2)
PURPOSE_STATE = np.uint32(3)

_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint32(0x9E3779B9)
_WEYL_1 = np.uint32(0xBB67AE85)
_PURPOSE_SHIFT = np.uint32(24)
_WORD = np.uint64(32)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_30 = np.uint64(30)
_SHIFT_27 = np.uint64(27)
_SHIFT_31 = np.uint64(31)

ROOT_KEY = np.uint64(0x243F6A8885A308D3)

_HIGH_SHIFT = np.uint64(20)
_LOW_SHIFT = np.uint64(12)
_UNIT = 2.0**-52


@jit
def philox(c0, c1, c2, c3, k0, k1):
    """The four 32-bit words of one Philox4x32-10 block."""
    for _ in range(10):
        product_0 = _MULTIPLIER_0 * np.uint64(c0)
        product_1 = _MULTIPLIER_1 * np.uint64(c2)
        c0 = np.uint32(product_1 >> _WORD) ^ c1 ^ k0
        c1 = np.uint32(product_1)
        c2 = np.uint32(product_0 >> _WORD) ^ c3 ^ k1
        c3 = np.uint32(product_0)
        k0 = np.uint32(k0 + _WEYL_0)
        k1 = np.uint32(k1 + _WEYL_1)
    return c0, c1, c2, c3


@jit
def two_uniforms(seed, tree, key, purpose, draw):
    """Two independent uniforms, strictly inside (0, 1), of one node's draw number ``draw``."""
    w0, w1, w2, w3 = philox(
        np.uint32(key),
        np.uint32(key >> _WORD),
        np.uint32(tree),
        (purpose << _PURPOSE_SHIFT) | np.uint32(draw),
        np.uint32(seed),
        np.uint32(seed >> _WORD),
    )
    first = (np.uint64(w0) << _HIGH_SHIFT) | (np.uint64(w1) >> _LOW_SHIFT)
    second = (np.uint64(w2) << _HIGH_SHIFT) | (np.uint64(w3) >> _LOW_SHIFT)
    return (np.float64(first) + 0.5) * _UNIT, (np.float64(second) + 0.5) * _UNIT


@jit
def child_key(key, rank):
    """The 64-bit key of the node's child number ``rank`` (SplitMix64's finaliser)."""
    z = key + np.uint64(rank + 1) * _GOLDEN
    z = (z ^ (z >> _SHIFT_30)) * _MIX_1
    z = (z ^ (z >> _SHIFT_27)) * _MIX_2
    return z ^ (z >> _SHIFT_31)
