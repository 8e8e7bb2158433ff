"""Evidence as a learning curve: each row is predicted from the rows before it."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from bayesnb._util.arguments import require_integer
from bayesnb._util.terminal import progress
from bayesnb.fitted import counting, scoring
from bayesnb.fitted.state import Classifier, counted_rows, require_evidence
from bayesnb.model import Statistics


@dataclass(frozen=True, eq=False)
class Prequential:
    """Log evidence of the first rows, for increasing numbers of rows, in nats.

    Attributes
    ----------
    sizes : (K,) int array
        Numbers of rows, from 0 to N.
    log_evidence : (K,) array
        log p(x_1, y_1, …, x_n, y_n), each row replicated by its weight: from 0 to `estimator.log_evidence_`.
    label : (N,) int array
        Index of the class of each row.
    weight : (N,) array
        Replication count of each row.
    estimator : classifier
        The classifier that was passed.

    Examples
    --------
    The loss of a row falls from batch to batch, as more rows have been seen before it:

    >>> import numpy as np
    >>> from bayesnb import CategoricalNB, prequential
    >>> X, y = [["red"], ["green"]] * 6, ["ripe", "raw"] * 6
    >>> curve = prequential(CategoricalNB().fit(X, y), X, y, points=4)
    >>> (-np.diff(curve.log_evidence) / np.diff(curve.sizes)).round(2)
    array([1.43, 1.15, 0.94, 0.92])
    """

    sizes: np.ndarray
    log_evidence: np.ndarray
    label: np.ndarray
    weight: np.ndarray
    estimator: Classifier

    def __repr__(self) -> str:
        name = type(self.estimator).__name__
        return f"Prequential({name}, {len(self.label)} rows, log evidence {self.log_evidence[-1]:.3f} nats)"


def prequential(nb: Classifier, X: object, y: object, sample_weight: object = None, *, points: int = 50) -> Prequential:
    """Compute the log evidence of the first rows for increasing numbers of rows, a learning curve by the chain rule.

    Parameters
    ----------
    nb : fitted classifier of bayesnb
        Classifier with an exact evidence.
    X, y, sample_weight : array-likes
        All rows that `nb` was fitted on, with their labels and weights.
    points : int, default 50
        Number of points of the curve, evenly spaced up to N rows; all numbers of rows if N is smaller.

    Returns
    -------
    Prequential
        Log evidence for each number of rows.

    Raises
    ------
    ValueError
        If the counts show that the rows are not those that were counted; if `points` is not a positive integer.

    Notes
    -----
    With the prior fixed at `nb.prior_`, also where it was derived from all rows, the evidence is the product of the
    predictions of each row from the rows before it:

        log p(D) = Σ_n log p(x_n, y_n | x_1, y_1, …, x_{n-1}, y_{n-1}).

    So the difference of the curves of two models ends at their log Bayes factor. The curve
    depends on the order of the rows, its end does not; shuffle the rows where their order has no meaning, above all
    where they are sorted by class.

    References
    ----------
    Dawid, *Statistical theory: the prequential approach*, J. R. Stat. Soc. A 147 (1984).

    Examples
    --------
    >>> from bayesnb import CategoricalNB, prequential
    >>> X, y = [["red"], ["green"]] * 6, ["ripe", "raw"] * 6
    >>> curve = prequential(CategoricalNB().fit(X, y), X, y, points=4)
    >>> curve.sizes, curve.log_evidence.round(2)
    (array([ 0,  3,  6,  9, 12]), array([  0.  ,  -4.28,  -7.71, -10.54, -13.29]))
    """
    fitted = require_evidence(nb, "prequential")
    require_integer("points", points)
    counted = counted_rows(fitted, X, y, sample_weight, "prequential")
    row = np.arange(len(counted.label))
    sizes = np.unique(np.linspace(0, len(row), points + 1).round().astype(int))
    encoding, total, log_evidence = fitted.encoding, fitted.statistics, [0.0]
    parts = (counted.take((start <= row) & (row < stop)) for start, stop in pairwise(sizes))
    counts = (counting.count_rows(encoding, part.rows, part.label, part.weight) for part in parts)
    with progress("evidence", len(sizes) - 1) as tick:
        for total in accumulate(counts, Statistics.merge):
            log_evidence.append(float(scoring.log_evidence(encoding, fitted.prior, total)))
            tick()
    _require_all(fitted.statistics, total)
    return Prequential(sizes, np.array(log_evidence), counted.label, counted.weight, copy(nb))


def _require_all(counted: Statistics, given: Statistics) -> None:
    """Raise ValueError unless the statistics `given` have all rows, and all cells, of the statistics `counted`."""
    pairs = [(counted.class_count, given.class_count)]
    pairs += [(a.count, b.count) for a, b in zip(counted.blocks, given.blocks, strict=True)]
    if not all(np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in pairs):
        problem = "Cells that the classifier has counted are missing in X."
        if not np.allclose(*pairs[0], rtol=1e-9, atol=1e-12):
            problem = f"Only {given.class_count.sum():g} of {counted.class_count.sum():g} rows were passed."
        raise ValueError(f"prequential: X, y and sample_weight must be all rows that nb was fitted on. {problem}")
