"""ln, exp, sine and cosine in plain arithmetic: the same bits on every machine, and loops over them vectorise.

After fdlibm (Sun Microsystems, 1993): argument reduction and the minimax coefficients are its own.
Both are within 2 units in the last place for normal arguments, which is all the kernels have.
"""

from __future__ import annotations

import numpy as np

from .target import bits_of, float_of, jit

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
_TWO_PI = 6.28318530717958647693


@jit
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


@jit
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


@jit
def sin_cos_of_turn(turn):
    """(sin, cos) of 2 pi ``turn``, for a turn from 0 to 1."""
    quarters = turn * 4.0 + _ROUNDER
    quarter = np.int64(quarters - _ROUNDER)
    x = (turn - (quarters - _ROUNDER) * 0.25) * _TWO_PI  # from -pi/4 to pi/4
    z = x * x
    sine = x + x * z * (
        -1.66666666666666324348e-01
        + z
        * (
            8.33333333332248946124e-03
            + z
            * (
                -1.98412698298579493134e-04
                + z
                * (
                    2.75573137070700676789e-06
                    + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
                )
            )
        )
    )
    cosine = (
        1.0
        - 0.5 * z
        + z
        * z
        * (
            4.16666666666666019037e-02
            + z
            * (
                -1.38888888888741095749e-03
                + z
                * (
                    2.48015872894767294178e-05
                    + z
                    * (
                        -2.75573143513906633035e-07
                        + z * (2.08757232129817482790e-09 - z * 1.13596475577881948265e-11)
                    )
                )
            )
        )
    )
    is_odd = quarter & 1
    first = cosine if is_odd else sine
    second = sine if is_odd else cosine
    sign_first = -1.0 if quarter & 2 else 1.0
    sign_second = -1.0 if (quarter + 1) & 2 else 1.0
    return sign_first * first, sign_second * second
