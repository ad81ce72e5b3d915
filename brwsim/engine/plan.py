"""Blocks: the fixed ranges of trees that everything is computed, stored and merged in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_FIRST_SIZE = 4
_BLOCKS_PER_SIZE = 8
_NODES_PER_BLOCK = 2**21
_TREES_PER_BLOCK = 2**15
TREES_PER_TIER = 2**28


@dataclass(frozen=True, order=True)
class Block:
    """``trees`` consecutive trees, grown to the first ``reach`` values of P.

    Tier 0 reaches the whole grid; higher tiers grow other trees, less far. Block ``index`` of a tier
    always starts at the same tree and has the same full size, whatever run it belongs to; only the
    last block of a run of exactly N trees may be cut short.
    """

    tier: int
    index: int
    first_tree: int
    trees: int
    reach: int


def blocks(tier: int, reach: int, top_P: int, trees: int) -> Iterator[Block]:
    """The blocks of a tier that hold its first ``trees`` trees, the last one cut to fit.

    Sizes double every few blocks: a short run still has several blocks, a long one not too many, and
    none takes more than a second or so (``top_P`` nodes a tree).
    """
    largest = min(_TREES_PER_BLOCK, max(_FIRST_SIZE, _NODES_PER_BLOCK // top_P))
    start = 0
    index = 0
    while start < trees:
        size = min(_FIRST_SIZE << min(index // _BLOCKS_PER_SIZE, 40), largest)
        yield Block(tier, index, tier * TREES_PER_TIER + start, min(size, trees - start), reach)
        start += size
        index += 1
