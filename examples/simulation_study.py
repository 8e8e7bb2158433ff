"""Ten thousand simulated tables in one compiled call: log loss of maximum likelihood, MAP and the posterior mean.

    python examples/simulation_study.py [--out DIR]

A data set has 12 training rows and 50 test rows of six columns with three levels, and three classes. Its class
probabilities and its tables of level probabilities are drawn from Dirichlet(1). The script compares estimates, varies
the concentration alpha of the prior, finds alpha by the gradient of the evidence, and checks bootstrap intervals.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import beta
from sklearn.naive_bayes import CategoricalNB

from bayesnb import NaiveBayes, Statistics, kernels

N_CLASSES, N_COLUMNS, N_LEVELS = 3, 6, 3
N_TRAINING, N_TEST = 12, 50
ESTIMATES = ("MLE", "MAP, alpha = 1.5", "mean, alpha = 1")
ALPHA = np.geomspace(0.01, 100.0, 17)


class DataSet(NamedTuple):
    """One simulated data set, or many with a leading axis."""

    class_probability: jax.Array  # (3,)
    theta: jax.Array  # (3, 6, 3) probability of each level of each column in each class
    x: jax.Array  # (62, 6) codes 0, 1, 2 of the levels; the first 12 rows are for training
    label: jax.Array  # (62,) class 0, 1 or 2 of each row


def simulate(key: jax.Array) -> DataSet:
    """Draw the parameters of one data set from Dirichlet(1), and its rows given the parameters."""
    n_rows, n_parameters = N_TRAINING + N_TEST, N_CLASSES * (1 + N_COLUMNS * N_LEVELS)
    uniform = jax.random.uniform(key, (n_parameters + n_rows * (1 + N_COLUMNS),))
    # Exponential variates that are divided by their sum have the distribution Dirichlet(1).
    weight = -jnp.log1p(-uniform[:n_parameters])
    class_probability = normalize(weight[:N_CLASSES])
    theta = normalize(weight[N_CLASSES:].reshape(N_CLASSES, N_COLUMNS, N_LEVELS))
    uniform = uniform[n_parameters:].reshape(n_rows, 1 + N_COLUMNS)
    label = draw_level(class_probability, uniform[:, 0])
    return DataSet(class_probability, theta, draw_level(theta[label], uniform[:, 1:]), label)


def normalize(weight: jax.Array) -> jax.Array:
    """Weights divided by their sum over the last axis."""
    return weight / weight.sum(axis=-1, keepdims=True)


def draw_level(probability: jax.Array, uniform: jax.Array) -> jax.Array:
    """Levels drawn by inversion: the number of cumulative probabilities (…, L - 1) below each uniform number (…)."""
    return jnp.sum(uniform[..., None] > jnp.cumsum(probability, axis=-1)[..., :-1], axis=-1)


def prior(alpha: Any = 1.0) -> NaiveBayes:
    """Prior in which all levels and all classes have the concentration alpha."""
    return NaiveBayes.categorical(N_CLASSES, [N_LEVELS] * N_COLUMNS, alpha, class_alpha=alpha)


def count(data: DataSet, weight: Any = None) -> Statistics:
    """Counts of the training rows; `weight` (12,) counts each row so many times."""
    x, label = data.x[:N_TRAINING], data.label[:N_TRAINING]
    return kernels.count(Statistics.empty(prior()), x, label, weight)


def log_loss(posterior: NaiveBayes, data: DataSet, estimate: Any) -> jax.Array:
    """(50,) -log P(true class | test row): inf if the true class is impossible, NaN if every class is impossible."""
    log_joint = kernels.log_joint(posterior, data.x[N_TRAINING:], estimate)
    label = data.label[N_TRAINING:, None]
    return jax.nn.logsumexp(log_joint, axis=1) - jnp.take_along_axis(log_joint, label, axis=1)[:, 0]


def score(data: DataSet) -> jax.Array:
    """(3, 50) log loss of the test rows under the three `ESTIMATES`."""
    statistics = count(data)
    choices = (prior().improper(), "mean"), (prior(1.5), "map"), (prior(), "mean")
    return jnp.stack([log_loss(kernels.update(p, statistics), data, estimate) for p, estimate in choices])


def one_data_set(key: jax.Array) -> jax.Array:
    """(3, 50) log losses of one new data set."""
    return score(simulate(key))


study = jax.jit(jax.vmap(one_data_set))
"""(n, 3, 50) log losses of n data sets, given n keys."""


def summarize(losses: np.ndarray) -> pd.DataFrame:
    """Fractions of infinite and undefined losses, and three averages, given losses (n, 3, 50); a column an estimate."""
    undefined, possible = np.isnan(losses), np.isfinite(losses[:, [0]])
    clipped = np.where(undefined, np.log(N_CLASSES), np.minimum(losses, -np.log(1e-15)))
    rows = {
        "fraction infinite": np.isinf(losses).mean(axis=(0, 2)),
        "fraction undefined": undefined.mean(axis=(0, 2)),
        "log loss, undefined as infinite": np.where(undefined, np.inf, losses).mean(axis=(0, 2)),
        "log loss, clipped": clipped.mean(axis=(0, 2)),
        "log loss of rows possible under MLE": np.where(possible, losses, 0.0).sum(axis=(0, 2)) / possible.sum(),
    }
    return pd.DataFrame(rows, index=list(ESTIMATES)).T


def scikit_learn_losses(data: DataSet) -> np.ndarray:
    """(n, 50) log losses under the posterior mean, by a loop over n data sets with scikit-learn's CategoricalNB."""
    losses = []
    for x, label in zip(np.asarray(data.x), np.asarray(data.label), strict=True):
        training, test = label[:N_TRAINING], label[N_TRAINING:]
        class_prior = (np.bincount(training, minlength=N_CLASSES) + 1.0) / (N_TRAINING + N_CLASSES)
        nb = CategoricalNB(alpha=1.0, min_categories=N_LEVELS, class_prior=class_prior)
        nb.partial_fit(x[:N_TRAINING], training, classes=range(N_CLASSES))  # fit would drop classes without rows
        losses.append(-nb.predict_log_proba(x[N_TRAINING:])[np.arange(N_TEST), test])
    return np.array(losses)


