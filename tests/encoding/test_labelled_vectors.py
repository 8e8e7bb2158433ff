"""Mappings and Series over classes, columns and levels are matched by label, lists and arrays by position."""

from collections import Counter
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import naive_bayes
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.preprocessing import OrdinalEncoder

import bayesnb as bnb
from benchmarks.forged_files import parts, signed
from tests.raises import refused

CLASSES = ["ash", "elm", "oak"]
Y = pd.Series(np.array(["oak", "elm", "oak", "ash", "oak", "elm", "oak", "oak", "ash", "elm"] * 6), name="tree")
_RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "colour": _RNG.choice(["red", "green", "blue"], 60),
        "bark": _RNG.choice(["rough", "smooth"], 60),
        "age": _RNG.choice([1, 2, 3, 4], 60).astype(object),
    }
)
LEVELS = {"colour": ["blue", "green", "red"], "bark": ["rough", "smooth"], "age": [1, 2, 3, 4]}
COUNTS = pd.DataFrame(_RNG.poisson(2.0, (60, 3)), columns=["a", "b", "c"])
NUMBERS = pd.DataFrame(_RNG.exponential(1.0, (60, 3)), columns=["a", "b", "c"])
NETWORK = {"bark": "colour", "age": ("colour", "bark")}

NAMED_ALPHA = {  # estimators with `alpha` by column
    "CategoricalNB": (bnb.CategoricalNB, X),
    "BernoulliNB": (bnb.BernoulliNB, COUNTS),
    "MultinomialNB": (bnb.MultinomialNB, COUNTS),
    "MixedNB": (lambda **options: bnb.MixedNB(bernoulli=["age"], **options), X),
    "TAN": (bnb.TAN, X),
    "TAN by evidence": (lambda **options: bnb.TAN("evidence", **options), X),
    "SPODE": (lambda **options: bnb.SPODE("bark", **options), X),
    "NetworkNB": (lambda **options: bnb.NetworkNB(NETWORK, **options), X),
    "NetworkNB in contexts": (lambda **options: bnb.NetworkNB(NETWORK, tables="context", **options), X),
    "AODE": (bnb.AODE, X),
    "KDB": (lambda **options: bnb.KDB(1, **options), X),
    "FeatureAveragedNB": (lambda **options: bnb.FeatureAveragedNB(bnb.CategoricalNB(**options)), X),
}
WEIGHTED = {
    "WeightedNB": (lambda **options: bnb.WeightedNB(bnb.CategoricalNB(**options)), X),
    "WeightedNB of KDB": (lambda **options: bnb.WeightedNB(bnb.KDB(**options)), X),
}
EVERY = NAMED_ALPHA | {
    "GaussianNB": (bnb.GaussianNB, NUMBERS),
    "PoissonNB": (bnb.PoissonNB, COUNTS),
    "NegativeBinomialNB": (bnb.NegativeBinomialNB, COUNTS),
    "ExponentialNB": (bnb.ExponentialNB, NUMBERS),
    "BinnedNB": (bnb.BinnedNB, NUMBERS),
    "TreeAveragedNB": (bnb.TreeAveragedNB, X),
}
QUICK = ("CategoricalNB", "MultinomialNB", "GaussianNB")
BY_LEVEL = ("CategoricalNB", "TAN", "TAN by evidence", "SPODE", "NetworkNB", "AODE", "FeatureAveragedNB")


def thorough(names):
    marks = {name: () if name in QUICK else pytest.mark.slow("compiles kernels of its own") for name in names}
    return [pytest.param(name, id=name, marks=marks[name]) for name in names]


concentrations = st.floats(0.05, 20.0)
forms = st.sampled_from([dict, pd.Series, MappingProxyType])


@st.composite
def labelled(draw, labels, values=concentrations):
    """A mapping or Series over the labels in any order, and the array in the order of the labels."""
    array = [draw(values) for _ in labels]
    order = draw(st.permutations(range(len(labels))))
    entries = {labels[i]: array[i] for i in order}
    form = draw(forms)
    return pd.Series(entries, dtype=float) if form is pd.Series else form(entries), np.array(array)


def assert_same_model(a, b, rows):
    np.testing.assert_allclose(a.predict_log_proba(rows), b.predict_log_proba(rows), rtol=1e-12, atol=1e-12)


# -- what failed ---------------------------------------------------------------------------------


def encoded():
    return OrdinalEncoder().fit_transform(X.astype(str))


