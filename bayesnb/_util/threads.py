"""Maps in several threads, whose results do not depend on the number of threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import jax

P = TypeVar("P")
R = TypeVar("R")


def map_in_threads(call: Callable[[P], R], arguments: Sequence[P]) -> Iterator[R]:
    """Yield `call(argument)` for each argument, in their order; the first error is raised and cancels the rest.

    JAX's default device is that of the calling thread. Other scopes, such as float64, must be entered by `call`.
    """
    if len(arguments) < 2:
        yield from map(call, arguments)
        return
    device: Any = getattr(jax.config, "jax_default_device", None)

    def call_on_device(argument: P) -> R:
        with jax.default_device(device):
            return call(argument)

    pool = ThreadPoolExecutor(min(len(arguments), max(2, os.cpu_count() or 1)))
    try:
        yield from pool.map(call_on_device, arguments)
    finally:
        pool.shutdown(cancel_futures=True)
