"""Intervals of prevalence cover the true shares where the model holds."""

import numpy as np
import pytest
from scipy import stats

import bayesnb as bnb

pytestmark = pytest.mark.calibration

SETS, ROWS, DRAWS = 1_000, 60, 199


def scores_that_hold(n_classes: int):
    """A classifier of three columns whose plug-in probabilities are taken for the truth, and those, (C, 3, 3)."""
    rng = np.random.default_rng(n_classes)
    y, X = np.repeat(np.arange(n_classes), 30), rng.integers(0, 3, (30 * n_classes, 3))
    X = np.where(rng.random(X.shape) < 0.5, (y[:, None] + np.arange(3)) % 3, X)
    nb = bnb.CategoricalNB(categories=[[0, 1, 2]] * 3, estimate="mean").fit(X, y)
    return nb, np.exp(np.stack(nb.feature_log_prob_, axis=1))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_given_scores_that_hold_intervals_cover(n_classes):
    """90% ± 3 over 1,000 simulations from the prior (three standard errors: 2.8%)."""
    nb, theta = scores_that_hold(n_classes)
    alpha = np.array([1.0, 0.5, 2.0])[:n_classes]
    covered, ranks = np.zeros(n_classes), []
    for s in range(SETS):
        rng = np.random.default_rng([s, 17])
        truth = rng.dirichlet(alpha)
        label = rng.choice(n_classes, ROWS, p=truth)
        X = (rng.random((ROWS, 3, 1)) > np.cumsum(theta[label], axis=2)).sum(axis=2)
        found = bnb.estimate_prevalence(nb, X, alpha=alpha, draws=DRAWS, seed=s, given="scores")
        covered += (found.lower <= truth) & (truth <= found.upper)
        ranks.append((found.draws < truth).sum(axis=0))
    print(f"{n_classes} classes: covered {covered / SETS}")
    assert (abs(covered / SETS - 0.9) < 0.03).all()
    counts = [np.bincount(np.array(ranks)[:, c] * 10 // (DRAWS + 1), minlength=10) for c in range(n_classes)]
    # Draws of three classes are nearly independent: ranks of 10 bins hardly notice.
    assert min(stats.chisquare(own).pvalue for own in counts) > 1e-3


def test_given_the_data_intervals_cover_after_few_labelled_rows():
    """Twenty labelled rows a class from the classifier's own prior. Given the scores far fewer do: that is why."""
    covered = {"scores": 0, "data": 0}
    for s in range(SETS):
        rng = np.random.default_rng([s, 18])
        theta, truth = rng.beta(1.0, 1.0, (2, 6)), rng.beta(1.0, 1.0)
        y, label = np.repeat([0, 1], 20), (rng.random(200) < truth).astype(int)
        nb = bnb.BernoulliNB().fit(rng.random((40, 6)) < theta[y], y)
        X = rng.random((200, 6)) < theta[label]
        for given in covered:
            found = bnb.estimate_prevalence(nb, X, draws=DRAWS, seed=s, given=given)
            covered[given] += int(found.lower[1] <= truth <= found.upper[1])
    print({given: n / SETS for given, n in covered.items()})
    assert abs(covered["data"] / SETS - 0.9) < 0.05
    assert covered["scores"] / SETS < covered["data"] / SETS - 0.05
