"""Figures of parameters: estimates on their posteriors, prior beside posterior, intervals and profiles."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import (
    bad_argument,
    list_names,
    require_choice,
    require_integer,
    require_probability,
    shown,
)
from bayesnb._util.precision import float64
from bayesnb.encoding import Encoding
from bayesnb.estimators.latent import NaiveBayesMixture
from bayesnb.families import offers
from bayesnb.fitted.scoring import plug_in
from bayesnb.fitted.state import Classifier, Fitted, require_posterior
from bayesnb.model import ESTIMATES, PLUGGED_IN, NaiveBayes
from bayesnb.plots import style
from bayesnb.plots.style import Axes, Look, labels
from bayesnb.sampling.diagnostic_tests import DiagnosticTests
from bayesnb.uncertainty import ImproperPosteriorError, require_proper
from bayesnb.uncertainty.draws import CLASS_PROB, site_names
from bayesnb.uncertainty.given_draws import read_parameters
from bayesnb.uncertainty.tables import locate_draws, locate_parameters

# == Parameters of one kind, in a unit that all features share =====================================

_NUMBERS = [*PLUGGED_IN, "lower", "upper"]


@dataclass(frozen=True, eq=False)
class ParametersInUnits:
    """Parameters of one kind in a common unit.

    Attributes
    ----------
    table : DataFrame
        Rows of `parameter_table` with mle, map, mean, lower and upper in the unit, value = (parameter - origin) / size.
        Further columns: `origin` and `size`; `block` and `position`, where the parameter is in the arrays of the model;
        `code`, the index of the class; `absent`, whether the row is about the level "absent" of a Bernoulli feature.
    axis, row_axis : str
        What the numbers are, with their unit, and what the names of rows are: labels of axes.
    left_out : str
        Numbers of parameters of the other kinds, in words.
    are_levels : bool
        Whether the parameters are probabilities of levels of separate features.
    are_words : bool
        Whether the parameters are probabilities of words, which share one simplex.
    features, classes : sequence
        All names of columns, and all classes.
    """

    table: pd.DataFrame
    axis: str
    row_axis: str
    left_out: str
    are_levels: bool
    are_words: bool
    features: Sequence[Hashable]
    classes: Sequence[Hashable]

    def names(self, rows: pd.DataFrame) -> list[str]:
        """Labels of rows, such as "colour = green | ripe", or "size | ripe" for parameters without levels."""
        # All names are shortened together, so that a position behind a name is that of the column.
        feature, label = labels(self.features, 22), labels(self.classes, 12)
        if not self.are_levels:
            return [f"{feature[f]} | {label[c]}" for f, c in zip(rows["feature"], rows["class"], strict=True)]
        of_feature = self.table[self.table["feature"].isin(rows["feature"])].groupby("feature", sort=False)
        level = {f: labels(own["level"], 14) for f, own in of_feature}
        cells = zip(rows["feature"], rows["level"], rows["class"], strict=True)
        return [f"{feature[f]} = {level[f][v]} | {label[c]}" for f, v, c in cells]


def select_parameters(
    nb: Classifier, prob: float, parameter: str | None, features: Iterable[object] | None
) -> ParametersInUnits:
    """Posterior intervals of all parameters of one kind, by default the most frequent one, in a common unit.

    Means are counted from the feature's mean over all rows in standard deviations over all rows (population form);
    variances and rates are divided by the feature's variance or mean over all rows, so that features in different units
    can stand side by side. A feature whose variance or mean over all rows is zero has the unit 1.

    Raises
    ------
    ValueError
        If there is no such parameter or no such column.
    """
    fitted = require_posterior(nb, "parameter_table")
    if features is not None:
        features = list_names("features", features, "a list of columns, by name or by index")
    table = _convert_to_units(fitted, locate_parameters(fitted, prob, features))
    numbers = {str(kind): int(n) for kind, n in table["kind"].value_counts(sort=False).items()}
    if parameter is None:
        parameter = max(numbers, key=lambda kind: numbers[kind] * (kind != "sigma2"))
    require_choice("parameter", parameter, tuple(numbers))
    others = ", ".join(f"{n} {kind}" for kind, n in numbers.items() if kind != parameter)
    table = table[table["kind"] == parameter].reset_index(drop=True)
    are_words = bool(table["is_word"].all())
    are_levels = bool(table["is_level"].any()) and not are_words
    unit = "P(word | class)" if are_words else "P(level | class)" if are_levels else ", ".join(sorted({*table["unit"]}))
    row_axis = "feature = level | class" if are_levels else "feature | class"
    left_out, names = f"Not in this figure: {others}" * bool(others), fitted.encoding.feature_names
    return ParametersInUnits(
        table, unit, row_axis, left_out, are_levels, are_words, names, fitted.encoding.classes.values
    )


def _convert_to_units(fitted: Fitted, table: pd.DataFrame) -> pd.DataFrame:
    """Rows of parameters of features in their units, with the columns of `ParametersInUnits.table`.

    Further columns are kind, unit, is_level and is_word.
    """
    table = table[table["block"] >= 0]
    block, blocks = table["block"].to_numpy(), fitted.encoding.blocks
    is_word = np.array([columns.one_simplex for columns in blocks])[block]
    is_level = np.array([columns.axis()[1] is not None for columns in blocks])[block] | is_word
    is_binary = np.array([columns.kind == "bernoulli" for columns in blocks])[block]
    table = table.assign(is_level=is_level, is_word=is_word, absent=is_binary & (table["level"] == "absent"))
    table = table.assign(unit=table["kind"], origin=0.0, size=1.0)
    for b, counts in enumerate(fitted.statistics.blocks):
        for name, unit in (counts.units() if offers(counts, "units") else {}).items():
            own = (block == b) & (table["kind"] == name)
            table.loc[own, ["origin", "size"]] = np.column_stack([unit.origin, unit.size])[table["position"][own]]
            table.loc[own, "unit"] = unit.label
    table[_NUMBERS] = table[_NUMBERS].sub(table["origin"], axis=0).div(table["size"], axis=0)
    return table


# == Figures of the marginal densities of parameters: with the estimates on them, and under the prior

_ROW = 3.2 * style.ROW
_HEIGHT = 0.85  # of a row, for the highest density
_MOST_RIDGES = 60
_POINTS = 120
_LEAST_WEIGHT = 1e-6  # of a component of a mixture
_ESTIMATES = tuple({"mle": "MLE", "map": "MAP"}.get(estimate, estimate) for estimate in ESTIMATES)


def estimates(
    nb: Classifier,
    features: Iterable[object] | None = None,
    ax: Axes | None = None,
    parameter: str | None = None,
    top: int = 6,
) -> Axes:
    """Show maximum likelihood, MAP, posterior mean and predictive of parameters on their posterior densities.

    The mean is the centre of mass of a density. The MAP is the peak of the joint density of the parameters of a class,
    which need not be at the peak of a curve. Maximum likelihood ignores the prior. The estimates differ where a density
    is wide or skewed, or the prior has much weight.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose posterior is proper.
    features : iterable of column names or indices, optional
        Features whose parameters are drawn. Default: all features.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.
    parameter : {"theta", "mu", "sigma2", "rate"}, optional
        Parameters that are drawn: probabilities of levels or words, means or variances of Gaussian features, or rates
        of Poisson and exponential features. Default: the kind that these features have most of, but not "sigma2".
    top : int, default 6
        Largest number of parameters: those whose maximum likelihood estimate and posterior mean differ most. Low axes
        show fewer; the header says how many were left out.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with one row for each parameter: its marginal posterior density, and a mark for each estimate. Estimates
        that are equal share one mark, such as "MLE = MAP".

    Raises
    ------
    ImproperPosteriorError
        If the prior's concentration is zero.
    ValueError
        If there is no such column or parameter, if all these parameters are known exactly, or `top` is not between 1
        and 60.

    Notes
    -----
    Densities are Beta for probabilities of levels, Student t for means, inverse gamma for variances, gamma for rates,
    and mixtures of these for averages. All are drawn equally high. Means, variances and rates have the units of
    `plots.forest`.

    The mark "predictive" is the parameter that the posterior predictive distribution of a new cell has: its probability
    of a level, its mean (μ, Poisson rate), its variance (σ²), or one over its mean (exponential rate). The predictive
    variance is above the posterior mean of σ², because μ is not known exactly.

    Under alpha=1, a flat prior on the simplex, the MAP of probabilities is the maximum likelihood estimate.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> X, y = [["sun"], ["sun"], ["rain"], ["sun"]], ["out", "out", "in", "in"]
    >>> ax = bnb.plots.estimates(bnb.CategoricalNB().fit(X, y))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['MLE = MAP', 'mean = predictive', 'MLE = MAP = mean = predictive']
    >>> figure = bnb.plots.detach(ax)
    """
    from matplotlib import rcParams

    ridges = _Ridges.select(nb, features, parameter, top, ax)
    fitted, rows = nb.fitted_, ridges.rows
    values = rows[list(PLUGGED_IN)].assign(predictive=_predict(fitted, rows)).to_numpy(float)
    ax = ridges.open_axes(ax, values[np.isfinite(values)])
    points: dict[str, list[tuple[float, float]]] = {}
    for i, (marginal, colour, of_row) in enumerate(zip(ridges.posterior, rows["color"], values, strict=True)):
        height = _heights(marginal)
        _draw(ax, i, marginal, height, color=colour, linewidth=1.4)
        for value, label in _join_equal(of_row):
            points.setdefault(label, []).append((value, i - float(height(marginal.density(value)))))
    marks, colour, paper = [], rcParams["text.color"], ax.get_facecolor()
    # Four estimates can be equal in fifteen ways.
    for marker, (label, at) in zip(style.MARKS + "<>ph8dH*", points.items(), strict=False):
        x, y = np.array(at).T
        ax.vlines(x, y, np.ceil(y), color=colour, linewidth=0.8, linestyle=":")
        # A ring around the other marks stays visible where estimates nearly agree.
        shape = {"markerfacecolor": "none", "markersize": 9} if "MLE" in label else {"markeredgecolor": paper}
        look: Look = {"marker": marker, "color": colour, "markersize": 6} | shape
        ax.plot(x, y, linestyle="none", clip_on=False, zorder=4, label=label, **look)
        marks.append(style.legend_mark(label, **look))
    of_prior = [f for m in _marginals(fitted, fitted.prior, rows) for _, f in m.components]
    is_flat = rows["is_level"].all() and all(f.kwds.get("a") == 1.0 for f in of_prior)
    lacking = zip(_ESTIMATES, (~np.isfinite(values)).sum(axis=0), strict=True)
    lines = [
        "Posterior densities, all equally high",
        "alpha=1: the MAP is the MLE. Set alpha=2 to see both" if is_flat else "",
        *(f"No {name}: {n} of these parameters" for name, n in lacking if n),
    ]
    return style.write_header(ax, [*lines, *ridges.left_out], marks, ridges.names)


def prior_posterior(
    nb: Classifier,
    features: Iterable[object] | None = None,
    ax: Axes | None = None,
    parameter: str | None = None,
    top: int = 6,
) -> Axes:
    """Show the density of parameters under the prior beside their density under the posterior.

    A posterior that is much narrower than the prior was learned from the data; equal curves mean that the data say
    nothing of the parameter.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose prior and posterior are proper.
    features : iterable of column names or indices, optional
        Features whose parameters are drawn. Default: all features.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.
    parameter : {"theta", "mu", "sigma2", "rate"}, optional
        Parameters that are drawn: probabilities of levels or words, means or variances of Gaussian features, or rates
        of Poisson and exponential features. Default: the kind that these features have most of, but not "sigma2".
    top : int, default 6
        Largest number of parameters: those whose maximum likelihood estimate and posterior mean differ most. Low axes
        show fewer; the header says how many were left out.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with one row for each parameter: the prior density as a dashed line, and the marginal posterior density,
        filled in the colour of the class. Both have one scale in a row.

    Raises
    ------
    ImproperPosteriorError
        If the prior or the posterior is improper.
    ValueError
        If there is no such column or parameter, if all these parameters are known exactly, or `top` is not between 1
        and 60.

    Notes
    -----
    Densities that are higher than the row end at its top. Means, variances and rates have the units of `plots.forest`.
    The prior is `nb.prior_`; priors such as prior="within" of `GaussianNB` are derived from the data.

    For figures of ArviZ, `to_arviz` has draws of the same prior as the group "prior" beside the group "posterior":
    `arviz.plot_dist_comparison(data)` (ArviZ 0.23), `arviz.plot_prior_posterior(data)` (ArviZ 1.x). The group is
    absent if the prior is improper.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> X, y = [["sun"], ["sun"], ["rain"], ["sun"]], ["out", "out", "in", "in"]
    >>> ax = bnb.plots.prior_posterior(bnb.CategoricalNB(alpha=2).fit(X, y), features=[0])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['prior', 'posterior']
    >>> figure = bnb.plots.detach(ax)
    """
    ridges, fitted = _Ridges.select(nb, features, parameter, top, ax), nb.fitted_
    try:
        require_proper(fitted.encoding, fitted.prior)
    except ImproperPosteriorError:
        raise ImproperPosteriorError(
            "prior_posterior: the prior is improper, as a concentration is zero, and has no density. Fit with a proper "
            "prior, such as alpha=0.5 and class_alpha=0.5, or draw the posterior alone by plots.estimates."
        ) from None
    prior = _marginals(fitted, fitted.prior, ridges.rows)
    low, high = ridges.ends
    room = 0.5 * (high - low)  # A vague prior would leave too little for the posterior.
    ax = ridges.open_axes(ax, np.clip([m.interval(0.9) for m in prior], low - room, high + room))
    for i, (before, after, colour) in enumerate(zip(prior, ridges.posterior, ridges.rows["color"], strict=True)):
        height = _heights(after, before)
        _draw(ax, i, after, height, color=colour, linewidth=1.4)
        _draw(ax, i, before, height, color=style.GREY, linewidth=1.3, linestyle="--", zorder=3)
    marks = [
        style.legend_mark("prior", linestyle="--", color=style.GREY),
        style.legend_mark("posterior", linestyle="-", color=style.COLOURS[0]),
    ]
    is_derived = any(callable(fitted.empirical_prior.blocks[b]) for b in ridges.rows["block"].unique())
    lines = ["Densities, in each row on one scale", "The prior is derived from the data" if is_derived else ""]
    return style.write_header(ax, [*lines, *ridges.left_out], marks, ridges.names)


@dataclass(frozen=True, eq=False)
class _Marginal:
    """Marginal distribution of a parameter in the unit of its row: a mixture of distributions of `scipy.stats`.

    `components` are pairs (weight, distribution) of the parameter, whose value in the unit is (value - origin) / size.
    """

    components: list[tuple[float, Any]]
    origin: float
    size: float

    def density(self, x: float | np.ndarray) -> np.ndarray:
        """Density at values x in the unit; infinite where the density of a component is."""
        return self.size * sum(weight * f.pdf(self.origin + self.size * x) for weight, f in self.components)

    def interval(self, prob: float) -> tuple[float, float]:
        """Ends, in the unit, that leave at most (1 - prob)/2 of each component outside on either side."""
        ends = np.array([f.ppf([(1 - prob) / 2, (1 + prob) / 2]) for _, f in self.components])
        low, high = (np.array([ends[:, 0].min(), ends[:, 1].max()]) - self.origin) / self.size
        return float(low), float(high)


def _marginals(fitted: Fitted, model: NaiveBayes, rows: pd.DataFrame) -> list[_Marginal]:
    """Marginal distributions under `model`, the prior or the posterior, of the parameters in rows of a table."""
    from scipy import stats

    kind, blocks, marginals = rows["kind"].iloc[0], rows["block"].unique(), []
    shapes = {b: np.shape(fitted.posterior.blocks[b].variance()[kind]) for b in blocks}
    mixtures = {b: [(w, *float64(f.marginals)()[kind]) for w, f in model.blocks[b].components()] for b in blocks}
    for row in rows.to_dict("records"):
        at, shape, components = (row["code"], row["position"]), shapes[row["block"]], []
        for weights, name, arguments in mixtures[row["block"]]:
            values = {key: float(np.broadcast_to(v, shape)[at]) for key, v in arguments.items()}
            if (weight := float(np.broadcast_to(weights, shape)[at])) > _LEAST_WEIGHT:
                components.append((weight, getattr(stats, name)(**values)))
        marginals.append(_Marginal(components, row["origin"], row["size"]))
    return marginals


def _predict(fitted: Fitted, rows: pd.DataFrame) -> np.ndarray:
    """Parameters (N,), in the unit of each row, of the predictive distribution of a cell; NaN where none is known."""
    from scipy import stats

    values = np.where(rows["is_level"], rows["mean"], np.nan)
    for i, row in enumerate(rows.to_dict("records")):
        family = fitted.posterior.blocks[row["block"]]
        if (of_cell := family.of_predictive.get(row["kind"])) is not None:
            name, arguments = family.predictive_distribution()
            value = of_cell(getattr(stats, name)(**arguments))[row["code"], row["position"]]
            values[i] = (value - row["origin"]) / row["size"]
    return values


def _join_equal(values: np.ndarray) -> list[tuple[float, str]]:
    """Distinct finite values of `_ESTIMATES`, each with the names of the estimates that have the value."""
    joined: list[tuple[float, str]] = []
    for name, value in zip(_ESTIMATES, values, strict=True):
        same = [i for i, (other, _) in enumerate(joined) if np.isclose(value, other, rtol=1e-9, atol=1e-12)]
        if same:
            joined[same[0]] = joined[same[0]][0], f"{joined[same[0]][1]} = {name}"
        elif np.isfinite(value):
            joined.append((float(value), name))
    return joined


def _heights(posterior: _Marginal, prior: _Marginal | None = None) -> Callable[[np.ndarray], np.ndarray]:
    """Function from densities to heights in rows, on a scale that holds the posterior and the middle of the prior.

    Densities that are higher, such as at the ends of Beta(½, ½), are cut off.
    """
    inner = [posterior.density(np.linspace(*posterior.interval(0.98), _POINTS))]
    inner += [] if prior is None else [prior.density(np.linspace(*prior.interval(0.5), _POINTS))]
    highest = max(float(np.nanmax(density)) for density in inner)
    return lambda density: _HEIGHT * np.minimum(density / highest, 1.0)


def _draw(ax: Axes, i: int, marginal: _Marginal, height: Callable[[np.ndarray], np.ndarray], **line: Any) -> None:
    """Draw the density of a marginal above row i, at more values where it has its mass."""
    ends = np.clip(ax.get_xlim(), *marginal.interval(1.0))
    inner = np.clip(marginal.interval(0.98), *ends)
    x = np.unique(np.concatenate([np.linspace(low, high, _POINTS) for low, high in (ends, inner)]))
    y = i - height(marginal.density(x))
    ax.plot(x, y, **line)
    if "linestyle" not in line:
        ax.fill_between(x, i, y, color=line["color"], alpha=0.2, linewidth=0)


class _Ridges(NamedTuple):
    """Parameters that have a row of a figure each.

    Attributes are the parameters, their rows of the table, the names and posterior densities of these rows, the least
    and the greatest end of the 98% intervals, and lines of the header about parameters that are not drawn.
    """

    parameters: ParametersInUnits
    rows: pd.DataFrame
    names: list[str]
    posterior: list[_Marginal]
    ends: tuple[float, float]
    left_out: list[str]

    @classmethod
    def select(
        cls, nb: Classifier, features: Iterable[object] | None, parameter: str | None, top: int, ax: Axes | None
    ) -> _Ridges:
        """Parameters, at most `top`, whose maximum likelihood estimate and posterior mean differ most."""
        require_integer("top", top, most=_MOST_RIDGES)
        parameters = select_parameters(nb, 0.9, parameter, features)
        table = parameters.table[~parameters.table["absent"] & (parameters.table["sd"] > 0)]
        if table.empty:
            raise ValueError("features: all these parameters are known exactly, as of one level. Choose other columns.")
        moved = (table["mle"] - table["mean"]).abs()
        order = moved.where(np.isfinite(moved), -1.0).sort_values(ascending=False, kind="stable").index
        rows = table.loc[order[: style.count_fitting_rows(ax, top, row=_ROW)]]
        rows = rows.assign(color=[style.look(code)["color"] for code in rows["code"]])
        chosen = f"{len(rows)} of {len(table):,} parameters, by |MLE - mean|; others: features=, top="
        posterior = _marginals(nb.fitted_, nb.fitted_.posterior, rows)
        low, high = zip(*(m.interval(0.98) for m in posterior), strict=True)
        left_out = [chosen if len(rows) < len(table) else "", parameters.left_out]
        return cls(parameters, rows, parameters.names(rows), posterior, (min(low), max(high)), left_out)

    def open_axes(self, ax: Axes | None, values: np.ndarray) -> Axes:
        """Open axes with named rows that hold the posterior densities and the `values`."""
        axes = {"xlabel": self.parameters.axis, "ylabel": self.parameters.row_axis}
        ax = style.open_rows(ax, np.arange(len(self.rows)), self.names, _ROW, **axes)
        low, high = min(values.min(), self.ends[0]), max(values.max(), self.ends[1])
        margin = 0.03 * (high - low)
        ax.set(xlim=(low - margin, high + margin), ylim=(len(self.rows) - 0.8, -1.0))
        return ax


# == Figures of parameters: posterior intervals, and the effect of the prior =======================

_MOST_ROWS = 30
_GAP = 0.5  # rows, between groups
_MANY = 2000
_MOST_COLOURED = 12  # classes


def forest(
    nb: Classifier | DiagnosticTests | pd.DataFrame,
    features: Iterable[object] | None = None,
    prob: float | None = None,
    ax: Axes | None = None,
    parameter: str | None = None,
) -> Axes:
    """Compare the parameters of the classes, feature by feature, by their posterior intervals.

    Within a group of intervals, a feature distinguishes the classes whose intervals do not overlap. A hollow mark
    (maximum likelihood) away from the filled mark (posterior mean) shows that the prior has moved the estimate. For
    diagnostic tests, the figure compares the intervals of prevalences, sensitivities and specificities. For contrasts,
    classes differ in the parameters whose intervals exclude the dashed line.

    Parameters
    ----------
    nb : fitted classifier of bayesnb, DiagnosticTests, or DataFrame
        Classifier whose posterior is proper, the result of `diagnostic_tests`, or that of `contrast`, also of several
        features after `pandas.concat`.
    features : iterable of column names or indices, optional
        Features whose parameters are drawn; for diagnostic tests, names of tests or populations; for contrasts, names
        of features. Default: all features.
    prob : float, optional
        Posterior probability of each interval, in (0, 1). Default: 0.9. Intervals of diagnostic tests and of contrasts
        have the probability that was given to `diagnostic_tests` or `contrast`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.
    parameter : str, optional
        Parameters that are drawn: "theta" (probabilities of levels or words), "mu" or "sigma2" (means or variances of
        Gaussian features), or "rate" (of Poisson features). Default: the kind that these features have most of, but not
        "sigma2". For diagnostic tests "prevalence", "sensitivity" or "specificity". Default: all three. For contrasts a
        level or parameter. Default: all of them.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with at most 30 intervals, fewer if the axes are low: those of the features with the widest intervals,
        which come first, each with its levels and classes in their order. The header says how many were left out. For
        diagnostic tests a grey line is the interval of the prior, and the header says how many quantities are
        identified by the prior only.

    Raises
    ------
    ImproperPosteriorError
        If the prior's concentration is zero.
    ValueError
        If `prob` is not in (0, 1), or not that of the diagnostic tests; if there is no such column, parameter, test
        or population.

    Notes
    -----
    Filled marks are posterior means, hollow marks maximum likelihood estimates. A Bernoulli feature has only the
    probability that it is present. Features are left out whole; if the first feature alone has too many rows, its last
    levels are left out, and if it has a single level, the last classes.

    A mean is drawn as its distance from the feature's mean over all rows, in standard deviations of the feature over
    all rows (population form); a variance or rate is divided by the feature's variance or mean over all rows. A divisor
    of zero is replaced by 1.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> ax = bnb.plots.forest(bnb.GaussianNB().fit(X, y))
    >>> [text.get_text() for text in ax.get_yticklabels()][:3]
    ['sepal width (cm) | 0', 'sepal width (cm) | 1', 'sepal width (cm) | 2']
    >>> figure = bnb.plots.detach(ax)
    """
    of_tests, of_contrasts = isinstance(nb, DiagnosticTests), isinstance(nb, pd.DataFrame)
    interval = "interval" if of_contrasts else f"{style.format_percent(read_prob(nb, prob))} interval"
    if isinstance(nb, DiagnosticTests):
        parameters = select_quantities(nb, parameter, features)
    elif isinstance(nb, pd.DataFrame):
        parameters = select_contrasts(nb, prob, parameter, features)
    else:
        parameters = select_parameters(nb, read_prob(nb, prob), parameter, features)
    table = parameters.table[~parameters.table["absent"]]
    rows = _fit_rows(table, np.inf if ax is None else style.measure(ax)[1] / style.ROW - 3)
    heights, names = _row_heights(rows), parameters.names(rows)
    ax = style.open_rows(ax, heights, names, xlabel=parameters.axis, ylabel=parameters.row_axis)
    if of_tests:
        ax.hlines(heights, rows["prior_lower"], rows["prior_upper"], color="0.6", linewidth=0.8)
    if of_contrasts:
        is_ratio = rows["kind"].iloc[0] == "ratio"
        ax.axvline(float(is_ratio), color="0.6", linewidth=0.8, linestyle="--")
        ax.set_xscale("log" if is_ratio else "linear")
    for y, row in zip(heights, rows.to_dict("records"), strict=True):
        colour = style.look(row["code"])["color"]
        ax.plot([row["lower"], row["upper"]], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
        ax.plot(row["mean"], y, "o", color=colour, markersize=4.5)
        ax.plot(row["mle"], y, "o", color=colour, markersize=6.5, markerfacecolor="none", markeredgewidth=0.9)
    about = f"Uncertainty about the parameters, if {'the model' if of_tests else 'naive Bayes'} holds"
    if left_out := len(table) - len(rows):
        about = f"{len(rows)} of {len(table)} intervals, widest features first; {left_out} left out"
    grey: Look = {"marker": "o", "color": style.GREY}
    hollow = style.legend_mark("maximum likelihood", **grey, markersize=6.5, markerfacecolor="none")
    line = style.legend_mark("interval of the prior", linestyle="-", color="0.6")
    null = style.legend_mark("no difference", linestyle="--", color="0.6")
    dot = style.legend_mark(f"posterior mean, {interval}", **grey, markersize=4.5)
    marks = [dot, null if of_contrasts else line if of_tests else hollow]
    return style.write_header(ax, [about, parameters.left_out], marks, names)


def shrinkage(
    nb: Classifier,
    prob: float = 0.9,
    ax: Axes | None = None,
    parameter: str | None = None,
    features: Iterable[object] | None = None,
) -> Axes:
    """Show how far the prior moves each parameter: maximum likelihood against the posterior mean.

    The distance of a dot from the diagonal is the effect of the prior. Small dots, which are estimated from few cells,
    move most.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier whose posterior is proper.
    prob : float, default 0.9
        Posterior probability of each interval, in (0, 1).
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.
    parameter : {"theta", "mu", "sigma2", "rate"}, optional
        Parameters that are drawn: probabilities of levels or words, means or variances of Gaussian features, or rates
        of Poisson features. Default: the kind that these features have most of, but not "sigma2".
    features : iterable of column names or indices, optional
        Features whose parameters are drawn. Default: all features.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with one dot per parameter, and its equal-tailed interval as a vertical line.

    Raises
    ------
    ImproperPosteriorError
        If the prior's concentration is zero.
    ValueError
        If `prob` is not in (0, 1), there is no such column or parameter, or no parameter has a maximum likelihood
        estimate, because no rows were counted.

    Notes
    -----
    The area of a dot grows with the weight of the cells behind the parameter. More than 12 classes share one colour.
    An interval describes the uncertainty about the parameter if naive Bayes holds.

    A mean is drawn as its distance from the feature's mean over all rows, in standard deviations of the feature over
    all rows (population form); a variance or rate is divided by the feature's variance or mean over all rows. A divisor
    of zero is replaced by 1.
    Probabilities of words have a scale that is linear up to the smallest estimate above zero, and logarithmic beyond.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> nb = bnb.GaussianNB().fit(*load_iris(return_X_y=True))
    >>> ax = bnb.plots.shrinkage(nb, prob=0.8)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('maximum likelihood estimate', 'posterior mean')
    >>> figure = bnb.plots.detach(ax)
    """
    parameters = select_parameters(nb, prob, parameter, features)
    table = parameters.table[np.isfinite(parameters.table["mle"])]
    if table.empty:
        raise ValueError(
            "plots.shrinkage: no parameter has a maximum likelihood estimate, as no row with these features was "
            "counted. Fit the classifier to rows, or draw the prior by plots.forest."
        )
    ax = style.open_axes(ax, 5.6, 6.0, grid="both")
    # The dots are in no order, so that no class hides the others.
    table = table.sample(frac=1.0, random_state=0)
    names = labels(nb.classes_, 16).values()
    one_colour = len(names) > _MOST_COLOURED
    looks = pd.DataFrame([style.look(0 if one_colour else code) for code in table["code"]], table.index)
    table = table.join(looks)
    alpha = float(np.clip(8 / np.sqrt(max(1, len(table))), 0.12, 0.85))
    lines = ax.vlines(table["mle"], table["lower"], table["upper"], table["color"], linewidth=0.8, alpha=alpha / 2)
    lines.set_rasterized(len(table) > _MANY)
    counts = table["count"].to_numpy()
    for marker, rows in table.groupby("marker", sort=False):
        look: Look = {"color": rows["color"], "alpha": alpha, "marker": marker}
        dots = style.draw_dots(ax, rows["mle"], rows["mean"], rows["count"], counts.max(), **look)
        dots.set_rasterized(len(table) > _MANY)
    _equate_axes(ax, table, parameters.are_words)
    ax.set(xlabel="maximum likelihood estimate", ylabel="posterior mean")
    without = len(parameters.table) - len(table)
    about = [
        f"{parameters.axis}, with {style.format_percent(prob)} intervals",
        parameters.left_out,
        f"{without} have no maximum likelihood estimate" if without else "",
        f"{len(names)} classes, all in one colour" if one_colour else "",
    ]
    marks = [style.legend_mark(n, markersize=6, **style.look(i)) for i, n in enumerate(() if one_colour else names)]
    return style.write_header(ax, about, [*marks, *style.dot_marks(counts, "cell")])


def _fit_rows(table: pd.DataFrame, height: float) -> pd.DataFrame:
    """Rows of a parameter table that fit into `height` rows of text, features with the widest intervals first.

    Features are left out whole; of a first feature that is too large the last levels, of its only level the last rows.
    """
    widest = (table["upper"] - table["lower"]).groupby(table["feature"], sort=False).max()
    level = table.groupby("feature", sort=False)["level"].transform(lambda levels: levels.factorize()[0])
    rank = table["feature"].map(widest.rank(method="first", ascending=False, na_option="bottom"))
    rows = table.assign(rank=rank, place=level).sort_values(["rank", "place"], kind="stable")
    room = max(1, min(_MOST_ROWS, int((_row_heights(rows) + 1 <= height).sum())))
    fitting: pd.DataFrame = rows[:room]
    for keys in (["rank", "place"], ["rank"]):
        group = rows.groupby(keys, sort=False).ngroup().to_numpy()
        if len(rows) > room and group[room] > 0:
            fitting = rows[group < group[room]]
    return fitting


def _row_heights(rows: pd.DataFrame) -> np.ndarray:
    """Vertical positions (N,) of the rows, in rows of text, with a gap wherever a feature or level begins."""
    keys = rows[["rank", "place"]].to_numpy()
    begins = (keys[1:] != keys[:-1]).any(axis=1)
    return np.arange(len(rows)) + _GAP * np.append(0, np.cumsum(begins))


def _equate_axes(ax: Axes, table: pd.DataFrame, are_words: bool) -> None:
    """Give both axes the same limits and scale, and draw the diagonal.

    If the parameters `are_words`, the scale is linear up to the smallest estimate above zero, and logarithmic beyond.
    """
    values = table[["mle", "mean", "lower", "upper"]].to_numpy()
    values = values[np.isfinite(values)] if np.isfinite(values).any() else np.array([0.0, 1.0])
    low, high = values.min(), values.max()
    margin = 0.04 * (high - low) or 1.0
    low, high = low - margin, high + margin
    if are_words:
        # Probabilities of words span decades, and zero is the value to see.
        smallest = table["mle"][table["mle"] > 0].min() if (table["mle"] > 0).any() else 1.0
        low, high = -0.2 * smallest, 1.5 * values.max()
        ax.set_xscale("symlog", linthresh=smallest)
        ax.set_yscale("symlog", linthresh=smallest)
    ax.plot([low, high], [low, high], color=style.GREY, linewidth=0.8, linestyle="--", zorder=1)
    ax.set(xlim=(low, high), ylim=(low, high), box_aspect=1)


# == Results of `diagnostic_tests` as rows of figures ==============================================


def read_prob(result: object, prob: float | None) -> float:
    """Probability of the intervals of a `DiagnosticTests`; of others `prob`, by default 0.9."""
    if not isinstance(result, DiagnosticTests):
        return 0.9 if prob is None else prob
    if prob not in (None, result.prob):
        raise bad_argument("prob", prob, f"that of this result, {result.prob}. Use diagnostic_tests(prob=)")
    return result.prob


def select_contrasts(
    found: pd.DataFrame, prob: float | None, level: str | None, features: Iterable[object] | None
) -> ParametersInUnits:
    """Intervals of the contrasts in a result of `contrast`, whose pairs of classes are the classes.

    Raises
    ------
    ValueError
        If the table has contrasts of several kinds, or no row of this level and these features; if `prob` is given.
    """
    if prob is not None:
        raise bad_argument("prob", prob, "left out, as the table has intervals. Use contrast(prob=)")
    columns = ["class", "against", "feature", "level", "kind", "estimate", "lower", "upper"]
    style.require_table(found, columns, "bayesnb.contrast", "nb")
    if found["kind"].nunique() > 1:
        raise ValueError(
            f"nb has contrasts of the kinds {shown(found['kind'].unique().tolist())}. Pass those of one kind."
        )
    known = found["feature"].unique().tolist()
    chosen = known if features is None else list_names("features", features, "a list of features")
    table = found[found["feature"].isin(chosen) & (True if level is None else found["level"].map(str) == str(level))]
    if table.empty or not set(chosen) <= set(known):
        raise ValueError(f"features={shown(chosen)} and parameter={shown(level)} name no contrasts of {shown(known)}.")
    compared, against = ([str(label) for label in table[name]] for name in ("class", "against"))
    if len(set(against)) > 1:
        compared = [f"{a} : {b}" for a, b in zip(compared, against, strict=True)]
    code, classes = pd.factorize(np.array(compared))
    table = table.rename(columns={"estimate": "mean"}).assign(
        mle=np.nan, absent=False, code=code, **{"class": compared}
    )
    kind = str(table["kind"].iloc[0]).replace("_odds", " odds ratio")
    axis = kind if len(set(against)) > 1 else f"{kind}, against {labels(against[:1], 22)[against[0]]}"
    return ParametersInUnits(table, axis, "feature = level | class", "", True, False, known, classes.tolist())


def select_quantities(
    found: DiagnosticTests, quantity: str | None, features: Iterable[object] | None
) -> ParametersInUnits:
    """Intervals of one quantity, or all, of the tests and populations named by `features`.

    The quantities are the features of the result, and tests and populations its classes.
    """
    names, table = list(dict.fromkeys([*found.populations, *found.tests])), found.table
    quantities = table["quantity"].unique().tolist()
    features = names if features is None else list_names("features", features, "a list of tests or populations")
    if unknown := [name for name in features if name not in names]:
        raise ValueError(f"features={shown(unknown[0])} is no test or population. Use some of {shown(names)}.")
    if quantity is not None:
        require_choice("parameter", quantity, tuple(quantities))
    table = table[table["name"].isin(features) & table["quantity"].isin(quantities if quantity is None else [quantity])]
    if table.empty:
        raise ValueError(f"features={shown(features)} have no {quantity}; tests have sensitivities and specificities.")
    table = table.rename(columns={"quantity": "feature", "name": "class"})
    table = table.assign(level="", mle=np.nan, absent=False, code=[names.index(name) for name in table["class"]])
    by_prior = int((table["identified"] == "by prior only").sum())
    about = f"Identified by the prior only: {by_prior} of {len(table)}" if by_prior else ""
    axes = "probability", "quantity | test or population"
    return ParametersInUnits(table, *axes, about, False, False, quantities, names)


def tabulate_accuracy(found: DiagnosticTests, features: Iterable[object] | None) -> tuple[pd.DataFrame, list[str]]:
    """P(positive | class) of each test, a row for each class as in tables of levels, and names of the classes.

    The healthy are class 0, the diseased class 1, whose name has the least and the greatest prevalence.
    """
    accuracies = ("sensitivity", "specificity")
    sensitivity, specificity = (select_quantities(found, quantity, features).table for quantity in accuracies)
    columns, tests = ["mean", "lower", "upper"], sensitivity["class"].tolist()
    positive = 1.0 - specificity[["mean", "upper", "lower"]].to_numpy(), sensitivity[columns].to_numpy()
    table = pd.DataFrame(np.concatenate(positive), columns=columns)
    table["row"], table["class"] = [*range(len(tests))] * 2, np.repeat([0, 1], len(tests))
    table["feature"], table["level"] = tests * 2, pd.Series([found.levels[test][1] for test in tests] * 2, dtype=object)
    prevalence = found.table.query("quantity == 'prevalence'")["mean"]
    ends = dict.fromkeys(f"{p:.1%}" for p in (prevalence.min(), prevalence.max()))
    return table, ["healthy", f"diseased: prevalence {' to '.join(ends)}"]


# == Figure of the classes of a latent class model =================================================

_MOST_PROFILES = 30
_SPACE = 0.6  # of a row, for all classes


def latent_profiles(
    mixture: NaiveBayesMixture | DiagnosticTests,
    data: object = None,
    features: Iterable[object] | None = None,
    prob: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Show the probability of each level in each class of a latent class model.

    In each row, a level distinguishes the classes whose intervals do not overlap. The marks of one colour, from top to
    bottom, are the profile of one class. For diagnostic tests, the classes are the healthy and the diseased.

    Parameters
    ----------
    mixture : fitted NaiveBayesMixture, or DiagnosticTests
        Mixture with columns of levels (categorical, Bernoulli or binned), or the result of `diagnostic_tests`.
    data : arviz.InferenceData or xarray.DataTree, optional
        Result of `sample_latent` for this mixture: posterior means with intervals are drawn. Default: the parameters at
        the end of EM, without intervals. Diagnostic tests have their own draws.
    features : iterable of column names or indices, optional
        Columns whose levels are drawn, or tests. Default: all columns of levels.
    prob : float, optional
        Posterior probability of each interval, in (0, 1). Default: 0.9. Intervals of diagnostic tests have the
        probability that was given to `diagnostic_tests`.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. Default: the axes of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        Axes with one row for each level, and in the row one mark for each class. Of two levels the second is drawn, as
        the first has the complement. Of more than 30 levels, fewer if the axes are low, those are drawn whose
        probabilities differ most between classes, in the order of the columns. For diagnostic tests there is one row
        for each test: the probability of a positive result is 1 - specificity among the healthy, and the sensitivity
        among the diseased.

    Raises
    ------
    TypeError
        If `mixture` is neither a mixture nor a result of `diagnostic_tests`.
    ValueError
        If no column has levels, a column is not known, or `data` are not draws of this mixture; if `data` or `prob` is
        given for diagnostic tests.

    Notes
    -----
    Classes are those of the mixture. If classes overlap much, their names change from draw to draw, and the intervals
    are not informative; see `sample_latent`.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> X = [["yes", "yes", "yes"]] * 30 + [["no", "no", "no"]] * 50 + [["yes", "no", "no"]] * 5
    >>> mixture = bnb.NaiveBayesMixture(2, estimator=bnb.CategoricalNB()).fit(X)
    >>> ax = bnb.plots.latent_profiles(mixture, bnb.sample_latent(mixture, X, draws=200, progress=False))
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['0 = yes', '1 = yes', '2 = yes']
    >>> figure = bnb.plots.detach(ax)
    """
    prob = read_prob(mixture, prob)
    if isinstance(mixture, DiagnosticTests):
        if data is not None:
            raise ValueError("data= is for mixtures; a result of diagnostic_tests has draws. Leave out data=.")
        (table, class_names), left_out, columns = tabulate_accuracy(mixture, features), 0, list(mixture.tests)
    elif isinstance(mixture, NaiveBayesMixture):
        check_is_fitted(mixture)
        require_probability("prob", prob)
        fitted = mixture.estimator_.fitted_
        draws = _draws_at_mean(fitted.posterior, fitted.encoding) if data is None else _read_draws(fitted, data)
        table, left_out = _tabulate_levels(fitted, draws, features, prob)
        share = mixture.weights_ if data is None else draws[CLASS_PROB].mean(axis=0)
        class_names = [f"class {c}: {style.format_percent(round(float(p), 3))}" for c, p in enumerate(share)]
        columns = list(fitted.encoding.feature_names)
    else:
        raise bad_argument("mixture", mixture, "a NaiveBayesMixture or a result of diagnostic_tests", TypeError)
    n_classes, feature = len(class_names), labels(columns, 22)
    height = style.ROW * max(1.0, 0.5 * n_classes)
    difference = table.groupby("row")["mean"].agg(np.ptp).sort_values(ascending=False, kind="stable")
    drawn = np.sort(difference.index[: style.count_fitting_rows(ax, _MOST_PROFILES, row=height)])
    first = table[table["class"] == 0].set_index("row").loc[drawn]
    level = {f: labels(own["level"], 14) for f, own in table.groupby("feature", sort=False)}
    names = [f"{feature[f]} = {level[f][v]}" for f, v in zip(first["feature"], first["level"], strict=True)]
    at = np.arange(len(drawn))
    ax = style.open_rows(ax, at, names, height, xlabel="P(level | class)", ylabel="feature = level")
    ax.set_xlim(-0.02, 1.02)
    for c in range(n_classes):
        own = table[table["class"] == c].set_index("row").loc[drawn]
        y, look = at + _SPACE * ((c + 0.5) / n_classes - 0.5), style.look(c)
        ax.hlines(y, own["lower"], own["upper"], color=look["color"], linewidth=1.6)
        ax.plot(own["mean"], y, linestyle="none", markersize=4.5, **look)
    rest = len(difference) - len(drawn)
    is_em = data is None and not isinstance(mixture, DiagnosticTests)
    what = "At the end of EM" if is_em else f"Posterior means and {style.format_percent(prob)} intervals"
    lines = [
        f"{what}, if features are independent in a class",
        f"{len(drawn)} levels that differ most between classes; {rest:,} left out" if rest else "",
        f"Columns without levels, not drawn: {left_out:,}" if left_out else "",
    ]
    marks = [style.legend_mark(name, markersize=4.5, **style.look(c)) for c, name in enumerate(class_names)]
    return style.write_header(ax, lines, marks, names)


