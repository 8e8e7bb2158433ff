"""Posterior intervals cover simulated parameters and class probabilities as often as stated."""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

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


@pytest.mark.parametrize("separation", [0, 2, 4, 6])
def test_intervals_of_rows_cover_however_far_apart_the_classes_lie(separation):
    """1,500 sets of two classes of ten rows, each with a row of its own: a simulation, so a slow test."""
    rng, inside, sets = np.random.default_rng(separation), 0, 1500
    label = np.repeat([0, 1], 10)
    for _ in range(sets):
        x, row = rng.normal(label * separation), rng.normal(rng.integers(2) * separation)
        nb = bnb.GaussianNB(class_prior=[0.5, 0.5]).fit(x[:, None], label)
        lower, upper = bnb.predict_interval(nb, [[row]], 0.9)
        # log P(0 | row)/P(1 | row) = [(row - d)² - row²]/2 with means 0 and d, and variance 1
        inside += bool(lower[0, 0] <= expit(separation * (separation / 2 - row)) <= upper[0, 0])
    assert 0.87 <= inside / sets <= 0.93


PARENT = (None, 0, 1, 1)
SIZES = (2, 3, 2, 3)
LEVELS = [list(range(size)) for size in SIZES]


def draw_network(rng):
    """Class probabilities, and p(x_j | class, parent), from the prior: all concentrations 1."""
    shapes = [(2,) if p is None else (2, SIZES[p]) for p in PARENT]
    return rng.dirichlet(np.ones(2)), [rng.dirichlet(np.ones(n), s) for n, s in zip(SIZES, shapes, strict=True)]


def draw_rows_of_network(rng, theta, n, missing):
    """n rows, NaN where a cell is missing completely at random, and labels."""
    prob, tables = theta
    y, X = rng.choice(2, n, p=prob), np.zeros((n, 4), int)
    for j, p in enumerate(PARENT):
        own = tables[j][y] if p is None else tables[j][y, X[:, p]]
        X[:, j] = (rng.random((n, 1)) > np.cumsum(own, axis=1)[:, :-1]).sum(axis=1)
    return np.where(rng.random(X.shape) < missing, np.nan, X), y


def prob_of_row(theta, row):
    """P(class 1 | row, θ) from the joint table."""
    prob, (a, b, c, d) = theta
    joint = np.einsum("k,ki,kij,kjl,kjm->kijlm", prob, a, b, c, d)
    own = joint[(slice(None), *(slice(None) if np.isnan(v) else int(v) for v in row))].reshape(2, -1).sum(axis=1)
    return own[1] / own.sum()


def coverage_of_network(fit, missing, rows=30):
    covered = []
    for s in range(ROW_SETS):
        rng = np.random.default_rng([s, 7])
        theta = draw_network(rng)
        nb = fit(*draw_rows_of_network(rng, theta, rows, missing))
        row = draw_rows_of_network(rng, theta, 1, missing)[0]
        lower, upper = bnb.predict_interval(nb, row, draws=400, seed=s)
        covered.append(lower[0, 1] <= prob_of_row(theta, row[0]) <= upper[0, 1])
    return np.mean(covered)


@pytest.mark.parametrize("missing", [0.1, *(pytest.param(m, marks=pytest.mark.calibration) for m in (0.0, 0.3))])
def test_given_the_true_tree(missing):
    """90% intervals cover in 87-93% of 1,500 data sets (four standard errors: 3.1%); 15 s of CPU each."""

    def fit(X, y):
        return bnb.NetworkNB({1: 0, 2: 1, 3: 1}, categories=LEVELS).partial_fit(X, y, [0, 1])

    assert 0.87 < coverage_of_network(fit, missing) < 0.93
