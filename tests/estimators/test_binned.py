"""Binned columns: their edges, the density that `MixedNB` chooses for a column, and bad input."""

import itertools
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import bayesnb as bnb
from bayesnb.encoding.edges import cell_names, quantile_edges
from bayesnb.families import IndependentCuts, NormalInverseGamma
from bayesnb.families.rows import cell_code
from bayesnb.fitted import counting
from bayesnb.weights.cross_fitting import Density, compare_densities, shrink
from bayesnb.weights.halves import random_halves
from bayesnb.weights.terms import Weights
from tests.estimators.cases import state
from tests.raises import refused

N = 120
Y = np.array(["low", "high"])[np.arange(N) % 2]
rng = np.random.default_rng(0)
# A normal density, one of which the classes have the mean and the sd in common, and one that says nothing.
TWO_HUMPS = np.where(Y == "low", rng.choice([-2.0, 2.0], N), 0.0) + rng.normal(0.0, np.where(Y == "low", 0.3, 2.0), N)
X = np.column_stack([rng.normal((Y == "low") * 2.0), TWO_HUMPS, rng.normal(size=N)])
FRAME = pd.DataFrame(X, columns=["shift", "humps", "noise"])


@pytest.fixture(scope="module")
def nb():
    return bnb.BinnedNB().fit(FRAME, Y)


# -- cells -----------------------------------------------------------------------------------------


@given(
    values=st.lists(st.floats(-1e300, 1e300, width=64) | st.just(np.nan), min_size=1, max_size=40),
    cells=st.integers(2, 12),
)
def test_edges_lie_between_values_and_part_them_evenly(values, cells):
    values = np.array(values)
    found, seen = quantile_edges(values, cells), np.sort(values[np.isfinite(values)])
    if not len(seen):
        assert found is None
        return
    assert len(found) < cells
    assert (np.diff(found) > 0).all()
    assert all(seen[0] <= edge < seen[-1] for edge in found)
    code = np.searchsorted(found, seen)
    distinct, first = np.unique(seen, return_index=True)
    assert np.array_equal(np.unique(code), np.arange(len(found) + 1))
    if len(distinct) <= cells:
        assert len(found) == len(distinct) - 1
    else:
        most = max(np.diff([*first, len(seen)]))
        assert max(np.bincount(code)) <= len(seen) / cells + 2 * most


@pytest.mark.slow("other variants compile kernels of their own", but="first")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("n_edges", [1, 7, 8, 63, 255])
def test_codes_are_those_of_searchsorted(n_edges, dtype, x64):
    edges = np.sort(rng.choice(np.arange(-600.0, 600.0), (2, n_edges), replace=False), axis=1)
    values = rng.integers(-700, 700, (500, 2)).astype(dtype)
    if dtype != np.int16:
        values[::7, 0] = np.nan
    ends = np.column_stack([edges, np.full(2, np.inf)])
    code = np.asarray(cell_code(values, ends, dtype="int16"))
    for j in range(2):
        expected = np.searchsorted(edges[j], values[:, j].astype(float), side="left")
        np.testing.assert_array_equal(code[:, j], np.where(np.isnan(values[:, j].astype(float)), -1, expected))


def test_cells_have_names_that_tell_them_apart():
    assert cell_names(np.zeros(0)) == ["(-inf, inf)"]
    assert cell_names(np.array([1.5, 2.0])) == ["(-inf, 1.5]", "(1.5, 2]", "(2, inf)"]
    close = np.array([1.0, 1.0 + 1e-12, 1.0 + 2e-12])
    assert len(set(cell_names(close))) == 4


@pytest.mark.slow("compiles kernels of its own")
def test_columns_that_are_constant_or_were_never_observed():
    values = np.column_stack([np.full(6, 3.0), np.full(6, np.nan), np.arange(6.0)])
    nb = bnb.BinnedNB().fit(values, [0, 1] * 3)
    assert [len(edges) for edges in nb.edges_.values()] == [0, 0, 5]
    without = bnb.BinnedNB().fit(values[:, 2:], [0, 1] * 3)
    np.testing.assert_allclose(nb.predict_proba(values), without.predict_proba(values[:, 2:]), rtol=1e-12)
    # Numbers that come later are cut where these say.
    nb.partial_fit(np.column_stack([values[:, 0], values[:, 2], values[:, 2]]), [0, 1] * 3)
    assert len(nb.edges_["1"]) == 5
    assert nb.statistics_.blocks[0].count.sum() == 6 * 5


