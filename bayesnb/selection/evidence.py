"""Bayes factors of two models of the same data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from bayesnb._util.arguments import shown
from bayesnb.fitted.state import Classifier, Fitted, require_evidence


@dataclass(frozen=True)
class BayesFactor:
    """Bayes factor: ratio of the probability of the data under the first model to that under the second.

    Attributes
    ----------
    log : float
        log p(X, y | first) - log p(X, y | second), in nats.
    notes : tuple of str
        Choices on the data that the Bayes factor is conditional on.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, bayes_factor
    >>> X, y = [["red"], ["green"]] * 4, ["ripe", "raw"] * 4
    >>> factor = bayes_factor(CategoricalNB(alpha=1).fit(X, y), CategoricalNB(alpha=10).fit(X, y))
    >>> round(factor.log, 2), round(factor.value, 1), factor.notes
    (1.81, 6.1, ())
    """

    log: float
    notes: tuple[str, ...]

    @property
    def value(self) -> float:
        """Bayes factor on the natural scale; inf if it exceeds 1e308."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log))

    def __repr__(self) -> str:
        preferred = "first" if self.log > 0 else "second"
        odds = f"10^{abs(self.log) / np.log(10):.3g} for the {preferred}"
        return "\n".join((f"BayesFactor(log = {self.log:.3f} nats, {odds})", *self.notes))


def bayes_factor(nb1: Classifier, nb2: Classifier) -> BayesFactor:
    """Compute the Bayes factor p(X, y | first model) / p(X, y | second model) of two models of the same rows.

    Parameters
    ----------
    nb1, nb2 : fitted classifiers of bayesnb
        Classifiers fitted to the same rows and columns, encoded in the same way.

    Returns
    -------
    BayesFactor
        Log Bayes factor, and the choices on the data that it is conditional on.

    Raises
    ------
    ValueError
        If rows, columns or encodings differ: densities of numbers, and probabilities of levels, of counts and of
        presence, cannot be compared. If both evidences are zero.

    Notes
    -----
    The function compares sufficient statistics: if these are equal, it assumes that the rows are the same. A Bayes
    factor depends on the priors of the parameters, however many rows are given, and does not show whether either model
    is right; see `loo` and `check_independence`. A structure (of `TAN`, for example) or a strength of the prior (by
    `tune_alpha`) that was chosen on the same rows makes the Bayes factor too favourable: `notes` say where that is so,
    and `permutation_null` shows the same choice for permuted labels.

    References
    ----------
    Kass & Raftery, *Bayes factors*, JASA 90 (1995).

    Examples
    --------
    Does the second column depend on the first, once the class is known?

    >>> from bayesnb import NetworkNB, bayes_factor
    >>> X, y = [["a", "u"], ["a", "u"], ["b", "v"], ["b", "v"]] * 3, ["p", "q", "p", "q"] * 3
    >>> bayes_factor(NetworkNB({1: 0}).fit(X, y), NetworkNB({}).fit(X, y))
    BayesFactor(log = 4.338 nats, 10^1.88 for the first)
    """
    models = [require_evidence(nb, "bayes_factor") for nb in (nb1, nb2)]
    _require_same(*models)
    first, second = (fitted.log_evidence for fitted in models)
    if np.isneginf(first) and np.isneginf(second):
        raise ValueError("bayes_factor: both evidences are zero, because of zero concentrations. Use proper priors.")
    notes = []
    for which, fitted in zip(("first", "second"), models, strict=True):
        if any(callable(block) for block in fitted.empirical_prior.blocks):
            notes.append(f"The prior of the {which} model was derived from these data.")
        if chosen := " and ".join(fitted.chosen):
            note = f"The same rows were used to choose {chosen} of the {which} model, which favours it"
            notes.append(f"{note}; see `permutation_null`.")
    weights = models[0].statistics.class_count
    if (weights != np.round(weights)).any():
        notes.append("Weights of rows are fractional, so that the evidences are pseudo-evidences.")
    return BayesFactor(first - second, tuple(notes))


def _require_same(first: Fitted, second: Fitted) -> None:
    """Raise ValueError unless two models have the same classes, columns, levels and sufficient statistics."""
    for (what, value), (_, other) in zip(_contents(first), _contents(second), strict=True):
        if isinstance(value, list) and value != other:
            raise ValueError(
                f"bayes_factor: the {what} differ between the models: {shown(value)} and {shown(other)}. "
                "Evidences of differently encoded data are not comparable. Fit both to the same kinds of columns."
            )
        leaves = () if isinstance(value, list) else zip(*map(jax.tree.leaves, (value, other)), strict=True)
        if not all(np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in leaves):
            differ = f"The statistics of their {what} differ: {shown(value)} and {shown(other)}."
            raise ValueError(f"bayes_factor: both models must be fitted on the same rows. {differ}")


def _contents(fitted: Fitted) -> list[tuple[str, Any]]:
    """Return (name, list) of the encoding, then (name, statistics) of classes and of each block, without parents."""
    bases = [block.base for block in fitted.encoding.blocks]
    columns = [(j, f"{name} ({base.kind})") for base in bases for j, name in zip(base.index, base.names, strict=True)]
    contents: list[tuple[str, Any]] = [("classes", list(fitted.encoding.classes.values))]
    contents += [("columns", [name for _, name in sorted(columns)])]
    contents += [("blocks of columns", [base.kind for base in bases])]
    contents += [("levels", [list(base.axis()[1] or ()) for base in bases]), ("classes", fitted.statistics.class_count)]
    for block, counts in zip(fitted.encoding.blocks, fitted.statistics.blocks, strict=True):
        contents.append((f"{block.base.kind} columns", block.counts_without_parents(counts)))
    return contents
