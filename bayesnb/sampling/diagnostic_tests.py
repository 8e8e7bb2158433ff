"""Accuracy of diagnostic tests without a gold standard: the posterior of Hui and Walter's latent class model."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from bayesnb._util.arguments import require_flag, require_integer, require_probability, require_seed, shown
from bayesnb._util.html import card
from bayesnb._util.html import table as html_table
from bayesnb.estimators import CategoricalNB, NaiveBayesMixture
from bayesnb.inference_data import assemble_named
from bayesnb.sampling.latent import read_multiplicities, sample_latent
from bayesnb.sampling.nuts import diagnose
from bayesnb.sampling.results_table import (
    code_results,
    count_patterns,
    is_sortable,
    read_levels,
    read_populations,
    read_test_names,
    require_results,
)

_UNIFORM = (1.0, 1.0)
_PRIOR_DRAWS = 20_000
_LEAST = 1e-15
"""Distance from 0 and 1 that probabilities keep in log odds."""
_LITTLE = 0.5
"""Ratio of the posterior sd to the prior sd above which the data say little of a quantity."""
_QUANTITIES = ("prevalence", "sensitivity", "specificity")
_ASSUMED = (
    "Assumptions: given the disease, tests are independent; sensitivity and specificity are the same in every "
    "population; sensitivity + specificity > 1 on average over the tests."
)


@dataclass(frozen=True, eq=False)
class DiagnosticTests:
    """Posterior of prevalences, sensitivities and specificities, without a gold standard.

    Attributes
    ----------
    table : DataFrame
        One row for each quantity ("prevalence", "sensitivity" or "specificity") and name of a population or test: mean,
        sd, and ends of equal-tailed intervals, lower and upper; prior_lower and prior_upper are those of the prior.
    data : arviz.InferenceData under ArviZ 0.23, xarray.DataTree under ArviZ 1.x
        Groups "posterior" and "prior" with "prevalence" (chain, draw, population), "sensitivity" and "specificity"
        (chain, draw, test).
    tests, populations : tuple
        Names of the tests and of the populations; the one population of a table without `populations` is "all".
    levels : dict
        Negative and positive level of each test; the negative one is None if it did not occur.
    population_column : object
        Column of the table with the populations, or None.
    prob : float
        Posterior probability of each interval.
    note : str
        Quantities that the data do not identify, or determine poorly; "" if there are none.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> import pandas as pd
    >>> results = pd.DataFrame({"A": [1, 1, 0, 0], "B": [1, 0, 1, 0], "C": [1, 1, 0, 0]})
    >>> found = bnb.diagnostic_tests(results, sample_weight=[90, 10, 10, 390], progress=False)
    >>> found.predict(pd.DataFrame({"A": [1], "B": [1], "C": [None]}))[["probability"]].round(1)
       probability
    0          1.0
    >>> len(found.table), found.populations, found.tests
    (7, ('all',), ('A', 'B', 'C'))
    """

    table: pd.DataFrame
    data: Any
    tests: tuple[Hashable, ...]
    populations: tuple[Hashable, ...]
    levels: dict[Hashable, tuple[object, object]]
    population_column: object
    prob: float
    note: str

    def predict(self, rows: Any, populations: object = None) -> pd.DataFrame:
        """Compute P(disease | results, population) of rows, averaged over the draws, with its interval.

        Parameters
        ----------
        rows : DataFrame of N rows
            Results in a column for each test, NaN where it was not done.
        populations : column name or (N,) array-like, optional
            Population of each row. Default: the column that was used for the fit, or the only population.

        Returns
        -------
        DataFrame
            "probability", "lower" and "upper", with the index of `rows`: mean over the posterior of the parameters, and
            an equal-tailed interval of P(disease | results, θ), which shows how well that probability is known.

        Raises
        ------
        ValueError
            If a test has no column, or a result or population is not known.
        """
        frame = pd.DataFrame(rows)
        absent = [test for test in self.tests if test not in frame]
        if absent:
            raise ValueError(
                f"rows has no column for the test {absent[0]!r}. Add the column, with NaN where the test was not done."
            )
        if populations is None and len(self.populations) > 1:
            populations = self.population_column
            if populations is None:
                raise ValueError(
                    f"populations is missing. Pass the population of each row, one of {shown(list(self.populations))}."
                )
        result = code_results(frame[list(self.tests)], self.levels)
        code = np.zeros(len(frame), np.int64)
        if len(self.populations) > 1:
            values, _ = read_populations(frame, populations)
            code = pd.Index(self.populations).get_indexer(pd.Index(values))
            if (code < 0).any():
                unknown = values[int(np.argmax(code < 0))]
                raise ValueError(
                    f"populations: {unknown!r} is not a population of the fitted table. Its populations are "
                    f"{shown(list(self.populations))}."
                )
        patterns, index = np.unique(
            np.column_stack([code, np.nan_to_num(result, nan=-1.0)]), axis=0, return_inverse=True
        )
        drawn = _Parameters(*(self.data["posterior"][name].values for name in _QUANTITIES))
        proba = _disease_given_results(drawn, patterns[:, 0].astype(np.int64), patterns[:, 1:])
        lower, upper = np.quantile(proba, _tails(self.prob), axis=0)
        table = pd.DataFrame({"probability": proba.mean(axis=0), "lower": lower, "upper": upper})
        return table.iloc[index.ravel()].set_axis(frame.index)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the table."""
        about = f"{100 * self.prob:.6g}% intervals"
        cells = html_table(self.table.itertuples(index=False), self.table.columns.tolist())
        return card("DiagnosticTests", about, cells, notes=[_ASSUMED, self.note])

    def __repr__(self) -> str:
        lines = [f"DiagnosticTests, {100 * self.prob:.6g}% intervals. {_ASSUMED}", str(self.table.round(4)), self.note]
        return "\n".join(line for line in lines if line)


