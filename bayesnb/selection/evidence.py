"""Bayes factors, and the evidence as a learning curve."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb.fitted import Classifier, Fitted, require_evidence
from bayesnb.selection.permutation import chosen_on_rows


@dataclass(frozen=True)
class BayesFactor:
    """How many times more probable the data are under the first model than under the second.

    Attributes
    ----------
    log : float
        log p(X, y | first) - log p(X, y | second), in nats.
    notes : tuple of str
        What it is conditional on.

    Examples
    --------
    >>> from bayesnb import CategoricalNB, bayes_factor
    >>> X, y = [["red"], ["green"]] * 4, ["ripe", "raw"] * 4
    >>> found = bayes_factor(CategoricalNB(alpha=1).fit(X, y), CategoricalNB(alpha=10).fit(X, y))
    >>> round(found.log, 2), round(found.value, 1), found.notes
    (1.81, 6.1, ())
    """

    log: float
    notes: tuple[str, ...]

    @property
    def value(self) -> float:
        """The factor itself; inf where that exceeds 1e308."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log))

    def __repr__(self) -> str:
        preferred = "first" if self.log > 0 else "second"
        notes = "".join(f"\n{note}" for note in self.notes)
        return f"BayesFactor(log = {self.log:.3f} nats, 10^{abs(self.log) / np.log(10):.3g} for the {preferred}){notes}"


def bayes_factor(nb1: Classifier, nb2: Classifier) -> BayesFactor:
    """The Bayes factor of two models of the same data.

    Parameters
    ----------
    nb1, nb2 : fitted classifiers of bayesnb
        Of the same rows and columns, encoded in the same way.

    Returns
    -------
    BayesFactor

    Raises
    ------
    ValueError
        If they are of other rows, columns or encodings: densities of numbers, probabilities of levels, of counts and of
        presence are not to be compared. If both evidences are zero.

    Notes
    -----
    Rows are told apart by what was counted of them; the same statistics are taken for the same rows. A Bayes factor
    depends on the priors of the parameters, however many data there are, and says nothing of whether either model is
    right; `loo` and `check_independence` do. A structure (as of `TAN`) or a strength of the prior (by `tune_alpha`)
    that was chosen on the same rows makes it too favourable: `notes` say where that is so, and `permutation_null` what
    the same choice gives for permuted labels.

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
        raise ValueError("Both evidences are zero: the priors have zero concentrations. Choose proper priors.")
    notes = []
    for which, fitted in zip(("first", "second"), models, strict=True):
        if _derived(fitted):
            notes.append(f"Evidence of the {which} given a prior derived from these data.")
        if chosen := chosen_on_rows(fitted):
            notes.append(f"Evidence of the {which} given {chosen}, chosen on these rows; see `permutation_null`.")
    weights = models[0].statistics.class_count
    if (weights != np.round(weights)).any():
        notes.append("Fractional weights: a pseudo-evidence.")
    return BayesFactor(first - second, tuple(notes))


def _require_same(fitted1: Fitted, fitted2: Fitted) -> None:
    """Refuse models whose evidences are of different things."""
    one, two = fitted1.encoding, fitted2.encoding
    if list(one.classes.values) != list(two.classes.values):
        raise ValueError(
            f"bayes_factor: the classes differ, {list(one.classes.values)} and {list(two.classes.values)}."
        )
    columns = [{j: (c.kind, n) for c in e.blocks for j, n in zip(c.index, c.names, strict=True)} for e in (one, two)]
    if sorted(columns[0]) != sorted(columns[1]):
        raise ValueError(
            f"bayes_factor: the columns differ, {len(columns[0])} and {len(columns[1])}; evidences of different "
            "columns are not comparable."
        )
    for j in sorted(columns[0]):
        if columns[0][j] != columns[1][j]:
            (kind, name), (other, other_name) = columns[0][j], columns[1][j]
            raise ValueError(
                f"bayes_factor: column {j} is {shown(name)}, {kind}, in the first model and {shown(other_name)}, "
                f"{other}, in the "
                "second: probabilities of different encodings are not comparable."
            )
    if [c.kind for c in one.blocks] != [c.kind for c in two.blocks]:
        raise ValueError("bayes_factor: the models group their columns in different blocks.")
    counts1, counts2 = fitted1.statistics, fitted2.statistics
    if not np.allclose(counts1.class_count, counts2.class_count, rtol=1e-9):
        raise ValueError(
            f"bayes_factor: the rows differ: classes of {counts1.class_count.tolist()} and of "
            f"{counts2.class_count.tolist()} rows."
        )
    levels1, levels2 = _without_parents(fitted1), _without_parents(fitted2)
    for (columns_1, a), (columns_2, b) in zip(levels1, levels2, strict=True):
        if a.count.shape != b.count.shape:
            raise ValueError(
                f"bayes_factor: the {columns_1.kind} columns have {a.count.shape[1]} levels in the first model and "
                f"{b.count.shape[1]} in the second; declare the same `categories`."
            )
        if list(columns_1.axis()[1] or ()) != list(columns_2.axis()[1] or ()):
            raise ValueError(f"bayes_factor: the {columns_1.kind} columns have different levels.")
        names = [field.name for field in fields(a)]
        if not all(np.allclose(getattr(a, f), getattr(b, f), rtol=1e-9, atol=1e-12) for f in names):
            raise ValueError(f"bayes_factor: the rows differ: their {columns_1.kind} columns have other statistics.")


def _without_parents(fitted: Fitted) -> list[tuple[Any, Any]]:
    """Columns and statistics of each block; of a structure those of its features alone."""
    return [(c.base, c.margins(s)) for c, s in zip(fitted.encoding.blocks, fitted.statistics.blocks, strict=True)]


def _derived(fitted: Fitted) -> bool:
    """Whether the prior of some block was taken from the data."""
    return any(callable(block) for block in fitted.empirical_prior.blocks)
