"""Random halves of units of rows: groups, copies of a row, and rows that are alone."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate

import bayesnb as bnb
from bayesnb.analysis.conformal import GUARANTEE, random_folds
from bayesnb.weights.cross_fitting import choose_simplest
from bayesnb.weights.halves import class_of_units, count_events, have_several_units, mean_of_units, random_halves
from tests.raises import refused
from tests.tables import CLASSES, CODE, LABEL, LEVELS, NUMBERS, N

UNIT = np.arange(N) // 2


def pairs_of_a_class(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels in the order of their classes, so that `UNIT` are pairs of rows of one class."""
    order = np.argsort(CODE, kind="stable")
    return X[order], LABEL[order]


labelled_units = st.integers(2, 30).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 3), min_size=n, max_size=n), st.permutations(range(n)), st.integers(1, n)
    )
)


@given(labelled_units, st.integers(0, 99))
def test_halves_and_folds_keep_units_whole(drawn, seed):
    label, order, n_units = np.array(drawn[0]), np.array(drawn[1]), drawn[2]
    unit = order % n_units
    halves, folds = random_halves(label, 4, seed, unit), random_folds(label, seed, unit)
    for u in range(n_units):
        assert all(len(set(half[unit == u])) == 1 for half in halves)
        assert len(set(folds[unit == u])) == 1
    rarest = class_of_units(label, unit)
    frequency = np.bincount(label)
    for u, c in enumerate(rarest):
        own = set(label[unit == u])
        assert c in own
        assert frequency[c] == min(frequency[d] for d in own)
    for half in halves:
        of_unit = np.array([half[unit == u][0] for u in range(n_units)])
        assert abs(2 * of_unit.sum() - n_units) <= 1
        assert all(abs(2 * of_unit[rarest == c].sum() - (rarest == c).sum()) <= 1 for c in set(rarest))
    several = [len(set(unit[label == c])) > 1 for c in range(5)]
    assert have_several_units(label, unit, 5).tolist() == several


@given(st.permutations(range(12)), st.integers(0, 99))
def test_a_row_alone_is_a_unit(order, seed):
    label = np.array(order) % 3
    np.testing.assert_array_equal(random_halves(label, 3, seed, np.arange(12)), random_halves(label, 3, seed))
    np.testing.assert_array_equal(random_folds(label, seed, np.arange(12)), random_folds(label, seed))


def test_events_are_units_outside_the_largest_class():
    label, unit = np.array([0, 0, 0, 1, 1, 2, 2]), np.array([0, 1, 2, 2, 3, 4, 4])
    assert count_events(label, np.ones(7), unit) == 3.0
    assert count_events(label, np.array([9, 9, 9, 1, 0.25, 5, 5]), unit) == 2.25


def test_variances_of_means_are_those_of_independent_units():
    """Reference: the mean of resampled units, in the limit of many: Σ_u (Σ w (x - m))² / (Σ w)²."""
    rng = np.random.default_rng(0)
    unit = rng.integers(0, 40, 300)
    values = rng.normal(size=(40, 2))[unit] + 0.1 * rng.normal(size=(300, 2))
    weight = rng.integers(1, 4, 300).astype(float)
    mean, variance = mean_of_units(values, weight, unit)
    np.testing.assert_allclose(mean, np.average(values, axis=0, weights=weight))
    total = np.array([(weight[unit == u] @ (values[unit == u] - mean)) for u in range(40)])
    times = rng.multinomial(40, np.full(40, 1 / 40), 20_000)
    size = np.bincount(unit, weight)
    np.testing.assert_allclose(variance, (times @ total / (times @ size)[:, None]).var(axis=0), rtol=0.15)


def test_copies_are_no_evidence_for_the_larger_model():
    """The mean loss falls by one standard error of twenty rows, which is twenty of four hundred."""
    rng = np.random.default_rng(0)
    losses = rng.normal(size=20)
    gain = rng.normal(size=20)
    gain += 0.8 * np.std(gain) / np.sqrt(20) - gain.mean()
    one, other = losses, losses - gain
    rows = np.repeat(np.arange(20), 20)
    assert choose_simplest([one, other], np.ones(20), np.arange(20)) == 0
    assert choose_simplest([one, other], np.full(20, 20.0), np.arange(20)) == 0
    assert choose_simplest([one[rows], other[rows]], np.ones(400), rows) == 0
    assert choose_simplest([one[rows], other[rows]], np.ones(400), np.arange(400)) == 1


# -- classifiers -----------------------------------------------------------------------------------


def test_groups_of_one_row_are_as_no_groups():
    nb, plain = bnb.WeightedNB(bnb.GaussianNB()), bnb.WeightedNB(bnb.GaussianNB()).fit(NUMBERS, LABEL)
    nb.fit(NUMBERS, LABEL, groups=[f"row {i}" for i in range(N)])
    assert nb.expected_log_loss_ == plain.expected_log_loss_
    np.testing.assert_array_equal(nb.predict_proba(NUMBERS), plain.predict_proba(NUMBERS))


def test_names_of_groups_do_not_matter_and_counts_do_not_depend_on_groups():
    first = bnb.WeightedNB(bnb.GaussianNB()).fit(NUMBERS, LABEL, groups=UNIT)
    second = bnb.WeightedNB(bnb.GaussianNB()).fit(NUMBERS, LABEL, groups=[f"{-u}" for u in UNIT])
    plain = bnb.WeightedNB(bnb.GaussianNB()).fit(NUMBERS, LABEL)
    assert first.expected_log_loss_ == second.expected_log_loss_ != plain.expected_log_loss_
    np.testing.assert_array_equal(first.estimator_.predict_proba(NUMBERS), plain.estimator_.predict_proba(NUMBERS))