# -- other studies of the same data sets ---------------------------------------------------------


def mean_loss(alpha: Any, data: DataSet, estimate: str) -> jax.Array:
    """Mean log loss of one data set under the prior with concentration alpha."""
    return log_loss(kernels.update(prior(alpha), count(data)), data, estimate).mean()


def losses_by_alpha(alpha: np.ndarray, data: DataSet, estimate: str) -> jax.Array:
    """(A, n) mean log loss of n data sets under each of A concentrations."""
    over_data = jax.vmap(lambda alpha, data: mean_loss(alpha, data, estimate), in_axes=(None, 0))
    return jax.jit(jax.vmap(over_data, in_axes=(0, None)))(alpha, data)


def mean_log_evidence(alpha: Any, statistics: Statistics) -> jax.Array:
    """Log evidence of the training rows, averaged over data sets."""
    return jax.vmap(kernels.log_evidence, in_axes=(None, 0))(prior(alpha), statistics).mean()


def best_alpha(statistics: Statistics) -> float:
    """Concentration at which the gradient of the mean log evidence is 0."""
    gradient = jax.jit(jax.grad(mean_log_evidence))
    return float(brentq(lambda alpha: float(gradient(alpha, statistics)), 0.1, 10.0, xtol=1e-5))


def bootstrap_interval(key: jax.Array, data: DataSet, n: int = 200) -> jax.Array:
    """(2,) 90% interval of theta[0, 0, 0] by n Bayesian bootstraps of the MLE; NaN if class 0 has no training row."""

    def estimate(weight: jax.Array) -> jax.Array:
        return kernels.update(prior().improper(), count(data, weight)).blocks[0].mean().theta[0, 0]

    weights = jax.random.exponential(key, (n, N_TRAINING))
    return jnp.quantile(jax.vmap(estimate)(weights), jnp.array([0.05, 0.95]))


def posterior_interval(statistics: Statistics) -> np.ndarray:
    """(2, n) 90% intervals of theta[0, 0, 0] in n posteriors: quantiles of Beta(a, b)."""
    concentration = np.asarray(jax.vmap(kernels.update, in_axes=(None, 0))(prior(), statistics).blocks[0].concentration)
    a, b = concentration[:, 0, 0], concentration[:, 0, 1:N_LEVELS].sum(axis=1)
    return beta.ppf([[0.05], [0.95]], a, b)


def coverage(lower: Any, upper: Any, data: DataSet) -> float:
    """Fraction of the data sets whose interval contains theta[0, 0, 0]; an interval of NaN does not."""
    truth = np.asarray(data.theta[:, 0, 0, 0])
    return float(np.mean((np.asarray(lower) <= truth) & (truth <= np.asarray(upper))))


def draw(alpha: np.ndarray, mean: np.ndarray, map_alpha: np.ndarray, map_loss: np.ndarray) -> Any:
    """Figure of the mean log loss against alpha, for the posterior mean and for MAP."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    ax.semilogx(alpha, mean, marker="o", markersize=4, label="posterior mean; MLE is its limit at alpha = 0")
    ax.semilogx(map_alpha, map_loss, marker="s", markersize=4, label="MAP; infinite at alpha = 1, where it is the MLE")
    ax.axvline(1.0, color="0.6", linestyle=":", label="alpha of the simulation")
    ax.axhline(np.log(N_CLASSES), color="0.6", linestyle="--", label="equal probabilities of the classes")
    ax.set(xlabel="alpha of the prior", ylabel="log loss of test rows, nats", ylim=(0.4, 1.6))
    ax.legend(fontsize="small")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the figure")
    out = parser.parse_args().out
    keys = jax.random.split(jax.random.key(0), 10_000)
    for call in ("first call, compilation included", "second call"):
        start = time.perf_counter()
        losses = np.asarray(study(keys))
        print(f"{time.perf_counter() - start:.2f} s for {len(keys):,} data sets ({call})")
    print(f"\n{summarize(losses).round(4).to_string()}\n")

    data = jax.jit(jax.vmap(simulate))(keys)
    statistics = jax.jit(jax.vmap(count))(data)
    print(f"alpha of the largest mean log evidence: {best_alpha(statistics):.3f} (simulated with 1)")
    lower, upper = jax.jit(jax.vmap(bootstrap_interval, out_axes=1))(keys, data)
    print(f"90% intervals of a level's probability cover: bootstrap {coverage(lower, upper, data):.1%}", end=", ")
    print(f"posterior {coverage(*posterior_interval(statistics), data):.1%}")

    if find_spec("matplotlib") is None:
        print("No figure: install matplotlib to draw one.")
        return
    import matplotlib

    matplotlib.use("Agg")
    mean = losses_by_alpha(ALPHA, data, "mean").mean(axis=1)
    above = 1.0 + ALPHA
    out.mkdir(parents=True, exist_ok=True)
    path = out / "simulation_study.png"
    draw(ALPHA, mean, above, losses_by_alpha(above, data, "map").mean(axis=1)).savefig(path, dpi=150)
    print(f"Written: {path}")


if __name__ == "__main__":
    main()