def test_frequencies_of_labels_are_class_probabilities():
    """`value_counts` orders by frequency: oak, elm, ash."""
    frequencies = Y.value_counts(normalize=True)
    assert list(frequencies.index) != sorted(frequencies.index)
    nb = bnb.CategoricalNB(class_prior=frequencies, estimate="mean").fit(X, Y)
    theirs = naive_bayes.CategoricalNB(class_prior=frequencies.sort_index().to_numpy()).fit(encoded(), Y)
    np.testing.assert_allclose(nb.predict_proba(X), theirs.predict_proba(encoded()), rtol=1e-10)
    words = bnb.MultinomialNB(class_prior=dict(frequencies), estimate="mean").fit(COUNTS, Y)
    theirs = naive_bayes.MultinomialNB(class_prior=frequencies.sort_index().to_numpy()).fit(COUNTS, Y)
    np.testing.assert_allclose(words.predict_proba(COUNTS), theirs.predict_proba(COUNTS), rtol=1e-10)


@pytest.mark.parametrize("form", [pd.Series, dict])
def test_class_probabilities_of_predictions(form):
    new = form({"oak": 0.1, "ash": 0.7, "elm": 0.2})
    nb = bnb.CategoricalNB().fit(X, Y)
    for method in (nb.predict, nb.predict_proba, nb.predict_log_proba, nb.predict_joint_log_proba):
        np.testing.assert_array_equal(method(X, class_prior=new), method(X, class_prior=[0.7, 0.2, 0.1]))
    assert nb.score(X, Y, class_prior=new) == nb.score(X, Y, class_prior=[0.7, 0.2, 0.1])
    draws = bnb.posterior_draws(nb, 20, seed=0)
    both = [nb.predict_proba(X[:5], draws=draws, class_prior=prior) for prior in (new, [0.7, 0.2, 0.1])]
    np.testing.assert_array_equal(*both)


def test_an_undefined_row_has_the_label_that_is_most_probable_by_the_labels():
    """A level that no row of the training data had is impossible in every class, by maximum likelihood."""
    nb = bnb.CategoricalNB(estimate="mle", categories={"colour": [*LEVELS["colour"], "pink"]}).fit(X, Y)
    row = X[:1].assign(colour="pink")
    with pytest.warns(UserWarning, match="undefined|probabilit"):
        assert nb.predict(row, class_prior=pd.Series({"elm": 0.7, "oak": 0.2, "ash": 0.1})).tolist() == ["elm"]


def test_pseudo_counts_of_labels():
    nb = bnb.CategoricalNB(class_alpha=pd.Series({"oak": 8.0, "elm": 2.0, "ash": 1.0})).fit(X, Y)
    expected = nb.class_count_ + np.array([1.0, 2.0, 8.0])
    np.testing.assert_allclose(np.exp(nb.class_log_prior_), expected / expected.sum(), rtol=1e-14)
    counter = bnb.CategoricalNB(class_alpha=Counter(Y)).fit(X, Y)
    np.testing.assert_allclose(np.exp(counter.class_log_prior_), nb.class_count_ / 60, rtol=1e-14)


def test_concentrations_by_level_are_those_of_dirichlet_means():
    """By hand: (n + α_l)/(n_c + Σ α), with 1 for levels that are not named, and `purple` without a row."""
    nb = bnb.CategoricalNB(alpha={"colour": {"green": 2.5, "purple": 0.5}, "bark": 0.25}).fit(X, Y)
    alpha = {
        "colour": {"blue": 1.0, "green": 2.5, "purple": 0.5, "red": 1.0},
        "bark": {"rough": 0.25, "smooth": 0.25},
        "age": {1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0},
    }
    for j, (column, by_level) in enumerate(alpha.items()):
        assert nb.categories_[j].tolist() == list(by_level)
        for c, label in enumerate(CLASSES):
            count = X.loc[label == Y, column].value_counts()
            expected = np.array([count.get(level, 0) + a for level, a in by_level.items()])
            np.testing.assert_allclose(np.exp(nb.feature_log_prob_[j][c]), expected / expected.sum(), rtol=1e-13)


