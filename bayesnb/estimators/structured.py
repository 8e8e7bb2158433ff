"""Base class of classifiers with a structure, and queries of their joint distribution."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from graphlib import CycleError
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import require_choice, require_mapping, shown
from bayesnb._util.warnings import warn
from bayesnb.encoding import (
    Columns,
    ContextColumns,
    Encoding,
    LevelColumns,
    Levels,
    MarginColumns,
    Node,
    NodeColumns,
    RealColumns,
    RootColumns,
    Table,
    ignore_unknown,
)
from bayesnb.encoding.encoded_rows import CodedRows
from bayesnb.encoding.priors import BlockPrior
from bayesnb.encoding.table import as_list
from bayesnb.estimators import classifier_state
from bayesnb.estimators.base import NaiveBayesClassifier, same_layout
from bayesnb.estimators.classifier_state import ALPHA, CLASS_ALPHA, DEPENDENCE_CELLS, LabelledRows, number_positions
from bayesnb.estimators.mixed import MixedNB
from bayesnb.estimators.plain import cell_columns, declared_columns, level_columns, most_probable_cuts
from bayesnb.families import Dirichlet, NormalInverseGamma
from bayesnb.fitted import scoring
from bayesnb.fitted.counting import Counted
from bayesnb.fitted.state import fill_empty_tables
from bayesnb.model import NaiveBayes, TermWeights
from bayesnb.networks import Factor, conditional, count_level_pairs
from bayesnb.uncertainty import CLASS

if TYPE_CHECKING:
    import pandas as pd


# == Base class of classifiers with arcs between the features ======================================

NO_COLUMNS = NodeColumns(LevelColumns((), (), 0, (), ()), ())
_DENSITIES = {"gaussian", "binned"}
_MOST_LEVELS = 1_000
"""Largest number of levels of a column with arcs that are learned."""
_TABLES: dict[str, type[NodeColumns]] = {"full": NodeColumns, "context": ContextColumns}


@dataclass(eq=False, repr=False)
class StructuredNB(NaiveBayesClassifier):
    """Base class of the classifiers in which categorical features may depend on each other given the class.

    A structure is an encoding: a feature with parents has the levels (parents, feature), grouped by the parents. A
    subclass chooses the parents in `_arcs`.
    """

    _: KW_ONLY
    alpha: object = ALPHA
    class_alpha: object = CLASS_ALPHA
    class_prior: object = None
    categories: object = "auto"
    handle_unknown: str = "ignore"
    missing_values: object = None
    gaussian: object = "auto"
    gaussian_prior: object = "within"
    numbers: str = "gaussian"
    cells: int = DEPENDENCE_CELLS

    _needs_arcs = True
    """Whether a warning is due if there are too few categorical columns for arcs."""
    binned_prior: ClassVar[str] = "independent"
    _has_margins: ClassVar[bool] = True
    """Whether numbers have densities beside their cells, which are then quantiles. Otherwise a number counts as its
    cell, and the labels determine the ends of cells."""
    _learned: ClassVar[str | None] = None
    """Name of the structure that `fit` learns from the rows; None if the structure is given."""

    @property
    def edges_(self) -> dict[str, np.ndarray]:
        """Ascending inner ends of the cells of each column of numbers in the structure, by name."""
        base = self._network.base
        return {name: cuts for name, cuts in zip(base.names, base.cuts, strict=False) if cuts is not None}

    @property
    def parents_(self) -> dict[str, str | tuple[str, ...] | None]:
        """Parent of each column besides the class: a name, a tuple of several names, or None."""
        named_parents: dict[int, tuple[str, str | tuple[str, ...] | None]] = {}
        for columns in reversed(self.encoding_.blocks):  # The structure, the first block, overrides margins.
            for j, name, (_, *parents) in zip(columns.index, columns.names, columns.nodes, strict=True):
                names = tuple(columns.base.names[p] for p in parents)
                named_parents[j] = name, names[0] if len(names) == 1 else names or None
        return dict(named_parents[j] for j in sorted(named_parents))

    @property
    def categories_(self) -> list[np.ndarray | None]:
        """Levels of each column, None for a Gaussian one."""
        levels: list[np.ndarray | None] = [None] * self.n_features_in_
        base = self._network.base
        for j, column in enumerate(base.index):
            levels[column] = Levels(tuple(base.level_names(j))).array()
        return levels

    _tags = ("categorical", "allow_nan", "poor_score")

    no_counts = (
        "A table of counts contains counts of single features, but this classifier counts each feature together with "
        "its parents. Use fit(X, y) instead."
    )

    @property
    def no_em(self) -> str | None:  # type: ignore[override]
        """Reason why EM cannot count rows with responsibilities, or None."""
        if self._table_type is NodeColumns:
            return None
        return (
            "EM has no objective here, as the classifier averages models with different numbers of parameters. Pass "
            "one with full tables, such as TAN()."
        )

    def query(self, variables: object, given: Mapping[Hashable, object] | None = None) -> pd.Series:
        """Compute exact posterior predictive probabilities P(variables | given) of variables of the network.

        Parameters
        ----------
        variables : name or list of names
            Categorical columns, or "(class)".
        given : dict {name: value}, optional
            Values of columns or of the class. All other variables are summed out.

        Returns
        -------
        Series
            Probabilities, indexed by the values of `variables`: one level of the index per variable.

        Raises
        ------
        ValueError
            If a name or value is unknown; if `given` has probability 0; if an intermediate table would be too large.

        Notes
        -----
        A row uses each parameter once, and the parameters are independent a posteriori, so that the predictive
        distribution of a row is the network with all probabilities at their posterior means. `predict_proba` is the
        query of the class given the observed cells of the row.

        Examples
        --------
        >>> from bayesnb import NetworkNB
        >>> X = [["rain", "wet"], ["rain", "wet"], ["sun", "dry"], ["sun", "wet"]]
        >>> nb = NetworkNB({1: 0}).fit(X, ["in", "in", "out", "in"])
        >>> nb.query("0", {"1": "wet"}).round(2)
        0
        rain    0.59
        sun     0.41
        Name: P, dtype: float64
        """
        import pandas as pd

        check_is_fitted(self)
        fitted = self.fitted_
        fitted.require_single_model("query")
        encoding = fitted.encoding
        columns = encoding.blocks[0].network
        if CLASS in encoding.feature_names:
            raise ValueError(f"query: a column is called {CLASS!r}, which is the name of the class. Rename the column.")
        levels: dict[str, list[Hashable]] = {CLASS: list(encoding.classes.values)}
        names: dict[object, str] = {CLASS: CLASS}
        for child in sorted(child for child, *_ in (columns.nodes if columns else ())):
            name = columns.base.names[child]
            levels[name] = columns.base.level_names(child)
            names |= {name: name, columns.base.index[child]: name}

        def find(variable: object) -> str:
            """Return the name of the class or of a categorical column, given by name or index; else ValueError."""
            if not isinstance(variable, Hashable) or variable not in names:
                known = list(levels)[:12]
                raise ValueError(f"query: {shown(variable)} is not a categorical variable. The variables are {known}.")
            return names[variable]

        asked = [find(variable) for variable in as_list(variables)]
        if not asked or len(set(asked)) < len(asked):
            raise ValueError(f"variables={shown(variables)} must name one or more variables, each once.")
        given = {} if given is None else given
        require_mapping("given", given, "{'wind': 'strong'}")
        evidence: dict[Hashable, int] = {}
        for variable, value in ((find(name), value) for name, value in given.items()):
            evidence[variable] = int(Levels(tuple(levels[variable])).index([value])[0])
            if variable in asked or evidence[variable] < 0:
                known = f"has the levels {levels[variable][:12]}"
                wrong = "is also in variables. Leave it out of one of the two" if variable in asked else known
                raise ValueError(f"given: {shown(variable)} is {shown(value)}, but {shown(variable)} {wrong}.")
        factors: list[Factor] = [((CLASS,), np.exp(fitted.class_log_prior))]
        if columns is not None:
            # A value of the parents that a class never had has probability 0 in the class, whatever its table.
            filled = fill_empty_tables(columns, fitted.posterior.blocks[0], "mean")
            theta = np.exp(scoring.plug_in(filled).log_theta)
            for (child, *parents), table in zip(columns.nodes, columns.tables(theta), strict=True):
                # Context tables have a missing parent as their last value; a query sums it out.
                table = table[(slice(None), *(slice(n) for n in columns.base.sizes()[parents]))]
                factors.append(((CLASS, *(columns.base.names[p] for p in (*parents, child))), table))
        probability = conditional(factors, asked, evidence)  # raises if the table is too large for an index, too
        index = pd.MultiIndex.from_product([levels[v] for v in asked], names=asked)
        return pd.Series(probability.ravel(), index.get_level_values(0) if len(asked) == 1 else index, name="P")

    def _may_count(self) -> bool:
        """Return True: `partial_fit` exists; raise AttributeError before `fit` has learned the structure."""
        if self._learned is not None and not classifier_state.is_fitted(self):
            raise AttributeError(
                f"Call fit before partial_fit: {type(self).__name__} learns {self._learned} from the rows passed to "
                "fit. NetworkNB(parents=...) counts batches for given parents."
            )
        return True

    @available_if(_may_count)
    def partial_fit(self, X: object, y: object, classes: object = None, sample_weight: object = None) -> Self:
        """Count further rows for the given structure, or for the structure that `fit` has learned.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (N, F)
            Rows of features.
        y : array-like of shape (N,)
            Labels of any hashable type.
        classes : array-like, optional
            All labels that may occur. Required at the first call; later calls may add labels. Classes stay
            without rows.
        sample_weight : array-like of shape (N,), optional
            Replication counts of the rows; default: 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data cannot be used, if `classes` is missing at the first call, or if a label was not declared.
        RuntimeError
            If another thread has changed the estimator since the call began; these rows were not counted.

        Examples
        --------
        >>> from bayesnb import TAN
        >>> X, y = [["sun", "dry"], ["sun", "wet"], ["rain", "wet"], ["rain", "wet"]], ["out", "out", "in", "in"]
        >>> tan = TAN().fit(X, y)
        >>> tan.partial_fit([["sun", "dry"]], ["out"]).class_count_  # in, out
        array([2., 3.])
        """
        return super().partial_fit(X, y, classes, sample_weight)

    # -- for subclasses --------------------------------------------------------------------------

    def _arcs(self, encoding: Encoding, columns: NodeColumns, counts: np.ndarray | None) -> tuple[Node, ...]:
        """Return the nodes (child, *parents) of the network, by positions among the categorical columns.

        A structure that is learned has `counts`: the (C, L, L) weight of the rows of each class with both of two
        levels, unless there are no categorical columns.
        """
        raise NotImplementedError

    # -- shared machinery ------------------------------------------------------------------------

    def _check(self) -> None:
        """Raise ValueError if the fitted state contradicts itself, the hyperparameters or this kind of network."""
        super()._check()
        self._check_nodes(self._network)

    def _check_nodes(self, columns: NodeColumns) -> None:
        """Raise ValueError unless each categorical column is the child of one node, and arcs have no cycle."""
        children = [child for child, *_ in columns.nodes]
        for j, name in enumerate(columns.base.names):
            if (n := children.count(j)) != 1:
                raise ValueError(f"The network must have one node for column {shown(name)}; it has {n}. Fit again.")
        columns.order()

    def _has_layout(self, columns: tuple[Columns, ...]) -> bool:
        """Return whether the fitted blocks, with arcs and densities learned, are made of the blocks `columns`."""
        blocks = [block for block in self.encoding_.blocks if block.role is None]
        if columns[-1].kind != "binned":
            return same_layout(columns, tuple(blocks))
        if blocks[0].network is None:
            return False
        base, densities = blocks[0].network.base, blocks[1:]
        cut = [base.index[j] for j in number_positions(base)]
        every = sorted(j for block in columns for j in block.base.index)
        has_columns = (list(base.index), cut) == (every, list(columns[-1].index))
        return has_columns and all(block.kind in _DENSITIES and {*block.index} <= {*cut} for block in densities)

    @property
    def _network(self) -> NodeColumns:
        """Categorical columns with their arcs, the first block; none if there is no such block."""
        return self.encoding_.blocks[0].network or NO_COLUMNS

    def _columns(self, table: Table) -> tuple[Columns, ...]:
        """Return the blocks of columns of a table: categorical ones without arcs, then Gaussian or binned ones."""
        require_choice("numbers", self.numbers, ("gaussian", "binned"))
        real = self._select_gaussian(table)
        index = [j for j in range(len(table.names)) if j not in real]
        blocks: list[Columns] = []
        if index:
            base = level_columns(table, index, self.categories, self.handle_unknown, self.missing_values)
            blocks.append(self._table_type.from_base(base))
        if real and self.numbers == "binned" and isinstance(self.gaussian, str):
            blocks.append(cell_columns(table, real, self.cells, None))
        elif real:
            blocks.append(RealColumns(*table.columns_at(real), NormalInverseGamma))
        return tuple(blocks)

    def _structured(self, batch: LabelledRows) -> LabelledRows:
        """Return a first batch with all that its rows determine; return later batches unchanged.

        Numbers become cells, beside densities that scores of halves choose. Arcs are learned, and columns given the
        class alone are added. A warning names columns for which there can be no arcs.
        """
        if classifier_state.is_fitted(self):
            return batch
        if batch.encoding.blocks[-1].kind == "binned":
            batch = self._discretize_numbers(batch)
        network = batch.encoding.blocks[0].network
        few, n_features = 0 if network is None else len(network.index), batch.encoding.n_features
        if few < 2 <= n_features and self._needs_arcs:
            warn(
                f"{type(self).__name__}: {'one column is' if few else 'no column is'} categorical, but an arc needs "
                "two. The fitted classifier is naive Bayes. Columns of numbers that are not whole are Gaussian; pass "
                "gaussian=None to use their values as levels."
            )
        batch = self._with_arcs(self._add_densities(batch))
        return batch if network is None else self._with_margins(self._choose_structure(batch))

    def _without_arcs(self, encoding: Encoding, table: Table) -> Encoding:
        """Return the encoding with a network without arcs, and without the levels given the class alone beside it.

        Cells that labels have determined are quantiles of the table again. If the network has left numbers out, no
        number has a density.
        """
        network = encoding.blocks[0].network
        if network is None:
            return encoding
        numbers = number_positions(network.base)
        if self._has_margins or not numbers:
            densities = [columns for columns in encoding.blocks[1:] if columns.role is None]
            if sum(len(columns.index) for columns in densities) < len(numbers):
                densities = []
            return replace(encoding, blocks=(self._table_type.from_base(network.base), *densities))
        cells, _ = cell_columns(table, [network.base.index[j] for j in numbers], self.cells, None).learn(table)
        levels = [j for j in range(len(network.base.index)) if j not in numbers]
        base = network.base.select(levels, LevelColumns)
        return replace(encoding, blocks=(*([self._table_type.from_base(base)] if levels else []), cells))

    def _with_arcs(self, batch: LabelledRows) -> LabelledRows:
        """Return encoded rows with the arcs that those of positive weight determine."""
        if batch.encoding.blocks[-1].kind == "binned" and not self._has_margins:
            batch = self._discretize_numbers(batch)
        encoding = batch.encoding
        if (network := encoding.blocks[0].network) is None:
            self._arcs(encoding, NO_COLUMNS, None)  # Raises an error for unusable hyperparameters.
            return batch
        nodes = self._arcs(encoding, network, None) if self._learned is None else self._learn_arcs(batch, network)
        batch = batch.with_nodes(nodes)
        network = batch.encoding.blocks[0].network
        self._require_order(network)
        network.require_memory(len(encoding.classes))
        return batch

    @property
    def _has_context_trees(self) -> bool:  # type: ignore[override]
        """Whether halves for `WeightedNB` score rows by context trees without tables."""
        is_average = self._table_type is not NodeColumns and not isinstance(self.prior, NaiveBayes)
        return self._has_margins and is_average and self.estimate in ("predictive", "mean")

    def _learn_arcs(self, batch: LabelledRows, network: NodeColumns) -> tuple[Node, ...]:
        """Return the nodes that pairs of levels determine; columns of more than 1,000 levels have no arcs."""
        columns, rows, is_wide = network, batch.rows[0].base, network.base.sizes() > _MOST_LEVELS
        narrow, alone = np.flatnonzero(~is_wide).tolist(), tuple((int(j),) for j in np.flatnonzero(is_wide))
        if not narrow:
            return alone
        if alone:
            columns = type(network).from_base(network.base.select(narrow, LevelColumns))
            rows = rows.select(narrow)
        label, weight = batch.label, batch.weight
        if not (counted := weight > 0).all():
            rows, label, weight = rows.take(counted), label[counted], weight[counted]
        counts = count_level_pairs(columns.base, rows, label, weight, len(batch.encoding.classes))
        nodes = self._arcs(batch.encoding, columns, counts)
        return (*(tuple(narrow[j] for j in node) for node in nodes), *alone)

    def _with_margins(self, batch: LabelledRows) -> LabelledRows:
        """Return the batch with blocks of cells and levels given the class alone beside its network."""
        network = batch.encoding.blocks[0].network
        if network is None or not self._has_margins:
            return batch
        batch = self._keep_used(batch)
        base, numbers, cells = network.base, set(number_positions(network.base)), batch.rows[0]
        children = {child for child, *parents in network.nodes if parents}
        alone: list[tuple[type[RootColumns], set[int]]] = [(RootColumns, children & numbers)]
        if self._counts_margins:  # of levels, as `WeightedNB` counts them
            # Context tables have another prior than naive Bayes.
            if self._table_type is not NodeColumns:
                alone.append((MarginColumns, {child for child, *_ in network.nodes} - numbers))
            alone.append((RootColumns, children - numbers))
        for kind, features in alone:
            if index := sorted(features):
                batch = batch.add(base.select(index, kind), cells.base.select(index))
        return batch

    def _add_densities(self, batch: LabelledRows) -> LabelledRows:
        """Return the batch with normal or binned densities of all numbers, chosen by scores, unless it has some."""
        first, *densities = batch.encoding.blocks
        numbers = [] if first.network is None else number_positions(first.network.base)
        if densities or not numbers or not self._has_margins:
            return batch
        batch, index = batch.with_units(), sorted(first.base.index[j] for j in numbers)
        same = {name: getattr(self, name) for name in ("gaussian_prior", "class_alpha", "random_state")}
        margins = MixedNB(numbers="auto", **same)
        chosen, terms = margins._choose_densities(batch, index)
        for columns, rows in chosen:
            batch = batch.add(columns, rows)
        return batch._replace(number_terms=terms)

    def _keep_used(self, batch: LabelledRows) -> LabelledRows:
        """Return the batch without densities of numbers that the network has left out."""
        (network, *densities), (cells, *rows) = batch.encoding.blocks, batch.rows
        if not self._has_margins or not number_positions(network.network.base):
            return batch
        batch = batch._replace(encoding=replace(batch.encoding, blocks=(network,)), rows=(cells,))
        columns: Any
        for columns, of_columns in zip(densities, rows, strict=True):
            used = [f for f, j in enumerate(columns.index) if j in network.index]
            batch = batch.add(columns.select(used), of_columns.select(used)) if used else batch
        return batch

    def _require_order(self, columns: NodeColumns) -> None:
        """Raise ValueError if the network has a cycle, with which scores would be no probabilities."""
        if len(columns.nodes) > len(columns.base.index):  # AODE has pairs in both orders, which are not a network.
            return
        try:
            columns.order()
        except CycleError as error:
            cycle = " → ".join(repr(columns.base.names[j]) for j in error.args[1])
            raise ValueError(
                f"The structure has a cycle, {cycle}, but no column may depend on itself. Remove one of these parents."
            ) from None

    def _choose_structure(self, batch: LabelledRows) -> LabelledRows:
        """Return the batch with the sub-network that scores of the rows select; default: unchanged."""
        return batch

    def _prior_given_class(self, columns: NodeColumns, classes: Levels) -> Dirichlet:
        """Return the Dirichlet prior of P(level | class) of all categorical columns, as `alpha` states it."""
        alone = self._table_type.from_base(columns.base)
        return alone.prior_without_parents(super()._block_prior(alone, classes))

    def _empirical_prior(self, counted: Counted) -> NaiveBayes:
        """Return the prior with blocks for margins, and with term weights where tables are divided by margins."""
        encoding, statistics, _ = counted
        roots = [columns for columns in encoding.blocks if columns.role]
        n, classes = len(encoding.blocks) - len(roots), encoding.classes
        blocks = replace(encoding, blocks=encoding.blocks[:n])
        prior = super()._empirical_prior(Counted(blocks, replace(statistics, blocks=statistics.blocks[:n])))
        of_network = encoding.blocks[0].network, prior.blocks[0]
        beside = [self._margin_prior(columns, classes, *of_network) for columns in roots]
        prior = replace(prior, blocks=(*prior.blocks, *beside))
        term_map, sizes = encoding.term_map, [len(columns.term_names) for columns in encoding.blocks]
        weight = term_map.spread(np.ones(len(term_map.names)))
        if (weight == 1.0).all():
            return prior
        return replace(prior, weights=TermWeights.split(np.zeros(len(classes)), weight, sizes))

    def _margin_prior(
        self, columns: Columns, classes: Levels, network: NodeColumns = NO_COLUMNS, family: object = None
    ) -> BlockPrior:
        """Return the prior of columns given the class alone, beside a network with prior `family`.

        Beside context tables the network is not needed.
        """
        if columns.role is None:
            return super()._block_prior(columns, classes)
        if columns.role == "margin":
            return columns.prior(ALPHA, "alpha", classes)
        if self._table_type is not NodeColumns and not isinstance(self.prior, NaiveBayes):
            return self._table_type.from_base(columns.base).prior(self.alpha, "alpha", classes)
        alone = network.prior_without_parents(family, divided=self._divides_alpha)
        tables = dict(zip(network.base.index, network.base.tables(np.asarray(alone.concentration)), strict=True))
        alpha = np.concatenate([tables[j] for j in columns.index], axis=1)
        return Dirichlet(alpha, columns.groups(), len(columns.index))

    @property
    def _table_type(self) -> type[NodeColumns]:
        """Type of the network's columns, by the hyperparameter `tables`; ValueError if it is unknown."""
        require_choice("tables", self.tables, tuple(_TABLES))
        return _TABLES[self.tables]

    def _made_choices(self, encoding: Encoding) -> tuple[str, ...]:
        """Return what the counted rows chose: structure, cells and densities, and tuned hyperparameters."""
        network = encoding.blocks[0].network
        has_cells = network is not None and bool(number_positions(network.base))
        learned = (self._learned, "the cells and densities of numbers" if has_cells else None)
        return (*filter(None, learned), *super()._made_choices(encoding))

    def _discretize_numbers(self, batch: LabelledRows) -> LabelledRows:
        """Return rows with one categorical block, in which the cells of numbers are levels.

        Cells are between quantiles if the class of classifiers has margins, else the bins of the most probable binning.
        """
        encoding, of_levels, of_numbers = batch.encoding, batch.rows[0], batch.rows[-1]
        numbers = encoding.blocks[-1].base
        cuts = [np.zeros(0) if edges is None else edges for edges in numbers.edges]
        if not self._has_margins:
            cuts = most_probable_cuts(encoding.classes, numbers, of_numbers, batch.label, batch.weight)
        known = encoding.blocks[0].network
        base = level_columns(batch.table, (), "auto", self.handle_unknown, None) if known is None else known.base
        columns = self._table_type.from_base(base.with_numbers(numbers.index, numbers.names, cuts))
        batch = batch._replace(encoding=replace(encoding, blocks=()), rows=())
        if not self._has_margins:
            return batch.add(columns, columns.rows(batch.table, ignore_unknown))
        # Cells are coded already.
        code, index = of_numbers.codes, list(numbers.index)
        if known is not None:
            code, index = np.concatenate([code, of_levels.base.codes], axis=1), [*index, *known.base.index]
        coded = CodedRows(code[:, np.argsort(index)], columns.base.sizes())
        return batch.add(columns, columns.rows_of_base(coded))

    def _warn_of_columns(self, before: Encoding | None = None) -> None:
        """Warn of dates, of columns that are levels by a text or by the first rows only, and of tables without rows.

        A table without rows is the prior, as no row of the class has values of the column and all its parents.
        """
        super()._warn_of_columns(before)
        if isinstance(self.gaussian, str):
            if before is None:
                self.encoding_.warn_of_texts_among_numbers()
            else:
                self.encoding_.warn_of_numbers_as_levels(before, (), whole=self.gaussian == "dtype")
        # Averages do not depend on a table that one member lacks for a class.
        if before is not None or not self._has_margins:
            return
        classes, statistics = self.encoding_.classes, self.statistics_
        never = [
            (classes.values[c], name)
            for columns, counted in zip(self.encoding_.blocks, statistics.blocks, strict=True)
            for c, name in columns.features_never_counted(counted, statistics.class_count)
        ]
        if never:
            warn(
                f"{type(self).__name__}: for these pairs (class, column), no row of the class has values of both the "
                f"column and all of its parents: {never[:8]}. The probabilities of these pairs equal the prior. To "
                "count rows with missing cells, replace these by a level, such as 'missing'."
            )

    def _select_gaussian(self, table: Table) -> tuple[int, ...]:
        """Return the indices of the columns of numbers that `gaussian` selects, in ascending order."""
        named = self.gaussian
        if not isinstance(named, str) or named not in ("auto", "dtype"):
            return tuple(sorted({table.position(column, "gaussian") for column in as_list(named)}))
        declared, whole = declared_columns(table, self.categories, self.alpha), named == "dtype"
        return tuple(j for j in range(len(table.names)) if j not in declared and table.is_numeric(j, whole=whole))


def position(encoding: Encoding, columns: NodeColumns, column: object, argument: str) -> int:
    """Return the position among the categorical columns of a column given by name or index; else ValueError."""
    (j,) = encoding.positions([column], argument)
    if j not in columns.base.index:
        network = encoding.blocks[0].network
        if network is not None and j in network.base.index:
            reason, remedy = f"has more than {_MOST_LEVELS:,} levels", "group the levels"
        else:
            reason, remedy = "is Gaussian", "pass gaussian=None to use numbers as levels"
        raise ValueError(f"{argument}: column {shown(column)} {reason}, and has no arcs. Name another, or {remedy}.")
    return list(columns.base.index).index(j)
