"""The program as text: its density is the closed form's, it simulates rows that fit takes, and it can be changed."""

import ast
import inspect
import math
import pickle
from functools import partial
from typing import Any

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pandas as pd
import pytest
from numpyro import distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import log_density
from scipy import stats
from sklearn.datasets import load_wine

import bayesnb as bnb
from bayesnb._util.precision import float64
from tests.raises import refused
from tests.sampling.monte_carlo import errors
from tests.sampling.problem import TOLERANCE, values_by_column

RNG = np.random.default_rng(2)
Y = np.array(["ash", "elm", "oak"])[np.arange(24) % 3]
LEVELS = pd.DataFrame(
    {
        "leaf": np.array(["long", "round", "lobed"])[(np.arange(24) + RNG.integers(0, 2, 24)) % 3],
        "bark": np.array(["rough", "smooth"])[RNG.integers(0, 2, 24)],
        "bud": np.array(["black", "brown", "green"])[RNG.integers(0, 3, 24)],
    }
)
NUMBERS = pd.DataFrame(RNG.normal(np.arange(24)[:, None] % 3, 1.0, (24, 2)), columns=["height", "girth"])
COUNTS = RNG.poisson(1.0 + np.arange(24)[:, None] % 3, (24, 3))
UNKNOWN = LEVELS.assign(bud=LEVELS["bud"].where(LEVELS["bud"] != "green", "?"))
NETWORK = {"leaf": None, "bark": "leaf", "bud": ("leaf", "bark")}
CASES: dict[str, tuple[Any, Any]] = {
    "categorical": (bnb.CategoricalNB(alpha=0.7), LEVELS),
    "alpha of each level": (bnb.CategoricalNB(alpha=[[1.0, 2.0, 3.0], [0.5, 0.25], [1.0, 1.0, 4.0]]), LEVELS),
    "reserved level": (bnb.CategoricalNB(handle_unknown="level"), LEVELS),
    "marks of missing cells": (bnb.CategoricalNB(missing_values=["?"]), UNKNOWN),
    "integers without names": (bnb.CategoricalNB(), COUNTS),
    "bernoulli": (bnb.BernoulliNB(alpha=0.5, binarize=1.5), COUNTS),
    "multinomial": (bnb.MultinomialNB(alpha=0.3), COUNTS),
    "gaussian": (bnb.GaussianNB(class_prior=[0.2, 0.5, 0.3]), NUMBERS),
    "gaussian, one given": (bnb.GaussianNB(prior={"girth": bnb.NormalInverseGamma(1.0, 2.0, 3.0, 4.0)}), NUMBERS),
    "poisson": (bnb.PoissonNB(class_alpha=2.0), COUNTS),
    "exponential": (bnb.ExponentialNB(), np.exp(NUMBERS)),
    "mixed": (bnb.MixedNB(numbers="gaussian"), pd.concat([LEVELS, NUMBERS], axis=1)),
    "spode": (bnb.SPODE("leaf"), LEVELS),
    "tan": (bnb.TAN(), LEVELS),
    "network": (bnb.NetworkNB(NETWORK), LEVELS),
    "all parents given": (bnb.NetworkNB({"leaf": None, "bark": None, "bud": ("leaf", "bark")}), LEVELS),
}
QUICK = ("categorical", "mixed", "network")
every_case = pytest.mark.parametrize(
    "case", [c if c in QUICK else pytest.param(c, marks=pytest.mark.slow("compiles its densities")) for c in CASES]
)


def density(model: Any, values: dict[str, Any]) -> np.ndarray:
    """(S,) log density of a program at S values of its sites."""
    return np.asarray(float64(jax.jit(jax.vmap(lambda v: log_density(model, (), {}, v)[0])))(values))


