"""Concentrations of one column by class and level: arrays, DataFrames and mappings say the same, by name."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import bayesnb as bnb
from tests.encoding.test_labelled_vectors import CLASSES, COUNTS, LEVELS, NAMED_ALPHA, NETWORK, X, Y, assert_same_model
from tests.raises import refused

BY_LEVEL = ("CategoricalNB", "MixedNB", "TAN", "SPODE", "NetworkNB", "AODE")
_TABLE = np.array([[2.0, 1.0, 0.5], [1.0, 4.0, 0.25], [3.0, 0.1, 1.0]])
ROWS = dict(zip(CLASSES, _TABLE, strict=True))


def thorough(names):
    quick = pytest.mark.slow("compiles kernels of its own")
    return [pytest.param(name, marks=() if name in ("CategoricalNB", "MixedNB") else quick) for name in names]


def table_forms(table, levels):
    """The same concentrations (C, K) in every form that names classes, in an order that is not the model's."""
    frame = pd.DataFrame(table, index=CLASSES, columns=pd.Index(levels, dtype=object))
    shuffled = frame.iloc[::-1, ::-1]
    return {
        "array": table,
        "lists": table.tolist(),
        "DataFrame": shuffled,
        "dicts": {label: dict(row) for label, row in shuffled.iterrows()},
        "Series by class of Series": pd.Series({label: row for label, row in shuffled.iterrows()}, dtype=object),
        "arrays by class": {label: row[levels].to_numpy() for label, row in shuffled.iterrows()},
    }


def concentrations(nb, column):
    """Prior concentrations (C, K) of one column without parents, by the estimator's own order."""
    block = next(b for b, columns in enumerate(nb.encoding_.blocks) if column in columns.names)
    columns = nb.encoding_.blocks[block]
    return nb.prior_.blocks[block].concentration[:, np.array(columns.axis()[0]) == list(columns.names).index(column)]


# -- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", thorough(BY_LEVEL))
@given(data=st.data())
def test_all_forms_are_the_same_prior(name, data):
    make, rows = NAMED_ALPHA[name]
    columns = [column for column in rows if name != "MixedNB" or column != "age"]
    column = data.draw(st.sampled_from(columns))
    levels = LEVELS[column]
    shape = (len(CLASSES), len(levels))
    drawn = data.draw(st.lists(st.floats(0.05, 20.0), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    forms = table_forms(np.reshape(drawn, shape), levels)
    first, *others = [make(alpha={column: entry}).fit(rows, Y) for entry in forms.values()]
    for other in others:
        assert_same_model(first, other, rows)
    listed = [forms["DataFrame"] if other == column else 1.0 for other in rows]
    assert_same_model(first, make(alpha=listed).fit(rows, Y), rows)


def test_concentrations_are_those_of_dirichlet_means():
    """By hand: (n + α)/(n_c + Σ α) in each class; one level of one class is named, the others are 1."""
    nb = bnb.CategoricalNB(alpha={"colour": {"oak": {"green": 7.0}, "ash": 1.0, "elm": [0.5, 2.0, 3.0]}}).fit(X, Y)
    alpha = {"ash": [1.0, 1.0, 1.0], "elm": [0.5, 2.0, 3.0], "oak": [1.0, 7.0, 1.0]}
    for c, label in enumerate(CLASSES):
        count = X.loc[label == Y, "colour"].value_counts()
        expected = np.array([count.get(v, 0) for v in LEVELS["colour"]]) + alpha[label]
        np.testing.assert_allclose(np.exp(nb.feature_log_prob_[0][c]), expected / expected.sum(), rtol=1e-13)


def test_words_and_presence_by_class():
    by_class = {"oak": 3.0, "ash": 0.5, "elm": 1.0}
    words = bnb.MultinomialNB(alpha={"b": by_class}).fit(COUNTS, Y)
    expected = np.ones((3, 3))
    expected[:, 1] = [0.5, 1.0, 3.0]
    np.testing.assert_array_equal(words.prior_.blocks[0].concentration, expected)
    frame = pd.DataFrame({"present": [3.0, 0.5, 1.0]}, index=["oak", "ash", "elm"])
    presence = bnb.BernoulliNB(alpha={"b": frame}).fit(COUNTS, Y)
    np.testing.assert_array_equal(concentrations(presence, "b"), [[1.0, 0.5], [1.0, 1.0], [1.0, 3.0]])
    same = bnb.BernoulliNB(alpha={"b": {label: {"present": a} for label, a in by_class.items()}}).fit(COUNTS, Y)
    assert_same_model(presence, same, COUNTS)


def test_a_structure_repeats_the_row_of_the_class_for_all_values_of_the_parents():
    nb = bnb.NetworkNB(NETWORK, alpha={"bark": pd.DataFrame(_TABLE[:, :2], CLASSES, LEVELS["bark"])}).fit(X, Y)
    table = next(t for n, t in zip(nb.encoding_.blocks[0].names, prior_tables(nb), strict=True) if n == "bark")
    np.testing.assert_array_equal(table, np.broadcast_to(_TABLE[:, None, :2], (3, 3, 2)))


def prior_tables(nb):
    return nb.encoding_.blocks[0].tables(nb.prior_.blocks[0].concentration)


# -- levels that are named ------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["DataFrame", "dicts", "Series by class of Series"])
def test_a_level_that_is_named_is_declared(form):
    entry = table_forms(_TABLE, ["blue", "purple", "red"])[form]
    nb = bnb.CategoricalNB(alpha={"colour": entry}).fit(X, Y)
    assert nb.categories_[0].tolist() == ["blue", "green", "purple", "red"]
    np.testing.assert_array_equal(concentrations(nb, "colour"), np.insert(_TABLE, 1, 1.0, axis=1))
    declared = {"colour": ["blue", "green", "purple", "red"]}
    same = bnb.CategoricalNB(alpha={"colour": np.insert(_TABLE, 1, 1.0, axis=1)}, categories=declared).fit(X, Y)
    assert nb.log_evidence_ == pytest.approx(same.log_evidence_, rel=1e-12)
    fixed = bnb.CategoricalNB(alpha={"colour": entry}, categories={"colour": LEVELS["colour"]})
    refused(r"alpha\['colour'\]\['.*'\] names 'purple', which is not a level of column 'colour'", fixed.fit, X, Y)


def test_levels_of_numbers_that_are_named_by_class_are_levels_in_a_mixed_table():
    frame = pd.DataFrame({"a": np.tile([0.5, 1.5, 2.5], 20), "b": np.arange(60) / 7})
    by_class = pd.DataFrame(_TABLE, CLASSES, [0.5, 1.5, 2.5])
    nb = bnb.MixedNB(numbers="gaussian", alpha={"a": by_class}).fit(frame, Y)
    assert nb.kinds_ == {"a": "categorical", "b": "gaussian"}
    np.testing.assert_array_equal(concentrations(nb, "a"), _TABLE)
    by_class = bnb.MixedNB(numbers="gaussian", alpha={"b": dict.fromkeys(CLASSES, 2.0)})
    refused("alpha names the column 'b', whose kind is gaussian", by_class.fit, frame, Y)


def test_batches_streams_and_other_priors():
    entry = table_forms(_TABLE, ["blue", "purple", "red"])["DataFrame"]
    nb = bnb.CategoricalNB(alpha={"colour": entry, "bark": dict(zip(CLASSES, [2.0, 1.0, 0.5], strict=True))})
    whole = clone(nb).fit(X, Y)
    counted = clone(nb).partial_fit(X[:9], Y[:9], CLASSES).partial_fit(X[9:], Y[9:])
    streamed = bnb.fit_stream(clone(nb), [(X[:9], Y[:9]), (X[9:], Y[9:])], classes=CLASSES, progress=False)
    other = bnb.CategoricalNB().fit(X, Y).with_priors({"alpha": nb.alpha})
    for same in (counted, streamed, other):
        assert same.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-12)
        assert_same_model(same, whole, X)


# -- files and copies ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", table_forms(_TABLE, LEVELS["colour"]))
@pytest.mark.parametrize("name", ["CategoricalNB", *thorough(["NetworkNB", "FeatureAveragedNB"])])
def test_files_and_copies(name, form, tmp_path):
    make, rows = NAMED_ALPHA[name]
    table = np.broadcast_to(_TABLE[0], (3, 3)) if name == "FeatureAveragedNB" else _TABLE
    nb = make(alpha={"colour": table_forms(np.array(table), LEVELS["colour"])[form]})
    assert repr(clone(nb)) == repr(nb)
    nb = clone(nb).fit(rows, Y)
    bnb.save(nb, tmp_path / "model")
    loaded = bnb.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(rows), nb.predict_proba(rows))
    stored, original = (getattr(model, "estimator", model).alpha["colour"] for model in (loaded, nb))
    assert type(stored) is type(original)
    if form == "DataFrame":
        pd.testing.assert_frame_equal(stored, original, check_column_type=False)
    if hasattr(nb, "partial_fit"):
        again = [model.partial_fit(rows[:9], Y[:9]).predict_proba(rows) for model in (loaded, nb)]
        np.testing.assert_array_equal(*again)


