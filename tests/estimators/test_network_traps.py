"""Mistakes that would change results silently are refused or warned of."""

import warnings

import numpy as np
import pandas as pd
import pytest

import bayesnb as bnb

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, 60)
X = RNG.integers(0, 3, (60, 3))
FRAME = pd.DataFrame(X.astype(str), columns=list("abc"))


@pytest.mark.slow("other variants compile kernels of their own", but="TAN")
@pytest.mark.parametrize("nb", [bnb.TAN(), bnb.SPODE(), bnb.AODE()], ids=repr)
def test_numbers_alone_leave_nothing_to_depend_on(nb):
    numbers = FRAME.astype(float) + 0.5
    with pytest.warns(UserWarning, match=r"no column is categorical.*gaussian=None"):
        nb.fit(numbers, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nb.set_params(gaussian=None).fit(numbers, Y)
        bnb.NetworkNB().fit(numbers, Y)


def test_a_parent_that_is_mostly_missing_is_told():
    sparse = FRAME.assign(a=np.where(RNG.random(60) < 0.2, FRAME["b"], None))
    with pytest.warns(UserWarning, match=r"missing in most of the rows.*\{'[bc]': 'a'"):
        bnb.TAN().fit(sparse, Y)


def test_columns_that_were_never_seen_together_have_no_arc():
    apart = FRAME.assign(
        a=np.where(np.arange(60) < 30, FRAME["a"], None), b=np.where(np.arange(60) < 30, None, FRAME["b"])
    )
    arcs = {frozenset(arc) for arc in bnb.TAN(root="c").fit(apart, Y).parents_.items()}
    assert frozenset("ab") not in arcs
    assert bnb.SPODE().fit(FRAME.assign(a=None), Y).parents_["c"] == "b"


def test_queries_of_maximum_likelihood():
    nb = bnb.NetworkNB({"a": "b", "c": "a"}, alpha=0.0, class_alpha=0.0).fit(FRAME.assign(a=FRAME["b"]), Y)
    found = nb.query("c", {"b": "0"})
    joint = {}
    for label in np.unique(Y):
        rows = FRAME[label == Y]
        b = (rows["b"] == "0").sum()
        for value, n in rows[rows["b"] == "0"]["c"].value_counts().items():  # a is b
            joint[value] = joint.get(value, 0.0) + len(rows) / 60 * b / len(rows) * n / b
    expected = pd.Series(joint).sort_index() / sum(joint.values())
    np.testing.assert_allclose(found.sort_index(), expected, rtol=1e-12)


@pytest.mark.slow("other variants compile kernels of their own", but="SPODE")
@pytest.mark.parametrize("nb", [bnb.SPODE(gaussian=None), bnb.AODE(gaussian=None)], ids=repr)
def test_levels_that_come_later_may_not_fill_the_memory(nb, monkeypatch):
    monkeypatch.setattr("bayesnb._util.arrays.MOST_COUNTS", 20_000)
    nb.partial_fit(np.arange(100).reshape(-1, 2), np.arange(50) % 2, classes=[0, 1])
    before = nb.statistics_
    with pytest.raises(ValueError, match=r"combinations of levels in 2 classes would take"):
        nb.partial_fit(np.arange(100, 200).reshape(-1, 2), np.arange(50) % 2)
    assert nb.statistics_ is before


@pytest.mark.slow("compiles kernels of its own")
def test_a_reserved_level_is_told_with_its_odds():
    """Given the value of the parent that makes most of it."""
    nb = bnb.NetworkNB({"b": "a"}, handle_unknown="level").fit(FRAME, Y)
    table = np.exp(bnb.parameter_table(nb).query("feature == 'b'")["mean"].map(np.log))
    level = bnb.parameter_table(nb).query("feature == 'b'")["level"].map(str)
    own = table[level.str.startswith("<unknown>")].to_numpy().reshape(2, -1)
    odds = (own.max(axis=0) / own.min(axis=0)).max()
    with pytest.warns(UserWarning, match=f"by up to {odds:.3g}\\."):
        nb.predict(FRAME.assign(b="new"))


def test_what_has_no_readings_is_no_first_argument():
    nb = bnb.NaiveBayesMixture()
    for call in (lambda: bnb.compare_estimates(nb, X, Y, X, Y), lambda: bnb.learning_curve(nb, X, Y, [10], repeats=2)):
        with pytest.raises(NotImplementedError, match="pass a NaiveBayesMixture in baselines="):
            call()