# -- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", thorough(EVERY))
@given(data=st.data())
def test_class_vectors_are_arrays_in_the_order_of_the_classes(name, data):
    make, rows = EVERY[name]
    by_label, array = data.draw(labelled(CLASSES))
    pair = [make(class_alpha=a).fit(rows, Y) for a in (by_label, array)]
    assert_same_model(*pair, rows)
    prior = array / array.sum()
    named = {label: prior[CLASSES.index(label)] for label in by_label.keys()}  # noqa: SIM118  of a Series, too
    assert_same_model(*(make(class_prior=p).fit(rows, Y) for p in (named, prior)), rows)
    for method in ("predict_proba", "predict", "predict_joint_log_proba"):
        a, b = (getattr(pair[0], method)(rows, class_prior=p) for p in (pd.Series(named), prior))
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", thorough(NAMED_ALPHA))
@given(data=st.data())
def test_alpha_by_column_is_an_array_in_the_order_of_the_columns(name, data):
    make, rows = NAMED_ALPHA[name]
    by_label, array = data.draw(labelled(list(rows.columns)))
    a, b = (make(alpha=alpha).fit(rows, Y) for alpha in (by_label, array))
    assert_same_model(a, b, rows)
    c = make(alpha=dict(enumerate(array))).fit(rows.to_numpy() if rows is not X else rows, Y)
    np.testing.assert_allclose(
        c.predict_log_proba(rows if rows is X else rows.to_numpy()), a.predict_log_proba(rows), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("name", thorough(BY_LEVEL))
@given(data=st.data())
def test_the_order_of_levels_does_not_matter(name, data):
    make, rows = NAMED_ALPHA[name]
    columns = data.draw(st.permutations(list(LEVELS)))
    drawn = {column: data.draw(labelled(LEVELS[column])) for column in columns}
    named = {column: by_label for column, (by_label, _) in drawn.items()}
    by_position = {column: drawn[column][1] for column in LEVELS}
    ordered = {column: dict(zip(LEVELS[column], array, strict=True)) for column, array in by_position.items()}
    nb = make(alpha=named).fit(rows, Y)
    assert_same_model(nb, make(alpha=ordered).fit(rows, Y), rows)
    assert_same_model(nb, make(alpha=by_position).fit(rows, Y), rows)
    assert_same_model(nb, make(alpha=[drawn[column][0] for column in LEVELS]).fit(rows, Y), rows)


@pytest.mark.slow("fits weights")
@pytest.mark.parametrize(("make", "rows"), WEIGHTED.values(), ids=WEIGHTED)
def test_weights_are_those_of_arrays(make, rows):
    """Halves of the rows have the levels that are named, whether or not they occur there."""
    alpha = {"age": 3.0, "bark": 0.5, "colour": 2.0}
    named = make(alpha=alpha, class_prior=Y.value_counts(normalize=True)).fit(rows, Y)
    arrays = make(alpha=[2.0, 0.5, 3.0], class_prior=[0.2, 0.3, 0.5]).fit(rows, Y)
    np.testing.assert_array_equal(named.weight_, arrays.weight_)
    assert_same_model(named, arrays, rows)
    assert named.expected_log_loss_ == arrays.expected_log_loss_
    by_class = {"elm": 0.2, "oak": 0.1, "ash": 0.7}
    both = [nb.predict_proba(rows, class_prior=p) for nb, p in ((named, by_class), (arrays, [0.7, 0.2, 0.1]))]
    np.testing.assert_array_equal(*both)


@given(data=st.data())
def test_alpha_by_level_is_a_list_of_arrays(data):
    """Given parents, each of their values has the concentrations, in front of which levels vary fastest."""
    drawn = {column: data.draw(labelled(levels)) for column, levels in LEVELS.items()}
    named = {column: by_label for column, (by_label, _) in drawn.items()}
    arrays = [array for _, array in drawn.values()]
    assert_same_model(bnb.CategoricalNB(alpha=named).fit(X, Y), bnb.CategoricalNB(alpha=arrays).fit(X, Y), X)
    tiled = [arrays[0], np.tile(arrays[1], 3), np.tile(arrays[2], 6)]
    a, b = (bnb.NetworkNB(NETWORK, alpha=alpha).fit(X, Y) for alpha in (named, tiled))
    assert_same_model(a, b, X)
    assert a.log_evidence_ == pytest.approx(b.log_evidence_, rel=1e-12)


@pytest.mark.parametrize("labels", [[True, False], [1, 2], [np.int64(1), np.int64(2)], [np.str_("b"), "a"], [1.0, 2.0]])
def test_labels_of_numpy_are_those_of_python(labels):
    y = np.array(labels * 4)
    rows = [["u"], ["v"]] * 4
    for keys in (labels, y[:2].tolist(), list(y[:2])):
        nb = bnb.CategoricalNB(class_prior=dict(zip(keys, [0.9, 0.1], strict=True))).fit(rows, y)
        known = dict(zip(nb.classes_.tolist(), np.exp(nb.class_log_prior_), strict=True))
        np.testing.assert_allclose([known[label] for label in y[:2].tolist()], [0.9, 0.1])


@given(data=st.data())
def test_parameters_of_numbers_by_column(data):
    """Fields of a normal-inverse-gamma or gamma prior name the columns."""
    fields = [data.draw(labelled(["a", "b", "c"])) for _ in range(4)]
    named, ordered = (bnb.NormalInverseGamma(*(field[i] for field in fields)) for i in (0, 1))
    assert_same_model(*(bnb.GaussianNB(prior=prior).fit(NUMBERS, Y) for prior in (named, ordered)), NUMBERS)
    mixed = NUMBERS.assign(colour=X["colour"])[["c", "colour", "a", "b"]]
    nb = bnb.MixedNB(numbers="gaussian", gaussian_prior=named).fit(mixed, Y)
    np.testing.assert_array_equal(nb.prior_.blocks[1].loc[0], ordered.loc[[2, 0, 1]])


def test_shares_of_classes():
    nb = bnb.CategoricalNB().fit(X, Y)
    alpha = pd.Series({"oak": 5.0, "elm": 2.0, "ash": 1.0})
    named, ordered = (bnb.estimate_prevalence(nb, X, a, draws=20, given="scores") for a in (alpha, [1.0, 2.0, 5.0]))
    np.testing.assert_array_equal(named.mode, ordered.mode)
    np.testing.assert_array_equal(named.mean, ordered.mean)


def test_inclusion_by_feature():
    named, ordered = (
        bnb.FeatureAveragedNB(inclusion=inclusion).fit(X, Y).inclusion_probability_
        for inclusion in ({"age": 0.9, "colour": 0.2}, [0.2, 0.5, 0.9])
    )
    np.testing.assert_array_equal(named, ordered)


def test_levels_edges_and_texts_by_column():
    by_column = pd.Series({"bark": ["rough", "smooth", "scaly"], "colour": ["green", "blue", "red"]})
    nb = bnb.CategoricalNB(categories=by_column).fit(X, Y)
    expected = [LEVELS["colour"], ["rough", "scaly", "smooth"], [1, 2, 3, 4]]
    assert [levels.tolist() for levels in nb.categories_] == expected
    edges = pd.Series({"c": [1.0], "a": [0.5, 2.0]})
    nb = bnb.BinnedNB(edges=edges).fit(NUMBERS, Y)
    assert {name: len(nb.edges_[name]) for name in "ac"} == {"a": 2, "c": 1}
    words = bnb.MultinomialNB().fit(COUNTS, Y)
    for names in ({"c": "cat", "a": "ant"}, pd.Series({"c": "cat", "a": "ant"}), ["ant", "b", "cat"]):
        table = bnb.top_words(words, "oak", n=3, names=names)
        assert set(table["word"]) == {"ant", "b", "cat"}
    refused("names: there is no column 'd'", bnb.top_words, words, "oak", names={"d": "dog"})


# -- levels that are named ------------------------------------------------------------------------

RARE = {"colour": {"green": 2.0, "purple": 0.5}}
DECLARED = {"colour": ["blue", "green", "purple", "red"]}


def declared(make):
    """The same prior of declared levels, by position."""
    return make(alpha=[[1.0, 2.0, 0.5, 1.0], 1.0, 1.0], categories=DECLARED)


@pytest.mark.parametrize("name", thorough(["CategoricalNB", "FeatureAveragedNB", "WeightedNB"]))
def test_a_level_that_is_named_is_declared(name):
    make, _ = (NAMED_ALPHA | WEIGHTED)[name]
    a, b = make(alpha=RARE).fit(X, Y), declared(make).fit(X, Y)
    rows = pd.concat([X, X[:3].assign(colour="purple")])
    assert_same_model(a, b, rows)
    if name != "WeightedNB":
        assert a.log_evidence_ == pytest.approx(b.log_evidence_, rel=1e-12)


@pytest.mark.parametrize("name", thorough(["TAN", "TAN by evidence", "SPODE", "NetworkNB", "AODE"]))
def test_a_level_that_is_named_is_declared_in_structures(name):
    make, _ = NAMED_ALPHA[name]
    a, b = make(alpha=RARE).fit(X, Y), make(alpha=RARE, categories=DECLARED).fit(X, Y)
    assert a.categories_[0].tolist() == DECLARED["colour"]
    rows = pd.concat([X, X[:3].assign(colour="purple")])
    assert_same_model(a, b, rows)


@pytest.mark.slow("compiles kernels of its own", but="NetworkNB")
@pytest.mark.parametrize("name", ["NetworkNB", "TAN"])
def test_a_level_that_is_named_beside_cells_of_numbers(name):
    """Cells keep their order, in later batches too."""
    frame = X.assign(height=NUMBERS["a"] * 20)
    make = {"NetworkNB": lambda **options: bnb.NetworkNB({"height": "colour"}, **options), "TAN": bnb.TAN}[name]
    alpha = RARE | {"height": 0.5}
    a, b = (make(numbers="binned", alpha=alpha, **options).fit(frame, Y) for options in ({}, {"categories": DECLARED}))
    for nb in (a, b):
        nb.partial_fit(frame[:9], Y[:9])
    assert a.categories_[0].tolist() == DECLARED["colour"]
    assert a.categories_[3].tolist() == b.categories_[3].tolist() != sorted(a.categories_[3])
    assert_same_model(a, b, pd.concat([frame, frame[:3].assign(colour="purple")]))


def test_other_levels_still_grow():
    nb = bnb.CategoricalNB(alpha=RARE).partial_fit(X[:5], Y[:5], CLASSES)
    nb.partial_fit(X[5:], Y[5:])
    assert_same_model(nb, bnb.CategoricalNB(alpha=RARE).fit(X, Y), X)
    nb.partial_fit(X[:2].assign(colour="pink"), Y[:2])
    assert nb.categories_[0].tolist() == ["blue", "green", "pink", "purple", "red"]
    nb.forget(X[:2].assign(colour="pink"), Y[:2])
    np.testing.assert_array_equal(nb.prior_.blocks[0].concentration[0, :5], [1.0, 2.0, 0.5, 1.0, 1.0])


def test_folds_without_a_rare_level():
    rare = X.assign(colour=np.where(np.arange(60) == 7, "purple", X["colour"]))
    nb = bnb.CategoricalNB(alpha=RARE)
    same = bnb.CategoricalNB(alpha=[[1.0, 2.0, 0.5, 1.0], 1.0, 1.0], categories=DECLARED)
    both = [cross_val_predict(model, rare, Y, cv=5, method="predict_proba") for model in (nb, same)]
    np.testing.assert_allclose(*both, rtol=1e-12)
    fit = nb.fit(rare, Y).fit_parts(rare, Y)
    assert_same_model(fit((np.arange(60) != 7) * 1.0), declared(bnb.CategoricalNB).fit(rare.drop(7), Y.drop(7)), rare)


def test_other_priors_of_the_same_counts():
    nb = bnb.CategoricalNB().fit(X, Y).with_priors({"alpha": RARE, "class_prior": Y.value_counts(normalize=True)})
    same = bnb.CategoricalNB(alpha=RARE, class_prior=Y.value_counts(normalize=True)).fit(X, Y)
    assert nb.log_evidence_ == same.log_evidence_
    assert_same_model(nb, same, X)
    tan = bnb.NetworkNB(NETWORK).fit(X, Y).with_priors({"alpha": RARE})
    assert tan.log_evidence_ == pytest.approx(bnb.NetworkNB(NETWORK, alpha=RARE).fit(X, Y).log_evidence_, rel=1e-12)


def test_streams_and_tables_of_counts(tmp_path):
    nb = bnb.CategoricalNB(alpha=RARE, class_prior={"oak": 0.5, "ash": 0.2, "elm": 0.3})
    whole = clone(nb).fit(X, Y)
    batches = [(X[:7], Y[:7]), (X[7:], Y[7:])]
    streamed = bnb.fit_stream(clone(nb), batches, classes=CLASSES, checkpoint=tmp_path / "checkpoint", every=1)
    assert streamed.log_evidence_ == whole.log_evidence_
    table = [(label, None, None, None, n, None, None) for label, n in Y.value_counts().items()]
    for column in X:
        kind = "int" if column == "age" else "str"
        counts = pd.crosstab(Y, X[column]).stack()
        table += [(label, column, kind, level, n, None, None) for (label, level), n in counts.items()]
    counted = bnb.from_counts(clone(nb), table)
    assert counted.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-12)
    assert counted.categories_[0].tolist() == DECLARED["colour"]


