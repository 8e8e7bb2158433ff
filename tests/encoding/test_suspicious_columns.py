"""Remarks on suspicious columns: the rules, clean tables, and when `fit` warns."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn import datasets
from sklearn.model_selection import GridSearchCV

import bayesnb as bnb
from bayesnb import SuspiciousColumnWarning, check_table
from tests import data
from tests.raises import refused

N = 240


def days(since_2020: np.ndarray) -> np.ndarray:
    """Dates so many days after the first of January 2020."""
    return np.datetime64("2020-01-01") + since_2020.astype("m8[D]")


def messy(n: int = N) -> tuple[pd.DataFrame, np.ndarray]:
    """A table as it comes from an export, and its labels."""
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], n)
    clean = cleaned(n)
    X = pd.DataFrame(
        {
            "colour": clean["colour"],
            "price": [f"${price:,.2f}" for price in clean["price"]],
            "rate": [f"{rate} %" for rate in clean["rate"]],
            "comment": [f"{word} on day {i}" for i, word in enumerate(clean["colour"])],
            "customer": [f"C{i:05d}" for i in rng.permutation(n)],
            "day": days(rng.permutation(n)).astype(str),
            "visits": np.where(rng.random(n) < 0.1, -999, clean["visits"]),
            "age": clean["age"],
            "age in years": clean["age"],
            "outcome": y,
        }
    )
    return X, y


def cleaned(n: int = N) -> pd.DataFrame:
    """The columns of the messy table, as they should be."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], n),
            "price": rng.lognormal(7, 1, n).round(2),
            "rate": rng.integers(0, 100, n),
            "visits": rng.poisson(30, n),
            "age": rng.normal(50, 9, n).round(1),
            "day": days(rng.integers(0, 1000, n)),
        }
    )


REMARKS = {
    "price": "numbers written as text",
    "rate": "numbers written as text",
    "comment": "distinct texts",
    "customer": "distinct texts",
    "day": "distinct texts",
    "visits": "far from all others",
    "age in years": "equal to column 'age'",
    "outcome": "equal to the label",
}


