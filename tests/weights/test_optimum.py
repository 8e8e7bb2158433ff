"""Weights of dense terms against scikit-learn, SciPy's optimiser, differences and refits one by one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from bayesnb.weights import optimum as weight_optimum
from bayesnb.weights import terms as cross_terms
from bayesnb.weights.optimum import Expansion, Groups, WeightPrior, held_out_log_losses, maximize, optimize_weights
from bayesnb.weights.terms import CrossTerms

N, SPLITS = 40, 4


def simulate(n_classes: int, n_terms: int, signal: float = 1.0, *, absent: bool = False, seed: int = 0) -> CrossTerms:
    """Terms of normal columns, by fits to halves that err; with `absent` class 0 has no rows, and log P -inf."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.arange(N) % (n_classes - absent)) + absent
    x = rng.normal(size=(N, n_terms)) + signal * rng.normal(size=(n_classes, n_terms))[label]
    fit = 2 * np.arange(SPLITS)[:, None] + np.argsort(rng.random((SPLITS, N)), axis=1) % 2
    means = np.array([x[label == c].mean(axis=0) if (label == c).any() else x[0] for c in range(n_classes)])
    means = means + 0.4 * rng.normal(size=(2 * SPLITS, n_classes, n_terms))
    values = -((x[None, :, None] - means[fit]) ** 2) / 2
    log_class = rng.normal(size=(2 * SPLITS, n_classes))
    log_class[:, : int(absent)] = -np.inf
    return CrossTerms(
        log_class=log_class[fit.ravel()],
        log_length=np.zeros(SPLITS * N),
        label=np.tile(label, SPLITS),
        weight=np.tile(rng.integers(1, 4, N), SPLITS) / SPLITS,
        row=np.tile(np.arange(N), SPLITS),
        fit=fit.ravel(),
        reference=np.zeros((2 * SPLITS, n_classes, n_terms)),
        difference=np.ascontiguousarray(np.moveaxis(values.reshape(-1, n_classes, n_terms), 1, 0)),
    )


def penalized(terms: CrossTerms, prior: WeightPrior, row_weight: np.ndarray) -> Any:
    """Minus the log posterior of (b, T, d), and its gradient, written out once more."""
    label, n_classes = terms.label, prior.n_classes
    group, tau = prior.groups.index, np.asarray(prior.shrinkage)[prior.groups.index]
    values = np.stack(list(terms.difference), axis=1)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        b, t, d = np.split(theta, [n_classes, n_classes + len(prior.groups.mean)])
        log_p = log_softmax(terms.log_class + prior.biased * b + values @ (t[group] + tau * d), axis=1)
        rest = row_weight[:, None] * (np.eye(n_classes)[label] - np.exp(log_p))
        slope, away = np.einsum("nc,nct->t", rest, values), t - prior.groups.mean
        gradient = [b - prior.biased * rest.sum(axis=0), away - np.bincount(group, slope), d - tau * slope]
        value = (b @ b + away @ away + d @ d) / 2 - row_weight @ log_p[np.arange(len(label)), label]
        return value, np.concatenate(gradient)

    return loss


def solve(terms: CrossTerms, prior: WeightPrior, row_weight: np.ndarray) -> np.ndarray:
    start = np.concatenate([np.zeros(prior.n_classes), prior.groups.mean, np.zeros(len(prior.groups.index))])
    options = {"gtol": 1e-9, "maxiter": 5000}
    return minimize(penalized(terms, prior, row_weight), start, jac=True, method="BFGS", options=options).x


def hessian(loss: Any, at: np.ndarray) -> np.ndarray:
    steps = 1e-5 * np.eye(len(at))
    return np.array([(loss(at + h)[1] - loss(at - h)[1]) / 2e-5 for h in steps])


CASES = {
    "two classes": (simulate(2, 5), (0.3,), True),
    "three classes": (simulate(3, 4), (0.1,), True),
    "two groups": (simulate(3, 6), (1.0, 0.3), True),
    "one shared weight": (simulate(4, 3), (0.0,), False),
    "a class without rows": (simulate(4, 3, absent=True), (0.3,), True),
    "separable": (simulate(2, 8, signal=6.0), (1.0,), True),
}