@dataclass(frozen=True, eq=False)
class _Parameters:
    """Draws of prevalence (…, P), sensitivity and specificity (…, T)."""

    prevalence: np.ndarray
    sensitivity: np.ndarray
    specificity: np.ndarray

    def accuracy(self) -> np.ndarray:
        """(…, T) sensitivity + specificity - 1 of each test: 0 for a test that says nothing (Youden's index)."""
        return np.asarray(self.sensitivity + self.specificity - 1.0)

    def is_named_right(self) -> np.ndarray:
        """(…) whether tests are positive more often, on average, with the disease than without."""
        return np.asarray(self.accuracy().sum(axis=-1) > 0)

    def named_by_tests(self) -> _Parameters:
        """Parameters with the two classes exchanged wherever that makes the tests positive more often with disease."""
        right = self.is_named_right()[..., None]
        return _Parameters(
            np.where(right, self.prevalence, 1.0 - self.prevalence),
            np.where(right, self.sensitivity, 1.0 - self.specificity),
            np.where(right, self.specificity, 1.0 - self.sensitivity),
        )

    def select(self, kept: np.ndarray) -> _Parameters:
        """Draws of each chain (chains, draws) for which `kept` is true, as many of each chain as the shortest has."""
        n = int(kept.sum(axis=1).min())
        return _Parameters(*(np.stack([v[row][:n] for v, row in zip(a, kept, strict=True)]) for a in self.arrays()))

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.prevalence, self.sensitivity, self.specificity

    def variables(self) -> dict[str, tuple[str, np.ndarray]]:
        """Dimension and values of each quantity, by name."""
        dims = ("population", "test", "test")
        return {q: (dim, values) for q, dim, values in zip(_QUANTITIES, dims, self.arrays(), strict=True)}