@pytest.mark.slow("starts dask")
def test_workers():
    """Most blocks have a single class, and concentrations of one column are named by class."""
    dask_array = pytest.importorskip("dask.array")
    order = np.argsort(Y, kind="stable")
    codes = np.stack([X["colour"] == "red", X["bark"] == "rough"], axis=1).astype(int)[order]
    y, by_class = Y.to_numpy(str)[order], {"ash": 2.0, "elm": 1.0, "oak": 0.5}
    nb = bnb.CategoricalNB(alpha={0: {1: 2.0, 7: 0.5}, 1: by_class}, class_alpha={"oak": 1.0, "elm": 2.0, "ash": 3.0})
    arrays = dask_array.from_array(codes, chunks=(10, 2)), dask_array.from_array(y, chunks=10)
    fitted, whole = bnb.distributed.fit(clone(nb), *arrays), clone(nb).fit(codes, y)
    assert fitted.log_evidence_ == whole.log_evidence_
    proba = fitted.predict_proba(arrays[0], class_prior={"oak": 0.5, "ash": 0.2, "elm": 0.3}).compute()
    np.testing.assert_array_equal(proba, whole.predict_proba(codes, class_prior=[0.2, 0.3, 0.5]))


def test_the_reserved_level_and_marks_of_missing_cells():
    nb = bnb.CategoricalNB(alpha={"colour": {"<unknown>": 0.1}}, handle_unknown="level").fit(X, Y)
    assert nb.categories_[0].tolist() == ["blue", "green", "red", "<unknown>"]
    np.testing.assert_array_equal(nb.prior_.blocks[0].concentration[0, :4], [1.0, 1.0, 1.0, 0.1])
    for label in ("?", None, np.nan):
        nb = bnb.CategoricalNB(alpha={"colour": {label: 2.0}}, missing_values="?")
        refused(r"alpha\['colour'\] names .* which is not a level of column 'colour'", nb.fit, X, Y)