def grouped(terms: CrossTerms, n_groups: int) -> Groups:
    n_terms = len(terms.difference[0].T)
    return Groups.from_dependence((np.arange(n_terms) > 3) & (n_groups > 1), np.zeros(n_terms, bool))


def prior_of(terms: CrossTerms, tau: tuple[float, ...], biased: bool) -> WeightPrior:
    return WeightPrior(grouped(terms, len(tau)), np.array(tau), len(terms.difference), biased)


@pytest.mark.parametrize(("terms", "tau", "biased"), CASES.values(), ids=CASES)
def test_the_optimum_is_that_of_another_solver(terms, tau, biased):
    """Biases, weights, log evidence and standard deviations, the Hessian by differences of the gradient."""
    prior = prior_of(terms, tau, biased)
    found, at, loss = maximize(terms, prior), solve(terms, prior, terms.weight), penalized(terms, prior, terms.weight)
    n, group = prior.n_classes, prior.groups.index
    temperature, deviation = at[prior.temperatures], at[prior.temperatures.stop :]
    np.testing.assert_allclose(found.bias, at[:n], atol=1e-6)
    np.testing.assert_allclose(found.temperature, temperature, atol=1e-6)
    np.testing.assert_allclose(found.weight, temperature[group] + prior.tau * deviation, atol=1e-6)
    precision = hessian(loss, at)
    assert found.log_evidence == pytest.approx(-loss(at)[0] - np.linalg.slogdet(precision)[1] / 2, abs=1e-4)
    into = np.hstack([np.zeros((len(group), n)), np.eye(len(tau))[group], np.diag(prior.tau)])
    sd = np.sqrt(np.diagonal(into @ np.linalg.inv(precision) @ into.T))
    np.testing.assert_allclose(found.sd, sd, rtol=1e-4)


