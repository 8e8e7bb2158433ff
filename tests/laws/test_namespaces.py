"""Law: formulas take NumPy's arrays, JAX's, and those under a transformation, in any mixture, and none warns of 0."""

import warnings
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest

import bayesnb as bnb
from bayesnb.encoding import row_pieces
from bayesnb.families.protocol import KeyVariates
from bayesnb.fitted import scoring

RNG = np.random.default_rng(0)
N, DRAWS = 12, 2
LABEL = np.arange(N) % 3
LEVELS = np.minimum(RNG.poisson(1.0, (N, 3)), 2).astype(float)
HOLES = np.where(np.arange(N)[:, None] == [4, 5, 5], np.nan, LEVELS)
NUMBERS = RNG.normal(size=(N, 3))

KINDS = {
    "levels": (bnb.CategoricalNB(), HOLES),
    "presences": (bnb.BernoulliNB(), LEVELS > 0),
    "words": (bnb.MultinomialNB(), LEVELS),
    "normal": (bnb.GaussianNB(), NUMBERS),
    "poisson": (bnb.PoissonNB(), LEVELS),
    "negative binomial": (bnb.NegativeBinomialNB(), LEVELS),
    "exponential": (bnb.ExponentialNB(), abs(NUMBERS)),
    "binned": (bnb.BinnedNB(cells=4), NUMBERS),
    "averaged levels": (bnb.FeatureAveragedNB(bnb.CategoricalNB()), HOLES),
    "averaged numbers": (bnb.FeatureAveragedNB(bnb.GaussianNB()), NUMBERS),
    "network": (bnb.NetworkNB(parents={1: [0]}), HOLES),
    "contexts": (bnb.NetworkNB(parents={1: [0], 2: [0, 1]}, tables="context"), LEVELS),
    "trees": (bnb.TreeAveragedNB(), LEVELS),
    "a tree of one": (bnb.TreeAveragedNB(), LEVELS[:, :1]),
}


@cache
def parts(kind: str) -> tuple[Any, Any, Any]:
    """Posterior of the one block of columns, another from which rows can be removed, and rows as kernels read them."""
    nb, X = KINDS[kind]
    fitted = nb.fit(X, LABEL).fitted_
    (_, (rows,), _), *_ = row_pieces(fitted.encoding.rows(fitted.table(X)), N)
    posterior = scoring.update_for_removal(fitted.empirical_prior, fitted.statistics)
    return fitted.posterior.blocks[0], posterior.blocks[0], rows


def shapes(tree: Any) -> list[tuple[int, ...]]:
    """The shapes of the arrays of a pytree."""
    return [leaf.shape for leaf in jax.tree.leaves(tree)]


def draw(family: Any, rows: Any, key: jax.Array) -> Any:
    return family.draw(KeyVariates(key), DRAWS)


def draw_scores(family: Any, rows: Any, key: jax.Array) -> Any:
    return family.draw_log_likelihood(KeyVariates(key), DRAWS, rows)


def draw_scores_given_rows(family: Any, rows: Any, key: jax.Array) -> Any:
    counted_in = np.broadcast_to(np.arange(3) == 1, (DRAWS, len(family.log_base(rows)), 3))
    return family.draw_log_likelihood(KeyVariates(key), DRAWS, rows, counted_in)


def score(family: Any, rows: Any, key: jax.Array) -> Any:
    return family.predictive().prepare(rows).log_prob(rows)


def score_without(family: Any, rows: Any, key: jax.Array) -> Any:
    return family.predictive(np.full(3, -1.0)).terms(rows)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", [draw, draw_scores, draw_scores_given_rows, score, score_without])
def test_any_of_the_arguments_may_be_traced(function, kind):
    posterior, for_removal, rows = parts(kind)
    arguments = for_removal if function is score_without else posterior, rows, jax.random.key(0)
    with jax.enable_x64(True):
        expected = shapes(jax.eval_shape(function, *arguments))
        for given in ((0, 1), (0,), (1,)):

            def traced(*others: Any, given: tuple[int, ...] = given) -> Any:
                rest = iter(others)
                return function(*(arguments[i] if i in given else next(rest) for i in range(3)))

            assert shapes(jax.eval_shape(traced, *(arguments[i] for i in range(3) if i not in given))) == expected


@pytest.mark.parametrize(
    "nb", [bnb.CategoricalNB(alpha=0), bnb.BernoulliNB(alpha=0), bnb.PoissonNB()], ids=lambda nb: type(nb).__name__
)
def test_probabilities_of_0_are_no_reason_to_warn(nb):
    X = LEVELS * [1, 1, 0]
    fitted = nb.fit(X, LABEL).fitted_
    (_, x, _), *_ = row_pieces(fitted.encoding.rows(fitted.table(X)), N)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for estimate in ("predictive", "mean", "map"):
            fitted.posterior.log_joint(x, estimate)
        fitted.prior.log_evidence(fitted.statistics)
        fitted.posterior.blocks[0].log_likelihood_cumulants(x[0])
