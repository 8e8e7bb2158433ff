"""Figure of the classes of a latent class model."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesnb._util.arguments import require_probability
from bayesnb.fitted import Fitted
from bayesnb.plots import style
from bayesnb.plots.diagnostic_table import is_diagnostic, read_prob, tabulate_accuracy
from bayesnb.plots.labels import labels
from bayesnb.scoring import plug_in
from bayesnb.uncertainty.draws import CLASS_PROB, site_names

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_MOST_ROWS = 30
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
            raise ValueError(
                "data= is for mixtures, and this result of diagnostic_tests has its draws. Leave out data=."
            )
        (table, class_names), left_out = tabulate_accuracy(mixture, features), 0
        feature = labels(mixture.tests, 22)
    elif hasattr(mixture, "n_components"):
        check_is_fitted(mixture)
        require_probability("prob", prob)
        fitted = mixture.estimator_.fitted_
        table, left_out = _tabulate_levels(fitted, data, features, prob)
        share = mixture.weights_ if data is None else _read_site(data, CLASS_PROB).mean(axis=0)
        class_names = [f"class {c}: {style.format_percent(round(float(p), 3))}" for c, p in enumerate(share)]
        feature = labels(fitted.encoding.feature_names, 22)
    else:
        raise TypeError(
            f"mixture must be a NaiveBayesMixture or a result of diagnostic_tests; it is a {type(mixture).__name__}."
        )
    n_classes = len(class_names)
    height = style.ROW * max(1.0, 0.5 * n_classes)
    difference = table.groupby("row")["mean"].agg(np.ptp).sort_values(ascending=False, kind="stable")
    drawn = np.sort(difference.index[: style.count_fitting_rows(ax, _MOST_ROWS, row=height)])
    ax = style.open_row_axes(ax, len(drawn), height)
    offset = _SPACE * ((np.arange(n_classes) + 0.5) / n_classes - 0.5)
    for c in range(n_classes):
        own = table[(table["class"] == c) & table["row"].isin(drawn)].sort_values("row")
        y = np.arange(len(drawn)) + offset[c]
        look = style.look(c)
        ax.hlines(y, own["lower"], own["upper"], color=look["color"], linewidth=1.6)
        ax.plot(own["mean"], y, linestyle="none", markersize=4.5, **look)
    first = table[table["class"] == 0].set_index("row").loc[drawn]
    level = {f: labels(own["level"], 14) for f, own in table.groupby("feature", sort=False)}
    names = [f"{feature[f]} = {level[f][v]}" for f, v in zip(first["feature"], first["level"], strict=True)]
    style.name_rows(ax, np.arange(len(drawn)), names)
    ax.set(xlim=(-0.02, 1.02), xlabel="P(level | class)", ylabel="feature = level")
    rest = len(difference) - len(drawn)
    is_em = data is None and not is_diagnostic(mixture)
    what = "At the end of EM" if is_em else f"Posterior means and {style.format_percent(prob)} intervals"
    lines = [
        f"{what}, if features are independent in a class",
        f"{len(drawn)} levels that differ most between classes; {rest:,} left out" if rest else "",
        f"Columns without levels, not drawn: {left_out:,}" if left_out else "",
    ]
    marks = [style.legend_mark(name, markersize=4.5, **style.look(c)) for c, name in enumerate(class_names)]
    style.write_header(ax, lines, marks, names)
    return ax


def _tabulate_levels(
    fitted: Fitted, data: Any, features: Iterable[object] | None, prob: float
) -> tuple[pd.DataFrame, int]:
    """Table of levels and classes, with the mean and interval of each probability, and the number of other columns.

    A level has one number, "row", for all classes. Of two levels the second is in the table.
    """
    import pandas as pd

    encoding = fitted.encoding
    chosen = None if features is None else encoding.positions(features)
    parts, left_out, n_rows = [], 0, 0
    for columns, family, sites in zip(
        encoding.blocks, fitted.posterior.blocks, site_names(encoding, fitted.prior), strict=True
    ):
        within, levels = columns.axis()
        wanted = np.array([chosen is None or int(columns.index[j]) in chosen for j in within], bool)
        if levels is None:
            left_out += len({int(j) for j in within[wanted]})
            continue
        if data is None:
            mean = np.asarray(plug_in(family).parameters()["theta"])[:, : len(levels)]
            lower = upper = mean
        else:
            draws = _read_site(data, sites["theta"])
            if draws.shape[1:] != (len(encoding.classes), len(levels)):
                raise ValueError(
                    f"data= has probabilities of shape {draws.shape[1:]}, but the mixture has {len(encoding.classes)} "
                    f"classes and {len(levels)} levels: the shape must be {(len(encoding.classes), len(levels))}. "
                    "Pass what sample_latent returns for this mixture."
                )
            mean = draws.mean(axis=0)
            lower, upper = np.quantile(draws, [0.5 - prob / 2, 0.5 + prob / 2], axis=0)
        is_complement = np.zeros(len(levels), bool) if columns.network is not None else _is_first_of_two(within)
        at = np.flatnonzero(wanted & ~is_complement)
        names = [columns.names[j] for j in within[at]]
        for c in range(len(mean)):
            numbers = {"mean": mean[c, at], "lower": lower[c, at], "upper": upper[c, at]}
            shown: list[Hashable] = [levels[i] for i in at.tolist()]
            rows = np.arange(n_rows, n_rows + len(at))
            parts.append(pd.DataFrame({"row": rows, "feature": names, "level": shown, "class": c, **numbers}))
        n_rows += len(at)
    if not n_rows:
        raise ValueError("latent_profiles: no column has levels. Use parameter_table for numeric columns.")
    return pd.concat(parts, ignore_index=True), left_out


def _is_first_of_two(within: np.ndarray) -> np.ndarray:
    """(L,) whether a level is the first of a feature with two levels, given the feature of each level."""
    size = np.bincount(within)[within]
    first = np.append(True, within[1:] != within[:-1])
    return np.asarray(first & (size == 2))


def _read_site(data: Any, site: str) -> np.ndarray:
    """(S, …) draws of a variable of the posterior; ValueError if there is none of this name."""
    try:
        values = np.asarray(data["posterior"][site].values)
    except (KeyError, TypeError, AttributeError):
        raise ValueError(f"data= has no posterior draws of {site!r}; pass what sample_latent returns.") from None
    return values.reshape(-1, *values.shape[2:])
