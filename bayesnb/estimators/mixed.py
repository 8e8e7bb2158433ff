"""Naive Bayes over columns of several kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from bayesnb import counting, families
from bayesnb._util.arguments import require_choice, shown
from bayesnb.counting import Counted
from bayesnb.encoding import Columns, CountColumns, Encoding, RealColumns, Rows, Table
from bayesnb.estimators import drafts
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.estimators.binned import BinnedNB, cell_columns, chosen_cells, edges_of
from bayesnb.estimators.defaults import ALPHA, CELLS, CLASS_ALPHA
from bayesnb.estimators.discrete import HANDLE_UNKNOWN, binary_columns, level_columns
from bayesnb.families import NormalInverseGamma
from bayesnb.model import Estimate, NaiveBayes
from bayesnb.selection.density_gains import compute_gains

KINDS = ("categorical", "gaussian", "binned", "bernoulli", "poisson", "exponential", "multinomial")
"""In the order in which their blocks stand."""
_NUMBERS = ("gaussian", "binned", "auto")
_ROUNDING = 1e-9


class MixedNB(NaiveBayesClassifier):
    """Naive Bayes for tables with columns of several kinds, such as the watermelon table.

    A column that no list names is decided by its dtype: floats and integers are numbers, see `numbers`; Booleans,
    strings, objects and categoricals are categorical. Columns of other kinds must be named.

    Parameters
    ----------
    categorical, gaussian, binned, bernoulli, poisson, exponential, multinomial : list of columns, optional
        By name or index. The multinomial columns are one count vector.
    numbers : {"auto", "gaussian", "binned"}
        What columns of numbers are that no list names. "binned": densities of any shape, as in `BinnedNB`. "auto": of
        each column that density which tells more of the class, by its exact leave-one-out score on the rows that are
        counted first, log P(y | x_j, the other rows). Where fewer than ten rows are outside the largest class they are
        Gaussian, as they are under a complete `prior` without binned columns. The choice, `kinds_`, stays in
        `partial_fit`, and what is said of the model is given it.
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
    binned_prior : "independent" or IndependentCuts
        As `prior` of `BinnedNB`.
    cells, edges
        As for `BinnedNB`; of the binned columns.
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
        As for `CategoricalNB`; the blocks stand in the order categorical, Gaussian, binned, Bernoulli, Poisson,
        exponential, multinomial, kinds without a column left out.
    edges_ : dict {column name: array}
        Ends of the cells of the binned columns.

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

    def __init__(
        self,
        *,
        categorical: Any = None,
        gaussian: Any = None,
        binned: Any = None,
        bernoulli: Any = None,
        poisson: Any = None,
        exponential: Any = None,
        multinomial: Any = None,
        numbers: str = "auto",
        alpha: Any = ALPHA,
        class_alpha: Any = CLASS_ALPHA,
        class_prior: Any = None,
        estimate: Estimate = "predictive",
        categories: Any = "auto",
        handle_unknown: str = "ignore",
        missing_values: Any = None,
        binarize: float | None = 0.0,
        gaussian_prior: Any = "within",
        binned_prior: Any = "independent",
        cells: int = CELLS,
        edges: Any = None,
        poisson_prior: Any = "pooled",
        exponential_prior: Any = "pooled",
        prior: Any = None,
    ) -> None:
        self.categorical = categorical
        self.gaussian = gaussian
        self.binned = binned
        self.bernoulli = bernoulli
        self.poisson = poisson
        self.exponential = exponential
        self.multinomial = multinomial
        self.numbers = numbers
        self.alpha = alpha
        self.class_alpha = class_alpha
        self.class_prior = class_prior
        self.estimate = estimate
        self.categories = categories
        self.handle_unknown = handle_unknown
        self.missing_values = missing_values
        self.binarize = binarize
        self.gaussian_prior = gaussian_prior
        self.binned_prior = binned_prior
        self.cells = cells
        self.edges = edges
        self.poisson_prior = poisson_prior
        self.exponential_prior = exponential_prior
        self.prior = prior

    @property
    def no_counts(self) -> str | None:  # type: ignore[override]
        if self.numbers == "gaussian" and not _as_list(self.binned):
            return None
        return f'{BinnedNB.no_counts} Or choose numbers="gaussian".'

    @property
    def no_em(self) -> str | None:  # type: ignore[override]
        return BinnedNB.no_em if self.numbers == "binned" or _as_list(self.binned) else None

    @property
    def kinds_(self) -> dict[str, str]:
        """Kind of each column."""
        self._require_fitted("kinds_")
        kinds = {j: (name, b.kind) for b in self.encoding_.blocks for j, name in zip(b.index, b.names, strict=True)}
        return dict(kinds[j] for j in sorted(kinds))

    @property
    def edges_(self) -> dict[str, np.ndarray]:
        """Ends of the cells of each binned column."""
        self._require_fitted("edges_")
        return edges_of(self.encoding_.blocks)

    def with_priors(self, priors: Mapping[str, Any], chosen: tuple[str, ...] = ()) -> Self:
        kinds = {
            kind: [name for name, of_column in self.kinds_.items() if of_column == kind] or None
            for kind in (("gaussian", "binned") if self.numbers == "auto" else ())
        }
        return super().with_priors({**kinds, **priors}, chosen)

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        if table.is_sparse:
            raise TypeError("Sparse data was passed for X, but MixedNB takes dense data; use X.toarray().")
        require_choice("numbers", self.numbers, _NUMBERS)
        # Options of columns that this table lacks: a misspelt one would be found out by later rows only.
        require_choice("handle_unknown", self.handle_unknown, HANDLE_UNKNOWN)
        for family in families.OF_NUMBERS:
            if isinstance(prior := getattr(self, name := f"{family.kind}_prior"), str):
                require_choice(name, prior, tuple(family.empirical))
        return self._blocks(table, self._kinds(table))

    def _structured(
        self, encoding: Encoding, table: Table, rows: tuple[Rows, ...], label: np.ndarray, weight: np.ndarray
    ) -> tuple[Encoding, tuple[Rows, ...]]:
        if not self._chooses_densities or drafts.is_fitted(self):
            return encoding, rows
        kinds, named = self._kinds(table), self._named(table)
        undecided = [j for j, kind in enumerate(named) if kind is None and kinds[j] == "gaussian"]
        if not undecided:
            return encoding, rows
        for j in self._better_binned(encoding, table, undecided, label, weight):
            kinds[j] = "binned"
        known = {block.kind: (block, own) for block, own in zip(encoding.blocks, rows, strict=True)}
        decided = [
            _learned(block, table) if block.kind in ("gaussian", "binned") else known[block.kind]
            for block in self._blocks(table, kinds)
        ]
        blocks, cells = zip(*decided, strict=True)
        return replace(encoding, blocks=blocks), cells

    @property
    def _chooses_densities(self) -> bool:
        """Whether `fit` chooses between normal densities and binned ones, column by column."""
        given = isinstance(self.prior, NaiveBayes) and all(f.kind != "binned" for f in self.prior.blocks)
        return self.numbers == "auto" and not given

    def _made_choices(self, encoding: Encoding) -> tuple[str, ...]:
        kinds = [block.kind for block in encoding.blocks for _ in block.index if block.kind in ("gaussian", "binned")]
        undecided = len(kinds) > len(_as_list(self.gaussian)) + len(_as_list(self.binned))
        densities = ("the densities of numbers",) if undecided and self._chooses_densities else ()
        return (*densities, *chosen_cells(self.edges, encoding), *super()._made_choices(encoding))

    def _better_binned(
        self, encoding: Encoding, table: Table, undecided: Sequence[int], label: np.ndarray, weight: np.ndarray
    ) -> list[int]:
        """Columns of which cells tell more of the class than normal densities do."""
        names = tuple(table.names[j] for j in undecided)
        normal = RealColumns(tuple(undecided), names, len(table.names), NormalInverseGamma)
        fits = []
        for block in (normal, cell_columns(table, tuple(undecided), self.cells, self.edges)):
            columns, rows = _learned(block, table)
            alone = drafts.blank(self)
            of_block = Encoding(encoding.classes, (columns,))
            fits.append(alone._state(Counted(of_block, counting.count_rows(of_block, (rows,), label, weight))))
        gain = compute_gains(fits[0], fits[1], table, label, weight)
        return [j for j, own in zip(undecided, gain, strict=True) if own > _ROUNDING]

    def _blocks(self, table: Table, kinds: Sequence[str]) -> tuple[Columns, ...]:
        """Columns of these kinds."""
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
            "binned": lambda i, _: cell_columns(table, i, self.cells, self.edges),
            "bernoulli": lambda i, _: binary_columns(table, i, self.binarize),
            "multinomial": lambda i, names: CountColumns(i, names, n),
        }
        make = levels | {family.kind: of_numbers(family) for family in families.OF_NUMBERS}
        return tuple(make[kind](index[kind], names(kind)) for kind in KINDS if index[kind])

    def _kinds(self, table: Table) -> list[str]:
        """Kind of each column: as named, else from its dtype; "gaussian" of numbers that are still to be decided."""
        named = self._named(table)
        numbers = "gaussian" if self.numbers == "auto" else self.numbers
        found = [kind or (numbers if is_number(table.column(j)) else "categorical") for j, kind in enumerate(named)]
        if self.numbers == "auto" and drafts.is_fitted(self):
            decided = [j for block in self.encoding_.blocks if block.kind == "binned" for j in block.index]
            for j in decided:
                found[j] = "binned" if named[j] is None else found[j]
        return found

    def _named(self, table: Table) -> list[str | None]:
        """Kind of each column that some list names."""
        kinds: list[str | None] = [None] * len(table.names)
        for kind in KINDS:
            for column in _as_list(getattr(self, kind)):
                j = table.position(column, kind)
                if kinds[j] == kind:
                    raise ValueError(f"{kind} names column {shown(table.names[j])} twice.")
                if kinds[j] is not None:
                    raise ValueError(f"Column {shown(table.names[j])} is named both {kinds[j]} and {kind}; choose one.")
                kinds[j] = kind
        return kinds

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _as_list(columns: Any) -> list[Any]:
    if columns is None:
        return []
    return list(columns) if isinstance(columns, Iterable) and not isinstance(columns, str) else [columns]


def is_number(column: Any) -> bool:
    """Return whether a column's type is that of numbers, whole ones included."""
    dtype = column.dtype
    return bool(dtype.is_numeric()) if hasattr(dtype, "is_numeric") else getattr(dtype, "kind", "O") in "iuf"


def _learned(columns: Any, table: Table) -> tuple[Columns, Rows]:
    """Columns that have learned from the rows of a table, and those rows."""
    opened = columns.open(table)
    known = columns.learn(opened)
    return known, known.rows(opened)
