"""Two Gaussian features: where the classifier decides what, and where it lacks data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayesnb import uncertainty
from bayesnb.encoding import Encoding
from bayesnb.fitted import Classifier, require_posterior
from bayesnb.plots.scaled import chosen
from bayesnb.plots.style import axes, bare, dot, header, look
from bayesnb.plots.text import font, labels, require_matplotlib

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_COARSE, _FINE = 41, 241
_TINT, _DARK = 0.30, 0.75
_MARGIN = 0.25


def uncertainty_map(
    nb: Classifier,
    X: Any,
    y: Any,
    features: Sequence[Any] = (0, 1),
    given: Literal["row", "data"] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Decision regions over two Gaussian features, darker where the parameters are less known.

    Read the tint for the class that is most probable there, and the darkness for how much of the doubt about the label
    would go if the parameters were known: between classes of few rows it is dark.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
    X : array-like or DataFrame of shape (N, F)
    y : (N,) array-like
        Rows and labels to draw as points.
    features : two column names or indices, default the first two
        All others are missing in every point of the map, which marginalises them: with more than two features this
        is the classifier that knows only these two cells.
    given : {"row", "data"}, optional
        As for `decompose_uncertainty`: by default the row, and the data where terms are weighted.
    ax : Axes, optional

    Returns
    -------
    Axes
        The colour bar is a further Axes of its figure.

    Raises
    ------
    ValueError
        If `features` are not two Gaussian columns, or if y holds a label that is no class.

    Notes
    -----
    Tints are the most probable classes, darkness the epistemic part of the entropy of the label, in nats:
    the mutual information of label and parameters. It says what the data leave unknown about the parameters if naive
    Bayes holds; a light region is not one in which the classifier is right.

    Examples
    --------
    >>> import bayesnb as bnb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> X, y = X[["petal length (cm)", "petal width (cm)"]][::5], y[::5]
    >>> ax = bnb.plots.uncertainty_map(bnb.GaussianNB().fit(X, y), X, y)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('petal length (cm)', 'petal width (cm)')
    >>> figure = bnb.plots.detach(ax)
    """
    require_matplotlib()
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgb
    from scipy.ndimage import zoom

    encoding = require_posterior(nb, "plots.uncertainty_map").encoding
    pair = _gaussian_pair(encoding, features)
    points, index = _points(encoding, X, y, pair)
    horizontal, vertical = (_range(points[:, i]) for i in (0, 1))
    ax = axes(ax, 6.6, 5.4)
    fine = _grid(nb, encoding, pair, horizontal, vertical, _FINE)
    region = np.argmax(nb.predict_proba(fine, estimate="predictive"), axis=1).reshape(_FINE, _FINE)
    coarse = _grid(nb, encoding, pair, horizontal, vertical, _COARSE)
    split = uncertainty.decompose_uncertainty(nb, coarse, given=given)
    epistemic = split["epistemic"].to_numpy().reshape(_COARSE, _COARSE)
    norm = Normalize(0, max(float(np.nanmax(epistemic)), 1e-12))
    tints = 1 - _TINT * (1 - np.array([to_rgb(look(i)["color"]) for i in range(len(nb.classes_))]))
    light = 1 - _DARK * np.asarray(norm(zoom(epistemic, _FINE / _COARSE, order=1, grid_mode=False)))
    ax.imshow(
        tints[region] * light[..., None],
        extent=(*horizontal, *vertical),
        origin="lower",
        aspect="auto",
        interpolation="bilinear",
    )
    _boundaries(ax, region, horizontal, vertical)
    dark = LinearSegmentedColormap.from_list("darkness", [(1, 1, 1), (1 - _DARK,) * 3])
    shade = ScalarMappable(norm, dark)
    names = labels(nb.classes_, 16)
    marks = []
    for i, name in enumerate(names.values()):
        own = points[index == i]
        ax.scatter(own[:, 0], own[:, 1], s=22, edgecolors="white", linewidths=0.6, zorder=3, **look(i))
        marks.append(dot(name, markersize=5, **look(i)))
    titles = labels(pair, 36)
    ax.set(xlim=horizontal, ylim=vertical)
    ax.set_xlabel(titles[pair[0]], **font([titles[pair[0]]]))
    ax.set_ylabel(titles[pair[1]], **font([titles[pair[1]]]))
    ax.figure.colorbar(shade, ax=ax, label="epistemic entropy (nats)").outline.set_visible(False)
    bare(ax)
    others = encoding.n_features - 2
    incomplete = int(np.isnan(points).any(axis=1).sum())
    lines = [
        "Tint: most probable class",
        "Dark: doubt that is owed to unknown parameters",
        f"{others} other feature{'s' * (others != 1)} marginalised" if others else "",
        f"{incomplete} rows lack one of the two cells" if incomplete else "",
    ]
    header(ax, lines, marks)
    return ax