# -- hyperparameters of scikit-learn, and files ------------------------------------------------------

VECTORS = {
    "dict": {"alpha": RARE, "class_alpha": {"oak": 1.0, "elm": 2.0, "ash": 3.0}},
    "Series": {"alpha": pd.Series({"bark": 2.0, "age": 0.5}), "class_prior": Y.value_counts(normalize=True)},
    "Series by level": {"alpha": {"colour": pd.Series({"purple": 2.0}), "age": pd.Series([1.0, 2.0, 3.0], [2, 3, 1])}},
    "Counter": {"alpha": MappingProxyType({"age": 2.0}), "class_alpha": Counter(Y)},
}


@pytest.mark.parametrize("options", VECTORS.values(), ids=VECTORS)
@pytest.mark.parametrize("name", thorough(["CategoricalNB", "TAN", "AODE", "FeatureAveragedNB", "WeightedNB"]))
def test_files_and_copies(name, options, tmp_path):
    if "Counter" in str(options) and isinstance(options["alpha"], MappingProxyType):
        options = options | {"alpha": dict(options["alpha"])}  # Python cannot copy a view of a mapping.
    make, _ = (NAMED_ALPHA | WEIGHTED)[name]
    nb = make(**options)
    assert repr(clone(nb)) == repr(nb)
    nb.fit(X, Y)
    bnb.save(nb, tmp_path / "model")
    loaded = bnb.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), nb.predict_proba(X))
    wrapped, original = (model.estimator if hasattr(model, "estimator") else model for model in (loaded, nb))
    for argument, value in options.items():
        stored = getattr(wrapped, argument)
        assert getattr(original, argument) is value
        assert {k: dict(v) if isinstance(v, pd.Series) else v for k, v in stored.items()} == {
            k: dict(v) if isinstance(v, pd.Series) else v for k, v in value.items()
        }
        assert isinstance(stored, pd.Series) == isinstance(value, pd.Series)
    if hasattr(nb, "partial_fit"):
        again = [model.partial_fit(X[:9], Y[:9]).predict_proba(X) for model in (loaded, nb)]
        np.testing.assert_array_equal(*again)


