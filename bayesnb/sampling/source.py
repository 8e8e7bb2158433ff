"""Naive Bayes as the text of a NumPyro program, to be read, changed and run.

The text defines two functions. `encode` turns rows and labels into arrays on the host, and `model` is a pure function
of these arrays, which JAX may compile. Each has a part for the classes and one for each block of columns. A part has
constants, the codes of the cells, and the distributions of what all classes share, of the parameters of each class, and
of the cells of a row given its class.
"""

from __future__ import annotations

import ast
import linecache
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb.encoding.levels import to_python
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.sampling.nuts import read_target
from bayesnb.uncertainty.arviz import CLASS, ROW, WORD, class_names, distinct_texts
from bayesnb.uncertainty.draws import CLASS_PROB
from bayesnb.uncertainty.given_draws import CLASS_ALPHA, hyperparameter_sites

_IMPORTS = """
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pandas as pd
from numpyro import distributions as dist
"""
_FRAME = 'X = pd.DataFrame(X.toarray() if hasattr(X, "toarray") else X).rename(columns=str)\n'
_ENCODE = """\
    if isinstance(X, jax.core.Tracer) or isinstance(y, jax.core.Tracer):
        raise TypeError("X or y is traced by JAX, and has no values. Pass encode(X, y), computed outside of jit, as X.")
    X, y = (np.asarray(values) if isinstance(values, jax.Array) else values for values in (X, y))
    rows = {}
    if y is not None:
        rows["label"] = np.array([CLASSES.index(c) for c in y])
    if X is not None:
"""
_SAMPLE_CELLS = """
def sample_cells(name, distribution, rows):
    \"\"\"Sample the cells of a column, unless `rows` has them: NaN and -1 are missing cells, without density.\"\"\"
    if (value := rows.get(name)) is None:
        return numpyro.sample(name, distribution)
    seen = value >= 0 if jnp.issubdtype(value.dtype, jnp.integer) else ~jnp.isnan(value)
    return numpyro.sample(name, distribution.mask(seen), obs=jnp.where(seen, value, 0))

"""
_NO_OFFSET = """\
    if offset:
        raise ValueError(f"offset names {list(offset)}, but the model has no normal columns, whose means it moves.")
"""
_CHECK_OFFSET = """\
    if unknown := set(offset) - set(GAUSSIAN):
        raise ValueError(f"offset names {unknown}, which are no normal columns; these are {list(GAUSSIAN)}.")
    offset = {name: jnp.broadcast_to(by, n) for name, by in offset.items()}
"""
_PLATE = """\
    with numpyro.plate("rows", n, subsample_size) as index, scale:
        if subsample_size:
            rows, offset = jax.tree.map(lambda value: jnp.take(value, index, axis=0), (rows, offset))
"""


