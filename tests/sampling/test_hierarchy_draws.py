"""Draws of θ given draws of hyperparameters: exact conditional moments, for all columns and for some of them."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpyro import distributions as dist
from scipy import stats

import bayesnb as bnb
from bayesnb.sampling import nuts, programs
from bayesnb.sampling.nuts import count_groups
from bayesnb.sampling.programs import Hierarchy
from bayesnb.uncertainty import site_names
from bayesnb.uncertainty.draws import feature_masks
from tests.raises import refused

N_DRAWS = 4000
WORDS = [f"w{j}" for j in range(12)]


@cache
def text() -> tuple[Any, pd.DataFrame, np.ndarray, np.ndarray]:
    """Counts of words in two classes, with words that a class does not have, in two groups of rows."""
    rng = np.random.default_rng(2)
    y, group = np.arange(40) % 2, np.arange(40) // 20
    X = pd.DataFrame(rng.poisson(rng.gamma(0.3, 2.0, (2, len(WORDS)))[y]), columns=WORDS)
    return bnb.MultinomialNB().fit(X, y), X, y, group


@cache
def mixed() -> tuple[Any, pd.DataFrame, np.ndarray]:
    """Columns of levels, numbers and counts, of which counts have no hyperprior."""
    rng = np.random.default_rng(3)
    y = np.arange(30) % 2
    X = pd.DataFrame({"colour": rng.choice(["blue", "green", "red"], 30), "ripe": rng.choice(["no", "yes"], 30)})
    X["size"], X["width"] = rng.normal(y, 1.0), rng.normal(2.0, 0.5, 30)
    X["spots"] = rng.poisson(2.0, 30)
    return bnb.MixedNB(poisson=["spots"], numbers="gaussian").fit(X, y), X, y


def draw(nb: Any, kind: Any, samples: dict[str, np.ndarray], features: Any, statistics: Any = None) -> Any:
    """θ by site, one draw for each entry of the samples, in batches of a few."""
    fitted = nb.fitted_
    target = Hierarchy(fitted.prior, kind, dist.LogNormal(-1.0, 1.5), site_names(fitted.encoding, fitted.prior))
    masks = feature_masks(fitted.encoding, features)
    return target.finish(samples, fitted.statistics if statistics is None else statistics, masks, 5)[0]


def alternate(first: Any, second: Any) -> np.ndarray:
    """N_DRAWS entries: the first value and the second in turn, so that a draw of a neighbour's would be seen."""
    return np.array([first, second])[np.arange(N_DRAWS) % 2]


def assert_moments(values: np.ndarray, exact: Any) -> None:
    """Means and variances of draws (S, …) within five standard errors of those of SciPy's distribution."""
    mean, variance = exact.mean(), exact.var()
    assert values.shape[1:] == np.shape(mean)
    for found, expected in ((values, mean), ((values - mean) ** 2, variance)):
        error = found.std(axis=0) / np.sqrt(len(found))
        assert (abs(found.mean(axis=0) - expected) <= 5 * error + 1e-12).all()


