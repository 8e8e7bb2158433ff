"""Word counts of which none is above 1 have the Dirichlet-multinomial probability."""

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp
from scipy.stats import dirichlet_multinomial

from bayesnb import MultinomialNB
from tests.estimators.cases import CASES


def test_rows_of_ones_are_dirichlet_multinomial():
    dense, y = CASES["BernoulliNB"].X, CASES["BernoulliNB"].y  # classes of equal size
    X = sp.csr_array(dense)
    nb = MultinomialNB(alpha=0.5).fit(X, y)
    alpha = np.array([dense[y == c].sum(axis=0) + 0.5 for c in nb.classes_])
    log_joint = np.array([[dirichlet_multinomial.logpmf(row, a, row.sum()) for a in alpha] for row in dense])
    expected = log_joint - logsumexp(log_joint, axis=1, keepdims=True)
    np.testing.assert_allclose(nb.predict_log_proba(X), expected, rtol=1e-12)
