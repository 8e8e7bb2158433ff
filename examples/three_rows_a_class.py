"""Three rows per class: the benefit of a prior with few rows, and its cost with many.

    python examples/three_rows_a_class.py [--out DIR]

Maximum likelihood, Bayes (the predictive of GaussianNB with its default prior) and logistic regression are fitted to 3,
5, 10 and 20 rows of each class of iris, wine and breast cancer, 30 times each, and scored on other rows.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesnb import GaussianNB
from bayesnb.evaluation import learning_curve

DATA = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}
SIZES, REPEATS, SEED = (3, 5, 10, 20), 30, 0
NAMES = {"mle": "MLE", "predictive": "Bayes", "Pipeline": "logistic"}

INTRODUCTION = """\
Brier score (0 is best) after 3 to 20 rows of each class, mean of 30 draws ± standard error; in brackets the mean
top probability that is stated, and the share of right predictions"""

CONCLUSION = """\
Three rows hardly determine a variance. The MLE treats its estimate as known, and is often certain and wrong; Bayes
integrates the variance out. This is the only advantage of Bayes here, and it vanishes with more rows.
Both are naive Bayes. In cancer the features depend on each other within a class, so both stay far too confident at 20
rows, and logistic regression, which does not assume independence, beats both. A posterior describes the uncertainty
about parameters if the model holds, not whether the model holds."""


def curve(name: str) -> pd.DataFrame:
    """Return the learning curve of one data set for MLE, Bayes and logistic regression."""
    X, y = DATA[name](return_X_y=True)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    frame = learning_curve(GaussianNB(), X, y, SIZES, REPEATS, SEED, baselines=[logistic], progress=name)
    frame["estimate"] = frame["estimate"].str.partition("(")[0].map(NAMES)
    return frame.dropna(subset="estimate", ignore_index=True)


def table(frame: pd.DataFrame) -> str:
    """Format the curve, one line per size; a mark shows the best Brier score of a size."""
    best = frame.groupby("size")["brier"].transform("min")
    mark = np.where(frame["brier"] == best, "*", " ")
    cells = [
        f"{m}{row['brier']:.3f} ± {row['brier_se']:.3f} ({row['confidence']:.2f}, {row['accuracy']:.2f})"
        for row, m in zip(frame.to_dict("records"), mark, strict=True)
    ]
    wide = frame.assign(cell=cells).pivot(index="size", columns="estimate", values="cell")[list(NAMES.values())]
    return wide.rename_axis(index="rows a class", columns=None).to_string()


def draw(frames: dict[str, pd.DataFrame], path: Path) -> None:
    """Draw one panel for each data set."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(frames), figsize=(5.0 * len(frames), 4.6), layout="constrained")
    for panel, (name, frame) in zip(panels, frames.items(), strict=True):
        brier, error = (frame.pivot(index="size", columns="estimate", values=c) for c in ("brier", "brier_se"))
        brier.plot(ax=panel, yerr=error, logx=True, marker="o", xlabel="training rows per class", ylabel="Brier score")
        panel.set_title(name, loc="left")
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the table and the figure")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    print(INTRODUCTION)
    frames = {}
    for name in DATA:
        frames[name] = curve(name)
        print(f"{name}\n{table(frames[name])}", flush=True)
    print(CONCLUSION)
    path = out / "three_rows_a_class.csv"
    pd.concat(frames, names=["data"]).reset_index("data").to_csv(path, index=False)
    print(f"Written: {path}")
    if find_spec("matplotlib") is None:
        print("No figure: install matplotlib to draw one.")
        return
    draw(frames, path.with_suffix(".png"))
    print(f"Written: {path.with_suffix('.png')}")


if __name__ == "__main__":
    main()
