"""A fixed class prior: it is known, and so does not learn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp

from bayesnb.families._pytree import pytree
from bayesnb.families.multinomial import Multinomial
from bayesnb.families.protocol import Hyperparameter
from bayesnb.families.variates import KeyVariates, Variates


@pytree
class Known:
    """Fixed class probabilities.

    Parameters
    ----------
    log_prob : (1, C) array
        Log probability of each class.
    """

    fixed: ClassVar[bool] = True
    tunable: ClassVar[dict[str, str]] = {}

    log_prob: Any

    def unit(self) -> Self:
        return self

    def hyperprior(self, pooled: bool) -> dict[str, Hyperparameter]:
        """None."""
        return {}

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """This one."""
        return self

    def n_free(self) -> int:
        return 0

    def update(self, statistics: Any) -> Self:
        """What is known does not change."""
        return self

    update_apart = update

    def improper(self) -> Self:
        return self

    def log_partition(self) -> jax.Array:
        return jnp.zeros((1, 1), jnp.asarray(self.log_prob).dtype)

    def log_evidence(self, statistics: Any) -> jax.Array:
        """(1,) log probability of the counted labels."""
        seen = statistics.count > 0
        return jnp.sum(jnp.where(seen, statistics.count * jnp.where(seen, self.log_prob, 0.0), 0.0), axis=-1)

    def mean(self) -> Multinomial:
        return Multinomial(self.log_prob)

    mode = mean
    penalized_mle = mean
    predictive = mean

    def log_penalty(self, parameters: Any) -> jax.Array:
        return jnp.zeros_like(jnp.asarray(self.log_prob))

    def variance(self) -> dict[str, jax.Array]:
        return {"theta": jnp.zeros_like(self.log_prob)}

    def marginals(self) -> dict[str, tuple[str, dict[str, Any]]]:
        return {"theta": ("uniform", {"loc": jnp.exp(self.log_prob), "scale": 0.0})}

    def components(self) -> list[tuple[Any, Any]]:
        return [(1.0, self)]

    def pseudo_count(self) -> dict[str, Any]:
        """Infinite: no data change it."""
        return {"theta": jnp.full_like(jnp.asarray(self.log_prob), jnp.inf)}

    def proper(self) -> jax.Array:
        return jnp.ones_like(jnp.asarray(self.log_prob), bool)

    def draw(self, variates: Variates, n: int) -> Multinomial:
        log_prob = jnp.asarray(self.log_prob)
        return Multinomial(jnp.broadcast_to(log_prob, (n, *log_prob.shape)))

    def sample(self, key: jax.Array, n: int) -> Multinomial:
        return self.draw(KeyVariates(key), n)
