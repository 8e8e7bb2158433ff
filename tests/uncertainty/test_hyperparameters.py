"""Draws of hyperparameters are averaged over, and the parameters are integrated out exactly.

Against integrals by SciPy, sums by hand, and weights p(row | θ) where these are still good.
"""

import copy
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import betaln, logsumexp, softmax

import bayesnb as bnb
from bayesnb.uncertainty import decompose_uncertainty, log_odds_moments, predict_interval
from bayesnb.uncertainty.class_probabilities import choose_sampler
from bayesnb.uncertainty.draws import ParameterDraws, origin

COLUMNS = 240
ALPHA = stats.lognorm(1.5, scale=np.exp(-1.0))


@cache
def wide() -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """A Bernoulli model of which few columns know the class; its data, and new rows."""
    rng = np.random.default_rng(4)
    theta = np.repeat(rng.beta(0.4, 0.4, (1, COLUMNS)), 2, axis=0)
    theta[1, :8] = rng.beta(0.4, 0.4, 8)
    y = np.arange(40) % 2
    X, new = ((rng.random((len(k), COLUMNS)) < theta[k]).astype(float) for k in (y, y[:12]))
    return bnb.BernoulliNB(class_prior=[0.5, 0.5]).fit(X, y), X, y, new


def hyperparameters(nb: Any, kind: str, **values: Any) -> ParameterDraws:
    """Draws like those of `run_nuts(nb, kind, features=[])`."""
    return ParameterDraws({site: np.asarray(v, float) for site, v in values.items()}, origin(nb.fitted_, kind))


@pytest.mark.slow("a second view of what quick tests see")
def test_of_the_exact_posterior_nothing_is_left_to_average():
    nb, _, _, new = wide()
    draws, exact = bnb.posterior_draws(nb, 500, seed=2), nb.predict_proba(new)
    np.testing.assert_allclose(nb.predict_proba(new, draws=draws), exact, rtol=1e-9)
    few = bnb.posterior_draws(nb, 10, features=[3])
    np.testing.assert_allclose(nb.predict_proba(new, draws=few), exact, rtol=1e-9)
    shifted = nb.predict_proba(new, draws=draws, class_prior=[0.9, 0.1])
    np.testing.assert_allclose(shifted, nb.predict_proba(new, class_prior=[0.9, 0.1]), rtol=1e-9)


@pytest.mark.slow("a second view of what quick tests see")
def test_draws_of_all_parameters_from_elsewhere_are_warned_of():
    nb, _, _, new = wide()
    draws = dict(bnb.posterior_draws(nb, 500, seed=2))
    present, row = draws["theta"][:, :, 1::2], new[:, None, None]
    log_weight = logsumexp(stats.bernoulli.logpmf(row, present).sum(axis=-1), axis=-1)
    weight = softmax(log_weight, axis=1)
    least = (1 / (weight**2).sum(axis=1)).min()
    with pytest.warns(UserWarning, match=rf"results of 12 of 12 rows .* few of 500 draws .*size: {least:.1f}, row"):
        found = nb.predict_proba(new, draws=draws)
    assert abs(found - nb.predict_proba(new)).max() > 0.1
    with pytest.warns(UserWarning, match="mostly Monte Carlo error"):
        predict_interval(nb, new, draws=draws)


@pytest.mark.slow("compiles kernels of its own")
def test_draws_that_were_changed_or_of_other_data_are_taken_for_themselves():
    nb, _, _, new = wide()
    draws = bnb.posterior_draws(nb, 50, seed=2)
    with pytest.warns(UserWarning, match="mostly Monte Carlo error"):
        expected = nb.predict_proba(new, draws=dict(draws))
    changed = copy.copy(draws)
    changed["theta"] = draws["theta"].copy()
    more = copy.deepcopy(nb).partial_fit(new, np.arange(12) % 2)
    for model, theirs in ((nb, changed), (more, draws)):
        with pytest.warns(UserWarning, match="mostly Monte Carlo error"):
            np.testing.assert_allclose(model.predict_proba(new, draws=theirs), expected, rtol=1e-12)


def log_joint(X: np.ndarray, y: np.ndarray, row: np.ndarray, alpha: float) -> np.ndarray:
    """(3,) log p(X | y, α), and log p(X, row | y, c, α) of each class: products of beta-binomials."""

    def evidence(present: np.ndarray, n: int) -> float:
        return float((betaln(alpha + present, alpha + n - present) - betaln(alpha, alpha)).sum())

    counts = [(X[y == c].sum(axis=0), (y == c).sum()) for c in (0, 1)]
    own = [evidence(*counts[c]) for c in (0, 1)]
    more = [evidence(counts[c][0] + row, counts[c][1] + 1) + own[1 - c] for c in (0, 1)]
    return np.array([sum(own), *more])


