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
from bayesnb._util.terminal import progress

_AT_ONCE = 100
"""Transitions of one call of `_advance`: a step of the progress bar."""

_FIELDS = {"diverging": "diverging", "acceptance_rate": "accept_prob", "n_steps": "num_steps", "energy": "energy"}
_FIELDS |= {"lp": "potential_energy"}
"""NumPyro's fields of a transition that are kept, by the names of ArviZ."""


@dataclass(frozen=True)
class NumpyroProgram:
    """NumPyro program with floating-point data as its argument; programs of data of the same shapes are equal.

    Parameters
    ----------
    model : callable
        Hashable function of the data's pytrees that samples at NumPyro sites.
    structure : PyTreeDef
        Structure of the data.
    constants : tuple of (bytes, str, shape), str or None
        For each leaf its value if it is a text or of integers, such as the group of each level; None for an argument.
    """

    model: Callable[..., None]
    structure: Any
    constants: tuple[tuple[bytes, str, tuple[int, ...]] | str | None, ...]

    @classmethod
    def from_data(cls, model: Callable[..., None], *data: Any) -> tuple[NumpyroProgram, list[np.ndarray]]:
        """Return the program `model(*data)`, and the floating-point arrays that are its argument."""
        leaves, structure = jax.tree.flatten(data)
        constants: list[Any] = []
        arrays = []
        for leaf in leaves:
            array = np.asarray(leaf)
            if array.dtype.kind == "f":
                arrays.append(array)
                constants.append(None)
            else:
                constants.append(leaf if isinstance(leaf, str) else (array.tobytes(), array.dtype.str, array.shape))
        return cls(model, structure, tuple(constants)), arrays

    def __call__(self, arrays: list[Any]) -> None:
        """Run the program with the given floating-point arrays."""
        given, leaves = iter(arrays), []
        for c in self.constants:
            fixed = np.frombuffer(c[0], np.dtype(c[1])).reshape(c[2]) if isinstance(c, tuple) else c
            leaves.append(next(given) if c is None else fixed)
        self.model(*jax.tree.unflatten(self.structure, leaves))


class Options(NamedTuple):
    """Options of NumPyro's sampler: see `numpyro.infer.NUTS`."""

    warmup: int
    max_tree_depth: int | tuple[int, int] = 10
    target_accept_prob: float = 0.8
    dense_mass: tuple[tuple[str, ...], ...] = ()


@float64
def run_chains(
    program: tuple[NumpyroProgram, list[np.ndarray]],
    start: Mapping[str, Any],
    inverse_mass_matrix: Any,
    options: Options,
    draws: int,
    chains: int,
    seed: int,
    show_progress: bool,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return draws by site and fields of the transitions, (chains, draws, …), after the warm-up.

    Parameters
    ----------
    program
        Result of `NumpyroProgram.from_data`.
    start : dict
        Values of the sites at which all chains start.
    inverse_mass_matrix : dict or None
        Inverse mass matrix by sites, in the form that `numpyro.infer.NUTS` takes; default: found in the warm-up.
    options : Options
    draws, chains, seed : int
        As in `run_nuts`.
    show_progress : bool
        Whether to show a progress bar.

    Raises
    ------
    ValueError
        If the density is not finite where the chains start: they would never move.
    """
    model, arrays = program
    keys, warmup = jax.random.split(jax.random.key(seed), chains), options.warmup
    state = _start(arrays, keys, dict(start), inverse_mass_matrix, program=model, options=options)
    if not np.isfinite(state.potential_energy).all():
        raise ValueError(
            f"run_nuts: the density is not finite at the starting point {shown(start)}. Choose a hyperprior without "
            "extreme values, such as numpyro.distributions.LogNormal(-1.0, 1.5)."
        )
    parts = []
    with progress("NUTS" if show_progress else None, warmup + draws) as step:
        for first, end in ((0, warmup), (warmup, warmup + draws)):
            for begin in range(first, end, _AT_ONCE):
                n = min(_AT_ONCE, end - begin)
                state, recorded = _advance(arrays, state, n, program=model, options=options)
                if begin >= warmup:
                    parts.append(jax.tree.map(lambda v, n=n: np.asarray(v)[:n], recorded))
                step(n)
    samples, transitions = jax.tree.map(lambda *v: np.concatenate(v).swapaxes(0, 1), *parts)
    return samples, {name: transitions[name] for name in _FIELDS} | {"lp": -transitions["lp"]}


def _sampler(arrays: list[Any], program: NumpyroProgram, options: Options) -> tuple[Any, Any]:
    """Functions of NumPyro's sampler: (position, key, inverse mass matrix) to a state, and a state to the next one."""
    init_kernel, sample_kernel = hmc.hmc(
        potential_fn_gen=lambda arrays: partial(potential_energy, program, (arrays,), {}), algo="NUTS"
    )
    begin = partial(
        init_kernel,
        num_warmup=options.warmup,
        dense_mass=[*options.dense_mass] or False,
        target_accept_prob=options.target_accept_prob,
        max_tree_depth=options.max_tree_depth,
        model_args=(arrays,),
    )
    return begin, partial(sample_kernel, model_args=(arrays,), model_kwargs={})


@jax.jit(static_argnames=("program", "options"))
def _start(
    arrays: Any, keys: jax.Array, start: Any, inverse_mass_matrix: Any, *, program: NumpyroProgram, options: Options
) -> Any:
    """States of the chains, one for each key, at the given values of the sites."""
    z = unconstrain_fn(program, (arrays,), {}, start)
    begin, _ = _sampler(arrays, program, options)
    return jax.vmap(lambda key: begin(z, rng_key=key, inverse_mass_matrix=inverse_mass_matrix))(keys)


@jax.jit(static_argnames=("program", "options"))
def _advance(arrays: Any, state: Any, n: jax.Array, *, program: NumpyroProgram, options: Options) -> tuple[Any, Any]:
    """States after n transitions, and the sites and `_FIELDS` of each transition, (`_AT_ONCE`, chains, …)."""
    begin, following = _sampler(arrays, program, options)
    # NumPyro's transitions use what the function that begins a chain leaves behind.
    jax.vmap(lambda state: begin(state.z, rng_key=state.rng_key))(state)

    def record(state: Any) -> Any:
        return state.z, {name: getattr(state, field) for name, field in _FIELDS.items()}

    def transition(i: jax.Array, carried: tuple[Any, Any]) -> tuple[Any, Any]:
        state, recorded = carried
        state = jax.vmap(following)(state)
        return state, jax.tree.map(lambda all_, new: all_.at[i].set(new), recorded, record(state))

    empty = jax.tree.map(lambda v: jnp.zeros((_AT_ONCE, *v.shape), v.dtype), record(state))
    state, (z, fields) = jax.lax.fori_loop(0, n, transition, (state, empty))
    samples = constrain_fn(program, (arrays,), {}, z, return_deterministic=True, batch_ndims=2)
    return state, (samples, fields)
