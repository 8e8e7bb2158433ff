"""The float64 boundary: public host functions compute in double precision whatever JAX is configured to do."""

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


class ForkedError(RuntimeError):
    """A process was forked after JAX had been used in its parent."""


def float64(function: Callable[P, R]) -> Callable[P, R]:
    """Run a host function in float64 and return NumPy arrays.

    The setting is scoped and local to the thread; the user's configuration is never changed. Not for
    kernels, which others may `jit` or `vmap`, nor around a user's iterator or callback.

    Raises
    ------
    ForkedError
        In a process that was forked after kernels had run in its parent: JAX's threads are gone there, and it would
        wait for them forever.
    """

    @wraps(function)
    def in_float64(*args: P.args, **kwargs: P.kwargs) -> R:
        _require_threads()
        with _settings():
            return jax.tree.map(_to_numpy, function(*args, **kwargs))

    return in_float64


@cache
def _first_process() -> int:
    """The process in which the first kernel ran; a forked child finds that of its parent."""
    return os.getpid()


def _require_threads() -> None:
    if _first_process() != os.getpid():
        raise ForkedError(
            "This process was forked after JAX had been used, whose threads a forked process does not have: it would "
            "wait for them forever. Start workers by 'spawn' or 'forkserver', as multiprocessing.get_context('spawn') "
            "and concurrent.futures' mp_context= do, by joblib's loky (scikit-learn's n_jobs=), or before anything is "
            "fitted, loaded or predicted."
        )


@contextmanager
def _settings() -> Iterator[None]:
    """Double precision; and JAX's own defaults where another setting would refuse our kernels.

    NaN and infinity are answers here, and integers of different widths meet in indices.
    """
    with (
        jax.enable_x64(True),
        jax.numpy_dtype_promotion("standard"),
        jax.debug_nans(False),
        jax.debug_infs(False),
        jax.transfer_guard("allow"),
    ):
        yield


def _to_numpy(leaf: Any) -> Any:
    return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf
