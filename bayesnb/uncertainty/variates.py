"""Standard variates from NumPy: for draws of parameters, and for kernels that need variates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from bayesnb.families.arrays import Array, T, kernel, xp
from bayesnb.families.protocol import Increments, Replayer, Variates

# NumPy's gamma sampler is some twenty times faster than JAX's on a CPU. So a kernel that needs variates is traced
# twice: `ask` records the parameters of the variates, and `run` passes the variates in.

# Gamma and normal variates, or arrays of their shapes.
Recorded = tuple[Sequence[jax.Array], Sequence[jax.Array]]


class ShapeRecorder(Variates):
    """Variates that record the parameters that were asked for and what rows have added, and return zeros."""

    def __init__(self) -> None:
        self.gammas: list[jax.Array] = []
        self.normals: list[jax.Array] = []
        self.added: list[Increments] = []

    def log_gamma(self, a: Array, n: int, added: Increments | None = None) -> jax.Array:
        """Record the shape parameters `a`, and return zeros."""
        return self._record(self.gammas, a, n, added)

    def normal(self, like: Array, n: int, added: Increments | None = None) -> jax.Array:
        """Record an array of the shape of the variates, and return zeros."""
        return self._record(self.normals, like, n, added)

    def _record(self, arrays: list[jax.Array], array: Array, n: int, added: Increments | None) -> jax.Array:
        """Zeros (n, *shape of `array`), of NumPy if `array` is: the library in which the kernel goes on."""
        arrays.append(xp.asarray(array))
        self.added += [] if added is None else [added]
        return xp.broadcast_to(xp.zeros_like(array, float), (n, *xp.shape(array)))


class HostVariates(Variates):
    """Variates of a NumPy generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def log_gamma(self, a: Array, n: int, added: Increments | None = None) -> Any:
        """(n, *shape of a) logarithms of Gamma(a, 1) variates; for a < 1 by Gamma(a + 1) · U^(1/a), above underflow."""
        a = np.broadcast_to(np.asarray(a), (n, *np.shape(a)))
        small = a < 1
        drawn = np.log(self._rng.standard_gamma(np.where(small, a + 1.0, a)))
        if small.any():
            with np.errstate(divide="ignore"):
                drawn[small] -= self._rng.standard_exponential(int(small.sum())) / a[small]
        return drawn

    def normal(self, like: Array, n: int, added: Increments | None = None) -> Any:
        """(n, *shape of like) standard normal variates."""
        return self._rng.standard_normal((n, *np.shape(like)))

    def log_gamma_ratio(self, a: Array, b: Array, n: int, index: Array, added: Increments | None = None) -> jax.Array:
        """(n, *shape of a) logarithms of ratios of Gamma(a) to Gamma(b_k) variates; of b only b_k is drawn from."""
        chosen = np.take_along_axis(np.asarray(b)[None], np.asarray(index)[..., None], axis=-1)[..., 0]
        return self.log_gamma(a, n) - self.log_gamma(chosen, 1)[0]


@kernel(static_argnames="kernel")
def ask(kernel: Callable[..., object], *args: object) -> Recorded:
    """Trace a kernel for one draw; return the shapes `a` of its gamma variates, and arrays like its normal variates."""
    recorder = ShapeRecorder()
    kernel(recorder, 1, *args)
    return recorder.gammas, recorder.normals


def run(kernel: Callable[..., T], asked: Recorded, n: int, rng: np.random.Generator, *args: object) -> T:
    """Run a jitted kernel for n draws, with NumPy variates in the places that `ask` recorded as `asked`."""
    return _run(kernel, n, draw_variates(asked, n, HostVariates(rng)), *args)


@kernel(static_argnames=("kernel", "n"))
def _run(kernel: Callable[..., T], n: int, variates: Recorded, *args: object) -> T:
    """Call a kernel, jitted, with variates that were drawn before, in the order in which the kernel asks for them."""
    return kernel(Replayer(variates), n, *args)


def draw_variates(asked: tuple[Sequence[Array], Sequence[Array]], n: int, variates: Variates) -> Recorded:
    """Draw log-gamma and standard normal variates, (n, …) for each array (…) that `ask` returned."""
    return [variates.log_gamma(a, n) for a in asked[0]], [variates.normal(like, n) for like in asked[1]]
