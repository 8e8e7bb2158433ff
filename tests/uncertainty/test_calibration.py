"""Posterior intervals cover simulated parameters as often as stated."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import bayesnb as bnb
from bayesnb.uncertainty import parameter_table, predict_interval
from tests.strategies import thorough
from tests.uncertainty.simulated import LENGTH, NORMAL, POISSON, SIMULATED

pytestmark = pytest.mark.slow("simulates many data sets or draws")

SETS = 4_000
ROW_SETS = 1_500


def data_sets(family: str, rng: np.random.Generator) -> tuple[Any, dict[str, np.ndarray]]:
    """One estimator whose 4,000 classes are as many data sets of eight rows, and the true parameters.

    Of the classes without a single row the posterior is the prior: every tenth.
    """
    label = np.repeat(np.arange(SETS), np.where(np.arange(SETS) % 10, 8, 0))
    shape = (SETS, 2)
    if family == "gaussian":
        sigma2 = NORMAL.rate / rng.gamma(NORMAL.concentration, size=shape)
        mu = NORMAL.loc + np.sqrt(sigma2 / NORMAL.kappa) * rng.normal(size=shape)
        nb, X = bnb.GaussianNB(prior=NORMAL), rng.normal(mu[label], np.sqrt(sigma2[label]))
        truth = {"mu": mu, "sigma2": sigma2}
    elif family == "poisson":
        rate = rng.gamma(POISSON.concentration, size=shape) / POISSON.rate
        nb, X, truth = bnb.PoissonNB(prior=POISSON), rng.poisson(rate[label]), {"rate": rate}
    elif family == "bernoulli":
        present = rng.beta(0.7, 0.7, size=shape)
        nb, X = bnb.BernoulliNB(alpha=0.7), (rng.random((len(label), 2)) < present[label]).astype(float)
        truth = {"theta": np.stack([1 - present, present], axis=2).reshape(SETS, 4)}
    elif family == "categorical":
        theta = rng.dirichlet([0.5, 1.0, 2.0], size=shape)
        nb = bnb.CategoricalNB(alpha=[[0.5, 1.0, 2.0]] * 2, categories=[[0, 1, 2]] * 2)
        X = (rng.random((len(label), 2, 1)) > np.cumsum(theta, axis=2)[label]).sum(axis=2)
        truth = {"theta": theta.reshape(SETS, 6)}
    else:
        theta = rng.dirichlet([0.3] * 4, size=SETS)
        nb, X = bnb.MultinomialNB(alpha=0.3), rng.multinomial(LENGTH, theta[label])
        truth = {"theta": theta}
    return nb.partial_fit(X, label, classes=range(SETS)), truth


FAMILIES = ("categorical", "bernoulli", "multinomial", "gaussian", "poisson")


@pytest.mark.parametrize("family", thorough(FAMILIES, ("multinomial",)))
def test_parameter_intervals_cover(family):
    """90% intervals of each parameter cover in 88-92% of 4,000 data sets (four standard errors: 1.9%)."""
    nb, truth = data_sets(family, np.random.default_rng(5))
    table = parameter_table(nb)
    features = table[table["feature"] != "(class)"]
    lower, upper = (features[end].to_numpy().reshape(SETS, -1) for end in ("lower", "upper"))
    values = np.stack([truth[name] for name in truth], axis=2).reshape(SETS, -1)  # mu, sigma2 of each feature
    covered = ((lower <= values) & (values <= upper)).mean(axis=0)
    assert ((covered > 0.88) & (covered < 0.92)).all()


def test_class_probabilities_cover():
    """Class probabilities of one data set are dependent, so each data set is one observation."""
    rng = np.random.default_rng(7)
    covered = []
    for _ in range(20):
        prob = rng.dirichlet(np.full(200, 0.5))
        label = rng.choice(200, 300, p=prob)
        nb = bnb.BernoulliNB(class_alpha=0.5).partial_fit(np.zeros((300, 1)), label, classes=range(200))
        table = parameter_table(nb).query("feature == '(class)'")
        covered.append((table["lower"] <= prob) & (prob <= table["upper"]))
    assert 0.88 < np.mean(covered) < 0.92


@pytest.mark.parametrize("given", ["row", "data"])
@pytest.mark.parametrize("method", ["moments", "draws"])
@pytest.mark.parametrize(
    "family",
    ["categorical", *(pytest.param(f, marks=pytest.mark.calibration) for f in SIMULATED if f != "categorical")],
)
def test_intervals_of_class_probabilities_cover(family, method, given):
    """90% intervals of P(class | row, θ) cover in 87-93% of 1,500 data sets (four standard errors: 3.1%).

    Under "row" a row is drawn from the same θ as the data; under "data" the rows were fixed before.
    """
    simulated = SIMULATED[family]
    covered = []
    for s in range(ROW_SETS):
        rng = np.random.default_rng([s, 1])
        truth = simulated.truth(rng)
        nb = simulated.fit(*simulated.draw(rng, truth, 25))
        rows = simulated.draw(rng, truth, 1)[0] if given == "row" else simulated.fixed
        lower, upper = predict_interval(nb, rows, method=method, given=given, draws=400, seed=s)
        p = np.exp(simulated.log_proba(truth, rows)[0])
        covered.append(((lower <= p) & (p <= upper))[:, 1])
    assert ((np.mean(covered, axis=0) > 0.87) & (np.mean(covered, axis=0) < 0.93)).all()


@pytest.mark.parametrize(
    ("averaged", "columns", "sets"),
    [
        (True, 30, ROW_SETS),
        *(
            pytest.param(*wide, ROW_SETS, marks=pytest.mark.calibration)
            for wide in [(True, 300), (False, 300), (True, 1000)]
        ),
    ],
)
def test_intervals_by_draws_cover_in_many_columns(averaged, columns, sets):
    """Bernoulli features by draws of θ; half of the features depend on the class.

    The interval is that of the less probable class: of the other P(class | row, θ) is 1 to the precision of float64.
    """
    # From the tenth to the 190th of 199 draws: 180/200 exactly.
    covered, between = [], {"prob": 1 - 18 / 198, "draws": 199}
    for s in range(sets):
        rng = np.random.default_rng([s, columns, 0])
        pi, present = rng.beta(1, 1), rng.beta(1, 1, (2, columns))
        present[1] = np.where(rng.random(columns) < (0.5 if averaged else 1), present[1], present[0])
        label = (rng.random(26) < pi).astype(int)
        X = (rng.random((26, columns)) < present[label]).astype(float)
        nb = bnb.FeatureAveragedNB(bnb.BernoulliNB()) if averaged else bnb.BernoulliNB()
        nb.partial_fit(X[1:], label[1:], classes=[0, 1])
        lower, upper = predict_interval(nb, X[:1], method="draws", seed=s, **between)
        log_p = stats.bernoulli.logpmf(X[0], present).sum(axis=1) + np.log([1 - pi, pi])
        k = int(log_p.argmin())
        p = np.exp(log_p[k] - np.logaddexp(*log_p))
        covered.append(lower[0, k] <= p <= upper[0, k])
    assert 0.87 < np.mean(covered) < 0.93
