"""Results that do not fit into memory are refused before the work, with the size, its cause, and what to change."""

import inspect
import tracemalloc
from functools import partial

import numpy as np
import pytest

import bayesnb as bnb
from tests.raises import refused

MANY = 10**9
RNG = np.random.default_rng(0)
Y = RNG.choice(list("abc"), 60)
LEVELS, NUMBERS, WORDS = RNG.choice(list("xyz"), (60, 3)), RNG.normal(size=(60, 3)), RNG.poisson(1.0, (60, 5))
TESTS = RNG.integers(0, 2, (60, 3))
MIXTURE = bnb.NaiveBayesMixture(2, estimator=bnb.CategoricalNB())
DRAWN = {
    "posterior_draws": lambda nb: partial(bnb.posterior_draws, nb, MANY),
    "predict_interval": lambda nb: partial(bnb.predict_interval, nb, LEVELS, draws=MANY),
    "decompose_uncertainty": lambda nb: partial(bnb.decompose_uncertainty, nb, LEVELS, draws=MANY),
    "dependence_ratio": lambda nb: partial(bnb.dependence_ratio, nb, LEVELS, rows=(LEVELS, Y), draws=MANY),
    "decide": lambda nb: partial(bnb.decide, nb, LEVELS, 1 - np.eye(3), draws=MANY),
    "posterior_predictive_check": lambda nb: partial(bnb.posterior_predictive_check, nb, LEVELS, Y, draws=MANY),
    "prior_predictive": lambda nb: partial(bnb.prior_predictive, nb, MANY),
    "to_arviz": lambda nb: partial(bnb.to_arviz, nb, draws=MANY // 4),
    "density_table": lambda nb: partial(bnb.density_table, bnb.BinnedNB().fit(NUMBERS, Y), draws=MANY),
    "top_words": lambda nb: partial(bnb.top_words, nb, "a", draws=MANY),
    "check_independence": lambda nb: partial(bnb.check_independence, nb, LEVELS, Y, draws=MANY),
    "estimate_prevalence": lambda nb: partial(bnb.estimate_prevalence, nb, LEVELS, draws=MANY),
    "run_nuts": lambda nb: partial(bnb.run_nuts, nb, draws=MANY, progress=False),
    "sample_latent": lambda nb: partial(bnb.sample_latent, MIXTURE.fit(LEVELS), LEVELS, draws=MANY, progress=False),
    "diagnostic_tests": lambda nb: partial(bnb.diagnostic_tests, TESTS, draws=MANY, progress=False),
}
OTHERS = {
    "draws of a tree": lambda nb: partial(bnb.TreeAveragedNB().fit(LEVELS, Y).draw_trees, MANY),
    "hyperparameters": lambda nb: partial(bnb.run_nuts, nb, "pooled", draws=MANY, progress=False),
    "parameters, and hyperparameters": lambda nb: partial(
        bnb.run_nuts, nb, "pooled", draws=10**7, features=[0], progress=False
    ),
    "moments of two classes, and cells to sum out": lambda nb: partial(
        bnb.predict_interval, *tree_of_two_classes(), draws=MANY
    ),
    "likelihoods of rows": lambda nb: partial(bnb.to_arviz, *many_rows()),
    "table": lambda nb: partial(bnb.parameter_table, many_levels()),
    "rows left out": lambda nb: partial(bnb.loo, *many_classes(), np.arange(21_000) % 7_000),
    "log odds of many classes": lambda nb: partial(bnb.log_odds_moments, *many_classes(), given="row"),
}


def tree_of_two_classes():
    X = LEVELS.astype(object)
    X[::7, 1] = None
    return bnb.NetworkNB(parents={1: 0, 2: 1}).fit(LEVELS[Y != "c"], Y[Y != "c"]), X


def many_rows():
    X = RNG.normal(size=(60_000, 1))
    return bnb.GaussianNB().fit(X, X[:, 0] > 0), X, X[:, 0] > 0


def many_levels():
    return bnb.CategoricalNB().fit(np.arange(60_000)[:, None], np.arange(60_000) % 300)


def many_classes():
    X = RNG.normal(size=(21_000, 1))
    return bnb.GaussianNB().fit(X, np.arange(21_000) % 7_000), X


@pytest.fixture
def nb():
    return bnb.CategoricalNB().fit(LEVELS, Y)


@pytest.mark.parametrize("name", DRAWN | OTHERS)
def test_what_does_not_fit_into_memory_is_refused(name, nb):
    call = (DRAWN | OTHERS)[name](nb)
    tracemalloc.start()
    try:
        refused(r"would take [\d,]+\.\d GB; the limit is \d\.\d GB\. (Set|Name|Score|Use|Pass) ", call)
        assert tracemalloc.get_traced_memory()[1] < 3e8
    finally:
        tracemalloc.stop()


def test_all_functions_that_draw_are_tried():
    public = {name: getattr(bnb, name) for name in bnb.__all__ if inspect.isfunction(getattr(bnb, name))}
    signatures = {name: inspect.signature(function).parameters for name, function in public.items()}
    draws = {name for name, given in signatures.items() if "draws" in given and isinstance(given["draws"].default, int)}
    assert draws == set(DRAWN)


def test_rows_of_many_classes_are_drawn_one_at_a_time():
    """Intervals of a row are the same alone and among others, in memory for one row."""
    X = np.arange(4_000.0)[:, None] / 100.0
    nb = bnb.GaussianNB().fit(np.concatenate([X, X + 0.01]), np.tile(np.arange(4_000), 2))
    asked = X[[0, 100, 3_999]]
    tracemalloc.start()
    lower, upper = bnb.predict_interval(nb, asked)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * 1_000 * 4_000 * 8, "less than two arrays of 16 rows, of 1,000 draws in 4,000 classes"
    alone = bnb.predict_interval(nb, asked[1:2])
    np.testing.assert_allclose([lower[1], upper[1]], [alone[0][0], alone[1][0]], rtol=1e-12)
