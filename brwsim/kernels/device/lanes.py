"""Many sticks broken at once: the arithmetic of a wave of nodes as loops that vectorise.

``break_stick`` does the same for one node; the numbers are equal to the last bit.
"""

from __future__ import annotations

from .elementary import exp_of, log_of
from .laws import KIND_STICKS
from .philox import PURPOSE_STICKS, two_uniforms
from .target import jit

# Rows of the scratch array ``lanes``, one lane per node of the wave
IS_THINNED, EXPONENT, MASS, V, LOG_KEPT, KEPT, CHILD, LOG_CHILD = range(8)
# and per slot of the batch: the state between waves
SLOT_MASS, SLOT_LOG_MASS, SLOT_TOTAL, SLOT_BIAS = range(8, 12)
FLOAT_ROWS = 12
# Rows of the integer scratch array ``slots``
ROW, RANK, DRAW, ACTIVE, LANE_DRAW, GROUP_OF = range(6)
INT_ROWS = 6


@jit
def break_sticks(rows, seed, tree, keys, head, active, lanes, lane_keys, slots):
    """Propose the next child of each active slot whose law is thinned from Beta(1, b)."""
    for i in range(active):
        slot = slots[ACTIVE, i]
        row = rows[slots[ROW, slot]]
        rank = slots[RANK, slot] + 1
        b = row.strength + rank * row.discount
        is_thinned = row.kind == KIND_STICKS and rank != row.vocab and b <= row.thinning_limit
        lanes[IS_THINNED, i] = is_thinned
        lanes[EXPONENT, i] = b if is_thinned else 1.0
        lanes[MASS, i] = lanes[SLOT_MASS, slot]
        lane_keys[i] = keys[head + slot]
        slots[LANE_DRAW, i] = slots[DRAW, slot]
    for i in range(active):
        u, v = two_uniforms(seed, tree, lane_keys[i], PURPOSE_STICKS, slots[LANE_DRAW, i])
        lanes[KEPT, i] = u
        lanes[V, i] = v
    for i in range(active):
        lanes[LOG_KEPT, i] = log_of(lanes[KEPT, i]) / lanes[EXPONENT, i]
    for i in range(active):
        lanes[KEPT, i] = exp_of(lanes[LOG_KEPT, i])
    for i in range(active):
        lanes[CHILD, i] = lanes[MASS, i] * (1.0 - lanes[KEPT, i])
    for i in range(active):
        lanes[LOG_CHILD, i] = log_of(lanes[CHILD, i])
