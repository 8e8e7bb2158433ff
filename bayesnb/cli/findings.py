"""What is known of a data set once it was analysed: base rates, differences and their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

NOISE, NOISE_OF_FOLDS = 2.0, 3.0
"""Standard errors from which a difference is called more than noise; cross-validated ones are too small."""


@dataclass(frozen=True, eq=False)
class Difference:
    """A mean difference, and its standard error."""

    mean: float
    se: float
    noise: float

    @property
    def sign(self) -> int:
        """-1 better beyond noise, 1 worse, 0 neither."""
        if not (math.isfinite(self.se) and abs(self.mean) > self.noise * self.se):
            return 0
        return -1 if self.mean < 0 else 1

    @property
    def text(self) -> str:
        if not math.isfinite(self.se):
            return f"{self.mean:+.2g}, with too few rows for a standard error"
        digits = decimals(self.se)
        return f"{self.mean:+.{digits}f} ± {self.se:.{digits}f}"


def decimals(sd: float) -> int:
    """Decimals that show two digits of a standard deviation; 4 where it has none."""
    if not (math.isfinite(sd) and sd > 0):
        return 4
    return min(12, max(0, 1 - math.floor(math.log10(sd))))


@dataclass(frozen=True, eq=False)
class Base:
    """The base rates: what is right of the scored rows without looking at any.

    Parameters
    ----------
    label : str
        A most frequent class.
    accuracy : float
        Of always saying it.
    brier : float
        Of stating the share of each class.
    gains : dict {str: (float, float)}
        Brier score of each estimate less that, row by row, and the standard error.
    """

    label: str
    accuracy: float
    brier: float
    gains: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Findings:
    """What is known of a data set once it was analysed.

    Parameters
    ----------
    comparison : DataFrame
        See `bayesnb.evaluation.compare_estimates`; the first row is maximum likelihood.
    rows, fits : int
        Rows that were scored, and fits that scored them; several are cross-validation.
    base : Base
        What is right without looking at a row.
    model : str
        The classifier as an expression.
    kinds : dict
        Kind of each column.
    weights : bool
        Whether weights were asked for.
    density_open : bool
        Whether `--numbers` would decide another density of some columns.
    moved : (int, int) or None
        Held-out rows whose label depends on the strength of the prior, of how many; None: not known.
    dependent : (int, int) or None
        Pairs of features that depend on each other given the class by strong evidence, of how many.
    more : bool
        Whether there may be more of them than were counted.
    weighting : (float, float) or None
        Brier score with weights less that without, row by row, and the standard error.
    target : str
        What the labels are called.
    left_out : tuple of str
        Columns that the model does not use.
    """

    comparison: pd.DataFrame
    rows: int
    fits: int
    base: Base
    model: str
    kinds: Mapping[str, str]
    weights: bool = True
    density_open: bool = False
    moved: tuple[int, int] | None = None
    dependent: tuple[int, int] | None = None
    more: bool = False
    weighting: tuple[float, float] | None = None
    target: str = "y"
    left_out: tuple[str, ...] = ()

    @property
    def noise(self) -> float:
        """Standard errors from which a difference is more than noise."""
        return NOISE_OF_FOLDS if self.fits > 1 else NOISE

    @property
    def weights_help(self) -> bool:
        """Whether weights are better than none, beyond noise."""
        return self.weighting is not None and Difference(*self.weighting, self.noise).sign < 0
