"""Network classifiers against joint tables by brute force; without arcs, against naive Bayes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

import bayesnb as bnb
from bayesnb.fitted import counting
from tests import strategies
from tests.estimators.cases import state
from tests.estimators.networks import CLASSES, Brute, brute_of, log_proba, problems, table
from tests.fitted.test_counting import Compilations
from tests.raises import refused
from tests.strategies import ESTIMATES, assert_leaves, counted, variants


def fitted(problem, nb=None, keep=slice(None)):
    """A classifier that knows all three classes."""
    nb = nb or bnb.NetworkNB(problem.brute.parents, **problem.options)
    return nb.partial_fit(problem.X[keep], problem.y[keep], CLASSES, problem.weight[keep])


# -- without arcs ------------------------------------------------------------------------------------


@pytest.mark.slow("a second view of what quick tests see")
@pytest.mark.filterwarnings("ignore:.*rows have no class probabilities:UserWarning")
@given(strategies.problems("categorical"))
def test_a_structure_without_arcs_is_naive_bayes(problem):
    naive, nb = problem.fit(), problem.fit(bnb.NetworkNB({}, alpha=0.7, gaussian=None))
    assert [v.tolist() for v in nb.categories_] == [v.tolist() for v in naive.categories_]
    for estimate in ESTIMATES:
        expected = naive.predict_log_proba(problem.X, estimate=estimate)
        np.testing.assert_allclose(nb.predict_log_proba(problem.X, estimate=estimate), expected, rtol=1e-12, atol=1e-12)
    assert nb.log_evidence_ == pytest.approx(naive.log_evidence_, rel=1e-12, abs=1e-12)
    assert nb.n_parameters_ == naive.n_parameters_


@variants("nb", [bnb.TAN(), bnb.TAN("evidence"), bnb.SPODE(), bnb.AODE(), bnb.NetworkNB()], ids=repr)
def test_one_column_leaves_nothing_to_depend_on(nb):
    X, y = table(40, 0)
    naive = Brute([("u", "v")], {}, [1.0], [1.0, 1.0], CLASSES[:2])
    expected = naive.log_joints(naive.count(X[:, :1], y, np.ones(40)), X[:, :1])
    np.testing.assert_allclose(nb.fit(X[:, :1], y).predict_joint_log_proba(X[:, :1]), expected, rtol=1e-12)


# -- brute force -------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@settings(max_examples=10)
@given(problems())
def test_a_network_is_its_joint_table(problem):
    nb = fitted(problem)
    check_predictions(problem, nb)
    check_evidence(problem, nb)
    check_leave_one_out(problem, nb)
    check_order(problem, nb)


def check_predictions(problem, nb):
    brute, counts = problem.brute, problem.counts()
    joint = brute.table(counts).reshape(len(CLASSES), -1).T
    assert joint.sum() == pytest.approx(1.0)
    rows = brute.complete_rows()
    np.testing.assert_allclose(nb.predict_joint_log_proba(rows), np.log(joint), rtol=0, atol=1e-10)
    np.testing.assert_allclose(nb.predict_proba(rows), joint / joint.sum(axis=1, keepdims=True), rtol=0, atol=1e-10)
    free = sum(
        (len(own) - 1) * np.prod([len(brute.levels[p]) for p in brute.parents.get(j, ())])
        for j, own in enumerate(brute.levels)
    )
    assert nb.n_parameters_ == 2 + 3 * free


def check_evidence(problem, nb):
    """The product of the predictions of each row from those before it, and the formula."""
    sequential = problem.brute.sequential_evidence(problem.X, problem.y, problem.weight)
    tolerance = 1e-10 * max(1, abs(sequential))
    assert nb.log_evidence_ == pytest.approx(sequential, abs=tolerance)
    assert nb.log_evidence_ == pytest.approx(problem.brute.evidence(problem.counts()), abs=tolerance)


def check_leave_one_out(problem, nb):
    each = np.arange(len(problem.y))
    found = bnb.loo(nb, problem.X, problem.y, problem.weight)
    without = np.array([problem.brute.log_joint(problem.counts(each != i), problem.X[i]) for i in each])
    np.testing.assert_allclose(found.log_proba, log_proba(without), rtol=0, atol=1e-10)
    at = [CLASSES.index(label) for label in problem.y]
    np.testing.assert_allclose(found.row_pointwise, without[each, at], rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.pointwise, log_proba(without)[each, at], rtol=0, atol=1e-10)
    if len(each) > 1:
        fixed = bnb.NetworkNB(problem.brute.parents, categories=problem.options["categories"], prior=nb.prior_)
        refit = fitted(problem, fixed, keep=each != 0).predict_log_proba(problem.X[:1])
        np.testing.assert_allclose(found.log_proba[:1], refit, rtol=0, atol=1e-10)


def check_order(problem, nb):
    """Parents and rows in another order change nothing."""
    turned = {j: p[::-1] for j, p in problem.brute.parents.items()}
    other = fitted(problem, bnb.NetworkNB(turned, **problem.options), keep=slice(None, None, -1))
    rows = problem.brute.complete_rows()
    np.testing.assert_allclose(other.predict_log_proba(rows), nb.predict_log_proba(rows), rtol=1e-12, atol=1e-12)
    assert other.log_evidence_ == pytest.approx(nb.log_evidence_, rel=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_many_levels_and_parents_do_not_wrap_around():
    """Joint codes beyond 127, 255 and 32,767, where small integers end."""
    rng = np.random.default_rng(0)
    for sizes in ((5, 26), (16, 16), (7, 9, 11, 50)):
        X = np.stack([rng.integers(0, n, 60) for n in sizes], axis=1)
        X[-1] = np.array(sizes) - 1
        y = rng.integers(0, 2, 60)
        child = len(sizes) - 1
        nb = bnb.NetworkNB({child: list(range(child))}, categories=[list(range(n)) for n in sizes]).fit(X, y)
        brute = Brute([tuple(range(n)) for n in sizes], {child: tuple(range(child))}, [1.0] * 4, [1.0] * 2, (0, 1))
        counts = brute.count(X.tolist(), y.tolist(), np.ones(60))
        np.testing.assert_allclose(
            nb.predict_joint_log_proba(X), brute.log_joints(counts, X.tolist()), rtol=0, atol=1e-10
        )


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("nb", [bnb.SPODE(), bnb.TAN(), bnb.AODE()], ids=repr)
@pytest.mark.parametrize("estimate", ["mle", "map"])
def test_a_class_that_never_had_the_parents_value_is_impossible(nb, estimate):
    """By maximum likelihood p(x_p | c) = 0, whatever the children are: as in naive Bayes."""
    X = np.array([["a", "p"], ["a", "q"], ["b", "p"], ["b", "p"]], dtype=object)
    y = ["s", "s", "t", "t"]
    found = nb.fit(X, y).predict_joint_log_proba(X, estimate=estimate)
    with np.errstate(divide="ignore"):
        expected = np.log([[1 / 4, 0], [1 / 4, 0], [0, 1 / 2], [0, 1 / 2]])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# -- missing cells -----------------------------------------------------------------------------------


def names_on_arcs(problem):
    brute = problem.brute
    return [
        str(j)
        for j in range(len(brute.levels))
        if brute.parents.get(j) and not all(brute.observed(row, j) for row in problem.X)
    ]


@pytest.mark.slow("compiles kernels of its own")
@settings(max_examples=10)
@given(problems(missing=True))
def test_a_cell_counts_with_all_its_parents_and_missing_ones_are_summed_out(problem):
    nb, counts = fitted(problem), problem.counts()
    np.testing.assert_allclose(
        nb.predict_joint_log_proba(problem.X), problem.brute.log_joints(counts, problem.X), rtol=0, atol=1e-10
    )
    each = np.arange(len(problem.y))
    without = [problem.brute.log_joint(problem.counts(each != i), problem.X[i]) for i in each]
    found = bnb.loo(nb, problem.X, problem.y, problem.weight)
    np.testing.assert_allclose(found.log_proba, log_proba(np.array(without)), rtol=0, atol=1e-10)
    at = [CLASSES.index(label) for label in problem.y]
    np.testing.assert_allclose(found.row_pointwise, np.array(without)[each, at], rtol=0, atol=1e-10)
    check_refusals(problem, nb)


def check_refusals(problem, nb):
    """Assert that the evidence is refused if cells on arcs are missing, and that the error names the columns."""
    names = names_on_arcs(problem)
    if not names:
        assert nb.log_evidence_ == pytest.approx(problem.brute.evidence(problem.counts()), abs=1e-9)
        return
    calls = (
        lambda: nb.log_evidence_,
        lambda: bnb.bayes_factor(nb, nb),
        lambda: bnb.prequential(nb, problem.X, problem.y, problem.weight),
        lambda: bnb.tune_alpha(nb, problem.X, problem.y, by="evidence", sample_weight=problem.weight),
    )
    for call in calls:
        with pytest.raises(NotImplementedError) as error:
            call()
        assert all(repr(name) in str(error.value) for name in names)


def test_the_evidence_is_back_once_the_rows_with_missing_cells_are_gone():
    X, y = table(30, 1)
    hole = X[:2].copy()
    hole[0, 1] = hole[1, 2] = None
    nb = bnb.NetworkNB({1: 0, 3: (1, 0)}).fit(X, y)
    before = nb.log_evidence_
    nb.partial_fit(hole, y[:2])
    refused(r"log_evidence_.*'1'.*'3'", getattr, nb, "log_evidence_", error=NotImplementedError)
    assert nb.forget(hole, y[:2]).log_evidence_ == pytest.approx(before, rel=1e-13)
    assert bnb.bayes_factor(nb, nb).log == 0


@pytest.mark.slow("compiles kernels of its own")
def test_a_missing_cell_beside_the_arcs_does_not_matter_to_the_evidence():
    X, y = table(30, 1)
    X[3, 2] = None
    nb = bnb.NetworkNB({1: 0}).fit(X, y)
    counts = brute_of(nb).count(X, y, np.ones(30))
    assert nb.log_evidence_ == pytest.approx(brute_of(nb).evidence(counts), abs=1e-9)


@variants("nb", [bnb.NetworkNB({1: 0}), bnb.NetworkNB({0: 1, 2: [0, 1]}), bnb.SPODE(1)], ids=repr)
def test_a_column_without_any_cell(nb):
    """A parent of nothing, or a child of whatever it may be: what is said of the other columns stands."""
    X, y = table(30, 2)
    X[:, 1] = None
    nb.fit(X, y)
    brute = brute_of(nb)
    counts = brute.count(X, y, np.ones(30))
    np.testing.assert_allclose(nb.predict_joint_log_proba(X), brute.log_joints(counts, X), rtol=0, atol=1e-10)
    refused("missing on the arcs", getattr, nb, "log_evidence_", error=NotImplementedError)
    assert nb.categories_[1].size == 0
    later, labels = table(20, 3)
    grown = nb.partial_fit(later, labels)
    whole = type(nb)(**nb.get_params()).fit(np.vstack([X, later]), np.append(y, labels))
    for one, other in zip(grown.statistics_.blocks, whole.statistics_.blocks, strict=True):
        np.testing.assert_array_equal(one.count, other.count)
    assert grown.categories_[1].tolist() == whole.categories_[1].tolist()


# -- streams -----------------------------------------------------------------------------------------


def stream():
    """Three chunks; the second brings a level, the third a class and a level."""
    X, y = table(48, 4, n_classes=3)
    X = X.copy()
    X[:16][X[:16] == "w"] = "v"
    y = y.copy()
    y[:32][y[:32] == "oak"] = "elm"
    X[5, 2], X[40, 0] = None, "z"
    return [(X[a:b], y[a:b]) for a, b in itertools.pairwise((0, 16, 32, 48))]


def same(a, b, X):
    assert [v.tolist() for v in a.categories_] == [v.tolist() for v in b.categories_]
    assert a.classes_.tolist() == b.classes_.tolist()
    for one, other in zip(a.statistics_.blocks, b.statistics_.blocks, strict=True):
        np.testing.assert_array_equal(one.count, other.count)
    np.testing.assert_array_equal(a.class_count_, b.class_count_)
    if isinstance(a, bnb.AODE | bnb.TreeAveragedNB):
        np.testing.assert_allclose(a.predict_log_proba(X), b.predict_log_proba(X), rtol=1e-12)
    else:
        assert_leaves(a.posterior_, b.posterior_)


MAKE = {
    "network": lambda: bnb.NetworkNB({0: 2, 1: [0, 2], 3: 1}),
    "spode": lambda: bnb.SPODE(2),
    "aode": lambda: bnb.AODE(),
    "contexts": lambda: bnb.NetworkNB({0: 2, 1: [0, 2], 3: 1}, tables="context"),
    "aode of contexts": lambda: bnb.AODE(tables="context"),
    "all trees": lambda: bnb.TreeAveragedNB(),
}
each = pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in MAKE.items()])


@pytest.mark.slow("compiles kernels of its own")
@each
def test_chunks_make_the_whole(make):
    chunks = stream()
    X, y = (np.concatenate(part) for part in zip(*chunks, strict=True))
    whole = make().fit(X, y)
    nb = make()
    for rows, labels in chunks:
        nb.partial_fit(rows, labels, classes=np.unique(labels))
    same(nb, whole, X)
    # Forgotten, the last chunk leaves its class behind, and levels of declared columns.
    first = np.concatenate([rows for rows, _ in chunks[:2]])
    for options in ({}, {"categories": [v.tolist() for v in whole.categories_]}):
        nb, less = make().set_params(**options), make().set_params(**options)
        for rows, labels in chunks:
            nb.partial_fit(rows, labels, classes=whole.classes_)
        for rows, labels in chunks[:2]:
            less.partial_fit(rows, labels, classes=whole.classes_)
        same(nb.forget(*chunks[2]), less, X if options else first)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@each
def test_merging_in_any_order_makes_the_whole(make):
    chunks = stream()
    X, y = (np.concatenate(part) for part in zip(*chunks, strict=True))
    whole, parts = make().fit(X, y), [counted(make().fit(*chunk)) for chunk in chunks]
    for order in itertools.permutations(range(3)):
        a, b, c = (parts[i] for i in order)
        merged = make().fit(*chunks[0]).with_counts(counting.merge(a, counting.merge(b, c)))
        same(merged, whole, X)


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@each
def test_rows_that_were_not_counted_are_not_forgotten(make):
    (X, y), (others, labels), _ = stream()
    nb = make().fit(X, y)
    before = state(nb)
    refused("forget", nb.forget, others, labels)
    refused("negative", nb.forget, np.repeat(X[:1], 17, axis=0), np.repeat(y[:1], 17))
    assert state(nb) == before


@variants("score", ["mi", "evidence"])
def test_a_tree_once_found_is_counted_for(score):
    chunks = stream()
    nb = bnb.TAN(score)
    assert not hasattr(nb, "partial_fit")
    with pytest.raises(AttributeError, match="partial_fit") as error:
        nb.partial_fit(*chunks[0], classes=CLASSES)
    assert "NetworkNB(parents=" in f"{error.value} {error.value.__cause__}"
    nb.fit(*chunks[0])
    tree = nb.parents_
    for rows, labels in chunks[1:]:
        nb.partial_fit(rows, labels, classes=np.unique(labels))
    assert nb.parents_ == tree
    X, y = (np.concatenate(part) for part in zip(*chunks, strict=True))
    same(nb, bnb.NetworkNB(tree, alpha=brute_of(nb).alpha).fit(X, y), X)


def test_counts_of_different_structures_do_not_merge():
    X, y = table(20, 0)
    a, b = bnb.NetworkNB({0: 1}).fit(X, y), bnb.NetworkNB({1: 0}).fit(X, y)
    refused("structure", counting.merge, counted(a), counted(b))


@pytest.mark.slow("compiles kernels of its own")
def test_decay_is_weights():
    X, y = table(30, 5)
    for nb in (bnb.NetworkNB({1: 0}), bnb.AODE()):
        faded = nb.fit(X, y).decay(0.5).predict_proba(X)
        np.testing.assert_allclose(faded, type(nb)(**nb.get_params()).fit(X, y, np.full(30, 0.5)).predict_proba(X))


# -- compilations ------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("make", list(MAKE.values()), ids=list(MAKE))
def test_other_numbers_of_rows_compile_nothing(make):
    X, y = table(130, 7)
    nb = make()

    def work(n):
        nb.partial_fit(X[:n], y[:n], classes=CLASSES[:2])
        nb.predict(X[:n])
        nb.predict_proba(X[:n])
        nb.forget(X[:n], y[:n])
        return bnb.loo(nb.fit(X, y), X, y)

    nb.fit(X, y)
    for n in (17, 64, 20):
        work(n)
    with Compilations() as compiled:
        for n in (18, 33, 50, 63):
            work(n)
    assert compiled.names == []
