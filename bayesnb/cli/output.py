"""Files of `--out`: tables, figures, the posterior and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from bayesnb.cli.analyses import Analysis, analyse
from bayesnb.cli.comparison import Outcome
from bayesnb.cli.document import SUFFIXES, Format, render
from bayesnb.cli.fitting import Settings
from bayesnb.cli.output_folder import file_stem
from bayesnb.cli.report import full_report
from bayesnb.inference_data import to_arviz

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_DRAWS = 500
_HEADERS = 2**20
_PARAMETERS = 20_000


def write_files(
    outcomes: Sequence[Outcome], settings: Settings, arguments: Sequence[str], report_format: Format, folder: Path
) -> None:
    """Write tables, figures, posteriors and the report into a folder.

    A posterior is written as 500 draws, unless it is improper or has more than 20,000 parameters.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    analyses: list[Mapping[str, Analysis]] = []
    for outcome in outcomes:
        analyses.append(analyse(outcome, settings.prob))
        for analysis in analyses[-1].values():
            path = folder / file_stem(outcome.data.name, analysis.name)
            if analysis.table is not None:
                quote_formulas(analysis.table).to_csv(f"{path}.csv", index=False)
            if analysis.figure is not None:
                Path(f"{path}.png").write_bytes(analysis.png)
        if outcome.parameters is not None and len(outcome.parameters) <= _PARAMETERS:
            path = folder / f"{file_stem(outcome.data.name, 'posterior')}.nc"
            posterior = to_arviz(outcome.fits.nb, draws=_DRAWS)
            # HDF5 does not survive a full disk: what it could not write it tries again when Python ends, and crashes.
            path.write_bytes(bytes(_HEADERS + int(1.05 * sum(group.nbytes for group in posterior.values()))))
            posterior.to_netcdf(str(path))
    report = render(full_report(outcomes, analyses, settings, arguments), report_format)
    (folder / f"report{SUFFIXES[report_format]}").write_text(f"{report}\n", encoding="utf-8")


def quote_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before each text that a spreadsheet would compute; numbers stay as they are.

    Such a text begins with =, +, -, @, a tab or a line end, and is not a number.

    References
    ----------
    OWASP, *CSV injection*.
    """
    return table.map(_quote_formula)


def _quote_formula(cell: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would compute; return all other cells unchanged.

    Such a text begins with =, +, -, @, a tab or a line end, and is not a number.
    """
    if not (isinstance(cell, str) and cell.startswith(_FORMULA)):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
