"""Weights of features in words, and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

OPTIMISM = (
    "The loss with weights is too good, as the weights were fitted to the same labels, and the more so the fewer the "
    "rows and the more the columns: on noise (100 rows, 40 columns) it was .51 where the true loss was .74. Believe "
    "the scores of held-out rows."
)

if TYPE_CHECKING:
    import pandas as pd

    from bayesnb.prediction.weights import Weighed


def table(nb: Weighed) -> pd.DataFrame:
    """Term and weight, the largest first; where it falls with the length of a row, that of a typical one."""
    import pandas as pd

    frame = pd.DataFrame({"term": nb.term_names_, "weight": nb.weight_ * nb.weights_.typical})
    return frame.sort_values("weight", ascending=False, kind="stable", ignore_index=True)


def ends(frame: pd.DataFrame, n: int) -> pd.DataFrame:
    """The n rows at both ends of a table; all, if there are no more."""
    at = np.arange(len(frame))
    return frame[(at < n - n // 2) | (at >= len(frame) - n // 2)]


def sentence(nb: Weighed) -> str:
    """Say which weights were found, and the leave-one-out loss with and without them."""
    found = nb.weights_
    terms = [f"{weight:.3g} ({term})" for term, weight in table(nb).to_numpy()]
    about = (
        f"around {found.temperature:.3g}, up to {terms[0]} and down to {terms[-1]}"
        if found.shrinkage
        else f"{found.temperature:.3g} for all features"
    )
    if found.exponent >= 0.005:
        about += f", of t counts times ((t + 1)/{np.exp(found.log_length):.3g})^-{found.exponent:.2f}"
    return (
        f"Weights, where naive Bayes has 1: {about}. The leave-one-out log loss of the labels of {found.n_rows:,} rows "
        f"is {found.plain_log_loss:.3g} without weights and {found.log_loss:.3g} with weights. {OPTIMISM}"
    )
