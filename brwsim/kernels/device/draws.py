"""Random variates and the one special function the kernels need."""

from __future__ import annotations

import math

from .philox import two_uniforms
from .target import jit

_TWO_PI = 2.0 * math.pi
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
    return math.log(x) - 0.5 * inverse - series - slope / product


@jit
def normal(seed, tree, key, purpose, index):
    """The node's standard normal number ``index``, by Box and Muller (1958), two to a Philox block."""
    u, v = two_uniforms(seed, tree, key, purpose, index >> 1)
    radius = math.sqrt(-2.0 * math.log(u))
    if index & 1:
        return radius * math.sin(_TWO_PI * v)
    return radius * math.cos(_TWO_PI * v)


# Each sampler makes one attempt from two uniforms and returns (accepted, x, 1 - x).


@jit
def beta_near_one(u, v, a, b):
    """Beta(a, b) with a >= 1 by thinning Beta(1, b): few rejections while (1 + b)^(a - 1) is small."""
    excess = a - 1.0
    kept = math.exp(math.log(u) / b)
    x = 1.0 - kept
    # x^excess >= 1 - excess (1 - x) / x settles most cases without another logarithm
    accepted = v * x <= x - excess * kept
    if not accepted and x > 0.0:
        accepted = math.log(v) <= excess * math.log(x)
    return accepted, x, kept


@jit
def beta_small(u, v, a, b):
    """Beta(a, b) for a, b <= 1 by Johnk's method (1964)."""
    log_x = math.log(u) / a
    log_y = math.log(v) / b
    top = log_x if log_x > log_y else log_y
    x = math.exp(log_x - top)
    y = math.exp(log_y - top)
    return top + math.log(x + y) <= 0.0, x / (x + y), y / (x + y)


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
    logit = rate * math.log(u / (1.0 - u))
    weight = small * math.exp(logit)
    z = u * u * v
    r = gamma * logit - _LOG_4
    other = total - small
    accepted = small + r - weight + 2.6094379124341003 >= 5.0 * z  # 1 + ln 5
    if not accepted:
        accepted = r + total * math.log(total / (other + weight)) >= math.log(z)
    if small == a:
        return accepted, weight / (other + weight), other / (other + weight)
    return accepted, other / (other + weight), weight / (other + weight)


@jit
def _cheng_bc(u, v, a, b):
    large = a if a > b else b
    small = a if a <= b else b
    total = a + b
    logit = math.log(u / (1.0 - u)) / small
    if logit > 700.0:  # where exp overflows the share is 1 to the last bit anyway
        logit = 700.0
    weight = large * math.exp(logit)
    # the exact test; Cheng's squeezes save less than their branches cost
    accepted = total * (math.log(total / (small + weight)) + logit) - _LOG_4 >= math.log(u * u * v)
    if large == a:
        return accepted, weight / (small + weight), small / (small + weight)
    return accepted, small / (small + weight), weight / (small + weight)
