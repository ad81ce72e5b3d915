"""Random variates and the one special function the kernels need."""

from __future__ import annotations

import math

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
    return math.log(x) - 0.5 * inverse - series - slope / product


@jit
def beta_near_one(seed, tree, key, purpose, draw, a, b):
    """Beta(a, b) with a >= 1 by thinning Beta(1, b): one power, and few rejections while (1+b)^(a-1) is small.

    Returns (x, 1 - x, next draw).
    """
    excess = a - 1.0
    while True:
        u, v = two_uniforms(seed, tree, key, purpose, draw)
        draw += 1
        kept = math.exp(math.log(u) / b)
        x = 1.0 - kept
        if excess == 0.0:
            return x, kept, draw
        # x^excess >= 1 - excess (1 - x) / x settles most cases without a logarithm
        if v * x <= x - excess * kept or (x > 0.0 and math.log(v) <= excess * math.log(x)):
            return x, kept, draw


@jit
def beta_small(seed, tree, key, purpose, draw, a, b):
    """Beta(a, b) for a, b <= 1 by Johnk's method (1964). Returns (x, 1 - x, next draw)."""
    while True:
        u, v = two_uniforms(seed, tree, key, purpose, draw)
        draw += 1
        log_x = math.log(u) / a
        log_y = math.log(v) / b
        top = max_of(log_x, log_y)
        x = math.exp(log_x - top)
        y = math.exp(log_y - top)
        if top + math.log(x + y) <= 0.0:
            return x / (x + y), y / (x + y), draw


@jit
def beta_cheng(seed, tree, key, purpose, draw, a, b):
    """Beta(a, b) by Cheng (1978): BB when both exceed 1, else BC. Returns (x, 1 - x, next draw)."""
    if a > 1.0 and b > 1.0:
        return _cheng_bb(seed, tree, key, purpose, draw, a, b)
    return _cheng_bc(seed, tree, key, purpose, draw, a, b)


@jit
def _cheng_bb(seed, tree, key, purpose, draw, a, b):
    small = a if a < b else b
    total = a + b
    rate = math.sqrt((total - 2.0) / (2.0 * a * b - total))
    gamma = small + 1.0 / rate
    while True:
        u, v = two_uniforms(seed, tree, key, purpose, draw)
        draw += 1
        logit = rate * math.log(u / (1.0 - u))
        weight = small * math.exp(logit)
        z = u * u * v
        r = gamma * logit - _LOG_4
        s = small + r - weight
        other = total - small
        if s + 2.6094379124341003 >= 5.0 * z:  # 1 + ln 5
            break
        t = math.log(z)
        if s >= t or r + total * math.log(total / (other + weight)) >= t:
            break
    if small == a:
        return weight / (other + weight), other / (other + weight), draw
    return other / (other + weight), weight / (other + weight), draw


@jit
def _cheng_bc(seed, tree, key, purpose, draw, a, b):
    large = a if a > b else b
    small = a if a <= b else b
    total = a + b
    rate = 1.0 / small
    delta = 1.0 + large - small
    k1 = delta * (0.0138889 + 0.0416667 * small) / (large * rate - 0.777778)
    k2 = 0.25 + (0.5 + 0.25 / delta) * small
    while True:
        u, v = two_uniforms(seed, tree, key, purpose, draw)
        draw += 1
        y = u * v
        z = u * y
        if u < 0.5:
            if 0.25 * v + z - y >= k1:
                continue
        elif z >= k2:
            continue
        logit = rate * math.log(u / (1.0 - u))
        if logit > 700.0:  # where exp overflows the share is 1 to the last bit anyway
            logit = 700.0
        weight = large * math.exp(logit)
        if u >= 0.5 and z <= 0.25:
            break
        if total * (math.log(total / (small + weight)) + logit) - 1.3862944 >= math.log(z):
            break
    if large == a:
        return weight / (small + weight), small / (small + weight), draw
    return small / (small + weight), weight / (small + weight), draw


@jit
def max_of(x, y):
    """The larger of two numbers: two-argument ``max`` does not compile on every CUDA target."""
    return x if x > y else y
