"""The float64 boundary: public host functions compute in double precision whatever JAX is configured to do."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def float64(function: Callable[P, R]) -> Callable[P, R]:
    """Run a host function in float64 and return NumPy arrays.

    The setting is scoped and local to the thread; the user's configuration is never changed. Not for
    kernels, which others may `jit` or `vmap`, nor around a user's iterator or callback.
    """

    @wraps(function)
    def in_float64(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return jax.tree.map(_to_numpy, function(*args, **kwargs))

    return in_float64


def _to_numpy(leaf: Any) -> Any:
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf
