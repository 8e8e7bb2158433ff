"""Losses of actions, from a CSV file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from bayesnb.cli.column_types import to_numbers
from bayesnb.cli.csv_cells import read_cells
from bayesnb.cli.table_files import blamed_on
from bayesnb.decision import loss_table


def read_losses(path: Path, classes: np.ndarray) -> pd.DataFrame:
    """Read a CSV file with the loss of each action (row, named in the first column) for each class (column)."""
    cells = pd.concat(read_cells(path))
    actions, names = cells.iloc[:, 0], {str(label): label for label in classes.tolist()}
    losses = cells.iloc[:, 1:].apply(to_numbers).set_axis(actions.tolist()).rename(columns=names)
    with blamed_on(f"--loss {path}"):
        return loss_table(losses, None, classes)
