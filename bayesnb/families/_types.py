"""Arrays of JAX or NumPy, for annotations with shapes."""

from __future__ import annotations

import jax
import numpy as np

Array = jax.Array | np.ndarray
