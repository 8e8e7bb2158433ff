"""HTML summary of a fitted classifier in a notebook, from its stored state and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb._util.terminal import card, table

_MOST_CLASSES = 12
_HOLDS = "The posterior follows from these rows. Class probabilities and their intervals hold only if the model does."


def summary(nb: Any) -> str:
    """Return the summary of a classifier as an HTML card, without sections that fail; "" for an unfitted classifier."""
    sections = (_tabulate_features, _tabulate_classes, _tabulate_weights, _tabulate_iterations)
    title = "".join(_try_section(_describe_data, nb))
    tables = [html for section in sections for html in _try_section(section, nb)]
    return card(type(nb).__name__, title, *tables, notes=_try_section(_list_notes, nb)) if title else ""


def _try_section(section: Callable[[Any], Iterator[str]], nb: Any) -> Iterator[str]:
    """Yield the texts of a section, or none if it raises: a display must not fail, whatever was set after `fit`."""
    with suppress(Exception):
        yield from list(section(nb))


def _class_weights(nb: Any) -> tuple[Any, np.ndarray, str]:
    """Return the classifier that has the statistics, its (C,) class weights, and the word "class" or "component"."""
    is_mixture = "estimator_" in vars(nb)
    counting = nb.estimator_ if is_mixture else nb
    return counting, np.asarray(counting.class_count_, dtype=float), "component" if is_mixture else "class"


def _describe_data(nb: Any) -> Iterator[str]:
    """Yield one sentence: the numbers of rows, features, and classes or components."""
    _, count, word = _class_weights(nb)
    n, groups = nb.n_features_in_, word if len(count) == 1 else {"class": "classes"}.get(word, f"{word}s")
    yield f"fitted to {count.sum():.10g} rows of {n} feature{'s' * (n != 1)}, {len(count)} {groups}"


def _tabulate_features(nb: Any) -> Iterator[str]:
    """Yield an HTML table with kind, number of columns and stated prior of each block of features."""
    counting, _, _ = _class_weights(nb)
    base = getattr(counting, "unweighted", counting)
    base = base._base() if hasattr(base, "_base") else base
    rows = []
    for columns in counting.encoding_.blocks:
        name = "prior" if getattr(base, "prior", None) is not None else columns.hyperparameter
        value = getattr(base, name, None)
        text = f"array {value.shape}" if isinstance(value, np.ndarray) else shown(value)
        rows.append((columns.base.kind, len(columns.base.index), "" if value is None else f"{name} = {text}"))
    yield table(rows, ("features", "columns", "prior"))


def _tabulate_classes(nb: Any) -> Iterator[str]:
    """Yield an HTML table with weight and percentage of the rows of each class or component."""
    counting, count, word = _class_weights(nb)
    total, labels = count.sum() or 1.0, [v if isinstance(v, str) else shown(v) for v in counting.classes_.tolist()]
    if len(labels) > _MOST_CLASSES:
        labels = [*labels[:_MOST_CLASSES], f"{len(labels) - _MOST_CLASSES} more"]
        count = np.append(count[:_MOST_CLASSES], count[_MOST_CLASSES:].sum())
    rows = [(label, n, f"{100 * n / total:.3g}%") for label, n in zip(labels, count, strict=True)]
    yield table(rows, (word, "rows", "share"))


def _tabulate_weights(nb: Any) -> Iterator[str]:
    """Yield an HTML table of a `WeightedNB`: number and range of the weights, temperature, and log losses."""
    weights = vars(nb)["weights_"]
    rows = [("weights", len(weights.weight)), ("temperature", weights.temperature)]
    rows += [("least", float(weights.weight.min())), ("greatest", float(weights.weight.max()))]
    yield table([*rows, ("expected log loss", weights.log_loss), ("without weights", weights.plain_log_loss)])


def _tabulate_iterations(nb: Any) -> Iterator[str]:
    """Yield an HTML table of a mixture: whether EM converged, and the number of iterations."""
    yield table([("converged", "yes" if nb.converged_ else "no"), ("iterations", nb.n_iter_)])


def _list_notes(nb: Any) -> Iterator[str]:
    """Yield sentences about the posterior: why it is not exact, or what it assumes and what the same rows chose."""
    if nb.no_posterior is not None:
        yield f"No exact posterior: {nb.no_posterior}"
        return
    yield _HOLDS
    if chosen := nb.fitted_.chosen:
        yield f"The same rows were used to choose {' and '.join(chosen)}."
