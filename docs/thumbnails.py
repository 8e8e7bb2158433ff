"""The small pictures of the gallery's index: `python docs/thumbnails.py` writes them to docs/_generated/thumbnails/.

Each is a figure of bayesnb.plots, drawn at the size at which it is shown, without header and axis labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib
import pandas as pd
from matplotlib import pyplot
from matplotlib.axes import Axes
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import bayesnb as bnb
from bayesnb.evaluation import reliability

SIZE = (2.6, 2.0)
SHORT = {"sepal length (cm)": "sepal length", "sepal width (cm)": "sepal width", "petal length (cm)": "petal length"}


def thumbnails() -> Iterator[tuple[str, Callable[[Axes], object]]]:
    """Yield the name of each figure, and the function that draws it."""
    iris, wine, cancer = (load(as_frame=True) for load in (load_iris, load_wine, load_breast_cancer))
    X, y = iris.data.rename(columns=SHORT), iris.target.map(dict(enumerate(iris.target_names)))
    gaussian = bnb.GaussianNB().fit(X, y)
    yield "forest", lambda ax: bnb.plots.forest(gaussian, features=["sepal length", "sepal width"], ax=ax)

    levels = X[::6].round().astype(int)
    few = bnb.CategoricalNB().fit(levels, y[::6])
    half = bnb.CategoricalNB(alpha=2).fit(levels, y[::6])
    yield "estimates", lambda ax: bnb.plots.estimates(half, ["petal length"], ax=ax, top=3)
    yield "prior_posterior", lambda ax: bnb.plots.prior_posterior(half, ["petal length"], ax=ax, top=3)
    yield "shrinkage", lambda ax: bnb.plots.shrinkage(few, ax=ax)
    proline = wine.data[["proline"]], wine.target
    binned = bnb.BinnedNB().fit(*proline)
    yield "density", lambda ax: bnb.plots.density(binned, "proline", *proline, ax=ax)
    quarters = wine.data[["alcohol", "flavanoids", "hue", "proline"]].apply(
        lambda column: pd.qcut(column, 4, labels=[*"1234"])
    )
    mixture = bnb.NaiveBayesMixture(2, estimator=bnb.CategoricalNB()).fit(quarters)
    draws = bnb.sample_latent(mixture, quarters, progress=False)
    yield "latent_profiles", lambda ax: bnb.plots.latent_profiles(mixture, draws, ax=ax)
    sureness = bnb.prior_predictive(bnb.CategoricalNB().fit(levels.iloc[:, :2], y[::6]))
    yield "prior_predictive", lambda ax: bnb.plots.prior_predictive(sureness, ax=ax)

    X, y = cancer.data, cancer.target.map({0: "malignant", 1: "benign"})
    three = X[["mean texture", "mean symmetry", "smoothness error"]]
    nb = bnb.GaussianNB().fit(three[:100], y[:100])
    yield "prediction_intervals", lambda ax: bnb.plots.prediction_intervals(nb, three[100:250], y[100:250], ax=ax)
    six = X.iloc[:, :6].rename(columns=lambda name: name.removeprefix("mean "))
    weighted = bnb.WeightedNB(bnb.GaussianNB()).fit(six[:300], y[:300])
    doubtful = 300 + abs(weighted.predict_proba(six[300:])[:, 0] - 0.5).argmin()
    reasons = bnb.explain(weighted, six.iloc[[doubtful]])
    yield "explain", lambda ax: bnb.plots.explain(reasons, ax=ax)
    weights = bnb.weight_table(bnb.WeightedNB(bnb.GaussianNB()).fit(X[:300], y[:300]))
    yield "weights", lambda ax: bnb.plots.weights(weights, names=["mean radius", "mean texture", "mean area"], ax=ax)

    plain = bnb.GaussianNB().fit(six[:300], y[:300])
    tables = {
        name: reliability(nb.predict_log_proba(six[300:]), y[300:], nb.classes_, bins=5, strategy="quantile")
        for name, nb in {"plain": plain, "weighted": weighted}.items()
    }
    yield "reliability", lambda ax: bnb.plots.reliability(tables, ax=ax).set_ylim(0.6, 1.03)
    pairs = bnb.check_independence(plain, six, y)
    yield "independence", lambda ax: bnb.plots.independence(pairs, ax=ax)
    check = bnb.posterior_predictive_check(plain, six, y, draws=200)
    yield "predictive_check", lambda ax: bnb.plots.predictive_check(check, top=5, ax=ax)
    tan = bnb.TAN().fit(six.apply(lambda column: pd.qcut(column, 4, labels=False)), y)
    yield "structure", lambda ax: bnb.plots.structure(tan, ax=ax)


def write(folder: Path) -> list[Path]:
    """Draw all thumbnails as SVG, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with matplotlib.rc_context({"svg.hashsalt": "bayesnb", "font.size": 8}):
        for name, draw in thumbnails():
            figure, ax = pyplot.subplots(figsize=SIZE, layout="constrained")
            draw(ax)
            if ax.get_legend():
                ax.get_legend().remove()
            ax.set(xlabel="", ylabel="")
            written.append(folder / f"{name}.svg")
            figure.savefig(written[-1], metadata={"Date": None})
            pyplot.close(figure)
    return written


if __name__ == "__main__":
    matplotlib.use("agg")
    print(*write(Path(__file__).parent / "_generated" / "thumbnails"), sep="\n")
