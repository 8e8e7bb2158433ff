"""Variates from NumPy for jitted kernels: its gamma sampler is some twenty times faster than JAX's on a CPU.

A kernel that needs variates is traced twice: once to learn for which parameters, and once to use them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bayesnb.families.variates import Replayer


class ShapeRecorder:
    """Notes what is asked for, and gives zeros."""

    def __init__(self) -> None:
        self.gammas: list[jax.Array] = []
        self.normals: list[jax.Array] = []

    def log_gamma(self, a: Any, n: int) -> jax.Array:
        self.gammas.append(jnp.asarray(a))
        return jnp.zeros((n, *jnp.shape(a)))

    def normal(self, like: Any, n: int) -> jax.Array:
        self.normals.append(jnp.asarray(like))
        return jnp.zeros((n, *jnp.shape(like)))


# What takes variates, a number of draws and arrays.
Kernel = Callable[..., Any]


@jax.jit(static_argnames="kernel")
def ask(kernel: Kernel, *args: Any) -> tuple[list[jax.Array], list[jax.Array]]:
    """For which parameters the kernel takes (gammas, normals)."""
    asked = ShapeRecorder()
    kernel(asked, 1, *args)
    return asked.gammas, asked.normals


def run(kernel: Kernel, asked: tuple[list[Any], list[Any]], n: int, rng: np.random.Generator, *args: Any) -> Any:
    """The kernel, jitted, with n draws of what it asked for."""
    return _run(kernel, n, draw_variates(asked, n, rng), *args)


@jax.jit(static_argnames=("kernel", "n"))
def _run(kernel: Kernel, n: int, variates: tuple[list, list], *args: Any) -> Any:
    return kernel(Replayer(variates), n, *args)


def draw_variates(asked: tuple[list[Any], list[Any]], n: int, rng: np.random.Generator) -> tuple[list, list]:
    """n variates for each entry of the arrays in `asked`: (gammas, normals)."""
    gammas, normals = asked
    return (
        [log_gamma(rng, np.asarray(a), (n, *a.shape)) for a in gammas],
        [rng.standard_normal((n, *like.shape)) for like in normals],
    )


def log_gamma(rng: np.random.Generator, a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Logarithms of gamma variates; for a < 1 by Gamma(a) = Gamma(a + 1) · U^(1/a), which does not underflow."""
    a = np.broadcast_to(a, shape)
    small = a < 1
    drawn = np.log(rng.standard_gamma(np.where(small, a + 1.0, a)))
    if small.any():
        with np.errstate(divide="ignore"):
            drawn[small] -= rng.standard_exponential(int(small.sum())) / a[small]
    return drawn