@every_case
def test_the_joint_density_over_that_of_the_posterior_is_the_evidence(case):
    """Law 2 at twenty θ: log p(X, y, θ) - log p(θ | X, y) = log p(X, y); p(θ | X, y) by SciPy."""
    nb, X = CASES[case]
    nb = nb.fit(X, Y)
    drawn = bnb.posterior_draws(nb, 20, seed=1)
    joint = density(partial(bnb.numpyro_model(nb), X, Y), values_by_column(nb, drawn))
    found = joint - log_posterior(nb, drawn)
    np.testing.assert_allclose(found, nb.log_evidence_, rtol=0, atol=TOLERANCE * abs(nb.log_evidence_))


def log_posterior(nb: Any, drawn: Any) -> np.ndarray:
    """(S,) log density of the posterior at draws of its parameters, by SciPy."""
    model, total = nb.posterior_, 0.0
    if not model.class_prior.fixed:
        total = total + stats.dirichlet(np.asarray(model.class_prior.concentration)[0]).logpdf(drawn["class_prob"].T)
    for family in model.blocks:
        if isinstance(family, bnb.Dirichlet):
            group = np.asarray(family.group)
            for c, g in np.ndindex(3, family.num_groups):
                theta = drawn["theta"][:, c, group == g]
                if theta.shape[1] > 1:
                    total = total + stats.dirichlet(np.asarray(family.concentration)[c, group == g]).logpdf(theta.T)
        elif isinstance(family, bnb.NormalInverseGamma):
            mu, sigma2 = drawn["mu"], drawn["sigma2"]
            of_each = stats.invgamma.logpdf(sigma2, family.concentration, scale=family.rate)
            of_each += stats.norm.logpdf(mu, family.loc, np.sqrt(sigma2 / family.kappa))
            total = total + of_each.sum(axis=(1, 2))
        else:
            of_each = stats.gamma.logpdf(drawn["rate"], family.concentration, scale=1 / np.asarray(family.rate))
            total = total + of_each.sum(axis=(1, 2))
    return total


@every_case
def test_it_simulates_rows_that_fit_takes(case):
    nb, X = CASES[case]
    nb = nb.fit(X, Y)
    rows = Predictive(bnb.numpyro_model(nb), num_samples=1)(jax.random.key(0))
    if "count" in rows:
        simulated = np.asarray(rows["count"][0])
    else:
        simulated = pd.DataFrame({name: np.asarray(rows[str(name)][0]) for name in nb.encoding_.feature_names})
    again = nb.__class__(**nb.get_params()) if case != "alpha of each level" else bnb.CategoricalNB()
    if case == "bernoulli":
        again.set_params(binarize=0.5)  # cells are 0 and 1
    if case == "gaussian":
        again.set_params(class_prior=None)  # not every class need occur
    again.fit(simulated, np.asarray(rows["label"][0]))
    assert len(simulated) == 24
    assert again.class_count_.sum() == 24


def test_values_of_jax_give_the_density_of_numpys():
    """Labels and rows that are JAX arrays, inside of a traced function, as NUTS and SVI call the model."""
    code = np.arange(24) % 3
    for nb, X, rows in (
        (bnb.GaussianNB(), np.asarray(NUMBERS), jnp.asarray),
        (bnb.CategoricalNB(), LEVELS, lambda X: X),
    ):
        model = bnb.numpyro_model(nb.fit(X, code))
        values = {site: v[None] for site, v in seeded_values(model).items()}
        expected, found = (density(partial(model, *data), values) for data in ((X, code), (rows(X), jnp.asarray(code))))
        np.testing.assert_allclose(found, expected, rtol=1e-6)  # The rows of JAX are in float32.


def density_at(values: dict[str, Any], model: Any, *args: Any, **kwargs: Any) -> np.ndarray:
    """Log density of a program at values of its sites."""
    return float64(jax.jit(lambda values: log_density(model, args, kwargs, values)[0]))(values)


@float64
def drawn_rows(model: Any) -> Any:
    """Positions of the rows that a seeded model draws."""
    return numpyro.handlers.trace(model).get_trace()["rows"]["value"]


def seeded_values(model: Any) -> dict[str, np.ndarray]:
    """One draw of the parameters from the prior of a model."""
    drawn = numpyro.handlers.trace(numpyro.handlers.seed(model, 0)).get_trace(n_rows=1)
    return {k: np.asarray(v["value"]) for k, v in drawn.items() if v["type"] == "sample" and v["name"] in model.dims}


@every_case
def test_encoded_rows_are_arguments_of_compiled_functions_and_batches_are_scaled(case):
    """The mean log density of six batches is that of all rows, and of a batch that the model draws that of its rows."""
    nb, X = CASES[case]
    model = bnb.numpyro_model(nb.fit(X, Y))
    rows, values = model.encode(X, Y), values_by_column(nb, bnb.posterior_draws(nb, 1, seed=3))
    assert {v.shape[0] for v in rows.values()} == {24}
    values = {site: v[0] for site, v in values.items()}
    compiled = float64(partial(jax.jit(lambda values, rows, **n: log_density(model, (rows,), n, values)[0]), values))
    whole = compiled(rows)
    np.testing.assert_allclose(whole, density_at(values, model, X, Y), rtol=1e-12)
    if nb.__class__ is bnb.CategoricalNB:  # The reading of the text is that of `fit`.
        codes = nb.fitted_.encode(X)[0][0].codes
        np.testing.assert_array_equal(np.stack([rows[str(name)] for name in nb.encoding_.feature_names], 1), codes)

    def take(index: Any) -> Any:
        return jax.tree.map(lambda v: v[index], rows)

    batches = [compiled(take(np.arange(i, 24, 6)), n_rows=24) for i in range(6)]
    np.testing.assert_allclose(np.mean(batches), whole, rtol=1e-12)
    draws_rows = numpyro.handlers.seed(partial(model, rows, subsample_size=5), 7)
    index = drawn_rows(draws_rows)
    assert len(set(index.tolist())) == 5
    found, batch = density_at(values, draws_rows), compiled(take(index), n_rows=24)
    np.testing.assert_allclose(found, batch, rtol=1e-12)


def test_a_batch_takes_its_offsets_and_what_is_traced_must_be_encoded():
    model, by = bnb.numpyro_model(bnb.GaussianNB().fit(NUMBERS, Y)), np.linspace(-1.0, 2.0, len(Y))
    sites = {f"{kind}_{name}": np.array([0.5, 1.0, 2.0]) for kind in ("mu", "sigma2") for name in NUMBERS}
    sites["class_prob"] = np.array([0.2, 0.3, 0.5])
    draws_rows = numpyro.handlers.seed(partial(model, NUMBERS, Y, subsample_size=5), 7)
    index = drawn_rows(draws_rows)
    found = density_at(sites, draws_rows, offset={"height": by})
    expected = density_at(sites, model, NUMBERS.iloc[index], Y[index], n_rows=24, offset={"height": by[index]})
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    traced = jax.jit(lambda y: log_density(model, (NUMBERS, y), {}, sites)[0])
    refused("is traced by JAX.*encode", traced, np.arange(24) % 3, error=TypeError)


def programs_of_the_docs() -> dict[str, tuple[Any, Any, Any]]:
    """Classifier, rows and labels of each program in README.md and docs/howto/numpyro_program.md, labels as numbers."""
    wine, kind = load_wine(return_X_y=True, as_frame=True)
    melons = bnb.datasets.load_watermelon(language="en")
    ripe = np.unique(melons.target, return_inverse=True)[1]
    return {
        "README": (bnb.GaussianNB(), wine[::15], kind[::15]),
        "three columns of melons": (bnb.CategoricalNB(), melons.data[["sound", "texture", "touch"]], ripe),
        "numbers": (bnb.GaussianNB(), wine[["alcohol", "malic_acid"]][::5], kind[::5]),
        "an array of JAX": (bnb.GaussianNB(), wine.to_numpy()[::15, :2], kind[::15]),
    }


