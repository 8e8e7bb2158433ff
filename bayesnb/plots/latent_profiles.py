"""Figure of the classes of a latent class model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import bad_argument, require_probability
from bayesnb.encoding import Encoding
from bayesnb.fitted.scoring import plug_in
from bayesnb.fitted.state import Fitted
from bayesnb.model import NaiveBayes
from bayesnb.plots import style
from bayesnb.plots.diagnostic_table import is_diagnostic, read_prob, tabulate_accuracy
from bayesnb.plots.labels import labels
from bayesnb.plots.style import Axes
from bayesnb.uncertainty.class_probabilities import read_parameters
from bayesnb.uncertainty.draws import CLASS_PROB, site_names
from bayesnb.uncertainty.tables import locate_draws

_MOST_PROFILES = 30
_SPACE = 0.6  # of a row, for all classes


def latent_profiles(
    mixture: Any,
    data: Any = None,
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
    if is_diagnostic(mixture):
        if data is not None:
            raise ValueError("data= is for mixtures; a result of diagnostic_tests has draws. Leave out data=.")
        (table, class_names), left_out, names = tabulate_accuracy(mixture, features), 0, mixture.tests
    elif hasattr(mixture, "n_components"):
        check_is_fitted(mixture)
        require_probability("prob", prob)
        fitted = mixture.estimator_.fitted_
        draws = _draws_at_mean(fitted.posterior, fitted.encoding) if data is None else _read_draws(fitted, data)
        table, left_out = _tabulate_levels(fitted, draws, features, prob)
        share = mixture.weights_ if data is None else draws[CLASS_PROB].mean(axis=0)
        class_names = [f"class {c}: {style.format_percent(round(float(p), 3))}" for c, p in enumerate(share)]
        names = fitted.encoding.feature_names
    else:
        raise bad_argument("mixture", mixture, "a NaiveBayesMixture or a result of diagnostic_tests", TypeError)
    n_classes, feature = len(class_names), labels(names, 22)
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
    is_em = data is None and not is_diagnostic(mixture)
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


def _read_draws(fitted: Fitted, data: Any) -> Mapping[str, np.ndarray]:
    """Return the draws of the parameters by site; ValueError if these are not those of the mixture."""
    try:
        return read_parameters(fitted, data).values
    except ValueError as reason:
        raise ValueError(f"data= must be what sample_latent returns for this mixture: {reason}") from None
