"""A drifting stream: decay, a sliding window, or no forgetting.

    python examples/drifting_stream.py

Each batch of rows is predicted before it is counted. Counts stay for good (`partial_fit`), decay (`decay(factor)`
before each batch: the power prior), or are removed after some batches (`forget`). The factor and the length of the
window are chosen on the first part of the stream, by log loss, and tested on the rest. The data are synthetic: normal
features whose means are constant, wander (an autoregressive process), or jump once after the choice was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import bayesnb as bnb

BATCHES, FIRST, ROWS, CLASSES, FEATURES, SEED = 90, 30, 60, 3, 6, 0
FACTORS, WINDOWS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98), (1, 2, 4, 8, 16)

INTRODUCTION = f"""\
{BATCHES} batches of {ROWS} rows, {CLASSES} classes, {FEATURES} features.
Factor and window are chosen on batches 2 to {FIRST}. Scores are over the {BATCHES - FIRST} later batches; each row is
predicted before its batch is counted. Log loss in nats. difference: from "all rows", ± the standard error over batches;
negative is better.
"""

MORAL = """\
How to read this
  If means wander, old rows are misleading, and both ways of forgetting win. Decay and window perform alike. Decay keeps
  no rows; a window keeps the rows that it will forget later.
  If means are constant, forgetting discards useful rows. The choice on the first part of the stream notices this: it
  takes the factor and the window that forget least, which cost little.
  The chosen factor and window assume that the future drifts as fast as the first part. If means jump after a constant
  first part, the choice is slow forgetting. It beats never forgetting, but is far worse than fast forgetting: see the
  last column, which nobody could know in advance. Here the window is better than decay, because a window drops old rows
  completely, and decay never does.
  The posterior of decayed counts describes the uncertainty after this number of rows if all rows have the same means.
  It does not include how far the means may have moved. Compare factors by their predictions, not by the evidence, which
  is that of weighted rows.
"""

Batch = tuple[np.ndarray, np.ndarray]


def wandering(rng: np.random.Generator, means: np.ndarray, batch: int) -> np.ndarray:
    return 0.98 * means + rng.normal(0, 0.12, means.shape)


def still(rng: np.random.Generator, means: np.ndarray, batch: int) -> np.ndarray:
    return means


def jumping(rng: np.random.Generator, means: np.ndarray, batch: int) -> np.ndarray:
    return rng.normal(0, 0.6, means.shape) if batch == (FIRST + BATCHES) // 2 else means


def stream(move: Callable[[np.random.Generator, np.ndarray, int], np.ndarray]) -> Iterator[Batch]:
    rng = np.random.default_rng(SEED)
    means = rng.normal(0, 0.6, (CLASSES, FEATURES))
    for batch in range(BATCHES):
        means = move(rng, means, batch)
        y = rng.integers(0, CLASSES, ROWS)
        yield rng.normal(means[y], 1), y


def prequential(batches: list[Batch], learn: Callable[[Any, list[Batch], int], None]) -> np.ndarray:
    """Return accuracy and log loss of each batch but the first, (batches - 1, 2), before it is counted."""
    nb, scores = bnb.GaussianNB().partial_fit(*batches[0], classes=range(CLASSES)), []
    for t, (X, y) in enumerate(batches[1:], 1):
        log_proba = nb.predict_log_proba(X)
        scores.append((np.mean(log_proba.argmax(axis=1) == y), -np.mean(log_proba[np.arange(len(y)), y])))
        learn(nb, batches, t)
    return np.array(scores)


def count_all(nb: Any, batches: list[Batch], t: int) -> None:
    nb.partial_fit(*batches[t])


def fade(factor: float) -> Callable[[Any, list[Batch], int], None]:
    return lambda nb, batches, t: nb.decay(factor).partial_fit(*batches[t])


def slide(window: int) -> Callable[[Any, list[Batch], int], None]:
    def learn(nb: Any, batches: list[Batch], t: int) -> None:
        nb.partial_fit(*batches[t])
        if t >= window:
            nb.forget(*batches[t - window])

    return learn


def report(name: str, batches: list[Batch]) -> None:
    everything = prequential(batches, count_all)
    families = {
        "all rows": {"": everything},
        "decay": {f"{f:g} a batch": prequential(batches, fade(f)) for f in FACTORS},
        "window": {f"{w} batch{'es' * (w > 1)}": prequential(batches, slide(w)) for w in WINDOWS},
    }
    print(f"{name:<20} {'chosen':<14} {'accuracy':>8} {'log loss':>9} {'difference':>17} {'best, in hindsight':>20}")
    for title, runs in families.items():
        chosen = min(runs, key=lambda key: runs[key][: FIRST - 1, 1].mean())
        later = {key: scores[FIRST - 1 :] for key, scores in runs.items()}
        best = min(later, key=lambda key: later[key][:, 1].mean())
        more = (later[chosen] - everything[FIRST - 1 :])[:, 1]
        difference = f"{more.mean():+.3f} ± {more.std(ddof=1) / np.sqrt(len(more)):.3f}" if chosen else "-"
        accuracy, loss = later[chosen].mean(axis=0)
        hindsight = f"{later[best][:, 1].mean():.3f} ({best})" if chosen else "-"
        print(f"  {title:<18} {chosen:<14} {accuracy:>8.3f} {loss:>9.3f} {difference:>17} {hindsight:>20}")
    print(flush=True)


def main() -> None:
    print(INTRODUCTION)
    for name, move in {"means wander": wandering, "means constant": still, "means jump once": jumping}.items():
        report(name, list(stream(move)))
    print(MORAL)


if __name__ == "__main__":
    main()