def test_grid_search():
    grid = {"alpha": [1.0, RARE, pd.Series({"bark": 3.0})], "class_prior": [None, dict(Y.value_counts(normalize=True))]}
    search = GridSearchCV(bnb.CategoricalNB(), grid, scoring="neg_log_loss", cv=3, error_score="raise").fit(X, Y)
    assert len(search.cv_results_["params"]) == 6


def test_a_file_whose_alpha_names_another_level_is_damaged(tmp_path):
    """A file may not make a model larger than its counts are."""
    nb, path = bnb.CategoricalNB(alpha=RARE).fit(X, Y), tmp_path / "model"
    bnb.save(nb, path)
    tree, arrays = parts(path.read_bytes())
    for name in ("pink", "purple"):
        tree["parameters"]["alpha"]["values"][0]["keys"][1] = name
        path.write_bytes(signed(tree, arrays))
        if name == "pink":
            refused(
                "alpha names levels that the fitted columns do not have", bnb.load, path, error=bnb.CorruptModelError
            )
    assert_same_model(bnb.load(path), nb, X)
    nb.alpha = {"colour": {"purple": 0.5, "pink": 1.0}}
    refused("was changed after fit", bnb.save, nb, tmp_path / "other")
    assert not (tmp_path / "other").exists()


# -- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"class_prior": {"oak": 0.5, "elm": 0.5}},
            r"class_prior must name exactly the classes. It names \['oak', 'elm'\]; the classes are \['ash', ",
        ),
        ({"class_alpha": {"oak": 1, "elm": 1, "ash": 1, "fir": 1}}, "class_alpha must name exactly .* 'fir'"),
        ({"class_prior": {"oak": 0.5, "elm": 0.7, "ash": -0.2}}, r"class_prior\['ash'\] is -0.2"),
        ({"class_alpha": {"oak": 1, "elm": -1, "ash": 1}}, r"class_alpha\['elm'\] is -1"),
        ({"class_alpha": {"oak": [1], "elm": 1, "ash": 1}}, r"class_alpha\['oak'\]=\[1\] must be one number"),
        (
            {"class_prior": pd.Series([0.2, 0.3, 0.5])},
            r"class_prior is a Series with the default index 0 to 2, and the classes are \['ash', 'elm', 'oak'\]. Read "
            "by label, the index does not name the classes. Read by position, ",
        ),
        ({"alpha": pd.Series([2.0, 3.0])}, "alpha is a Series with the default index 0 to 1, and the columns of X are"),
        ({"alpha": {"colour": pd.Series([2.0, 3.0])}}, r"alpha\['colour'\] is a Series with the default index 0 to 1"),
        (
            {"alpha": {"shape": 2.0}},
            r"alpha: there is no column 'shape'; the columns of X are \['colour', 'bark', 'age'\]",
        ),
        ({"alpha": {True: 2.0}}, "alpha: there is no column True"),
        ({"alpha": {3: 2.0}}, "alpha: there is no column 3"),
        ({"alpha": {-4: 2.0}}, "alpha: there is no column -4"),
        ({"alpha": {"colour": 2.0, 0: 1.0}}, "alpha names column 'colour' twice, by name and by position"),
        ({"alpha": {"colour": {"green": -1.0}}}, r"alpha\['colour'\]\['green'\] is -1.0; it must be finite"),
        ({"alpha": {"colour": {"green": "x"}}}, r"alpha\['colour'\]\['green'\]='x' must be a number"),
        ({"alpha": {"colour": {"green": {"oak": 1}}}}, r"alpha\['colour'\] must name exactly the classes. It names \["),
        ({"alpha": {"colour": [1.0, 2.0]}}, r"alpha\['colour'\] has shape \(2,\); expected one number, an array with"),
        ({"alpha": [{"green": 2.0}, 1.0]}, "alpha is a list of 2 entries, and X has 3 columns"),
        ({"alpha": pd.DataFrame({"colour": [1.0]})}, "alpha is a DataFrame, whose labels are not read"),
        ({"class_prior": pd.DataFrame({"oak": [1.0]})}, "class_prior is a DataFrame, whose labels are not read"),
        (
            {"alpha": pd.Series([2.0, 3.0], ["colour", "colour"])},
            "alpha is a Series whose index names 'colour' more than",
        ),
        (
            {"alpha": RARE, "categories": {"colour": LEVELS["colour"]}},
            r"alpha\['colour'\] names 'purple', which is not a level of column 'colour'. The levels are \['blue', ",
        ),
    ],
)
def test_labels_that_fit_nothing(options, message):
    nb = bnb.CategoricalNB().fit(X, Y)
    before = nb.fitted_
    refused(message, nb.set_params(**options).fit, X, Y)
    assert nb.fitted_ is before


