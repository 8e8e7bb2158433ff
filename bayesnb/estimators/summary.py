"""HTML summary of a fitted classifier in a notebook, from its stored state and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb._util.html import card, table

_MOST_CLASSES = 12
_HOLDS = "Its posterior follows from these rows. Class probabilities and their intervals hold if the model does."


def summary(nb: Any) -> str:
    """Return the summary as HTML, without the sections that fail; "" for an unfitted classifier."""
    title = "".join(_try_section(_describe_data, nb))
    sections = (_tabulate_features, _tabulate_classes, _tabulate_weights, _tabulate_iterations)
    tables = [html for section in sections for html in _try_section(section, nb)]
    return card(type(nb).__name__, title, *tables, notes=_try_section(_list_notes, nb)) if title else ""


def _try_section(section: Callable[[Any], Iterator[str]], nb: Any) -> Iterator[str]:
    """Yield the texts of a section, or none if it fails: a display must not, whatever was set after `fit`."""
    with suppress(Exception):
        yield from list(section(nb))


def _get_counting_classifier(nb: Any) -> Any:
    """Return the classifier that has the encoding and the statistics: for a mixture its estimator."""
    return vars(nb).get("estimator_", nb)


def _describe_data(nb: Any) -> Iterator[str]:
    counting = _get_counting_classifier(nb)
    count = np.asarray(counting.class_count_, dtype=float)
    n, groups = nb.n_features_in_, ("class", "classes") if counting is nb else ("component", "components")
    features = f"{n} feature{'s' * (n != 1)}"
    yield f"fitted to {count.sum():.10g} rows of {features}, {len(count)} {groups[len(count) != 1]}"


def _tabulate_features(nb: Any) -> Iterator[str]:
    counting = _get_counting_classifier(nb)
    blocks = [(columns, columns.base) for columns in counting.encoding_.blocks]
    rows = [(base.kind, len(base.index), _describe_prior(counting, columns)) for columns, base in blocks]
    yield table(rows, ("features", "columns", "prior"))


def _describe_prior(nb: Any, columns: Any) -> str:
    """Return the name and the value of the hyperparameter that holds the prior of a block."""
    base = getattr(nb, "unweighted", nb)
    base = base._base() if hasattr(base, "_base") else base
    complete = getattr(base, "prior", None)
    name = "prior" if complete is not None else columns.hyperparameter
    value = getattr(base, name, None)
    if value is None:
        return ""
    return f"{name} = array {value.shape}" if isinstance(value, np.ndarray) else f"{name} = {shown(value)}"


def _tabulate_classes(nb: Any) -> Iterator[str]:
    counting = _get_counting_classifier(nb)
    labels, count = counting.classes_.tolist(), np.asarray(counting.class_count_, dtype=float)
    total = count.sum() or 1.0
    listed = list(zip(labels, count, strict=True))[:_MOST_CLASSES]
    rows: list[tuple[Any, ...]] = [
        (label if isinstance(label, str) else shown(label), n, f"{100 * n / total:.3g}%") for label, n in listed
    ]
    if len(labels) > len(rows):
        rest = count[len(rows) :].sum()
        rows.append((f"{len(labels) - len(rows)} more", rest, f"{100 * rest / total:.3g}%"))
    yield table(rows, ("class" if counting is nb else "component", "rows", "share"))


def _tabulate_weights(nb: Any) -> Iterator[str]:
    weights = vars(nb)["weights_"]
    least, greatest = float(weights.weight.min()), float(weights.weight.max())
    yield table(
        [
            ("weights", len(weights.weight)),
            ("temperature", weights.temperature),
            ("least", least),
            ("greatest", greatest),
            ("expected log loss", weights.log_loss),
            ("without weights", weights.plain_log_loss),
        ]
    )


def _tabulate_iterations(nb: Any) -> Iterator[str]:
    yield table([("converged", "yes" if nb.converged_ else "no"), ("iterations", nb.n_iter_)])


def _list_notes(nb: Any) -> Iterator[str]:
    if nb.no_posterior is not None:
        yield f"No exact posterior: {nb.no_posterior}"
        return
    chosen = nb.fitted_.chosen
    yield _HOLDS
    if chosen:
        yield f"Given {' and '.join(chosen)}, chosen on these rows too."
