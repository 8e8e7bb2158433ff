"""P(class | row, θ): against draws of all parameters, importance weights, quadrature and laws."""

from copy import deepcopy
from functools import cache
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit, roots_jacobi, xlogy
from scipy.stats import beta, norm

import bayesnb as bnb
from bayesnb.encoding import row_pieces
from bayesnb.fitted.scoring import pad
from bayesnb.uncertainty import decompose_uncertainty, log_odds_moments, posterior_draws, predict_interval
from bayesnb.uncertainty.class_probabilities import RowSampler
from bayesnb.uncertainty.score_moments import row_cumulants, score_cumulants, skewed, unskewed
from tests.strategies import thorough, variants
from tests.uncertainty.simulated import SIMULATED

DRAWS = 20_000
# What all kinds take together is minutes.
_QUICK = ("multinomial", "gaussian")
each_kind = pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in _QUICK else pytest.mark.slow) for kind in SIMULATED]
)
each_method = pytest.mark.parametrize("method", ["moments", "draws"])
each_given = pytest.mark.parametrize("given", ["row", "data"])
some_given = pytest.mark.parametrize("given", thorough(["row", "data"], ["row"]))


@cache
def problem(kind: str, n_classes: int, n: int = 30, n_rows: int = 5) -> tuple[Any, Any]:
    """A fitted estimator and rows, where there can be with missing cells in two of them."""
    rng = np.random.default_rng([n_classes, 4])
    simulated = SIMULATED[kind]
    truth = simulated.truth(rng, n_classes)
    nb = simulated.fit(*simulated.draw(rng, truth, n), n_classes)
    X = simulated.draw(rng, truth, n_rows)[0]
    if kind == "mixed":
        X.iloc[0, [0, 3]] = np.nan
        X.iloc[1, 1] = np.nan
    elif kind != "multinomial":
        X[0, 1] = X[1, 2] = np.nan
    return nb, X


@cache
def draws_of(kind: str, n_classes: int) -> dict[str, np.ndarray]:
    return posterior_draws(problem(kind, n_classes)[0], DRAWS, seed=9)


@cache
def weights_of(kind: str, n_classes: int) -> np.ndarray:
    """(S, N) weights p(row | θ) that turn draws of θ | D into θ | D, row."""
    log_weight = SIMULATED[kind].log_row(draws_of(kind, n_classes), problem(kind, n_classes)[1])
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    assert (1 / (weight**2).sum(axis=0) > DRAWS / 10).all()
    return weight


