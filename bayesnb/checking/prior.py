"""Class probabilities under the prior alone."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from scipy.special import logsumexp

from bayesnb._util.arguments import require_integer, require_seed
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding
from bayesnb.families.protocol import Prior, Variates
from bayesnb.fitted.state import Classifier, require_posterior
from bayesnb.model import NaiveBayes, Statistics
from bayesnb.uncertainty import ImproperPosteriorError, require_proper
from bayesnb.uncertainty.draws import ask, run
from bayesnb.uncertainty.replicates import simulate_cells

_MOST_CELLS = 2**21


def prior_predictive(nb: Classifier, draws: int = 1000, seed: int = 0) -> np.ndarray:
    """Draw P(class | row, θ) of the true class from the prior: how certain naive Bayes is before any data.

    Each draw takes all parameters θ from the prior, a class from its probabilities, a row of all features from
    p(x | class, θ), and returns P(that class | row, θ), by Bayes' rule with these parameters.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        A classifier whose prior and levels are used, and for multinomial features the rounded mean total of the rows.
    draws : int
        Number of draws.
    seed : int
        The same seed gives the same draws.

    Returns
    -------
    (draws,) array
        Probabilities of the true class. Their mean is the accuracy, in the long run, of drawing a label from
        P(class | row, θ).

    Raises
    ------
    ImproperPosteriorError
        If the prior is improper, and so cannot be drawn from.
    ValueError
        If `draws` is not positive, or the prior is so wide that its draws overflow.

    Notes
    -----
    With many features nearly all draws are close to 1, whatever the prior, because the evidence of independent features
    adds up. "Pooled" priors are derived from the data, so draws from them already use some information of the data.

    Examples
    --------
    >>> from bayesnb import CategoricalNB
    >>> from bayesnb.checking import prior_predictive
    >>> nb = CategoricalNB().fit([["sun"], ["rain"]], ["out", "in"])
    >>> prior_predictive(nb, draws=5).shape
    (5,)
    """
    fitted = require_posterior(nb, "prior_predictive")
    require_integer("draws", draws)
    require_seed(seed)
    encoding, model, statistics = fitted.encoding, fitted.prior, fitted.statistics
    try:
        require_proper(encoding, model)
    except ImproperPosteriorError as error:
        needs = "prior_predictive needs a proper prior, because without data the posterior is the prior"
        raise ImproperPosteriorError(f"{needs}. {error}") from None
    rng = np.random.default_rng(seed)
    width = max(np.size(jax.tree.leaves(block)[0]) for block in model.blocks)
    step = max(1, _MOST_CELLS // max(1, width))
    sizes = [min(step, draws - start) for start in range(0, draws, step)]
    probability = np.concatenate([_draw_label_probability(encoding, model, statistics, n, rng) for n in sizes])
    if np.isnan(probability).any():
        raise ValueError("prior_predictive: draws of a variance overflow float64. Raise `concentration` of its prior.")
    return probability


@float64
def _draw_label_probability(
    encoding: Encoding, model: NaiveBayes, statistics: Statistics, draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw (draws,) P(label | row, θ) of the row's label, with θ, label and row drawn from the prior."""
    each = np.arange(draws)
    log_class = np.asarray(_draw_likelihood(model.class_prior, draws, rng).log_theta)[:, 0]
    label = np.argmax(log_class + rng.gumbel(size=log_class.shape), axis=1)
    score, n_rows = log_class, statistics.class_count.sum()
    for columns, family, counted in zip(encoding.blocks, model.blocks, statistics.blocks, strict=True):
        likelihood = jax.tree.map(np.asarray, _draw_likelihood(family, draws, rng))
        of_label = jax.tree.map(lambda parameter: parameter[each, label], likelihood)
        total = round(float(counted.count.sum() / n_rows)) if columns.one_simplex and n_rows else 1
        cells = simulate_cells(columns, family, of_label, rng, total)
        score = score + np.asarray(likelihood.cells(cells[:, None])).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.exp(score[each, label] - logsumexp(score, axis=1)))


def _draw_likelihood(family: Prior, draws: int, rng: np.random.Generator) -> Any:
    """Return the likelihood of a family under draws of its parameters, arrays (draws, C, K)."""
    return run(_draw_parameters, ask(_draw_parameters, family), draws, rng, family)


def _draw_parameters(variates: Variates, n: int, family: Prior) -> Any:
    """Return n draws from a family as a likelihood of arrays (n, C, K), a function of the variates."""
    return family.draw(variates, n)
