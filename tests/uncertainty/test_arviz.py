"""The export to ArviZ against NumPy and SciPy on the draws in the file, evidences, and exact refits."""

import itertools
import subprocess
import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp

from bayesnb import (
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    ImproperPosteriorError,
    MixedNB,
    MultinomialNB,
    NetworkNB,
    PoissonNB,
    posterior_draws,
)
from bayesnb.uncertainty.arviz import to_arviz
from tests.raises import refused
from tests.strategies import variants

matplotlib.use("Agg")

RNG = np.random.default_rng(11)
N = 12
Y = np.array(["no", "yes", "maybe"])[np.arange(N) % 3]
SHIFT = (np.arange(N) % 3)[:, None]
COUNTS = RNG.poisson(1.0 + SHIFT, (N, 3))
REAL = RNG.normal(SHIFT, 1.0, (N, 2)) * [1.0, 20.0]
FRAME = pd.DataFrame(
    {
        "length": REAL[:, 0],
        "colour": np.array(["red", "green", "blue"])[COUNTS[:, 0] % 3],
        "ripe": COUNTS[:, 1] > 1,
        "spots": COUNTS[:, 2],
        "leaf": np.array(["round", None, "long"], dtype=object)[COUNTS[:, 1] % 3],
        "a": COUNTS[:, 0],
        "b": 1 + COUNTS[:, 1],
    }
)
FRAME.loc[3, "length"] = np.nan
KINDS = {
    "length": "gaussian",
    "colour": "categorical",
    "ripe": "bernoulli",
    "spots": "poisson",
    "leaf": "categorical",
    "a": "multinomial",
    "b": "multinomial",
}
MIXED = MixedNB(bernoulli=["ripe"], poisson=["spots"], multinomial=["a", "b"])


def _frame(values, kind):
    frame = pd.DataFrame(values, columns=list("abcdef")[: values.shape[1]])
    return frame, dict.fromkeys(frame, kind)


CASES = {
    "categorical": (CategoricalNB(), *_frame(COUNTS, "categorical")),
    "bernoulli": (BernoulliNB(), *_frame((COUNTS > 1).astype(float), "bernoulli")),
    "multinomial": (MultinomialNB(alpha=0.5), *_frame(COUNTS, "multinomial")),
    "gaussian": (GaussianNB(), *_frame(REAL, "gaussian")),
    "poisson": (PoissonNB(), *_frame(COUNTS, "poisson")),
    "mixed": (MIXED, FRAME, KINDS),
}
each = pytest.mark.parametrize(("nb", "X", "kinds"), [pytest.param(*case, id=name) for name, case in CASES.items()])


def log_joint(posterior, X, kinds):
    """(chains, draws, N, C) log p(row, class | θ), everything included, from the draws in the file by their names."""

    def values(parameter, kind, where):
        variable = next(posterior[name] for name in (parameter, f"{parameter}_{kind}") if name in posterior)
        return variable.sel({variable.dims[-1]: where}).values

    def cell(name, kind, x):
        if pd.isna(x):
            return 0.0
        if kind == "gaussian":
            return stats.norm.logpdf(x, values("mu", kind, name), np.sqrt(values("sigma2", kind, name)))
        if kind == "poisson":
            return stats.poisson.logpmf(x, values("rate", kind, name))
        level = x if kind == "categorical" else ("present" if x else "absent")
        return np.log(values("theta", kind, f"{name}={level}"))

    words = [name for name, kind in kinds.items() if kind == "multinomial"]
    scores = []
    for i in range(len(X)):
        score = np.log(posterior["class_prob"].values)
        for name, kind in kinds.items():
            if kind != "multinomial":
                score = score + cell(name, kind, X[name].iloc[i])
        if words:
            counts = X[words].iloc[i].to_numpy()
            score = score + stats.multinomial.logpmf(counts, counts.sum(), values("theta", "multinomial", words))
        scores.append(score)
    return np.stack(scores, axis=2)


