"""Units of rows, which random halves and folds keep whole: groups that users name, and rows that are alone."""

from __future__ import annotations

import numpy as np

from bayesnb._util.arguments import shown
from bayesnb.encoding.levels import factorize, to_array
from bayesnb.encoding.table import labels_to_array


def check_groups(groups: object, n_rows: int) -> np.ndarray:
    """Return the (N,) index of the group of each row, in the order in which the groups first occur.

    Raises
    ------
    ValueError
        If there is not one group for each row, if a row has no group, or if all rows are in one group.
    TypeError
        If a group is not hashable.
    """
    import pandas as pd

    values = to_array(groups) if hasattr(groups, "to_list") else groups
    values = values if hasattr(values, "shape") else labels_to_array(values)
    if values.shape != (n_rows,):
        raise ValueError(
            f"groups has shape {tuple(values.shape)}, but X has {n_rows} rows. Pass an array of shape ({n_rows},) with "
            "the group of each row."
        )
    codes, names = factorize(values, "groups")
    if (codes < 0).any():
        raise ValueError(
            f"groups: the group of row {int(np.argmax(codes < 0))} is missing. Give every row a group; a row that "
            "belongs to no other row is a group of its own."
        )
    index = pd.factorize(codes)[0]
    if n_rows > 1 and not index.any():
        raise ValueError(
            f"groups: all {n_rows} rows are in one group, {shown(names[codes[0]])}, but random halves of the rows need "
            "two groups or more. Pass a group for each set of rows that belong together, or leave groups out."
        )
    return index