def suspicious(call) -> list[str]:
    """Texts of the warnings of suspicious columns that a call issues, every one of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if w.category is SuspiciousColumnWarning]


def remarks(X, y=None) -> dict[str, str]:
    found = check_table(X, y)["remarks"]
    return found[found != ""].to_dict()


# -- the rules -------------------------------------------------------------------------------------------


def test_each_suspicious_column_has_its_remark_and_no_other():
    found = remarks(*messy())
    assert found.keys() == REMARKS.keys()
    assert all(text in found[name] for name, text in REMARKS.items())
    assert [sum(text in found[name] for text in set(REMARKS.values())) for name in found] == [1] * len(found)
    assert "(-999)" in found["visits"]


def test_the_cleaned_table_has_no_remarks():
    assert remarks(cleaned(), messy()[1]) == {}
    assert suspicious(lambda: bnb.MixedNB().fit(cleaned(), messy()[1])) == []


def test_the_table_describes_each_column():
    times = pd.to_timedelta([1, 2, None, 4] * 3, unit="s")
    X = cleaned(12).assign(empty=[None] * 12, flag=[True, False] * 6, two=[0, 1] * 6, time=times)
    X.loc[0, "age"] = np.nan
    table = check_table(X)
    assert list(table.columns) == ["kind", "levels", "missing", "remarks"]
    assert table["kind"].to_dict() == {
        "colour": "levels", "price": "numbers", "rate": "numbers", "visits": "numbers", "age": "numbers",
        "day": "dates (days)", "empty": "levels", "flag": "levels", "two": "levels", "time": "durations (seconds)",
    }  # fmt: skip
    assert table["levels"].to_dict() == X.nunique().to_dict()
    assert table["missing"].to_dict() == X.isna().sum().to_dict()


@pytest.mark.parametrize(
    "texts",
    [
        ["1,200", "950", "12", "7"],
        ["1.234.567,89 €", "12 €", "0,5 €", "3 €"],
        ["£3", "-£4", "(£5)", "£1 000"],
        ["12.5", "3", ".5", "1e-3"],
        ["12%", "3%", "4 %", "99%"],
        [str(i) for i in range(18, 90)],  # ages
    ],
)
def test_numbers_written_as_text(texts):
    cells = [texts[i % len(texts)] for i in range(200)]
    assert "numbers written as text" in remarks(pd.DataFrame({"x": cells}))["x"]
    dirty = ["n/a" if i % 9 == 0 else cell for i, cell in enumerate(cells)]  # eight of nine, less than nine of ten
    assert remarks(pd.DataFrame({"x": dirty})) == {}


@pytest.mark.parametrize(
    "texts",
    [
        ["1", "2", "3"],  # grades
        [f"0{i}" for i in range(2139, 2160)],  # postal codes
        ["40-49", "50-59", "60-69"],
        ["01.02.2020", "02.02.2020", "03.02.2020"],
        ["12:30", "12:45"],
        ["5more", "2 doors", "$"],
        ["A1", "B2"],
    ],
)
def test_codes_are_no_numbers(texts):
    assert remarks(pd.DataFrame({"x": [texts[i % len(texts)] for i in range(200)]})) == {}


def test_a_declared_category_is_as_the_user_wants_it():
    X = pd.DataFrame({name: messy()[0][name].astype("category") for name in ("price", "customer")})
    assert remarks(X) == {}


def test_a_mark_may_be_the_largest_number_or_a_date():
    rng = np.random.default_rng(0)
    rows = rng.random(400) < 0.05
    X = pd.DataFrame(
        {
            "high": np.where(rows, 9999.0, rng.normal(size=400)),
            "both": np.where(rows, 9999, np.where(rng.random(400) < 0.1, -1, rng.integers(1000, 1100, 400))),
            "day": np.where(rows, np.datetime64("1900-01-01"), days(rng.integers(0, 300, 400))),
        }
    )
    found = remarks(X)
    assert "(9999)" in found["high"]
    assert "(-1 or 9999)" in found["both"]
    assert "(1900-01-01)" in found["day"]


def brute_force_mark(numbers: np.ndarray) -> bool:
    """The rule of the contract, in pandas, value by value."""
    column = pd.Series(numbers, dtype=float)
    for value in (column.min(), column.max()):
        others = column[column.notna() & (column != value)]
        n = (column == value).sum()
        if column.notna().sum() < 20 or n < 10 or n < 0.01 * len(column) or others.nunique() < 10:
            continue
        sd = (others.quantile(0.75, "lower") - others.quantile(0.25, "lower")) / 1.349
        if sd > 0 and (others - value).abs().min() > 10 * sd:
            return True
    return False


@given(st.integers(0, 2**32 - 1))
def test_marks_are_those_of_the_rule(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(15, 120))
    others = rng.choice([rng.normal(size=n).round(1), rng.poisson(3, n), rng.standard_cauchy(n).round(0)])
    mark = rng.choice([-999.0, -20.0, 15.0, 0.0])
    x = np.where(rng.random(n) < rng.choice([0.05, 0.2]), mark, others)
    x[rng.random(n) < 0.1] = np.nan
    x = np.r_[x, rng.normal(size=20 + n % 3)]
    # Quartiles differ by definition: within a tenth of the limit both answers are right.
    sure = {brute_force_mark(np.where(x == mark, mark * factor, x)) for factor in (0.9, 1.0, 1.1)}
    if len(sure) == 1 and len(np.unique(x[x == x])) > 2:
        assert bool(remarks(pd.DataFrame({"x": x}))) == sure.pop()


def test_copies_are_equal_in_every_cell():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60_000)
    almost = x.copy()
    almost[31_234] += 1e-9
    missing = np.where(rng.random(60_000) < 0.1, np.nan, x)
    X = np.column_stack([x, almost, missing, missing, x])
    assert remarks(X).keys() == {"3", "4"}
    assert "'0'" in remarks(X)["4"]


def test_large_integers_are_compared_exactly():
    ids = np.arange(40) * 1000 + 2**60
    assert remarks(pd.DataFrame({"tweet": ids, "next": ids + 1})) == {}
    assert remarks(np.column_stack([ids, ids + 1])) == {}
    assert remarks(pd.DataFrame({"tweet": ids, "again": ids})).keys() == {"again"}


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["a", "b"], [0.0, 1.0]])
def test_a_column_equal_to_the_label_whatever_the_type(labels):
    y = np.array(labels)[np.random.default_rng(0).integers(0, 2, 40)]
    assert "equal to the label" in remarks(pd.DataFrame({"x": y}), y)["x"]
    assert "equal to the label" in remarks(y[:, None], y.tolist())["0"]
    assert remarks(pd.DataFrame({"x": y}), y[::-1]) == {}


def test_numbers_and_booleans_that_are_equal_are_copies_of_the_label():
    y = np.random.default_rng(0).integers(0, 2, 40)
    assert remarks(pd.DataFrame({"x": y.astype(bool), "z": y.astype(float)}), y).keys() == {"x", "z"}


def test_tables_of_few_rows_have_no_remarks():
    X, y = messy()
    assert remarks(X[:19], y[:19]) == {}
    assert remarks(X[:40], y[:40]).keys() > {"price", "customer"}


def test_bad_input_is_refused_as_everywhere():
    refused("needs dense data", check_table, sp.csr_array(np.eye(3)), error=TypeError)
    refused("3 rows, y has 2", check_table, np.eye(3), [0, 1])
    refused("1D array", check_table, [1.0, 2.0])


# -- laws ------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(20, 60))
def test_remarks_do_not_depend_on_the_order_of_rows(seed, n):
    X, y = messy(n)
    order = np.random.default_rng(seed).permutation(n)
    pd.testing.assert_frame_equal(check_table(X, y), check_table(X.iloc[order], y[order]))


@pytest.mark.slow("tables of many rows")
def test_remarks_on_large_tables_do_not_depend_on_the_order_of_rows():
    X, y = messy(20_000)
    found = check_table(X, y)
    assert found.index[found["remarks"] != ""].tolist() == list(REMARKS)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(y))
        pd.testing.assert_frame_equal(found, check_table(X.iloc[order].reset_index(drop=True), y[order]))


def test_remarks_do_not_depend_on_the_container():
    X, y = messy()
    X.loc[3, ["price", "comment"]] = None
    X.loc[5, "age"] = np.nan
    found = check_table(X, y)
    rows = X.astype(object).where(X.notna(), None).to_numpy().tolist()
    named = found["remarks"].to_dict()
    assert check_table(pl.from_pandas(X), y)["remarks"].to_dict() == named
    assert check_table(pa.Table.from_pandas(X), y)["remarks"].to_dict() == named
    unnamed = [text.replace("'age'", "'7'") for text in named.values()]
    assert check_table(rows, y.tolist())["remarks"].tolist() == unnamed
    assert check_table(np.array(rows, object), y)["remarks"].tolist() == unnamed


# -- nothing to remark -----------------------------------------------------------------------------------


def public_tables() -> dict[str, tuple[object, object]]:
    """Clean public tables, as functions that read them."""
    found = {}
    for name in ("iris", "wine", "breast_cancer", "digits"):
        found[name] = lambda name=name: getattr(datasets, f"load_{name}")(return_X_y=True, as_frame=True)
    for scaled in (True, False):
        found[f"diabetes-{scaled}"] = lambda scaled=scaled: datasets.load_diabetes(
            return_X_y=True, as_frame=True, scaled=scaled
        )
    found["linnerud"] = lambda: (datasets.load_linnerud(as_frame=True).frame, None)
    found["watermelon"] = lambda: (bnb.datasets.load_watermelon().data, bnb.datasets.load_watermelon().target)
    for name in ("vote", "car", "mushroom", "breast.cancer"):
        found[name] = lambda name=name: (data.arff(name).X, data.arff(name).y)
    for name in ("adult-train", "adult-test", "pima"):
        found[name] = lambda name=name: last_is_label(pd.read_csv(data.path_of(f"{name}.csv"), header=None))
    return found


def last_is_label(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    return frame.iloc[:, :-1].rename(columns=str), frame.iloc[:, -1]


@pytest.mark.parametrize("name", public_tables())
def test_clean_public_tables_have_no_remarks(name):
    X, y = public_tables()[name]()
    if name.startswith("diabetes"):
        y = y > y.median()
    assert remarks(X, y) == {}


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_no_remarks(seed):
    rng = np.random.default_rng(seed)
    for n, width in ((60, 200), (20, 60), (3000, 10)):
        y = rng.integers(0, 2, n)
        for X in (
            rng.normal(size=(n, width)),
            rng.standard_cauchy((n, width)),
            rng.standard_cauchy((n, width)).round(),
            rng.integers(0, 2, (n, width)),
            (rng.random((n, width)) < 0.03).astype(float),  # many columns are equal by chance
            np.where(rng.random((n, width)) < 0.7, 0, rng.gamma(1, 5, (n, width)).round()),  # many zeros
            rng.geometric(0.01, (n, width)),
            rng.choice(["a", "b", "c"], (n, width)),
            days(rng.integers(0, 900, (n, width))),
            np.tile(np.arange(n)[:, None], (1, 1)),  # an identifier of integers is a number
        ):
            assert remarks(X, y) == {}


def test_constant_columns_are_no_copies():
    X = pd.DataFrame({"a": [1] * 100, "b": [1] * 100, "c": ["x"] * 100, "d": ["x"] * 100, "e": [None] * 100})
    assert remarks(X.assign(f=X["e"])) == {}


# -- the warning of fit ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nb",
    [
        bnb.MixedNB(),
        bnb.CategoricalNB(),
        bnb.TAN(),
        bnb.FeatureAveragedNB(bnb.MixedNB()),
        pytest.param(bnb.WeightedNB(), marks=pytest.mark.slow("the default of WeightedNB fits ten structures")),
        pytest.param(bnb.WeightedNB(bnb.MixedNB()), marks=pytest.mark.slow("fits weights")),
    ],
    ids=lambda nb: repr(nb).partition("(")[0],
)
def test_one_fit_warns_once_and_names_each_column(nb):
    X, y = messy()
    (text,) = suspicious(lambda: nb.fit(X, y))
    # Every value is a level of CategoricalNB, and every whole number of TAN, so that -999 is no outlier there.
    named = REMARKS.keys() - ({"visits"} if isinstance(nb, bnb.CategoricalNB | bnb.TAN) else set())
    assert all(text.count(f"'{name}'") == 1 for name in named)
    assert "colour" not in text
    assert "bayesnb.check_table(X, y)" in text
    assert "filterwarnings('ignore', category=bayesnb.SuspiciousColumnWarning)" in text


def test_numbers_are_inspected_by_classifiers_of_numbers():
    X, y = messy()
    X = X[["visits", "age", "age in years"]]
    for nb in (bnb.GaussianNB(), bnb.BinnedNB()):
        (text,) = suspicious(lambda nb=nb: nb.fit(X, y))
        assert "'visits': One value is" in text
        assert "'age in years': The column is equal to column 'age'" in text


def test_indicators_counts_and_sparse_rows_are_not_inspected():
    x = np.random.default_rng(0).integers(0, 2, 60)
    X = np.column_stack([x, x])
    for nb in (bnb.BernoulliNB(), bnb.MultinomialNB(), bnb.MixedNB(bernoulli=[0, 1])):
        assert suspicious(lambda nb=nb: nb.fit(X, 1 - x)) == []
    for nb in (bnb.BernoulliNB(), bnb.MultinomialNB(), bnb.WeightedNB()):
        assert suspicious(lambda nb=nb: nb.fit(sp.csr_array(X), 1 - x)) == []
    assert len(suspicious(lambda: bnb.CategoricalNB().fit(X, 1 - x))) == 1


def test_rows_of_weight_zero_are_not_inspected():
    X, y = messy()
    X, y = pd.concat([cleaned(), X.iloc[:1]], ignore_index=True), np.r_[y, y[:1]]
    double = pd.DataFrame({"age": X["age"], "twice": X["age"]})
    double.loc[N, "twice"] = -1.0
    assert suspicious(lambda: bnb.GaussianNB().fit(double, y)) == []
    assert len(suspicious(lambda: bnb.GaussianNB().fit(double, y, np.r_[np.ones(N), 0]))) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda nb, X, y: bnb.compare_estimates(nb, X, y, repeats=2, progress=None),
        lambda nb, X, y: bnb.learning_curve(bnb.WeightedNB(nb), X, y, sizes=[40], repeats=2, progress=None),
        lambda nb, X, y: bnb.loo(nb.fitted, X, y),
        lambda nb, X, y: nb.fitted.refit(X, y),
        lambda nb, X, y: bnb.conformal(nb.fitted, X, y),
        lambda nb, X, y: bnb.tune_alpha(nb.fitted, X, y),
        lambda nb, X, y: nb.fitted.predict_proba(X),
        lambda nb, X, y: bnb.CategoricalNB().partial_fit(X, y, classes=["no", "yes"]),
    ],
    ids=["compare_estimates", "learning_curve", "loo", "refit", "conformal", "tune_alpha", "predict", "partial_fit"],
)
@pytest.mark.slow("compares and curves fit a dozen classifiers", but="loo")
def test_fits_inside_another_call_do_not_warn(call):
    X, y = messy()
    X = X[["colour", "price", "age", "age in years"]]
    nb = bnb.CategoricalNB()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nb.fitted = bnb.CategoricalNB().fit(X, y)
    assert suspicious(lambda: call(nb, X, y)) == []


def test_a_grid_search_shows_the_warning_once():
    X, y = messy()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        GridSearchCV(bnb.CategoricalNB(), {"alpha": [0.5, 1.0, 2.0]}, cv=3).fit(X, y)
    shown = [w for w in caught if w.category is SuspiciousColumnWarning]
    assert [w.filename for w in shown] == [__file__]


def test_the_warning_has_no_numbers_of_the_data():
    X, y = messy()
    (text,) = suspicious(lambda: bnb.MixedNB().fit(X, y))
    assert not any(character.isdigit() for character in text)


def test_the_documented_filter_silences_the_warning():
    X, y = messy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=bnb.SuspiciousColumnWarning)
        bnb.CategoricalNB().fit(X, y)


def test_many_columns_are_not_all_named():
    X, y = messy()
    X = pd.DataFrame({f"c{j}": X["age"] for j in range(50)})
    (text,) = suspicious(lambda: bnb.GaussianNB().fit(X, y))
    assert "'c6' and others: The column" in text
    assert len(text) < 600


# -- labels and levels of two types ------------------------------------------------------------------

ALIKE = [("yes", True), ("No", False), ("1", 1), ("1.0", 1), ("True", True), ("1", 1.0), ("2.0", 2), ("2", 2.0)]
APART = [
    ("1", "1.0"),
    ("yes", "True"),
    ("yes", 1),
    ("a", 1),
    ("?", 2),
    (True, 0),
    (1, 3.0),
    ("nan", 1.0),
    ("", False),
]
COLUMN = [["u"], ["v"], ["u"], ["v"]]


def said(pair) -> str:
    return " and ".join(f"{value!r} ({type(value).__name__})" for value in sorted(pair, key=lambda v: type(v).__name__))


def counts(labels, levels=("u", "v")) -> list[tuple]:
    """A table of counts of one column."""
    rows = [(label, None, None, None, 3, None, None) for label in labels]
    return rows + [(label, "0", None, level, 1, None, None) for label in labels for level in levels]


CALLS = {
    "fit": lambda X, y: bnb.CategoricalNB().fit(X, y),
    "weighted": lambda X, y: bnb.WeightedNB(bnb.CategoricalNB(), "temperature").fit(X * 6, y * 6),
    "first batch": lambda X, y: bnb.CategoricalNB().partial_fit(X, y, classes=y),
    "later batch": lambda X, y: bnb.CategoricalNB().fit(X[:1], y[:1]).partial_fit(X[1:], y[1:], classes=y),
    "within a later batch": lambda X, y: bnb.CategoricalNB().fit([["u"]], ["ash"]).partial_fit(X, y, classes=y),
    "stream": lambda X, y: bnb.fit_stream(bnb.CategoricalNB(), [(X[:1], y[:1]), (X[1:], y[1:])], progress=False),
    "counts": lambda X, y: bnb.from_counts(
        bnb.CategoricalNB(), counts(dict.fromkeys(y), dict.fromkeys(x for (x,) in X))
    ),
}


@pytest.mark.parametrize(
    ("call", "pair"), [*((CALLS["fit"], pair) for pair in ALIKE), *((call, ALIKE[0]) for call in CALLS.values())]
)
def test_labels_and_levels_of_two_types_that_mean_the_same(call, pair):
    (text,) = suspicious(lambda: call(COLUMN, [*pair, *pair]))
    assert text.startswith("y has suspicious labels")
    assert (
        f"labels: Values of two types print alike or mean the same, but count as different ones: {said(pair)}." in text
    )
    (text,) = suspicious(lambda: call([[pair[0]], [pair[1]]] * 2, ["ash", "ash", "elm", "elm"]))
    assert f"'0': Values of two types print alike or mean the same, but count as different ones: {said(pair)}." in text


@pytest.mark.parametrize(
    ("call", "pair"), [*((CALLS["fit"], pair) for pair in APART), *((call, APART[0]) for call in CALLS.values())]
)
def test_values_that_do_not_mean_the_same_have_no_remark(call, pair):
    assert suspicious(lambda: call(COLUMN, [*pair, *pair])) == []
    assert suspicious(lambda: call([[pair[0]], [pair[1]]] * 2, ["ash", "ash", "elm", "elm"])) == []


def test_one_warning_names_labels_and_all_columns():
    X = [["1", True, "a"], [1, "true", "b"], ["2", False, "a"], [2, "false", "b"]]
    (text,) = suspicious(lambda: bnb.CategoricalNB().fit(X, ["yes", True, "no", False]))
    assert text.startswith("X has suspicious columns")
    for part in (
        "labels: ",
        "'0': ",
        "'1': ",
        said((True, "yes")),
        said((False, "no")),
        said((1, "1")),
        said((2, "2")),
    ):
        assert part in text
    assert "'2': " not in text
    assert remarks(X).keys() == {"0", "1"}


def test_types_that_were_told_are_not_told_again():
    nb = bnb.CategoricalNB()
    assert len(suspicious(lambda: nb.fit([["1"], [1]], ["ash", "elm"]))) == 1
    assert suspicious(lambda: nb.partial_fit([["1"], [1]], ["ash", "elm"])) == []
    assert len(suspicious(lambda: nb.partial_fit([["1.0"]], ["ash"]))) == 1