@dataclass(frozen=True, eq=False)
class _Prior:
    """Beta concentrations (a, b) of prevalence (P, 2), sensitivity and specificity (T, 2)."""

    prevalence: np.ndarray
    sensitivity: np.ndarray
    specificity: np.ndarray

    def is_symmetric(self) -> bool:
        """Whether the density is the same when the classes are exchanged."""
        mirrored = (self.prevalence == self.prevalence[:, ::-1]).all()
        return bool(mirrored and (self.sensitivity == self.specificity[:, ::-1]).all())

    def classifier(self) -> CategoricalNB:
        """Classifier of the population (unless there is one only) and the tests: class 0 is healthy, class 1 diseased.

        Independent Beta(a_p, b_p) prevalences are those of a Dirichlet of disease and population, with a_p and b_p.
        """
        disease, healthy = self.prevalence.T
        tests = np.stack([self.specificity, self.sensitivity[:, ::-1]])  # (class, test, level), negative first
        alpha = np.concatenate([np.stack([healthy, disease]), tests.reshape(2, -1)], axis=1)
        levels = [list(range(len(disease))), *[[0, 1]] * len(self.sensitivity)]
        first, skipped = (1, 1) if len(disease) == 1 else (0, 0)
        class_alpha = np.array([healthy.sum(), disease.sum()])
        return CategoricalNB(class_alpha=class_alpha, alpha=alpha[:, skipped:], categories=levels[first:])

    def draw(self, seed: int) -> _Parameters:
        """Draw parameters for which tests are positive more often, on average, with the disease: (1, S, …) arrays."""
        rng = np.random.default_rng(seed)
        ends = (self.prevalence, self.sensitivity, self.specificity)
        drawn = _Parameters(*(rng.beta(c[:, 0], c[:, 1], (1, _PRIOR_DRAWS, len(c))) for c in ends))
        return drawn.select(drawn.is_named_right())