def integrated(X: np.ndarray, y: np.ndarray, row: np.ndarray) -> float:
    """P(class 1 | row, X, y), θ in closed form and α by quadrature."""
    shift = log_joint(X, y, row, 0.4)

    def part(c: int) -> float:
        def density(t: float) -> float:
            return np.exp(log_joint(X, y, row, np.exp(t))[c + 1] - shift.max() + ALPHA.logpdf(np.exp(t)) + t)

        return quad(density, -4, 2, points=[-1.2, -0.9, -0.6], epsabs=0)[0]

    return part(1) / (part(0) + part(1))


@cache
def quantiles_of_alpha() -> np.ndarray:
    """200 values of α that stand for its posterior: its quantiles at (s + ½)/200, on a grid."""
    _, X, y, _ = wide()
    t = np.linspace(-4, 2, 601)
    log_density = [log_joint(X, y, X[0], a)[0] + ALPHA.logpdf(a) + np.log(a) for a in np.exp(t)]
    below = np.cumsum(softmax(log_density))
    return np.exp(np.interp((np.arange(200) + 0.5) / 200, below, t))


@pytest.mark.slow("a second view of what quick tests see")
def test_a_symmetric_hyperprior_is_integrated():
    nb, X, y, new = wide()
    draws = hyperparameters(nb, "symmetric", alpha=quantiles_of_alpha())
    found = nb.predict_proba(new, draws=draws)[:, 1]
    np.testing.assert_allclose(found[:3], [integrated(X, y, row) for row in new[:3]], atol=2e-3)


@pytest.fixture(scope="module")
def small() -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Two features of three levels, three classes with a hyperparameter of their own, and three draws of it all."""
    rng = np.random.default_rng(5)
    y, X = np.arange(24) % 3, rng.integers(0, 3, (24, 2))
    nb = bnb.CategoricalNB(categories=[[0, 1, 2]] * 2).fit(X, y)
    base = np.concatenate([rng.dirichlet(np.ones(3), 3) for _ in range(2)], axis=1)
    values = {"class_alpha": [0.3, 1.0, 4.0], "alpha": [0.2, 1.5, 6.0], "base_measure": base}
    return nb, X, y, np.array([[0, 1], [2, 2], [1, 0]]), {site: np.array(v) for site, v in values.items()}


@pytest.mark.slow("other variants compile kernels of their own", but="pooled")
@pytest.mark.parametrize("kind", ["pooled", "symmetric"])
def test_by_hand(small, kind):
    nb, X, y, new, values = small
    joint = np.zeros((len(new), 3))
    for alpha, class_alpha, base in zip(values["alpha"], values["class_alpha"], values["base_measure"], strict=True):
        for c in range(3):
            p = np.full(len(new), (class_alpha + (y == c).sum()) / (3 * class_alpha + 24))
            for f in range(2):
                a = 3 * alpha * (base[3 * f : 3 * f + 3] if kind == "pooled" else np.full(3, 1 / 3))
                p *= (a + np.bincount(X[y == c, f], minlength=3))[new[:, f]] / (a.sum() + (y == c).sum())
            joint[:, c] += p
    found = nb.predict_proba(new, draws=hyperparameters(nb, kind, **values))
    np.testing.assert_allclose(found, joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)
    known = nb.predict_proba(new, draws=hyperparameters(nb, kind, **values), class_prior=[0.2, 0.3, 0.5])
    assert abs(known - found).max() > 0.01


def test_gaussian_features_by_hand():
    """Student's t by SciPy, for each location and rate."""
    rng = np.random.default_rng(6)
    y, n = np.arange(20) % 2, 10
    X = rng.normal(y[:, None], 1.0, (20, 2))
    kappa, a = 0.5, 2.0
    nb = bnb.GaussianNB(prior=bnb.NormalInverseGamma(0.3, kappa, a, 1.5), class_prior=[0.4, 0.6]).fit(X, y)
    loc, rate = rng.normal(size=(4, 2)), rng.gamma(2.0, size=(4, 2))
    joint = np.zeros((3, 2))
    for m, b in zip(loc, rate, strict=True):
        for c in (0, 1):
            own = X[y == c]
            mean, m2 = own.mean(axis=0), n * own.var(axis=0)
            centre, b_n = (
                (kappa * m + n * mean) / (kappa + n),
                b + m2 / 2 + kappa * n * (mean - m) ** 2 / 2 / (kappa + n),
            )
            scale = np.sqrt(b_n * (kappa + n + 1) / ((a + n / 2) * (kappa + n)))
            joint[:, c] += nb.class_prior[c] * np.prod(stats.t.pdf(X[:3], 2 * a + n, centre, scale), axis=1)
    found = nb.predict_proba(X[:3], draws=hyperparameters(nb, "symmetric", loc=loc, rate=rate))
    np.testing.assert_allclose(found, joint / joint.sum(axis=1, keepdims=True), rtol=1e-10)


