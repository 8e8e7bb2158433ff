"""Classifiers of tables of several kinds of columns, and the average over which features depend on the class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit, logit
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayesnb import families
from bayesnb._util.arguments import bad_argument, read_seed, require_choice, require_number, shown, to_numbers
from bayesnb._util.kinds import KINDS
from bayesnb._util.precision import float64
from bayesnb.encoding import Columns, CountColumns, Encoding, RealColumns, Rows, Table
from bayesnb.encoding.priors import class_distribution, named_columns
from bayesnb.encoding.table import as_list, is_labelled, match_columns
from bayesnb.estimators import classifier_state
from bayesnb.estimators.base import HalvesClassifier, NaiveBayesClassifier, wrapped_estimator
from bayesnb.estimators.classifier_state import ALPHA, CELLS, CLASS_ALPHA, INCLUSION, LabelledRows
from bayesnb.estimators.plain import (
    HANDLE_UNKNOWN,
    BinnedNB,
    CategoricalNB,
    binary_columns,
    cell_columns,
    cell_edges,
    chosen_cells,
    declared_columns,
    level_columns,
)
from bayesnb.estimators.predictions import require_unnested
from bayesnb.families import NormalInverseGamma, averaged
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import require_estimate
from bayesnb.model import Estimate, NaiveBayes
from bayesnb.weights.cross_fitting import Density, NumberTerms, compare_densities

if TYPE_CHECKING:
    import pandas as pd

# == Naive Bayes over columns of several kinds =====================================================

_ROUNDING = 1e-9


@dataclass(eq=False, repr=False)
class MixedNB(HalvesClassifier):
    r"""Naive Bayes for tables with columns of several kinds, such as categories and numbers.

    Given the class, the columns are independent, except that the multinomial columns together are one vector of counts.
    The columns of one kind are a block b:

    .. math::

        & p(c, x \mid \pi, \theta) = \pi_c \prod_b p(x_b \mid \theta_{cb}), \\
        & \pi \sim \mathrm{Dirichlet}(\mathtt{class\_alpha}),

    where each p(x_b | θ_cb) and its prior are those of the classifiers of one kind of columns, such as `GaussianNB`;
    see docs/derivations/conjugate.md, "Naive Bayes".

    The values in the rows that are counted first determine the kind of a column that you do not name, whatever its
    container. Numbers, also Decimal and numbers in arrays of objects, are numbers (see `numbers`), unless ten or more
    present cells have at most two distinct values. Dates are numbers in days since 1970 (UTC), durations are numbers in
    seconds. Texts, Booleans, pandas categoricals and declared `categories` are categorical. You must name columns of
    the other kinds.

    Parameters
    ----------
    categorical, gaussian, binned, bernoulli, poisson, counts, exponential, multinomial : list of columns, optional
        Columns of each kind, by name or index. The multinomial columns together are one vector of counts.
    numbers : {"auto", "gaussian", "binned"}, default "auto"
        Density of the columns of numbers that no list names. "gaussian": normal. "binned": a step function of any
        shape, averaged over all binnings. "auto": for each column the one of these with the higher score of the labels,
        the mean of log P(y | x_j) over the rows that are counted first, each scored by fits to random halves without
        the row (three splits, six of fewer than 1,000 rows, by `random_state`; a row of weight 2
        is in one half, and so are copies of a row and the rows of a group, see `fit`). "auto" is "gaussian"
        if there are fewer than ten rows outside the largest class, or if `prior` is a complete prior without binned
        columns. `partial_fit` keeps the choice, `kinds_`, and all results are conditional on it.
    alpha : scalar, (F,) array, list with an entry per column, Dirichlet, or dict or Series by column, default 1
        Concentration of the Dirichlet prior of the categorical, Bernoulli and multinomial columns: one number for all
        of them, or one per column. A dict or Series is matched by name, such as
        `{"colour": {"green": 2.0}, "root": 0.5}`. Concentrations that it does not name are 1; a level that it names is
        declared. The entry of a column is a number, an array by level, a dict or Series by level, or differs between
        classes: an array (classes, levels), a DataFrame with a row for each class, or a dict or Series by class, such
        as `{"colour": {"ripe": {"green": 2.0}, "raw": 1.0}}`.
    class_alpha : scalar, (C,) array, or dict or Series by class, default 1
        Concentration of the Dirichlet prior of the class probabilities π: one number for all classes, or one per class.
        An array is in the order of `classes_`; a dict or Series names the classes.
    class_prior : (C,) array, dict or Series by class, or Dirichlet, optional
        Known class probabilities π, or a Dirichlet prior of π. Replaces `class_alpha`. An array is in the order of
        `classes_`; a dict or Series names the classes.
    estimate : {"predictive", "mean", "map", "mle"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out (the posterior
        predictive distribution). "mean", "map" and "mle" plug in the posterior mean, the posterior mode and the maximum
        likelihood estimate.
    categories : "auto", list of F lists, or dict {feature: list}, default "auto"
        Levels of each categorical column. "auto": the levels that occur in the rows; `partial_fit` adds new ones. A
        pandas categorical column has the categories of its dtype. Declared levels belong to the model whether or not
        they occur in the rows, and `partial_fit` adds none to them.
    handle_unknown : {"ignore", "error", "level"}, default "ignore"
        Treatment of a value that is not among the levels. "ignore": the cell counts as missing, with a warning.
        "error": ValueError is raised. "level": all such values share one reserved level.
    missing_values : value or list of values, optional
        Values that mark a missing cell, such as "?", besides None, NaN and pd.NA. Missing cells are marginalised, on
        the assumption that they are missing at random.
    binarize : float or None, default 0
        A Bernoulli feature is present if its cell exceeds this threshold. None: cells are 0 or 1 already.
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma, EmpiricalNormal or dict by column, default "within"
        Prior of the mean and variance of the Gaussian columns. "within": empirical Bayes, with m the mean of the column
        over all rows, κ = 0.1, a = 1, and b the variance of the column within the classes. "pooled": the same, with b
        the variance over all rows. A NormalInverseGamma is used as given. A dict by column gives the prior of some
        columns, such as `{"age": NormalInverseGamma(...)}`, whose fields may also be dicts by class; the other columns
        have the default prior, or that of the entry `None`. A column that the dict names is Gaussian.
    binned_prior : "independent" or IndependentCuts, default "independent"
        Prior of the cuts of the binned columns, and of the probabilities of their bins. "independent" is
        `IndependentCuts(concentration=4.0, cuts=1.0)`: about one cut is expected, and the probabilities count as four
        rows per class.
    cells : int, default 64
        Largest number of cells of a binned column, 2 to 256. The ends of cells are quantiles of the rows that are
        counted first.
    edges : dict or Series {column: edges}, or list with an entry per binned column, optional
        Ends of the cells of the binned columns, in place of quantiles, in the units of the column. Under
        ``numbers="auto"`` a dict may name other columns of numbers; those with a normal density do not use their edges.
    poisson_prior : "pooled", GammaPoisson, EmpiricalRate or dict by column, default "pooled"
        Prior of the rates of the Poisson columns. "pooled": empirical Bayes, Gamma(1, 1/mean), with the mean of the
        column over all rows. A dict is as for `gaussian_prior`: a column that it names is a Poisson column.
    counts_prior : "pooled", BetaNegativeBinomial, EmpiricalCounts or dict by column, default "pooled"
        Prior of the rates of the columns `counts`, which are overdispersed: negative binomial, averaged over the
        dispersion, see `NegativeBinomialNB`. "pooled": empirical Bayes, with a = 1 and b = 1/mean, with the mean of the
        column over all rows. A dict is as for `gaussian_prior`: a column that it names is one of `counts`.
    exponential_prior : "pooled", GammaExponential, EmpiricalDuration or dict by column, default "pooled"
        Prior of the rates of the exponential columns. "pooled": empirical Bayes, Gamma(1, mean), with the mean of the
        column over all rows. A dict is as for `gaussian_prior`: a column that it names is an exponential column.
    prior : NaiveBayes, optional
        Complete prior of the classifier. Replaces `alpha`, `class_alpha`, `class_prior` and the priors of each kind.
    random_state : int, JAX key, RandomState, Generator or None, default None
        Seed of the random halves of the rows that choose the densities under ``numbers="auto"``.
        `BaggingClassifier` of scikit-learn gives each member another one. None: 0, so that fits are reproducible.

    Attributes
    ----------
    kinds_ : dict {column name: kind}
        Kind of each column, in the order of the columns.
    edges_ : dict {column name: array}
        Ends of the cells of the binned columns, in the units of the column.
    time_units_ : dict {column name: unit}
        Units of the columns of dates ("days" since 1970, UTC) and of durations ("seconds"); only if there are any.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters. The blocks are in the order categorical, Gaussian, binned,
        Bernoulli, Poisson, exponential, multinomial; a kind without columns has no block.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        Log evidence log p(X, y): the parameters are integrated out.

    See Also
    --------
    WeightedNB : Calibrated class probabilities.
    CategoricalNB : Categorical columns only.
    GaussianNB : Normal columns only.
    explain : Contribution of each column to a prediction.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesnb import MixedNB
    >>> X = pd.DataFrame({"colour": ["green", "red", "red", "green"], "sugar": [0.2, 0.5, 0.4, 0.1]})
    >>> nb = MixedNB().fit(X, ["raw", "ripe", "ripe", "raw"])
    >>> nb.kinds_
    {'colour': 'categorical', 'sugar': 'gaussian'}
    >>> nb.predict_proba(pd.DataFrame({"colour": ["red", None], "sugar": [0.3, 0.3]})).round(2)
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """

    _: KW_ONLY
    categorical: object = None
    gaussian: object = None
    binned: object = None
    bernoulli: object = None
    poisson: object = None
    counts: object = None
    exponential: object = None
    multinomial: object = None
    numbers: str = "auto"
    alpha: object = ALPHA
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    estimate: Estimate = "predictive"
    categories: object = "auto"
    handle_unknown: str = "ignore"
    missing_values: object = None
    binarize: float | None = 0.0
    gaussian_prior: object = "within"
    binned_prior: object = "independent"
    cells: int = CELLS
    edges: object = None
    poisson_prior: object = "pooled"
    counts_prior: object = "pooled"
    exponential_prior: object = "pooled"
    prior: object = None
    random_state: object = None

    @property
    def no_counts(self) -> str | None:  # type: ignore[override]
        """Reason why counts of levels and moments of numbers do not suffice, or None."""
        if self.numbers == "gaussian" and not as_list(self.binned):
            return None
        return f'{BinnedNB.no_counts} Or choose numbers="gaussian".'

    @property
    def no_em(self) -> str | None:  # type: ignore[override]
        """Reason why EM cannot count rows if `numbers` or `binned` asks for binned columns; None otherwise."""
        return BinnedNB.no_em if self.numbers == "binned" or as_list(self.binned) else None

    @property
    def kinds_(self) -> dict[str, str]:
        """Kind of each column by name, in the order of the columns of X."""
        kinds = {j: (name, b.kind) for b in self.encoding_.blocks for j, name in zip(b.index, b.names, strict=True)}
        return dict(kinds[j] for j in sorted(kinds))

    @property
    def edges_(self) -> dict[str, np.ndarray]:
        """Ascending inner ends of the cells of each binned column, by name."""
        return cell_edges(self.encoding_.blocks)

    def with_priors(self, priors: Mapping[str, object], chosen: tuple[str, ...] = ()) -> Self:
        """Return a copy with the same counts, and the same kinds of columns, under other hyperparameters.

        Parameters
        ----------
        priors : dict {name: value}
            Values of hyperparameters.
        chosen : tuple of str
            Names of the hyperparameters that were chosen on the counted rows.

        Examples
        --------
        >>> from bayesnb import MixedNB
        >>> nb = MixedNB().fit([[1.0], [2.0], [1.5], [2.5]], ["low", "high", "low", "high"])
        >>> nb.with_priors({"gaussian_prior": "pooled"}).gaussian  # chosen by `fit`, and kept
        ['0']
        """
        kinds = {
            kind: [name for name, column_kind in self.kinds_.items() if column_kind == kind] or None
            for kind in (KINDS if self.numbers == "auto" else ())
        }
        return super().with_priors({**kinds, **priors}, chosen)

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return one block for each kind that columns of the table have; raise for sparse data and bad options."""
        table.require_dense()
        require_choice("numbers", self.numbers, ("gaussian", "binned", "auto"))
        # Options of kinds that this table lacks are checked too, as a misspelt one would fail with later rows only.
        require_choice("handle_unknown", self.handle_unknown, HANDLE_UNKNOWN)
        for family in families.OF_NUMBERS:
            if isinstance(prior := getattr(self, name := f"{family.kind}_prior"), str):
                require_choice(name, prior, tuple(family.empirical))
        return self._make_blocks(table, self._column_kinds(table))

    def _structured(self, batch: LabelledRows) -> LabelledRows:
        """Return a first batch in which numbers that score better as binned are binned, under numbers="auto"."""
        if not self._chooses_densities or classifier_state.is_fitted(self):
            return batch
        kinds, named = self._column_kinds(batch.table), self._named_kinds(batch.table)
        undecided = [j for j, kind in enumerate(named) if kind is None and kinds[j] == "gaussian"]
        if not undecided:
            return batch
        batch = batch.with_units()
        chosen = {columns.kind: list(columns.index) for columns, _ in self._choose_densities(batch, undecided)[0]}
        for j in chosen.get("binned", ()):
            kinds[j] = "binned"
        known = {block.kind: (block, rows) for block, rows in zip(batch.encoding.blocks, batch.rows, strict=True)}
        decided = [
            block.learn(batch.table) if block.kind in ("gaussian", "binned") else known[block.kind]
            for block in self._make_blocks(batch.table, kinds)
        ]
        blocks, cells = zip(*decided, strict=True)
        return batch._replace(encoding=replace(batch.encoding, blocks=blocks), rows=cells)

    @property
    def _chooses_densities(self) -> bool:
        """Whether `fit` chooses between normal and binned densities for each column of numbers."""
        given = self.prior.blocks if isinstance(self.prior, NaiveBayes) else None
        return self.numbers == "auto" and (given is None or any(getattr(f, "kind", None) == "binned" for f in given))

    def _made_choices(self, encoding: Encoding) -> tuple[str, ...]:
        """Return what the counted rows chose: densities and cells of numbers, and tuned hyperparameters."""
        kinds = [block.kind for block in encoding.blocks for _ in block.index if block.kind in ("gaussian", "binned")]
        undecided = len(kinds) > len(as_list(self.gaussian)) + len(as_list(self.binned))
        densities = ("the densities of numbers",) if undecided and self._chooses_densities else ()
        return (*densities, *chosen_cells(self.edges, encoding), *super()._made_choices(encoding))

    def _choose_densities(
        self, batch: LabelledRows, index: Sequence[int]
    ) -> tuple[list[tuple[Columns, Rows]], NumberTerms | None]:
        """Return columns of numbers, by position, and their rows, as a normal and a binned block; none is empty.

        A column is binned if cross-fitted scores of labels are better by more than 1e-9 nats per row, see
        `compare_densities`, which shrinks gains to a common one, unless `gaussian_prior` names the column. The terms
        of the columns by fits to halves are returned, too, if rows suffice for a comparison. `batch` has units.
        """
        table, classes = batch.table, batch.encoding.classes
        binned = [j for j, kind in enumerate(self._named_kinds(table)) if kind == "binned"]
        class_prior = class_distribution(self.class_prior, self.class_alpha, classes)
        learned = (
            RealColumns(*table.columns_at(index), NormalInverseGamma),
            cell_columns(table, index, self.cells, self.edges, binned),
        )
        pairs: list[tuple[Any, Any]] = [block.learn(table) for block in learned]

        def density(columns: Columns, rows: Rows) -> Density:
            """Return the rows of these columns, and fits to parts of them."""
            every = batch._replace(encoding=Encoding(classes, (columns,)), rows=(rows,))
            prior = NaiveBayes(class_prior, (self._block_prior(columns, classes),))
            return Density(every.encoding, rows, lambda weight: every._replace(weight=weight).posterior(prior))

        first, second = (density(*pair) for pair in pairs)
        seed = read_seed(0, self.random_state)
        gains, terms = compare_densities(first, second, batch.label, batch.weight, batch.unit, seed)
        is_normal = named_columns("gaussian_prior", self.gaussian_prior, table.names)
        is_binned = (gains > _ROUNDING) & ~np.isin(index, list(is_normal))
        kept = (np.flatnonzero(~is_binned), np.flatnonzero(is_binned))
        chosen = [(columns.select(keep), rows.select(keep)) for (columns, rows), keep in zip(pairs, kept, strict=True)]
        return [pair for pair in chosen if len(pair[0].index)], None if terms is None else terms(is_binned)

    def _make_blocks(self, table: Table, kinds: Sequence[str]) -> tuple[Columns, ...]:
        """Make one block of columns for each kind that occurs in `kinds`, the kind of each column of the table."""
        options = self.categories, self.handle_unknown, self.missing_values
        named = self._named_kinds(table) if self._chooses_densities else kinds
        undecided = [j for j, kind in enumerate(kinds) if kind == "gaussian" and named[j] is None]
        make: dict[str, Any] = {
            "categorical": lambda index: level_columns(table, index, *options),
            "binned": lambda index: cell_columns(table, index, self.cells, self.edges, undecided),
            "bernoulli": lambda index: binary_columns(table, index, self.binarize),
            "multinomial": lambda index: CountColumns(*table.columns_at(index)),
        }
        for family in families.OF_NUMBERS:
            make[family.kind] = lambda index, family=family: RealColumns(*table.columns_at(index), family)
        positions = {kind: tuple(j for j, of_column in enumerate(kinds) if of_column == kind) for kind in KINDS}
        return tuple(make[kind](index) for kind, index in positions.items() if index)

    def _column_kinds(self, table: Table) -> list[str]:
        """Return the kind of each column, by list or values; "gaussian" for numbers that `fit` may still bin."""
        named = self._named_kinds(table)
        numbers = "gaussian" if self.numbers == "auto" else self.numbers
        kinds = [
            kind or (numbers if table.is_numeric(j, whole=True) else "categorical") for j, kind in enumerate(named)
        ]
        if self.numbers == "auto" and classifier_state.is_fitted(self):
            decided = [j for block in self.encoding_.blocks if block.kind == "binned" for j in block.index]
            for j in decided:
                kinds[j] = "binned" if named[j] is None else kinds[j]
        return kinds

    def _warn_of_columns(self, before: Encoding | None = None) -> None:
        """Warn of dates, and of columns that are levels by a text among numbers or by the first rows only."""
        super()._warn_of_columns(before)
        named = as_list(self.categorical)
        if before is None:
            self.encoding_.warn_of_texts_among_numbers(named)
        else:
            self.encoding_.warn_of_numbers_as_levels(before, named, whole=True)

    def _named_kinds(self, table: Table) -> list[str | None]:
        """Return the kind of each column that an argument names, else None; ValueError if two lists name a column."""
        kinds: list[str | None] = [None] * len(table.names)
        for kind in KINDS:
            for column in as_list(getattr(self, kind)):
                j = table.position(column, kind)
                if kinds[j] == kind:
                    raise ValueError(f"{kind} names column {shown(table.names[j])} twice. Name the column once.")
                if kinds[j] is not None:
                    raise ValueError(f"Column {shown(table.names[j])} is listed as both {kinds[j]} and {kind}.")
                kinds[j] = kind
        for kind in (family.kind for family in families.OF_NUMBERS):
            for j in named_columns(f"{kind}_prior", getattr(self, f"{kind}_prior"), table.names):
                if kinds[j] not in (None, kind):
                    problem = f"{kind}_prior names column {shown(table.names[j])}, which is listed as {kinds[j]}"
                    raise ValueError(f"{problem}. Remove one of the two.")
                kinds[j] = kind
        for j in declared_columns(table, self.categories, self.alpha):
            kinds[j] = kinds[j] or "categorical"
        return kinds

    _tags = ("allow_nan",)


# == Naive Bayes averaged over the sets of features that depend on the class =======================


@dataclass(eq=False, repr=False)
class FeatureAveragedNB(NaiveBayesClassifier):
    r"""Naive Bayes averaged over all 2^F sets of features that depend on the class.

    A feature outside the set has the same distribution in every class. A priori each feature is in the set with
    probability ρ, independently. Given the data D the indicators of the features remain independent, so that the exact
    average is a product:

    .. math::

        p(c, x \mid D) = p(c \mid D) \prod_{f=1}^F
        \big[ \rho'_f\, p(x_f \mid c, D) + (1 - \rho'_f)\, p(x_f \mid D) \big],

    with ρ'_f the posterior probability that feature f depends on the class; see
    docs/derivations/evidence_and_leave_one_out.md, "Averaging over features".

    Parameters
    ----------
    estimator : classifier of bayesnb, optional
        Classifier whose columns, options and priors are used, both for each class and for all classes together.
        Default: `CategoricalNB()`. The features may be categorical, Bernoulli, Gaussian, Poisson or mixed, but not
        multinomial.
    inclusion : scalar, (F,) array, or dict or Series by feature, default 0.5
        Prior probability ρ that a feature depends on the class: one number for all features, or one per feature. A dict
        or Series names features; those that it does not name keep 0.5.
    expected_features : float, optional
        Prior expectation of the number of features that depend on the class. Replaces `inclusion`: each feature is
        included with probability expected_features / F.
    estimate : {"predictive", "mean"}, default "predictive"
        Estimate of the parameters that predictions use. "predictive" integrates the parameters out; "mean" plugs in
        their posterior mean.

    Attributes
    ----------
    inclusion_probability_ : (F,) array
        Posterior probability ρ'_f that each feature depends on the class, in the order of the columns of X.
    classes_ : (C,) array
        Class labels, in the order of the class axis of every array.
    class_count_ : (C,) array
        Sum of the weights of the rows in each class.
    class_log_prior_ : (C,) array
        Logarithm of the posterior mean of each class probability.
    prior_, posterior_ : NaiveBayes
        Prior and posterior distribution of all parameters; the blocks are `bayesnb.families.Averaged`.
    statistics_ : Statistics
        Sufficient statistics of the counted rows.
    log_evidence_ : float
        Log evidence log p(X, y): the parameters are integrated out.

    See Also
    --------
    CategoricalNB : All features depend on the class.
    TreeAveragedNB : Average over dependences between features.
    check_independence : Tests of dependence between features.
    WeightedNB : Weights of features, fitted to held-out labels.

    Notes
    -----
    Inclusion also depends on the prior of the parameters: for Gaussian features on κ, see `inclusion_by_kappa`. Of two
    copies of a feature each is included, and both are counted.

    References
    ----------
    Dash & Cooper, *Exact model averaging with naive Bayesian classifiers*, ICML 2002. Wei, Visweswaran & Cooper, *The
    application of naive Bayes model averaging to predict Alzheimer's disease from genome-wide data*, JAMIA 18 (2011).

    Examples
    --------
    >>> from bayesnb import FeatureAveragedNB
    >>> X = [["sun", "a"], ["sun", "b"], ["rain", "a"], ["rain", "b"]] * 3
    >>> nb = FeatureAveragedNB().fit(X, ["out", "out", "in", "in"] * 3)
    >>> nb.inclusion_probability_.round(2)
    array([1.  , 0.38])
    """

    estimator: object = None
    _: KW_ONLY
    inclusion: object = INCLUSION
    expected_features: float | None = None
    estimate: Estimate = "predictive"

    _estimates = ("predictive", "mean")

    def __post_init__(self) -> None:
        require_unnested(self)

    @property
    def inclusion_probability_(self) -> np.ndarray:
        """Posterior probability that each feature depends on the class, (F,), in the order of the columns of X."""
        return np.asarray(expit(self.encoding_.sort_columns(block.log_odds for block in self.posterior_.blocks)))

    def inclusion_by_kappa(self, kappa: tuple[float, ...] = (0.01, 0.1, 1.0)) -> pd.DataFrame:
        """Compute the inclusion probabilities of Gaussian features for several strengths κ of their prior.

        A vague prior of the means (small κ) lowers the evidence of dependence, by a factor that does not vanish with
        more rows.

        Parameters
        ----------
        kappa : tuple of float
            Prior strengths of the means, in rows.

        Returns
        -------
        DataFrame
            Inclusion probabilities: one row per feature, one column per κ.

        Examples
        --------
        >>> from bayesnb import FeatureAveragedNB, GaussianNB
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> FeatureAveragedNB(GaussianNB()).fit(X[::10], y[::10]).inclusion_by_kappa().round(3)
        kappa     0.01   0.10   1.00
        feature
        0        0.978  0.996  0.992
        1        0.710  0.954  0.983
        2        1.000  1.000  1.000
        3        1.000  1.000  1.000
        """
        import pandas as pd

        check_is_fitted(self)
        blocks = zip(self.encoding_.blocks, self.prior_.blocks, self.statistics_.blocks, strict=True)
        gaussian = [block for block in blocks if "kappa" in block[1].dependent.tunable]
        if not gaussian:
            raise ValueError(
                "inclusion_by_kappa needs Gaussian features, and this classifier has none. Use "
                "FeatureAveragedNB(GaussianNB()), or `inclusion_`."
            )
        inclusion, (columns, prior, statistics) = {}, gaussian[-1]
        for value in kappa:
            vague: Any = averaged(prior.dependent.with_hyperparameters({"kappa": value}), prior.log_odds)
            inclusion[value] = expit(float64(vague.update)(statistics).log_odds)
        return pd.DataFrame(inclusion, index=pd.Index(columns.names, name="feature")).rename_axis(columns="kappa")

    def __sklearn_tags__(self) -> Tags:
        return self._base().__sklearn_tags__()

    def _made_choices(self, encoding: Encoding) -> tuple[str, ...]:
        """Return the names of hyperparameters that were tuned on the counted rows, here or on `estimator`."""
        return (*super()._made_choices(encoding), *getattr(self._base(), "tuned_", ()))

    def _base(self) -> NaiveBayesClassifier:
        """Return the hyperparameter `estimator`, by default `CategoricalNB()`; ValueError if it is unusable."""
        return wrapped_estimator(self, CategoricalNB())

    @property
    def _concentrations(self) -> object:
        """Hyperparameter `alpha` of the estimator."""
        return self._base()._concentrations

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return the estimator's blocks of columns; NotImplementedError for arcs, word counts and shared parameters."""
        columns = self._base()._columns(table)
        for block in columns:
            if block.network is not None or block.one_simplex or block.family.classes_share_parameters:
                kind = "columns with arcs" if block.network is not None else f"{block.kind} columns"
                raise NotImplementedError(
                    "FeatureAveragedNB needs features that are independent given the class, with separate parameters "
                    f"in each class; the estimator has {kind}. Use CategoricalNB, BernoulliNB (words as presence), "
                    "PoissonNB (words as counts) or GaussianNB as `estimator`."
                )
        return columns

    def _empirical_prior(self, counted: Counted) -> NaiveBayes:
        """Return the estimator's prior, each family as a mixture of parameters that depend on the class or do not."""
        require_estimate(self.estimate, self._estimates)
        base = self._base()._empirical_prior(counted)
        log_odds = self._prior_log_odds(counted.encoding)
        pairs = zip(counted.encoding.blocks, base.blocks, strict=True)
        blocks = tuple(averaged(family, log_odds[list(columns.index)]) for columns, family in pairs)
        return NaiveBayes(base.class_prior, blocks)

    def _prior_log_odds(self, encoding: Encoding) -> np.ndarray:
        """Return (F,) prior log odds that a feature depends on the class; ValueError for invalid probabilities."""
        n_features = encoding.n_features
        if (expected := self.expected_features) is not None:
            wanted = f"strictly between 0 and {n_features}, the number of features"
            require_number("expected_features", expected, wanted, lambda number: 0 < number < n_features)
            return np.full(n_features, logit(expected / n_features))
        given: object = self.inclusion
        if is_labelled(given):
            entries = match_columns("inclusion", given, encoding.feature_names)
            given = [entries.get(j, INCLUSION) for j in range(n_features)]
        inclusion = to_numbers("inclusion", given)
        if inclusion.shape not in ((), (n_features,)) or not ((inclusion > 0) & (inclusion < 1)).all():
            wanted = f"a probability strictly between 0 and 1, or one for each of the {n_features} features"
            raise bad_argument("inclusion", self.inclusion, wanted)
        return np.broadcast_to(logit(inclusion), n_features)