@pytest.mark.slow("compiles samplers")
@pytest.mark.parametrize("name", programs_of_the_docs())
def test_programs_of_the_docs_take_labels_of_jax_run_compiled_and_in_batches(name):
    nb, X, y = programs_of_the_docs()[name]
    model, y, n = bnb.numpyro_model(nb.fit(X, y)), jnp.asarray(y), len(X)
    X = jnp.asarray(X) if isinstance(X, np.ndarray) else X
    rows, drawn = model.encode(X, y), []
    for data, jit_model_args in (((X, y), False), ((rows,), False), ((rows,), True)):
        sampler = MCMC(NUTS(model), num_warmup=5, num_samples=5, progress_bar=False, jit_model_args=jit_model_args)
        sampler.run(jax.random.key(0), *data)
        drawn.append(sampler.get_samples()["class_prob"])
    for found in drawn[1:]:
        np.testing.assert_allclose(found, drawn[0], rtol=1e-2)
    svi = SVI(partial(model, n_rows=n), AutoNormal(model), numpyro.optim.Adam(0.01), Trace_ELBO())
    assert np.isfinite(svi.run(jax.random.key(0), 3, X, y, progress_bar=False).losses).all()
    update, state = jax.jit(svi.update), svi.init(jax.random.key(0), rows)
    for size in (n, 8, 5):
        state, loss = update(state, jax.tree.map(lambda v, size=size: v[:size], rows))
        assert np.isfinite(loss)
    of_some = SVI(partial(model, subsample_size=6), AutoNormal(model), numpyro.optim.Adam(0.01), Trace_ELBO())
    assert np.isfinite(of_some.run(jax.random.key(0), 3, rows, progress_bar=False).losses).all()


def test_a_model_is_pickled_and_its_source_is_found():
    nb, X = CASES["mixed"]
    model = bnb.numpyro_model(nb.fit(X, Y))
    drawn = {site: v[None] for site, v in seeded_values(model).items()}
    for module in (pickle, cloudpickle):
        again = module.loads(module.dumps(model))
        assert (again.source, again.coords, again.dims) == (model.source, model.coords, model.dims)
        np.testing.assert_array_equal(density(partial(again, X, Y), drawn), density(partial(model, X, Y), drawn))
    assert model.source == bnb.numpyro_source(nb)
    assert inspect.getsource(model) in model.source
    assert 'numpyro.plate("classes", 3)' in inspect.getsource(model)
    assert "get_indexer" in inspect.getsource(model.encode)
    assert list(inspect.signature(model).parameters) == ["X", "y", "n_rows", "offset", "subsample_size"]


@every_case
def test_dimensions_name_every_axis_of_every_site(case):
    nb, X = CASES[case]
    model = bnb.numpyro_model(nb.fit(X, Y), None if case not in ("categorical", "multinomial") else "pooled")
    drawn = Predictive(model, num_samples=1)(jax.random.key(0))
    for site, values in drawn.items():
        sizes = [24 if dim == "observation" else len(model.coords[dim]) for dim in model.dims[site]]
        assert sizes == list(values.shape[1:]), site
    assert model.coords["class"] == ["ash", "elm", "oak"]


@pytest.mark.slow("compiles a sampler")
def test_arviz_shows_the_names_of_classes_and_levels():
    import arviz as az

    model = bnb.numpyro_model(bnb.CategoricalNB().fit(LEVELS, Y))
    sampler = MCMC(NUTS(model), num_warmup=5, num_samples=5, progress_bar=False)
    sampler.run(jax.random.key(0), LEVELS, Y)
    data = az.from_numpyro(sampler, coords=model.coords, dims=model.dims)
    assert data["posterior"]["theta_leaf"].dims == ("chain", "draw", "class", "leaf_level")
    assert data["posterior"]["theta_leaf"].sel({"class": "elm", "leaf_level": "long"}).shape == (1, 5)
    assert data["observed_data"]["leaf"].dims == ("observation",)


def test_dimensions_are_not_called_as_columns():
    X = LEVELS.set_axis(["observation", "class", "class_level"], axis=1)
    model = bnb.numpyro_model(bnb.CategoricalNB().fit(X, Y))
    assert model.dims["observation"] == model.dims["label"] == ["observation_dim"]
    assert model.dims["theta_class"] == ["class_dim", "class_level_dim"]
    assert not set(model.dims) & {*model.coords, *(dim for dims in model.dims.values() for dim in dims)}


def test_an_offset_moves_the_means_of_the_rows():
    """The density of numbers about moved means is that of numbers that are moved back."""
    nb = bnb.GaussianNB().fit(NUMBERS, Y)
    model, by = bnb.numpyro_model(nb), np.linspace(-1.0, 2.0, len(Y))
    sites = {f"{kind}_{name}": np.array([0.5, 1.0, 2.0]) for kind in ("mu", "sigma2") for name in NUMBERS}
    sites["class_prob"] = np.array([0.2, 0.3, 0.5])
    back = NUMBERS.assign(height=NUMBERS["height"] - by)
    moved, expected = (
        float64(lambda X=X, offset=offset: log_density(model, (X, Y), {"offset": offset}, sites)[0])()
        for X, offset in [(NUMBERS, {"height": by}), (back, {})]
    )
    np.testing.assert_allclose(moved, expected, rtol=1e-12)
    for offset, words in [({"hight": by}, "hight"), ({"height": by[:, None]}, "broadcast")]:
        refused(words, log_density, model, (NUMBERS, Y), {"offset": offset}, sites)


@pytest.mark.parametrize("case", [case for case in CASES if "gaussian" not in case])
def test_an_offset_of_columns_that_are_not_normal_is_refused(case):
    nb, X = CASES[case]
    nb = nb.fit(X, Y)
    column = nb.encoding_.blocks[0].names[0]
    refused(f"offset names .*{column}.* no normal columns", bnb.numpyro_model(nb), X, Y, offset={column: 1.0})


def test_missing_cells_have_no_density():
    X = LEVELS.assign(bud=LEVELS["bud"].where(np.arange(24) > 3))
    nb = bnb.CategoricalNB().fit(X, Y)
    drawn = bnb.posterior_draws(nb, 20)
    joint = density(partial(bnb.numpyro_model(nb), X, Y), values_by_column(nb, drawn))
    np.testing.assert_allclose(joint - log_posterior(nb, drawn), nb.log_evidence_, rtol=1e-9)


@pytest.mark.parametrize("kind", ["symmetric", "pooled"])
def test_hyperparameters_have_the_density_of_their_definition(kind):
    """log p(α) + log p(m) + Σ log Dirichlet(θ; α or α L m) + log likelihood, term by term with SciPy."""
    X = LEVELS[["leaf", "bark"]]
    nb = bnb.CategoricalNB().fit(X, Y)
    theta = values_by_column(nb, bnb.posterior_draws(nb, 1))
    values = {site: v[0] for site, v in theta.items()} | {"alpha": 0.8, "class_alpha": 1.7}
    if kind == "pooled":
        values |= {"base_measure_leaf": np.array([0.2, 0.5, 0.3]), "base_measure_bark": np.array([0.6, 0.4])}
    (found,) = density(partial(bnb.numpyro_model(nb, kind), X, Y), {k: np.asarray(v)[None] for k, v in values.items()})
    expected = stats.lognorm(1.5, scale=np.exp(-1.0)).logpdf([0.8, 1.7]).sum()
    expected += stats.dirichlet([1.7] * 3).logpdf(values["class_prob"])
    expected += np.log(values["class_prob"][np.arange(24) % 3]).sum()
    for name in X:
        table, n_levels = values[f"theta_{name}"], X[name].nunique()
        base = values.get(f"base_measure_{name}")
        if base is not None:
            expected += stats.dirichlet(np.ones(n_levels)).logpdf(base)
        alpha = np.full(n_levels, 0.8) if base is None else 0.8 * n_levels * base
        expected += sum(stats.dirichlet(alpha).logpdf(row / row.sum()) for row in table)
        code = [sorted(set(X[name])).index(v) for v in X[name]]
        expected += np.log(table[np.arange(24) % 3, code]).sum()
    assert found == pytest.approx(expected, rel=1e-9)


def test_it_is_plain_python_that_notebooks_highlight():
    text = bnb.numpyro_source(bnb.MixedNB().fit(pd.concat([LEVELS, NUMBERS], axis=1), Y))
    defined = ast.parse(text).body
    functions = [node.name for node in defined if isinstance(node, ast.FunctionDef)]
    assert functions == ["encode", "sample_cells", "model"]
    assert text._repr_markdown_() == f"```python\n{text}```\n"
    for line in (
        "dist.InverseGamma(",
        "dist.Normal(mu[name][label]",
        'numpyro.plate("classes", 3)',
        "# P(c) ~ Dirichlet",
    ):
        assert line in text


@pytest.mark.slow("NUTS on plates of rows")
@pytest.mark.parametrize("case", ["categorical", "gaussian", "poisson"])
def test_nuts_on_the_text_has_the_exact_posterior(case):
    nb, X = CASES[case]
    nb = nb.fit(X, Y)
    drawn = sample(bnb.numpyro_model(nb), X)
    exact = values_by_column(nb, bnb.posterior_draws(nb, 200_000))
    for site, chains in drawn.items():
        for power in (1, 2):
            assert np.abs(errors(chains**power - (exact[site] ** power).mean(axis=0))).max() < 4.5


@pytest.mark.slow("NUTS on plates of rows")
def test_a_changed_line_is_another_hyperprior():
    nb = bnb.CategoricalNB().fit(LEVELS, Y)
    text = bnb.numpyro_source(nb, "symmetric").replace("dist.LogNormal(loc=-1.0, scale=1.5)", "dist.HalfCauchy(1.0)")
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    changed = sample(namespace["model"], LEVELS)
    data = bnb.run_nuts(nb, dist.HalfCauchy(1.0), draws=2000, warmup=1000, chains=2, progress=False)
    for site in ("alpha", "class_alpha"):
        mine, theirs = np.log(changed[site]), np.log(data["posterior"][site].to_numpy())
        # As many draws, and of as many effective ones: the error of the difference is √2 times that of a mean.
        assert abs(errors(mine - theirs.mean())) < 4.5 * np.sqrt(2.0)


@pytest.mark.slow("NUTS compiles for seconds")
@pytest.mark.filterwarnings("ignore:NUTS")
@pytest.mark.parametrize(
    ("case", "kind"), [("mixed", None), ("mixed", "pooled"), ("network", "symmetric"), ("multinomial", "pooled")]
)
def test_run_nuts_with_rows_has_the_densities_of_the_program(case, kind):
    """Σ log_prior + Σ log_likelihood is the log density of the text at each draw of parameters and hyperparameters."""
    nb, X = CASES[case]
    nb, options = nb.fit(X, Y), {"draws": 20, "warmup": 20, "chains": 2, "progress": False}
    data = bnb.run_nuts(nb, kind, X=X, y=Y, likelihood="row", **options)
    drawn = {site: v.to_numpy().reshape(40, *v.shape[2:]) for site, v in data["posterior"].data_vars.items()}
    values = values_by_column(nb, drawn)
    constant = 0.0
    for site in drawn.keys() - set(bnb.posterior_draws(nb, 1)):
        if site in ("loc", "rate"):
            values |= {f"{site}_{name}": drawn[site][:, j] for j, name in enumerate(NUMBERS)}
        elif site == "base_measure" and case == "multinomial":
            values[site], constant = drawn[site], np.log(2.0)  # Γ(3), the density of a uniform base measure
        elif site.startswith("base_measure"):
            tables = nb.encoding_.blocks[0].tables(drawn[site])
            values |= {f"{site}_{name}": t for name, t in zip(nb.encoding_.blocks[0].names, tables, strict=True)}
            constant = sum(t[0].size / t.shape[-1] * math.lgamma(t.shape[-1]) for t in tables)
        else:
            values[site] = drawn[site]
    model = bnb.numpyro_model(nb, kind)
    prior = sum(v.to_numpy().reshape(40, -1).sum(axis=1) for v in data["log_prior"].data_vars.values())
    found = prior + constant + data["log_likelihood"]["row"].to_numpy().reshape(40, -1).sum(axis=1)
    np.testing.assert_allclose(found, density(partial(model, X, Y), values), rtol=1e-9)
    for group in ("prior", "posterior"):
        assert {k: v.dims for k, v in data[group].data_vars.items()} == {
            k: v.dims for k, v in data["posterior"].data_vars.items()
        }
    for group in ("prior_predictive", "posterior_predictive", "observed_data"):
        assert "label" in data[group]
    if case == "network":
        many = bnb.run_nuts(nb, kind, X=X, y=Y, **options | {"draws": 1000, "warmup": 10})["prior"]
        log_alpha = np.log(many["class_alpha"].to_numpy().ravel())
        assert stats.kstest(log_alpha, stats.norm(-1.0, 1.5).cdf).pvalue > 1e-3
        np.testing.assert_allclose(many["class_prob"].mean(("chain", "draw")), 1 / 3, atol=0.05)
    elif kind is None:
        exact = bnb.to_arviz(nb, X, Y, draws=20, chains=2)
        assert {k: v.dims for k, v in exact["log_prior"].data_vars.items()} == {
            k: v.dims for k, v in data["log_prior"].data_vars.items()
        }


def test_rows_of_run_nuts_need_all_parameters_and_no_weights():
    nb = bnb.CategoricalNB().fit(LEVELS, Y)
    refused("y was given without X", bnb.run_nuts, nb, y=Y)
    refused("likelihood='rows'", bnb.run_nuts, nb, X=LEVELS, y=Y, likelihood="rows")
    refused("features= cannot be used together with X and y", bnb.run_nuts, nb, X=LEVELS, y=Y, features=["leaf"])
    refused("sample_weight= cannot be used", bnb.run_nuts, nb, X=LEVELS, y=Y, sample_weight=np.ones(24))


def sample(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Draws (chains, draws, …) by NumPyro's own sampler."""
    sampler = MCMC(
        NUTS(model), num_warmup=1000, num_samples=2000, num_chains=2, chain_method="vectorized", progress_bar=False
    )
    float64(sampler.run)(jax.random.key(0), X, Y)
    return {site: np.asarray(v) for site, v in sampler.get_samples(group_by_chain=True).items()}


def test_what_has_no_program_says_why():
    source = bnb.numpyro_source
    nb = bnb.CategoricalNB().fit(LEVELS.rename(columns={"leaf": "label"}), Y)
    refused("a column is called 'label'.*Rename the column", source, nb)
    days = bnb.CategoricalNB().fit(LEVELS.assign(leaf=pd.to_datetime(["2020-01-01", "2020-01-02"] * 12)), Y)
    refused("level of column 'leaf'.*cannot be written as Python code", source, days)
    refused("improper", source, bnb.CategoricalNB(alpha=0).fit(LEVELS, Y))
    refused("cannot be written as Python code", source, nb, dist.TruncatedNormal(1.0, 1.0, low=0.0))
    refused("set of cuts is discrete", source, bnb.BinnedNB().fit(NUMBERS, Y), error=NotImplementedError)
    refused("AODE averages", source, bnb.AODE().fit(LEVELS, Y), error=NotImplementedError)
    weighted = bnb.WeightedNB(bnb.CategoricalNB()).fit(LEVELS, Y)
    refused(r"numpyro_source\(nb.estimator_\)", source, weighted, error=NotImplementedError)
    assert "theta" in source(weighted.estimator_)


def test_rows_that_would_need_sums_over_a_parent_are_refused():
    nb = bnb.NetworkNB(NETWORK).fit(LEVELS, Y)
    model = numpyro.handlers.seed(bnb.numpyro_model(nb), 0)
    refused("a parent of 'bark' has missing cells", model, LEVELS.assign(leaf=None), Y)
