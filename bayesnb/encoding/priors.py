"""Priors that users give for classes, columns and levels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.optimize import brentq
from scipy.special import betainc, betaincc, expit, gammainc, gammainccinv

from bayesnb._util.arguments import (
    GREATEST,
    bad_argument,
    require_choice,
    require_number,
    require_probability,
    shown,
    to_numbers,
)
from bayesnb.encoding.levels import Levels
from bayesnb.encoding.table import (
    by_rows,
    entries_by_class,
    is_labelled,
    match_all_columns,
    match_classes,
    match_columns,
    match_levels,
    names_classes,
    read_labelled,
    select_columns,
)
from bayesnb.families import Binned, Dirichlet, IndependentCuts, Known, PriorByColumn, TreeAveraged
from bayesnb.families.arrays import same_structure
from bayesnb.families.numbers import EmpiricalPrior
from bayesnb.families.protocol import Family

if TYPE_CHECKING:
    from bayesnb.encoding import Encoding
    from bayesnb.encoding.columns import Columns
    from bayesnb.encoding.structure import NodeColumns

# == Prior distributions from the hyperparameters of estimators ====================================

BlockPrior = Family | EmpiricalPrior
"""Prior of a block of columns: a family, or a function of the statistics to a family."""

_OTHER_PRIOR = "Pass the prior_ of a classifier with the same classes and columns."


def class_distribution(class_prior: object, class_alpha: object, classes: Levels) -> Dirichlet | Known:
    """Return the prior of the class probabilities: known if `class_prior` gives probabilities, else Dirichlet.

    The Dirichlet is `class_prior` if that is one; for class_prior=None it has the concentration `class_alpha`. Mappings
    and Series are matched by the labels of the classes, arrays by position.

    Raises
    ------
    ValueError
        If `class_prior` is negative, does not sum to one or has another length; if `class_alpha` is negative, not
        finite or of another shape; if a mapping or a Series does not name exactly the classes.
    """
    if isinstance(class_prior, Dirichlet):
        return _class_dirichlet(class_prior.concentration, "class_prior", classes)
    if class_prior is None:
        return _class_dirichlet(class_alpha, "class_alpha", classes)
    n_classes = len(classes)
    prob = to_numbers("class_prior", match_classes("class_prior", class_prior, classes))
    if prob.shape != (n_classes,):
        shapes = f"got shape {prob.shape}, expected {(n_classes,)}"
        raise ValueError(f"class_prior: Number of priors must match number of classes; {shapes}.")
    if not (prob >= 0).all():
        i = int(np.argmax(~(prob >= 0)))
        label = shown(classes.values[i] if is_labelled(class_prior) else i)
        raise ValueError(f"class_prior: Priors must be non-negative; class_prior[{label}] is {prob[i]}.")
    if not np.isclose(prob.sum(), 1.0, rtol=0, atol=1e-8):
        raise ValueError(f"class_prior: The sum of the priors should be 1; it is {float(prob.sum())!r}.")
    with np.errstate(divide="ignore"):
        return Known(np.log(prob)[None])


def _class_dirichlet(given: object, name: str, classes: Levels) -> Dirichlet:
    """Return the Dirichlet of the class probabilities, with the concentrations that are `given` for a `name`."""
    values, n_classes = to_numbers(name, match_classes(name, given, classes)), len(classes)
    _require_at_least(values, 0.0, name, classes.values if is_labelled(given) else None)
    return Dirichlet(_to_shape(values, name, (1, n_classes)), np.zeros(n_classes, np.int32), 1)


def prior_of_levels(alpha: object, columns: Columns, classes: Levels) -> Dirichlet:
    """Return the Dirichlet over the levels of a block, with concentrations (C, L).

    Parameters
    ----------
    alpha : Dirichlet, scalar, (F,) array, list with an entry for each feature, (C, L) array, or mapping or Series by \
        column
        Concentration of the levels. For the entry of one column see `_concentrations`; concentrations that are not
        named are 1. With parents, levels have these concentrations given each value of the parents.
    columns : Columns
        Block of columns whose cells are levels.
    classes : Levels

    Raises
    ------
    ValueError
        If `alpha` is negative, not finite or of another shape; the message says which is right.
    """
    sizes, group = columns.sizes(), columns.groups()
    shape = (len(classes), int(sizes.sum()))
    if isinstance(alpha, Dirichlet):
        read_labelled("alpha.concentration", alpha.concentration)
        full = to_numbers("alpha.concentration", alpha.concentration)
        if not np.array_equal(alpha.group, group):
            raise _shape_error("is a Dirichlet whose groups are not the columns", columns, shape)
        if full.shape not in (shape, (1, shape[1])):
            raise _shape_error(f"is a Dirichlet of shape {full.shape}", columns, shape)
        _require_at_least(full, 0.0, "alpha.concentration")
    elif isinstance(alpha, list | tuple) and any(is_labelled(entry) or np.ndim(entry) for entry in alpha):
        if len(alpha) != columns.n_features:
            raise _shape_error(f"is a list of {len(alpha)} entries", columns, shape)
        full = _concentrations(alpha, columns, classes)
    elif is_labelled(alpha):
        full = _concentrations(alpha, columns, classes)
    else:
        read_labelled("alpha", alpha)
        full = to_numbers("alpha", alpha)
        _require_at_least(full, 0.0, "alpha")
        if full.ndim == 1 and len(full) == columns.n_features:
            full = np.repeat(full[list(columns.index)], sizes)
        elif full.ndim and full.shape != shape:
            raise _shape_error(f"has shape {full.shape}", columns, shape)
    full = np.broadcast_to(full, shape)
    # A feature without a level has a group too, which is in no entry of `group`.
    n_groups = 1 if columns.one_simplex else max(len(columns.index), int(group.max(initial=0)) + 1)
    return Dirichlet(full, group, n_groups)


def context_concentrations(alpha: object, columns: NodeColumns) -> np.ndarray:
    """Return the (G,) total concentration of the levels of the feature of each node, in each context.

    Parameters
    ----------
    alpha : scalar, (F,) array, or mapping or Series by column
        Total concentration of the levels of a feature, in each context; 1 for columns that are not named.
    columns : NodeColumns

    Raises
    ------
    ValueError
        If `alpha` is not positive, not finite or of another shape.
    """
    meaning = "With tables='context' alpha is the total concentration of all levels of a column in each context."
    if is_labelled(alpha):
        total = np.ones(columns.n_features)
        for i, entry in select_columns("alpha", alpha, columns.base).items():
            name = f"alpha[{columns.base.names[i]!r}]"
            if is_labelled(entry) or np.asarray(entry).ndim:
                raise ValueError(f"{name}={shown(entry)} must be one number. {meaning}")
            total[columns.base.index[i]] = to_numbers(name, entry)
    else:
        total = to_numbers("alpha", alpha)
    if total.shape not in ((), (columns.n_features,)):
        expected = f"a scalar, an array of shape (F,) = {(columns.n_features,)}, or a dict {{column: number}}"
        raise ValueError(f"alpha has shape {total.shape}; expected {expected}. {meaning}")
    _require_positive(total, "alpha")
    return np.broadcast_to(total, columns.n_features)[list(columns.index)]


def prior_of_trees(alpha: object, columns: NodeColumns, n_classes: int) -> TreeAveraged:
    """Return the prior of features under the average over all trees; `alpha` is the total concentration of a class.

    Raises
    ------
    ValueError
        If `alpha` is not a positive number.
    """
    total = np.empty(1) if is_labelled(alpha) else to_numbers("alpha", alpha)
    if total.shape != ():
        given = f"is a {type(alpha).__name__}" if is_labelled(alpha) else f"has shape {total.shape}"
        raise ValueError(f"alpha {given}. alpha of TreeAveragedNB must be one number.")
    _require_positive(total, "alpha")
    return TreeAveraged.from_sizes(columns.base.sizes().tolist(), n_classes, float(total))


def prior_of_numbers(given: object, columns: Columns, classes: Levels, argument: str) -> BlockPrior:
    """Return the prior of numbers: a family with parameters (C, F), or an empirical prior.

    Parameters
    ----------
    given : family, empirical prior, str, or mapping or Series by column
        Value of the user's `argument`: a prior, or a prior derived from the data, by name or as an object. A field of
        the prior that is a mapping or a Series names the columns. A mapping or Series by column has such priors, whose
        fields may name the classes; the entry of None is for the columns that are not named, by default the first
        empirical prior of the family.
    columns : Columns
        Block of columns of numbers, with their conjugate family.
    classes : Levels
    argument : str

    Raises
    ------
    ValueError
        If the prior is neither, or a field of it is out of range or of another shape.
    """
    family, shape = columns.family, (len(classes), len(columns.index))
    if (labelled := read_labelled(argument, given)) is None:
        match_columns_of_field = partial(match_all_columns, columns=columns)
        return _read_prior(given, family, argument, shape, match_columns_of_field)
    others = labelled.pop(None, next(iter(family.empirical)))
    entries = select_columns(argument, labelled, columns)
    by_column = [field for field in family.least if _axes_of(family, field).endswith("F")]
    fields = {field: np.ones(_shape_of(family, field, shape)) for field in by_column}
    derived, source = dict[int, Any](), np.full(shape[1], -1)

    def match(field: str, value: object) -> np.ndarray:
        """Return the parameters of one column, () or (C, 1), from a value that may be a vector over the classes."""
        values = to_numbers(field, match_classes(field, value, classes))
        return values[:, None] if values.ndim == 1 else values

    for i, name in enumerate(columns.names):
        where = f"{argument}[{name if i in entries else None!r}]"
        prior = _read_prior(entries.get(i, others), family, where, (shape[0], 1), match)
        if isinstance(prior, family):
            default = family(**{field: getattr(prior, field) for field in by_column})
            for field in family.least:
                if field not in by_column and not np.array_equal(getattr(prior, field), getattr(default, field)):
                    raise ValueError(f"{where}.{field} must be left out of priors by column. Pass one prior for all.")
            for field, values in fields.items():
                values[..., i : i + 1] = getattr(prior, field)
        else:
            derived[id(prior)] = prior
            source[i] = list(derived).index(id(prior))
    return PriorByColumn(family(**fields), tuple(derived.values()), source) if derived else family(**fields)


def read_dispersion(given: object, columns: Columns) -> np.ndarray:
    """Return (F,) dispersions of counts, positive numbers that are `given` for all columns, by position or by name.

    Raises
    ------
    ValueError
        If they are not positive numbers, or not one or F of them.
    """
    values = match_all_columns("dispersion", given, columns)
    if isinstance(values, str) or not (read := _to_shape(values, "dispersion", (len(columns.index),))).all():
        raise bad_argument("dispersion", given, "'evidence', or positive numbers: one, or one per column")
    return read


def _read_prior(
    given: Any, family: Any, argument: str, shape: tuple[int, int], match: Callable[[str, object], object]
) -> BlockPrior:
    """Return a family with parameters of this shape, or an empirical prior; `match` orders the entries of fields."""
    if isinstance(given, family):
        return type(given)(**_read_fields(given, argument, shape, match))
    if isinstance(given, str) and given in family.empirical:
        return family.empirical[given]
    if isinstance(getattr(given, "given", None), family):  # such as `tune_alpha` makes of priors by column
        _read_fields(given.given, argument, shape)
        return given
    if type(given) not in set(map(type, family.empirical.values())):
        names = ", ".join(map(repr, family.empirical))
        wanted = f"{names} or a bayesnb.{family.__name__}, or a dict of these by column"
        raise ValueError(f"{argument}={shown(given)} is unknown; use {wanted}.")
    _check_numbers(given, argument)
    for name, choices in given.choices.items():
        if getattr(given, name) not in choices:
            raise ValueError(f"{argument}.{name}={shown(getattr(given, name))} is unknown; use one of {choices}.")
    return given


def named_columns(argument: str, prior: object, names: Sequence[str]) -> set[int]:
    """Return the positions of the columns that a prior of numbers by column names; none for other priors.

    Raises ValueError if there is no such column.
    """
    labels = [label for label in read_labelled(argument, prior) or () if label is not None]
    return set(match_columns(argument, dict.fromkeys(labels), names))


def prior_of_cells(given: object, argument: str, n_classes: int, sizes: np.ndarray) -> Binned:
    """Return the prior of binned features, with concentrations (C, L).

    Parameters
    ----------
    given : Binned, IndependentCuts or "independent"
        Value of the user's `argument`; the string is for the default `IndependentCuts`.
    argument : str
    n_classes : int
    sizes : (F,) int array
        Number of cells of each feature.

    Raises
    ------
    ValueError
        If the prior is none of these, or a number in it is out of range or of another shape.
    """
    if isinstance(given, str) and given == "independent":
        given = IndependentCuts()
    if isinstance(given, IndependentCuts):
        _check_numbers(given, argument)
        return given.prior(n_classes, sizes)
    if not isinstance(given, Binned):
        raise bad_argument(argument, given, "'independent' or a bayesnb.families.IndependentCuts")
    group = np.repeat(np.arange(len(sizes)), sizes)
    alpha = _to_shape(given.concentration, f"{argument}.concentration", (n_classes, len(group)))
    if not np.array_equal(given.group, group):
        raise ValueError(
            f"{argument} is for columns with {_group_sizes(given.group)} cells (bins); the binned columns have "
            f"{shown(sizes.tolist())}. Pass a bayesnb.families.IndependentCuts, which fits all."
        )
    return replace(given, concentration=alpha)


def _concentrations(alpha: object, columns: Columns, classes: Levels) -> np.ndarray:
    """Return the concentrations (C, L) of the levels of all features, given each value of their parents.

    The entry of a column in `alpha` is a number; an array with an entry for each level; an array (C, levels); a mapping
    or Series by level; a mapping or Series by class of these, or a DataFrame by class and level. Columns that are not
    named have the concentration 1.

    Raises
    ------
    ValueError
        If an entry is none of these, or names levels that the column does not have, or not exactly the classes.
    """
    base = columns.base
    full, entries = np.ones((len(classes), int(columns.sizes().sum()))), select_columns("alpha", alpha, base)
    whole = f"(F,) = {(columns.n_features,)} or (C, L) = {full.shape}"
    feature, levels = base.axis()
    position = {base.index[i]: i for i in entries}
    for j, of_column in zip(columns.index, np.split(full, columns.start()[1:], axis=1), strict=True):
        if (i := position.get(j)) is not None:
            known = None if levels is None else [levels[k] for k in np.flatnonzero(feature == i)]
            name = f"alpha[{j}]" if isinstance(alpha, list | tuple) else f"alpha[{base.names[i]!r}]"
            column = _Column(base.names[i], base.kind, known, of_column.shape[1], whole)
            of_column[:] = _read_entry(name, entries[i], column, classes)
    return full


class _Column(NamedTuple):
    """Column whose concentrations are read.

    `levels` are None if it has none, `size` is K, the number of levels given the values of the parents, and `whole`
    describes the shapes of arrays for all columns.
    """

    name: str
    kind: str
    levels: Sequence[Hashable] | None
    size: int
    whole: str


def _read_entry(name: str, entry: object, column: _Column, classes: Levels) -> np.ndarray:
    """Return concentrations (C, K) from the entry of one column, which is called `name` in messages."""

    def read(name: str, entry: object, *n_rows: int) -> np.ndarray:
        """Return (…, K) concentrations from an entry without labels of classes, an array of which may have `n_rows`."""
        labels, n_levels = None, 1 if column.levels is None else len(column.levels)
        if is_labelled(entry):
            if column.levels is None:
                problem = f"must be one number, as {column.kind} columns have no levels"
                raise ValueError(f"{name}={shown(entry)} {problem}.")
            entry, labels = match_levels(name, entry, column.levels, column.name), column.levels
        values = to_numbers(name, entry)
        if values.shape not in ((), *((*rows, n) for rows in {(), n_rows} for n in (n_levels, column.size))):
            raise ValueError(
                f"{name} has shape {values.shape}; expected one number, an array with one entry for each of the "
                f"{n_levels} levels, an array of shape (classes, levels) = {(len(classes), n_levels)}, or a dict: "
                "{level: number}, {class: number} or {class: {level: number}}. For all columns at once, pass an array "
                f"of shape {column.whole}."
            )
        _require_at_least(values, 0.0, name, labels)
        values = np.atleast_1d(values)
        # The levels of a feature vary fastest, so that their concentrations repeat for all values of the parents.
        return values[..., np.arange(column.size) % max(1, values.shape[-1])]

    entry, n_classes = by_rows(name, entry), len(classes)
    if (labelled := read_labelled(name, entry)) is None:
        return read(name, entry, n_classes)
    if names_classes(name, entry, classes, column.levels or ()):
        return np.stack([read(*of_class) for of_class in entries_by_class(name, entry, classes)])
    if set(classes.index(labelled).tolist()) == set(range(n_classes)):
        raise ValueError(
            f"{name} can be read in two ways: its labels {shown(list(labelled))} are the classes, and some are levels "
            f"of column {column.name!r}. Write {{class: {{level: number}}}}, or a DataFrame with a row for each class "
            "and a column for each level."
        )
    return read(name, entry)


def _to_shape(given: object, name: str, shape: tuple[int, ...], bound: float = 0.0) -> np.ndarray:
    """Return numbers broadcast to `shape` in float64; raise ValueError if one is below `bound`, or they do not fit."""
    values = to_numbers(name, given)
    _require_at_least(values, bound, name)
    try:
        return np.broadcast_to(values, shape).astype(np.float64, order="C")
    except ValueError:
        expected = " or ".join(["a scalar", *(f"shape {shape[i:]}" for i in range(len(shape) - 1, -1, -1))])
        raise ValueError(f"{name} has shape {values.shape}; expected {expected}.") from None


def _axes_of(family: type[Family], field: str) -> str:
    """Return the axes of a field of a family: C for classes, F for columns, R for an axis of the field's own."""
    return family.axes.get(field, "CF")


def _shape_of(family: type[Family], field: str, shape: tuple[int, ...], value: ArrayLike = 0.0) -> tuple[int, ...]:
    """Return the shape of a field of a family, for a shape (C, F) of the fields "CF".

    The last axis of `value` gives the length of an axis of the field's own.
    """
    sizes = {"C": shape[0], "F": shape[-1], "R": np.shape(value)[-1] if np.ndim(value) else 1}
    return tuple(sizes[axis] for axis in _axes_of(family, field))


def _read_fields(
    given: Family, name: str, shape: tuple[int, ...], match: Callable[[str, object], object] | None = None
) -> dict[str, np.ndarray]:
    """Return the fields of a family that is called `name` in messages, for `shape` (C, F), by name of the field.

    `match` orders the entries of fields. Raises ValueError for a field of another shape, or a value out of range.
    """
    fields, family = {}, type(given)
    for field, bound in family.least.items():
        if (value := getattr(given, field)) is not None:
            if match and _axes_of(family, field).endswith("F"):
                value = match(f"{name}.{field}", value)
            fields[field] = _to_shape(value, f"{name}.{field}", _shape_of(family, field, shape, value), bound)
    return fields


def _check_numbers(prior: EmpiricalPrior | IndependentCuts, name: str) -> None:
    """Raise ValueError unless the fields of an empirical prior in `least` are numbers, and at least their bounds."""
    for field, bound in prior.least.items():
        _to_shape(getattr(prior, field), f"{name}.{field}", (), bound)


def _require_at_least(values: np.ndarray, bound: float, name: str, labels: Sequence[Hashable] | None = None) -> None:
    """Raise ValueError naming the first value that is below `bound`, above `GREATEST`, or NaN, by its label if any."""
    bad = ~((values >= bound) & (abs(values) <= GREATEST))
    if bad.any():
        where = tuple(int(i[0]) for i in np.nonzero(bad)) if values.ndim else ()
        place = f"{name}[{', '.join(map(str, where))}]" if where else name
        if where and labels is not None:
            place = f"{name}[{shown(labels[where[-1]])}]"
        limits = f"finite and at least {max(bound, -GREATEST):g}, and at most {GREATEST:g}"
        raise ValueError(f"{place} is {values[where]}; it must be {limits}.")


def _require_positive(values: np.ndarray, name: str) -> None:
    """Raise ValueError unless all concentrations of an average over structures are finite and positive."""
    _require_at_least(values, 0.0, name)
    if not values.all():
        raise ValueError(f"{name} contains 0; the evidence of structures needs a proper prior. Pass positive numbers.")


def _shape_error(got: str, columns: Columns, shape: tuple[int, int]) -> ValueError:
    """Return the error with the description `got` of `alpha`, and the shapes that `alpha` may have."""
    lengths = shown(columns.sizes().tolist())
    return ValueError(
        f"alpha {got}; expected a scalar, an array of shape (F,) = {(columns.n_features,)}, a list of F arrays of "
        f"lengths {lengths}, an array of shape (C, L) = {shape}, or a dict {{feature: number or {{level: number}}}}."
    )


def check_complete_prior(prior: Any, encoding: Encoding, statistics: Any) -> Any:
    """Return `prior`, a complete prior such as another model's `prior_`, if it is over these classes and levels.

    Raises
    ------
    ValueError
        If the prior has other families, shapes or groups of levels.
    """
    classes, n_classes = prior.class_prior, len(statistics.class_count)
    if len(prior.blocks) != len(encoding.blocks):
        n_blocks = len(encoding.blocks)
        raise ValueError(f"prior has {len(prior.blocks)} blocks of columns; the data have {n_blocks}. {_OTHER_PRIOR}")
    over_classes = np.asarray(classes.log_prob if classes.fixed else classes.concentration)
    if over_classes.shape[1] != n_classes:
        raise ValueError(f"prior has {over_classes.shape[1]} classes; the data have {n_classes}. {_OTHER_PRIOR}")
    if classes.fixed:
        total = float(np.exp(over_classes).sum())
        if not np.isclose(total, 1.0, rtol=0, atol=1e-8):
            raise ValueError(f"prior.class_prior: the sum of the probabilities should be 1; it is {total!r}.")
    else:
        _require_at_least(over_classes, 0.0, "prior.class_prior.concentration")
    for i, (family, columns, block) in enumerate(zip(prior.blocks, encoding.blocks, statistics.blocks, strict=True)):
        if not isinstance(family, columns.family):
            needed = f"{columns.kind} columns need a {columns.family.__name__}"
            raise ValueError(f"prior.blocks[{i}] is a {type(family).__name__}; {needed}. {_OTHER_PRIOR}")
        of_classes = next(field for field in family.least if field not in family.axes)
        shape, groups = np.shape(getattr(family, of_classes)), columns.groups()
        if shape != block.count.shape or not np.array_equal(getattr(family, "group", groups), groups):
            raise ValueError(
                f"prior.blocks[{i}] has shape {shape}; the data need {block.count.shape}, with {_group_sizes(groups)} "
                "levels (in networks for all values of parents). Declare `categories` to fix the levels."
            )
        _read_fields(family, f"prior.blocks[{i}]", block.count.shape)
        if columns.network is not None and hasattr(family, "count"):  # an average of structures
            _require_structures(family, columns.prior(1.0, "alpha", encoding.classes), f"prior.blocks[{i}]")
    return prior


def _require_structures(given: Any, columns_prior: object, name: str) -> None:
    """Raise ValueError unless `given` is a proper prior over the same structures as the columns' prior."""
    _require_positive(np.asarray(given.concentration), f"{name}.concentration")
    if not same_structure(given, columns_prior):
        raise ValueError(f"{name} is a prior of another structure. Pass the prior_ of a classifier with the same arcs.")
    if np.any(np.asarray(given.count)):
        raise ValueError(f"{name}.count is not 0, so {name} is a posterior. Pass prior_, not posterior_.")


def _group_sizes(group: object) -> list[int]:
    """Return the numbers of levels of the groups, from the (L,) group of each level; groups may have any numbers."""
    return np.unique(np.asarray(group), return_counts=True)[1].tolist()


# == Priors of one parameter, from an interval that contains it with a stated probability ==========

_SUPPORT = {"beta": (0.0, 1.0), "normal": (-np.inf, np.inf), "gamma": (0.0, np.inf)}
_PARAMETERS = {"beta": ("a", "b"), "normal": ("mean", "sd"), "gamma": ("concentration", "rate")}
_LOG_CONCENTRATIONS = np.log(1e-3), np.log(1e12)
"""Interval that is searched for the logarithm of a + b of a beta, and of the concentration of a gamma."""
_ACCURACY = 1e-6


@dataclass(frozen=True)
class IntervalPrior:
    """Beta, normal or gamma distribution with a given equal-tailed interval; iteration gives its two parameters.

    Attributes
    ----------
    family : {"beta", "normal", "gamma"}
        Family of the distribution.
    parameters : (float, float)
        (a, b) of a beta, (mean, sd) of a normal, (concentration, rate) of a gamma distribution.
    lower, upper : float
        Ends of the interval.
    prob : float
        Probability of the interval.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> prior = bnb.prior_from_interval(2, 10, family="gamma")
    >>> concentration, rate = prior
    >>> round(concentration / rate, 3) == round(prior.mean, 3)
    True
    """

    family: str
    parameters: tuple[float, float]
    lower: float
    upper: float
    prob: float

    @property
    def distribution(self) -> Any:
        """Distribution of `scipy.stats`, with quantiles, density and draws."""
        first, second = self.parameters
        scale = {"scale": 1.0 / second} if self.family == "gamma" else {}
        arguments = (first,) if scale else self.parameters
        return {"beta": stats.beta, "normal": stats.norm, "gamma": stats.gamma}[self.family](*arguments, **scale)

    @property
    def mean(self) -> float:
        """Mean of the distribution."""
        return float(self.distribution.mean())

    @property
    def sd(self) -> float:
        """Standard deviation of the distribution."""
        return float(self.distribution.std())

    def __iter__(self) -> Iterator[float]:
        return iter(self.parameters)

    def __repr__(self) -> str:
        named = zip(_PARAMETERS[self.family], self.parameters, strict=True)
        parameters = ", ".join(f"{name}={value:.4g}" for name, value in named)
        moments = "" if self.family == "normal" else f"mean {self.mean:.4g}, sd {self.sd:.4g}, "
        interval = f"{100 * self.prob:.6g}% between {self.lower:.6g} and {self.upper:.6g}"
        return f"{self.family.capitalize()}({parameters}): {moments}{interval}"