# -- merging ---------------------------------------------------------------------------------------


def test_the_first_rows_decide_the_edges(nb):
    later = clone(nb).fit(FRAME, Y).partial_fit(2 - 3 * FRAME, Y)
    assert all(np.array_equal(nb.edges_[name], later.edges_[name]) for name in FRAME)
    assert later.statistics_.blocks[0].count.sum() == 2 * 3 * N


def test_counts_of_other_cells_do_not_add_up(nb):
    with pytest.raises(ValueError, match=r"Column 'shift' was cut at different edges.*edges=") as caught:
        counting.merge(nb.fitted_.counted, bnb.BinnedNB().fit(-FRAME, Y).fitted_.counted)
    assert "nb.set_params(edges=nb.fit(some_X, some_y).edges_)" in str(caught.value)


# -- what is refused -------------------------------------------------------------------------------


def test_bad_arguments():
    for edges, match in (
        ({"shift": [1.0, 1.0]}, "must be finite numbers that increase"),
        ({"shift": [0.0, np.inf]}, "must be finite numbers that increase"),
        ({"shift": ["a"]}, "must be a number or an array of numbers"),
        ({"nobody": [0.0]}, "edges: there is no column 'nobody'"),
        ([[0.0]], "a list with an entry for each of the 3 binned columns"),
        ("quantiles", "must be a dict"),
        ({"shift": np.arange(300.0)}, "edges cut a column into 301 cells \\(bins\\); at most 256 are allowed"),
    ):
        refused(match, bnb.BinnedNB(edges=edges).fit, FRAME, Y)
    refused("cells=1 must be an integer of at least 2", bnb.BinnedNB(cells=1).fit, FRAME, Y)
    refused("cells=1000 is too large", bnb.BinnedNB(cells=1000).fit, FRAME, Y)
    refused("prior='flat' must be 'independent' or", bnb.BinnedNB(prior="flat").fit, FRAME, Y)
    refused("prior.cuts is -1", bnb.BinnedNB(prior=IndependentCuts(cuts=-1.0)).fit, FRAME, Y)
    bad = X.copy()
    bad[3, 1] = -np.inf
    refused("infinity.*row 3, column 'humps'", bnb.BinnedNB().fit, pd.DataFrame(bad, columns=FRAME.columns), Y)
    refused("could not convert 'x'", bnb.BinnedNB().fit, [["x"], [1.0]], [0, 1])


@pytest.mark.slow("compiles kernels of its own")
def test_without_concentration_there_is_no_posterior():
    nb = bnb.BinnedNB(prior=IndependentCuts(concentration=0.0)).fit(FRAME, Y)
    assert nb.log_evidence_ == -np.inf
    refused("improper", bnb.posterior_draws, nb, 10, error=bnb.ImproperPosteriorError)


@pytest.mark.slow("compiles kernels of its own")
def test_what_has_no_meaning_for_them_says_so(nb):
    refused("EM has no objective here", bnb.fit_em, bnb.BinnedNB(), FRAME, Y, FRAME, error=NotImplementedError)
    said = "the estimator has binned columns"
    refused(said, bnb.FeatureAveragedNB(bnb.BinnedNB()).fit, FRAME, Y, error=NotImplementedError)
    refused("NUTS does not sample discrete", bnb.run_nuts, nb, error=NotImplementedError)
    gaussian = bnb.GaussianNB().fit(FRAME, Y)
    refused("Evidences of differently encoded data are not comparable", bnb.bayes_factor, nb, gaussian)


