"""Computation in float64, whatever the configuration of JAX, in threads, and with a cache of compiled functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

# == Double precision for public host functions, whatever JAX is configured to do ==================

P = ParamSpec("P")
R = TypeVar("R")

_FORKED = (
    "This process was forked after JAX had started threads. A forked process lacks these threads, and would wait for "
    "them forever. Start workers with 'spawn' or 'forkserver' (multiprocessing.get_context('spawn'), or mp_context= of "
    "concurrent.futures), use joblib's loky (scikit-learn's n_jobs=), or fork before you fit, load or predict anything."
)


class ForkedError(RuntimeError):
    """Error in a process that was forked after JAX had been used in its parent, whose threads a fork does not copy.

    Examples
    --------
    >>> import multiprocessing
    >>> context = multiprocessing.get_context("spawn")  # of processes that do not inherit JAX
    """


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
            return jax.tree.map(_to_numpy, function(*args, **kwargs))

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


# == Maps in several threads, whose results do not depend on the number of threads =================

Item = TypeVar("Item")
Found = TypeVar("Found")


def map_in_threads(call: Callable[[Item], Found], arguments: Sequence[Item]) -> Iterator[Found]:
    """Yield `call(argument)` for each argument, in their order; the first error is raised and cancels the rest.

    JAX's default device is that of the calling thread. Other scopes, such as float64, must be entered by `call`.
    """
    if len(arguments) < 2:
        yield from map(call, arguments)
        return
    device: Any = getattr(jax.config, "jax_default_device", None)

    def call_on_device(argument: Item) -> Found:
        with jax.default_device(device):
            return call(argument)

    pool = ThreadPoolExecutor(min(len(arguments), max(2, os.cpu_count() or 1)))
    try:
        yield from pool.map(call_on_device, arguments)
    finally:
        pool.shutdown(cancel_futures=True)


# == JAX's compilation cache on disk, in the user's cache folder ===================================


def enable_cache(path: str | os.PathLike[str] | None = None) -> Path:
    """Store compiled JAX functions on disk, so that later processes need not compile them again.

    One call after the imports serves the whole process, and other programs that use JAX in it. Small tables need no
    compilation (NumPy evaluates them); with the cache, first calls on large tables, NUTS and draws start in a third of
    the time from the second process on. The function sets JAX's options `jax_compilation_cache_dir`,
    `jax_persistent_cache_min_compile_time_secs` and `jax_persistent_cache_min_entry_size_bytes`; nothing in this
    package changes JAX's configuration otherwise.

    Parameters
    ----------
    path : path-like, optional
        Folder, made if it does not exist. Default: the folder that JAX is configured to use already, as by the variable
        JAX_COMPILATION_CACHE_DIR of the environment, else "bayesnb" in the user's cache folder (`platformdirs`).

    Returns
    -------
    pathlib.Path
        The folder. It may be deleted at any time.

    Raises
    ------
    OSError
        If the folder cannot be made or written to.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> bnb.enable_cache()  # doctest: +SKIP
    PosixPath('/home/ada/.cache/bayesnb')
    """
    import platformdirs
    from jax.experimental.compilation_cache import compilation_cache

    config: Any = jax.config
    configured = config.jax_compilation_cache_dir
    folder = Path(path or configured or platformdirs.user_cache_path("bayesnb"))
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"path={os.fspath(folder)!r} cannot be written to; pass another folder for the cache.")
    config.update("jax_compilation_cache_dir", str(folder))
    config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    compilation_cache.reset_cache()  # JAX looks at the folder once, when it first compiles
    return folder