def prior_from_interval(lower: float, upper: float, prob: float = 0.95, family: str = "beta") -> IntervalPrior:
    """Find the beta, normal or gamma distribution with a given equal-tailed interval.

    Parameters
    ----------
    lower, upper : float
        Ends of the interval: the parameter is below `lower`, and above `upper`, with probability (1 - prob)/2 each.
    prob : float, default 0.95
        Probability of the interval, in (0, 1).
    family : {"beta", "normal", "gamma"}
        Family of the distribution: "beta" for a probability, "normal" for a mean, "gamma" for a rate or another
        positive number.

    Returns
    -------
    IntervalPrior
        Fitted distribution: `parameters`, which iteration also gives, `mean`, `sd`, and the `distribution` of
        `scipy.stats`.

    Raises
    ------
    ValueError
        If `lower` is not below `upper`, an end is outside the support of the family, `prob` is not in (0, 1), or no
        distribution of the family has the interval to an accuracy of 1e-6 of each tail, because it is too narrow or too
        wide.

    Notes
    -----
    - *Beta*: a and b are the concentrations of the two levels of a column, as in
      `CategoricalNB(alpha={"smoker": {"yes": a, "no": b}})`. They count as a + b rows. `diagnostic_tests` takes the
      result as the prior of a prevalence, sensitivity or specificity.
    - *Normal*: if v is the variance of a feature within a class, its mean has this distribution given the variance v
      under `NormalInverseGamma(loc=mean, kappa=v / sd**2, ...)`; κ is the number of rows that the prior counts as.
    - *Gamma*: `GammaPoisson(concentration, rate)` is the prior of the rate of counts (events per row), and
      `GammaExponential(concentration, rate)` that of durations (events per unit of time).

    The two ends determine the distribution. For a beta, `scipy.optimize.brentq` finds a + b by the lower tail, and for
    each a + b the mean by the upper tail.

    Examples
    --------
    A sensitivity that lies between .75 and .92 with probability .95.

    >>> import bayesnb as bnb
    >>> prior = bnb.prior_from_interval(0.75, 0.92)
    >>> prior
    Beta(a=57.19, b=10.52): mean 0.8446, sd 0.0437, 95% between 0.75 and 0.92
    >>> a, b = prior
    >>> bnb.prior_from_interval(165, 180, family="normal")
    Normal(mean=172.5, sd=3.827): 95% between 165 and 180
    """
    require_choice("family", family, tuple(_SUPPORT))
    require_probability("prob", prob)
    low = require_number("lower", lower, "a number", np.isfinite)
    high = require_number("upper", upper, "a number", np.isfinite)
    if not low < high:
        raise ValueError(f"lower={low:g} must be below upper={high:g}.")
    least, greatest = _SUPPORT[family]
    if not least < low < high < greatest:
        name, end = ("lower", low) if low <= least else ("upper", high)
        above = "" if greatest == np.inf else f" and below {greatest:g}"
        raise ValueError(f"{name}={end:g} must be above {least:g}{above}, for a {family} distribution.")
    tail = (1.0 - float(prob)) / 2
    parameters = {"beta": _fit_beta, "normal": _fit_normal, "gamma": _fit_gamma}[family](low, high, tail)
    found = IntervalPrior(family, parameters, low, high, float(prob))
    tails = found.distribution.cdf(low), found.distribution.sf(high)
    if not np.allclose(tails, tail, rtol=_ACCURACY, atol=0.0):
        raise ValueError(
            f"No {family} distribution has probability {prob:g} between lower={low!r} and upper={high!r} to an "
            f"accuracy of {_ACCURACY:g}: the interval is too narrow, or too wide for this prob."
        )
    return found


