"""Numeric columns in structures, and weights of margins and dependences, against their parts."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import bayesnb as bnb
from bayesnb.estimators import classifier_state
from bayesnb.estimators.classifier_state import Parts
from bayesnb.weights.cross_fitting import cross_fit

RNG = np.random.default_rng(0)
N = 80
Y = np.array(["in", "out"])[np.arange(N) % 2]
SIZE = RNG.normal(size=N) + (Y == "in")
FRAME = pd.DataFrame(
    {
        "size": SIZE,
        "weight": SIZE + 0.3 * RNG.normal(size=N),
        "count": RNG.poisson(3 + 2 * (Y == "in")),
        "colour": np.where(RNG.random(N) < 0.7, np.where(SIZE > 0, "red", "green"), "blue"),
    }
)
FRAME.loc[3, "colour"], FRAME.loc[5, "size"] = None, np.nan
KDB = bnb.KDB(2, None, gaussian="dtype")


@pytest.fixture(scope="module")
def weighted():
    return bnb.WeightedNB(KDB, "feature").fit(FRAME, Y)


def test_without_parents_it_is_mixed_naive_bayes():
    numbers = FRAME[["size", "weight", "count"]]
    plain, structure = bnb.MixedNB().fit(numbers, Y), bnb.KDB(0, None, gaussian="dtype").fit(numbers, Y)
    np.testing.assert_allclose(structure.predict_log_proba(numbers), plain.predict_log_proba(numbers), rtol=1e-10)


def test_each_column_is_a_margin_and_each_with_parents_a_dependence(weighted):
    parents = weighted.estimator_.parents_
    dependences = [f"{name} | parents" for name in FRAME.columns if parents[name] is not None]
    assert weighted.term_names_ == (*FRAME.columns, *dependences)
    assert len(dependences) == 3
    terms = bnb.terms(weighted, FRAME)
    np.testing.assert_allclose(terms.joint(), weighted.predict_joint_log_proba(FRAME), rtol=1e-10)
    unweighted = bnb.WeightedNB(KDB, "feature").fit(FRAME, Y)
    margins = dict(zip(terms.names, np.moveaxis(terms.values / weighted.weight_, 2, 0), strict=True))
    naive = bnb.terms(bnb.MixedNB().fit(FRAME, Y), FRAME)
    for name, values in zip(naive.names, np.moveaxis(naive.values, 2, 0), strict=True):
        np.testing.assert_allclose(margins[name], values, atol=1e-10)
    assert unweighted.weights_.dependence.sum() == 3


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_weights_of_terms_are_weights_of_what_they_are_sums_of(weighted, seed):
    """Σ_t w_t ℓ_t = Σ_r u_r ℓ_r."""
    terms, rng = weighted.encoding_.term_map, np.random.default_rng(seed)
    weight, values = rng.normal(size=len(terms.names)), rng.normal(size=(3, 2, len(terms.plus)))
    np.testing.assert_allclose(terms.combine(values) @ weight, values @ terms.spread(weight), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(terms.gather(terms.spread(weight)), weight, rtol=1e-12)


def test_cells_do_not_know_the_labels():
    """At most six, between quantiles."""
    edges = KDB.fit(FRAME, Y).edges_
    other = bnb.KDB(2, None, gaussian="dtype").fit(FRAME, np.random.default_rng(1).permutation(Y)).edges_
    assert list(edges) == ["size", "weight", "count"]
    for name, own in edges.items():
        np.testing.assert_array_equal(own, other[name])
        assert len(own) == 5
    counts = np.histogram(FRAME["weight"], [-np.inf, *edges["weight"], np.inf])[0]
    assert counts.max() - counts.min() <= 2


def test_files_and_further_rows(weighted, tmp_path):
    bnb.save(weighted, tmp_path / "model")
    loaded = bnb.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(FRAME), weighted.predict_proba(FRAME))
    loaded.partial_fit(FRAME[:10], Y[:10]).forget(FRAME[:10], Y[:10])
    np.testing.assert_allclose(loaded.predict_proba(FRAME), weighted.predict_proba(FRAME), rtol=1e-9)


def test_the_estimator_of_levels_has_the_evidence_of_its_own():
    levels = FRAME[["colour"]].assign(sign=np.where(SIZE > 0, "+", "-"))
    weighted = bnb.WeightedNB(bnb.KDB(1, None), "feature").fit(levels, Y)
    assert len(weighted.term_names_) == 3
    assert weighted.estimator_.log_evidence_ == bnb.KDB(1, None).fit(levels, Y).log_evidence_


@pytest.mark.slow("compiles kernels of its own")
def test_by_default_it_is_for_any_table():
    table = bnb.WeightedNB().fit(FRAME, Y)
    assert isinstance(table.estimator_, bnb.KDB)
    assert set(table.estimator_.edges_) == {"size", "weight", "count"}
    counts = sp.csr_array(RNG.poisson(1 + 2 * (Y == "in")[:, None] * [1, 0, 0]))
    assert isinstance(bnb.WeightedNB().fit(counts, Y).estimator_, bnb.MultinomialNB)


@pytest.mark.slow("fits six data sets, each with halves")
def test_noise_has_no_parents_and_no_loss_below_chance():
    """100 rows, 40 columns of eight levels: what is stated is what is true, on fresh rows."""
    stated, true, parents = [], [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, fresh = rng.integers(0, 8, (2100, 40)).astype(str).astype(object), rng.integers(0, 2, 2100)
        nb = bnb.WeightedNB().fit(X[:100], fresh[:100])
        stated.append(nb.expected_log_loss_)
        proba = nb.predict_proba(X[100:])
        true.append(-np.log(proba[np.arange(2000), fresh[100:]]).mean())
        parents.append(nb.estimator_.k_)
    assert sum(k == 0 for k in parents) >= 5
    error = np.std(np.subtract(stated, true), ddof=1) / np.sqrt(6)
    assert np.mean(stated) > np.mean(true) - 2 * error
    assert np.mean(true) < 0.72


def test_halves_that_chose_the_densities_give_the_terms_of_fits_to_halves():
    """Numbers are normal and binned, one cell is missing, and weights are not all 1."""
    frame = FRAME.assign(humps=RNG.choice([-2, 2], N) + 2 * (Y == "in") + 0.1 * RNG.normal(size=N))
    weight = RNG.choice([0.5, 1.0, 2.0], N)
    base = bnb.WeightedNB()._unfitted_model(frame)
    simplest = base._simplest()
    every = classifier_state.read_batch(simplest, frame, Y, weight)
    batch = simplest._fit(every)
    assert {columns.kind for columns in simplest.encoding_.blocks} == {"categorical", "gaussian", "binned"}
    assert batch.number_terms is not None
    known, fitted = (
        cross_fit(Parts.from_rows(base, simplest, every, encoded), "auto", 10_000, 0) for encoded in (batch, None)
    )
    assert len(known) == len(fitted) > 1
    for one, other in zip(known, fitted, strict=True):
        assert one.columns.names == other.columns.names
        np.testing.assert_allclose(one.terms.values, other.terms.values, rtol=1e-9, atol=1e-10)