# -- tables ----------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_tables_say_what_the_posterior_does(nb):
    cuts, table = bnb.cut_table(nb), bnb.density_table(nb, draws=400)
    family = nb.posterior_.blocks[0]
    inner = np.delete(np.arange(len(family.group)), nb.encoding_.blocks[0].start())
    with bnb._util.precision.jax.enable_x64(True):
        expected, mean = np.asarray(family.cut_probability()), np.asarray(family.mean().theta)
    np.testing.assert_allclose(cuts["probability"], expected[inner], rtol=1e-12)
    assert cuts["edge"].tolist() == np.concatenate(list(nb.edges_.values())).tolist()
    for c, label in enumerate(nb.classes_):
        own = table[table["class"] == label]
        np.testing.assert_allclose(own["probability"], mean[c], rtol=1e-12)
        np.testing.assert_allclose(own.groupby("feature")["probability"].sum(), 1.0, rtol=1e-12)
    finite = table[np.isfinite(table["low"]) & np.isfinite(table["high"])]
    np.testing.assert_allclose(finite["density"] * (finite["high"] - finite["low"]), finite["probability"], rtol=1e-12)
    assert (finite["lower"] <= finite["upper"]).all()
    assert table[["density", "lower", "upper"]].isna().all(axis=1).sum() == 2 * 3 * 2
    joined = bnb.density_table(nb, ["humps"], bars=10)
    assert (joined["high"] - joined["low"]).min() >= np.ptp(nb.edges_["humps"]) / 10
    np.testing.assert_allclose(joined.groupby("class")["probability"].sum(), 1.0, rtol=1e-12)
    refused("no binned column", bnb.cut_table, bnb.GaussianNB().fit(FRAME, Y))
    mixed = bnb.MixedNB(gaussian=["noise"], binned=["shift", "humps"]).fit(FRAME, Y)
    refused("'noise', which is not binned", bnb.density_table, mixed, ["noise"])
    assert set(bnb.cut_table(mixed)["feature"]) == {"shift", "humps"}


# -- which density ---------------------------------------------------------------------------------


def test_edges_of_binned_columns_beside_numbers_of_any_density():
    frame, edges = FRAME.assign(text=np.where(Y == "low", "a", "b")), {"humps": [-1.0, 1.0], "shift": [0.5]}
    nb = bnb.MixedNB(binned=["humps"], edges=edges).fit(frame, Y)
    np.testing.assert_array_equal(nb.edges_["humps"], edges["humps"])
    kinds = {kind: [c for c, k in nb.kinds_.items() if k == kind] for kind in ("gaussian", "binned")}
    given = {c: edges[c] for c in kinds["binned"] if c in edges}
    named = bnb.MixedNB(**kinds, edges=given).fit(frame, Y)
    np.testing.assert_array_equal(named.predict_proba(frame), nb.predict_proba(frame))
    refused("column 'text', which is not binned", bnb.MixedNB(binned=["humps"], edges={"text": [0.0]}).fit, frame, Y)


@pytest.mark.slow("compiles kernels of its own")
def test_columns_get_the_density_that_tells_more_of_the_class():
    nb = bnb.MixedNB().fit(FRAME, Y)
    assert nb.kinds_["humps"] == "binned"
    assert nb.kinds_["shift"] == "gaussian"
    assert list(nb.edges_) == [name for name, kind in nb.kinds_.items() if kind == "binned"]
    named = bnb.MixedNB(**{kind: [c for c, k in nb.kinds_.items() if k == kind] for kind in ("gaussian", "binned")})
    np.testing.assert_array_equal(named.fit(FRAME, Y).predict_proba(FRAME), nb.predict_proba(FRAME))
    assert bnb.MixedNB(gaussian=["humps"]).fit(FRAME, Y).kinds_["humps"] == "gaussian"
    for kind in ("gaussian", "binned"):
        assert set(bnb.MixedNB(numbers=kind).fit(FRAME, Y).kinds_.values()) == {kind}
    refused("numbers='normal' is unknown", bnb.MixedNB(numbers="normal").fit, FRAME, Y)


def test_the_choice_stays(tmp_path):
    nb = bnb.MixedNB().fit(FRAME, Y)
    kinds = nb.kinds_
    assert set(kinds.values()) == {"gaussian", "binned"}
    bnb.save(nb, tmp_path / "nb.safetensors")
    loaded = bnb.load(tmp_path / "nb.safetensors")
    assert state(loaded) == state(nb)
    assert loaded.partial_fit(FRAME, Y).kinds_ == kinds
    names, one, zero = tuple(nb.encoding_.term_names), np.ones(3), np.zeros(3)
    given = Weights(names, one, nb.encoding_.classes, zero[:2], 1.0, 0.0, zero > 0, 0.0, 0.0, one, N, 0.0, 0.0)
    assert bnb.WeightedNB(bnb.MixedNB(), weights=given).fit(FRAME, Y).estimator_.kinds_ == kinds