def test_two_classes_are_logistic_regression():
    """The same penalty in scikit-learn, for a temperature around 0: b_1 - b_0 has variance 2."""
    terms, tau = replace(CASES["two classes"][0], log_class=np.zeros((SPLITS * N, 2))), 0.3
    z = terms.difference[1] - terms.difference[0]
    columns = np.column_stack([np.full(len(z), np.sqrt(2)), z.sum(axis=1), tau * z])
    reference = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, solver="newton-cholesky")
    coef = reference.fit(columns, terms.label, terms.weight).coef_[0]
    groups = replace(grouped(terms, 1), mean=np.zeros(1))
    found = maximize(terms, WeightPrior(groups, np.array([tau]), 2, biased=True))
    np.testing.assert_allclose(found.bias, np.array([-1, 1]) * coef[0] / np.sqrt(2), atol=1e-6)
    np.testing.assert_allclose(found.weight, coef[1] + tau * coef[2:], atol=1e-6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gradients_are_differences(case, dtype):
    """Of the log score by contrasts of biases and by weights, for two weightings of the rows at once."""
    contrasts, rng = CASES[case][0].contrasts, np.random.default_rng(1)
    rows, n = rng.permutation(SPLITS * N)[:50], len(contrasts.of_bias) + contrasts.values.shape[-1]
    part = contrasts.take(rows, rng.random((50, 2)), dtype)
    points, steps = 0.3 * rng.normal(size=(n, 2)), 1e-6 * np.eye(n)
    exact = contrasts.take(rows, part.weight, np.float64).log_score
    expected = [(exact(points + h[:, None])[0] - exact(points - h[:, None])[0]) / 2e-6 for h in steps]
    tolerance = 1e-5 if dtype is np.float64 else 1e-3
    np.testing.assert_allclose(part.log_score(points)[1], expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES)
def test_the_hessian_is_the_difference_of_gradients(case, monkeypatch):
    monkeypatch.setattr("bayesnb.weights.terms._CELLS_IN_CACHE", 100)  # several blocks of rows
    terms, rng = CASES[case][0], np.random.default_rng(2)
    model = Expansion.around(terms, rng.normal(size=len(terms.difference)), rng.normal(size=terms.values.shape[-1]))
    expected = hessian(lambda at: (0.0, -terms.contrasts.log_score(at[:, None])[1][:, 0]), model.point)
    np.testing.assert_allclose(model.curvature, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("many_values", [2**17, 0])
@pytest.mark.parametrize("case", ["three classes", "two groups", "a class without rows", "separable"])
def test_held_out_losses_are_those_of_refits_one_by_one(case, many_values, monkeypatch):
    """Refits by another solver to the scores of other rows, by the fits that score the held-out ones."""
    monkeypatch.setattr(cross_terms, "_MANY_VALUES", many_values)
    monkeypatch.setattr(weight_optimum, "_CELLS_AT_ONCE", 500)  # several blocks of rows
    terms, tau, biased = CASES[case]
    prior, losses = prior_of(terms, tau, biased), np.zeros((SPLITS, N))
    label, fit, share = terms.label[:N], terms.fit.reshape(SPLITS, N), terms.weight[:N] * SPLITS
    class_weight = np.bincount(label, share, prior.n_classes)
    for splits in ([0, 1], [2, 3]):
        for pattern in np.unique(fit[splits], axis=1).T:
            rows = np.flatnonzero((fit[splits] == pattern[:, None]).all(axis=0))
            rows = rows[np.argsort(label[rows], kind="stable")]
            for held_out in (rows[i::4] for i in range(min(4, len(rows)))):
                used = np.isin(terms.fit, pattern) & ~np.isin(terms.row, held_out)
                row_weight = terms.weight * used
                at = solve(terms, prior, row_weight * terms.weight.sum() / row_weight.sum())
                bias, weight = prior.point(at)
                for s in splits:
                    scores = terms.scores(bias, weight)[s * N + held_out]
                    own = np.arange(len(held_out)), label[held_out]
                    scores[own] += np.log1p(-share[held_out] / (class_weight[label[held_out]] + 1))
                    losses[s, held_out] = -log_softmax(scores, axis=1)[own]
    optimum = maximize(terms, prior)
    found = held_out_log_losses(terms, prior, (optimum.bias, optimum.weight), np.arange(N))
    assert found.mean() == pytest.approx(losses.mean(), abs=1e-6 if many_values else 5e-4)
    np.testing.assert_allclose(found, losses.mean(axis=0), atol=1e-5 if many_values else 0.1)


@pytest.mark.parametrize("case", ["two classes", "three classes", "two groups"])
def test_many_terms_have_the_same_shrinkage(case, monkeypatch):
    """By a quadratic model in place of most optima, wherever the search begins."""
    terms, tau, _ = CASES[case]
    groups = grouped(terms, len(tau))
    optima, chosen, _ = optimize_weights(terms, groups, groups.grid, biased=True)
    monkeypatch.setattr(cross_terms, "_MANY_VALUES", 0)
    best = optima[chosen]
    for start in (None, (best.bias, best.weight, 0), (best.bias, best.weight, chosen)):
        screened, again, _ = optimize_weights(terms, groups, groups.grid, biased=True, start=start)
        assert again == chosen
        np.testing.assert_allclose(screened[chosen].weight, best.weight, atol=1e-6)
        probability = [np.exp([o.log_evidence - best.log_evidence for o in path]) for path in (screened, optima)]
        np.testing.assert_allclose(*probability, atol=0.05)


@pytest.mark.parametrize(("terms", "tau", "biased"), CASES.values(), ids=CASES)
def test_a_start_changes_the_way_only(terms, tau, biased):
    groups = grouped(terms, len(tau))
    optima, chosen, _ = optimize_weights(terms, groups, groups.grid, biased=biased)
    start = np.full(len(terms.difference), 0.5), np.full(len(groups.index), -1.0), 1
    other, again, _ = optimize_weights(terms, groups, groups.grid, biased=biased, start=start)
    assert again == chosen
    for one, two in zip(optima, other, strict=True):
        np.testing.assert_allclose(one.weight, two.weight, atol=1e-6)
        assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-3)