def _tabulate_levels(
    fitted: Fitted, draws: Mapping[str, np.ndarray], features: Iterable[object] | None, prob: float
) -> tuple[pd.DataFrame, int]:
    """Mean and interval of the probability of each level in each class, and the number of columns without levels.

    The column `row` numbers the levels. Of two levels of a feature without parents only the second is in the table.
    """
    table = locate_draws(fitted, dict(draws), prob, features).drop(columns="class").rename(columns={"code": "class"})
    table, blocks = table[table["block"] >= 0], fitted.encoding.blocks
    has_levels = table["block"].map([columns.axis()[1] is not None for columns in blocks].__getitem__)
    left_out = table[~has_levels]["feature"].nunique()
    levels = table[has_levels].groupby(["class", "block", "feature"], sort=False)["level"]
    alone = table["block"].map([columns.network is None for columns in blocks].__getitem__)
    table = table[has_levels & ~(alone & (levels.cumcount() == 0) & (levels.transform("size") == 2))]
    if table.empty:
        raise ValueError("latent_profiles: no column has levels. Use parameter_table for numeric columns.")
    return table.assign(row=table.groupby(["block", "position"]).ngroup()), left_out


def _draws_at_mean(model: NaiveBayes, encoding: Encoding) -> dict[str, np.ndarray]:
    """Return two equal draws of the parameters, at their posterior mean."""
    draws = {CLASS_PROB: plug_in(model.class_prior).parameters()["theta"][0]}
    for family, sites in zip(model.blocks, site_names(encoding, model), strict=True):
        draws |= {sites[name]: values for name, values in plug_in(family).parameters().items()}
    return {site: np.stack([values] * 2) for site, values in draws.items()}


def _read_draws(fitted: Fitted, data: object) -> Mapping[str, np.ndarray]:
    """Return the draws of the parameters by site; ValueError if these are not those of the mixture."""
    try:
        return read_parameters(fitted, data).values
    except ValueError as reason:
        raise ValueError(f"data= must be what sample_latent returns for this mixture: {reason}") from None
