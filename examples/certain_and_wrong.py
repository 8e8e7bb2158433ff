"""Certain, and wrong: what no interval of a wrong model can tell.

Naive Bayes of the votes of 435 members of Congress: of each row P(party | votes, all other rows), by forgetting
the row and counting it again. Among the rows with P > .999 some are wrong, far more than one in a thousand, and
their intervals exclude ½: what is wrong is not the parameters but the model, which takes votes for independent
given the party. The check of independence names the pairs.

    python examples/certain_and_wrong.py FILE [--out DIR]

FILE is vote.arff (Congressional Voting Records, 1984; UCI Machine Learning Repository), "?" for a missing vote.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import bayesnb as bnb
from bayesnb.evaluation import reliability


def read(path: Path) -> pd.DataFrame:
    """Columns of strings, None where a vote is missing; the class is the last."""
    names, rows = [], []
    for line in map(str.strip, path.read_text(encoding="utf-8").splitlines()):
        if line.lower().startswith("@attribute"):
            names.append(line.split(None, 1)[1].split("{")[0].strip().strip("'"))
        elif line and line[0] not in "%@":
            rows.append([None if cell.strip() == "?" else cell.strip().strip("'") for cell in line.split(",")])
    return pd.DataFrame(rows, columns=names, dtype=object)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="vote.arff")
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figures")
    options = parser.parse_args()

    table = read(options.file)
    X, y = table.iloc[:, :-1], table.iloc[:, -1].to_numpy(str)
    nb = bnb.CategoricalNB(categories=[["n", "y"]] * X.shape[1]).fit(X, y)

    log_proba, lower, upper = np.empty((len(y), 2)), np.empty((len(y), 2)), np.empty((len(y), 2))
    for i in range(len(y)):
        row, label = X.iloc[[i]], y[[i]]
        nb.forget(row, label)
        log_proba[i] = nb.predict_log_proba(row)[0]
        lower[i], upper[i] = (end[0] for end in bnb.predict_interval(nb, row))
        nb.partial_fit(row, label)

    top = log_proba.argmax(axis=1)
    wrong = nb.classes_[top] != y
    certain = np.exp(log_proba.max(axis=1)) > 0.999
    excludes_half = lower[np.arange(len(y)), top] > 0.5
    print(f"{len(y)} rows, leave-one-out accuracy {1 - wrong.mean():.3f}")
    errors = (certain & wrong).sum()
    print(f"P > .999: {certain.sum()} rows, of which {errors} are wrong ({errors / certain.sum():.1%})")
    print(f"wrong rows whose 90% interval of P excludes 1/2: {(wrong & excludes_half).sum()} of {wrong.sum()}")
    print("""
If naive Bayes held, about one in a thousand of those rows would be wrong at most. The intervals do not help: they
say how well the parameters are known, and with 435 rows they are known well.
""")

    pairs = bnb.check_independence(nb, X, y)
    dependent = (pairs["log_bayes_factor"] > 0).sum()
    print(f"Votes that depend on each other given the party: {dependent} of {len(pairs)} pairs (log Bayes factor > 0)")
    print(pairs.head(8).round(4).to_string(index=False))

    options.out.mkdir(parents=True, exist_ok=True)
    for name, ax in (
        ("reliability", bnb.plots.reliability(reliability(log_proba, y, nb.classes_))),
        ("pairs", bnb.plots.independence(pairs)),
    ):
        ax.figure.savefig(options.out / f"certain_and_wrong-{name}.png", dpi=150, bbox_inches="tight")
    print(f"\nFigures in {options.out}/")


if __name__ == "__main__":
    main()
