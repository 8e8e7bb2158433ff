"""Work side by side, with results in order: they do not depend on the number of threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import jax

P = TypeVar("P")
R = TypeVar("R")


def in_threads(call: Callable[[P], R], parts: Sequence[P]) -> Iterator[R]:
    """`call` of each part, in their order; raises what the first that fails raises.

    JAX's default device is that of the thread that asks; other scopes, such as that of float64, `call` opens itself.
    """
    if len(parts) < 2:
        yield from map(call, parts)
        return
    device: Any = getattr(jax.config, "jax_default_device", None)

    def on_device(part: P) -> R:
        with jax.default_device(device):
            return call(part)

    pool = ThreadPoolExecutor(min(len(parts), max(2, os.cpu_count() or 1)))
    try:
        yield from pool.map(on_device, parts)
    finally:
        pool.shutdown(cancel_futures=True)


__all__ = ["in_threads"]
