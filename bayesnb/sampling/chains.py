"""Chains of the No-U-Turn sampler, compiled once for all data of the same shapes.

NumPyro's `MCMC` compiles the density with its data inside, and anew for each run. Here the data are arguments of two
compiled functions: `_start`, which makes the states of the chains, and `_advance`, which moves them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import hmc
from numpyro.infer.util import constrain_fn, potential_energy, unconstrain_fn

from bayesnb._util.arguments import shown
from bayesnb._util.precision import float64
from bayesnb._util.progress import progress

_AT_ONCE = 100
"""Transitions of one call of `_advance`: a step of the progress bar."""

FIELDS = ("diverging", "accept_prob", "num_steps", "energy", "potential_energy")
"""NumPyro's names of the fields of a transition that are kept."""


@dataclass(frozen=True)
class NumpyroProgram:
    """NumPyro program with floating-point data as its argument; programs of data of the same shapes are equal.

    Parameters
    ----------
    model : callable
        Hashable function of the data's pytrees that samples at NumPyro sites.
    structure : PyTreeDef
        Structure of the data.
    constants : tuple of (bytes, str, shape) or None
        For each leaf its value if it is of integers, such as the group of each level; None for an argument.
    """

    model: Callable[..., None]
    structure: Any
    constants: tuple[tuple[bytes, str, tuple[int, ...]] | None, ...]

    @classmethod
    def from_data(cls, model: Callable[..., None], *data: Any) -> tuple[NumpyroProgram, list[np.ndarray]]:
        """Return the program `model(*data)`, and the floating-point arrays that are its argument."""
        leaves, structure = jax.tree.flatten(data)
        arrays = [np.asarray(leaf) for leaf in leaves]
        constants = tuple(None if a.dtype.kind == "f" else (a.tobytes(), a.dtype.str, a.shape) for a in arrays)
        return cls(model, structure, constants), [a for a in arrays if a.dtype.kind == "f"]

    def __call__(self, arrays: list[Any]) -> None:
        """Run the program with the given floating-point arrays."""
        given = iter(arrays)
        leaves = [
            next(given) if c is None else np.frombuffer(c[0], np.dtype(c[1])).reshape(c[2]) for c in self.constants
        ]
        self.model(*jax.tree.unflatten(self.structure, leaves))


class Options(NamedTuple):
    """Options of NumPyro's sampler: see `numpyro.infer.NUTS`."""

    max_tree_depth: int | tuple[int, int] = 10
    target_accept_prob: float = 0.8
    dense_mass: tuple[tuple[str, ...], ...] = ()


@float64
def run_chains(
    program: NumpyroProgram,
    arrays: list[np.ndarray],
    start: Mapping[str, Any],
    options: Options,
    inverse_mass_matrix: Any,
    *,
    draws: int,
    warmup: int,
    chains: int,
    seed: int,
    show_progress: bool,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return draws by site and fields of the transitions, (chains, draws, …), after `warmup` transitions.

    Parameters
    ----------
    program, arrays
        Result of `NumpyroProgram.from_data`.
    start : dict
        Values of the sites at which all chains start.
    options : Options
    inverse_mass_matrix : dict or None
        Inverse mass matrix by sites, in the form that `numpyro.infer.NUTS` takes; default: found in the warm-up.
    draws, warmup, chains, seed : int
        As in `run_nuts`.
    show_progress : bool
        Whether to show a progress bar.

    Raises
    ------
    ValueError
        If the density is not finite where the chains start: they would never move.
    """
    of_kernel = {"program": program, "warmup": warmup, "options": options}
    keys = jax.random.split(jax.random.key(seed), chains)
    state = _start(arrays, keys, dict(start), inverse_mass_matrix, **of_kernel)
    if not np.isfinite(state.potential_energy).all():
        raise ValueError(
            f"run_nuts: the density is not finite at the starting point {shown(start)}, so that the chains cannot "
            "move. Choose a hyperprior without extreme values, such as numpyro.distributions.LogNormal(-1.0, 1.5)."
        )
    parts = []
    with progress("NUTS" if show_progress else None, warmup + draws) as step:
        for begin, end in [*_pieces(0, warmup), *_pieces(warmup, warmup + draws)]:
            state, recorded = _advance(arrays, state, end - begin, **of_kernel)
            if begin >= warmup:
                parts.append(jax.tree.map(lambda v, n=end - begin: np.asarray(v)[:n], recorded))
            step(end - begin)
    samples, transitions = jax.tree.map(lambda *v: np.concatenate(v).swapaxes(0, 1), *parts)
    return samples, transitions


def _pieces(begin: int, end: int) -> list[tuple[int, int]]:
    """Bounds of pieces of at most `_AT_ONCE` transitions."""
    return [(at, min(at + _AT_ONCE, end)) for at in range(begin, end, _AT_ONCE)]


def _sampler(
    arrays: list[Any], program: NumpyroProgram, warmup: int, options: Options
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Functions of NumPyro's sampler: (position, key, inverse mass matrix) to a state, and a state to the next one."""

    def potential(arrays: list[Any]) -> Callable[[Any], Any]:
        return lambda z: potential_energy(program, (arrays,), {}, z)

    init_kernel, sample_kernel = hmc.hmc(potential_fn_gen=potential, algo="NUTS")

    def begin(z: Any, key: jax.Array, inverse_mass_matrix: Any = None) -> Any:
        return init_kernel(
            z,
            warmup,
            inverse_mass_matrix=inverse_mass_matrix,
            dense_mass=[*options.dense_mass] or False,
            target_accept_prob=options.target_accept_prob,
            max_tree_depth=options.max_tree_depth,
            model_args=(arrays,),
            rng_key=key,
        )

    return begin, partial(sample_kernel, model_args=(arrays,), model_kwargs={})


@jax.jit(static_argnames=("program", "warmup", "options"))
def _start(
    arrays: list[jax.Array],
    keys: jax.Array,
    start: dict[str, jax.Array],
    inverse_mass_matrix: Any,
    *,
    program: NumpyroProgram,
    warmup: int,
    options: Options,
) -> Any:
    """States of the chains, one for each key, at the given values of the sites."""
    z = unconstrain_fn(program, (arrays,), {}, start)
    begin, _ = _sampler(arrays, program, warmup, options)
    return jax.vmap(lambda key: begin(z, key, inverse_mass_matrix))(keys)


@jax.jit(static_argnames=("program", "warmup", "options"))
def _advance(
    arrays: list[jax.Array], state: Any, n: jax.Array, *, program: NumpyroProgram, warmup: int, options: Options
) -> tuple[Any, Any]:
    """States after n transitions, and for each transition values of the sites and `FIELDS`, (`_AT_ONCE`, chains, …)."""
    begin, following = _sampler(arrays, program, warmup, options)
    # NumPyro's transitions use what the function that begins a chain leaves behind.
    jax.vmap(lambda state: begin(state.z, state.rng_key))(state)

    def record(state: Any) -> Any:
        return state.z, {field: getattr(state, field) for field in FIELDS}

    def transition(i: jax.Array, carried: tuple[Any, Any]) -> tuple[Any, Any]:
        state, recorded = carried
        state = jax.vmap(following)(state)
        return state, jax.tree.map(lambda all_, new: all_.at[i].set(new), recorded, record(state))

    empty = jax.tree.map(lambda v: jnp.zeros((_AT_ONCE, *v.shape), v.dtype), record(state))
    state, (z, fields) = jax.lax.fori_loop(0, n, transition, (state, empty))
    samples = constrain_fn(program, (arrays,), {}, z, return_deterministic=True, batch_ndims=2)
    return state, (samples, fields)