def _fit_normal(lower: float, upper: float, tail: float) -> tuple[float, float]:
    """Return mean and standard deviation, which is NaN if the probability of the interval is 0 up to rounding."""
    width = upper - lower
    return lower + 0.5 * width, width / (2.0 * float(stats.norm.isf(tail)) or np.nan)


def _fit_gamma(lower: float, upper: float, tail: float) -> tuple[float, float]:
    """Return concentration and rate; given the concentration, the upper end determines the rate."""

    def end(log_concentration: float) -> float:
        """Upper end of the interval for the rate 1."""
        return float(gammainccinv(np.exp(log_concentration), tail))

    log = _find_concentration(lambda log: float(gammainc(np.exp(log), end(log) * (lower / upper))) - tail)
    return float(np.exp(log)), end(log) / upper


def _fit_beta(lower: float, upper: float, tail: float) -> tuple[float, float]:
    """Return a and b; given a + b, the upper end determines the mean."""

    def shapes(log_total: float) -> tuple[float, float]:
        total = float(np.exp(log_total))
        logit = brentq(lambda x: betaincc(total * expit(x), total * expit(-x), upper) - tail, -700.0, 700.0, xtol=1e-15)
        return total * float(expit(logit)), total * float(expit(-logit))

    return shapes(_find_concentration(lambda log: float(betainc(*shapes(log), lower)) - tail))


def _find_concentration(surplus: Callable[[float], float]) -> float:
    """Return the log concentration where a decreasing function is 0, or the end of the search that is nearest to it."""
    low, high = map(float, _LOG_CONCENTRATIONS)
    if not surplus(low) > 0:
        return low
    return float(brentq(surplus, low, high, xtol=1e-14)) if surplus(high) < 0 else high