@pytest.mark.slow("compiles kernels of its own")
def test_few_rows_have_nothing_to_choose_by():
    some = np.arange(19)
    assert set(bnb.MixedNB().fit(FRAME.iloc[some], Y[some]).kinds_.values()) == {"gaussian"}
    one_class = bnb.MixedNB().fit(FRAME, ["a"] * N)
    assert set(one_class.kinds_.values()) == {"gaussian"}


@pytest.mark.slow("compiles kernels of its own")
def test_em_takes_normal_densities():
    y = np.where(np.arange(N) < 60, Y, None)
    unlabeled = FRAME[60:]
    found = bnb.fit_em(bnb.MixedNB(), FRAME[:60], y[:60].astype(str), unlabeled).estimator
    assert set(found.kinds_.values()) == {"gaussian"}
    said = "EM has no objective here"
    refused(said, bnb.fit_em, bnb.MixedNB(binned=["noise"]), FRAME, Y, FRAME, error=NotImplementedError)


def test_gains_compare_what_each_column_says_of_the_label_of_the_other_half():
    """Reference: refits of one column to halves, with a fixed prior; a row of weight 0.5 or 2 is in one half."""
    X, y = FRAME.to_numpy()[:40, :2].copy(), np.arange(40) % 2
    X[3, 0] = np.nan
    weight = np.tile([0.5, 1.0, 2.0, 1.0], 10)
    priors = [NormalInverseGamma(0.0, kappa, 2.0, 1.0) for kappa in (0.5, 3.0)]
    halves = random_halves(y, 6, seed=0)
    score = np.zeros((2, 40, 2))
    for (m, prior), half, j in itertools.product(enumerate(priors), [*halves, *~halves], range(2)):
        one = bnb.GaussianNB(prior=prior).fit(X[half][:, [j]], y[half], weight[half])
        log_proba = one.predict_log_proba(X[~half][:, [j]])
        score[m, ~half, j] += log_proba[np.arange(20), y[~half]] / 6

    def density(prior):
        parts = bnb.GaussianNB(prior=prior).fit(X, y).fit_parts(X, y)
        return Density(parts.batch.encoding, parts.batch.rows[0], lambda weight: parts(weight).posterior_)

    found, _ = compare_densities(*map(density, priors), y, weight, None, 0)
    np.testing.assert_allclose(found, shrink(score[1] - score[0], weight, np.arange(40)), rtol=1e-9)


def test_gains_are_shrunk_to_their_common_mean():
    """Reference: the posterior of a normal model of effects, with the variance by the method of moments."""
    effects = np.array([0.3, 0.0, -0.2, 0.1])
    gain = effects + rng.normal(0.0, [0.1, 3.0, 1.0, 0.5], (400, 4))
    weight = np.ones(400)
    mean, variance = gain.mean(axis=0), gain.var(axis=0) / 400
    w = 1 / variance
    q = (w * (mean - w @ mean / w.sum()) ** 2).sum()
    tau2 = max(0.0, (q - 3) / (w.sum() - (w**2).sum() / w.sum()))
    precision = np.diag(w) + np.zeros((4, 4))
    # θ ~ N(μ, τ²), μ flat: the posterior mean by generalised least squares.
    total = 1 / (tau2 + variance)
    mu = total @ mean / total.sum()
    expected = np.linalg.solve(precision + np.eye(4) / tau2, w * mean + mu / tau2)
    np.testing.assert_allclose(shrink(gain, weight, np.arange(400)), expected, rtol=1e-9)


# -- structures ------------------------------------------------------------------------------------


@pytest.mark.slow("compiles kernels of its own")
def test_averages_of_structures_take_numbers_as_the_bins_of_their_most_probable_binnings():
    frame = FRAME.assign(colour=np.where(TWO_HUMPS > 0, "red", "blue"))
    aode = bnb.AODE(numbers="binned").fit(frame, Y)
    plain = bnb.BinnedNB().fit(FRAME, Y)
    best = bnb.cut_table(plain).query("most_probable")
    for name, cuts in aode.edges_.items():
        assert cuts.tolist() == best.loc[best["feature"] == name, "edge"].tolist()
    codes = frame.assign(**{name: np.searchsorted(cuts, FRAME[name]) for name, cuts in aode.edges_.items()})
    levels = {name: list(range(len(cuts) + 1)) for name, cuts in aode.edges_.items()}
    by_hand = bnb.AODE(categories=levels, gaussian=None).fit(codes, Y)
    np.testing.assert_allclose(aode.predict_proba(frame), by_hand.predict_proba(codes), rtol=1e-12)
    holes = frame.mask(np.random.default_rng(1).random(frame.shape) < 0.2)
    for nb in (aode, bnb.TAN(numbers="binned").fit(frame, Y)):
        assert np.isfinite(nb.predict_proba(holes)).all()
    assert bnb.TAN().fit(frame, Y).edges_ == {}
    refused("numbers='auto' is unknown", bnb.TAN(numbers="auto").fit, frame, Y)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize("make", [bnb.AODE, bnb.SPODE, bnb.NetworkNB])
