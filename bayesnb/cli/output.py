"""Files of `--out`: tables, figures, the posterior and the report; moved into its folder when all are written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pandas as pd

from bayesnb.cli.analyses import NAMES, Analysis, analyse
from bayesnb.cli.comparison import Outcome
from bayesnb.cli.csv_cells import InputError
from bayesnb.cli.document import SUFFIXES, Format, render
from bayesnb.cli.fitting import Settings
from bayesnb.cli.report import file_stem, full_report
from bayesnb.cli.terminal import enumerate_names
from bayesnb.inference_data import to_arviz

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_DRAWS = 500
_HEADERS = 2**20
_PARAMETERS = 20_000


def file_names(data_sets: Iterable[str]) -> list[str]:
    """List the names of all files that a run on these data sets may write."""
    reports = [f"report{suffix}" for suffix in reversed(SUFFIXES.values())]
    parts = [("posterior", "nc"), *((name, suffix) for name in NAMES for suffix in ("csv", "png"))]
    return [*reports, *(f"{file_stem(title, name)}.{suffix}" for title in data_sets for name, suffix in parts)]


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


@contextmanager
def filled(folder: Path, names: Sequence[str], overwrite: bool) -> Iterator[Path]:
    """Yield a temporary folder to write into; at the end its files replace those of these names in `folder`.

    After an error, or an interrupt, `folder` is as it was.

    Raises
    ------
    InputError
        At the beginning, if the folder cannot be written, if it has some of these files and `overwrite` is False,
        if a folder has one of the names, or if figures cannot be drawn or the posterior not be stored; at the end, if a
        file could not be written.
    """
    present = [folder / name for name in names if os.path.lexists(folder / name)]
    kept = [path.name for path in present if not overwrite or path.is_dir()]
    if kept:
        raise InputError(
            f"--out {folder} already has {enumerate_names(kept, 12)}. Choose another folder"
            + ("; --overwrite does not replace folders." if overwrite else ", or replace the files with --overwrite.")
        )
    try:
        new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".bayesnb-", dir=folder) as temporary:
                yield Path(temporary)
                for path in present:  # An earlier run may have written files that this run has not.
                    path.unlink()
                for path in Path(temporary).iterdir():
                    path.replace(folder / path.name)
        finally:
            with suppress(OSError):  # The folder has files: everything went well.
                for path in new_folders:
                    path.rmdir()
    except OSError as error:
        raise InputError(f"--out {folder} cannot be written: {error.strerror or error}.") from None