def test_what_is_missing_is_named(small):
    nb, _, _, new, values = small
    without = {site: v for site, v in values.items() if site != "base_measure"}
    with pytest.raises(ValueError, match="draws have no parameter named 'base_measure'"):
        nb.predict_proba(new, draws=hyperparameters(nb, "pooled", **without))
    with pytest.raises(
        ValueError, match=r"draws\['base_measure'\] has shape \(3, 2\); it must have shape \(draws, 6\)"
    ):
        nb.predict_proba(
            new, draws=hyperparameters(nb, "pooled", **without, base_measure=values["base_measure"][:, :2])
        )


@pytest.mark.slow("simulates many data sets or draws")
def test_given_the_row_in_many_columns():
    """Law 9: the average over θ | D, row is the predictive; and the total entropy is that of it."""
    nb, _, _, new = wide()
    draws = hyperparameters(nb, "symmetric", alpha=np.tile(quantiles_of_alpha(), 10))
    p = nb.predict_proba(new, draws=draws)

    def moments(log_proba: np.ndarray, average: np.ndarray) -> np.ndarray:
        proba = np.exp(log_proba)
        return np.stack([proba.mean(axis=0), proba.std(axis=0), np.exp(average)], axis=1)

    mean, _, average = choose_sampler(nb.fitted_, "row", "draws", draws, 1).map(nb.fitted_, new, moments).swapaxes(0, 1)
    np.testing.assert_allclose(average, p, rtol=1e-9)
    assert (abs(mean - p) <= 5 * np.sqrt(p * (1 - p) / 2000)).all()


@pytest.mark.slow("compiles kernels of its own")
def test_given_the_row_is_what_weights_give_where_columns_are_few(small):
    """θ by NumPy for each draw of the hyperparameters, weighted with p(row | θ)."""
    nb, X, y, new, _ = small
    rng, size = np.random.default_rng(7), 20_000
    alpha, class_alpha = rng.lognormal(-1, 0.7, size), rng.lognormal(-1, 0.7, size)
    log_p = log_dirichlet(rng, class_alpha[:, None] + np.bincount(y))[:, None]
    for f in range(2):
        counts = np.array([np.bincount(X[y == c, f], minlength=3) for c in range(3)])
        log_p = log_p + log_dirichlet(rng, alpha[:, None, None] + counts)[:, :, new[:, f]].swapaxes(1, 2)
    proba, weight = softmax(log_p, axis=2), softmax(logsumexp(log_p, axis=2), axis=0)
    draws = hyperparameters(nb, "symmetric", alpha=alpha[:4000], class_alpha=class_alpha[:4000])
    lower, upper = predict_interval(nb, new, 0.8, draws=draws)
    for end, q in ((lower, 0.1), (upper, 0.9)):
        below = (weight[..., None] * (proba <= end)).sum(axis=0)
        np.testing.assert_allclose(below, q, atol=0.025)
    mean, sd = log_odds_moments(nb, new, given="row", draws=draws)
    odds = log_p - log_p[..., :1]
    expected = (weight[..., None] * odds).sum(axis=0)
    assert (abs(mean - expected) <= 5 * sd * np.sqrt(1 / 4000 + (weight**2).sum(axis=0)[:, None]) + 1e-12).all()
    split = decompose_uncertainty(nb, new, draws=draws)
    aleatoric = -(weight * (proba * np.log(proba)).sum(axis=2)).sum(axis=0)
    np.testing.assert_allclose(split["aleatoric"], aleatoric, atol=0.02)


def log_dirichlet(rng: np.random.Generator, concentration: np.ndarray) -> np.ndarray:
    gamma = rng.standard_gamma(concentration)
    return np.log(gamma / gamma.sum(axis=-1, keepdims=True))