def test_a_level_of_another_type_is_another_level():
    with pytest.warns(bnb.SuspiciousColumnWarning, match="'age': Values of two types .* 1 .int. and '1' .str."):
        nb = bnb.CategoricalNB(alpha={"age": {"1": 2.0}}).fit(X, Y)
    assert nb.categories_[2].tolist() == [1, 2, 3, 4, "1"]


def test_a_list_with_labelled_entries_is_read_by_position():
    frame = pd.DataFrame({2: X["colour"], 0: X["bark"]})
    nb = bnb.CategoricalNB(alpha=[{"green": 2.0}, 3.0]).fit(frame, Y)
    np.testing.assert_array_equal(nb.prior_.blocks[0].concentration[0], [1.0, 2.0, 1.0, 3.0, 3.0])


def test_labels_that_fit_nothing_in_other_estimators():
    frame = X.assign(height=NUMBERS["a"])
    said = "alpha names the column 'height', whose kind is gaussian. Only columns of levels and words have"
    refused(said, bnb.MixedNB(numbers="gaussian", alpha={"height": 2.0}).fit, frame, Y)
    words = bnb.MultinomialNB(alpha={"a": {"x": 1.0}})
    refused(r"alpha\['a'\]=.* must be one number, as multinomial columns have no levels", words.fit, COUNTS, Y)
    said = r"alpha\['a'\] names 'yes', .* The levels are \['absent', 'present'\]"
    refused(said, bnb.BernoulliNB(alpha={"a": {"yes": 1.0}}).fit, COUNTS, Y)
    refused(r"alpha\['age'\]=.* must be one number. With tables", bnb.KDB(alpha={"age": {1: 2.0}}).fit, X, Y)
    refused("alpha is a dict. alpha of TreeAveragedNB must be one", bnb.TreeAveragedNB(alpha={"age": 1.0}).fit, X, Y)
    categorical = X.assign(colour=pd.Categorical(X["colour"]))
    refused("names 'purple', which is not a level", bnb.CategoricalNB(alpha=RARE).fit, categorical, Y)
    prior = bnb.NormalInverseGamma({"a": 1.0, "b": 1.0}, 1.0, 1.0, 1.0)
    refused("prior.loc must name exactly the columns", bnb.GaussianNB(prior=prior).fit, NUMBERS, Y)
    prior = bnb.NormalInverseGamma(pd.Series([1.0, 2.0, 3.0]), 1.0, 1.0, 1.0)
    refused("prior.loc is a Series with the default index", bnb.GaussianNB(prior=prior).fit, NUMBERS, Y)
    refused("inclusion: there is no column 'x'", bnb.FeatureAveragedNB(inclusion={"x": 0.1}).fit, X, Y)
    nb = bnb.CategoricalNB().fit(X, Y)
    refused("class_prior must name exactly", nb.predict_proba, X, class_prior={"oak": 1.0})
    refused("alpha must name exactly the classes", bnb.estimate_prevalence, nb, X, {"oak": 1.0})


