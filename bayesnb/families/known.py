"""Class probabilities that are known, so that data do not change them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import jax

from bayesnb.families._namespace import xp
from bayesnb.families._pytree import Array, pytree
from bayesnb.families.multinomial import Multinomial
from bayesnb.families.protocol import Distribution, Prior
from bayesnb.families.variates import Variates


@pytree
class Known(Prior):
    """Known class probabilities: a class prior that data do not change.

    Parameters
    ----------
    log_prob : (1, C) array
        Log probability of each class.
    """

    fixed: ClassVar[bool] = True

    log_prob: Array

    def update(self, statistics: Any) -> Self:
        """Return the known probabilities unchanged."""
        return self

    def improper(self) -> Self:
        """Return the known probabilities unchanged, as nothing is estimated."""
        return self

    def with_hyperparameters(self, values: Mapping[str, Any]) -> Self:
        """Return the known probabilities unchanged, as there are no hyperparameters."""
        return self

    def log_evidence(self, statistics: Any) -> jax.Array:
        """(1,) log probability Σ_c n_c log π_c of the counted labels."""
        seen = statistics.count > 0
        return xp.sum(xp.where(seen, statistics.count * xp.where(seen, self.log_prob, 0.0), 0.0), axis=-1)

    def proper(self) -> jax.Array:
        """(1, C) of True: a point mass is proper."""
        return xp.ones_like(xp.asarray(self.log_prob), bool)

    def n_free(self) -> int:
        """Number of free parameters: 0."""
        return 0

    def mean(self, multiplicity: Array | None = None) -> Multinomial:
        """Likelihood with the known probabilities plugged in."""
        return Multinomial(self.log_prob)

    mode = mean
    penalized_mle = mean

    def log_penalty(self, parameters: Any) -> jax.Array:
        """(1, C) zeros: no penalty."""
        return xp.zeros_like(xp.asarray(self.log_prob))

    def variance(self) -> dict[str, jax.Array]:
        """Variances 0, {"theta": (1, C)}."""
        return {"theta": xp.zeros_like(self.log_prob)}

    def marginals(self) -> dict[str, Distribution]:
        """Point masses at the known probabilities, as name and arguments in `scipy.stats`."""
        return {"theta": ("uniform", {"loc": xp.exp(self.log_prob), "scale": 0.0})}

    def pseudo_count(self) -> dict[str, Any]:
        """Infinite weight, {"theta": (1, C)}: no data change the probabilities."""
        return {"theta": xp.full_like(xp.asarray(self.log_prob), xp.inf)}

    def draw(self, variates: Variates, n: int) -> Multinomial:
        """Likelihood with n copies (n, 1, C) of the known probabilities."""
        log_prob = xp.asarray(self.log_prob)
        return Multinomial(xp.broadcast_to(log_prob, (n, *log_prob.shape)))