def weighted_mean(values: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Self-normalised importance sampling over the first axis, and its standard error."""
    weight = weight.reshape(weight.shape + (1,) * (values.ndim - weight.ndim))
    mean = (weight * values).sum(axis=0)
    return mean, np.sqrt((weight**2 * (values - mean) ** 2).sum(axis=0))


def counted(nb: Any, X: Any, i: int, label: Any) -> Any:
    """The estimator after counting row i of X with this label."""
    row = X.iloc[[i]] if hasattr(X, "iloc") else X[[i]]
    return deepcopy(nb).partial_fit(row, [label])


def take(X: Any, index: Any) -> Any:
    return X.iloc[index] if hasattr(X, "iloc") else X[index]


@pytest.mark.slow("simulates many data sets or draws")
@some_given
@each_kind
def test_log_odds_moments_are_those_of_draws(kind, given):
    """Draws of θ | D; weighted with p(row | θ) they are draws of θ | D, row. Five standard errors."""
    nb, X = problem(kind, 3)
    drawn = SIMULATED[kind].log_proba(draws_of(kind, 3), X)
    weight = weights_of(kind, 3) if given == "row" else np.full(drawn.shape[:2], 1 / DRAWS)
    for a in range(3):
        odds = drawn - drawn[..., [a]]
        mean, sd = log_odds_moments(nb, X, against=a, given=given)
        assert not mean[:, a].any()
        assert not sd[:, a].any()
        found, error = weighted_mean(odds, weight)
        assert (abs(found - mean) <= 5 * error + 1e-12).all()
        found, error = weighted_mean((odds - mean) ** 2, weight)
        assert (abs(found - sd**2) <= 5 * error + 1e-12).all()


@pytest.mark.slow("other variants compile kernels of their own")
@each_kind
def test_given_the_row_is_a_mixture_over_its_class(kind):
    """Exactly: the mixture, by P(k | row, D), of models that counted the row with label k."""
    nb, X = problem(kind, 3)
    mean, sd = log_odds_moments(nb, X, given="row")
    proba = nb.predict_proba(X)
    for i in range(len(X)):
        parts = [log_odds_moments(counted(nb, X, i, k), take(X, [i])) for k in range(3)]
        means, sds = (np.concatenate(part) for part in zip(*parts, strict=True))
        expected = proba[i] @ means
        np.testing.assert_allclose(mean[i], expected, rtol=1e-10, atol=1e-10)
        second = proba[i] @ (sds**2 + means**2)
        np.testing.assert_allclose(sd[i] ** 2, second - expected**2, rtol=1e-8, atol=1e-9)


@pytest.mark.slow("simulates many data sets or draws")
@pytest.mark.parametrize("n_classes", [2, 3])
@each_kind
def test_given_the_row_draws_average_to_predict_proba(kind, n_classes):
    """Law 9, within five Monte Carlo errors."""
    nb, X = problem(kind, n_classes)
    p, n = nb.predict_proba(X), 4000
    sampler = RowSampler("draws", "row", n, 0)
    mean, sd = sampler.map(nb.fitted_, X, lambda drawn, _: moments_of(np.exp(drawn))).swapaxes(0, 1)
    # The sd of what is seldom is not known from the draws, but the variance of a probability is at most p (1 - p).
    bound = np.where((p > 0.01) & (p < 0.99), sd, np.sqrt(p * (1 - p)))
    assert (abs(mean - p) <= 5 * bound / np.sqrt(n)).all()


def moments_of(proba: np.ndarray) -> np.ndarray:
    """(N, 2, C) mean and sd over the first axis."""
    return np.stack([proba.mean(axis=0), proba.std(axis=0)], axis=1)


@variants("level", [0.0, 1.0])
def test_law_9_by_quadrature(level):
    """One Bernoulli feature, two classes: both ways of writing the mean of P(c | x, θ) over θ | D, x.

    Gauss-Jacobi rules for π, θ_0 and θ_1, each Beta a posteriori.
    """
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [9, 13])
    X = (rng.random((22, 1)) < np.where(y, 0.7, 0.4)[:, None]).astype(float)
    nb = bnb.BernoulliNB(alpha=2.5, class_alpha=2.0).fit(X, y)
    row = np.array([[level]])

    def rule(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and probabilities of Beta(a, b)."""
        nodes, weights = roots_jacobi(60, b - 1, a - 1)
        return (1 + nodes) / 2, weights / weights.sum()

    def posterior(model: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weight, joint probabilities p(c, row | θ) of both classes, on a grid."""
        n = model.class_count_
        present = model.feature_count_[:, 0]
        grids = [rule(2.0 + n[1], 2.0 + n[0])]
        grids += [rule(2.5 + present[c], 2.5 + n[c] - present[c]) for c in (0, 1)]
        (pi, theta0, theta1), weights = (np.meshgrid(*part, indexing="ij") for part in zip(*grids, strict=True))
        x0, x1 = (theta if level else 1 - theta for theta in (theta0, theta1))
        return np.prod(weights, axis=0), (1 - pi) * x0, pi * x1

    expected = nb.predict_proba(row)[0, 1]
    weight, joint0, joint1 = posterior(nb)
    evidence = weight * (joint0 + joint1)
    share = joint1 / (joint0 + joint1)
    assert (evidence * share).sum() / evidence.sum() == pytest.approx(expected, abs=1e-10)

    mixture = 0.0
    for k, proba in enumerate(nb.predict_proba(row)[0]):
        weight, joint0, joint1 = posterior(counted(nb, row, 0, k))
        mixture += proba * (weight * joint1 / (joint0 + joint1)).sum()
    assert mixture == pytest.approx(expected, abs=1e-10)

    # And the moments of the log odds over the same posterior.
    weight, joint0, joint1 = posterior(nb)
    odds, weight = np.log(joint1 / joint0), weight * (joint0 + joint1)
    mean = (weight * odds).sum() / weight.sum()
    sd = np.sqrt((weight * (odds - mean) ** 2).sum() / weight.sum())
    found = log_odds_moments(nb, row, given="row")
    np.testing.assert_allclose([found[0][0, 1], found[1][0, 1]], [mean, sd], rtol=1e-8)


def components(nb: Any, X: Any, i: int, given: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Weights, means, sds and skewnesses of the mixture that is the logit of class 1, for row i.

    From models that have counted the row, each with one label.
    """
    models = [nb] if given == "data" else [counted(nb, X, i, k) for k in (0, 1)]
    weight = np.ones(1) if given == "data" else nb.predict_proba(take(X, [i]))[0]
    mean, sd = (
        np.concatenate(part)[:, 1] for part in zip(*(log_odds_moments(m, take(X, [i])) for m in models), strict=True)
    )
    third = np.array([third_of_logit(m, take(X, [i])) for m in models])
    return weight, mean, sd, (third / sd**3).clip(-3, 3)


def third_of_logit(nb: Any, X: Any) -> float:
    with jax.enable_x64(True):
        model, (rows, n) = nb.posterior_, nb.fitted_.encode(X)
        ((_, x, _),) = row_pieces(rows, n)
        _, scores = score_cumulants(model, row_cumulants(pad(nb.encoding_, model), x), "data")
        return float(scores.third[0, 0, 1] - scores.third[0, 0, 0])


@pytest.mark.slow("other variants compile kernels of their own")
@some_given
@each_kind
def test_two_classes_have_quantiles_of_a_mixture(kind, given):
    nb, X = problem(kind, 2)
    parts = [components(nb, X, i, given) for i in range(len(X))]
    for prob in (0.5, 0.9, 0.999):
        lower, upper = predict_interval(nb, X, prob, given=given)
        assert (lower <= upper).all()
        np.testing.assert_allclose(lower[:, 0], 1 - upper[:, 1], rtol=0, atol=1e-15)
        np.testing.assert_allclose(upper[:, 0], 1 - lower[:, 1], rtol=0, atol=1e-15)
        for i, part in enumerate(parts):
            for end, q in ((lower, (1 - prob) / 2), (upper, (1 + prob) / 2)):
                expected = brentq(excess, -200, 200, args=(*part, q), xtol=1e-13, rtol=1e-14)
                assert logit(end[i, 1]) == pytest.approx(expected, rel=1e-8, abs=1e-8)


def excess(at: float, w: np.ndarray, mean: np.ndarray, sd: np.ndarray, skew: np.ndarray, q: float) -> float:
    return float(w @ norm.cdf(unskewed((at - mean) / sd, skew))) - q


@pytest.mark.slow("compiles kernels of its own")
@each_given
@each_kind
def test_two_classes_have_entropies_of_a_mixture(kind, given):
    """The trapezoidal rule, on 20,000 nodes."""
    nb, X = problem(kind, 2)
    found = decompose_uncertainty(nb, X, given=given)
    top = nb.predict_proba(X).argmax(axis=1)
    z = np.linspace(-12, 12, 20_001)
    density = norm.pdf(z) * (z[1] - z[0])
    for i in range(len(X)):
        w, mean, sd, skew = components(nb, X, i, given)
        p = expit(mean[:, None] + sd[:, None] * skewed(z, skew[:, None]))
        average = float(w @ p @ density)
        aleatoric = float(w @ (-xlogy(p, p) - xlogy(1 - p, 1 - p)) @ density)
        total = -xlogy(average, average) - xlogy(1 - average, 1 - average)
        p_top = float(w @ norm.cdf(unskewed(-mean / sd, skew)))
        p_top = 1 - p_top if top[i] else p_top
        expected = [total, aleatoric, total - aleatoric, p_top]
        np.testing.assert_allclose(found.iloc[i], expected, rtol=0, atol=1e-6)


@pytest.mark.slow("simulates many data sets or draws")
@each_given
@pytest.mark.parametrize("n_classes", thorough([2, 3], [3]))
@each_kind
def test_draws_are_of_the_posterior(kind, n_classes, given):
    """Ends of intervals, average entropy and p_top against (weighted) draws of all parameters."""
    nb, X = problem(kind, n_classes)
    p = np.exp(SIMULATED[kind].log_proba(draws_of(kind, n_classes), X))
    weight = weights_of(kind, n_classes) if given == "row" else np.full(p.shape[:2], 1 / DRAWS)
    n = 2000
    found = decompose_uncertainty(nb, X, given=given, method="draws", draws=n)
    entropy = -xlogy(p, p).sum(axis=2)
    mean, error = weighted_mean(entropy, weight)
    spread = np.sqrt((weight * (entropy - mean) ** 2).sum(axis=0) / n)
    assert (abs(found["aleatoric"] - mean) <= 5 * np.hypot(error, spread)).all()
    mean, error = weighted_mean((p.argmax(axis=2) == nb.predict_proba(X).argmax(axis=1)).astype(float), weight)
    assert (abs(found["p_top"] - mean) <= 5 * np.hypot(error, np.sqrt((mean * (1 - mean)).clip(0) / n)) + 2 / n).all()
    ends = predict_interval(nb, X, 0.8, given=given, method="draws", draws=n)
    for end, q in zip(ends, (0.1, 0.9), strict=True):
        below, error = weighted_mean((p < end).astype(float), weight)
        assert (abs(below - q) <= 5 * np.hypot(error, np.sqrt(q * (1 - q) / n))).all()


def flipped(kind: str) -> tuple[Any, Any, Any]:
    """The same data with labels 0 and 1, and with labels -0 and -1, which reverses the order of the classes."""
    rng = np.random.default_rng(8)
    simulated = SIMULATED[kind]
    truth = simulated.truth(rng)
    X, y = simulated.draw(rng, truth, 30)
    return simulated.make().fit(X, y), simulated.make().fit(X, -y), simulated.draw(rng, truth, 6)[0]


@pytest.mark.slow("compiles kernels of its own")
@each_given
@each_kind
def test_permuted_classes_and_rows_permute_the_answer(kind, given):
    nb, other, X = flipped(kind)
    order = np.array([3, 1, 5, 0, 4, 2])
    ends, found = predict_interval(nb, X, given=given), decompose_uncertainty(nb, X, given=given)
    for mine, theirs in zip(ends, predict_interval(other, take(X, order), given=given), strict=True):
        np.testing.assert_allclose(theirs, mine[order][:, ::-1], rtol=1e-9)
    theirs = decompose_uncertainty(other, take(X, order), given=given)
    np.testing.assert_allclose(theirs, found.to_numpy()[order], rtol=0, atol=1e-12)
    (mean, sd), (mean_, sd_) = (log_odds_moments(m, X, against=0, given=given) for m in (nb, other))
    np.testing.assert_allclose(mean, mean_[:, ::-1], rtol=1e-9)
    np.testing.assert_allclose(sd, sd_[:, ::-1], rtol=1e-9)


def missing_rows(kind: str) -> Any:
    if kind == "mixed":
        return pd.DataFrame(np.full((2, 4), np.nan), columns=["colour", "length", "ripe", "seeds"])
    return np.zeros((2, 5)) if kind == "multinomial" else np.full((2, 3), np.nan)


@pytest.mark.slow("compiles kernels of its own")
@some_given
@each_kind
def test_without_a_cell_the_class_prior_is_what_is_known(kind, given):
    """P(c | row, θ) = π_c ~ Beta, whether or not the row is among the data."""
    nb, _ = problem(kind, 2)
    n0, n1 = nb.class_count_
    lower, upper = predict_interval(nb, missing_rows(kind), method="draws", given=given, draws=DRAWS)
    for end, q in ((lower, 0.05), (upper, 0.95)):
        assert (abs(beta.cdf(end[:, 1], 1 + n1, 1 + n0) - q) < 5 * np.sqrt(0.05 * 0.95 / DRAWS)).all()
    near = predict_interval(nb, missing_rows(kind), given=given)
    np.testing.assert_allclose(near, [lower, upper], atol=0.02)
    mean = (1 + n1) / (2 + n0 + n1)
    found = decompose_uncertainty(nb, missing_rows(kind), method="draws", given=given, draws=DRAWS)
    np.testing.assert_allclose(found["total"], -xlogy(mean, mean) - xlogy(1 - mean, 1 - mean), atol=0.005)
    np.testing.assert_allclose(nb.predict_proba(missing_rows(kind))[:, 1], mean)


@pytest.mark.parametrize("nb", [bnb.BinnedNB(), bnb.KDB()])
def test_a_second_interval_compiles_nothing(nb):
    """Calls that compile anew each time cost a second; JAX reports each compilation."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    nb.fit(X, y)
    events: list[str] = []
    bnb.predict_interval(nb, X[:1], draws=20)
    jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: events.append(event))
    bnb.predict_interval(nb, X[:1], draws=20)
    assert [event for event in events if "backend_compile" in event] == []
