"""A daily spam filter: changing words, a changing share of spam, and corrected labels.

    python examples/daily_filter.py [--out DIR]

In the morning the messages of a day are classified with the counts so far; in the evening their labels are known, and
the filter counts them. Counts either stay, or are multiplied by a factor every day (`decay`). The messages are
simulated from a process that differs from the fitted model: see `simulate`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import expit
from sklearn.feature_extraction.text import HashingVectorizer

import bayesnb as bnb

CLASSES = ["ham", "spam"]
DAYS, FIRST, MESSAGES, SEED = 120, 40, 80, 0
FACTORS = (1.0, 0.99, 0.98, 0.95, 0.9, 0.8, 0.6)
COLUMNS, ALPHA = 2**12, 0.02
OLD, SPREAD, ENDS, MEAN_LOGIT = 300, 1.2, 0.05, -0.7
Source = tuple[list[str], np.ndarray]

INTRODUCTION = f"""\
{DAYS} days with {MESSAGES} messages each. Before the messages of a day are counted, earlier counts are multiplied by
"factor"; factor 1 forgets nothing. half-life: days until a message has half its weight. Log loss in nats per message,
before it is counted: on days 2 to {FIRST}, which choose the factor, and on the {DAYS - FIRST} later days. against 1:
mean difference to factor 1 on the later days, ± standard error over days. new share: with the share of spam estimated
from the messages of the day without labels.
"""

CONCLUSION = """\
{chosen:g} was the best factor of the first days, {best:g} of the later ones. Following the leader (every morning the
factor that was best until then) had a log loss of {leader:.3f}, the best factor in hindsight {hindsight:.3f}, and never
forgetting {never:.3f}. 90% intervals of the share of spam contained the true one on {covered:.0%} of the later days.
How to read this: docs/cases/daily_filter.md"""

WORDS = HashingVectorizer(n_features=COLUMNS, alternate_sign=False, norm=None)
"""Hashed columns for all words, without a vocabulary; sometimes two words share a column."""


@dataclass(frozen=True, eq=False)
class Day:
    """Messages of a day, their labels, and the true probability of spam on that day."""

    texts: list[str]
    labels: np.ndarray
    share: float

    @cached_property
    def counts(self) -> sp.csr_matrix:
        """Return how often each word occurs, (N, columns)."""
        return WORDS.transform(self.texts)


def simulate(days: int = DAYS, messages: int = MESSAGES, seed: int = SEED) -> Iterator[Day]:
    """Simulate days of messages.

    A ham message is about one of six topics, and a spam message belongs to one of three campaigns, so words are not
    independent given the class. All sources share a vocabulary, except for new words that campaigns bring. The popular
    words of a topic change slowly. A campaign stays the same for some weeks and then ends, and another one begins. The
    share of spam changes slowly.
    """
    rng = np.random.default_rng(seed)
    topics, campaigns = rng.normal(0.0, SPREAD, (6, OLD)), [campaign(rng, i) for i in range(3)]
    logit, begun = MEAN_LOGIT, len(campaigns)
    for _ in range(days):
        topics = 0.98 * topics + rng.normal(0.0, 0.2 * SPREAD, topics.shape)
        logit = MEAN_LOGIT + 0.93 * (logit - MEAN_LOGIT) + rng.normal(0.0, 0.5)
        for i in np.flatnonzero(rng.random(len(campaigns)) < ENDS):
            campaigns[i] = campaign(rng, begun)
            begun += 1
        labels = np.where(rng.random(messages) < expit(logit), "spam", "ham")
        ham = [(old_words(OLD), popularity) for popularity in topics]
        texts = [message(rng, (campaigns if label == "spam" else ham)) for label in labels]
        yield Day(texts, labels, float(expit(logit)))


def old_words(n: int) -> list[str]:
    return [f"word{i}" for i in range(n)]


def campaign(rng: np.random.Generator, number: int) -> Source:
    """Return the words of a campaign, five of them new, and their popularity."""
    words = [*old_words(OLD), *(f"new{number}x{i}" for i in range(5))]
    return words, np.append(rng.normal(0.0, SPREAD, OLD), np.full(5, 2.0))


def message(rng: np.random.Generator, sources: Sequence[Source]) -> str:
    """Draw some words from one of the sources."""
    words, popularity = sources[rng.integers(len(sources))]
    p = np.exp(popularity)
    return " ".join(rng.choice(words, 3 + rng.poisson(5), p=p / p.sum()))


def prequential(days: Sequence[Day], factor: float, shares: bool = False) -> pd.DataFrame:
    """Score each day but the first before it is counted, one row per day.

    Parameters
    ----------
    days : sequence of Day
    factor : float
        Weight of a message one day later, in (0, 1].
    shares : bool
        Whether to estimate the share of spam of each day, from its messages without their labels.
    """
    nb, lines = bnb.MultinomialNB(alpha=ALPHA), {}
    for t, day in enumerate(days):
        if t:
            lines[t] = scored(nb, day, shares)
            nb.decay(factor)
        nb.partial_fit(day.counts, day.labels, classes=CLASSES)
    return pd.DataFrame.from_dict(lines, orient="index").rename_axis("day")


def scored(nb: Any, day: Day, shares: bool) -> dict[str, float]:
    """Return log loss and accuracy of a morning, and if asked also with the estimated share of spam."""
    log_proba = nb.predict_log_proba(day.counts)
    truth = np.searchsorted(nb.classes_, day.labels)
    each = np.arange(len(truth))
    found = {"log loss": -log_proba[each, truth].mean(), "accuracy": np.mean(log_proba.argmax(axis=1) == truth)}
    if not shares:
        return found
    share = bnb.estimate_prevalence(nb, day.counts, given="scores")  # a fortieth of the time
    moved = nb.predict_log_proba(day.counts, class_prior=share.mean)
    return found | {
        "new share": -moved[each, truth].mean(),
        "true": day.share,
        "counted": np.exp(nb.class_log_prior_[1]),
        "estimated": share.mean[1],
        "lower": share.lower[1],
        "upper": share.upper[1],
    }


def column(runs: dict[float, pd.DataFrame], name: str) -> pd.DataFrame:
    """Return one column of `prequential` under each factor, (days - 1, factors)."""
    return pd.DataFrame({factor: run[name] for factor, run in runs.items()})


def leader(losses: pd.DataFrame) -> pd.Series:
    """Return the factor with the lowest loss on the earlier days, for each day; 1 for the first day."""
    so_far = losses.cumsum().shift()
    return so_far.fillna({losses.columns[0]: 0.0}).fillna(np.inf).idxmin(axis=1)


def followed(losses: pd.DataFrame) -> pd.Series:
    """Return the log loss of each day with the factor of the leader."""
    return pd.Series({day: losses.at[day, factor] for day, factor in leader(losses).items()})


def table(runs: dict[float, pd.DataFrame], first: int = FIRST) -> pd.DataFrame:
    """Summarise runs of `prequential` with shares, one row per factor."""
    losses = column(runs, "log loss")
    early, later = losses.loc[: first - 1], losses.loc[first:]
    more = later.sub(later[1.0], axis=0)
    error = more.std(ddof=1) / np.sqrt(len(more))
    return pd.DataFrame(
        {
            "half-life": [np.inf if f == 1 else np.log(0.5) / np.log(f) for f in losses],
            "first days": early.mean(),
            "later days": later.mean(),
            "against 1": [f"{m:+.3f} ± {e:.3f}" if e else "" for m, e in zip(more.mean(), error, strict=True)],
            "new share": column(runs, "new share").loc[first:].mean(),
        }
    ).rename_axis("factor")


def put_right(days: Sequence[Day], factor: float, wrong_on: int, found_on: int) -> dict[str, float]:
    """Compare a filter whose mistake was corrected with a filter without the mistake.

    Returns
    -------
    dict
        Largest difference of log P(spam) on the messages of the next day, before and after the correction.
    """
    wrong = days[wrong_on]
    spam = wrong.labels == "spam"
    mistaken = Day(wrong.texts, np.full(len(spam), "ham"), wrong.share)
    clean, nb = (
        counted([*days[:wrong_on], day, *days[wrong_on + 1 : found_on + 1]], factor) for day in (wrong, mistaken)
    )
    X = days[found_on + 1].counts
    reference, before = clean.predict_log_proba(X)[:, 1], nb.predict_log_proba(X)[:, 1]
    left = np.full(spam.sum(), factor ** (found_on - wrong_on))
    nb.forget(wrong.counts[spam], mistaken.labels[spam], sample_weight=left)
    nb.partial_fit(wrong.counts[spam], wrong.labels[spam], sample_weight=left)
    after = nb.predict_log_proba(X)[:, 1]
    return {"before": float(abs(before - reference).max()), "after": float(abs(after - reference).max())}


def counted(days: Sequence[Day], factor: float) -> Any:
    """Return a filter fitted to some days."""
    nb = bnb.MultinomialNB(alpha=ALPHA)
    for t, day in enumerate(days):
        if t:
            nb.decay(factor)
        nb.partial_fit(day.counts, day.labels, classes=CLASSES)
    return nb


def evenings(days: Sequence[Day], factor: float, path: Path) -> Any:
    """Return the filter after it was saved every evening and loaded every morning."""
    bnb.save(counted(days[:1], factor), path)
    for day in days[1:]:
        nb = bnb.load(path)
        nb.decay(factor)
        nb.partial_fit(day.counts, day.labels)
        bnb.save(nb, path)
    return bnb.load(path)


def figure(losses: pd.DataFrame, shares: pd.DataFrame, chosen: float) -> Any:
    """Draw the daily log loss with and without decay, smoothed over a week, and the share of spam."""
    import matplotlib.pyplot as plt

    drawing, (above, below) = plt.subplots(2, 1, figsize=(8, 5.6), sharex=True, layout="constrained")
    for factor, colour in ((1.0, "#999999"), (chosen, "#0072B2")):
        above.plot(losses[factor].rolling(7, center=True).mean(), color=colour, label=f"factor {factor:g}")
    above.set_ylabel("log loss, week's mean")
    below.plot(shares["true"], color="black", lw=1, label="true probability")
    below.plot(shares["counted"], color="#999999", label="by faded counts")
    below.plot(shares["estimated"], color="#0072B2", lw=1, label="from the day's messages")
    below.fill_between(shares.index, shares["lower"], shares["upper"], color="#0072B2", alpha=0.2, lw=0)
    below.set_ylabel("share of spam")
    below.set_xlabel("day")
    for panel in (above, below):
        panel.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return drawing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("examples/figures"), help="folder for the figure")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    days = list(simulate())
    runs = {factor: prequential(days, factor, shares=True) for factor in FACTORS}
    losses = column(runs, "log loss")
    chosen, best = losses.loc[: FIRST - 1].mean().idxmin(), losses.loc[FIRST:].mean().idxmin()
    print(INTRODUCTION)
    print(table(runs).round(3).to_string())
    own = runs[chosen].loc[FIRST:]
    error = np.sqrt(own[["counted", "estimated"]].sub(own["true"], axis=0).pow(2).mean())
    print(
        f"\nShare of spam on the later days, factor {chosen:g}: root mean squared errors\n{error.round(3).to_string()}"
    )
    mended = put_right(days, chosen, wrong_on=80, found_on=84)
    print("\nThe spam of a day was counted as ham. Four days later log P(spam) of a message is off by up to")
    print(f"{mended['before']:.2f}; after the correction it is off by {mended['after']:.0e}.")
    with TemporaryDirectory() as folder:
        read = evenings(days[:30], chosen, Path(folder) / "filter.safetensors")
    same = (
        read.predict_log_proba(days[30].counts) == counted(days[:30], chosen).predict_log_proba(days[30].counts)
    ).all()
    print(f"Saved every evening and loaded every morning for 30 days: identical predictions: {same}.\n")
    later = losses.loc[FIRST:].mean()
    print(
        CONCLUSION.format(
            chosen=chosen,
            best=best,
            leader=followed(losses).loc[FIRST:].mean(),
            hindsight=later[best],
            never=later[1.0],
            covered=own["true"].between(own["lower"], own["upper"]).mean(),
        )
    )
    if find_spec("matplotlib") is None:
        print("No figure: install matplotlib to draw one.")
        return
    import matplotlib

    matplotlib.use("Agg")
    figure(losses, runs[chosen], chosen).savefig(out / "daily_filter.png", dpi=150)
    print(f"Figure in {out}/")


if __name__ == "__main__":
    main()
