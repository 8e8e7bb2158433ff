"""Files of `--out`: tables, figures, the posterior and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from bayesnb._util.warnings import warn
from bayesnb.cli.analyses import Analysis, analyse
from bayesnb.cli.comparison import Outcome
from bayesnb.cli.csv_cells import quote_formula
from bayesnb.cli.document import SUFFIXES, Format, render
from bayesnb.cli.fitting import Settings
from bayesnb.cli.output_folder import file_stem
from bayesnb.cli.report import full_report
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.inference_data import to_arviz

_CHAINS, _DRAWS = 4, 500
_HEADERS = 2**20
_PARAMETERS = 20_000
_DRAWN_NUMBERS = 2**22
"""Greatest number of drawn parameters in a file, of the prior and of the posterior: 34 MB."""


def write_files(
    outcomes: Sequence[Outcome], settings: Settings, arguments: Sequence[str], report_format: Format, folder: Path
) -> None:
    """Write tables, figures, posteriors and the report into a folder.

    Notes of the report, which are also issued as warnings, say where draws of a posterior are few or not written.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    analyses: list[Mapping[str, Analysis]] = []
    noted: list[Outcome] = []
    for outcome in outcomes:
        analyses.append(analyse(outcome, settings.prob))
        for analysis in analyses[-1].values():
            path = folder / file_stem(outcome.data.name, analysis.name)
            if analysis.table is not None:
                quote_formulas(analysis.table).to_csv(f"{path}.csv", index=False)
            if analysis.figure is not None:
                Path(f"{path}.png").write_bytes(analysis.png)
        note = None
        if outcome.parameters is not None:
            path = folder / f"{file_stem(outcome.data.name, 'posterior')}.nc"
            note = write_posterior(outcome.fits.nb, len(outcome.parameters), path)
        if note is not None:
            warn(note)
        noted.append(outcome if note is None else replace(outcome, notes=[*outcome.notes, note]))
    report = render(full_report(noted, analyses, settings, arguments), report_format)
    (folder / f"report{SUFFIXES[report_format]}").write_text(f"{report}\n", encoding="utf-8")


def write_posterior(nb: NaiveBayesClassifier, n_parameters: int, path: Path) -> str | None:
    """Write draws of the parameters to a NetCDF file; return a note if draws are fewer than 2,000, or not written.

    Prior and posterior together have at most 2^22 drawn numbers, which take 34 MB. A model of more than 20,000
    parameters would have fewer than 100 draws, and is not written.
    """
    more = "For more draws, fit the classifier in Python, and call bayesnb.to_arviz(nb, draws=...)."
    if n_parameters > _PARAMETERS:
        return (
            f"Draws of {n_parameters:,} parameters are too large for a file, so that {path.name} is not written. {more}"
        )
    draws = min(_DRAWS, _DRAWN_NUMBERS // (2 * _CHAINS * n_parameters))
    posterior = to_arviz(nb, draws=draws, chains=_CHAINS)
    # HDF5 does not survive a full disk: what it could not write it tries again when Python ends, and crashes.
    path.write_bytes(bytes(_HEADERS + int(1.05 * sum(group.nbytes for group in posterior.values()))))
    posterior.to_netcdf(str(path))
    if draws == _DRAWS:
        return None
    return (
        f"{path.name} has {_CHAINS * draws:,} draws of each of {n_parameters:,} parameters, in place of "
        f"{_CHAINS * _DRAWS:,}, to stay below 40 MB. {more}"
    )


def quote_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before each name and text that a spreadsheet would compute; numbers stay as they are."""
    return table.map(quote_formula).rename(columns=quote_formula)