@pytest.mark.slow("other variants compile kernels of their own", but="categorical")
@each
def test_names_and_likelihoods(nb, X, kinds):
    nb = nb.fit(X, Y)
    data = to_arviz(nb, X, Y, draws=6, chains=2, seed=3, likelihood="row")
    joint = log_joint(data["posterior"], X, kinds)
    own = joint[:, :, np.arange(N), nb.classes_.searchsorted(Y)]
    found = data["log_likelihood"]["row"]
    of_label = to_arviz(nb, X, Y, draws=6, chains=2, seed=3)
    found_label = of_label["log_likelihood"]["label"]
    assert found.dims == found_label.dims == ("chain", "draw", "observation")
    np.testing.assert_allclose(found.values, own, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found_label.values, own - logsumexp(joint, axis=3), rtol=1e-9, atol=1e-10)
    for group in ("posterior_predictive", "prior_predictive", "observed_data"):
        assert list(of_label[group].data_vars) == ["label"]
        assert set(data[group].data_vars) >= {"label", *(c for c in X if kinds[c] != "multinomial")}
    assert nb.classes_[data["observed_data"]["label"].values].tolist() == Y.tolist()
    assert data["observed_data"]["class"].values.tolist() == nb.classes_.tolist()
    drawn = posterior_draws(nb, 12, seed=3)
    for group in ("posterior", "prior"):
        found = data[group]
        assert set(found.data_vars) == set(drawn)
        assert found["class"].values.tolist() == nb.classes_.tolist()
        for name, values in drawn.items():
            assert found[name].dims[:3] == ("chain", "draw", "class")
            assert found[name].shape == (2, 6, *values.shape[1:])
            assert np.array_equal(found[name].values.reshape(values.shape), values) == (group == "posterior")
    for group in ("posterior", "prior", "log_prior", "log_likelihood", "prior_predictive", "observed_data"):
        assert not set(data[group].data_vars) & set(data[group].dims)
    dims = {variable.dims[3:] for variable in data["posterior"].data_vars.values()} - {()}
    levels = sum(kind in ("categorical", "bernoulli") for kind in set(kinds.values()))
    assert sum(dim.startswith("level") for (dim,) in dims) == levels
    assert sum(dim.startswith("feature") for (dim,) in dims) == len(set(kinds.values())) - levels
    assert all(("_" in dim) == (nb is MIXED) for (dim,) in dims)


@pytest.mark.slow("compiles kernels of its own")
def test_log_prior_of_each_parameter():
    """By SciPy, from the draws in the file; simplexes go by the names of their columns."""
    prior, data = MIXED.fit(FRAME, Y).prior_, to_arviz(MIXED, draws=5, chains=2)
    posterior, found = data["posterior"], data["log_prior"]
    dims = {name: variable.dims[2:] for name, variable in found.data_vars.items()}
    assert dims == {
        "class_prob": (),
        "theta_categorical": ("class", "theta_categorical_simplex"),
        "theta_bernoulli": ("class", "theta_bernoulli_simplex"),
        "theta_multinomial": ("class", "theta_multinomial_simplex"),
        "mu": ("class", "feature_gaussian"),
        "sigma2": ("class", "feature_gaussian"),
        "rate": ("class", "feature_poisson"),
    }
    assert found["theta_categorical_simplex"].values.tolist() == ["colour", "leaf"]

    def dirichlet(theta):
        return stats.dirichlet(np.ones(len(theta))).logpdf(theta / theta.sum())

    for c, name in enumerate(("colour", "leaf")):
        levels = [level for level in posterior["level_categorical"].values if level.startswith(name)]
        theta = posterior["theta_categorical"].sel(level_categorical=levels).values
        expected = np.apply_along_axis(dirichlet, -1, theta)
        np.testing.assert_allclose(found["theta_categorical"].values[..., c], expected, rtol=1e-12, atol=1e-14)
    expected = np.apply_along_axis(dirichlet, -1, posterior["class_prob"].values)
    np.testing.assert_allclose(found["class_prob"].values, expected, rtol=1e-12)
    numbers, counts = (
        next(f for f in prior.blocks if hasattr(f, "rate") and hasattr(f, "kappa") == k) for k in (True, False)
    )
    sigma2, mu, rate = (posterior[name].values for name in ("sigma2", "mu", "rate"))
    expected = stats.invgamma.logpdf(sigma2, numbers.concentration, scale=numbers.rate)
    np.testing.assert_allclose(found["sigma2"].values, expected, rtol=1e-10)
    expected = stats.norm.logpdf(mu, numbers.loc, np.sqrt(sigma2 / numbers.kappa))
    np.testing.assert_allclose(found["mu"].values, expected, rtol=1e-10)
    expected = stats.gamma.logpdf(rate, counts.concentration, scale=1 / counts.rate)
    np.testing.assert_allclose(found["rate"].values, expected, rtol=1e-10)


