"""A changed prevalence: estimating it without labels, and its effect on diagnoses.

A classifier is trained on tumours of which 37% are malignant, and used in populations in which 5%, 20% or 60% are
malignant. `estimate_prevalence` estimates the new share from rows without labels, with an interval, and
`predict_proba(X, class_prior=)` applies it.

    python examples/moved_prevalence.py [--out DIR]

Breast cancer comes with scikit-learn: half of the rows are training rows. From the others, 200 rows are drawn with
replacement, so that each is malignant with the new share. This is repeated 20 times, with plain naive Bayes and with
weighted terms.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import bayesnb as bnb
from bayesnb.evaluation import scores

SHARES, ROWS, REPEATS = (0.05, 0.2, 0.6), 200, 20
MODELS = {"naive Bayes": bnb.GaussianNB(), "weighted": bnb.WeightedNB(bnb.GaussianNB())}

INTRODUCTION = """\
Share of malignant tumours among {rows} rows without labels; {training:.0%} of the training rows are malignant. labels:
share of malignant predictions. probabilities: mean of predict_proba. posterior: mean of estimate_prevalence. Each has
its root mean squared error over {repeats} draws (±, in percentage points). covers: draws whose 90% interval contains
the true share. log loss: with the training prior -> with the new prior.
"""

CONCLUSION = """
How to read this
  Predicted labels contain errors, and the training prior pulls each doubtful row towards 37%. If 5% are malignant, both
  predicted labels and mean probabilities overestimate the share; if 60% are malignant, both underestimate it. The
  posterior of `estimate_prevalence` does not use the training share: it uses the likelihood of all rows under each
  share.
  The posterior assumes that the scores are correct. Plain naive Bayes is almost certain of nearly every row, because
  measurements of one tumour repeat one another. The posterior is then little more than a count of predicted labels,
  with an interval as if these were right. Weights calibrate the scores, and with them the interval.
  The new share also improves predictions: if 5% are malignant, it halves the log loss of the weighted scores. The log
  loss of plain naive Bayes stays far higher, because a new class prior hardly changes probabilities near 0 and 1.
  All this rests on an assumption that rows without labels cannot confirm: malignant and benign tumours look as they did
  in training, and only their shares have changed.
"""


def split(repeat: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return one half of the rows for training and one half to draw from."""
    data = load_breast_cancer()
    y = data.target_names[data.target]
    return train_test_split(data.data, y, test_size=0.5, stratify=y, random_state=repeat)


def population(y: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Draw rows, each of which is malignant with the given probability."""
    malignant, benign = (rng.choice(np.flatnonzero(y == name), ROWS) for name in ("malignant", "benign"))
    return np.where(rng.random(ROWS) < share, malignant, benign)


def one_draw(repeat: int) -> list[dict[str, float | str]]:
    """Score both classifiers at each new share."""
    X, X_test, y, y_test = split(repeat)
    rng, found = np.random.default_rng(repeat), []
    fitted = {name: nb.fit(X, y) for name, nb in MODELS.items()}
    for share in SHARES:
        rows = population(y_test, share, rng)
        for name, nb in fitted.items():
            found.append({"share": share, "model": name, **outcome(nb, X_test[rows], y_test[rows], share)})
    return found


def outcome(nb, X: np.ndarray, y: np.ndarray, share: float) -> dict[str, float]:
    """Return three estimates of the share of malignant rows, and scores before and after the correction."""
    c = list(nb.classes_).index("malignant")
    before, posterior = nb.predict_log_proba(X), bnb.estimate_prevalence(nb, X)
    after = nb.predict_log_proba(X, class_prior=posterior.mean)
    return {
        "labels": (nb.predict(X) == "malignant").mean(),
        "probabilities": np.exp(before[:, c]).mean(),
        "posterior": posterior.mean[c],
        "covers": float(posterior.lower[c] <= share <= posterior.upper[c]),
        "before": scores(before, y, nb.classes_)["log_loss"],
        "after": scores(after, y, nb.classes_)["log_loss"],
    }


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means over the draws, and the errors of the estimates."""
    rows = {}
    for (share, model), own in frame.groupby(["share", "model"]):
        texts = {}
        for name in ("labels", "probabilities", "posterior"):
            error = np.sqrt(((own[name] - share) ** 2).mean())
            texts[name] = f"{own[name].mean():.3f} ± {100 * error:.1f}"
        texts["covers"] = f"{int(own['covers'].sum())} of {len(own)}"
        texts["log loss"] = f"{own['before'].mean():.3f} -> {own['after'].mean():.3f}"
        rows[f"{share:.0%}", model] = texts
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["true", "model"])


def draw(path: Path) -> None:
    """Draw posterior and training shares of one draw at the smallest share."""
    import matplotlib

    matplotlib.use("Agg")
    X, X_test, y, y_test = split(0)
    rows = population(y_test, SHARES[0], np.random.default_rng(0))
    nb = MODELS["weighted"].fit(X, y)
    result = bnb.estimate_prevalence(nb, X_test[rows])
    ax = pd.DataFrame(result.draws, columns=result.classes).plot.box(xlabel="class", ylabel="share of the class")
    ax.plot(ax.get_xticks(), result.training, "D", label="share in training")
    ax.legend()
    ax.figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figure")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    training = (load_breast_cancer().target == 0).mean()
    print(INTRODUCTION.format(rows=ROWS, training=training, repeats=REPEATS))
    frame = pd.DataFrame([row for repeat in range(REPEATS) for row in one_draw(repeat)])
    print(table(frame).to_string())
    print(CONCLUSION)
    if find_spec("matplotlib") is None:
        print("No figure: install matplotlib to draw one.")
        return
    draw(out / "moved_prevalence.png")
    print(f"Figure in {out}/")


if __name__ == "__main__":
    main()