def test_rows_of_weight_zero_are_in_no_group():
    weight = 1.0 * (np.arange(N) % 3 > 0)
    kept = weight > 0
    nb = bnb.WeightedNB(bnb.CategoricalNB())
    found = nb.fit(LEVELS, LABEL, weight, UNIT).expected_log_loss_
    assert found == pytest.approx(nb.fit(LEVELS[kept], LABEL[kept], groups=UNIT[kept]).expected_log_loss_, rel=1e-12)


def test_weigh_and_refit_take_groups():
    nb = bnb.WeightedNB(bnb.CategoricalNB()).fit(LEVELS, LABEL, groups=UNIT)
    again = bnb.WeightedNB(bnb.CategoricalNB()).partial_fit(LEVELS, LABEL, CLASSES).weigh(LEVELS, LABEL, groups=UNIT)
    plain = bnb.WeightedNB(bnb.CategoricalNB()).fit(LEVELS, LABEL)
    assert again.expected_log_loss_ == pytest.approx(nb.expected_log_loss_, rel=1e-12)
    assert plain.refit(LEVELS, LABEL, groups=UNIT).expected_log_loss_ == pytest.approx(nb.expected_log_loss_, rel=1e-12)
    for call in (nb.weigh, nb.refit, bnb.MixedNB().fit):
        refused(r"groups has shape \(2,\)", call, LEVELS, LABEL, groups=[1, 2])
    refused(r"groups has shape \(2,\)", bnb.run_nuts, nb, X=LEVELS, y=LABEL, groups=[1, 2])


def test_a_class_of_one_group_is_left_out():
    y = np.where(CODE == 2, "ash", LABEL)
    y[4:6] = "oak"
    with pytest.warns(UserWarning, match=r"the classes \['oak'\] have .* rows of one group"):
        nb = bnb.WeightedNB(bnb.CategoricalNB()).fit(LEVELS, y, groups=UNIT)
    assert nb.weights_.n_rows == N - 2
    assert np.isfinite(nb.predict_log_proba(LEVELS)).all()


def test_few_groups_are_too_few_for_weights():
    said = "there are only 8, without classes of one row. A row counts at most once, whatever its weight, and"
    with pytest.warns(UserWarning, match=said):
        nb = bnb.WeightedNB(bnb.CategoricalNB()).fit(LEVELS, LABEL, groups=np.arange(N) % 8)
    assert nb.weights_ is None
    assert set(bnb.MixedNB().fit(NUMBERS**3, LABEL, groups=np.arange(N) % 8).kinds_.values()) == {"gaussian"}


def test_groups_are_routed_to_fits_of_folds():
    """Reference: fits to the folds in a loop."""
    X, y = pairs_of_a_class(NUMBERS)
    cv = GroupKFold(2)
    with config_context(enable_metadata_routing=True):
        nb = bnb.WeightedNB(bnb.GaussianNB()).set_fit_request(groups=True)
        found = cross_validate(nb, X, y, params={"groups": UNIT}, cv=cv, scoring="neg_log_loss", return_estimator=True)
        search = GridSearchCV(nb, {"seed": [0]}, cv=cv, scoring="neg_log_loss").fit(X, y, groups=UNIT)
    expected = [
        bnb.WeightedNB(bnb.GaussianNB()).fit(X[train], y[train], groups=UNIT[train]).expected_log_loss_
        for train, _ in cv.split(X, y, UNIT)
    ]
    assert [each.expected_log_loss_ for each in found["estimator"]] == expected
    best = bnb.WeightedNB(bnb.GaussianNB()).fit(X, y, groups=UNIT)
    assert search.best_estimator_.expected_log_loss_ == best.expected_log_loss_


# -- folds and leave-one-out -----------------------------------------------------------------------


def copied() -> tuple[np.ndarray, np.ndarray]:
    rows = np.append(np.arange(N), np.arange(12))
    return NUMBERS[rows], LABEL[rows]


def test_leave_one_out_and_full_conformal_sets_name_copies():
    X, y = copied()
    nb = bnb.GaussianNB().fit(X, y)
    (said,) = bnb.loo(nb, X, y).notes
    assert said.startswith("12 of 72 rows are equal to an earlier row in every cell, and remain when a row is left out")
    (said,) = bnb.conformal(nb, X, y).notes
    assert said.startswith("Coverage is approximate, because 12 of 72 rows are equal to an earlier row")
    assert not bnb.loo(nb, X[:N], y[:N]).notes
    refused("groups are kept together by folds, which a GaussianNB", bnb.conformal, nb, X, y, groups=np.arange(72))


@pytest.mark.slow("fits ten folds of weights again")
def test_folds_of_weighted_models_keep_copies_together():
    """Reference: groups of the copies. Without them, folds are those of the rows."""
    X, y = copied()
    with warnings.catch_warnings(action="ignore"):
        nb = bnb.WeightedNB(bnb.GaussianNB()).fit(X, y)
    unit = np.append(np.arange(N), np.arange(12))
    found, by_group = bnb.conformal(nb, X, y), bnb.conformal(nb, X, y, groups=unit)
    by_row = bnb.conformal(nb, X, y, groups=np.arange(72))
    assert found.notes == (GUARANTEE,)
    np.testing.assert_array_equal(found.p_values(NUMBERS), by_group.p_values(NUMBERS))
    assert (found.p_values(NUMBERS) != by_row.p_values(NUMBERS)).any()
