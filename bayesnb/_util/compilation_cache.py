"""JAX's compilation cache on disk, in the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jax


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
