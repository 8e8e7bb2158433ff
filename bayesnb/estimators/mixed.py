"""Naive Bayes over columns of several kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bayesnb import families
from bayesnb.encoding import Columns, CountColumns, RealColumns, Table
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.defaults import ALPHA, CLASS_ALPHA
from bayesnb.estimators.discrete import binary_columns, level_columns
from bayesnb.model import Estimate

KINDS = ("categorical", "gaussian", "bernoulli", "poisson", "exponential", "multinomial")
"""In the order in which their blocks stand."""


class MixedNB(NaiveBayesClassifier):
    """Naive Bayes for tables with columns of several kinds, such as the watermelon table.

    A column that no list names is decided by its dtype: floats and integers are Gaussian; Booleans,
    strings, objects and categoricals are categorical. Columns of other kinds must be named.

    Parameters
    ----------
    categorical, gaussian, bernoulli, poisson, exponential, multinomial : list of column names or indices, optional
        The multinomial columns are one count vector.
    alpha : scalar, (F,) array, list with an entry a column, or Dirichlet
        Concentration of the categorical, Bernoulli and multinomial columns.
    class_alpha, class_prior, estimate
        As for `CategoricalNB`.
    categories, handle_unknown, missing_values
        As for `CategoricalNB`; for the categorical columns.
    binarize : float or None, default 0
        As for `BernoulliNB`.
    gaussian_prior : {"within", "pooled"}, NormalInverseGamma or EmpiricalNormal, default "within"
        As `prior` of `GaussianNB`.
    poisson_prior : "pooled" or GammaPoisson
        As `prior` of `PoissonNB`.
    exponential_prior : "pooled" or GammaExponential
        As `prior` of `ExponentialNB`.
    prior : NaiveBayes, optional
        A complete prior in place of the above.

    Attributes
    ----------
    kinds_ : dict {column name: kind}
    classes_, class_count_, class_log_prior_, prior_, posterior_, statistics_, log_evidence_
        As for `CategoricalNB`; the blocks stand in the order categorical, Gaussian, Bernoulli, Poisson,
        exponential, multinomial, kinds without a column left out.
    """

    def __init__(
        self,
        *,
        categorical: Any = None,
        gaussian: Any = None,
        bernoulli: Any = None,
        poisson: Any = None,
        exponential: Any = None,
        multinomial: Any = None,
        alpha: Any = ALPHA,
        class_alpha: Any = CLASS_ALPHA,
        class_prior: Any = None,
        estimate: Estimate = "predictive",
        categories: Any = "auto",
        handle_unknown: str = "ignore",
        missing_values: Any = None,
        binarize: float | None = 0.0,
        gaussian_prior: Any = "within",
        poisson_prior: Any = "pooled",
        exponential_prior: Any = "pooled",
        prior: Any = None,
    ) -> None:
        self.categorical = categorical
        self.gaussian = gaussian
        self.bernoulli = bernoulli
        self.poisson = poisson
        self.exponential = exponential
        self.multinomial = multinomial
        self.alpha = alpha
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.estimate = estimate
        self.categories = categories
        self.handle_unknown = handle_unknown
        self.missing_values = missing_values
        self.binarize = binarize
        self.gaussian_prior = gaussian_prior
        self.poisson_prior = poisson_prior
        self.exponential_prior = exponential_prior
        self.prior = prior

    @property
    def kinds_(self) -> dict[str, str]:
        """Kind of each column."""
        self._require_fitted("kinds_")
        kinds = {j: (name, b.kind) for b in self.encoding_.blocks for j, name in zip(b.index, b.names, strict=True)}
        return dict(kinds[j] for j in sorted(kinds))

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        if table.is_sparse:
            raise TypeError("Sparse data was passed for X, but MixedNB takes dense data; use X.toarray().")
        kinds = self._kinds(table)
        index = {kind: tuple(j for j, k in enumerate(kinds) if k == kind) for kind in KINDS}
        n = len(kinds)

        def names(kind: str) -> tuple[str, ...]:
            return tuple(table.names[j] for j in index[kind])

        def of_numbers(family: Any) -> Callable[[tuple[int, ...], tuple[str, ...]], Columns]:
            return lambda i, names: RealColumns(i, names, n, family)

        levels: dict[str, Callable[[tuple[int, ...], tuple[str, ...]], Columns]] = {
            "categorical": lambda i, _: level_columns(
                table, i, self.categories, self.handle_unknown, self.missing_values
            ),
            "bernoulli": lambda i, _: binary_columns(table, i, self.binarize),
            "multinomial": lambda i, names: CountColumns(i, names, n),
        }
        make = levels | {family.kind: of_numbers(family) for family in families.OF_NUMBERS}
        return tuple(make[kind](index[kind], names(kind)) for kind in KINDS if index[kind])

    def _kinds(self, table: Table) -> list[str]:
        """Kind of each column: as named, else from its dtype."""
        kinds: list[str | None] = [None] * len(table.names)
        for kind in KINDS:
            for column in _as_list(getattr(self, kind)):
                j = table.position(column, kind)
                if kinds[j] == kind:
                    raise ValueError(f"{kind} names column {table.names[j]!r} twice.")
                if kinds[j] is not None:
                    raise ValueError(f"Column {table.names[j]!r} is named both {kinds[j]} and {kind}; choose one.")
                kinds[j] = kind
        return [kind or _kind_from_dtype(table.column(j)) for j, kind in enumerate(kinds)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _as_list(columns: Any) -> list[Any]:
    if columns is None:
        return []
    return list(columns) if isinstance(columns, Iterable) and not isinstance(columns, str) else [columns]


def _kind_from_dtype(column: Any) -> str:
    dtype = column.dtype
    if hasattr(dtype, "is_numeric"):
        return "gaussian" if dtype.is_numeric() else "categorical"
    return "gaussian" if getattr(dtype, "kind", "O") in "iuf" else "categorical"
