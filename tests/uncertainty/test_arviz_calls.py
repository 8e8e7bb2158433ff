"""ArviZ's own functions on the data of `to_arviz`, under version 0.23 and 1.x."""

import warnings

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import load_wine

import bayesnb as bnb

matplotlib.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore")  # ArviZ warns of its own future, and of few draws.

X, Y = load_wine(return_X_y=True, as_frame=True)
COLUMNS = ["alcohol", "hue", "malic_acid"]
MELONS = bnb.datasets.load_watermelon()


@pytest.fixture(scope="module")
def az():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz
    return arviz


def is_old(az):
    return "InferenceData" in vars(az)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.fixture(scope="module")
def melons():
    nb = bnb.MixedNB().fit(MELONS.data, MELONS.target)
    return bnb.to_arviz(nb, MELONS.data, MELONS.target, draws=100, chains=2, likelihood="row")


def test_tables_and_figures_of_parameters(az, melons):
    table = az.summary(melons, var_names=["class_prob"])
    exact = bnb.MixedNB().fit(MELONS.data, MELONS.target).class_log_prior_
    np.testing.assert_allclose(table["mean"].astype(float), np.exp(exact), atol=0.05)
    for plot in ("plot_posterior" if is_old(az) else "plot_dist", "plot_forest", "plot_pair", "plot_trace"):
        getattr(az, plot)(melons, var_names=["class_prob"])


def test_figures_of_replicated_tables(az, melons):
    names = ["label", *map(str, MELONS.data.columns)]
    assert set(melons["posterior_predictive"].data_vars) == set(names)
    chosen = ["label", names[1], names[-1]]
    if is_old(az):
        az.plot_ppc(melons, var_names=chosen, num_pp_samples=20)
        az.plot_bpv(melons, kind="p_value", var_names=chosen)
    else:
        az.plot_ppc_dist(melons, var_names=chosen, num_samples=20)
        az.plot_ppc_pit(melons, var_names=names[-1:])


@pytest.mark.slow("draws a figure for each column")
def test_every_column_has_a_figure(az, melons):
    plot = az.plot_ppc if is_old(az) else az.plot_ppc_dist
    for name in melons["posterior_predictive"].data_vars:
        plot(melons, var_names=[name])
    plot(melons)


def test_figure_of_words(az):
    counts = np.random.default_rng(0).poisson(2.0, (20, 4))
    data = bnb.to_arviz(
        bnb.MultinomialNB().fit(counts, [0, 1] * 10), counts, [0, 1] * 10, draws=50, chains=2, likelihood="row"
    )
    (az.plot_ppc if is_old(az) else az.plot_ppc_dist)(data, var_names=["count"])


def test_leave_one_out_beside_the_exact_one_by_default(az):
    """Without var_name: the group has one array, and what is observed is what it is about."""
    nb = bnb.GaussianNB().fit(X[COLUMNS], Y)
    exact = bnb.loo(nb, X[COLUMNS], Y)
    for kind, scores in (("label", exact.pointwise), ("row", exact.row_pointwise)):
        data = bnb.to_arviz(nb, X[COLUMNS], Y, draws=500, chains=2, likelihood=kind)
        assert list(data["log_likelihood"].data_vars) == [kind]
        found = az.loo(data)
        elpd = found.elpd_loo if is_old(az) else found.elpd
        assert abs(elpd - scores.sum()) < 0.1 * found.se
        assert found.se == pytest.approx(scores.std() * np.sqrt(len(Y)), rel=0.05)
    data = bnb.to_arviz(nb, X[COLUMNS], Y, draws=100, chains=2)
    if is_old(az):  # which has no default for the variable
        az.plot_loo_pit(data, y="label")
    else:
        az.plot_loo_pit(data)


def test_sensitivity_to_prior_and_likelihood(az):
    """Power-scaling: a prior worth 200 rows matters, one worth a tenth of a row does not."""
    y, columns = Y[::6], X[COLUMNS][::6]
    found = {}
    for kappa in (0.1, 200.0):
        nb = bnb.GaussianNB(prior=bnb.NormalInverseGamma(columns.mean().to_numpy() + 1.0, kappa, 3.0, 1.0)).fit(
            columns, y
        )
        data = bnb.to_arviz(nb, columns, y, draws=1000, chains=2, likelihood="row")
        if is_old(az):
            found[kappa] = float(az.psens(data, component="prior")["mu"].max())
            assert float(az.psens(data, component="likelihood")["mu"].max()) > 0.05
        else:
            table = az.psense_summary(data, var_names=["mu"])
            found[kappa] = float(table["prior"].astype(float).max())
            assert float(table["likelihood"].astype(float).max()) > 0.05
    assert found[0.1] < 0.05 < found[200.0]


def test_three_models_have_the_ranks_of_exact_leave_one_out(az):
    columns = {"three": COLUMNS, "two": COLUMNS[:2], "one": COLUMNS[2:]}
    fits = {name: bnb.GaussianNB().fit(X[c], Y) for name, c in columns.items()}
    data = {name: bnb.to_arviz(nb, X[columns[name]], Y, draws=200, chains=2) for name, nb in fits.items()}
    exact = {name: bnb.loo(nb, X[columns[name]], Y) for name, nb in fits.items()}
    ranks = sorted(exact, key=lambda name: -exact[name].elpd)
    found = az.compare(data)
    assert found.sort_values("rank").index.tolist() == ranks
    exactly = az.compare({name: scores.to_elpd() for name, scores in exact.items()})
    assert exactly.sort_values("rank").index.tolist() == ranks