def diagnostic_tests(
    table: Any,
    populations: Any = None,
    prior: Mapping[str, object] | None = None,
    draws: int = 1000,
    chains: int = 4,
    seed: int = 0,
    *,
    warmup: int = 500,
    prob: float = 0.9,
    sample_weight: object = None,
    positive: object = None,
    progress: bool = True,
) -> DiagnosticTests:
    """Estimate prevalences and the accuracy of tests without a gold standard, by the model of Hui and Walter.

    Parameters
    ----------
    table : DataFrame of N rows
        One column per test, two or more. Results are 1 and 0, or two levels (see `positive`); NaN is a test that was
        not done.
    populations : column name or (N,) array-like, optional
        Population of each row: populations differ in prevalence. Default: one population.
    prior : dict, optional
        Beta concentrations (a, b) for "prevalence", "sensitivity" and "specificity": one pair for all populations or
        tests, or a dict {name: (a, b)}. Default: (1, 1), uniform.
    draws, warmup, chains : int
        Number of draws per chain, number of warm-up sweeps per chain, and number of chains.
    seed : int
        Seed of the chains.
    prob : float, default 0.9
        Posterior probability of each interval, in (0, 1).
    sample_weight : (N,) array-like of integers, optional
        Multiplicity of each row, such as the count of a pattern of results.
    positive : level, optional
        Level that is a positive result, such as "reactive". Default: results are 1 and 0, or True and False.
    progress : bool
        Whether to show a progress bar.

    Returns
    -------
    DiagnosticTests
        Table of estimates with intervals, and the posterior draws.

    Raises
    ------
    ValueError
        If a test has more than two levels or no result, a population is missing, all results are the same, a
        multiplicity is not an integer, or a prior is not a pair of positive numbers or expects tests to be worse than
        chance.

    Warns
    -----
    UserWarning
        If R-hat is above 1.01, or an effective sample size below 100 per chain.

    Notes
    -----
    With prevalences π_p, sensitivities s_t and specificities c_t that hold in every population, and tests that are
    independent given the disease, results x of a row of population p have the probability

        π_p Π_t s_t^x_t (1 - s_t)^(1 - x_t) + (1 - π_p) Π_t (1 - c_t)^x_t c_t^(1 - x_t)      (Hui & Walter 1980).

    This is naive Bayes without labels, with the population as one more column: `sample_latent` draws from it. Tests
    that were not done are left out, on the assumption that they are missing at random.

    *Names.* Exchanging the classes, (π, s, c) → (1 - π, 1 - c, 1 - s), does not change the likelihood. So the prior is
    restricted to Σ_t (s_t + c_t - 1) > 0: tests are, on average, positive more often with the disease. Draws that
    violate the restriction have their classes exchanged if the prior is symmetric, as by default, which is exact; under
    any other prior they are discarded. `prior_lower` and `prior_upper` are those of the restricted prior.

    *Identification.* P populations and T tests have P + 2T parameters, and P(2^T - 1) free frequencies. One population
    and two tests have 5 parameters and 3 frequencies. The data then do not determine some combinations of parameters,
    whose intervals are those of the prior however many rows there are. Two populations must differ in prevalence.
    `note` reports this, and names the quantities whose posterior sd is above half of the prior sd. Tests that err on
    the same people are not independent given the disease; their accuracy is then overestimated, and no number of the
    result reveals this.

    References
    ----------
    Hui & Walter, *Estimating the error rates of diagnostic tests*, Biometrics 36 (1980). Joseph, Gyorkos & Coupal,
    *Bayesian estimation of disease prevalence and the parameters of diagnostic tests in the absence of a gold
    standard*, Am. J. Epidemiol. 141 (1995).

    Examples
    --------
    Two tests for tuberculosis in two populations (Hui & Walter 1980, table 1).

    >>> import bayesnb as bnb
    >>> import pandas as pd
    >>> pattern = {"Mantoux": [1, 1, 0, 0] * 2, "Tine": [1, 0, 1, 0] * 2, "group": ["1"] * 4 + ["2"] * 4}
    >>> count = [14, 4, 9, 528, 887, 31, 37, 367]
    >>> found = bnb.diagnostic_tests(pd.DataFrame(pattern), "group", sample_weight=count, progress=False)
    >>> found.table[["quantity", "name", "mean"]].round(2)
          quantity     name  mean
    0   prevalence        1  0.03
    1   prevalence        2  0.72
    2  sensitivity  Mantoux  0.97
    3  sensitivity     Tine  0.97
    4  specificity  Mantoux  0.99
    5  specificity     Tine  0.98
    """
    for name, value in (("draws", draws), ("warmup", warmup), ("chains", chains)):
        require_integer(name, value)
    require_seed(seed)
    require_probability("prob", prob)
    require_flag("progress", progress)
    frame = pd.DataFrame(table)
    weight = read_multiplicities(sample_weight, len(frame))
    of_row, column = read_populations(frame, populations)
    frame = frame if column is None else frame.drop(columns=[column])
    tests = read_test_names(frame)
    counted = weight > 0
    levels = {test: read_levels(test, frame[test][counted], positive) for test in tests}
    result = code_results(frame[counted], levels)
    require_results(result, tests)
    code, names = pd.factorize(of_row[counted], sort=is_sortable(of_row[counted]))
    beliefs = _read_prior(prior, tuple(names.tolist()), tests)
    done = ~np.isnan(result).all(axis=1)
    cells, count = count_patterns(code[done], result[done], weight[counted][done], len(names))
    mixture = _start(beliefs, cells, count)
    with warnings.catch_warnings():
        # Its classes are named anew before they are diagnosed, and `note` says what is not identified.
        warnings.simplefilter("ignore", UserWarning)
        sampled = sample_latent(
            mixture, cells, draws, chains, seed, warmup=warmup, sample_weight=count, progress=progress
        )
    drawn = _read_draws(sampled["posterior"], len(names), len(tests))
    drawn = drawn.named_by_tests() if beliefs.is_symmetric() else _leave_out_misnamed(drawn)
    diagnose(dict(zip(_QUANTITIES, drawn.arrays(), strict=True)), "Gibbs")
    before = beliefs.draw(seed)
    found = _summarize(drawn, before, tuple(names.tolist()), tests, prob)
    note = _describe_identification(found, drawn, before, tests, prob)
    coordinates = {"population": [str(p) for p in names], "test": [str(t) for t in tests]}
    groups = {"posterior": drawn.variables(), "prior": before.variables()}
    data = assemble_named(mixture, groups, coordinates, {"note": note})
    return DiagnosticTests(found, data, tests, tuple(names.tolist()), levels, column, prob, note)


# -- prior ---------------------------------------------------------------------------------------