@pytest.mark.slow("compiles kernels of its own")
def test_simplexes_of_a_structure_are_named_by_the_values_of_parents():
    X = pd.DataFrame({"a": list("uvw") * 8, "b": list("xy") * 12})
    data = to_arviz(NetworkNB({"a": "b", "b": None}).fit(X, ["n", "y"] * 12), draws=4)
    density, theta = data["log_prior"]["theta"], data["posterior"]["theta"]
    assert sorted(density["theta_simplex"].values) == ["a | b=x", "a | b=y", "b"]
    given = theta.sel(level=["a=u | b=y", "a=v | b=y", "a=w | b=y"]).values
    expected = stats.dirichlet(np.ones(3)).logpdf((given / given.sum(-1, keepdims=True)).reshape(-1, 3).T)
    found = density.sel(theta_simplex="a | b=y").values.ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow("compiles kernels of its own")
def test_tables_from_the_prior_have_the_distribution_of_their_own_draws():
    nb = MIXED.fit(FRAME, Y)
    data = to_arviz(nb, FRAME, Y, draws=1500, chains=2, likelihood="row")
    prior, simulated = data["prior"], data["prior_predictive"]
    label = simulated["label"].values
    for c in range(3):
        p = np.broadcast_to(prior["class_prob"].values[..., c, None], label.shape)
        assert abs((label == c).sum() - p.sum()) < 4.5 * np.sqrt((p * (1 - p)).sum())
    theta = prior["theta_bernoulli"].sel(level_bernoulli="ripe=present").values
    p = np.take_along_axis(theta, label, axis=2)  # that of the simulated label, not of the observed one
    assert abs(simulated["ripe"].values.sum() - p.sum()) < 4.5 * np.sqrt((p * (1 - p)).sum())


@pytest.mark.slow("compiles kernels of its own")
def test_average_likelihood_of_a_row_is_its_predictive():
    """E p(x, y | θ) = p(D, x, y) / p(D), from the evidences of fits with and without the row."""
    X, y = FRAME.iloc[:-1], Y[:-1]
    nb = MIXED.fit(X, y)
    before = nb.log_evidence_
    data = to_arviz(nb, FRAME.iloc[-1:], Y[-1:], draws=5000, likelihood="row")
    scores = data["log_likelihood"]["row"].values.ravel()
    # Levels and scales are learned from the data: the prior of the first fit has to stay.
    after = MixedNB(bernoulli=["ripe"], poisson=["spots"], multinomial=["a", "b"], prior=nb.prior_)
    exact = after.fit(FRAME, Y).log_evidence_ - before
    ratio = np.exp(scores - exact)
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(ratio.size)
    assert ratio.std() / np.sqrt(ratio.size) < 0.05


@pytest.mark.slow("compiles kernels of its own")
def test_predicted_labels_have_the_probabilities_of_their_draws():
    nb = MIXED.fit(FRAME, Y)
    groups = [to_arviz(nb, FRAME, np.full(N, label), draws=1000) for label in nb.classes_]
    proba = np.stack([np.exp(group["log_likelihood"]["label"].values) for group in groups])
    np.testing.assert_allclose(proba.sum(axis=0), 1, rtol=1e-12)
    predicted = groups[0]["posterior_predictive"]["label"].values
    for k, p in enumerate(proba):
        error = np.sqrt((p * (1 - p)).sum(axis=(0, 1)))
        assert (np.abs((predicted == k).sum(axis=(0, 1)) - p.sum(axis=(0, 1))) <= 4.5 * error + 1e-9).all()
    # Not from the average over the draws: conditionally on them the labels are independent.
    half = proba[0] > np.median(proba[0], axis=(0, 1))
    error = np.sqrt((proba[0] * (1 - proba[0]) * half).sum())
    assert abs(((predicted == 0) * half).sum() - (proba[0] * half).sum()) < 4.5 * error


def test_improper_prior_is_left_out_and_improper_posterior_refused():
    X = np.array([["u"], ["v"], ["u"], ["v"]])
    y = ["a", "a", "b", "b"]
    data = to_arviz(CategoricalNB(alpha=0.0).fit(X, y), draws=3)
    assert "posterior" in data
    assert "prior" not in data
    with pytest.raises(ImproperPosteriorError):
        to_arviz(CategoricalNB(alpha=0.0).fit(X, ["a", "b", "a", "b"]), draws=3)


@pytest.mark.slow("compiles kernels of its own")
@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([("a", 1), ("b", 2)], ["('a', 1)", "('b', 2)"]),
        ([1, "1"], ["1", "'1'"]),
        ([1, "a"], ["1", "a"]),
        ([False, True], [False, True]),
        ([3, 7], [3, 7]),
        ([2.0, 3.0], [2.0, 3.0]),
    ],
)
def test_labels_of_other_types(labels, names, tmp_path):
    y = np.empty(6, dtype=object)
    y[:] = labels * 3
    # A level 1 and a level "1" of one column would be one name.
    X = np.array([[1], [1], ["1"], ["1"], [1], ["1"]], dtype=object)
    data = to_arviz(CategoricalNB().fit(X, y), X, y, draws=4)
    assert data["posterior"]["class"].values.tolist() == names
    observed = data["observed_data"]
    assert observed["class"].values[observed["label"].values].tolist() == names * 3
    assert data["posterior"]["level"].values.tolist() == ["'0'=1", "'0'='1'"]
    data.to_netcdf(str(tmp_path / "labels.nc"))


@variants(
    ("arguments", "message"),
    [
        ({"X": COUNTS}, "X was given without y"),
        ({"y": Y}, "y was given without X"),
        ({"X": COUNTS, "y": np.where(Y == "no", "never", Y)}, "The label 'never' of row 0"),
        ({"X": COUNTS, "y": Y[:-1]}, "12"),
        ({"draws": 0}, "draws=0"),
        ({"chains": 1.5}, "chains=1.5"),
        ({"X": COUNTS, "y": Y, "likelihood": "column"}, "likelihood='column'"),
    ],
)
def test_bad_input(arguments, message):
    refused(message, to_arviz, PoissonNB().fit(COUNTS, Y), **{"draws": 2, **arguments})


def test_row_that_is_impossible_under_a_draw():
    nb = CategoricalNB(alpha=1e-4).fit(COUNTS, Y)

    def is_new_to_all(row):
        return all((COUNTS[c == Y] != row).all(axis=0).any() for c in nb.classes_)

    row = next(row for row in itertools.product(*nb.categories_) if is_new_to_all(row))
    refused("row 1 has no class probabilities", to_arviz, nb, [COUNTS[0], row], Y[:2], draws=6, chains=2)


def test_heavy_packages_are_loaded_when_used():
    heavy = ["arviz", "dask", "h5netcdf", "h5py", "matplotlib", "numpyro", "xarray"]
    code = f"import sys; from bayesnb import *; print([m for m in {heavy} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
