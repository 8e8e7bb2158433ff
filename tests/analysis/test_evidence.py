"""Bayes factors by hand, and the models that must not be compared."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

import bayesnb as bnb
from bayesnb import bayes_factor
from tests.raises import refused
from tests.tables import CODE, COUNTS, LABEL, LEVELS, NUMBERS, N, of_levels

PROPER = bnb.NormalInverseGamma(0.0, 1.0, 2.0, 1.0)


def test_of_two_concentrations():
    count = np.array([[np.bincount(x.astype(int), minlength=3) for x in LEVELS[c == CODE].T] for c in range(3)])

    def log_evidence(alpha: float) -> float:
        """Dirichlet-multinomial log evidence of the cells, for each class and column."""
        n = count.sum(axis=-1)
        return (gammaln(alpha + count) - gammaln(alpha)).sum() + (gammaln(3 * alpha) - gammaln(3 * alpha + n)).sum()

    first, second = of_levels(alpha=1.0), of_levels(alpha=3.0)
    log, found, turned = log_evidence(1.0) - log_evidence(3.0), bayes_factor(first, second), bayes_factor(second, first)
    assert found.log == pytest.approx(log, abs=1e-12)
    assert found.value == pytest.approx(np.exp(log))
    assert turned.log == -found.log
    assert f"{log:.3f} nats" in repr(found)
    assert "for the first" in repr(found)
    assert "for the second" in repr(turned)


def test_the_order_of_rows_does_not_matter():
    shuffled = bnb.CategoricalNB().fit(LEVELS[::-1], LABEL[::-1])
    assert bayes_factor(of_levels(), shuffled).log == 0


def test_a_large_factor_is_infinite_and_its_logarithm_is_not():
    X, weight = np.repeat(CODE[:, None], 4, axis=1), np.full(N, 100.0)
    first, second = (bnb.CategoricalNB(alpha=alpha).fit(X, LABEL, weight) for alpha in (1.0, 1e6))
    found = bayes_factor(first, second)
    assert found.value == np.inf
    assert np.isfinite(found.log)


def test_a_prior_from_the_data_and_fractional_weights_are_noted():
    weight = np.where(np.arange(N) == 0, 0.5, 1.0)
    gaussian, proper = (nb.fit(NUMBERS, LABEL, weight) for nb in (bnb.GaussianNB(), bnb.GaussianNB(prior=PROPER)))
    notes = " ".join(bayes_factor(proper, gaussian).notes)
    assert "The prior of the second model was derived from these data." in notes
    assert "the first given" not in notes
    assert "pseudo-evidence" in notes
    assert bayes_factor(proper, proper).notes == (
        "Weights of rows are fractional, so that the evidences are pseudo-evidences.",
    )


def categorical(rows=LEVELS, labels=LABEL, **options):
    return lambda: bnb.CategoricalNB(**options).fit(rows, labels)


def of_counts(nb, rows=COUNTS):
    return lambda: nb.fit(rows, LABEL)


def named(*names):
    return of_counts(bnb.GaussianNB(), pd.DataFrame(NUMBERS, columns=names))


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            categorical(),
            categorical(LEVELS[1:], LABEL[1:]),
            r"on the same rows. The statistics of their classes differ",
        ),
        (
            categorical(),
            categorical(LEVELS, np.roll(LABEL, 1)),
            "same rows. The statistics of their categorical columns differ",
        ),
        (categorical(), categorical(LEVELS[:, :1]), "the columns differ"),
        (categorical(), categorical(LEVELS, CODE), "the classes differ"),
        (
            categorical(),
            categorical(categories=[[0, 1, 2, 3], *[[0, 1, 2]] * 3]),
            "the levels differ",
        ),
        (of_counts(bnb.MultinomialNB()), of_counts(bnb.BernoulliNB(), COUNTS > 0), "0 \\(multinomial\\)"),
        (of_counts(bnb.MultinomialNB()), of_counts(bnb.PoissonNB()), "0 \\(poisson\\)"),
        (of_counts(bnb.GaussianNB()), of_counts(bnb.PoissonNB()), "differently encoded data are not comparable"),
        (
            of_counts(bnb.BernoulliNB(binarize=0.5)),
            of_counts(bnb.BernoulliNB(binarize=1.5)),
            "same rows. The statistics of their bernoulli columns differ",
        ),
        (named("a", "b", "c", "d"), named("b", "a", "c", "d"), "the columns differ between the models: .*a .gaussian"),
        (categorical(alpha=0.0), categorical(alpha=0.0), "both evidences are zero"),
    ],
)
def test_what_must_not_be_compared(first, second, message):
    refused(message, bayes_factor, first(), second())


def test_the_prior_inside_an_average_counts_too():
    averaged = bnb.FeatureAveragedNB(bnb.GaussianNB()).fit(NUMBERS, LABEL)
    assert "The prior of the first model was derived" in " ".join(bayes_factor(averaged, averaged).notes)