class Source(str):
    """Text of a program, which notebooks show with highlighting."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return f"```python\n{self}```\n"


class _Part(NamedTuple):
    """Lines of the program about one block of columns, or about the classes."""

    constants: str = ""
    shared: str = ""
    """Distribution of hyperparameters."""
    parameters: str = ""
    """Distribution of the parameters, within the plate of the classes."""
    codes: str = ""
    """Arrays of the cells of X, by site."""
    cells: str = ""
    """Distribution of the cells, within the plate of the rows."""
    dims: Mapping[str, Sequence[str]] = {}
    """Names of the dimensions of each site, without those of draws."""
    coords: Mapping[str, Sequence[str]] = {}
    """Names of the positions on dimensions."""


_PLATES = _Part(dims={"classes": (), "rows": ()})


class _Block(NamedTuple):
    """Block of columns with its prior, and the names of its sites: see `site_names` and `hyperparameter_sites`."""

    columns: Any
    prior: Any
    sites: Mapping[str, str]
    shared: Mapping[str, str]
    """Site of each hyperparameter that is sampled; empty if the prior is fixed."""
    statistics: Any
    alpha: str
    """Distribution of concentrations that are sampled."""
    n_rows: float

    @property
    def names(self) -> list[Hashable]:
        """Names of the columns; positions of columns without names."""
        return [to_python(name) for name in self.columns.names]

    def dims(self, axes: Mapping[object, Sequence[str]]) -> dict[str, list[str]]:
        """Dimensions of the sites of the columns, and of their parameters, which have `axes` in each class."""
        dims = {f"{name}": [ROW] for name in self.names} | {s: [] for name, s in self.shared.items() if name == "alpha"}
        for name, axis in axes.items():
            dims |= {f"{site}_{name}": list(axis) for site in self.shared.values()}
            dims |= {f"{site}_{name}": [CLASS, *axis] for site in self.sites.values()}
        return dims


def numpyro_source(nb: Classifier, hyperprior: object = None) -> Source:
    """Write the generative model of a classifier as a NumPyro program.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier of independent columns, or of a network of columns. Its prior is written, not its posterior.
    hyperprior : "symmetric", "pooled", NumPyro distribution or dict, optional
        Hyperprior of the concentrations. "symmetric": one concentration for each block of levels. "pooled": the classes
        also share a base measure. A distribution, or a dict {kind: distribution}, is the prior of the concentration;
        see `run_nuts`. Default: no hyperprior, the prior of `nb`.

    Returns
    -------
    str
        Python code that defines the functions `encode` and `model`.

        `encode(X=None, y=None)` returns rows and labels as a dict of NumPy arrays by site. X is a DataFrame if `nb` was
        fitted to one, and otherwise an array. Values are read, so that JAX cannot trace it.

        `model(X=None, y=None, n_rows=None, offset={}, subsample_size=None)` takes the dict of `encode` as X, also under
        `jax.jit` and in batches; X and y of other types are passed to `encode`. Sites that are not given are sampled:
        without X and y, `n_rows` rows are simulated, by default as many as were fitted. Together with X, `n_rows` is
        the number of rows of the table from which X is a batch, and scales the density of the batch. With
        `subsample_size` the model draws so many of the rows itself, and scales their density. `offset` is a dict of
        numbers (N,) that are added to the means of the rows of a normal column: an effect that a program around this
        one samples. For other columns it raises ValueError. Rows of counts with an exposure have it under its name,
        which is no site; where it is not given, the exposure is 1.

        Sites are

        - "class_prob"; in the plate "rows", "label": the position of the class in `nb.classes_`;
        - in the plate "rows", one for each column of X, under its name: the position of a level, 0 or 1, or a number.
          A missing cell, -1 or NaN, has no density. The columns of a multinomial are one site, "count";
        - in the plate "classes", one for each parameter and column, such as "theta_colour" and "mu_density", and
          "theta" for the words of a multinomial;
        - hyperparameters under the names of `run_nuts`; "loc", "rate" and "base_measure" for each column.

    Raises
    ------
    ImproperPosteriorError
        If the posterior is improper.
    NotImplementedError
        If there is no such program: for weighted terms, averages over models, binnings and trees.
    ValueError
        If the prior is improper, a column has the name of another site, or a level or label has no literal in Python.

    See Also
    --------
    numpyro_model : the model that this text defines, as a callable
    run_nuts : samples the same model given sufficient statistics, whose cost does not depend on the number of rows

    Notes
    -----
    The density of the program is p(X, y, θ) = p(π) Π_j p(θ_j) Π_i p(y_i | π) Π_j p(x_ij | y_i, θ_j), so that
    p(X, y, θ)/p(θ | X, y) is the evidence for every θ: exp(`nb.log_evidence_`), if all rows have the weight 1. The
    program has no weights of rows. It does not sum over missing parents in a network, and raises an error for rows that
    need this. Counts that are not integers have density 0 in NumPyro.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, numpyro_source
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> text = numpyro_source(nb)
    >>> "theta" in text
    True
    """
    return numpyro_model(nb, hyperprior).source


class NumpyroModel:
    """Generative model of a classifier as a NumPyro program, which `numpyro_model` returns.

    A call is a call of the function `model` in the text, whose arguments `numpyro_source` documents. Models can be
    pickled, and `inspect.getsource` returns the text of their functions.

    Attributes
    ----------
    source : str
        Text of the program, as `numpyro_source` returns it.
    encode : callable
        Function `encode(X=None, y=None)` in the text: rows and labels as a dict of NumPy arrays by site.
    coords : dict of lists
        Names of the positions on each dimension: "class", "word", and for a column "colour" "colour_level".
    dims : dict of lists
        Names of the dimensions of each site, without those of chains and draws.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, numpyro_model
    >>> model = numpyro_model(CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"]))
    >>> model.dims["theta_0"], model.coords["0_level"]
    (['class', '0_level'], ['rain', 'sun'])
    >>> model.encode([["sun"]], ["out"])
    {'label': array([1]), '0': array([1])}
    """

    def __init__(self, source: Source, coords: Mapping[str, Sequence[object]], dims: dict[str, list[str]]) -> None:
        self.source, self.coords, self.dims = source, coords, dims
        name = f"<numpyro_source {blake2b(source.encode(), digest_size=8).hexdigest()}>"
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name  # for `inspect.getsource`
        namespace: dict[str, Any] = {"__name__": "numpyro_source"}
        exec(compile(source, name, "exec"), namespace)
        self.encode: Callable[..., dict[str, np.ndarray]] = namespace["encode"]
        self.__wrapped__ = namespace["model"]

    def __call__(self, *args: object, **kwargs: object) -> None:
        """Run the function `model` of the text."""
        self.__wrapped__(*args, **kwargs)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.source, self.coords, self.dims)


def numpyro_model(nb: Classifier, hyperprior: object = None) -> NumpyroModel:
    """Return the generative model of a classifier as a NumPyro program, a function of rows and labels.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier of independent columns, or of a network of columns.
    hyperprior : "symmetric", "pooled", NumPyro distribution or dict, optional
        Hyperprior of the concentrations, see `numpyro_source`. Default: no hyperprior, the prior of `nb`.

    Returns
    -------
    callable
        Function `model(X=None, y=None, n_rows=None, offset={}, subsample_size=None)` that the text of `numpyro_source`
        defines. The attribute `encode` is the function that turns X and y into arrays, and `source` is the text.
        `coords` and `dims` name dimensions for ArviZ: `arviz.from_numpyro(mcmc, coords=model.coords, dims=model.dims)`.
        The model can be pickled.

    Examples
    --------
    >>> import jax
    >>> from numpyro.infer import Predictive
    >>> from bayesnb import CategoricalNB, numpyro_model
    >>> nb = CategoricalNB().fit([["sun"], ["sun"], ["rain"]], ["out", "out", "in"])
    >>> simulated = Predictive(numpyro_model(nb), num_samples=100)(jax.random.key(0))
    >>> simulated["label"].shape
    (100, 3)
    """
    fitted = require_posterior(nb, "numpyro_source")
    if fitted.prior.weights is not None:
        of_numbers = "Use numbers='gaussian', which leaves numbers out of the structure."
        instead = "Use numpyro_source(nb.estimator_)." if hasattr(nb, "weigh") else of_numbers
        raise NotImplementedError(
            f"numpyro_source: the terms of a {type(nb).__name__} have weights, and are no generative model. {instead}"
        )
    for family in fitted.prior.blocks:
        family.program()  # raises the reason if there is none
    target = read_target(fitted, hyperprior)
    shared: list[dict[str, str]] = [{}] * len(target.sites)
    alpha = ""
    if target.kind != "none":
        shared = hyperparameter_sites(fitted.prior, target.kind, target.sites)
        alpha = _text_of_distribution(target.alpha)
    parts = [_write_classes(fitted, alpha)]
    columns, statistics = fitted.encoding.blocks, fitted.statistics.blocks
    n_rows = float(np.sum(fitted.statistics.class_count))
    for of_block in zip(columns, fitted.prior.blocks, target.sites, shared, statistics, strict=True):
        block = _Block(*of_block, alpha, n_rows)
        parts.append(_WRITERS.get(block.columns.kind, _write_numbers)(block))
    sites = Counter(site for part in (*parts, _PLATES) for site in part.dims)
    if twice := [site for site, times in sites.items() if times > 1]:
        same = f"a column is called {twice[0]!r}, which is also the name of a variable (sample site)"
        raise ValueError(f"numpyro_source: {same} of the program. Rename the column.")

    def distinct(dim: str) -> str:
        """Return the name of a dimension, other than those of the sites: xarray refuses equal ones."""
        return f"{dim}_dim" if dim in sites else dim

    coords = {distinct(dim): list(names) for part in parts for dim, names in part.coords.items()}
    dims = {site: list(map(distinct, dims)) for part in parts for site, dims in part.dims.items()}
    return NumpyroModel(Source(_assemble(nb, fitted, parts)), coords, dims)


# -- parts of the text -----------------------------------------------------------------------------


def _assemble(nb: Classifier, fitted: Fitted, parts: Sequence[_Part]) -> str:
    """Return the whole program, from the parts about the classes and about each block of columns."""
    encoding = fitted.encoding
    n_classes, n_features = len(encoding.classes), encoding.n_features
    n_rows = int(np.ceil(np.sum(fitted.statistics.class_count)))
    is_named = hasattr(nb, "feature_names_in_")
    table = "DataFrame" if is_named else "array"
    classes, *blocks = parts
    cells = "".join(part.cells for part in parts)

    def lines(name: str, indent: int, of: Sequence[_Part] = parts) -> str:
        """Return the lines `name` of all parts, indented."""
        return textwrap.indent("".join(getattr(part, name) for part in of), " " * indent)

    return (
        f'"""{type(nb).__name__} as a generative model: {n_classes} classes, {n_features} columns."""\n'
        f"{_IMPORTS}\n{lines('constants', 0)}\n\n"
        "def encode(X=None, y=None):\n"
        f'    """Return the {table} X and the labels y as arrays by site; -1 and NaN are missing cells."""\n'
        f"{_ENCODE}{'' if is_named else f'        {_FRAME}'}{lines('codes', 8)}    return rows\n\n"
        f"{_SAMPLE_CELLS if 'sample_cells(' in cells else ''}\n"
        "def model(X=None, y=None, n_rows=None, offset={}, subsample_size=None):\n"
        f'    """Sample the parameters, and each row given its class. X is the {table}, or the result of encode."""\n'
        "    rows = {**(X if isinstance(X, dict) else encode(X)), **encode(y=y)}\n"
        f"    n = next(map(len, rows.values()), {n_rows} if n_rows is None else n_rows)\n"
        "    scale = numpyro.handlers.scale(scale=1.0 if n_rows is None else n_rows / n)\n"
        f"{_CHECK_OFFSET if 'offset' in cells else _NO_OFFSET}"
        f"{lines('shared', 4)}"
        f"{lines('parameters', 4, [classes])}"
        f'    with numpyro.plate("classes", {n_classes}):\n{lines("parameters", 8, blocks)}'
        f"{_PLATE}{textwrap.indent(cells, ' ' * 8)}"
    )


def _write_classes(fitted: Fitted, alpha: str) -> _Part:
    """Return the part about the classes: their names, the distribution of π, and labels."""
    labels = list(map(to_python, fitted.encoding.classes.values))
    prior: Any = fitted.prior.class_prior
    shared = ""
    if prior.fixed:
        parameters = f"class_prob = {_literal(np.exp(np.asarray(prior.log_prob)[0]))}  # known\n"
    else:
        concentration = _literal(np.asarray(prior.concentration)[0])
        if alpha:
            shared, concentration = _sample(CLASS_ALPHA, alpha), f"{CLASS_ALPHA} * np.ones({len(labels)})"
        comment = "# P(c) ~ Dirichlet(alpha): the posterior mean is Laplace smoothing, (N_c + alpha) / (N + C alpha).\n"
        parameters = comment + _sample(CLASS_PROB, f"dist.Dirichlet({concentration})")
    cells = f'label = numpyro.sample("label", dist.Categorical({CLASS_PROB}), obs=rows.get("label"))\n'
    dims = {CLASS_PROB: [CLASS], CLASS_ALPHA: [], "label": [ROW]}
    coords = {CLASS: class_names(fitted.encoding).tolist()}
    return _Part(f"CLASSES = {_list(labels, 'label')}\n", shared, parameters, "", cells, dims, coords)


def _write_levels(block: _Block) -> _Part:
    """Return the part of categorical columns, with parents or without."""
    network, base, names = block.columns.network, block.columns.base, block.names
    if any(cuts is not None for cuts in base.cuts):
        raise NotImplementedError(
            "numpyro_source cannot write a program for numbers that the classifier cuts into cells. Cut them yourself, "
            "such as by pandas.cut, and fit the intervals as levels."
        )
    tables = block.columns.tables(np.asarray(block.prior.concentration))
    nodes = [(i,) for i in range(len(tables))] if network is None else network.nodes
    order = range(len(tables)) if network is None else network.order()
    levels = {names[i]: _list(base.level_names(nodes[i][0]), f"level of column {names[i]!r}") for i in order}
    by_parents = any(len(node) > 1 for node in nodes)
    constants = _dict("LEVELS", levels, "Levels of each column.")
    if by_parents:
        parents = {names[i]: repr([to_python(base.names[p]) for p in nodes[i][1:]]) for i in order}
        constants += _dict("PARENTS", parents, "Columns on which each column depends, besides the class.")
    constants += _constant_tables("ALPHA", block, {names[i]: tables[i] for i in order})
    shared, parameters = _dirichlet_lines("ALPHA", block, by_parents)
    codes = "value = pd.Index(levels).get_indexer(X[name])  # -1 where missing\n"
    if base.unknown == "level":
        missing = "pd.isna(X[name])"
        if base.missing_values:
            missing += f" | X[name].isin({_list(base.missing_values, 'missing value')})"
        codes += f"value = np.where((value < 0) & ~({missing}), len(levels) - 1, value)  # no level: the last one\n"
    codes += 'rows[f"{name}"] = value\n'
    if by_parents and not network.missing_is_value:
        codes += (
            'if any((rows[f"{parent}"] < 0).any() for parent in PARENTS[name]):\n'
            '    raise ValueError(f"a parent of {name!r} has missing cells; fill them before the call")\n'
        )
    codes = "for name, levels in LEVELS.items():\n" + textwrap.indent(codes, " " * 4)
    theta = f"{block.sites['theta']}[name]"
    comment = "# P(x_j = l | c) ~ Dirichlet(alpha_j): the posterior mean is (N_cjl + alpha) / (N_cj + L alpha).\n"
    cells = f"for name in LEVELS:\n    {_cells(f'dist.Categorical({theta}[label])')}"
    dims, coords = {name: [f"{name}_level"] for name in names}, dict[str, list[str]]()
    if by_parents:
        comment = "# P(x_j = l | c, parents) ~ Dirichlet(alpha_j), for each combination of the parents' levels.\n"
        cells = (
            "cell = {}\nfor name in LEVELS:\n"
            '    given = [rows.get(f"{parent}", cell[parent]) for parent in PARENTS[name]]\n'
            f"    cell[name] = {_cells(f'dist.Categorical({theta}[(label, *given)])')}"
        )
        ending = "value" if network.missing_is_value else "level"
        coords = {f"{names[i]}_{ending}": distinct_texts(network.parent_values(i)) for i in order}
        dims = {names[i]: [*(f"{base.names[p]}_{ending}" for p in nodes[i][1:]), *dims[names[i]]] for i in order}
    coords |= {f"{names[i]}_level": distinct_texts(base.level_names(nodes[i][0])) for i in order}
    return _Part(constants, shared, comment + parameters, codes, cells, block.dims(dims), coords)


def _write_binary(block: _Block) -> _Part:
    """Return the part of Bernoulli columns."""
    tables = np.split(np.asarray(block.prior.concentration), len(block.names), axis=1)
    constants = _constant_tables("BERNOULLI", block, dict(zip(block.names, tables, strict=True)), "absent and present")
    shared, parameters = _dirichlet_lines("BERNOULLI", block, by_parents=False)
    threshold = block.columns.threshold
    present = f"value > {0.5 if threshold is None else threshold!r}"
    codes = f'value = np.asarray(X[name], float)\nrows[f"{{name}}"] = np.where(np.isnan(value), -1, {present})\n'
    cells = _cells(f"dist.Bernoulli({block.sites['theta']}[name][label, 1])")
    each, codes = "for name in BERNOULLI:\n", textwrap.indent(codes, " " * 4)
    comment = "# P(x_j = 1 | c) ~ Beta(alpha_1, alpha_0), the Dirichlet of two levels.\n"
    axes = {name: [f"{name}_level"] for name in block.names}
    coords = {axis: ["absent", "present"] for (axis,) in axes.values()}
    return _Part(constants, shared, comment + parameters, each + codes, f"{each}    {cells}", block.dims(axes), coords)


def _write_counts(block: _Block) -> _Part:
    """Return the part of columns of counts that are draws from one simplex."""
    names, site = block.names, block.sites["theta"]
    alpha = _literal(_without_classes(np.asarray(block.prior.concentration)))
    length = max(1, round(float(np.sum(block.statistics.count)) / max(block.n_rows, 1.0)))
    constants = f"\n# Columns of counts, and the total of a simulated row.\nWORDS = {names!r}\nLENGTH = {length}\n"
    shared = ""
    if block.shared:
        factor, ones = block.shared["alpha"], f"np.ones({len(names)})"
        shared, alpha = _sample(factor, block.alpha), f"{factor} * {ones}"
        if base := block.shared.get("base_measure"):
            shared += _sample(base, f"dist.Dirichlet({ones})")
            alpha = f"{factor} * {len(names)} * {base}"
    parameters = "# P(word | c) ~ Dirichlet(alpha): the posterior mean is (N_cw + alpha) / (N_c + V alpha).\n"
    parameters += _sample(site, f"dist.Dirichlet({alpha})")
    codes = 'rows["count"] = np.asarray(X[WORDS], float)\n'
    cells = (
        'count = rows.get("count")\n'
        "length = LENGTH if count is None else count.sum(axis=1)\n"
        f'numpyro.sample("count", dist.Multinomial(length, {site}[label]), obs=count)\n'
    )
    dims = {"count": [ROW, WORD], site: [CLASS, WORD]}
    dims |= {name: [WORD] if name == block.shared.get("base_measure") else [] for name in block.shared.values()}
    return _Part(constants, shared, parameters, codes, cells, dims, {WORD: list(map(str, names))})


def _write_numbers(block: _Block) -> _Part:
    """Return the part of columns of numbers, from the expressions of their family."""
    kind, prior = block.columns.kind, block.prior
    names, constant = block.names, kind.upper()
    arrays = {name: np.asarray(v) for site in prior.program() for name, v in site.distribution.arguments.items()}
    rows = {}
    for j, name in enumerate(names):
        entries = (f'"{f}": {_literal(_without_classes(v[:, j]))}' for f, v in arrays.items())
        rows[name] = "{" + ", ".join(entries) + "}"
    constants = _dict(constant, rows, f"Prior of the parameters of each {kind} column.")
    given, shared = {f: f'prior["{f}"]' for f in arrays}, ""
    for name, hyperparameter in (prior.hyperprior("pooled") if block.shared else {}).items():
        distribution: Any = hyperparameter.distribution
        shared += _for_each(block.shared[name], _replace_names(distribution.text, given), constant)
    given |= {name: f"{site}[name]" for name, site in block.shared.items()}
    parameters = ""
    for site in prior.program():
        variable = block.sites[site.parameter]
        parameters += _for_each(variable, _replace_names(site.distribution.text, given), constant)
        given[site.parameter] = f"{variable}[name]"
    sampled = {site.parameter for site in prior.program()}
    drawn = {
        parameter: f"{variable}[name][label]" if parameter in sampled else f'{constant}[name]["{parameter}"]'
        for parameter, variable in block.sites.items()
    }
    if prior.location == "mu":
        drawn["mu"] += " + offset.get(name, 0.0)"
    codes, auxiliary = f'for name in {constant}:\n    rows[f"{{name}}"] = np.asarray(X[name], float)\n', {}
    for name in block.columns.auxiliary.values():
        codes += f"rows[{name!r}] = exposure = np.asarray(X[{name!r}], float)\n"
        codes += 'if not (exposure > 0).all():\n    raise ValueError("a row has no exposure, a positive number")\n'
        drawn["rate"] += f" * rows.get({name!r}, 1.0)"
        auxiliary[name] = [ROW]
    cells = f"for name in {constant}:\n    {_cells(f'dist.{_replace_names(prior.likelihood.cell, drawn)}')}"
    comment = f"# p(x_j | c) = {prior.likelihood.cell}, with its conjugate prior.\n"
    dims = block.dims(dict.fromkeys(names, ())) | auxiliary
    return _Part(constants, shared, comment + parameters, codes, cells, dims)


_WRITERS: Mapping[str, Callable[[_Block], _Part]] = {
    "categorical": _write_levels,
    "bernoulli": _write_binary,
    "multinomial": _write_counts,
}


def _constant_tables(constant: str, block: _Block, tables: Mapping[Any, np.ndarray], what: str = "each level") -> str:
    """Return the dictionary of Dirichlet concentrations by column, or of ones that a sampled factor multiplies."""
    if block.shared:
        shapes = {name: f"np.ones({_shape(table.shape[1:])})" for name, table in tables.items()}
        return _dict(constant, shapes, f"Shapes of the Dirichlet concentrations of {what}.")
    values = {name: _literal(_without_classes(table)) for name, table in tables.items()}
    return _dict(constant, values, f"Dirichlet concentrations of {what}.")


def _dirichlet_lines(constant: str, block: _Block, by_parents: bool) -> tuple[str, str]:
    """Return the lines of hyperparameters and of level probabilities, a simplex for each column and parents' value."""
    shared, alpha, value = "", "alpha", "alpha"
    event = ".to_event(len(PARENTS[name]))" if by_parents else ""
    if block.shared:
        factor, value = block.shared["alpha"], "ones"
        shared, alpha = _sample(factor, block.alpha), f"{factor} * ones"
        if base := block.shared.get("base_measure"):
            shared += _for_each(base, f"Dirichlet(ones){event}", constant, "ones")
            alpha = f"{factor} * ones.shape[-1] * {base}[name]"
    return shared, _for_each(block.sites["theta"], f"Dirichlet({alpha}){event}", constant, value)


def _sample(site: str, distribution: str) -> str:
    """Return the line that samples a variable at the site of its name."""
    return f'{site} = numpyro.sample("{site}", {distribution})\n'


def _for_each(site: str, distribution: str, constant: str, value: str = "prior") -> str:
    """Return lines that sample a variable for each column in a dictionary, whose values are called `value`."""
    return (
        f"{site} = {{\n"
        f'    name: numpyro.sample(f"{site}_{{name}}", dist.{distribution})\n'
        f"    for name, {value} in {constant}.items()\n"
        "}\n"
    )


def _cells(distribution: str) -> str:
    """Return the line that samples or observes the cells of a column called `name`."""
    return f'sample_cells(f"{{name}}", {distribution}, rows)\n'


# -- literals --------------------------------------------------------------------------------------


def _literal(values: np.ndarray) -> str:
    """Return Python code of a number or an array of numbers."""
    if values.ndim == 0:
        return repr(float(values))
    if (values == values.flat[0]).all():
        return f"np.full({_shape(values.shape)}, {float(values.flat[0])!r})"
    return f"np.array({values.astype(float).tolist()})"


def _shape(shape: Sequence[int]) -> str:
    """Return Python code of a shape: a number for one axis."""
    return repr(shape[0]) if len(shape) == 1 else repr(tuple(shape))


def _without_classes(values: np.ndarray) -> np.ndarray:
    """Return values (C, …) without the axis of the classes if they are the same in all classes."""
    return values[0] if (values == values[:1]).all() else values


def _dict(constant: str, values: Mapping[object, str], comment: str) -> str:
    """Return Python code of a dictionary, an entry a line, below a comment."""
    entries = "".join(f"    {name!r}: {value},\n" for name, value in values.items())
    return f"\n# {comment}\n{constant} = {{\n{entries}}}\n"


def _list(values: Iterable[object], what: str) -> str:
    """Return Python code of a list of levels or labels."""
    return f"[{', '.join(_value(value, what) for value in values)}]"


def _value(value: object, what: str) -> str:
    """Return Python code of a level or label; raise ValueError unless it has a literal."""
    text = repr(to_python(value))
    try:
        same = ast.literal_eval(text) == value
    except (ValueError, SyntaxError):
        same = False
    if not same:
        raise ValueError(f"numpyro_source: the {what} {shown(value)} cannot be written as Python code; fit texts.")
    return text


def _replace_names(expression: str, names: Mapping[str, str]) -> str:
    """Return an expression with whole names replaced, but for keywords and the functions of a module."""
    pattern = rf"(?<![\w.])({'|'.join(map(re.escape, names))})\b(?!\s*[(=])"
    return re.sub(pattern, lambda match: names[match[1]], expression)


def _text_of_distribution(distribution: Any) -> str:
    """Return Python code of a NumPyro distribution; raise ValueError if its class and arguments do not say all."""
    import jax
    from numpyro import distributions as dist

    name, arguments = type(distribution).__name__, list(distribution.arg_constraints)
    try:
        text = f"dist.{name}({', '.join(f'{a}={float(getattr(distribution, a))!r}' for a in arguments)})"
        leaves = [jax.tree.leaves(d) for d in (distribution, eval(text, {"dist": dist}))]
        same = len(leaves[0]) == len(leaves[1]) and all(map(np.array_equal, *leaves))
    except (AttributeError, TypeError, ValueError):
        same = False
    if not same:
        raise ValueError(
            f"hyperprior={shown(distribution)} cannot be written as Python code. Use a class of numpyro.distributions "
            "with numbers as arguments, or edit the program with hyperprior='symmetric'."
        )
    return text
