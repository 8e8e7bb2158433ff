"""A standard variate of given skewness, as a cubic of a normal one.

With z standard normal, y = (2/γ) [(1 - γ²/36 + γ z/6)³ - 1] has mean 0, variance 1 and skewness γ to within
.0001, .0003 and .01 at |γ| = 1, and .002, .004 and .07 at 2: the cube root of a gamma variate is nearly normal.
At γ = 0 it is z.

References
----------
Wilson & Hilferty, *The distribution of chi-square*, PNAS 17 (1931).
"""

from __future__ import annotations

from typing import Any

import numpy as np

_MOST = 3.0  # beyond, the cubic loses the mean and the variance too


def skewness(variance: Any, third: Any) -> Any:
    """γ of the third central moment; 0 of a constant. At most 3 in absolute value, which the cubic can take."""
    known = variance > 0
    return (known * third / (variance * variance**0.5 + ~known)).clip(-_MOST, _MOST)


def skewed(z: Any, skew: Any) -> Any:
    """y of z, without the cancellation of (c³ - 1)/γ = (c - 1)/γ · (c² + c + 1)."""
    excess = z / 6.0 - skew / 36.0
    c = 1.0 + skew * excess
    return 2.0 * excess * (c * c + c + 1.0)


def unskewed(y: Any, skew: Any) -> tuple[Any, Any]:
    """z of y, and dz/dy."""
    c = np.cbrt(1.0 + 0.5 * skew * y)
    return 3.0 * y / (c * c + c + 1.0) + skew / 6.0, 1.0 / (c * c)
