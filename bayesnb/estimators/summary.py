"""What a fitted classifier shows of itself in a notebook: what was counted, from what is stored and nothing else."""

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
    """HTML; nothing where nothing was fitted. What cannot be said is left out: a display computes nothing."""
    about = "".join(_said(_about, nb))
    parts = [part for say in (_features, _classes, _weights, _ascent) for part in _said(say, nb)]
    return card(type(nb).__name__, about, *parts, notes=_said(_notes, nb)) if about else ""


def _said(say: Callable[[Any], Iterator[str]], nb: Any) -> Iterator[str]:
    """A display never fails, whatever was set on the classifier after `fit`."""
    with suppress(Exception):
        yield from list(say(nb))


def _counted(nb: Any) -> Any:
    """The classifier that has the encoding and the statistics: of a mixture its estimator."""
    return vars(nb).get("estimator_", nb)


def _about(nb: Any) -> Iterator[str]:
    own = _counted(nb)
    count = np.asarray(own.class_count_, dtype=float)
    n, groups = nb.n_features_in_, ("class", "classes") if own is nb else ("component", "components")
    features = f"{n} feature{'s' * (n != 1)}"
    yield f"fitted to {count.sum():.10g} rows of {features}, {len(count)} {groups[len(count) != 1]}"


def _features(nb: Any) -> Iterator[str]:
    own = _counted(nb)
    blocks = [(columns, columns.base) for columns in own.encoding_.blocks]
    rows = [(base.kind, len(base.index), _prior(own, columns)) for columns, base in blocks]
    yield table(rows, ("features", "columns", "prior"))


def _prior(nb: Any, columns: Any) -> str:
    """The hyperparameter that a block has its prior from, and its value."""
    base = getattr(nb, "unweighted", nb)
    base = base._base() if hasattr(base, "_base") else base
    whole = getattr(base, "prior", None)
    name = "prior" if whole is not None else columns.hyperparameter
    value = getattr(base, name, None)
    if value is None:
        return ""
    return f"{name} = array {value.shape}" if isinstance(value, np.ndarray) else f"{name} = {shown(value)}"


def _classes(nb: Any) -> Iterator[str]:
    own = _counted(nb)
    labels, count = own.classes_.tolist(), np.asarray(own.class_count_, dtype=float)
    total = count.sum() or 1.0
    listed = list(zip(labels, count, strict=True))[:_MOST_CLASSES]
    rows: list[tuple[Any, ...]] = [
        (label if isinstance(label, str) else shown(label), n, f"{100 * n / total:.3g}%") for label, n in listed
    ]
    if len(labels) > len(rows):
        rest = count[len(rows) :].sum()
        rows.append((f"{len(labels) - len(rows)} more", rest, f"{100 * rest / total:.3g}%"))
    yield table(rows, ("class" if own is nb else "component", "rows", "share"))


def _weights(nb: Any) -> Iterator[str]:
    """Of terms that are weighted."""
    found = vars(nb)["weights_"]
    least, greatest = float(found.weight.min()), float(found.weight.max())
    yield table(
        [
            ("weights", len(found.weight)),
            ("temperature", found.temperature),
            ("least", least),
            ("greatest", greatest),
            ("expected log loss", found.log_loss),
            ("without weights", found.plain_log_loss),
        ]
    )


def _ascent(nb: Any) -> Iterator[str]:
    """Of a maximum that was searched."""
    yield table([("converged", "yes" if nb.converged_ else "no"), ("iterations", nb.n_iter_)])


def _notes(nb: Any) -> Iterator[str]:
    if nb.no_posterior is not None:
        yield f"No exact posterior: {nb.no_posterior}"
        return
    chosen = nb.fitted_.chosen
    yield _HOLDS
    if chosen:
        yield f"Given {' and '.join(chosen)}, chosen on these rows too."
