"""Double precision for public host functions, whatever JAX is configured to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

_FORKED = (
    "This process was forked after JAX had started threads. A forked process lacks these threads, and would wait for "
    "them forever. Start workers with 'spawn' or 'forkserver' (multiprocessing.get_context('spawn'), or mp_context= of "
    "concurrent.futures), use joblib's loky (scikit-learn's n_jobs=), or fork before you fit, load or predict anything."
)


class ForkedError(RuntimeError):
    """Raised in a process that was forked after JAX had been used in its parent."""


def float64(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a host function to run in float64, and to return NumPy arrays in place of JAX arrays.

    The setting is scoped and local to the thread; the user's configuration is never changed. Not for
    kernels, which others may `jit` or `vmap`, nor around a user's iterator or callback.

    Raises
    ------
    ForkedError
        If the process was forked after kernels had run in its parent, as the process would wait forever for JAX's
        threads, which a fork does not copy.
    """

    @wraps(function)
    def in_float64(*args: P.args, **kwargs: P.kwargs) -> R:
        if _first_process() != os.getpid():
            raise ForkedError(_FORKED)
        with _float64_settings():
            result: R = jax.tree.map(_to_numpy, function(*args, **kwargs))
            return result

    return in_float64


@cache
def _first_process() -> int:
    """Id of the process in which the first kernel ran; a forked process has the id of its parent cached."""
    return os.getpid()


@contextmanager
def _float64_settings() -> Iterator[None]:
    """Context with double precision, and with JAX's defaults for settings under which the kernels would fail.

    The kernels, in JAX or in NumPy, return NaN and infinity, and mix integers of different widths in indices.
    """
    with (
        jax.enable_x64(True),
        jax.numpy_dtype_promotion("standard"),
        jax.debug_nans(False),
        jax.debug_infs(False),
        jax.transfer_guard("allow"),
        np.errstate(all="ignore"),
    ):
        yield


def _to_numpy(leaf: Any) -> Any:
    """Return a JAX array as a NumPy array, and any other value unchanged."""
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf
