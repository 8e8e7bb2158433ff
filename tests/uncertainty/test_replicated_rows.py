"""Replicated features in ArviZ data, against the draws of the parameters in the same file."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayesnb as bnb
from bayesnb.uncertainty import arviz

RNG = np.random.default_rng(5)
N = 24
Y = np.array(["no", "yes"])[np.arange(N) % 2]
LEVEL = np.array(["red", "green", "blue"])[RNG.integers(0, 3, N)]
FRAME = pd.DataFrame(
    {
        "length": RNG.normal(3.0, 2.0, N),
        "colour": np.where(np.arange(N) == 3, None, LEVEL),
        "ripe": RNG.random(N) < 0.4,
        "spots": RNG.poisson(2.0, N),
        "a": RNG.poisson(3.0, N),
        "b": RNG.poisson(1.0, N),
    }
)
FRAME.loc[5, "length"] = np.nan
MIXED = bnb.MixedNB(numbers="gaussian", bernoulli=["ripe"], poisson=["spots"], multinomial=["a", "b"])


@pytest.fixture(scope="module")
def data():
    return bnb.to_arviz(MIXED.fit(FRAME, Y), FRAME, Y, draws=600, chains=2, seed=4, likelihood="row")


def of_class(data, site, where):
    """(chains, draws, N) values of one parameter, that of the class of each row."""
    values = data["posterior"][site]
    dim = values.dims[-1]
    return values.sel({dim: where}).values[:, :, (Y == "yes").astype(int)]


def near(found, p):
    """Whether a number of successes of independent trials with probabilities p is what they make likely."""
    return abs(found - p.sum()) < 4.5 * np.sqrt((p * (1 - p)).sum())


def test_observed_cells_are_those_of_the_table(data):
    observed = data["observed_data"]
    names = observed["colour_level"].values
    colour = [None if code < 0 else names[code] for code in observed["colour"].values]
    assert colour == FRAME["colour"].astype(object).where(FRAME["colour"].notna(), None).tolist()
    np.testing.assert_array_equal(observed["length"].values, FRAME["length"])
    assert observed["ripe_level"].values[observed["ripe"].values].tolist() == [
        "present" if ripe else "absent" for ripe in FRAME["ripe"]
    ]
    assert observed["count"].dims == ("observation", "word")
    np.testing.assert_array_equal(observed["count"].sel(word=["a", "b"]).values, FRAME[["a", "b"]])


def test_replicates_have_the_distribution_of_their_own_draws(data):
    replicated = data["posterior_predictive"]
    assert replicated["label"].dtype.kind == replicated["colour"].dtype.kind == "i"
    seen = FRAME["colour"].notna().to_numpy()
    for code, level in enumerate(replicated["colour_level"].values):
        p = of_class(data, "theta_categorical", f"colour={level}")[:, :, seen]
        assert near((replicated["colour"].values[:, :, seen] == code).sum(), p)
        half = p > np.median(p)  # Each replicate has parameters of its own, and not their average.
        assert near(((replicated["colour"].values[:, :, seen] == code) & half).sum(), p[half])
    assert near(replicated["ripe"].values.sum(), of_class(data, "theta_bernoulli", "ripe=present"))
    seen = FRAME["length"].notna().to_numpy()
    mu, sigma2 = (of_class(data, site, "length")[:, :, seen] for site in ("mu", "sigma2"))
    z = (replicated["length"].values[:, :, seen] - mu) / np.sqrt(sigma2)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3
    rate = of_class(data, "rate", "spots")
    p = stats.poisson.cdf(replicated["spots"].values, rate) - RNG.random(rate.shape) * stats.poisson.pmf(
        replicated["spots"].values, rate
    )
    assert stats.kstest(p.ravel(), "uniform").pvalue > 1e-3
    total = FRAME[["a", "b"]].sum(axis=1).to_numpy()
    count = replicated["count"]
    assert (count.sum("word").values == total).all()
    p = np.repeat(of_class(data, "theta_multinomial", "a").reshape(-1, N), total, axis=1)
    assert near(count.sel(word="a").values.sum(), p)


def test_missing_cells_are_missing_in_each_replicate(data):
    replicated = data["posterior_predictive"]
    missing = replicated["colour"].values < 0
    assert (missing == FRAME["colour"].isna().to_numpy()).all()
    assert (np.isnan(replicated["length"].values) == FRAME["length"].isna().to_numpy()).all()


def test_rows_of_a_structure_are_replicated_together():
    first = RNG.integers(0, 3, 400)
    X = np.stack([first, np.where(RNG.random(400) < 0.9, first, RNG.integers(0, 3, 400))], axis=1)
    X = np.c_[X[:, 1], X[:, 0], RNG.integers(0, 2, 400)]
    y = RNG.integers(0, 2, 400)
    agree = {}
    for nb in (bnb.TAN(), bnb.SPODE(1), bnb.NetworkNB({"0": "1"}), bnb.CategoricalNB()):
        replicated = bnb.to_arviz(nb.fit(X, y), X, y, draws=20, chains=1, likelihood="row")["posterior_predictive"]
        agree[type(nb).__name__] = float((replicated["0"] == replicated["1"]).mean())
    observed = (X[:, 0] == X[:, 1]).mean()
    for name in ("TAN", "SPODE", "NetworkNB"):
        assert agree[name] == pytest.approx(observed, abs=0.04)
    assert agree["CategoricalNB"] == pytest.approx(1 / 3, abs=0.04)


def test_features_that_a_structure_leaves_out_are_not_replicated():
    y = np.repeat([0, 1], 40)
    X = np.c_[RNG.integers(0, 3, (80, 2)), np.where(RNG.random(80) < 0.1, 1 - y, y), RNG.integers(0, 3, 80)]
    nb = bnb.KDB().fit(X, y)
    data = bnb.to_arviz(nb, X, y, draws=30, chains=2, likelihood="row")
    names = set(map(str, nb.fitted_.encoding.blocks[0].names))
    assert "2" in names
    assert len(names) < 4
    for group in ("posterior_predictive", "observed_data"):
        assert set(data[group].data_vars) == {"label", *names}
    assert float((data["posterior_predictive"]["2"] == y).mean()) == pytest.approx(0.9, abs=0.06)


def test_labels_alone_where_rows_cannot_be_drawn():
    X, y = RNG.integers(0, 2, (30, 3)), RNG.integers(0, 2, 30)
    data = bnb.to_arviz(bnb.TreeAveragedNB().fit(X, y), X, y, draws=5, likelihood="row")["posterior_predictive"]
    assert list(data.data_vars) == ["label"]
    assert "average over trees cannot be simulated" in data.attrs["features"]
    parts = X + 0.5
    data = bnb.to_arviz(bnb.MultinomialNB().fit(parts, y), parts, y, draws=5, likelihood="row")["posterior_predictive"]
    assert (
        f"X: the count at row 0, column '0' is {parts[0, 0]}; word counts must be whole numbers"
        in data.attrs["features"]
    )


def test_number_of_replicated_values_is_bounded(monkeypatch):
    X, y = RNG.integers(0, 2, (30, 3)), RNG.integers(0, 2, 30)
    nb = bnb.CategoricalNB().fit(X, y)
    full = bnb.to_arviz(nb, X, y, draws=9, chains=2, likelihood="row")["posterior_predictive"]
    monkeypatch.setattr(arviz, "_MOST_REPLICATED", 2 * 30 * 3 * 4)
    data = bnb.to_arviz(nb, X, y, draws=9, chains=2, likelihood="row")
    assert data["posterior_predictive"]["0"].shape == (2, 4, 30)
    assert data["posterior_predictive"]["label"].values.tolist() == full["label"].values[:, :4].tolist()
    assert data["log_likelihood"]["row"].shape == (2, 9, 30)
    monkeypatch.setattr(arviz, "_MOST_REPLICATED", 2 * 30 * 3 - 1)
    data = bnb.to_arviz(nb, X, y, draws=9, chains=2, likelihood="row")["posterior_predictive"]
    assert data["label"].shape == (2, 9, 30)
    assert "more than 179 values" in data.attrs["features"]


def test_names_that_are_taken(tmp_path):
    columns = ["label", "draw", "a/b", "a_b", "label_feature", "x", "x_level"]
    X = pd.DataFrame(RNG.choice(["u", "v"], (20, 7)), columns=columns)
    X["a/b"] = RNG.normal(size=20)
    y = RNG.integers(0, 2, 20)
    data = bnb.to_arviz(bnb.MixedNB(numbers="gaussian").fit(X, y), X, y, draws=4, likelihood="row")
    replicated = data["posterior_predictive"]
    assert sorted(v.attrs["column"] for v in replicated.data_vars.values() if "column" in v.attrs) == sorted(columns)
    assert len(replicated.data_vars) == 8
    for variable in data["observed_data"].data_vars.values():
        if variable.dtype.kind == "i" and "column" in variable.attrs:
            coordinate = variable.attrs["levels"].split("'")[1]
            named = data["observed_data"][coordinate].values[variable.values]
            assert named.tolist() == X[variable.attrs["column"]].tolist()
    data.to_netcdf(str(tmp_path / "names.nc"))
