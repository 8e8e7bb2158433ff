"""Files of `--out`: tables, figures, the posterior and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from bayesnb._util.warnings import warn
from bayesnb.cli.analyses import analyse
from bayesnb.cli.comparison import Outcome
from bayesnb.cli.csv_cells import quote_formula
from bayesnb.cli.document import SUFFIXES, Format, render
from bayesnb.cli.output_folder import file_stem
from bayesnb.cli.report import chapter, full_report
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.uncertainty.arviz import to_arviz

_CHAINS, _DRAWS = 4, 500
_MORE = "For more draws, fit the classifier in Python, and call bayesnb.to_arviz(nb, draws=...)."
_HEADERS = 2**20
_PARAMETERS = 20_000
_DRAWN_NUMBERS = 2**22
"""Greatest number of drawn parameters in a file, of the prior and of the posterior: 34 MB."""


def write_files(outcomes: Sequence[Outcome], typed: Sequence[str], to: Format, folder: Path) -> None:
    """Write tables, figures, posteriors and the report into a folder; `typed` are the arguments of the command.

    Notes of the report, which are also issued as warnings, say where draws of a posterior are few or not written.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    chapters = []
    for outcome in outcomes:
        analyses = analyse(outcome)
        for analysis in analyses.values():
            path = folder / file_stem(outcome.data.name, analysis.name)
            if analysis.table is not None:
                quote_formulas(analysis.table).to_csv(f"{path}.csv", index=False)
            if analysis.figure is not None:
                Path(f"{path}.png").write_bytes(analysis.png)
        if outcome.parameters is not None:
            path = folder / f"{file_stem(outcome.data.name, 'posterior')}.nc"
            if note := write_posterior(outcome.fits.nb, len(outcome.parameters), path):
                warn(note)
                outcome = replace(outcome, notes=[*outcome.notes, note])
        chapters.append(chapter(outcome, analyses))
    report = render(full_report(chapters, outcomes[0].settings.seed, typed), to)
    (folder / f"report{SUFFIXES[to]}").write_text(f"{report}\n", encoding="utf-8")


def write_posterior(nb: NaiveBayesClassifier, n_parameters: int, path: Path) -> str | None:
    """Write draws of the parameters to a NetCDF file; return a note if draws are fewer than 2,000, or not written.

    Prior and posterior together have at most 2^22 drawn numbers, which take 34 MB. A model of more than 20,000
    parameters would have fewer than 100 draws, and is not written.
    """
    if n_parameters > _PARAMETERS:
        return f"Draws of {n_parameters:,} parameters are too large for a file: {path.name} is not written. {_MORE}"
    draws = min(_DRAWS, _DRAWN_NUMBERS // (2 * _CHAINS * n_parameters))
    posterior = to_arviz(nb, draws=draws, chains=_CHAINS)
    # HDF5 does not survive a full disk: what it could not write it tries again when Python ends, and crashes.
    path.write_bytes(bytes(_HEADERS + int(1.05 * sum(group.nbytes for group in posterior.values()))))
    posterior.to_netcdf(str(path))
    if draws == _DRAWS:
        return None
    many = f"{_CHAINS * draws:,} draws of each of {n_parameters:,} parameters, in place of {_CHAINS * _DRAWS:,}"
    return f"{path.name} has {many}, to stay below 40 MB. {_MORE}"


def quote_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before each name and text that a spreadsheet would compute; numbers stay as they are."""
    return table.map(quote_formula).rename(columns=quote_formula)