def test_all_structures_do(make, tmp_path):
    nb = make(numbers="binned").fit(FRAME, Y)
    assert list(nb.edges_) == list(FRAME)
    assert nb.partial_fit(FRAME[:7], Y[:7]).predict(FRAME).shape == (N,)
    bnb.save(nb, tmp_path / "nb.safetensors")
    np.testing.assert_array_equal(bnb.load(tmp_path / "nb.safetensors").predict_proba(FRAME), nb.predict_proba(FRAME))
    other = make(numbers="binned").fit(-FRAME, Y)
    refused("was cut at different edges", counting.merge, nb.fitted_.counted, other.fitted_.counted)


def test_humps_are_cut_and_noise_is_not(nb):
    expected = bnb.cut_table(nb).groupby("feature")["probability"].sum()
    assert expected["humps"] > 2.5
    assert expected["noise"] < 1.5


# -- a first batch that has no ends of cells -------------------------------------------------------

SAID = "the first numbers gave no end of a cell"


def told(call) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(w.message) for w in caught if SAID in str(w.message)]


@pytest.mark.parametrize(
    "make",
    [
        bnb.BinnedNB,
        lambda: bnb.MixedNB(binned=["shift", "humps", "noise"]),
        lambda: bnb.NetworkNB({}, numbers="binned"),
        lambda: bnb.AODE(numbers="binned"),
    ],
    ids=["BinnedNB", "MixedNB", "NetworkNB", "AODE"],
)
def test_a_first_batch_without_ends_of_cells_is_told_once(make):
    nb = make()
    (text,) = told(lambda: nb.partial_fit(FRAME[:1], Y[:1], classes=["high", "low"]))
    assert text.startswith("Column 'shift' and others: ")
    assert told(lambda: nb.partial_fit(FRAME, Y)) == []
    assert told(lambda: make().fit(FRAME.assign(shift=1.0), Y)) == []
    assert told(lambda: make().fit(FRAME.assign(shift=1.0), Y).partial_fit(FRAME, Y)) == []
    assert len(told(lambda: bnb.fit_stream(make(), [(FRAME[:1], Y[:1]), (FRAME, Y)], progress=False))) == 1


def test_ends_that_are_given_or_that_a_later_batch_has_are_not_told():
    given = bnb.BinnedNB(edges={"shift": [], "humps": [0.0], "noise": [0.0, 1.0]})
    assert told(lambda: given.partial_fit(FRAME[:1], Y[:1], classes=["high", "low"])) == []
    nb = bnb.BinnedNB().fit(FRAME.assign(shift=np.nan), Y)
    assert told(lambda: nb.partial_fit(FRAME, Y)) == []
    nb = bnb.BinnedNB().fit(FRAME.assign(shift=np.nan), Y)
    assert told(lambda: nb.partial_fit(FRAME[:1], Y[:1]))[0].startswith("Column 'shift': ")


@pytest.mark.parametrize("make", [bnb.BinnedNB, partial(bnb.MixedNB, numbers="binned")])
def test_batches_give_the_posterior_of_all_rows_if_cells_are_given(make):
    rng = np.random.default_rng(0)
    X, y = rng.gamma(2.0, size=(90, 2)), np.arange(90) % 3
    whole = make().fit(X, y)
    fixed, learned = make(edges=dict(whole.edges_)), make()
    for rows in np.split(np.arange(90), 3):
        fixed.partial_fit(X[rows], y[rows], classes=range(3))
        learned.partial_fit(X[rows], y[rows], classes=range(3))
    np.testing.assert_allclose(fixed.predict_proba(X), whole.predict_proba(X), rtol=1e-12)
    assert np.abs(learned.predict_proba(X) - fixed.predict_proba(X)).max() > 0.01, "partial_fit and the docs say so"
