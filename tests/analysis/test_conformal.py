"""Full conformal sets against refits with every candidate and without each row, rational arithmetic, and coverage."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from sklearn.base import clone

import bayesnb as bnb
from bayesnb.analysis import conformal
from bayesnb.families import BetaNegativeBinomial
from tests.estimators.networks import LEVELS, brute_of, table
from tests.raises import refused
from tests.strategies import CLASSES, KINDS, problems, take, thorough, with_prior_of
from tests.tables import ASKED, CODE, COUNTS, LABEL, NUMBERS, N, in_shares, of_levels, of_numbers
from tests.tables import LEVELS as TABLE

TIE = 1e-9


def log_odds_against(joint: np.ndarray) -> np.ndarray:
    """(C,) log [(1 - P(class))/P(class)]; what is undefined has the lowest score."""
    others = [logsumexp(np.delete(joint, c)) for c in range(len(joint))]
    return np.nan_to_num(np.array(others) - joint, nan=np.inf, posinf=np.inf, neginf=-np.inf)


def ranks(joint_of: Any, y: np.ndarray, weight: np.ndarray, by_class: bool = False) -> np.ndarray:
    """(2, C) number of rows that fit at most as well as the last one, and worse, by N refits for each label.

    `joint_of(label, weight, i)` is log p(class, row i) of a fit to all rows, the last as `label`, with these weights. A
    row of weight w is w rows, of which one is left out.
    """
    bound, found = log_odds_against(joint_of(CLASSES[0], np.append(weight, 0.0), len(y))), np.zeros((2, len(CLASSES)))
    for c, label in enumerate(CLASSES):
        for i in range(len(y)):
            if not by_class or y[i] == label:
                left = np.append(weight - (np.arange(len(y)) == i), 1.0)
                odds = log_odds_against(joint_of(label, left, i))[CLASSES.index(y[i])]
                equal = odds == bound[c] or np.isclose(odds, bound[c], rtol=TIE, atol=TIE)
                found[:, c] += weight[i] * np.array([odds > bound[c] or equal, odds > bound[c] and not equal])
    return found


def by_refits(blank: Any, X: Any, y: np.ndarray, weight: np.ndarray, new: Any, by_class: bool = False) -> np.ndarray:
    """`ranks` of the one row `new`, by fits of an estimator that knows all levels."""
    both = stacked(X, new)

    def joint_of(label: str, weight: np.ndarray, i: int) -> np.ndarray:
        some, labels = np.flatnonzero(weight), np.append(y, label)
        nb = fitted(blank, take(both, some), labels[some], weight[some])
        return nb.predict_joint_log_proba(take(both, np.array([i])))[0]

    return ranks(joint_of, y, weight, by_class)


def fitted(blank: Any, X: Any, y: np.ndarray, weight: np.ndarray) -> Any:
    nb = clone(blank).partial_fit(X, y, CLASSES, weight)
    return nb.weigh(X, y, weight) if hasattr(nb, "weigh") else nb  # with the weights that it was given


def stacked(X: Any, row: Any) -> Any:
    if hasattr(X, "iloc"):
        return pd.concat([X, row], ignore_index=True)
    return sp.csr_array(sp.vstack([X, row])) if sp.issparse(X) else np.concatenate([X, row])


def assert_p_values(found: np.ndarray, nb: Any, rows: tuple[Any, ...], new: Any, by_class: bool = False) -> None:
    """`found` are ranks; `rows` X, y and weights."""
    at_most, less = found
    n = np.array([rows[2][rows[1] == label].sum() for label in CLASSES]) if by_class else rows[2].sum()
    p = bnb.conformal(nb, *rows, by_class=by_class).p_values(new)
    np.testing.assert_allclose(p[0], (at_most + 1) / (n + 1), rtol=0, atol=1e-12)
    share = np.random.default_rng(7).random()
    p = bnb.conformal(nb, *rows, by_class=by_class, ties="random", seed=7).p_values(new)
    np.testing.assert_allclose(p[0], (less + share * (at_most - less + 1)) / (n + 1), rtol=0, atol=1e-12)


def knowing_all(problem: Any) -> Any:
    """The estimator of a problem, with the levels of all its rows."""
    return with_prior_of(problem.nb, problem.fit()).set_params(prior=problem.nb.prior)


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(data=st.data())
def test_p_values_are_those_of_refits(kind, data):
    problem = data.draw(problems(kind, min_rows=3, max_rows=6, max_weight=2))
    blank = knowing_all(problem).set_params(estimate=data.draw(st.sampled_from(["predictive", "mean"])))
    counted, new = problem.take(range(len(problem) - 1)), problem.take([len(problem) - 1]).X
    by_class, rows = data.draw(st.booleans()), (counted.X, counted.y, counted.weight)
    assert_p_values(by_refits(blank, *rows, new, by_class), counted.fit(blank), rows, new, by_class)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("dispersion", ["evidence", 1.5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_counts_under_a_given_prior(n_classes, dispersion):
    """Classes share nothing, and as many of them as features hide no axis that was taken for another."""
    rng = np.random.default_rng(0)
    X, y = rng.poisson(2.0, (9, 3)).astype(float), np.array(CLASSES)[np.arange(9) % n_classes]
    prior = BetaNegativeBinomial(np.full((3, 3), 0.7), np.full((3, 3), 0.4))
    blank, rows = bnb.NegativeBinomialNB(prior=prior, dispersion=dispersion), (X[:8], y[:8], np.ones(8))
    assert_p_values(by_refits(blank, *rows, X[8:]), fitted(blank, *rows), rows, X[8:])


NETWORKS = {"TAN": bnb.TAN(), "SPODE": bnb.SPODE(), "NetworkNB": bnb.NetworkNB({2: (0, 1), 3: 1})}


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.filterwarnings(
    "ignore:.*no row of the class has values of both the column and all of its parents:UserWarning"
)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_given_the_structure_they_are_those_of_its_joint_table(name, missing):
    """Refits in dictionaries of counts; missing cells are summed out by brute force."""
    sizes, n = (2, 3, 2, 3), 11
    X, y = table(n + 1, 3, sizes, n_classes=3)
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.2] = None
    nb = clone(NETWORKS[name]).set_params(categories=[list(LEVELS[:size]) for size in sizes])
    weight = np.ones(n)
    brute = brute_of(nb.fit(X[:n], y[:n]))

    def joint_of(label: str, weight: np.ndarray, i: int) -> np.ndarray:
        return brute.log_joint(brute.count(X, np.append(y[:n], label), weight), X[i])

    assert_p_values(ranks(joint_of, y[:n], weight), nb, (X[:n], y[:n], weight), X[n:])


def changing_all() -> dict[str, Any]:
    """Classifiers all of whose classes a row changes, averages, and weighted terms; of levels and of numbers."""
    levels = bnb.CategoricalNB(alpha=0.5, categories=[list(LEVELS)] * 3)
    X, y = table(30, 1, (3, 3, 3))
    of_levels, of_average = (
        bnb.WeightedNB(nb).fit(X, y).weights_ for nb in (levels, bnb.AODE(categories=[list(LEVELS)] * 3))
    )
    return {
        "FeatureAveragedNB": bnb.FeatureAveragedNB(levels),
        "FeatureAveragedNB-gaussian": bnb.FeatureAveragedNB(bnb.GaussianNB()),
        "AODE": bnb.AODE(categories=[list(LEVELS)] * 3),
        "WeightedNB": bnb.WeightedNB(levels, of_levels),
        "WeightedNB-AODE": bnb.WeightedNB(bnb.AODE(categories=[list(LEVELS)] * 3), of_average),
    }


CHANGING_ALL = ("FeatureAveragedNB", "FeatureAveragedNB-gaussian", "AODE", "WeightedNB", "WeightedNB-AODE")


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("name", CHANGING_ALL)
def test_where_a_row_changes_all_classes(name):
    X, y = table(9, 2, (3, 3, 3))
    if "gaussian" in name:
        X = np.random.default_rng(0).normal(size=X.shape) + (y == CLASSES[1])[:, None]
    blank, weight = changing_all()[name], np.array([1.0, 2.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0])
    nb, rows = fitted(blank, X[:8], y[:8], weight), (X[:8], y[:8], weight)
    for by_class in (False, True):
        assert_p_values(by_refits(blank, *rows, X[8:], by_class), nb, rows, X[8:], by_class)


@pytest.mark.slow("fits ten folds of weights again", but="first")
@pytest.mark.parametrize("by_class", [False, True])
def test_of_weighted_models_each_fold_is_ranked_by_a_fit_without_it(by_class):
    """Folds that a loop fits again, on their rows alone; how many rows of its fold a candidate fits no better than."""
    nb = bnb.WeightedNB(bnb.CategoricalNB(categories=[[0.0, 1.0, 2.0]] * 4)).fit(TABLE, LABEL)
    found = bnb.conformal(nb, TABLE, LABEL, by_class=by_class, seed=5)
    folds = conformal.random_folds(CODE, seed=5)
    assert np.bincount(folds).tolist() == [6] * 10
    assert all(len(set(folds[c == CODE])) == 10 for c in range(3))
    at_most = np.zeros((len(TABLE[ASKED]), 3))
    for k in range(10):
        again = clone(nb).fit(TABLE[folds != k], LABEL[folds != k])
        rows, asked = again.predict_log_proba(TABLE[folds == k]), again.predict_log_proba(TABLE[ASKED])
        for joint, own in zip(rows, CODE[folds == k], strict=True):
            for c in [own] if by_class else range(3):
                at_most[:, c] += joint[own] <= asked[:, c] + TIE
    n = 20 if by_class else N
    np.testing.assert_allclose(found.p_values(TABLE[ASKED]), (at_most + 1) / (n + 1), rtol=0, atol=1e-12)
    assert found.notes == (conformal.GUARANTEE,)


def test_folds_that_lack_a_level_know_it_where_hyperparameters_are_about_it():
    X = TABLE.copy()
    X[7, 0] = 9.0
    alphas = [np.array([1.0, 2.0, 0.5, 1.0]), *[np.array([1.0, 2.0, 0.5])] * 3]
    nb = bnb.WeightedNB(bnb.CategoricalNB(alpha=alphas, handle_unknown="error")).fit(X, LABEL)
    assert np.isfinite(bnb.conformal(nb, X, LABEL).p_values(X[ASKED])).all()


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("kind", thorough(["categorical", "gaussian"], ["categorical"]))
@settings(max_examples=3)
@given(data=st.data())
def test_over_a_bag_of_rows_they_are_uniform(kind, data):
    """With each row in turn as the new one, p-values with random ties are exactly uniform."""
    problem = data.draw(problems(kind, min_rows=5, max_rows=5, max_weight=1))
    blank, n = knowing_all(problem), len(problem)
    share, ends = np.random.default_rng(0).random(), []
    for j in range(n):
        others, new = problem.take(np.delete(np.arange(n), j)), problem.take([j])
        nb, own = others.fit(blank), CLASSES.index(new.y[0])
        upper, drawn = (
            bnb.conformal(nb, others.X, others.y, ties=ties).p_values(new.X)[0, own]
            for ties in ("conservative", "random")
        )
        ends.append(((drawn - share * upper) / (1 - share), upper))
    t = np.linspace(0, 1, 61)
    cdf = np.mean([np.clip((t - lower) / (upper - lower), 0, 1) for lower, upper in ends], axis=0)
    np.testing.assert_allclose(cdf, t, rtol=0, atol=1e-9)


# -- what changes nothing ------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize(("blank", "X"), [(bnb.CategoricalNB(), TABLE), (bnb.GaussianNB(), NUMBERS)])
def test_order_names_and_company_change_nothing(blank, X):
    """Rows of D, classes and columns in another order; candidates one by one, and in blocks."""
    new = np.vstack([X, X[::-1]])[:70]
    predictor = bnb.conformal(clone(blank).fit(X, LABEL), X, LABEL)
    expected = predictor.p_values(new)
    order = np.random.default_rng(1).permutation(N)
    name, columns = np.array(["c", "a", "b"]), [2, 0, 1, 3]
    moved = X[order][:, columns], name[CODE[order]]
    found = bnb.conformal(clone(blank).fit(*moved), *moved).p_values(new[:, columns])
    np.testing.assert_allclose(found, expected[:, np.argsort(name)], rtol=0, atol=1e-12)
    for i in (0, 69):
        np.testing.assert_allclose(predictor.p_values(new[i : i + 1]), expected[i : i + 1], rtol=0, atol=1e-12)


@pytest.mark.slow("other variants compile kernels of their own", but="CategoricalNB")
@pytest.mark.parametrize("name", ["CategoricalNB", "AODE"])
def test_a_later_fit_changes_nothing(name):
    nb = getattr(bnb, name)().fit(TABLE, LABEL)
    predictor = bnb.conformal(nb, TABLE, LABEL)
    before = predictor.p_values(TABLE[ASKED])
    nb.fit(TABLE, LABEL[::-1])
    np.testing.assert_array_equal(predictor.p_values(TABLE[ASKED]), before)


# -- sets ----------------------------------------------------------------------------------------------


@cache
def predictor() -> Any:
    return bnb.conformal(of_numbers(), NUMBERS, LABEL)


def test_sets_hold_the_labels_with_large_p_values():
    y = CODE[ASKED]
    found = predictor().predict_set(NUMBERS[ASKED], coverage=0.75)
    np.testing.assert_array_equal(found.members, found.p_values > 0.25)
    assert [list(own) for own in found.labels] == [np.array(CLASSES)[own].tolist() for own in found.members]
    assert [found.n_empty, found.n_single, found.n_several] == np.histogram(found.size, [0, 1, 2, 4])[0].tolist()
    np.testing.assert_array_equal(found.covered(LABEL[ASKED]), found.members[np.arange(len(y)), y])
    assert not found.covered(["yew"] * len(y)).any()
    wider = found.at(0.99)
    assert (wider.members >= found.members).all()
    # Up to its confidence a row has one label at most, and none below 1 - credibility.
    for i, own in enumerate(found.p_values):
        assert (own > 1 - found.confidence[i] + 1e-12).sum() <= 1
        assert not (own > found.credibility[i]).any()
    frame = found.to_frame()
    assert list(frame) == ["labels", "size", "credibility", "confidence"]
    assert frame["labels"].map(len).tolist() == found.size.tolist()
    assert "16 rows, coverage 0.75" in repr(found)


@pytest.mark.slow("compiles kernels of its own")
def test_few_rows_leave_out_no_label():
    """With N < 9 rows no p-value is below 1/10."""
    for n, p in ((8, 0.0), (9, 0.15)):
        X, y = NUMBERS[:n], LABEL[:n]
        found = bnb.conformal(bnb.GaussianNB().fit(X, y), X, y).predict_set([[50.0, -50, 50, 0]])
        np.testing.assert_array_equal(found.members, found.p_values > p)


@pytest.mark.slow("compiles kernels of its own")
def test_what_was_chosen_on_the_rows_is_said():
    assert bnb.conformal(of_levels(), TABLE, LABEL).notes == ()
    tree = bnb.conformal(bnb.TAN(gaussian=None).fit(TABLE, LABEL), TABLE, LABEL)
    assert "approximate" in repr(tree)
    assert "tree" in repr(tree.predict_set(TABLE[:2]))


def test_refusals():
    nb, rows = of_levels(), (TABLE, LABEL)
    for coverage in (0, 1, 90, -0.1, "0.9", np.nan, None, True):
        said = r"coverage=.* must be a number between 0 and 1, such as 0.9"
        refused(said, predictor().predict_set, NUMBERS, coverage)
    refused("ties='never' is unknown; use 'conservative' or 'random'", bnb.conformal, nb, *rows, ties="never")
    refused("seed=-1", bnb.conformal, nb, *rows, ties="random", seed=-1)
    said = "conformal: X, y and sample_weight must be rows that nb was"
    refused(said, bnb.conformal, nb, TABLE, LABEL[::-1])
    message = "estimate='map' must be 'predictive' or 'mean': leave-one-out averages over the posterior"
    refused(message, bnb.conformal, nb, *rows, estimate="map")
    weight = np.full(N, 1.5)
    said = r"sample_weight of row 0 is 1\.5, .*Pass whole weights"
    refused(said, bnb.conformal, bnb.CategoricalNB().fit(*rows, weight), *rows, weight)
    refused("X has 2 features", predictor().p_values, NUMBERS[:, :2])
    refused("conformal: .*counted by EM", bnb.conformal, in_shares(), COUNTS, LABEL, error=NotImplementedError)
    refused("X has 2 rows, y has 1 labels", predictor().predict_set(NUMBERS[:2]).covered, LABEL[:1])


# -- coverage ------------------------------------------------------------------------------------------

SETS, ROWS = 2_000, 60


@cache
def simulated() -> tuple[np.ndarray, ...]:
    """Prediction sets of one new row in each of 2,000 data sets of a misspecified model.

    Two witnesses, of whom one is heard five times and the other three times. p-values of the true label with ties
    conservative, random, and by class; whether the model's own set of 90% has the label; the label.
    """
    rng = np.random.default_rng(0)
    categories, found = [[0, 1]] * 8, []
    for i in range(SETS):
        y = np.append(rng.permutation(np.arange(ROWS) % 2), rng.integers(0, 2))[rng.permutation(ROWS + 1)]
        first, second = (np.where(rng.random(ROWS + 1) < right, y, 1 - y) for right in (0.75, 0.65))
        X = np.column_stack([first] * 5 + [second] * 3)
        nb = bnb.CategoricalNB(categories=categories).partial_fit(X[:-1], y[:-1], [0, 1])
        own = [
            bnb.conformal(nb, X[:-1], y[:-1], seed=i, **options).p_values(X[-1:])[0, y[-1]]
            for options in ({}, {"ties": "random"}, {"by_class": True})
        ]
        proba = nb.predict_proba(X[-1:])[0]
        found.append([*own, proba[y[-1]] >= 0.5 or proba.max() < 0.9, y[-1]])
    return tuple(np.array(found).T)


def margin(coverage: float, n: int = SETS) -> float:
    return 3 * np.sqrt(coverage * (1 - coverage) / n)


@pytest.mark.slow("simulates many data sets or draws")
def test_they_cover_where_the_model_is_wrong():
    conservative, drawn, by_class, own, label = simulated()
    assert own.mean() < 0.9 - margin(0.9)  # its own sets of 90%
    for coverage in (0.6, 0.8, 0.9, 0.95):
        assert (conservative > 1 - coverage).mean() >= coverage - margin(coverage)
        assert (drawn > 1 - coverage).mean() == pytest.approx(coverage, abs=margin(coverage))
        for c in (0, 1):
            of_class = by_class[label == c] > 1 - coverage
            assert of_class.mean() >= coverage - margin(coverage, len(of_class))