def _read_prior(
    prior: Mapping[str, object] | None, populations: tuple[Hashable, ...], tests: tuple[Hashable, ...]
) -> _Prior:
    """Return the Beta concentrations of all parameters; raise ValueError if they expect tests worse than chance."""
    prior = {} if prior is None else prior
    if not isinstance(prior, Mapping) or not set(prior) <= set(_QUANTITIES):
        raise ValueError(
            f"prior={shown(prior)} must be a dict of Beta parameters (a, b), such as {{'sensitivity': (9.0, 1.0)}}. "
            f"Its keys can be {', '.join(_QUANTITIES)}."
        )
    names = dict(zip(_QUANTITIES, (populations, tests, tests), strict=True))
    read = _Prior(*(_read_pairs(quantity, prior.get(quantity, _UNIFORM), names[quantity]) for quantity in _QUANTITIES))
    mean = [pairs[:, 0] / pairs.sum(axis=1) for pairs in (read.sensitivity, read.specificity)]
    if (expected := float(np.sum(mean)) - len(tests)) < -1e-9:
        raise ValueError(
            "prior: the prior mean of sensitivity + specificity - 1, averaged over the tests, is "
            f"{expected / len(tests):.2g}, which is worse than chance. Choose pairs (a, b) with larger means a / (a + "
            "b)."
        )
    return read


def _read_pairs(quantity: str, pairs: Any, names: tuple[Hashable, ...]) -> np.ndarray:
    """Return (n, 2) Beta concentrations of a quantity, from one pair or a dict of pairs by name."""
    of_name = pairs if isinstance(pairs, Mapping) else dict.fromkeys(names, pairs)
    unknown = [name for name in of_name if name not in names]
    if unknown:
        of = "population" if quantity == "prevalence" else "test"
        raise ValueError(
            f"prior: {quantity} has a pair for the unknown {of} {unknown[0]!r}; the {of}s are {shown(list(names))}."
        )
    rows = []
    for name in names:
        pair = of_name.get(name, _UNIFORM)
        try:
            a, b = (float(end) for end in pair)
        except (TypeError, ValueError):
            a, b = np.nan, np.nan
        if not (0 < a < np.inf and 0 < b < np.inf):
            raise ValueError(
                f"prior: {quantity} of {name!r} is {shown(pair)}; it must be a pair (a, b) of positive numbers."
            )
        rows.append((a, b))
    return np.array(rows)


# -- sampling ------------------------------------------------------------------------------------


def _start(prior: _Prior, cells: np.ndarray, count: np.ndarray) -> NaiveBayesMixture:
    """Return a mixture with the prior, fitted to P(disease | row) at the mode under uniform priors.

    That mode has no names; class 1 becomes the class in which more tests are positive.
    """
    uniform = _Prior(*(np.ones_like(a) for a in (prior.prevalence, prior.sensitivity, prior.specificity)))
    mixture = NaiveBayesMixture(2, estimator=uniform.classifier())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Chains start there; whether EM has converged does not matter.
        mixture.fit(cells, sample_weight=count)
    n_tests = len(prior.sensitivity)
    log_prob = mixture.estimator_.feature_log_prob_[-n_tests:]
    proba = mixture.predict_proba(cells)
    proba = proba if sum(np.exp(own[:, 1]) @ [-1.0, 1.0] for own in log_prob) > 0 else proba[:, ::-1]
    label = np.repeat([0, 1], len(cells))
    weights = (proba * count[:, None]).T.ravel()
    mixture.estimator_ = prior.classifier().fit(np.concatenate([cells, cells]), label, sample_weight=weights)
    return mixture


def _read_draws(posterior: Any, n_populations: int, n_tests: int) -> _Parameters:
    """Return prevalences, sensitivities and specificities of draws (chains, draws, …) of the latent class model."""
    joint, theta = posterior["class_prob"].values, posterior["theta"].values
    positive = theta[..., -2 * n_tests :][..., 1::2]
    of_population = joint[..., None] * theta[..., :n_populations] if n_populations > 1 else joint[..., None]
    prevalence = of_population[..., 1, :] / of_population.sum(axis=-2)
    return _Parameters(prevalence, positive[..., 1, :], 1.0 - positive[..., 0, :])


