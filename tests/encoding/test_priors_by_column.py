"""Priors of numbers by column: columns that are named have the given prior, the others the default one."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import bayesnb as bnb
from bayesnb.encoding.table import Positions
from bayesnb.families import EmpiricalCounts, EmpiricalDuration, EmpiricalNormal, EmpiricalRate
from tests.encoding.test_labelled_vectors import CLASSES, COUNTS, NUMBERS, Y, assert_same_model
from tests.raises import refused

NORMAL = bnb.NormalInverseGamma(loc=1.0, kappa=0.5, concentration=2.0, rate=3.0)
FAMILIES = {
    "GaussianNB": (bnb.GaussianNB, NORMAL, EmpiricalNormal("pooled", 2.0), NUMBERS),
    "PoissonNB": (bnb.PoissonNB, bnb.GammaPoisson(2.0, 0.5), EmpiricalRate(3.0), COUNTS),
    # Under dispersion="evidence" the columns share the weights of the dispersions.
    "NegativeBinomialNB": (
        partial(bnb.NegativeBinomialNB, dispersion=1.5),
        bnb.BetaNegativeBinomial(2.0, 0.5),
        EmpiricalCounts(3.0),
        COUNTS,
    ),
    "ExponentialNB": (bnb.ExponentialNB, bnb.GammaExponential(1.5, 2.0), EmpiricalDuration(2.0), NUMBERS),
}
every_family = pytest.mark.parametrize("name", FAMILIES)
quick_first = pytest.mark.slow("compiles kernels of its own", but="GaussianNB")


def fields(nb):
    """{field: (C, F)} of the prior of the only block."""
    family = nb.prior_.blocks[0]
    return {name: np.asarray(getattr(family, name)) for name in family.least if name not in family.axes}


# -- laws ----------------------------------------------------------------------------------------


@quick_first
@every_family
@given(data=st.data())
def test_each_column_has_the_prior_that_it_has_alone(name, data):
    """The evidence of all columns is the sum of those of single columns, class by class one factor too often."""
    make, family, empirical, rows = FAMILIES[name]
    choices = st.sampled_from([family, empirical, "pooled"])
    entries = data.draw(st.dictionaries(st.sampled_from(["a", "b", "c"]), choices))
    others = data.draw(st.none() | choices)
    prior = entries if others is None else {None: others, **entries}
    if others is None and prior and data.draw(st.booleans()):
        prior = pd.Series(prior, dtype=object)
    nb = make(prior=prior).fit(rows, Y)
    default = make().prior if others is None else others
    alone = {column: make(prior=entries.get(column, default)).fit(rows[[column]], Y) for column in rows}
    for j, column in enumerate(rows):
        for field, values in fields(alone[column]).items():
            np.testing.assert_allclose(fields(nb)[field][:, [j]], values, rtol=1e-14)
    of_classes = bnb.CategoricalNB().fit(np.full((len(Y), 1), "x"), Y).log_evidence_
    total = sum(nb.log_evidence_ for nb in alone.values()) - 2 * of_classes
    assert nb.log_evidence_ == pytest.approx(total, rel=1e-12)


def test_fields_of_one_column_may_name_the_classes():
    by_class = {"oak": 1.0, "ash": 2.0, "elm": 3.0}
    priors = [
        bnb.NormalInverseGamma(loc=form(by_class), kappa=[2.0, 3.0, 1.0], concentration=1.0, rate=2.0)
        for form in (dict, pd.Series)
    ]
    priors.append(bnb.NormalInverseGamma(loc=np.array([[2.0], [3.0], [1.0]]), kappa=[2, 3, 1], concentration=1, rate=2))
    for prior in priors:
        found, default = (
            fields(bnb.GaussianNB(prior={"b": prior}).fit(NUMBERS, Y)),
            fields(bnb.GaussianNB().fit(NUMBERS, Y)),
        )
        assert found["loc"][:, 1].tolist() == found["kappa"][:, 1].tolist() == [2.0, 3.0, 1.0]
        np.testing.assert_array_equal(found["loc"][:, [0, 2]], default["loc"][:, [0, 2]])
    partly = bnb.NormalInverseGamma(loc={"oak": 1.0}, kappa=1.0, concentration=1.0, rate=1.0)
    refused(r"prior\['b'\].loc must name exactly the classes", bnb.GaussianNB(prior={"b": partly}).fit, NUMBERS, Y)


def test_a_complete_prior_of_named_columns_is_that_of_its_arrays():
    named = {"c": NORMAL, "a": NORMAL, "b": bnb.NormalInverseGamma(0.0, 1.0, 1.0, 1.0)}
    arrays = bnb.NormalInverseGamma([1.0, 0.0, 1.0], [0.5, 1.0, 0.5], [2.0, 1.0, 2.0], [3.0, 1.0, 3.0])
    assert_same_model(*(bnb.GaussianNB(prior=prior).fit(NUMBERS, Y) for prior in (named, arrays)), NUMBERS)
    assert not callable(bnb.GaussianNB(prior=named).fit(NUMBERS, Y).fitted_.empirical_prior.blocks[0])


# -- estimators ----------------------------------------------------------------------------------

MIXED = NUMBERS.assign(count=COUNTS["a"], colour=np.tile(["red", "blue", "blue"], 20))

PEAKS = MIXED.assign(
    b=0.1 * MIXED["b"] + np.where(Y == "oak", np.arange(60) % 2 * 8.0 - 4.0, np.arange(60) % 3 * 6.0 - 6.0)
)


def test_a_column_that_a_prior_names_has_its_kind():
    """Exponential numbers would be binned; a normal prior of one is one of a normal density."""
    priors = {"gaussian_prior": {"b": NORMAL}, "poisson_prior": {"count": bnb.GammaPoisson(2.0, 1.0)}}
    nb = bnb.MixedNB(numbers="binned", **priors).fit(MIXED, Y)
    assert nb.kinds_ == {"a": "binned", "b": "gaussian", "c": "binned", "count": "poisson", "colour": "categorical"}
    assert fields_of(nb, 1)["loc"].tolist() == [[1.0]] * 3
    assert bnb.MixedNB().fit(PEAKS, Y).kinds_["b"] == "binned"
    assert bnb.MixedNB(gaussian_prior={"b": NORMAL}).fit(PEAKS, Y).kinds_["b"] == "gaussian"


def fields_of(nb, block):
    family = nb.prior_.blocks[block]
    return {name: np.asarray(getattr(family, name)) for name in family.least if name not in family.axes}


@pytest.mark.slow("compiles kernels of its own", but="NetworkNB")
@pytest.mark.parametrize("name", ["NetworkNB", "KDB", "WeightedNB"])
def test_structures_and_weights(name):
    prior = {"b": NORMAL}
    make = {
        "NetworkNB": lambda: bnb.NetworkNB({}, gaussian_prior=prior),
        "KDB": lambda: bnb.KDB(1, gaussian_prior=prior),
        "WeightedNB": lambda: bnb.WeightedNB(bnb.MixedNB(gaussian_prior=prior)),
    }[name]
    nb = make().fit(PEAKS, Y)
    encoding, model = nb.fitted_.encoding, nb.fitted_.prior
    at = [
        (b, list(c.names).index("b")) for b, c in enumerate(encoding.blocks) if c.kind == "gaussian" and "b" in c.names
    ]
    assert len(at) == 1
    b, f = at[0]
    assert np.asarray(model.blocks[b].rate)[:, f].tolist() == [3.0] * 3
    assert np.isfinite(nb.predict_log_proba(PEAKS)).all()


def test_rows_without_labels_pool_the_other_columns():
    nb = bnb.fit_em(bnb.GaussianNB(prior={"b": NORMAL}), NUMBERS[:40], Y[:40], NUMBERS[40:]).estimator
    assert list(nb.prior) == [None, "b"]
    assert (nb.prior[None], repr(nb.prior["b"])) == ("pooled", repr(NORMAL))
    loc = fields(nb)["loc"]
    assert loc[0, 1] == 1.0
    assert loc[0, 0] == pytest.approx(NUMBERS["a"].mean(), rel=1e-12)


def test_tuned_priors_keep_what_is_given(tmp_path):
    nb = bnb.GaussianNB(prior={"b": NORMAL}).fit(NUMBERS, Y)
    tuned = bnb.tune_alpha(nb, NUMBERS, Y, by="evidence", bounds=(1e-2, 1e2), tune="a")
    found = fields(tuned.estimator)
    np.testing.assert_allclose(found["concentration"], tuned.values["a"])
    np.testing.assert_allclose(found["rate"][:, 1], 1.5 * tuned.values["a"])  # the variance b/a stays
    assert (found["loc"][:, 1], found["kappa"][:, 1]) == pytest.approx((1.0, 0.5))
    bnb.save(tuned.estimator, tmp_path / "model")
    assert_same_model(bnb.load(tmp_path / "model"), tuned.estimator, NUMBERS)


@quick_first
@every_family
def test_files_copies_and_other_priors(name, tmp_path):
    make, family, empirical, rows = FAMILIES[name]
    nb = make(prior={"b": family, "c": empirical})
    assert repr(clone(nb)) == repr(nb)
    nb = clone(nb).fit(rows, Y)
    bnb.save(nb, tmp_path / "model")
    loaded = bnb.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(rows), nb.predict_proba(rows))
    other = make().fit(rows, Y).with_priors({"prior": nb.prior})
    streamed = bnb.fit_stream(clone(nb), [(rows[:9], Y[:9]), (rows[9:], Y[9:])], classes=CLASSES, progress=False)
    for same in (loaded, other, streamed):
        assert same.log_evidence_ == pytest.approx(nb.log_evidence_, rel=1e-12)
    forgotten = clone(nb).fit(rows, Y).partial_fit(rows[:9], Y[:9]).forget(rows[:9], Y[:9])
    assert forgotten.log_evidence_ == pytest.approx(nb.log_evidence_, rel=1e-9)


# -- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bnb.GaussianNB(prior={"d": NORMAL}), "prior: there is no column 'd'; the columns of X are"),
        (
            lambda: bnb.GaussianNB(prior={"b": 2.0}),
            r"prior\['b'\]=2.0 is unknown; use 'within', 'pooled' or a bayesnb.Nor",
        ),
        (lambda: bnb.GaussianNB(prior={"b": "flat"}), r"prior\['b'\]='flat' is unknown"),
        (lambda: bnb.GaussianNB(prior={None: "flat", "b": NORMAL}), r"prior\[None\]='flat' is unknown"),
        (lambda: bnb.GaussianNB(prior={"b": NORMAL, 1: NORMAL}), "prior names column 'b' twice"),
        (
            lambda: bnb.GaussianNB(prior={"b": bnb.NormalInverseGamma(0.0, -1.0, 1.0, 1.0)}),
            r"prior\['b'\].kappa is -1.0; it must be",
        ),
        (
            lambda: bnb.PoissonNB(prior={"b": NORMAL}),
            r"prior\['b'\]=.* is unknown; use 'pooled' or a bayesnb.GammaPoisson",
        ),
        (
            lambda: bnb.GaussianNB(prior=[NORMAL] * 3),
            "prior=.* is unknown; use 'within', 'pooled' or a bayesnb.NormalInv",
        ),
        (
            lambda: bnb.FeatureAveragedNB(
                bnb.GaussianNB(prior={"b": bnb.NormalInverseGamma(dict(zip(CLASSES, range(3), strict=True)), 1, 1, 1)})
            ),
            "The prior differs between classes",
        ),
    ],
)
def test_priors_that_fit_nothing(make, message):
    rows = COUNTS.astype(float)
    refused(message, make().fit, rows, Y)


def test_columns_of_other_kinds():
    both = bnb.MixedNB(poisson=["count"], gaussian_prior={"count": NORMAL})
    refused(
        "gaussian_prior names column 'count', which is listed as poisson. Remove one of the two", both.fit, MIXED, Y
    )
    levels = bnb.NetworkNB({}, gaussian_prior={"colour": NORMAL})
    refused("gaussian_prior names the column 'colour', whose kind is categorical", levels.fit, MIXED, Y)
    nb = bnb.MixedNB(numbers="binned").fit(MIXED, Y)
    refused(
        "gaussian_prior names the column 'b', whose kind is binned", nb.with_priors, {"gaussian_prior": {"b": NORMAL}}
    )
    partly = bnb.NormalInverseGamma({"a": 1.0, "b": 1.0}, 1.0, 1.0, 1.0)
    said = r"prior.loc must name exactly the columns .* {column: prior}"
    refused(said, bnb.GaussianNB(prior=partly).fit, NUMBERS, Y)


def test_a_fit_to_words_does_not_list_the_words(monkeypatch):
    """Names of columns are made only where a prior names one; a fit to a few messages otherwise makes 8 V names."""
    made = []
    name = Positions.__getitem__
    monkeypatch.setattr(Positions, "__getitem__", lambda self, j: made.append(j) or name(self, j))
    bnb.MultinomialNB().fit(scipy.sparse.csr_matrix(np.eye(4, 1_000)), [0, 0, 1, 1])
    assert len(made) < 100