@pytest.fixture(params=[2**22, 700], ids=["one batch", "many batches"])
def batches(request, monkeypatch):
    monkeypatch.setattr(programs, "_MOST_CELLS", request.param)


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize("features", [None, ["w3"], ["w0", "w7", "w11"]], ids=["all", "one", "three"])
@pytest.mark.parametrize("kind", ["symmetric", "pooled"])
def test_words_have_their_exact_moments_given_the_hyperparameters(kind, features):
    """θ_l ~ Beta(α_l + n_l, α₀ + n - α_l - n_l) of each word, whatever words are drawn."""
    nb, X, y, _ = text()
    rng = np.random.default_rng(4)
    base = alternate(*rng.dirichlet(np.ones(12), 2)) if kind == "pooled" else np.full((N_DRAWS, 12), 1 / 12)
    samples = {"alpha": alternate(0.2, 30.0), "class_alpha": alternate(0.5, 90.0), "base_measure": base}
    drawn = draw(nb, kind, samples, features)
    kept = [WORDS.index(name) for name in features or WORDS]
    count = np.stack([X[y == c].sum().to_numpy() for c in (0, 1)])
    for s in (0, 1):
        alpha = 12 * samples["alpha"][s] * base[s] + count
        rest = alpha.sum(axis=1, keepdims=True) - alpha
        assert_moments(drawn["theta"][s::2], stats.beta(alpha[:, kept], rest[:, kept]))
        of_class = samples["class_alpha"][s] + 20.0
        assert_moments(drawn["class_prob"][s::2], stats.beta(np.full(2, of_class), of_class))
    total = drawn["theta"].sum(axis=-1)
    assert np.allclose(total, 1.0) if features is None else (total < 1.0).all()
    if features == ["w0", "w7", "w11"]:  # Dirichlet: words of a text are negatively correlated.
        a, b = alpha[0, [0, 7]]
        products = drawn["theta"][1::2, 0, 0] * drawn["theta"][1::2, 0, 1]
        exact = a * b / (alpha[0].sum() * (alpha[0].sum() + 1))
        assert abs(products.mean() - exact) <= 5 * products.std() / np.sqrt(len(products))


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize("features", [None, ["ripe", "size", "spots"]], ids=["all", "some"])
def test_columns_of_each_kind_have_their_exact_moments(features):
    nb, X, y = mixed()
    rng = np.random.default_rng(5)
    samples = {"alpha": alternate(0.2, 9.0), "class_alpha": alternate(0.5, 9.0)}
    samples |= {"loc": alternate(*rng.normal(size=(2, 2))), "rate_of_sigma2": alternate(*rng.gamma(2.0, size=(2, 2)))}
    drawn = draw(nb, "symmetric", samples, features)
    chosen = features or list(X)
    levels = {name: sorted(X[name].unique()) for name in ("colour", "ripe") if name in chosen}
    numbers = [name for name in ("size", "width") if name in chosen]
    prior = next(f for f in nb.prior_.blocks if isinstance(f, bnb.NormalInverseGamma))
    poisson = next(f for f in nb.posterior_.blocks if isinstance(f, bnb.GammaPoisson))
    kappa, a = float(prior.kappa[0, 0]), float(prior.concentration[0, 0])
    for s in (0, 1):
        for c in (0, 1):
            rows = X[y == c]
            counts = [[(rows[name] == value).sum() for value in known] for name, known in levels.items()]
            alpha = [np.array(count) + samples["alpha"][s] for count in counts]
            rest = np.concatenate([v.sum() - v for v in alpha])
            assert_moments(drawn["theta"][s::2, c], stats.beta(np.concatenate(alpha), rest))
            for k, name in enumerate(numbers):
                x, j = rows[name].to_numpy(), ("size", "width").index(name)
                m, b, n = samples["loc"][s, j], samples["rate_of_sigma2"][s, j], len(rows)
                b += n * x.var() / 2 + kappa * n * (x.mean() - m) ** 2 / (2 * (kappa + n))
                scale = np.sqrt(b / ((a + n / 2) * (kappa + n)))
                centre = (kappa * m + n * x.mean()) / (kappa + n)
                assert_moments(drawn["mu"][s::2, c, k], stats.t(2 * a + n, centre, scale))
                assert_moments(drawn["sigma2"][s::2, c, k], stats.invgamma(a + n / 2, scale=b))
            # Spots keep their prior, which has no hyperparameters.
            rates = stats.gamma(poisson.concentration[c], scale=1 / poisson.rate[c])
            assert_moments(drawn["rate"][s::2, c], rates)


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize("features", [None, ["w3"], ["w0", "w7"]], ids=["all", "one", "two"])
def test_words_of_each_group_have_their_exact_moments(features):
    """θ_gc ~ Dirichlet(t m_c + n_gc), also of a group without rows."""
    nb, X, y, group = text()
    _, statistics = count_groups(nb.fitted_, X, y, None, group)
    rng = np.random.default_rng(6)
    mean = alternate(rng.dirichlet(np.ones(12), 2), rng.dirichlet(np.ones(12), 2))
    class_mean = alternate([[0.3, 0.7]], [[0.5, 0.5]])
    samples = {"total": alternate([5.0], [400.0]), "theta_mean": mean}
    samples |= {"class_total": alternate([2.0], [50.0]), "class_prob_mean": class_mean}
    drawn = draw(nb, "grouped", samples, features, statistics)
    kept = [WORDS.index(name) for name in features or WORDS]
    theta = drawn["theta"].reshape(N_DRAWS, 3, 2, -1)
    class_prob = drawn["class_prob"].reshape(N_DRAWS, 3, 2)
    for s in (0, 1):
        for g in (0, 1, 2):
            of_class = samples["class_total"][s] * class_mean[s, 0] + np.bincount(y[group == g], minlength=2)
            assert_moments(class_prob[s::2, g], stats.beta(of_class, of_class.sum() - of_class))
            for c in (0, 1):
                alpha = samples["total"][s] * mean[s, c] + X[(group == g) & (y == c)].sum().to_numpy()
                assert_moments(theta[s::2, g, c], stats.beta(alpha[kept], (alpha.sum() - alpha)[kept]))


