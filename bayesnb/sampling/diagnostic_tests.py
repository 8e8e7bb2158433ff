"""Sensitivity and specificity of tests without a gold standard."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit, logsumexp

from bayesnb._util.arguments import Seed, bad_argument, require_flag, require_mapping, require_probability, shown
from bayesnb._util.arrays import require_draws, to_pandas
from bayesnb._util.html import card
from bayesnb._util.html import table as html_table
from bayesnb._util.terminal import progress as progress_bar
from bayesnb.encoding.priors import IntervalPrior
from bayesnb.sampling.hui_walter import HuiWalter, Margins, Posterior, draw_posterior, measure_information
from bayesnb.sampling.latent import read_multiplicities
from bayesnb.sampling.nuts import diagnose, read_run
from bayesnb.uncertainty.arviz import ArvizData, assemble_named

# == Results of diagnostic tests as a table: its populations, tests and levels, checked, and its distinct rows

_ALL = "all"


def read_populations(frame: pd.DataFrame, populations: Any, counted: np.ndarray) -> tuple[np.ndarray, object]:
    """Return (N,) the population of each row, and the column of the table that has them, or None.

    Only the populations of `counted` (N,) rows must be present.
    """
    if populations is None:
        return np.full(len(frame), _ALL, dtype=object), None
    if np.ndim(populations) == 0:
        if populations not in frame:
            raise ValueError(f"populations={shown(populations)} is not a column; they are {shown(list(frame)[:8])}.")
        values, column = frame[populations].to_numpy(object), populations
    else:
        values, column = np.asarray(populations, dtype=object), None
    if values.shape != (len(frame),):
        raise ValueError(f"populations has shape {values.shape}; it must have one entry for each of {len(frame)} rows.")
    missing = np.asarray(pd.isna(values)) & counted
    if missing.any():
        raise ValueError(f"populations: that of row {int(np.argmax(missing))} is missing. Leave out such rows.")
    return values, column


def read_test_names(frame: pd.DataFrame) -> tuple[Hashable, ...]:
    """Return the names of the tests; raise ValueError if there is none, or two have the same name."""
    tests = tuple(frame)
    if not tests:
        raise ValueError("table has no column of a test. Pass one column of 0 and 1 for each test.")
    twice = [test for test in tests if tests.count(test) > 1]
    if twice:
        raise ValueError(f"table has the test {twice[0]!r} twice. Rename one of its columns.")
    return tests


def read_levels(test: Hashable, column: pd.Series, positive: object) -> tuple[object, object]:
    """Return the negative level of a test, None if it does not occur, and the positive level.

    Raise ValueError if there is no level, there are three, or none is positive.
    """
    levels = list(pd.unique(column.astype(object).dropna()))
    has = f"table: the test {test!r} has the levels {shown(levels[:6])}"
    if not levels:
        raise ValueError(f"table: the test {test!r} has no result in any row. Leave out its column.")
    if len(levels) > 2:
        raise ValueError(f"{has}; a test result has two. Recode them as 0 (negative) and 1 (positive).")
    if positive is None:
        if not all(not isinstance(v, str) and v in (0, 1) for v in levels):
            raise ValueError(f"{has}, which are not 0 and 1. Pass the positive level as positive=.")
        return 0, 1
    if len(levels) == 2 and positive not in levels:
        raise ValueError(f"positive={shown(positive)} is not a level of {test!r}, whose levels are {shown(levels)}.")
    return next((level for level in levels if level != positive), None), positive


def code_results(frame: pd.DataFrame, levels: Mapping[Hashable, tuple[object, object]]) -> np.ndarray:
    """Return (N, T) results, 1 if positive, 0 if negative, NaN if missing; raise ValueError for other levels."""
    results = np.full(frame.shape, np.nan)
    for j, test in enumerate(frame):
        column = frame[test].astype(object)
        done = column.notna().to_numpy()
        code = [levels[test].index(v) if v in levels[test] else -1 for v in column[done]]
        if -1 in code:
            value = column[done].iloc[code.index(-1)]
            raise ValueError(f"rows: the test {test!r} has the result {value!r}, which is not one of {levels[test]}.")
        results[done, j] = code
    return results


def read_dependent(dependent: Iterable[object] | None, tests: tuple[Hashable, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the parents of each test, from pairs (parent, child) of names; raise ValueError for other pairs."""
    parents: dict[int, list[int]] = {t: [] for t in range(len(tests))}
    for pair in () if dependent is None else dependent:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or pair[0] == pair[1]:
            raise ValueError(f"dependent: {shown(pair)} is not a pair of two tests, such as ('elisa', 'pcr').")
        unknown = [test for test in pair if test not in tests]
        if unknown:
            raise ValueError(f"dependent: {unknown[0]!r} is not a test of the table; they are {shown(list(tests))}.")
        parent, child = (tests.index(test) for test in pair)
        if parent in parents[child] or child in parents[parent]:
            raise ValueError(f"dependent has the tests {shown(tuple(pair))} in two pairs. Name each pair once.")
        parents[child].append(parent)
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        cycle = " → ".join(str(tests[t]) for t in error.args[1][::-1])
        raise ValueError(f"dependent: the pairs form a cycle, {cycle}. Exchange the tests of a pair.") from None
    return tuple(tuple(sorted(parents[t])) for t in range(len(tests)))


