"""ln and exp in plain arithmetic: the same bits on every machine, and loops over them vectorise.

After fdlibm (Sun Microsystems, 1993): argument reduction and the minimax coefficients are its own.
Both are within 2 units in the last place for normal arguments, which is all the kernels have.
"""

from __future__ import annotations

import numpy as np

from .target import bits_of, float_of, inlined

_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_LOG2_E = 1.44269504088896338700e00
_ONE_BITS = np.int64(0x3FF0000000000000)
_SQRT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)
_FRACTION = np.int64(0x000FFFFFFFFFFFFF)
_SHIFT = np.int64(52)
_BIAS = np.int64(1023)
_ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, kept in the last bits
_SMALLEST = -708.0


@inlined
def log_of(x):
    """Natural logarithm of a normal positive number."""
    bits = bits_of(x) + (_ONE_BITS - _SQRT_HALF_BITS)
    exponent = np.float64((bits >> _SHIFT) - _BIAS)
    f = float_of((bits & _FRACTION) + _SQRT_HALF_BITS) - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    odd = z * (
        6.666666666666735130e-01
        + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    half = 0.5 * f * f
    return exponent * _LN2_HIGH - ((half - (s * (half + (even + odd)) + exponent * _LN2_LOW)) - f)


@inlined
def exp_of(x):
    """e^x for x <= 709; everything below -708 counts as -708, some 1e-308."""
    bounded = x if x > _SMALLEST else _SMALLEST
    shifted = bounded * _LOG2_E + _ROUNDER
    power = shifted - _ROUNDER
    high = bounded - power * _LN2_HIGH
    low = power * _LN2_LOW
    r = high - low
    z = r * r
    c = r - z * (
        1.66666666666666019037e-01
        + z
        * (
            -2.77777777770155933842e-03
            + z
            * (
                6.61375632143793436117e-05
                + z * (-1.65339022054652515390e-06 + z * 4.13813679705723846039e-08)
            )
        )
    )
    fraction = 1.0 - ((low - (r * c) / (2.0 - c)) - high)
    return fraction * float_of((bits_of(shifted) + _BIAS) << _SHIFT)