# -- how much is drawn -----------------------------------------------------------------------------


def run(nb: Any, kind: Any, features: Any = None, **rows: Any) -> tuple[Any, list[str]]:
    """Draws by NUTS, and what `run_nuts` itself warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = bnb.run_nuts(nb, kind, draws=30, warmup=100, chains=2, progress=False, features=features, **rows)
    return data, [str(w.message) for w in caught if str(w.message).startswith("run_nuts: ")]


@pytest.mark.slow("NUTS compiles for seconds")
@pytest.mark.parametrize("kind", ["symmetric", "pooled", "grouped"])
def test_parameters_beyond_the_bound_are_drawn_where_features_ask(kind, monkeypatch):
    nb, X, y, group = text()
    hyperprior, rows, groups, n_groups = kind, {}, {}, 1
    if kind == "grouped":
        hyperprior, rows, groups, n_groups = "pooled", {"X": X, "y": y, "groups": group}, {"groups": group}, 3
    size = 60 * n_groups * 2 * 12
    monkeypatch.setattr(nuts, "_MOST_NUMBERS", size)
    everything, said = run(nb, hyperprior, **rows)
    assert not said
    assert everything["posterior"]["theta"].size == size
    monkeypatch.setattr(nuts, "_MOST_NUMBERS", size - 1)
    without, (message,) = run(nb, hyperprior, **rows)
    assert f"60 draws of {size // 60} parameters are more than {size - 1:,} numbers" in message
    posterior = without["posterior"]
    assert posterior.attrs["features"] == message.removeprefix("run_nuts: ")
    # Hyperparameters are all kept, and suffice for predictions.
    assert set(posterior.data_vars) == set(everything["posterior"].data_vars) - {"theta"}
    assert ("feature" in posterior.coords) == (kind != "symmetric")
    for site, values in posterior.data_vars.items():
        np.testing.assert_array_equal(values, everything["posterior"][site])
    first, second = (nb.predict_proba(X, draws=data, **groups) for data in (without, everything))
    np.testing.assert_allclose(first, second, rtol=1e-12)
    if kind == "symmetric":
        refused("no parameter named 'theta'.*features=", bnb.parameter_table, nb, draws=without)
        assert (np.diff(bnb.predict_interval(nb, X[:2], draws=without), axis=0) > 0).all()
    # What is asked for is drawn, whatever the bound.
    for features in ([], ["w7", "w3"], range(12)):
        asked, said = run(nb, hyperprior, features=features, **rows)
        assert not said
        shape = asked["posterior"]["theta"].shape[-1:] if "theta" in asked["posterior"] else (0,)
        assert shape == (len(features),)
    again, _ = run(nb, hyperprior, features=range(12), **rows)
    np.testing.assert_array_equal(asked["posterior"]["theta"], again["posterior"]["theta"])


def test_the_bound_counts_the_parameters_of_all_blocks_draws_and_groups(monkeypatch):
    """Two classes of 5 levels, 2 means, 2 variances and a rate: 20 numbers."""
    fitted = mixed()[0].fitted_
    monkeypatch.setattr(nuts, "_MOST_NUMBERS", 20 * 6)
    assert nuts._reason_against_parameters(fitted, 6, 1) == nuts._reason_against_parameters(fitted, 2, 3) == ""
    assert "7 draws of 20 parameters are more than 120 numbers" in nuts._reason_against_parameters(fitted, 7, 1)
    assert "3 draws of 60 parameters" in nuts._reason_against_parameters(fitted, 3, 3)
