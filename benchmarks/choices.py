"""Timings of leave-one-out, tuning and feature averaging against bayesnb itself, or scikit-learn if it is named."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import sklearn.naive_bayes as sk

import bayesnb as bnb
from benchmarks import data
from benchmarks.timing import Row, in_turn


def choices(n: int) -> Iterator[Row]:
    """Time leave-one-out predictions and model selection."""
    X, y = data.categorical(n)
    nb = bnb.CategoricalNB().fit(X, y)
    yield in_turn(
        f"loo of {n:,} x 30, against predict_log_proba",
        lambda: bnb.loo(nb, X, y),
        lambda: nb.predict_log_proba(X),
        2.5,
    )
    X, y = data.gaussian(n // 10)
    normal = bnb.GaussianNB().fit(X, y)
    yield in_turn(
        f"loo of {n // 10:,} x 30, priors derived anew, against predict",
        lambda: bnb.loo(normal, X, y),
        lambda: normal.predict(X),
        4.0,
    )
    del X

    X, y = data.witnesses(n)
    plain = bnb.CategoricalNB().fit(X, y)
    weighted = bnb.WeightedNB(bnb.CategoricalNB(), "feature")
    name = f"weights of {n:,} x 30, 100,000 left out: fit, against predict"
    yield in_turn(name, lambda: weighted.fit(X, y), lambda: plain.predict(X), 30.0, repeats=3)
    yield in_turn("  predict, against that without weights", lambda: weighted.predict(X), lambda: plain.predict(X), 1.5)
    del X

    words, label = data.text(n // 10)
    text = bnb.MultinomialNB().fit(words, label)
    bnb.tune_alpha(text, words, label, by="evidence")
    start = time.perf_counter()
    bnb.tune_alpha(text, words, label, by="evidence")
    seconds = time.perf_counter() - start
    parameters = text.statistics_.blocks[0].count.size
    yield Row(f"tune_alpha by evidence, {parameters:,} parameters, against 1 s", seconds, 1.0, 1.0)

    X, y = data.genotypes(1_411, max(1_000, 312_318 * n // 1_000_000))
    averaged, plain, peer = bnb.FeatureAveragedNB(expected_features=20.0), bnb.CategoricalNB(), sk.CategoricalNB()
    name = f"averaged over features, {X.shape[0]:,} x {X.shape[1]:,}"
    yield in_turn(
        f"{name}: fit, against CategoricalNB",
        lambda: averaged.fit(X, y).posterior_,
        lambda: plain.fit(X, y).posterior_,
        2.0,
        repeats=3,
    )
    yield in_turn("  predict", lambda: averaged.predict(X), lambda: plain.predict(X), 2.0, repeats=3)
    start = time.perf_counter()
    averaged.fit(X, y).predict(X)
    middle = time.perf_counter()
    peer.fit(X, y).predict(X)
    yield Row(
        "  fit and predict, against scikit-learn's CategoricalNB", middle - start, time.perf_counter() - middle, np.inf
    )
