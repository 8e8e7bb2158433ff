"""Permutation tests against SciPy's; notes on choices made with the same rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayesnb as bnb
from tests.estimators.networks import table

X, Y = table(40, 1)


def test_it_is_scipys_exact_permutation_test():
    rng = np.random.default_rng(0)
    x = rng.normal(size=6)
    y = x + 2.5 * rng.normal(size=6)

    def slope(y):
        return float((x - x.mean()) @ y / ((x - x.mean()) ** 2).sum())

    found = bnb.permutation_null(slope, y, permutations=999)
    exact = stats.permutation_test(
        (y,), slope, permutation_type="pairings", n_resamples=720, alternative="greater", vectorized=False
    )
    assert len(exact.null_distribution) == 720  # every order of six rows once
    assert found.observed == pytest.approx(exact.statistic, rel=1e-12)
    assert found.p_value == pytest.approx(exact.pvalue, abs=4 * np.sqrt(exact.pvalue * (1 - exact.pvalue) / 999))
    assert stats.ks_2samp(found.null, exact.null_distribution).pvalue > 1e-3


@pytest.mark.parametrize(
    "labels", [list("aabbc"), np.array(list("aabbc")), pd.Series(list("aabbc"), index=range(5, 10))]
)
def test_labels_keep_their_type_and_their_number(labels):
    seen = []
    found = bnb.permutation_null(lambda y: seen.append(y) or len(seen), labels, permutations=8, seed=3)
    assert all(type(y) is type(labels) and sorted(y) == sorted(labels) for y in seen)
    assert len({tuple(y) for y in seen}) > 2
    assert found.observed == 9  # the labels as they are, last
    assert list(seen[-1]) == list(labels)
    assert found.p_value == 1 / 9
    again: list = []
    bnb.permutation_null(lambda y: again.append(y) or 0.0, labels, permutations=8, seed=3)
    assert [list(y) for y in again] == [list(y) for y in seen]
    assert "8 permutations" in repr(found)


def test_what_a_number_of_permutations_is():
    with pytest.raises(ValueError, match=r"permutations=0 must be a positive integer"):
        bnb.permutation_null(len, Y, permutations=0)


@pytest.mark.slow("simulates many data sets or draws")
def test_labels_that_mean_nothing_are_like_their_permutations():
    """Slow as a simulation. p-values of a learned tree's elpd are uniform, and the tree's elpd alone looks like a find.

    Twelve tables: that all p-values are above .9 or below .1 has a probability of 1e-8 or less.
    """
    rng = np.random.default_rng(0)
    p = []
    for _ in range(12):
        noise, labels = rng.integers(0, 3, (30, 4)).astype(str), rng.permutation(np.repeat([0, 1], 15))

        def elpd(y, noise=noise):
            return bnb.loo(bnb.TAN(categories=[["0", "1", "2"]] * 4).fit(noise, y), noise, y).elpd

        p.append(bnb.permutation_null(elpd, labels, permutations=19, seed=1).p_value)
    assert stats.kstest(p, "uniform").pvalue > 1e-3


@pytest.mark.slow("a second view of what quick tests see")
def test_what_was_chosen_on_the_rows_is_said():
    naive = bnb.CategoricalNB().fit(X, Y)
    tan = bnb.TAN("evidence").fit(X, Y)
    told = bnb.NetworkNB(tan.parents_).fit(X, Y)
    assert bnb.bayes_factor(told, naive).notes == bnb.loo(told, X, Y).notes == ()
    assert bnb.bayes_factor(naive, tan).notes == (
        "The same rows were used to choose the tree of the second model, which favours it; see `permutation_null`.",
    )
    assert bnb.loo(tan, X, Y).notes == (
        "The same rows were used to choose the tree, so that these scores are optimistic; see `permutation_null`.",
    )
    assert "The same rows were used to choose the tree" in repr(bnb.loo(tan, X, Y))


@pytest.mark.slow("compiles kernels of its own")
def test_a_tuned_strength_is_said_and_saved_until_the_next_fit(tmp_path):
    naive = bnb.CategoricalNB().fit(X, Y)
    tuned = bnb.tune_alpha(naive, X, Y, by="evidence").estimator
    note = bnb.bayes_factor(tuned, naive).notes[0]
    assert note.startswith("The same rows were used to choose alpha of the first model")
    bnb.save(tuned, tmp_path / "tuned.safetensors")
    assert bnb.load(tmp_path / "tuned.safetensors").tuned_ == ("alpha",)
    assert bnb.bayes_factor(tuned.fit(X, Y), naive).notes == ()


@pytest.mark.parametrize("values", [[np.nan, 1, 2, 3], [1, np.nan, np.nan, np.nan]])
def test_a_score_that_is_not_defined_is_no_evidence(values):
    """The observed one comes last."""
    scores = iter([*values[1:], values[0]])
    assert bnb.permutation_null(lambda y: next(scores), [0, 1, 0], permutations=3).p_value == 1.0
