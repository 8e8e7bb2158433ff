"""Files of `--out`: tables, figures, the posterior and the report; they are written all at once or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayesnb._util.extras import require
from bayesnb._util.progress import progress
from bayesnb.cli.analyses import NAMES, Analysis, analyse
from bayesnb.cli.command import Command
from bayesnb.cli.comparison import Outcome
from bayesnb.cli.csv_cells import InputError
from bayesnb.cli.document import SUFFIXES, Format, render
from bayesnb.cli.fitting import Settings
from bayesnb.cli.report import file_stem, full_report
from bayesnb.cli.terminal import enumerate_names
from bayesnb.estimators.base import NaiveBayesClassifier
from bayesnb.inference_data import to_arviz

if TYPE_CHECKING:
    import pandas as pd

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_DRAWS = 500
_HEADERS = 2**20
_PARAMETERS = 20_000


def file_names(data_sets: Iterable[str]) -> list[str]:
    """Names of all files that a run on these data sets may write."""
    reports = [f"report{suffix}" for suffix in reversed(SUFFIXES.values())]
    parts = [("posterior", "nc"), *((name, suffix) for name in NAMES for suffix in ("csv", "png"))]
    return [*reports, *(f"{file_stem(title, name)}.{suffix}" for title in data_sets for name, suffix in parts)]


def write_files(
    outcomes: Sequence[Outcome], settings: Settings, command: Command, report_format: Format, folder: Path
) -> None:
    """Write tables, figures, posteriors and the report into a folder.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    analyses: list[Mapping[str, Analysis]] = []
    for outcome in outcomes:
        with progress(f"{outcome.data.name}: posterior analysis", 1) as advance:
            analyses.append(analyse(outcome, settings.prob))
            advance()
        for analysis in analyses[-1].values():
            path = folder / file_stem(outcome.data.name, analysis.name)
            if analysis.table is not None:
                quote_formulas(analysis.table).to_csv(f"{path}.csv", index=False)
            if analysis.figure is not None:
                Path(f"{path}.png").write_bytes(analysis.png)
        if outcome.parameters is not None and len(outcome.parameters) <= _PARAMETERS:
            _write_posterior(outcome.fits.nb, folder / f"{file_stem(outcome.data.name, 'posterior')}.nc")
    report = render(full_report(outcomes, analyses, settings, command), report_format)
    (folder / f"report{SUFFIXES[report_format]}").write_text(f"{report}\n", encoding="utf-8")


def _write_posterior(nb: NaiveBayesClassifier, path: Path) -> None:
    data = to_arviz(nb, draws=_DRAWS)
    # HDF5 does not survive a full disk: what it could not write it tries again when Python ends, and crashes.
    size = _HEADERS + int(1.05 * sum(group.nbytes for group in data.values()))
    with path.open("wb") as file:
        for start in range(0, size, _HEADERS):
            file.write(bytes(min(_HEADERS, size - start)))
    data.to_netcdf(str(path))


def quote_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Put an apostrophe before each text that a spreadsheet would compute; numbers stay as they are.

    References
    ----------
    OWASP, *CSV injection*.
    """
    return table.map(_quote_formula)


def _quote_formula(cell: Any) -> Any:
    if not (isinstance(cell, str) and cell.startswith(_FORMULA)):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def require_free(folder: Path, names: Sequence[str], overwrite: bool) -> None:
    """Refuse before anything is computed if files of these names cannot be written into a folder; make nothing yet.

    Raises
    ------
    InputError
        If the folder cannot be written; if it has some of these files, which are not to be overwritten; if figures
        cannot be drawn, or the posterior not be stored.
    """
    try:
        require("--out", "plots,arviz", "matplotlib", "arviz", "h5netcdf", "h5py")
    except ImportError as error:
        raise InputError(str(error)) from None
    with _as_input_error(folder):
        if folder.is_symlink() and not folder.exists():
            raise InputError(f"--out {folder} is a link to what is not there; choose another folder.")
        nearest = _nearest(folder)
        with tempfile.TemporaryFile(dir=nearest):
            pass
        for name in folder.absolute().relative_to(nearest).parts:  # The system refuses a name that is too long.
            with suppress(FileNotFoundError):
                os.lstat(nearest / name)
    present = [name for name in names if os.path.lexists(folder / name)]
    if present and not overwrite:
        raise InputError(
            f"--out {folder} has {enumerate_names(present, 12)} already; choose another folder, or replace them by "
            "--overwrite."
        )
    folders = [name for name in present if (folder / name).is_dir()]
    if folders:
        raise InputError(f"--out {folder} has folders called {enumerate_names(folders, 12)}; choose another folder.")


@contextmanager
def filled(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield a temporary folder to write into; at the end its files replace those of these names in `folder`.

    After an error, or an interrupt, `folder` is as it was.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    with _as_input_error(folder):
        temporary = Path(tempfile.mkdtemp(prefix=".bayesnb-", dir=_nearest(folder)))
        try:
            yield temporary
            folder.mkdir(parents=True, exist_ok=True)
            _replace(folder, temporary, names)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _replace(folder: Path, temporary: Path, names: Sequence[str]) -> None:
    """Move the new files into the folder in place of all of these names; if that fails, restore the folder."""
    written = [file.name for file in temporary.iterdir()]
    former = Path(tempfile.mkdtemp(dir=temporary))
    try:
        for name in {*names, *written}:  # An earlier run may have written files that this run has not.
            if os.path.lexists(folder / name):
                os.replace(folder / name, former / name)
        for name in written:
            os.replace(temporary / name, folder / name)
    except BaseException:
        for name in written:
            if not (temporary / name).exists():
                (folder / name).unlink(missing_ok=True)
        for old in former.iterdir():
            os.replace(old, folder / old.name)
        raise


@contextmanager
def _as_input_error(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"--out {folder}: {error.strerror or error}.") from None


def _nearest(folder: Path) -> Path:
    """The folder, or the existing folder in which it will be made."""
    folder = folder.absolute()
    return next(path for path in (folder, *folder.parents) if path.exists())
