"""Classifiers with structure follow scikit-learn's conventions and refuse bad input unchanged."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import bayesnb as bnb
from bayesnb.estimators.structured import StructuredNB
from tests.estimators.cases import state
from tests.estimators.networks import table
from tests.raises import refused
from tests.strategies import variants

X, Y = table(60, 0)
FRAME = pd.DataFrame(X, columns=["sky", "wind", "sea", "boat"]).assign(size=np.arange(60) + 0.5)
ALL = [bnb.NetworkNB({1: [0, 2]}), bnb.TAN(), bnb.TAN("evidence", alpha=0.5), bnb.SPODE(2), bnb.AODE(3)]
ALL += [bnb.TreeAveragedNB(0.5), bnb.KDB(2, None), bnb.NetworkNB({1: [0, 2]}, tables="context")]
every = pytest.mark.parametrize("nb", [pytest.param(nb, id=repr(nb)) for nb in ALL])


# -- names -------------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("frame", [FRAME, pl.DataFrame(dict(FRAME.items()))], ids=["pandas", "polars"])
def test_names_of_columns(frame):
    nb = bnb.NetworkNB({"boat": ["sea", "sky"], "sky": "wind"}).fit(frame, Y)
    parents = {"sky": "wind", "wind": None, "sea": None, "boat": ("sea", "sky"), "size": None}
    assert nb.parents_ == parents
    assert nb.feature_names_in_.tolist() == list(FRAME)
    assert bnb.NetworkNB(parents).fit(frame, Y).parents_ == parents
    by_index = bnb.NetworkNB({3: [2, 0], 0: 1}).fit(frame, Y)
    np.testing.assert_array_equal(by_index.predict_proba(frame), nb.predict_proba(frame))
    assert set(bnb.SPODE("sea").fit(frame, Y).parents_.values()) == {None, "sea"}
    assert bnb.TAN(root="boat").fit(frame, Y).parents_["boat"] is None
    member = bnb.AODE().fit(frame, Y).members_[3]
    assert member.parents_ == {"sky": "boat", "wind": "boat", "sea": "boat", "boat": None, "size": None}
    np.testing.assert_array_equal(member.feature_names_in_, nb.feature_names_in_)
    refused("feature names", nb.predict, frame.rename({"sky": "x"}, **({"axis": 1} if frame is FRAME else {})))


def test_dtypes_of_a_frame():
    frame = FRAME.assign(flag=np.arange(60) % 3 == 0, count=np.arange(60) % 4, rate=np.float32(1.5) * np.arange(60))
    frame = frame.assign(two=1.5 * (Y == "elm"), whole=np.arange(60.0))
    frame["kind"] = pd.Categorical(np.where(np.arange(60) % 2, "b", "a"), ["c", "b", "a"])
    nb = bnb.NetworkNB({"flag": "count", "kind": "flag"}).fit(frame, Y)
    levels = dict(zip(frame, nb.categories_, strict=True))
    assert levels["size"] is None
    assert levels["whole"].tolist() == list(range(60))
    assert levels["rate"] is None
    assert levels["two"].tolist() == [0.0, 1.5]
    assert levels["flag"].tolist() == [False, True]
    assert levels["count"].tolist() == [0, 1, 2, 3]
    assert levels["kind"].tolist() == ["a", "b", "c"]  # declared, with the one that no row has


@pytest.mark.slow("compiles kernels of its own")
def test_whole_floats_of_an_array_are_levels_and_the_others_gaussian():
    rows = np.random.default_rng(0).integers(0, 3, (60, 3)).astype(float)
    rows[0, 1] = np.nan
    nb = bnb.TAN().fit(rows, Y)
    assert [own.tolist() for own in nb.categories_] == [[0.0, 1.0, 2.0]] * 3
    assert [own is None for own in bnb.TAN().fit(rows * [1, 0.5, 1], Y).categories_] == [False, True, False]
    half = bnb.TAN(gaussian=None).fit(rows * 0.5, Y)
    assert [own.tolist() for own in half.categories_] == [[0.0, 0.5, 1.0]] * 3
    assert bnb.TAN(gaussian=[-1]).fit(rows, Y).categories_[2] is None
    assert bnb.TAN(gaussian=2).fit(rows, Y).categories_[2] is None
    assert bnb.TAN(gaussian=None).fit(FRAME, Y).categories_[4].size == 60


def test_a_column_called_as_the_class_is():
    """The name is taken: a query must not answer about one when asked of the other."""
    frame = FRAME.drop(columns="size").rename(columns={"sky": "(class)"})
    refused(r"\(class\)", bnb.NetworkNB({1: [0, 2]}).fit(frame, Y).query, "(class)")


@pytest.mark.slow("other variants compile kernels of their own", but="TAN")
@pytest.mark.parametrize("nb", [bnb.TAN(), bnb.SPODE(), bnb.AODE(), bnb.NetworkNB({1: 0})], ids=repr)
def test_averaging_over_features_does_not_drop_the_arcs_unsaid(nb):
    """Feature averaging assumes independent features, so a structure must be refused."""
    with pytest.raises((ValueError, NotImplementedError)):
        bnb.FeatureAveragedNB(nb).fit(X, Y)


# -- values ------------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
@every
def test_values_that_no_row_had(nb):
    strange = X[:2].copy()
    strange[:, 0] = "new"
    hole = strange.copy()
    hole[:, 0] = None
    ignoring = clone(nb).fit(X, Y)
    with pytest.warns(UserWarning, match="2 cells of column '0'") as warned:
        found = ignoring.predict_proba(strange)
    assert len(warned) == 1
    np.testing.assert_array_equal(found, ignoring.predict_proba(hole))
    with pytest.raises(ValueError, match=r"unknown categories.*0', first 'new' at row 0"):
        clone(nb).set_params(handle_unknown="error").fit(X, Y).predict(strange)
    level = clone(nb).set_params(handle_unknown="level").fit(X, Y)
    with pytest.warns(UserWarning, match="reserved level") as warned:
        assert not np.array_equal(level.predict_proba(strange), level.predict_proba(hole))
    assert len(warned) == 1
    assert level.categories_[0].tolist() == ["u", "v", "<unknown>"]
    # And it grows: a new value is a level before the reserved one.
    level.partial_fit(strange, Y[:2])
    assert level.categories_[0].tolist() == ["new", "u", "v", "<unknown>"]


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@every
def test_declared_levels_that_do_not_occur_are_levels(nb):
    declared = [["u", "v", "w", "never"]] * 4
    narrow, wide = clone(nb).fit(X, Y), clone(nb).set_params(categories=declared).fit(X, Y)
    assert [own.tolist() for own in wide.categories_] == [["never", "u", "v", "w"]] * 4
    assert wide.n_parameters_ > narrow.n_parameters_
    assert np.isfinite(wide.predict_log_proba([["never"] * 4] * 60)).all()


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@every
def test_weights_of_zero_and_repeated_rows(nb):
    weight = np.arange(60) % 3
    some = np.repeat(np.arange(60), weight)
    a, b = clone(nb).fit(X, Y, weight), clone(nb).fit(X[some], Y[some])
    np.testing.assert_allclose(a.predict_log_proba(X), b.predict_log_proba(X), rtol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
@every
def test_numbers_only(nb):
    """Without categorical columns there are no arcs, and the model is Gaussian naive Bayes."""
    rows = np.random.default_rng(0).normal(size=(60, 2))
    free = {"parents": None, "parent": 0}
    nb = clone(nb).set_params(gaussian=[0, 1], **{k: v for k, v in free.items() if k in nb.get_params()})
    if isinstance(nb, bnb.SPODE):
        refused(r"parent.*Gaussian", nb.fit, rows, Y)
        return
    expected = bnb.GaussianNB().fit(rows, Y)
    np.testing.assert_allclose(nb.fit(rows, Y).predict_proba(rows), expected.predict_proba(rows), rtol=1e-12)
    assert isinstance(nb, bnb.AODE | bnb.TreeAveragedNB) or nb.parents_ == {"0": None, "1": None}
    assert nb.categories_ == [None, None]


# -- errors ------------------------------------------------------------------------------------------

NUMBERS = {"gaussian": [0, 1, 2, 3]}
BAD = {
    "unknown child": (bnb.NetworkNB({"nobody": "sky"}), FRAME, r"parents.*'nobody'"),
    "unknown parent": (bnb.NetworkNB({"sky": ["wind", "nobody"]}), FRAME, r"parents.*'nobody'"),
    "index": (bnb.NetworkNB({0: 4}), X, r"parents.*4"),
    "cycle of three": (bnb.NetworkNB({0: 1, 1: 2, 2: 0}), FRAME, r"cycle, '(\w+)' → '(\w+)' → '(\w+)' → '\1'"),
    "twice the same parent": (bnb.NetworkNB({"sky": ["sea", 2]}), FRAME, r"'sky' twice"),
    "twice the same child": (bnb.NetworkNB({"sky": "sea", 0: "wind"}), FRAME, r"'sky' twice"),
    "number as parent": (bnb.NetworkNB({"sky": "size"}), FRAME, r"parents.*'size' is Gaussian"),
    "list": (bnb.NetworkNB(["sky"]), FRAME, r"parents=\['sky'\] must be a dict"),
    "unhashable": (bnb.NetworkNB({0: [[1]]}), X, r"parents"),
    "no such superparent": (bnb.SPODE("nobody"), FRAME, r"parent.*'nobody'"),
    "score": (bnb.TAN("bic"), FRAME, r"score='bic' is unknown; use 'mi' or 'evidence'"),
    "root": (bnb.TAN(root="nobody"), FRAME, r"root.*'nobody'"),
    "improper": (bnb.TAN("evidence", alpha=0.0), FRAME, r"alpha=0.0 must be positive"),
    "fraction": (bnb.AODE(1.5), FRAME, r"min_count=1.5 must be an integer"),
    "class_alpha": (bnb.AODE(class_alpha="weka"), FRAME, r"class_alpha='weka' is unknown.*'levels'"),
    "alpha": (bnb.TAN(alpha=-1), FRAME, r"alpha is -1"),
    "alpha of another length": (bnb.TAN(alpha=[1.0, 2.0]), FRAME, r"alpha has shape \(2,\).*\(5,\)"),
    "gaussian": (bnb.TAN(gaussian=["nobody"]), FRAME, r"gaussian: there is no column 'nobody'"),
    "gaussian_prior": (bnb.TAN(gaussian_prior="wide"), FRAME, r"gaussian_prior='wide' is unknown"),
    "words as numbers": (bnb.TAN(gaussian=["sky"]), FRAME, r"'sky': could not convert"),
    "estimate": (bnb.AODE(estimate="bayes"), FRAME, r"estimate='bayes' is unknown"),
    "handle_unknown": (bnb.AODE(handle_unknown="drop"), FRAME, r"handle_unknown='drop' is unknown"),
    "infinity": (bnb.AODE(), FRAME.assign(size=np.inf), r"infinity"),
}


@variants(("nb", "rows", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_fitted(nb, rows, message):
    """Neither a new one is, nor one that was fitted before; both stay as they were."""
    fitted = type(nb)().fit(X, Y)
    for attempt in (clone(nb), fitted.set_params(**clone(nb).get_params())):
        before = state(attempt)
        refused(message, attempt.fit, rows, Y)
        assert state(attempt) == before


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@every
@pytest.mark.parametrize("method", ["fit", "predict", "partial_fit"])
def test_sparse_rows_are_refused_with_the_remedy(nb, method):
    rows = sp.csr_matrix(np.ones((60, 4)))
    fitted = clone(nb).fit(X, Y)
    before = state(fitted)
    with pytest.raises(TypeError, match=r"(?s)Sparse.*toarray"):
        getattr(fitted, method)(rows, *([] if method == "predict" else [Y]))
    assert state(fitted) == before


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@every
def test_bad_batches_change_nothing(nb):
    fitted = clone(nb).fit(X, Y)
    before = state(fitted)
    for call in (
        lambda: fitted.partial_fit(X, np.full(60, "nobody")),
        lambda: fitted.partial_fit(X[:, :3], Y),
        lambda: fitted.partial_fit(X, Y, sample_weight=np.full(60, -1.0)),
        lambda: fitted.forget(np.repeat(X, 2, axis=0), np.repeat(Y, 2)),
        lambda: fitted.forget(np.full((1, 4), "new"), Y[:1]),
        lambda: fitted.fit(X, Y[:5]),
    ):
        with pytest.raises(ValueError):  # noqa: PT011
            call()
        assert state(fitted) == before


def test_a_cycle_is_refused_whoever_found_it():
    """Rows would score as products that are no probabilities."""

    class Ring(StructuredNB):
        def __init__(self):
            vars(self).update(bnb.NetworkNB().get_params())

        def _arcs(self, encoding, columns, counts):
            return tuple((j, (j + 1) % 4) for j in range(4))

    refused("The structure has a cycle, '0' → '3' → '2' → '1' → '0', but no column", Ring().fit, X, Y)


def test_a_cycle_among_the_hyperparameters_is_not_written(tmp_path):
    nb = bnb.NetworkNB({"wind": ["sky", "sea"]}).fit(FRAME.drop(columns="size"), Y)
    nb.parents = {"sky": "wind", "wind": "sky"}
    refused("NetworkNB was changed after fit: The structure has a cycle", bnb.save, nb, tmp_path / "nb.safetensors")
