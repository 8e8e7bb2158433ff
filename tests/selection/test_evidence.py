"""Bayes factors by hand, and the models that must not be compared."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import betaln

import bayesnb as bnb

X = np.array([["u", "a"], ["v", "a"], ["u", "b"], ["u", "a"]])
Y = ["p", "q", "p", "q"]
COUNTS = np.array([[2.0, 0.0], [1.0, 3.0], [0.0, 1.0], [4.0, 1.0]])


def test_of_two_concentrations():
    first, second = (bnb.CategoricalNB(alpha=alpha).fit(X, Y) for alpha in (1.0, 3.0))
    counts = [(2, 0), (1, 1), (1, 1), (2, 0)]  # of u, v and of a, b in p and in q
    log = sum(sign * (betaln(a + m, a + n) - betaln(a, a)) for sign, a in ((1, 1.0), (-1, 3.0)) for m, n in counts)
    found = bnb.bayes_factor(first, second)
    assert found.log == pytest.approx(log, abs=1e-12)
    assert found.value == pytest.approx(np.exp(log))
    assert bnb.bayes_factor(second, first).log == -found.log
    assert f"{log:.3f} nats" in repr(found)


def test_the_order_of_rows_does_not_matter():
    shuffled = bnb.CategoricalNB().fit(X[::-1], Y[::-1])
    assert bnb.bayes_factor(bnb.CategoricalNB().fit(X, Y), shuffled).log == 0


def test_a_large_factor_is_infinite_and_its_logarithm_is_not():
    y = np.arange(4000) % 2
    first, second = (bnb.CategoricalNB(alpha=alpha).fit(y[:, None], y) for alpha in (1.0, 1e6))
    found = bnb.bayes_factor(first, second)
    assert found.value == np.inf
    assert np.isfinite(found.log)


def test_a_prior_from_the_data_and_fractional_weights_are_noted():
    gaussian = bnb.GaussianNB().fit(COUNTS, Y, sample_weight=[0.5, 1, 1, 1])
    proper = bnb.GaussianNB(prior=bnb.NormalInverseGamma(0.0, 1.0, 2.0, 1.0)).fit(COUNTS, Y, [0.5, 1, 1, 1])
    notes = " ".join(bnb.bayes_factor(proper, gaussian).notes)
    assert "Evidence of the second given a prior derived from these data." in notes
    assert "the first given" not in notes
    assert "pseudo-evidence" in notes
    assert bnb.bayes_factor(proper, proper).notes == ("Fractional weights: a pseudo-evidence.",)


def frame(**columns):
    return pd.DataFrame(columns)


def categorical(rows=X, labels=Y, **options):
    return lambda: bnb.CategoricalNB(**options).fit(rows, labels)


def of_counts(nb, rows=COUNTS):
    return lambda: nb.fit(rows, Y)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (categorical(), categorical(X[:3], Y[:3]), "the rows differ: classes of"),
        (categorical(), categorical(X, Y[::-1]), "the rows differ: their categorical columns"),
        (categorical(), categorical(X[:, :1]), "the columns differ, 2 and 1"),
        (categorical(), categorical(X, ["p", "r", "p", "r"]), "the classes differ"),
        (
            categorical(),
            categorical(categories=[["u", "v", "w"], ["a", "b"]]),
            "have 4 levels in the first model and 5 in the second",
        ),
        (of_counts(bnb.MultinomialNB()), of_counts(bnb.BernoulliNB(), COUNTS > 0), "multinomial, in the first model"),
        (of_counts(bnb.MultinomialNB()), of_counts(bnb.PoissonNB()), "poisson, in the"),
        (of_counts(bnb.GaussianNB()), of_counts(bnb.PoissonNB()), "different encodings are not comparable"),
        (
            of_counts(bnb.BernoulliNB(binarize=0.5)),
            of_counts(bnb.BernoulliNB(binarize=1.5)),
            "the rows differ: their bernoulli columns have other statistics",
        ),
        (
            of_counts(bnb.GaussianNB(), frame(a=[1.0, 2, 3, 4])),
            of_counts(bnb.GaussianNB(), frame(b=[1.0, 2, 3, 4])),
            "column 0 is 'a'",
        ),
        (categorical(alpha=0.0), categorical(alpha=0.0), "Both evidences are zero"),
    ],
)
def test_what_must_not_be_compared(first, second, message):
    first, second = first(), second()
    with pytest.raises(ValueError, match=message):
        bnb.bayes_factor(first, second)


def test_the_prior_inside_an_average_counts_too():
    averaged = bnb.FeatureAveragedNB(bnb.GaussianNB()).fit(COUNTS, Y)
    assert "Evidence of the first given a prior derived" in " ".join(bnb.bayes_factor(averaged, averaged).notes)