# -- labels that can be read in two ways -----------------------------------------------------------

GRADES = pd.DataFrame({"before": ["low", "mid", "high", "low", "mid", "high"] * 4})
NOW = ["low", "high", "low", "high", "high", "low"] * 4


def test_classes_that_are_levels_too():
    fit = bnb.CategoricalNB(alpha={"before": {"low": 2.0, "high": 1.0}}).fit
    message = (
        r"alpha\['before'\] can be read in two ways: its labels \['low', 'high'\] are the classes, and some are "
        r"levels of column 'before'. Write {class: {level: number}}"
    )
    refused(message, fit, GRADES, NOW)
    refused(message, bnb.CategoricalNB(alpha={"before": pd.Series({"low": 2.0, "high": 1.0})}).fit, GRADES, NOW)
    by_level = {label: {"low": 2.0, "high": 1.0} for label in ("low", "high")}
    nb = bnb.CategoricalNB(alpha={"before": by_level}).fit(GRADES, NOW)
    np.testing.assert_array_equal(concentrations(nb, "before"), [[1.0, 2.0, 1.0]] * 2)  # high, low, mid
    by_class = {"low": 2.0, "high": [1.0] * 3}
    nb = bnb.CategoricalNB(alpha={"before": by_class}).fit(GRADES, NOW)
    np.testing.assert_array_equal(concentrations(nb, "before"), [[1.0] * 3, [2.0] * 3])


def test_some_classes_that_are_levels_too_are_levels():
    nb = bnb.CategoricalNB(alpha={"before": {"low": 2.0, "top": 0.5}}).fit(GRADES, NOW)
    assert nb.categories_[0].tolist() == ["high", "low", "mid", "top"]
    np.testing.assert_array_equal(concentrations(nb, "before"), [[1.0, 2.0, 1.0, 0.5]] * 2)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"oak": 2.0},
            r"alpha\['colour'\] must name exactly the classes. It names \['oak'\]; the classes are \['ash', ",
        ),
        ({"oak": 2.0, "elm": 1.0, "fir": 1.0}, r"must name exactly the classes. It names \['oak', 'elm', 'fir'\]"),
        ({"oak": {"green": 2.0}}, r"must name exactly the classes. It names \['oak'\]"),
        (pd.DataFrame({"green": [1.0, 2.0]}, index=["oak", "elm"]), r"must name exactly the classes. It names"),
        (pd.DataFrame(_TABLE), r"must name exactly the classes. It names \[0, 1, 2\]"),
        (pd.DataFrame(_TABLE, index=CLASSES), r"with the default index 0 to 2, and the levels of column 'colour'"),
        (pd.DataFrame(_TABLE, index=["oak", "oak", "elm"]), "is a DataFrame whose index names 'oak' more than once"),
        (pd.DataFrame(_TABLE, CLASSES, ["red", "red", "blue"]), "whose index names 'red' more than once"),
        (pd.DataFrame(-_TABLE, CLASSES, LEVELS["colour"]), r"alpha\['colour'\]\['ash'\]\['blue'\] is -2.0"),
        ({"oak": 1.0, "elm": 1.0, "ash": [1.0, 2.0]}, r"alpha\['colour'\]\['ash'\] has shape \(2,\); expected one"),
        (
            {"oak": 1.0, "elm": 1.0, "ash": _TABLE},
            r"alpha\['colour'\]\['ash'\] has shape \(3, 3\); expected one number",
        ),
        (_TABLE[:2], r"alpha\['colour'\] has shape \(2, 3\); expected one number, .* = \(3, 3\)"),
        ({"green": {"oak": 1.0, "elm": 1.0, "ash": 1.0}}, r"must name exactly the classes. It names \['green'\]"),
    ],
)
def test_entries_that_fit_nothing(entry, message):
    nb = bnb.CategoricalNB().fit(X, Y)
    before = nb.fitted_
    refused(message, nb.set_params(alpha={"colour": entry}).fit, X, Y)
    assert nb.fitted_ is before


def test_totals_and_trees_have_one_number_for_all_classes():
    by_class = {"age": dict.fromkeys(CLASSES, 2.0)}
    refused(r"alpha\['age'\]=.* must be one number. With tables", bnb.KDB(alpha=by_class).fit, X, Y)
    frame = {"age": pd.DataFrame(_TABLE, index=CLASSES)}
    refused(r"alpha\['age'\]=.* must be one number. With tables", bnb.KDB(alpha=frame).fit, X, Y)
    averaged = bnb.FeatureAveragedNB(bnb.CategoricalNB(alpha={"colour": _TABLE}))
    refused("The prior differs between classes", averaged.fit, X, Y)
