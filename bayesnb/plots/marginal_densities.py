"""Figures of the marginal densities of parameters: with the estimates on them, and under the prior."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bayesnb._util.arguments import require_integer
from bayesnb._util.precision import float64
from bayesnb.families import offers
from bayesnb.fitted.state import Classifier, Fitted
from bayesnb.model import NaiveBayes
from bayesnb.plots import style
from bayesnb.plots.parameter_units import ParametersInUnits, select_parameters
from bayesnb.plots.style import Axes
from bayesnb.uncertainty import ImproperPosteriorError, require_proper

_ROW = 3.2 * style.ROW
_HEIGHT = 0.85  # of a row, for the highest density
_MOST_RIDGES = 60
_POINTS = 120
_LEAST_WEIGHT = 1e-6  # of a component of a mixture
_ESTIMATES = ("MLE", "MAP", "mean", "predictive")
# What the predictive distribution of a cell says of a parameter; of a probability it is the posterior mean.
_PREDICTIVE: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("gaussian", "mu"): lambda cell: cell.mean(),
    ("gaussian", "sigma2"): lambda cell: cell.var(),
    ("poisson", "rate"): lambda cell: cell.mean(),
    ("exponential", "rate"): lambda cell: 1.0 / cell.mean(),
}


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
    values = rows[["mle", "map", "mean"]].assign(predictive=_predict(fitted, rows)).to_numpy(float)
    ax = ridges.open_axes(ax, values[np.isfinite(values)])
    points: dict[str, list[tuple[float, float]]] = {}
    for i, (marginal, colour, of_row) in enumerate(zip(ridges.posterior, rows["color"], values, strict=True)):
        height = _heights(marginal)
        _draw(ax, i, marginal, height, color=colour, linewidth=1.4)
        for value, label in _join_equal(of_row):
            points.setdefault(label, []).append((value, i - float(height(marginal.density(value)))))
    marks, colour, paper = [], rcParams["text.color"], ax.get_facecolor()
    for marker, (label, at) in zip(style.MARKS, points.items(), strict=False):
        x, y = np.array(at).T
        ax.vlines(x, y, np.ceil(y), color=colour, linewidth=0.8, linestyle=":")
        # A ring around the other marks stays visible where estimates nearly agree.
        shape = {"markerfacecolor": "none", "markersize": 9} if "MLE" in label else {"markeredgecolor": paper}
        look: dict[str, Any] = {"marker": marker, "color": colour, "markersize": 6} | shape
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

    def density(self, x: Any) -> Any:
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
    mixtures = {b: [(w, *_name_marginals(f)[kind]) for w, f in model.blocks[b].components()] for b in blocks}
    for row in rows.to_dict("records"):
        at, shape, components = (row["code"], row["position"]), shapes[row["block"]], []
        for weights, name, arguments in mixtures[row["block"]]:
            values = {key: float(np.broadcast_to(v, shape)[at]) for key, v in arguments.items()}
            if (weight := float(np.broadcast_to(weights, shape)[at])) > _LEAST_WEIGHT:
                components.append((weight, getattr(stats, name)(**values)))
        marginals.append(_Marginal(components, row["origin"], row["size"]))
    return marginals


@float64
def _name_marginals(component: Any) -> Any:
    """Names and arguments (C, K) of the marginal distributions of a family, by parameter."""
    return component.marginals()


def _predict(fitted: Fitted, rows: pd.DataFrame) -> np.ndarray:
    """Parameters (N,), in the unit of each row, of the predictive distribution of a cell; NaN where none is known."""
    from scipy import stats

    values = np.where(rows["is_level"], rows["mean"], np.nan)
    for i, row in enumerate(rows.to_dict("records")):
        family = fitted.posterior.blocks[row["block"]]
        of_cell = _PREDICTIVE.get((fitted.encoding.blocks[row["block"]].kind, row["kind"]))
        if of_cell is not None and offers(family, "predictive_distribution"):
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


def _heights(posterior: _Marginal, prior: _Marginal | None = None) -> Callable[[Any], Any]:
    """Function from densities to heights in rows, on a scale that holds the posterior and the middle of the prior.

    Densities that are higher, such as at the ends of Beta(½, ½), are cut off.
    """
    inner = [posterior.density(np.linspace(*posterior.interval(0.98), _POINTS))]
    inner += [] if prior is None else [prior.density(np.linspace(*prior.interval(0.5), _POINTS))]
    highest = max(float(np.nanmax(density)) for density in inner)
    return lambda density: _HEIGHT * np.minimum(density / highest, 1.0)


def _draw(ax: Axes, i: int, marginal: _Marginal, height: Callable[[Any], Any], **line: Any) -> None:
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