def _leave_out_misnamed(drawn: _Parameters) -> _Parameters:
    """Draws with tests that are better than chance on average; raise ValueError if they are a tenth or less."""
    right = drawn.is_named_right()
    if right.mean(axis=1).min() < 0.1:
        raise ValueError(
            "prior: in the posterior the tests are worse than chance on average. Check which level is positive, and "
            "that the mean a / (a + b) of each pair (a, b) is the one you meant."
        )
    return drawn.select(right)


# -- results -------------------------------------------------------------------------------------


def _flatten(values: np.ndarray) -> np.ndarray:
    """Draws (chains, draws, n) as (S, n)."""
    return values.reshape(-1, values.shape[-1])


def _tails(prob: float) -> list[float]:
    """Probabilities at which an equal-tailed interval begins and ends."""
    return [0.5 - prob / 2, 0.5 + prob / 2]


def _summarize(
    drawn: _Parameters, before: _Parameters, populations: tuple[Hashable, ...], tests: tuple[Hashable, ...], prob: float
) -> pd.DataFrame:
    """Table of the means, standard deviations and intervals of all quantities, with the intervals of the prior."""
    parts = []
    names = (populations, tests, tests)
    for quantity, own, values, prior in zip(_QUANTITIES, names, drawn.arrays(), before.arrays(), strict=True):
        flat = _flatten(values)
        ends = np.quantile(flat, _tails(prob), axis=0), np.quantile(_flatten(prior), _tails(prob), axis=0)
        moments = {"mean": flat.mean(axis=0), "sd": flat.std(axis=0)}
        intervals = dict(zip(("lower", "upper", "prior_lower", "prior_upper"), np.concatenate(ends), strict=True))
        parts.append(pd.DataFrame({"quantity": quantity, "name": list(own), **moments, **intervals}))
    return pd.concat(parts, ignore_index=True)


def _disease_given_results(drawn: _Parameters, code: np.ndarray, result: np.ndarray) -> np.ndarray:
    """(S, N) P(disease | results, population) for each draw; results (N, T) are 1, 0, or -1 where missing."""
    bounded = (np.clip(_flatten(values), _LEAST, 1.0 - _LEAST) for values in drawn.arrays())
    prevalence, sensitivity, specificity = bounded
    of_positive = np.log(sensitivity) - np.log1p(-specificity)
    of_negative = np.log1p(-sensitivity) - np.log(specificity)
    odds = np.log(prevalence) - np.log1p(-prevalence)
    log_odds = odds[:, code] + of_positive @ (result == 1).T + of_negative @ (result == 0).T
    return np.asarray(expit(log_odds))


def _describe_identification(
    found: pd.DataFrame, drawn: _Parameters, before: _Parameters, tests: tuple[Hashable, ...], prob: float
) -> str:
    """Sentences about what the data do not identify, or say little of; "" if there is nothing to say."""
    n_populations, n_tests = drawn.prevalence.shape[-1], len(tests)
    n_parameters, n_free = n_populations + 2 * n_tests, n_populations * (2**n_tests - 1)
    sentences = []
    if n_parameters > n_free:
        sentences.append(
            f"Not identified: {_number(n_populations, 'population')} and {_number(n_tests, 'test')} have "
            f"{n_parameters} parameters, but the table has only {n_free} free frequencies. The posterior depends on "
            "the prior, however many rows there are."
        )
    prior_sd = np.concatenate([_flatten(values).std(axis=0) for values in before.arrays()])
    little = found[found["sd"].to_numpy() > _LITTLE * prior_sd]
    if len(little):
        listed = [f"{quantity} of {name}" for quantity, name in zip(little["quantity"], little["name"], strict=True)]
        sentences.append(f"The data say little about: {', '.join(listed)} (posterior sd above half of the prior sd).")
    lower, upper = np.quantile(_flatten(drawn.accuracy()), _tails(prob), axis=0)
    for test, low, high in zip(tests, lower, upper, strict=True):
        if low <= 0:
            sentences.append(
                f"{test} may be no better than chance: the interval of sensitivity + specificity - 1 is {low:.2f} to "
                f"{high:.2f}."
            )
    return " ".join(sentences)


def _number(n: int, noun: str) -> str:
    """Number and noun, in the plural unless it is one."""
    return f"{n} {noun}{'' if n == 1 else 's'}"
