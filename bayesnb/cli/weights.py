"""Weights of features in words, and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
    """Say which weights were fitted, and the loss to expect with and without them."""
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
        f"Weights, where naive Bayes has 1: {about}. On new rows expect a log loss of {found.plain_log_loss:.3g} "
        f"without weights and {found.log_loss:.3g} with weights, by fits to halves of the {found.n_rows:,} rows; fits "
        "to all of them should do a little better."
    )
