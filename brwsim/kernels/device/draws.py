"""Random variates and the one special function the kernels need."""

from __future__ import annotations

import math

from .elementary import exp_of, log_of, sin_cos_of_turn
from .philox import two_uniforms
from .target import jit

_LOG_4 = math.log(4.0)
# |B_2k| / 2k for k = 7, ..., 1: Horner's rule with alternating signs
_DIGAMMA_SERIES = (
    1.0 / 12.0,
    691.0 / 32760.0,
    1.0 / 132.0,
    1.0 / 240.0,
    1.0 / 252.0,
    1.0 / 120.0,
    1.0 / 12.0,
)


@jit
def digamma(x):
    """psi(x) for x > 0, to about 1e-15: shift by eight, then the asymptotic series."""
    product = 1.0
    slope = 0.0  # d/dx of the product, so that slope/product = sum of 1/(x + i) with one division
    for _ in range(8):
        slope = slope * x + product
        product *= x
        x += 1.0
    inverse = 1.0 / x
    square = inverse * inverse
    series = 0.0
    for bernoulli in _DIGAMMA_SERIES:
        series = square * (bernoulli - series)
    return log_of(x) - 0.5 * inverse - series - slope / product


@jit
def normal(seed, tree, key, purpose, index):
    """The node's standard normal number ``index``, by Box and Muller (1958), two to a Philox block."""
    u, v = two_uniforms(seed, tree, key, purpose, index >> 1)
    sine, cosine = sin_cos_of_turn(v)
    return math.sqrt(-2.0 * log_of(u)) * (sine if index & 1 else cosine)


# Each sampler makes one attempt from two uniforms and returns (accepted, x, 1 - x, ln(1 - x)).


@jit
def beta_near_one(u, v, a, b):
    """Beta(a, b) with a >= 1 by thinning Beta(1, b): few rejections while (1 + b)^(a - 1) is small."""
    log_kept = log_of(u) / b
    kept = exp_of(log_kept)
    x = 1.0 - kept
    return is_kept_in_thinning(v, x, kept, a - 1.0), x, kept, log_kept


@jit
def is_kept_in_thinning(v, x, kept, excess):
    """Whether v <= x^excess; x^excess >= 1 - excess (1 - x) / x settles most cases without a logarithm."""
    accepted = v * x <= x - excess * kept
    if not accepted and x > 0.0:
        accepted = log_of(v) <= excess * log_of(x)
    return accepted


@jit
def beta_small(u, v, a, b):
    """Beta(a, b) for a, b <= 1 by Johnk's method (1964)."""
    log_x = log_of(u) / a
    log_y = log_of(v) / b
    top = log_x if log_x > log_y else log_y
    x = exp_of(log_x - top)
    y = exp_of(log_y - top)
    left = y / (x + y)
    return top + log_of(x + y) <= 0.0, x / (x + y), left, log_of(left)


@jit
def beta_cheng(u, v, a, b):
    """Beta(a, b) by Cheng (1978): BB when both exceed 1, else BC."""
    if a > 1.0 and b > 1.0:
        return _cheng_bb(u, v, a, b)
    return _cheng_bc(u, v, a, b)


@jit
def _cheng_bb(u, v, a, b):
    small = a if a < b else b
    total = a + b
    rate = math.sqrt((total - 2.0) / (2.0 * a * b - total))
    gamma = small + 1.0 / rate
    logit = rate * log_of(u / (1.0 - u))
    weight = small * exp_of(logit)
    z = u * u * v
    r = gamma * logit - _LOG_4
    other = total - small
    accepted = small + r - weight + 2.6094379124341003 >= 5.0 * z  # 1 + ln 5
    if not accepted:
        accepted = r + total * log_of(total / (other + weight)) >= log_of(z)
    taken = weight / (other + weight) if small == a else other / (other + weight)
    left = other / (other + weight) if small == a else weight / (other + weight)
    return accepted, taken, left, log_of(left)


@jit
def _cheng_bc(u, v, a, b):
    large = a if a > b else b
    small = a if a <= b else b
    total = a + b
    logit = log_of(u / (1.0 - u)) / small
    if logit > 700.0:  # where exp overflows the share is 1 to the last bit anyway
        logit = 700.0
    weight = large * exp_of(logit)
    # the exact test; Cheng's squeezes save less than their branches cost
    accepted = total * (log_of(total / (small + weight)) + logit) - _LOG_4 >= log_of(u * u * v)
    taken = weight / (small + weight) if large == a else small / (small + weight)
    left = small / (small + weight) if large == a else weight / (small + weight)
    return accepted, taken, left, log_of(left)
