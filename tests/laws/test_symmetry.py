"""Laws 7 and 8: relabelling permutes the answer and changes nothing else; an empty row says nothing."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.base import clone

import bayesnb as bnb
from bayesnb import GaussianNB
from tests.strategies import CLASSES, ESTIMATES, KINDS, LEVELS, Problem, problems, reals, thorough

every_kind = pytest.mark.parametrize("kind", thorough(KINDS))
permutations = st.permutations(range(3))


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-10)


def assert_same_evidence(a, b, shift=0.0):
    assert abs(a.log_evidence_ - b.log_evidence_ - shift) <= 1e-9 * max(1.0, abs(b.log_evidence_))


@every_kind
@pytest.mark.parametrize("estimate", ["mean", "predictive"])
@given(data=st.data())
def test_permuting_rows_changes_nothing(kind, estimate, data):
    problem = data.draw(problems(kind, min_rows=2))
    order = np.array(data.draw(st.permutations(range(len(problem)))))
    nb, permuted = problem.fit(), problem.take(order).fit()
    assert_same_evidence(permuted, nb)
    scores = nb.predict_joint_log_proba(problem.X, estimate=estimate)
    assert_close(permuted.predict_joint_log_proba(problem.X, estimate=estimate), scores)
    # Each row of a prediction depends on that row alone.
    np.testing.assert_array_equal(nb.predict_joint_log_proba(problem.take(order).X, estimate=estimate), scores[order])


@every_kind
@given(data=st.data(), order=permutations)
def test_permuting_classes_permutes_the_answer(kind, data, order):
    problem = data.draw(problems(kind))
    renamed = dict(zip(CLASSES, [CLASSES[i] for i in order], strict=True))
    other = replace(problem, y=np.array([renamed[c] for c in problem.y]))
    if problem.nb.class_prior is not None:
        prior = np.array(problem.nb.class_prior)
        other = replace(other, nb=clone(problem.nb).set_params(class_prior=prior[np.argsort(order)]))
    a, b = problem.fit(), other.fit()
    assert_same_evidence(b, a)
    assert_close(b.predict_joint_log_proba(problem.X), a.predict_joint_log_proba(problem.X)[:, np.argsort(order)])


@every_kind
@given(data=st.data(), order=permutations)
def test_permuting_features_changes_nothing(kind, data, order):
    problem = data.draw(problems(kind))
    if kind == "mixed":
        columns = list(problem.X.columns)
        columns[:3] = [columns[i] for i in order]
        X = problem.X[columns]
    else:
        X = problem.X[:, list(order)]
    a, b = problem.fit(), replace(problem, X=X).fit()
    assert_same_evidence(b, a)
    assert_close(b.predict_joint_log_proba(X), a.predict_joint_log_proba(problem.X))


@given(data=st.data())
def test_permuting_levels_changes_nothing(data):
    """Other names, of other types and so in another order."""
    problem = data.draw(problems("categorical"))
    names = ["z", "y", 3.5, False, -8, "x", 12, ("a", "tuple")]
    X = problem.X.copy()
    for j, pool in enumerate(LEVELS):
        distinct = list(dict.fromkeys(v for v in pool if v is not None))
        renamed = dict(zip(distinct, data.draw(st.permutations(names)), strict=False))
        for i in range(len(problem)):
            X[i, j] = renamed.get(X[i, j])
    a, b = problem.fit(), replace(problem, X=X).fit()
    assert_same_evidence(b, a)
    assert_close(b.predict_joint_log_proba(X), a.predict_joint_log_proba(problem.X))


@pytest.mark.slow("other variants compile kernels of their own", but="bernoulli")
@pytest.mark.parametrize("kind", ["bernoulli", "sparse bernoulli"])
@given(data=st.data())
def test_exchanging_absent_and_present_changes_nothing(kind, data):
    problem = data.draw(problems(kind))
    flipped = 1 - (problem.X.toarray() if sp.issparse(problem.X) else problem.X)
    other = replace(problem, X=sp.csr_array(flipped) if sp.issparse(problem.X) else flipped)
    a, b = problem.fit(), other.fit()
    assert_same_evidence(b, a)
    assert_close(b.predict_joint_log_proba(other.X), a.predict_joint_log_proba(problem.X))


@pytest.mark.slow("a second view of what quick tests see")
@pytest.mark.filterwarnings("ignore:.*have no class probabilities")
@pytest.mark.parametrize("prior", ["pooled", "within"])
@pytest.mark.parametrize("estimate", ESTIMATES)
@given(data=st.data(), s=st.sampled_from([0.01, -0.5, 3.0, -1000.0]), t=st.sampled_from([0.0, -3.5, 100.0]))
def test_gaussian_scale_and_shift_leave_the_classes_and_move_the_evidence(prior, estimate, data, s, t):
    """x → s·x + t moves the evidence by -log|s| a cell; features whose variance is zero get b = 1, so not those."""
    n = data.draw(st.integers(4, 8))
    x = np.array(data.draw(st.lists(st.tuples(*[st.integers(-40, 40)] * 3), min_size=n, max_size=n))) / 4
    x[:2] = [[-11, 12, -13], [11, -12, 13]]
    y = np.array([0, 0, *data.draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))])
    moved = s * x + t
    a, b = (GaussianNB(prior=prior).partial_fit(v, y, [0, 1]) for v in (x, moved))
    assert_same_evidence(b, a, shift=-x.size * np.log(abs(s)))
    # A class with one row is a point mass under the MLE: rounding of s·x + t may not decide.
    if estimate == "mle" and min(np.ptp(x[y == c], axis=0).min() if (y == c).any() else 0 for c in (0, 1)) == 0:
        return
    np.testing.assert_allclose(
        b.predict_log_proba(moved, estimate=estimate), a.predict_log_proba(x, estimate=estimate), rtol=1e-8, atol=1e-8
    )


# -- law 8 ---------------------------------------------------------------------------------------


def empty_row(problem: Problem):
    if problem.kind == "mixed":  # a multinomial cannot be missing; no words at all say as little
        blank = {name: [None] for name in problem.X.columns} | {"word": [0.0], "other": [0.0]}
        frame = pd.DataFrame(blank)
        return frame.astype({c: float for c in problem.X.columns if problem.X[c].dtype.kind == "f"})
    if problem.kind == "categorical":
        return np.full((1, 3), None, object)
    empty = np.full((1, 3), 0.0 if "multinomial" in problem.kind else np.nan)
    return sp.csr_array(empty) if "sparse" in problem.kind else empty


@pytest.mark.slow("other variants compile kernels of their own", but=["categorical", "gaussian"])
@pytest.mark.parametrize("kind", thorough([k for k in KINDS if k != "sparse bernoulli"]))
@given(data=st.data())
def test_missing_every_feature_gives_the_class_prior(kind, data):
    problem = data.draw(problems(kind))
    nb = problem.fit()
    alpha = np.broadcast_to(problem.nb.class_alpha, 3) + nb.class_count_
    mean = alpha / alpha.sum() if problem.nb.class_prior is None else np.array(problem.nb.class_prior)
    share = nb.class_count_ / nb.class_count_.sum() if problem.nb.class_prior is None else mean
    for estimate, expected in (("mle", share), ("mean", mean), ("predictive", mean)):
        assert_close(nb.predict_proba(empty_row(problem), estimate=estimate)[0], expected)
    shifted = nb.predict_proba(empty_row(problem), class_prior=[0.1, 0.2, 0.7])
    assert_close(shifted[0], [0.1, 0.2, 0.7])


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("kind", ["categorical", "bernoulli", "gaussian", "poisson"])
@given(data=st.data(), j=st.integers(0, 2))
def test_a_missing_cell_is_a_feature_less(kind, data, j):
    """Marginalised: the others decide as if the column did not exist."""
    problem = data.draw(problems(kind))
    X = problem.X.copy()
    X[:, j] = None if kind == "categorical" else np.nan
    others = [i for i in range(3) if i != j]
    without = problem.fit()
    alone = clone(problem.nb).partial_fit(problem.X[:, others], problem.y, CLASSES, problem.weight)
    assert_close(without.predict_proba(X), alone.predict_proba(problem.X[:, others]))


@pytest.mark.slow("compiles kernels of its own")
@given(data=st.data())
def test_a_column_without_an_observed_cell_changes_nothing(data):
    """Neither the classes, nor the evidence, nor the number of parameters of a categorical model."""
    problem = data.draw(problems("categorical"))
    nothing = np.full((len(problem), 1), None, object)
    for at in (0, 1, 3):
        X = np.insert(problem.X, [at], nothing, axis=1)
        a, b = problem.fit(), replace(problem, X=X).fit()
        assert_same_evidence(b, a)
        assert_close(b.predict_proba(X), a.predict_proba(problem.X))
        if all(len(v) for v in a.categories_):
            assert b.n_parameters_ == a.n_parameters_


@given(x=st.lists(reals, min_size=1, max_size=8))
def test_missing_gaussian_cells_are_rows_not_there_for_their_feature(x):
    x = np.array(x)
    kept = x[~np.isnan(x)]
    y = np.zeros(len(x), int)
    a = GaussianNB().fit(np.stack([x, np.zeros(len(x))], axis=1), y)
    assert a.statistics_.blocks[0].count.tolist() == [[len(kept), len(x)]]
    if len(kept):
        np.testing.assert_allclose(a.statistics_.blocks[0].mean[0, 0], kept.mean(), rtol=1e-12, atol=1e-12)


# -- the unit of numbers -----------------------------------------------------------------------------

SCALED_Y = np.repeat(["a", "b"], 8)
_OFFSET = np.where(SCALED_Y == "a", 0.0, 2.5)
# The first column is symmetric about 0 in both classes, so that its means are 0.
_SYMMETRIC = np.array([-1.0, 1.0, -3.0, 3.0, -0.5, 0.5, -2.0, 2.0])
SCALED = pd.DataFrame({"0": np.concatenate([_SYMMETRIC, 2 * _SYMMETRIC]), "1": np.arange(16) % 5 + _OFFSET})


def counts_of(X):
    """Table of counts and moments for `from_counts`."""
    rows = [("a", None, 8.0, np.nan, np.nan), ("b", None, 8.0, np.nan, np.nan)]
    for c, name in itertools.product("ab", X):
        x = X.loc[c == SCALED_Y, name].to_numpy()
        with np.errstate(over="ignore", under="ignore"):
            rows.append((c, name, 8.0, x.mean(), ((x - x.mean()) ** 2).sum()))
    frame = pd.DataFrame(rows, columns=["class", "feature", "count", "mean", "m2"])
    return frame.assign(level=None)


def by_batches(nb, X, y):
    for part in (slice(0, None, 2), slice(1, None, 2)):
        nb.partial_fit(X.iloc[part], y[part], ["a", "b"])
    return nb


NUMBERS = {
    "within": bnb.GaussianNB(),
    "pooled": bnb.GaussianNB(prior="pooled"),
    "exponential": bnb.ExponentialNB(),
    "mixed": bnb.MixedNB(numbers="gaussian"),
    "binned": bnb.BinnedNB(cells=4),
}
WAYS = {
    "fit": lambda nb, X, y: nb.fit(X, y),
    "partial_fit": by_batches,
    "fit_stream": lambda nb, X, y: bnb.fit_stream(nb, [(X[::2], y[::2]), (X[1::2], y[1::2])]),
    "from_counts": lambda nb, X, y: bnb.from_counts(nb, counts_of(X)),
}
CASES = [*((name, "fit") for name in NUMBERS), *(("within", way) for way in list(WAYS)[1:])]


@pytest.mark.slow("other variants compile kernels of their own", but=("predictive-within-fit", "predictive-binned"))
@pytest.mark.parametrize(("name", "way"), CASES)
@pytest.mark.parametrize("estimate", ["predictive", "mle"])
@given(k=st.integers(-307, 307), columns=st.sampled_from([["0"], ["1"], ["0", "1"]]))
@example(k=-162, columns=["0", "1"])
@example(k=-160, columns=["1"])
@example(k=-200, columns=["0"])
@example(k=153, columns=["0", "1"])
def test_the_unit_of_numbers_changes_nothing_or_is_refused(name, way, estimate, k, columns):
    """X · 10^k has the class probabilities of X, or an error that names the column; likewise for one column of X."""
    # A database that squares 1e-200 states a sum of squares of 0, and a mean of 0 by symmetry.
    assume(way != "from_counts" or columns != ["0"])
    X = abs(SCALED) if name == "exponential" else SCALED
    scaled = X.copy()
    scaled[columns] *= 10.0**k
    expected = WAYS[way](clone(NUMBERS[name]), X, SCALED_Y).predict_proba(X, estimate=estimate)
    nb, refusal = clone(NUMBERS[name]), ""
    try:
        nb = WAYS[way](nb, scaled, SCALED_Y)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert abs(k) > 70, refusal
        assert any(f"'{column}'" in refusal for column in columns), refusal
        assert "Rescale the feature" in refusal or "is not finite" in refusal
    else:
        np.testing.assert_allclose(nb.predict_proba(scaled, estimate=estimate), expected, atol=1e-6)


@pytest.mark.parametrize("nb", [bnb.ExponentialNB(), bnb.PoissonNB(), bnb.GaussianNB()], ids=repr)
def test_rows_fade_to_nothing(nb):
    """Half of a subnormal count is 0, and that of the sum need not be: there is no cell whose size is wrong."""
    X = np.tile([[3.0], [0.0], [1.0], [2.0]], (5, 1))
    nb = clone(nb).fit(X, np.arange(20) % 2)
    for _ in range(1100):
        nb.decay(0.5)
    assert nb.class_count_.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("k", [-70, 70])
def test_the_unit_of_numbers_is_that_of_parameters(k):
    """Standard deviations of σ² take the squares of variances, fourth powers of the numbers."""
    before = bnb.parameter_table(bnb.GaussianNB().fit(SCALED, SCALED_Y))
    after = bnb.parameter_table(bnb.GaussianNB().fit(SCALED * 10.0**k, SCALED_Y))
    variances = (before["level"] == "sigma2").to_numpy()
    assert variances.any()
    unit = np.where(variances, 10.0 ** (2 * k), np.where(before["level"] == "mu", 10.0**k, 1.0))
    for column in ("mean", "sd", "lower", "upper"):
        np.testing.assert_allclose(after[column] / unit, before[column], rtol=1e-9, atol=1e-12)