def test_a_default_index_is_read_where_both_readings_agree():
    """Columns and levels of arrays are positions, as are classes 0, 1, …"""
    codes, y = np.arange(12).reshape(-1, 2) % 3, [0, 1, 2, 0, 1, 2]
    series = pd.Series([0.2, 0.3, 0.5])
    nb = bnb.CategoricalNB(class_prior=series, alpha=pd.Series([2.0, 3.0])).fit(codes, y)
    assert_same_model(nb, bnb.CategoricalNB(class_prior=[0.2, 0.3, 0.5], alpha=[2.0, 3.0]).fit(codes, y), codes)
    nb = bnb.CategoricalNB(alpha={"0": series, -1: 2.0})
    refused(r"alpha\['0'\] can be read in two ways: its labels \[0, 1, 2\] are the classes", nb.fit, codes, y)
    nb.fit(codes, list("abcabc"))
    np.testing.assert_array_equal(nb.prior_.blocks[0].concentration[0], [0.2, 0.3, 0.5, 2.0, 2.0, 2.0])


def test_polars_has_no_labels():
    pl = pytest.importorskip("polars")
    nb = bnb.CategoricalNB(class_prior=pl.Series([0.2, 0.3, 0.5]), alpha=pl.Series([1.0, 2.0, 3.0])).fit(X, Y)
    assert_same_model(nb, bnb.CategoricalNB(class_prior=[0.2, 0.3, 0.5], alpha=[1.0, 2.0, 3.0]).fit(X, Y), X)
