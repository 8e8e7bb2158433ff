"""Pictures of README.md and of the landing page: `python docs/pictures.py` writes them to docs/_generated/pictures/.

They are the same for the same versions of the packages: dates are left out, and identifiers do not depend on chance.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import pyplot
from matplotlib.axes import Axes
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import cross_val_predict

import bayesnb as bnb
from bayesnb.evaluation import reliability
from bayesnb.plots.style import COLOURS

SIZE = (5.2, 3.6)
DAYS = """\
outlook,play
sunny,no
sunny,no
overcast,yes
rain,yes
rain,yes
rain,no
overcast,yes
sunny,no
sunny,yes
rain,yes
sunny,yes
overcast,yes
overcast,yes
rain,no"""


def few_rows(ax: Axes) -> None:
    """Maximum likelihood beside Bayes, from three rows of each class on."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    sizes = [3, 5, 10, 20]
    curve = bnb.learning_curve(bnb.GaussianNB(), X, y, sizes, repeats=20)
    scores = curve[curve["same_as"] == ""].pivot(index="size", columns="estimate", values="brier")
    scores.plot(ax=ax, logx=True, marker="o", xticks=sizes, xlabel="training rows per class", ylabel="Brier score")
    ax.set_xticks(sizes, labels=sizes)
    ax.minorticks_off()


def posterior(ax: Axes) -> None:
    """Posterior intervals of the outlook's probabilities from fourteen days, with the observed proportions."""
    days = pd.read_csv(io.StringIO(DAYS))
    bnb.plots.forest(bnb.CategoricalNB().fit(days[["outlook"]], days["play"]), features=["outlook"], ax=ax)


def calibrated(ax: Axes) -> None:
    """Stated confidence against observed accuracy in cross-validation, without and with weights, above a histogram."""
    X, y = load_digits(return_X_y=True)
    models = {"plain": bnb.BernoulliNB(), "weighted": bnb.WeightedNB(bnb.BernoulliNB())}
    log_proba = {name: cross_val_predict(nb, X > 7, y, method="predict_log_proba") for name, nb in models.items()}
    tables = {name: reliability(p, y, range(10), bins=10, strategy="quantile") for name, p in log_proba.items()}
    bnb.plots.reliability(tables, ax=ax)
    ax.set(box_aspect=None, xlim=(0.4, 1.03), ylim=(0.2, 1.03), yticks=np.linspace(0.4, 1, 4))
    ax.set(xlabel="stated confidence: top probability", ylabel="observed accuracy")
    rows = ax.inset_axes((0, 0, 1, 0.2), sharex=ax)
    rows.hist([np.exp(p).max(axis=1) for p in log_proba.values()], bins=np.linspace(0, 1, 21), color=COLOURS[:2])
    rows.text(0.02, 0.45, "number of rows", transform=rows.transAxes, fontsize="small")
    rows.axis("off")


PICTURES: tuple[Callable[[Axes], None], ...] = (few_rows, posterior, calibrated)


def write(folder: Path) -> list[Path]:
    """All pictures, as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with matplotlib.rc_context({"svg.hashsalt": "bayesnb"}):
        for draw in PICTURES:
            figure, ax = pyplot.subplots(figsize=SIZE, layout="constrained")
            draw(ax)
            path = folder / f"{draw.__name__}.svg"
            figure.savefig(path, metadata={"Date": None})
            pyplot.close(figure)
            written.append(path)
    return written


if __name__ == "__main__":
    matplotlib.use("agg")
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "_generated" / "pictures"
    print(*write(target), sep="\n")