def _boundaries(ax: Axes, region: np.ndarray, horizontal: tuple[float, float], vertical: tuple[float, float]) -> None:
    """White lines where the most probable class changes."""
    x, y = (np.linspace(*ends, len(region)) for ends in (horizontal, vertical))
    for i in np.unique(region)[1:]:
        ax.contour(x, y, region == i, levels=[0.5], colors="white", linewidths=0.8)


def _gaussian_pair(encoding: Encoding, features: Sequence[Any]) -> list[str]:
    pair = chosen(encoding, features)
    # Of any sign, so that the plane around the points is a plane.
    gaussian = [name for block in encoding.blocks if not block.family.nonnegative for name in block.names]
    if len(set(pair)) != 2 or not set(pair) <= set(gaussian):
        raise ValueError(
            f"features={features!r} must be two different Gaussian columns; those of this classifier are "
            f"{gaussian[:8]}{' …' * (len(gaussian) > 8)}."
        )
    return pair


def _points(encoding: Encoding, X: Any, y: Any, pair: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """(N, 2) cells of the two columns, NaN where missing, and (N,) indices of the classes."""
    names = encoding.feature_names
    if hasattr(X, "columns"):
        cells = [np.asarray(X[name], dtype=float) for name in pair]
    else:
        cells = [np.asarray(np.asarray(X)[:, names.index(name)], dtype=float) for name in pair]
    position = {label: i for i, label in enumerate(encoding.classes.values)}
    truth = list(np.asarray(y, dtype=object))
    strange = next((label for label in truth if label not in position), None)
    if strange is not None:
        raise ValueError(
            f"y holds {strange!r}, which is no class; the classes are {list(encoding.classes.values)[:8]}."
        )
    if len(truth) != len(cells[0]):
        raise ValueError(f"y has {len(truth)} labels, but X has {len(cells[0])} rows.")
    return np.stack(cells, axis=1), np.array([position[label] for label in truth], dtype=int)


def _grid(
    nb: Classifier,
    encoding: Encoding,
    pair: list[str],
    horizontal: tuple[float, float],
    vertical: tuple[float, float],
    n: int,
) -> pd.DataFrame | np.ndarray:
    """The (n², F) rows over n points a side, with names if the classifier knows them."""
    import pandas as pd

    x, y = np.linspace(*horizontal, n), np.linspace(*vertical, n)
    names = encoding.feature_names
    rows = np.full((n * n, len(names)), np.nan)
    rows[:, names.index(pair[0])] = np.tile(x, n)
    rows[:, names.index(pair[1])] = np.repeat(y, n)
    named = getattr(nb, "feature_names_in_", None)
    return rows if named is None else pd.DataFrame(rows, columns=named)


def _range(values: np.ndarray) -> tuple[float, float]:
    low, high = np.nanmin(values), np.nanmax(values)
    margin = _MARGIN * (high - low) or 1.0
    return float(low - margin), float(high + margin)