def count_patterns(code: np.ndarray, result: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the distinct rows as populations (K,) and results (K, T), their frequencies, and those of their tables.

    The table of a row has all rows of its population in which the same tests were done.
    """
    first, index = distinct_rows(code, result)
    if len(first) < 2:
        raise ValueError("table: all rows have the same results. Two classes need rows with different results.")
    count = np.bincount(index, weight)
    _, of_table = distinct_rows(code[first], np.isnan(result[first]))
    return code[first], result[first], count, np.bincount(of_table, count)[of_table]


def distinct_rows(code: np.ndarray, result: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each pattern of population and results, and (N,) the pattern of each row."""
    rows = np.column_stack([code, np.nan_to_num(result, nan=-1.0)])
    _, first, index = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, index.ravel()


# == Accuracy of diagnostic tests without a gold standard: the posterior of Hui and Walter's latent class model

_UNIFORM = (1.0, 1.0)
_PRIOR_DRAWS = 20_000
_LEAST = 1e-15
"""Distance from 0 and 1 that probabilities keep in log odds."""
_BY_DATA, _WEAKLY, _BY_PRIOR = "by data", "weakly", "by prior only"
_LITTLE = 0.5
"""Ratio of the posterior sd to the prior sd above which the data say little of a quantity."""
_UNLIKELY = 0.05
"""Posterior predictive p below which the note says that the model does not fit."""
_NOT_MORE_DRAWS = (
    "The sampler failed, because different parameters predict the same table. Use informative priors, or see `note`."
)
_MOST = 2**22
_Names = Mapping[str, tuple[Hashable, ...]]
"""Names of populations or tests by quantity."""
_QUANTITIES = ("prevalence", "sensitivity", "specificity")
_ASSUMED = (
    "Assumptions: given the disease, tests are independent{except_pairs}; sensitivity and specificity are the same in "
    "every population; sensitivity + specificity > 1 on average over the tests."
)


@dataclass(frozen=True, eq=False)
class _CountedTable:
    """Counted results of tests, and settings of the fits to them.

    Parameters
    ----------
    _model : HuiWalter
    _cells : tuple of arrays
        Distinct rows and their frequencies, from `count_patterns`.
    _sampling : tuple of int
        Arguments chains, draws, transitions and seed of `draw_posterior`.
    populations, levels, population_column, prob
        Attributes of `DiagnosticTests`.
    """

    _model: HuiWalter
    _cells: tuple[np.ndarray, ...]
    _sampling: tuple[int, int, int, int]
    populations: tuple[Hashable, ...]
    levels: dict[Hashable, tuple[object, object]]
    population_column: object
    prob: float

    @property
    def tests(self) -> tuple[Hashable, ...]:
        """Names of the tests."""
        return tuple(self.levels)

    @property
    def dependent(self) -> tuple[tuple[Hashable, Hashable], ...]:
        """Pairs of tests that may depend on each other given the disease."""
        arcs = ((parent, t) for t, parents in enumerate(self._model.parents) for parent in parents)
        return tuple((self.tests[parent], self.tests[t]) for parent, t in arcs)

    @property
    def _tails(self) -> list[float]:
        """Probabilities at which an equal-tailed interval begins and ends."""
        return [0.5 - self.prob / 2, 0.5 + self.prob / 2]

    def _fit(self, prior: object, progress: bool, sampler: str = "Monte Carlo") -> DiagnosticTests:
        """Draw from the posterior under a prior, and summarise the draws; warnings begin with `sampler`."""
        model, tests, seed = self._model, self.tests, self._sampling[-1]
        code, result, count, total = self._cells
        names = dict(zip(_QUANTITIES, (self.populations, tests, tests), strict=True))
        concentration = model.concentrations(*_read_prior(prior, names))
        posterior = Posterior(model, model.cells(code, result), count, total, concentration)
        chains, draws, *_ = self._sampling
        require_draws(draws, 8 * model.n_parameters, f"{model.n_parameters} parameters", chains=chains)
        with progress_bar("Monte Carlo" if progress else None, None) as step:
            logits = draw_posterior(posterior, *self._sampling, step)
        flat = logits.reshape(-1, model.n_parameters)
        _require_better_than_chance(posterior, flat)
        drawn = _name_quantities(model, logits)
        before = _name_quantities(model, posterior.draw_prior(_PRIOR_DRAWS, np.random.default_rng(seed))[None])
        margins = Margins.from_cells(model, code, result, count)
        rank, is_determined = margins.rank()
        is_weak, ratio = measure_information(posterior, margins, flat)
        identified = np.where(is_determined, np.where(is_weak, _WEAKLY, _BY_DATA), _BY_PRIOR)
        diagnose(drawn, sampler, "" if (identified == _BY_DATA).all() else _NOT_MORE_DRAWS)
        found = _summarize(drawn, before, names, self._tails).assign(identified=identified)
        has_fit = margins.is_whole and margins.n_frequencies > rank
        fit_p = margins.fit(flat, seed) if has_fit else float("nan")
        prior_sd = np.concatenate([before[quantity].std(axis=(0, 1)) for quantity in _QUANTITIES])
        accuracy = np.quantile(drawn["sensitivity"] + drawn["specificity"] - 1.0, self._tails, axis=(0, 1))
        identification = _describe_identification(found, model.n_parameters, rank, ratio)
        note = " ".join([*identification, *_describe_information(found, prior_sd, tests, accuracy, fit_p)])
        rates = []
        for test, disease, results in model.positions():
            given = [f"{tests[parent]} = {x}" for parent, x in zip(model.parents[test], results, strict=True)]
            rates.append(f"{tests[test]} | {', '.join([('healthy', 'diseased')[disease], *given])}")
        coordinates = {"population": list(map(str, self.populations)), "test": list(map(str, tests)), "rate": rates}
        dims = dict(zip(drawn, ("population", "test", "test", "rate"), strict=True))
        groups = {"posterior": drawn, "prior": before}
        data = assemble_named(model, "sequential Monte Carlo", groups, dims, coordinates, {"note": note})
        settings = {f.name: getattr(self, f.name) for f in fields(_CountedTable)}
        return DiagnosticTests(**settings, table=found, data=data, note=note, fit_p=fit_p)


@dataclass(frozen=True, eq=False)
class DiagnosticTests(_CountedTable):
    """Posterior of prevalences, sensitivities and specificities, without a gold standard.

    Attributes
    ----------
    table : DataFrame
        One row for each quantity ("prevalence", "sensitivity" or "specificity") and name of a population or test: mean,
        sd, and ends of equal-tailed intervals, lower and upper; prior_lower and prior_upper are those of the prior.
        identified is "by data"; "weakly", if the prior has a large part in the interval; or "by prior only", if no
        number of rows of these tests and populations determines the quantity.
    data : arviz.InferenceData under ArviZ 0.23, xarray.DataTree under ArviZ 1.x
        Groups "posterior" and "prior" with "prevalence" (chain, draw, population), "sensitivity" and "specificity"
        (chain, draw, test), and "positive_rate" (chain, draw, rate): P(positive) of each test among the healthy and the
        diseased, for a dependent test given the results on which it depends.
    tests, populations : tuple
        Names of the tests and of the populations; the one population of a table without `populations` is "all".
    levels : dict
        Negative and positive level of each test; the negative one is None if it did not occur.
    population_column : object
        Column of the table with the populations, or None.
    prob : float
        Posterior probability of each interval.
    note : str
        Quantities that the data do not identify, or determine poorly, and whether the model does not fit; "" if there
        is nothing to say.
    dependent : tuple of pairs
        Tests that may depend on each other given the disease.
    fit_p : float
        Posterior predictive p of the model's fit: small if the tests are not independent given the disease. NaN if the
        table has no more frequencies than the parameters determine, or if more than 12 tests were done together.

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
    >>> good = {"sensitivity": {"A": bnb.prior_from_interval(0.75, 0.92)}}
    >>> found.prior_sensitivity({"A is good": good}, progress=False).loc[2:3, ["quantity", "name", "prior"]]
          quantity name      prior
    2  sensitivity    A     fitted
    3  sensitivity    A  A is good
    """

    table: pd.DataFrame
    data: ArvizData
    note: str
    fit_p: float

    def predict(self, rows: object, populations: object = None) -> pd.DataFrame:
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
        frame = pd.DataFrame(to_pandas(rows, "rows"))
        absent = [test for test in self.tests if test not in frame]
        if absent:
            raise ValueError(f"rows has no column for the test {absent[0]!r}. Add it, with NaN where it was not done.")
        known, model = shown(list(self.populations)), self._model
        result, code = code_results(frame[list(self.tests)], self.levels), np.zeros(len(frame), np.int64)
        if len(self.populations) > 1:
            populations = self.population_column if populations is None else populations
            if populations is None:
                raise ValueError(f"populations is missing. Pass the population of each row, one of {known}.")
            values, _ = read_populations(frame, populations, np.ones(len(frame), bool))
            code = pd.Index(self.populations).get_indexer(pd.Index(values))
            if (code < 0).any():
                unknown = values[int(np.argmax(code < 0))]
                raise ValueError(f"populations: {unknown!r} is not a population of the fitted table; they are {known}.")
        first, index = distinct_rows(code, result)
        posterior = self.data["posterior"]
        drawn = np.concatenate([posterior[name].values for name in ("prevalence", "positive_rate")], axis=2)
        logits = logit(np.clip(drawn, _LEAST, 1.0 - _LEAST)).reshape(-1, model.n_parameters)
        proba = _disease_given_results(model, logits, code[first], result[first])
        lower, upper = np.quantile(proba, self._tails, axis=0)
        table = pd.DataFrame({"probability": proba.mean(axis=0), "lower": lower, "upper": upper})
        return table.iloc[index].set_axis(frame.index)

    def prior_sensitivity(self, priors: Mapping[Hashable, object], progress: bool = True) -> pd.DataFrame:
        """Fit the same table under other priors, and compare the estimates.

        Parameters
        ----------
        priors : dict {name: prior}
            Priors by a name of yours, each as the argument `prior` of `diagnostic_tests`; None is the uniform prior.
        progress : bool
            Whether to show a progress bar for each fit.

        Returns
        -------
        DataFrame
            The rows of `table` for each prior, below each other for each quantity. The column prior names the prior;
            "fitted" is that of this result. All fits have the same draws, warm-up and seed. Means of two fits differ by
            chance, too, usually by less than .05 sd.

        Raises
        ------
        ValueError
            If a prior is not valid, or leads to tests that are worse than chance; if a prior has the name "fitted".
        """
        require_mapping("priors", priors, '{"sceptical": {"sensitivity": (2.0, 2.0)}}')
        require_flag("progress", progress)
        if "fitted" in priors:
            raise ValueError("priors has the name 'fitted', which is that of the prior of this result. Rename yours.")
        tables: dict[Hashable, pd.DataFrame] = {"fitted": self.table}
        for name, prior in priors.items():
            try:
                tables[name] = self._fit(prior, progress, f"Monte Carlo, prior {name!r}").table
            except ValueError as error:
                raise ValueError(f"priors[{name!r}]: {error}") from None
        table = pd.concat(tables, names=["prior", None]).reset_index("prior").sort_index(kind="stable")
        first = ["quantity", "name", "prior"]
        return table[[*first, *table.columns.drop(first)]].reset_index(drop=True)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the table."""
        cells = html_table(self.table.itertuples(index=False), self.table.columns.tolist())
        return card("DiagnosticTests", self._about(), cells, notes=[self._assumptions(), self.note])

    def __repr__(self) -> str:
        lines = [f"DiagnosticTests, {self._about()}. {self._assumptions()}", str(self.table.round(4)), self.note]
        return "\n".join(line for line in lines if line)

    def _about(self) -> str:
        """Probability of the intervals, and p of the fit."""
        fit = "" if np.isnan(self.fit_p) else f", fit_p = {self.fit_p:.2f}"
        return f"{100 * self.prob:.6g}% intervals{fit}"

    def _assumptions(self) -> str:
        """Sentence about the assumptions of the model."""
        pairs = ", ".join(f"{parent} and {child}" for parent, child in self.dependent)
        return _ASSUMED.format(except_pairs=f" except {pairs}" if pairs else "")


def diagnostic_tests(
    table: object,
    populations: object = None,
    prior: Mapping[str, object] | None = None,
    draws: int = 1000,
    chains: int = 4,
    seed: Seed = 0,
    *,
    warmup: int = 20,
    prob: float = 0.9,
    sample_weight: object = None,
    positive: object = None,
    dependent: Iterable[tuple[Hashable, Hashable]] | None = None,
    progress: bool = True,
) -> DiagnosticTests:
    """Estimate prevalences and the accuracy of tests without a gold standard, by the model of Hui and Walter.

    Parameters
    ----------
    table : DataFrame of N rows
        One column per test, two or more, of pandas, polars or Arrow. Results are 1 and 0, or two levels (see
        `positive`); NaN is a test that was not done.
    populations : column name or (N,) array-like, optional
        Population of each row: populations differ in prevalence. Default: one population.
    prior : dict, optional
        Beta concentrations (a, b) for "prevalence", "sensitivity" and "specificity": one pair for all populations or
        tests, or a dict {name: (a, b)}. A pair may be the result of `prior_from_interval`. Default: (1, 1), uniform.
    draws, chains : int
        Number of draws per chain, and number of chains.
    warmup : int
        Number of transitions of each draw at the posterior, and greatest number at each step on the way from the prior.
    seed : int, JAX key, RandomState or Generator
        Seed of the chains.
    prob : float, default 0.9
        Posterior probability of each interval, in (0, 1).
    sample_weight : (N,) array-like of integers, optional
        Multiplicity of each row, such as the count of a pattern of results.
    positive : level, optional
        Level that is a positive result, such as "reactive". Default: results are 1 and 0, or True and False.
    dependent : list of pairs, optional
        Pairs of tests that may depend on each other given the disease, such as [("elisa", "pcr")], because they react
        to the same thing. The second test has a probability for each result of the first (an arc, as in
        `NetworkNB(parents=)`). Default: all tests are independent given the disease.
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
        chance. If `dependent` has other names, or its pairs form a cycle.

    Warns
    -----
    UserWarning
        If R-hat is above 1.01, or an effective sample size below 100 per chain.

    Notes
    -----
    With prevalences π_p, sensitivities s_t and specificities c_t that hold in every population, and tests that are
    independent given the disease, results x of a row of population p have the probability

        π_p Π_t s_t^x_t (1 - s_t)^(1 - x_t) + (1 - π_p) Π_t (1 - c_t)^x_t c_t^(1 - x_t)      (Hui & Walter 1980).

    Tests that were not done are left out, on the assumption that they are missing at random. Draws are those of
    sequential Monte Carlo with tempered likelihoods (Del Moral, Doucet & Jasra 2006), whose transitions, Hamiltonian
    Monte Carlo, follow ridges of parameters that predict the same frequencies. The cost depends on the number of
    different rows.

    *Names.* Exchanging the classes, (π, s, c) → (1 - π, 1 - c, 1 - s), does not change the likelihood. So the prior is
    restricted to Σ_t (s_t + c_t - 1) > 0: tests are, on average, positive more often with the disease. `prior_lower`
    and `prior_upper` are those of the restricted prior.

    *Identification.* The observed margins are the probabilities of all results of the tests that were done together, in
    each population. If the rank of their derivatives, at random parameters, is less than the number of parameters, some
    quantities are identified by the prior only, however many rows there are and however informative that prior is: for
    example one population and two tests, which have 5 parameters and 3 free frequencies, or three tests of which each
    row has two. A quantity is identified "weakly" if most of its posterior variance lies in directions in which the
    posterior sd is above a third of the prior sd, by the information of the rows at the draws: for example if two
    populations have nearly equal prevalences. `note` says both, whatever the sampler did, and names the quantities
    whose posterior sd is above half of the prior sd.

    *Fit.* If there are more free frequencies than the rank, `fit_p` is the posterior predictive p of the
    likelihood-ratio statistic G² of the table (Gelman, Meng & Stern 1996), which is conservative: where the model is
    true, it is below .05 in less than 5% of tables. Below .05 `note` says so. Tests that err on the same people are not
    independent given the disease; their accuracy is then overestimated. Without surplus frequencies no number of the
    result reveals this.

    *Dependence.* With an arc from test u to test t, P(x_t | x_u, class) takes the place of P(x_t | class). Sensitivity
    and specificity of t are those of all diseased and all healthy. If the pair of t is (a, b), its Beta prior given the
    result x_u is (a m, b m) with the prior probability m of x_u in the class. Then sensitivity and specificity have
    about the same prior as without the arc; exactly the same if a + b is equal for both tests, as by default, and the
    order of the pair then does not matter. An arc has two more parameters.

    References
    ----------
    Hui & Walter, *Estimating the error rates of diagnostic tests*, Biometrics 36 (1980). Joseph, Gyorkos & Coupal,
    *Bayesian estimation of disease prevalence and the parameters of diagnostic tests in the absence of a gold
    standard*, Am. J. Epidemiol. 141 (1995). Dendukuri & Joseph, *Bayesian approaches to modeling the conditional
    dependence between multiple diagnostic tests*, Biometrics 57 (2001). Del Moral, Doucet & Jasra, *Sequential Monte
    Carlo samplers*, JRSS B 68 (2006). Gelman, Meng & Stern, *Posterior predictive assessment of model fitness via
    realized discrepancies*, Statistica Sinica 6 (1996).

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
    seed = read_run(draws, warmup, chains, seed, progress)
    require_probability("prob", prob)
    frame = pd.DataFrame(to_pandas(table, "table"))
    weight = read_multiplicities(sample_weight, len(frame))
    counted = weight > 0
    of_row, column = read_populations(frame, populations, counted)
    frame = frame if column is None else frame.drop(columns=[column])
    tests = read_test_names(frame)
    levels = {test: read_levels(test, frame[test][counted], positive) for test in tests}
    result, of_row = code_results(frame[counted], levels), of_row[counted]
    are_alike = len({isinstance(name, str) for name in of_row}) == 1
    code, names = pd.factorize(of_row, sort=are_alike)
    model = HuiWalter(len(names), read_dependent(dependent, tests))
    done = ~np.isnan(result).all(axis=1)
    cells = count_patterns(code[done], result[done], weight[counted][done])
    sampling = (chains, draws, warmup, seed)
    return _CountedTable(model, cells, sampling, tuple(names.tolist()), levels, column, prob)._fit(prior, progress)


# -- prior ---------------------------------------------------------------------------------------


def _read_prior(prior: object, names: _Names) -> list[np.ndarray]:
    """Return the Beta concentrations (n, 2) of prevalences, sensitivities and specificities, in this order.

    Raise ValueError if they expect tests that are worse than chance. `names` are those of each quantity.
    """
    prior = {} if prior is None else prior
    if not isinstance(prior, Mapping) or not set(prior) <= set(_QUANTITIES):
        keys = ", ".join(_QUANTITIES)
        raise bad_argument("prior", prior, f"a dict of Beta parameters (a, b) with keys among {keys}")
    pairs = [_read_pairs(quantity, prior.get(quantity, _UNIFORM), own) for quantity, own in names.items()]
    youden = float(np.sum([pairs[i][:, 0] / pairs[i].sum(axis=1) for i in (1, 2)])) / len(pairs[1]) - 1.0
    if youden < -1e-9:
        raise ValueError(
            f"prior: the mean of sensitivity + specificity - 1 is {youden:.2g}, which is worse than chance. Choose "
            "pairs (a, b) with larger means a / (a + b)."
        )
    return pairs


def _read_pairs(quantity: str, pairs: Any, names: tuple[Hashable, ...]) -> np.ndarray:
    """Return (n, 2) Beta concentrations of a quantity, from one pair or a dict of pairs by name."""
    of_name = pairs if isinstance(pairs, Mapping) else dict.fromkeys(names, pairs)
    unknown = [name for name in of_name if name not in names]
    if unknown:
        of = "population" if quantity == "prevalence" else "test"
        raise ValueError(
            f"prior: {quantity} names the unknown {of} {unknown[0]!r}; the {of}s are {shown(list(names))}."
        )
    rows = np.full((len(names), 2), np.nan)
    for row, name in zip(rows, names, strict=True):
        pair = of_name.get(name, _UNIFORM)
        with suppress(TypeError, ValueError):
            row[:] = [float(end) for end in pair]
        is_other = isinstance(pair, IntervalPrior) and pair.family != "beta"
        if is_other or not ((row > 0) & (row < np.inf)).all():
            raise ValueError(
                f"prior: {quantity} of {name!r} is {shown(pair)}; it must be two positive numbers (a, b), or of "
                "prior_from_interval with family='beta'."
            )
    return rows


def _require_better_than_chance(posterior: Posterior, logits: np.ndarray) -> None:
    """Raise ValueError if tests are worse than chance on average with posterior probability .9, without restriction.

    The probability of the exchanged names against those of the draws (S, n) is the mean ratio of their densities.
    """
    exchanged = posterior.log_density(posterior.model.exchange_classes(logits))
    log_odds = logsumexp(exchanged - posterior.log_density(logits)) - np.log(len(logits))
    if log_odds > np.log(9.0):
        raise ValueError(
            "prior: in the posterior the tests are worse than chance on average. Check which level is positive, and "
            "the mean a / (a + b) of each pair (a, b)."
        )


# -- results -------------------------------------------------------------------------------------


def _name_quantities(model: HuiWalter, logits: np.ndarray) -> dict[str, np.ndarray]:
    """Values (chains, draws, n) of each quantity, and of "positive_rate", for logits (chains, draws, parameters)."""
    flat = logits.reshape(-1, model.n_parameters)
    values = np.exp(model.quantities.log_sums(flat)).reshape(*logits.shape[:2], -1)
    n, n_tests = model.n_populations, len(model.parents)
    named = dict(zip(_QUANTITIES, np.split(values, [n, n + n_tests], axis=-1), strict=True))
    return named | {"positive_rate": expit(logits[..., n:])}


def _summarize(
    drawn: Mapping[str, np.ndarray], before: Mapping[str, np.ndarray], names: _Names, tails: list[float]
) -> pd.DataFrame:
    """Table of the means, standard deviations and intervals of all quantities, with the intervals of the prior."""
    parts = []
    for quantity, own in names.items():
        flat = drawn[quantity].reshape(-1, len(own))
        columns = {"quantity": quantity, "name": list(own), "mean": flat.mean(axis=0), "sd": flat.std(axis=0)}
        for prefix, values in (("", drawn), ("prior_", before)):
            ends = np.quantile(values[quantity], tails, axis=(0, 1))
            columns |= {f"{prefix}lower": ends[0], f"{prefix}upper": ends[1]}
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def _disease_given_results(model: HuiWalter, logits: np.ndarray, code: np.ndarray, result: np.ndarray) -> np.ndarray:
    """(S, N) P(disease | results, population) for draws of logits (S, n); results (N, T) are 1, 0, or NaN."""
    proba = np.empty((len(logits), len(code)))
    for rows in np.array_split(np.arange(len(code)), -(-proba.size // _MOST)) if len(code) else ():
        _, share = model.cells(code[rows], result[rows]).divide(logits)
        proba[:, rows] = share[..., 1::2].sum(axis=2)
    return proba


def _describe_identification(found: pd.DataFrame, n_parameters: int, rank: int, ratio: float) -> list[str]:
    """Sentences about the quantities that the margins of the table do not determine, or hardly."""
    sentences = []
    by_prior, weakly = (_list_quantities(found[found["identified"] == kind]) for kind in (_BY_PRIOR, _WEAKLY))
    if rank < n_parameters:
        sentences.append(
            f"Not identified by the data: the model has {n_parameters} parameters, and the tests that were done in "
            f"each population determine only {rank} combination{'s' * (rank > 1)} of them. Identified by the prior "
            f"only, however many rows there are: {by_prior}."
        )
    if weakly:
        sentences.append(
            f"Weakly identified: {weakly}. In the direction of the parameters about which the data say least, the "
            f"posterior sd is {ratio:.2f} of the prior sd. Rows are few, prevalences nearly equal, or "
            "the prior is narrow."
        )
    return sentences


def _list_quantities(found: pd.DataFrame) -> str:
    """Names of the quantities of some rows of the table."""
    return ", ".join(f"{quantity} of {name}" for quantity, name in zip(found["quantity"], found["name"], strict=True))


def _describe_information(
    found: pd.DataFrame, prior_sd: np.ndarray, tests: tuple[Hashable, ...], accuracy: np.ndarray, fit_p: float
) -> list[str]:
    """Sentences about quantities to whose prior the data add little, tests that may be random, and the fit.

    `accuracy` (2, T) are the ends of the interval of sensitivity + specificity - 1 of each test.
    """
    sentences = []
    little = _list_quantities(found[found["sd"].to_numpy() > _LITTLE * prior_sd])
    if little:
        sentences.append(f"The data add little to the prior of: {little} (posterior sd above half of the prior sd).")
    for test, low, high in zip(tests, *accuracy, strict=True):
        if low <= 0:
            interval = f"the interval of sensitivity + specificity - 1 is {low:.2f} to {high:.2f}"
            sentences.append(f"{test} may be no better than chance: {interval}.")
    if fit_p < _UNLIKELY:
        sentences.append(
            f"The model does not fit the table (fit_p = {fit_p:.3f}): the tests are not independent given the disease, "
            "or their sensitivity or specificity differs between populations. Estimates and intervals may be wrong. "
            "Pass pairs of tests that err on the same people as dependent=."
        )
    return sentences
